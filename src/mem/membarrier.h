/* SPDX-License-Identifier: BSD-3-Clause
 *
 * membarrier: the expensive half of an order between a rank that sleeps and those that wake it (Dekker): the sleeper stores that it
 * sleeps, issues a membarrier, and then loads whether there is work; a waker stores the work, and then loads whether the rank sleeps,
 * with no fence between. Inline: tests replace the system call.
 */
#ifndef WEFT_MEM_MEMBARRIER_H
#define WEFT_MEM_MEMBARRIER_H

#include <linux/membarrier.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Once in each process, also of the wakers. False: refused (seccomp, an old kernel): wakers must issue a fence. */
static inline bool weft_membarrier_register(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/* Orders this thread's stores before its later loads as seen by all threads of registered processes. */
static inline void weft_membarrier(void) { syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

#endif
