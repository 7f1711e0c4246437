/* SPDX-License-Identifier: BSD-3-Clause
 *
 * syscall_patch: makes libc's own system calls call a function of ours first. Not the names of libc's functions are intercepted but the
 * instructions in them, so what malloc, thread stacks and the loader do inside libc is seen, too, and nothing needs to be preloaded.
 * Patched: libc, the loader, a separate libpthread, and the library that defines malloc; in a static program the program itself. Not
 * patched: other code that makes system calls inline. A forked child inherits the patch, a program that is executed does not.
 */
#ifndef WEFT_MEM_SYSCALL_PATCH_H
#define WEFT_MEM_SYSCALL_PATCH_H

#include <stddef.h>

/* Patches all sites of these system calls, and syscall(); `count` numbers, of which libc must have the first `needed`, and the loader the
 * first. Then before(number, six arguments) runs before each. Once per process, with or without other threads; never undone, so the
 * library must not be unloaded. 0, or WEFT_E_UNSUPPORTED with a reason in `why`: another architecture, another libc's code, or the system
 * forbids to change code (SELinux's execmem, prctl(PR_SET_MDWE), sealed memory). */
int weft_syscall_patch(const long *numbers, int count, int needed, void (*before)(long number, const long *args), char *why,
                       size_t capacity);

#endif
