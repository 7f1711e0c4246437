/* SPDX-License-Identifier: BSD-3-Clause
 *
 * syscall_site: one system call in machine code that was compiled elsewhere (libc's), and the code that takes its place. One file for each
 * architecture; called by syscall_patch only.
 *
 * One whole instruction before or at the system call is replaced by a jump to an *island* near it. The island saves all registers, calls
 * weft_syscall_site_enter(), restores them, executes the system call and jumps back behind the original one. So errno, cancellation,
 * __curbrk, variable arguments and the caller's frame remain libc's business, whatever its release.
 * Why that is right:
 *     one instruction   a thread that was stopped anywhere in the function continues at an instruction that still exists
 *     no code moves     the system call itself has no operand that depends on its place; what stands between the replaced instruction and
 *                       the call (moves between registers) is applied to the saved registers
 *     all registers     an inlined system call may have live values in any of them; the functions that run here are compiled for general
 *                       registers only (BARE_CFLAGS), so vector registers stay as they are. The red zone is left alone
 *     the stack         the system call runs on libc's stack pointer and needs nothing of ours after it, so it may unmap the stack
 *     a second entry    a jump to the instructions behind the replaced one runs them as before: not reported, never wrong
 */
#ifndef WEFT_MEM_SYSCALL_SITE_H
#define WEFT_MEM_SYSCALL_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_SYSCALL_SITE_OPS 4
#define WEFT_SYSCALL_SITES_MAX 64
#define WEFT_SYSCALL_ISLAND_BYTES 32
#define WEFT_SYSCALL_BY_CALLER (-1) /* number of a site: given by the caller (libc's syscall()) */

/* What an instruction between the replaced one and the system call does. Registers in the encoding's order. */
typedef struct weft_syscall_op {
    enum { WEFT_SYSCALL_MOVE64, WEFT_SYSCALL_MOVE32, WEFT_SYSCALL_ZERO, WEFT_SYSCALL_LOAD_STACK } kind; /* LOAD_STACK: from sp + 8 */
    uint8_t to, from;
} weft_syscall_op;

typedef struct weft_syscall_site {
    uintptr_t at;   /* the replaced instruction */
    uintptr_t back; /* the instruction behind the system call */
    size_t bytes;   /* of the replaced instruction */
    long number;    /* of the system call, or WEFT_SYSCALL_BY_CALLER */
    uint32_t op_count;
    weft_syscall_op ops[WEFT_SYSCALL_SITE_OPS];
} weft_syscall_site;

/* Sites in order of their islands; written by syscall_patch before the first jump to them. */
extern weft_syscall_site weft_syscall_sites[WEFT_SYSCALL_SITES_MAX];
/* Called at each patched system call, before it. Any thread, anywhere in libc, in signal handlers: WEFT_BARE code only. */
extern void (*weft_syscall_before)(long number, const long *args);

/* Whether this architecture is known, and how far an island may be from its site, bytes; 0: unknown. */
size_t weft_syscall_site_reach(void);
/* Finds the next site in [*text, end) and advances *text behind it. The byte before *text must be readable. False: there is none. */
bool weft_syscall_site_find(const unsigned char **text, const unsigned char *end, weft_syscall_site *site);
/* Writes the island of the index-th site to `to`, which is where it will run. *entry: weft_syscall_site_entry, in the island's page. */
void weft_syscall_island_write(unsigned char *to, uint32_t index, const weft_syscall_site *site, const uintptr_t *entry);
/* Writes the jump from the site to its island to `to`, a copy of the bytes at site->at. */
void weft_syscall_jump_write(unsigned char *to, const weft_syscall_site *site, uintptr_t island);
/* Code in assembly that the islands call. */
void weft_syscall_site_entry(void);

#endif
