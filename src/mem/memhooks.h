/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memhooks: reports each change of a mapping that is made by libc, before it is made, in the thread that makes it: the system calls in
 * libc's code are patched (syscall_patch). Only what is watched is reported; all else costs some ten nanoseconds for each call.
 * Not seen: system calls that other code makes inline, and those of another process (a debugger, process_madvise from outside).
 */
#ifndef WEFT_MEM_MEMHOOKS_H
#define WEFT_MEM_MEMHOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "mem/inval_log.h"

/* Patches libc, once per process; see weft_syscall_patch() for threads and errors. Reports nothing yet. */
int weft_memhooks_install(char *why, size_t capacity);
/* Appends changes to `log` from now on; NULL: they are ignored. Any thread. */
void weft_memhooks_report_to(weft_inval_log *log);
/* From now on each change of [start, end) is reported, until the process ends; some changes near it, too. Any thread. */
void weft_memhooks_watch(uint64_t start, uint64_t end);

#endif
