/* SPDX-License-Identifier: BSD-3-Clause
 *
 * syscall_site_aarch64: replaces `svc #0` itself, where an instruction shortly before it loads the number into x8. The number counts as it
 * is in x8 at run time, so a wrong guess about the number does no harm.
 */
#include "mem/syscall_site.h"

#if defined(__aarch64__) && defined(WEFT_BARE_REGISTERS)
#include <string.h>

#include "base/raw_thread.h"

#define SVC 0xd4000001u
#define LOOK_BACK 10 /* instructions; syscall() moves seven arguments between */

/* As stored by weft_syscall_site_entry. */
typedef struct frame {
    long x[16];
    long x17, x18, x29, x30, flags, unused;
} frame;

__asm__(".text\n"
        ".p2align 4\n"
        ".globl weft_syscall_site_entry\n"
        ".hidden weft_syscall_site_entry\n"
        ".type weft_syscall_site_entry, %function\n"
        "weft_syscall_site_entry:\n"
        ".cfi_startproc simple\n"
        ".cfi_undefined x30\n"
        "    hint #34\n" /* bti c */
        "    sub sp, sp, #176\n"
        "    stp x0, x1, [sp]\n    stp x2, x3, [sp, #16]\n    stp x4, x5, [sp, #32]\n    stp x6, x7, [sp, #48]\n"
        "    stp x8, x9, [sp, #64]\n    stp x10, x11, [sp, #80]\n    stp x12, x13, [sp, #96]\n    stp x14, x15, [sp, #112]\n"
        "    stp x17, x18, [sp, #128]\n    stp x29, x30, [sp, #144]\n"
        "    mrs x17, nzcv\n"
        "    str x17, [sp, #160]\n"
        "    mov x0, sp\n"
        "    bl weft_syscall_site_enter\n"
        "    ldr x17, [sp, #160]\n"
        "    msr nzcv, x17\n"
        "    ldp x0, x1, [sp]\n    ldp x2, x3, [sp, #16]\n    ldp x4, x5, [sp, #32]\n    ldp x6, x7, [sp, #48]\n"
        "    ldp x8, x9, [sp, #64]\n    ldp x10, x11, [sp, #80]\n    ldp x12, x13, [sp, #96]\n    ldp x14, x15, [sp, #112]\n"
        "    ldp x17, x18, [sp, #128]\n    ldp x29, x30, [sp, #144]\n"
        "    add sp, sp, #176\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size weft_syscall_site_entry, . - weft_syscall_site_entry\n");

__attribute__((used)) WEFT_BARE void weft_syscall_site_enter(const frame *f) { weft_syscall_before(f->x[8], f->x); }

size_t weft_syscall_site_reach(void) { return (size_t)120 << 20; } /* a branch reaches 128 MiB */

/* What the instruction loads into x8. False: it does not, or that is not known. */
static bool loads_number(uint32_t code, long *number)
{
    if ((code & 0x7fe0001f) == 0x52800008) { /* movz w8 or x8, #NUMBER */
        *number = code >> 5 & 0xffff;
        return true;
    }
    *number = WEFT_SYSCALL_BY_CALLER;
    return (code & 0x7fffffff) == 0x2a0003e8; /* mov w8, w0 or x8, x0 */
}

/* Unconditional branches and returns: what stands before them does not run before what stands behind them. */
static bool leaves(uint32_t code) { return (code & 0x7c000000) == 0x14000000 || (code & 0xfe000000) == 0xd6000000; }

bool weft_syscall_site_find(const unsigned char **text, const unsigned char *end, weft_syscall_site *site)
{
    const uint32_t *start = (const uint32_t *)(const void *)*text, *stop = (const uint32_t *)(const void *)end;

    for (const uint32_t *p = start; p < stop; p++) {
        if (*p != SVC)
            continue;
        for (const uint32_t *before = p - 1; before >= start && p - before <= LOOK_BACK && !leaves(*before); before--)
            if (loads_number(*before, &site->number)) {
                site->at = (uintptr_t)p;
                site->back = (uintptr_t)(p + 1);
                site->bytes = 4;
                site->op_count = 0;
                *text = (const unsigned char *)(p + 1);
                return true;
            }
    }
    *text = end;
    return false;
}

static uint32_t branch(uintptr_t from, uintptr_t to) { return 0x14000000u | ((uint32_t)((to - from) >> 2) & 0x03ffffff); }

void weft_syscall_island_write(unsigned char *to, uint32_t index, const weft_syscall_site *site, const uintptr_t *entry)
{
    uintptr_t at = (uintptr_t)to;
    const uint32_t code[] = {
        0xa9bf7bf0, /* stp x16, x30, [sp, #-16]! */
        0x58000010 | ((uint32_t)(((uintptr_t)entry - (at + 4)) >> 2) & 0x7ffff) << 5, /* ldr x16, entry */
        0xd63f0200, /* blr x16 */
        0xa8c17bf0, /* ldp x16, x30, [sp], #16 */
        SVC,
        branch(at + 20, site->back)};

    (void)index;
    memcpy(to, code, sizeof(code));
}

void weft_syscall_jump_write(unsigned char *to, const weft_syscall_site *site, uintptr_t island)
{
    uint32_t code = branch(site->at, island);
    memcpy(to, &code, sizeof(code));
}
#endif
