/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm_hooks: included before the library's files in test_shm_wait's build (-include). Before each atomic operation the other rank may run
 * (interleave.h); futexes, membarrier and the clock are replaced.
 */
#ifndef WEFT_TEST_UNIT_SHM_HOOKS_H
#define WEFT_TEST_UNIT_SHM_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "interleave.h"

long hooked_syscall(long number, ...);

#define POINT() interleave_point_at(__FILE__, __LINE__)
/* Nothing depends on when these are read or written. */
#define HAS(p, name) (__builtin_strstr(#p, name) != NULL)
#define IS_FREE(p) (HAS(p, "read_ps") || HAS(p, "shown") || HAS(p, "tickets") || HAS(p, "woken_ns") || \
                    HAS(p, "membarrier_ok") || HAS(p, "job_rank"))
#define LOAD_POINT(p) (IS_FREE(p) ? (void)0 : POINT())
#define STORE_POINT(p) (IS_FREE(p) ? (void)0 : POINT())
#define syscall(...) hooked_syscall(__VA_ARGS__)
#define weft_clock_ns() interleave_clock_ns()

#include "atomic_hooks.h"

#endif
