/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon_uffd: monitor source by userfaultfd. Mappings are registered in write-protect mode, no page is ever protected; the kernel
 * reports unmap, move and discard by any system call. Called by memmon only.
 * Threads: a listener unknown to libc (base/raw_thread.h), else a pthread, publishes the events. It has a descriptor table of its own: no
 * close by the program stops it or gives it another file to read. The program's table holds a second descriptor, for ioctls; what they say
 * counts only if the descriptor still leads to the same file.
 * No event (Linux 6.18): shmat(SHM_REMAP) over a registered mapping, MADV_GUARD_INSTALL. No allocator uses them; memhooks sees both.
 */
#ifndef WEFT_MEM_MEMMON_UFFD_H
#define WEFT_MEM_MEMMON_UFFD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fd_id.h"
#include "mem/inval_log.h"

typedef struct weft_uffd {
    int fd;                   /* the userfaultfd in the program's table; -1: none */
    weft_fd_id id;            /* of its file */
    int stop;                 /* eventfd that ends the listener; -1 after weft_uffd_keep() */
    weft_inval_log *log;
    _Atomic uint32_t is_alive; /* 1 while the listener runs; cleared by it (release), pairs with weft_uffd_close() */
    _Atomic uint32_t has_begun; /* 1 once the listener has its own table, or has failed to make one */
    bool is_pthread;          /* the listener is a pthread; `thread` is valid */
    bool by_device;           /* opened by /dev/userfaultfd, as the system call is refused */
    bool can_sync;          /* weft_uffd_is_synced() is reliable (Linux 5.15) */
    pthread_t thread;         /* joined by weft_uffd_close() */
} weft_uffd;

/* Opens a userfaultfd and starts the listener. 0, or WEFT_E_UNSUPPORTED with a reason in `why` (kernel, seccomp filter). */
int weft_uffd_open(weft_uffd *uffd, weft_inval_log *log, char *why, size_t capacity);
/* The listener is to run until the process ends: closes `stop`, as the program might reuse its number. */
void weft_uffd_keep(weft_uffd *uffd);
/* True if the program's descriptor is still the userfaultfd. False: the program has closed it; the listener still has its own. */
bool weft_uffd_is_own(const weft_uffd *uffd);
/* Ends the listener and unregisters all; not after weft_uffd_keep(). Blocks for it. In a child call weft_uffd_forget() instead. */
void weft_uffd_close(weft_uffd *uffd);
/* In a child after fork: closes the inherited descriptors only. */
void weft_uffd_forget(weft_uffd *uffd);
/* Registers one whole mapping (a part would split it). False: the kernel refuses this mapping. */
bool weft_uffd_register(const weft_uffd *uffd, uint64_t start, uint64_t end);
/* True if the listener has read the events of all changes visible by now. Two cheap system calls. */
bool weft_uffd_is_synced(const weft_uffd *uffd);

#endif
