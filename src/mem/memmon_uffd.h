/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon_uffd: userfaultfd as a watch: mappings are registered in write-protect mode, nothing is ever protected, and the kernel
 * tells of unmapping, moving and throwing away by whatever call, raw ones and libc's own included. A listener that is no thread
 * of libc's (base/bare.h) publishes it. Called by watch alone.
 * What the kernel does not tell (found by trial on 6.18, none of it done by any allocator): shmat(SHM_REMAP) over a registered
 * mapping, MADV_GUARD_INSTALL. The interposer sees both.
 */
#ifndef WEFT_MEM_MEMMON_UFFD_H
#define WEFT_MEM_MEMMON_UFFD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mem/memmon.h"

typedef struct weft_uffd {
    _Atomic int fd;           /* the userfaultfd; -1 when the listener had to give it up */
    int stop;                 /* an eventfd that ends the listener */
    weft_inval_log *news;
    _Atomic uint32_t is_alive; /* the listener listens; it clears this when it ends */
    bool is_pthread;
    bool by_device;           /* made by /dev/userfaultfd, as the system call is refused */
    bool can_settle;          /* the kernel's count of changes can be trusted: see weft_uffd_is_settled */
    pthread_t thread;
} weft_uffd;

/* 0, or WEFT_E_UNSUPPORTED with a sentence in `why`: the kernel or a filter of system calls refuses. */
int weft_uffd_open(weft_uffd *fault, weft_inval_log *news, char *why, size_t room);
/* Everything is unregistered. Never in a child: see forget. */
void weft_uffd_close(weft_uffd *fault);
/* In a child: only the descriptors, which are the parent's. */
void weft_uffd_forget(weft_uffd *fault);
/* Whole mappings only: parts would split them. false: the kernel cannot watch this one. */
bool weft_uffd_register(const weft_uffd *fault, uint64_t start, uint64_t end);
/* Has every change that could be seen by now been read by the listener? One system call of about the cheapest kind. */
bool weft_uffd_is_settled(const weft_uffd *fault);

#endif
