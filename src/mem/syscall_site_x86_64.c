/* SPDX-License-Identifier: BSD-3-Clause
 *
 * syscall_site_x86_64: replaces `mov $NUMBER, %eax` (5 bytes) before `syscall`. Up to four moves between registers may stand between.
 * In libc's syscall() it is `mov 8(%rsp), %r9` (5 bytes, too).
 */
#include "mem/syscall_site.h"

#if defined(__x86_64__) && defined(WEFT_BARE_REGISTERS)
#include <string.h>

#include "base/raw_thread.h"

enum { AX, CX, DX, BX, SP, BP, SI, DI, R8, R9, R10 };

/* As pushed by weft_syscall_site_entry and the island; then the red zone, then the stack of the site. */
typedef struct frame {
    long at[16]; /* general registers in the encoding's order */
    long flags, back, index;
    long red_zone[16];
    long stack[2];
} frame;

__asm__(".text\n"
        ".p2align 4\n"
        ".globl weft_syscall_site_entry\n"
        ".hidden weft_syscall_site_entry\n"
        ".type weft_syscall_site_entry, @function\n"
        "weft_syscall_site_entry:\n"
        ".cfi_startproc simple\n"
        ".cfi_undefined rip\n"
        "    .byte 0xf3, 0x0f, 0x1e, 0xfa\n" /* endbr64 */
        "    pushfq\n"
        "    pushq %r15\n    pushq %r14\n    pushq %r13\n    pushq %r12\n"
        "    pushq %r11\n    pushq %r10\n    pushq %r9\n    pushq %r8\n"
        "    pushq %rdi\n    pushq %rsi\n    pushq %rbp\n    pushq %rsp\n"
        "    pushq %rbx\n    pushq %rdx\n    pushq %rcx\n    pushq %rax\n"
        "    cld\n"
        "    movq %rsp, %rdi\n"
        "    movq %rsp, %rbp\n"
        "    andq $-16, %rsp\n"
        "    call weft_syscall_site_enter\n"
        "    movq %rbp, %rsp\n"
        "    popq %rax\n    popq %rcx\n    popq %rdx\n    popq %rbx\n"
        "    leaq 8(%rsp), %rsp\n"
        "    popq %rbp\n    popq %rsi\n    popq %rdi\n"
        "    popq %r8\n    popq %r9\n    popq %r10\n    popq %r11\n"
        "    popq %r12\n    popq %r13\n    popq %r14\n    popq %r15\n"
        "    popfq\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size weft_syscall_site_entry, . - weft_syscall_site_entry\n");

__attribute__((used)) WEFT_BARE void weft_syscall_site_enter(frame *f)
{
    const weft_syscall_site *site = &weft_syscall_sites[f->index];

    if (site->number != WEFT_SYSCALL_BY_CALLER)
        f->at[AX] = site->number;
    for (uint32_t i = 0; i < site->op_count; i++) {
        const weft_syscall_op *op = &site->ops[i];
        long from = op->kind == WEFT_SYSCALL_ZERO ? 0 : op->kind == WEFT_SYSCALL_LOAD_STACK ? f->stack[1] : f->at[op->from];
        f->at[op->to] = op->kind == WEFT_SYSCALL_MOVE32 ? (long)(uint32_t)from : from;
    }
    const long args[6] = {f->at[DI], f->at[SI], f->at[DX], f->at[R10], f->at[R8], f->at[R9]};
    weft_syscall_before(f->at[AX], args);
}

size_t weft_syscall_site_reach(void) { return (size_t)1 << 30; } /* half of what a jump reaches: site, island and both directions */

/* Decodes a move between two registers (MOV, or XOR of one with itself) at p. Its length; 0: another instruction. */
static size_t decode_move(const unsigned char *p, const unsigned char *end, weft_syscall_op *op)
{
    size_t prefix = p < end && (*p & 0xf0) == 0x40;
    unsigned rex = prefix ? *p : 0;

    if (p + prefix + 2 > end || p[prefix + 1] < 0xc0)
        return 0;
    unsigned code = p[prefix], reg = (p[prefix + 1] >> 3 & 7) | (rex & 4) << 1, rm = (p[prefix + 1] & 7) | (rex & 1) << 3;
    bool is_load = code == 0x8b, is_xor = code == 0x31 || code == 0x33;
    if (!is_load && code != 0x89 && !(is_xor && reg == rm))
        return 0;
    op->to = (uint8_t)(is_load ? reg : rm);
    op->from = (uint8_t)(is_load ? rm : reg);
    op->kind = is_xor ? WEFT_SYSCALL_ZERO : rex & 8 ? WEFT_SYSCALL_MOVE64 : WEFT_SYSCALL_MOVE32;
    return op->to == AX || op->to == SP || op->from == AX || op->from == SP ? 0 : prefix + 2;
}

/* mov $NUMBER, %eax; moves; syscall. After a REX prefix the first is another instruction: mov $NUMBER, %r8d. */
static bool is_numbered(const unsigned char *p, const unsigned char *end, weft_syscall_site *site)
{
    uint32_t number, count = 0;
    const unsigned char *at = p + 5;
    size_t length;

    if (*p != 0xb8 || at > end || (p[-1] & 0xf0) == 0x40)
        return false;
    memcpy(&number, p + 1, sizeof(number));
    while (count < WEFT_SYSCALL_SITE_OPS && (length = decode_move(at, end, &site->ops[count]))) {
        at += length;
        count++;
    }
    site->number = (long)number;
    site->op_count = count;
    site->back = (uintptr_t)at + 2;
    return number < 1024 && at + 2 <= end && at[0] == 0x0f && at[1] == 0x05;
}

static bool is_by_caller(const unsigned char *p, const unsigned char *end, weft_syscall_site *site)
{
    static const unsigned char code[] = {0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05}; /* mov 8(%rsp), %r9; syscall */

    if (p + sizeof(code) > end || memcmp(p, code, sizeof(code)))
        return false;
    site->number = WEFT_SYSCALL_BY_CALLER;
    site->ops[0] = (weft_syscall_op){.kind = WEFT_SYSCALL_LOAD_STACK, .to = R9};
    site->op_count = 1;
    site->back = (uintptr_t)p + sizeof(code);
    return true;
}

bool weft_syscall_site_find(const unsigned char **text, const unsigned char *end, weft_syscall_site *site)
{
    for (const unsigned char *p = *text; p < end; p++)
        if ((*p == 0xb8 && is_numbered(p, end, site)) || (*p == 0x4c && is_by_caller(p, end, site))) {
            site->at = (uintptr_t)p;
            site->bytes = 5;
            *text = (const unsigned char *)site->back;
            return true;
        }
    *text = end;
    return false;
}

static unsigned char *put(unsigned char *to, const void *code, size_t bytes) { return (unsigned char *)memcpy(to, code, bytes) + bytes; }

/* Appends the distance from the end of these four bytes to the target. */
static unsigned char *put_distance(unsigned char *to, uintptr_t from, uintptr_t target)
{
    int32_t distance = (int32_t)(target - (from + 4));
    return put(to, &distance, sizeof(distance));
}

void weft_syscall_island_write(unsigned char *to, uint32_t index, const weft_syscall_site *site, const uintptr_t *entry)
{
    to = put(to, "\x48\x8d\x64\x24\x80\x68", 6); /* lea -128(%rsp), %rsp; push $index */
    to = put(to, &index, sizeof(index));
    to = put(to, "\xff\x15", 2); /* call *entry(%rip) */
    to = put_distance(to, (uintptr_t)to, (uintptr_t)entry);
    to = put(to, "\x48\x8d\xa4\x24\x88\x00\x00\x00\x0f\x05\xe9", 11); /* lea 136(%rsp), %rsp; syscall; jmp back */
    put_distance(to, (uintptr_t)to, site->back);
}

void weft_syscall_jump_write(unsigned char *to, const weft_syscall_site *site, uintptr_t island)
{
    *to = 0xe9;
    put_distance(to + 1, site->at + 1, island);
}
#endif
