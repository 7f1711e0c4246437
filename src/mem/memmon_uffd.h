/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon_uffd: monitor source by userfaultfd. Mappings are registered in write-protect mode, no page is ever protected; the kernel
 * reports unmap, move and discard by any system call. Called by memmon only.
 * Threads: a listener unknown to libc (base/raw_thread.h), else a pthread, publishes the events.
 * No event (Linux 6.18): shmat(SHM_REMAP) over a registered mapping, MADV_GUARD_INSTALL. No allocator uses them; memhooks sees both.
 */
#ifndef WEFT_MEM_MEMMON_UFFD_H
#define WEFT_MEM_MEMMON_UFFD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mem/inval_log.h"

typedef struct weft_uffd {
    _Atomic int fd;           /* the userfaultfd; -1: closed, also by the listener after a read error */
    int stop;                 /* eventfd that ends the listener */
    weft_inval_log *log;
    _Atomic uint32_t is_alive; /* 1 while the listener runs; cleared by it (release), pairs with weft_uffd_close() */
    bool is_pthread;          /* the listener is a pthread; `thread` is valid */
    bool by_device;           /* opened by /dev/userfaultfd, as the system call is refused */
    bool can_sync;          /* weft_uffd_is_synced() is reliable (Linux 5.15) */
    pthread_t thread;         /* joined by weft_uffd_close() */
} weft_uffd;

/* Opens a userfaultfd and starts the listener. 0, or WEFT_E_UNSUPPORTED with a reason in `why` (kernel, seccomp filter). */
int weft_uffd_open(weft_uffd *uffd, weft_inval_log *log, char *why, size_t capacity);
/* Ends the listener and unregisters all. Blocks for the listener. In a child after fork call weft_uffd_forget() instead. */
void weft_uffd_close(weft_uffd *uffd);
/* In a child after fork: closes the inherited descriptors only. */
void weft_uffd_forget(weft_uffd *uffd);
/* Registers one whole mapping (a part would split it). False: the kernel refuses this mapping. */
bool weft_uffd_register(const weft_uffd *uffd, uint64_t start, uint64_t end);
/* True if the listener has read the events of all changes visible by now. One cheap system call. */
bool weft_uffd_is_synced(const weft_uffd *uffd);

#endif
