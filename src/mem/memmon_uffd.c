/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon_uffd: userfaultfd listener. Invariant: the listener takes no lock and page-faults on its stack and the log only.
 */
#include "mem/memmon_uffd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/raw_thread.h"
#include "base/status.h"
#include "mem/unmap_wakeup.h"

#define EVENTS (UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE)
/* Not in headers before 5.11 and 5.19. */
#define USER_MODE_ONLY 1
#define WP_HUGETLBFS_SHMEM ((uint64_t)1 << 12)
/* Since Linux 6.1: creates a userfaultfd for a process that may open the device; flags as of the system call. */
#define DEVICE "/dev/userfaultfd"
#define DEVICE_NEW _IO(0xAA, 0x00)
#define CLOSE_RANGE 436 /* a system call that has the same number everywhere, since 5.9 */
#define RANGE_UNSHARE 2 /* CLOSE_RANGE_UNSHARE */

/* Order in the kernel: munmap increments `mmap_changing` under the mmap lock, removes the mapping, releases the lock, queues the
 * event, sleeps until it is read, decrements and returns. madvise does the same before it discards pages.
 *     one thread:      when munmap returns, the listener has read the event. `busy` is odd from before the read until the range is
 *                      published, so the next lookup sees `busy` or the range.
 *     several threads: after munmap in thread A, thread B may map the address and send from it before A's event is read. B issues
 *                      UFFDIO_WRITEPROTECT of length 0: EAGAIN while the count is not zero (checked before the arguments). EINVAL
 *                      means that A's event was read, and the first case holds.
 * Before 5.15 the count was a flag, which the first of two concurrent unmaps cleared for both: `can_settle` is false there. */
static WEFT_BARE weft_range range_of(const struct uffd_msg *message)
{
    switch (message->event) {
    case UFFD_EVENT_UNMAP:
    case UFFD_EVENT_REMOVE:
        return (weft_range){message->arg.remove.start, message->arg.remove.end};
    case UFFD_EVENT_REMAP: /* a mapping replaced at the target has an UNMAP event */
        return (weft_range){message->arg.remap.from, message->arg.remap.from + message->arg.remap.len};
    default:
        return (weft_range){0, 0};
    }
}

static WEFT_BARE void publish(weft_inval_log *log, const struct uffd_msg *message)
{
    weft_range range = range_of(message);

    if (range.end)
        weft_inval_log_append(log, range.start | (message->event == UFFD_EVENT_REMOVE ? WEFT_INVAL_LOG_DISCARDED : 0), range.end);
}

/* Read error, which no kernel is known to give: the closed descriptor releases the munmap if the program's is closed, too. */
static WEFT_BARE void give_up(weft_uffd *uffd, int fd)
{
    atomic_store_explicit(&uffd->is_alive, 0, memory_order_release);
    weft_inval_log_append(uffd->log, 0, UINT64_MAX);
    weft_raw_syscall(SYS_close, fd, 0, 0, 0);
}

static WEFT_BARE bool close_from_to(long first, long last, long flags)
{
    return first > last || !weft_raw_syscall(CLOSE_RANGE, first, last, flags, 0);
}

/* Gives the calling thread a table with these two descriptors only: others, kept open here, would not end when the program closes them. */
static WEFT_BARE bool keep_only(int a, int b)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    return close_from_to(high + 1, UINT32_MAX, RANGE_UNSHARE) && close_from_to(low + 1, high - 1, 0) && close_from_to(0, low - 1, 0);
}

static WEFT_BARE void listen_to(void *arg)
{
    weft_uffd *uffd = arg;
    weft_inval_log *log = uffd->log;
    int fd = uffd->fd, stop = uffd->stop;
    struct uffd_msg messages[16];

    weft_raw_syscall(SYS_prctl, PR_SET_NAME, (long)"weft-memmon", 0, 0);
    bool is_able = keep_only(fd, stop);
    if (!is_able)
        atomic_store_explicit(&uffd->is_alive, 0, memory_order_release);
    atomic_store_explicit(&uffd->has_begun, 1, memory_order_release);
    while (is_able) {
        struct pollfd ends[2] = {{fd, POLLIN, 0}, {stop, POLLIN, 0}};
        long rc = weft_raw_syscall(SYS_ppoll, (long)ends, 2, 0, 0);
        if (rc == -EINTR)
            continue;
        if (rc > 0 && ends[1].revents)
            break;
        atomic_fetch_add_explicit(&log->busy, 1, memory_order_acq_rel);
        rc = rc < 0 ? rc : weft_raw_syscall(SYS_read, fd, (long)messages, sizeof(messages), 0);
        for (long i = 0; i < rc / (long)sizeof(messages[0]); i++)
            publish(log, &messages[i]);
        if (rc <= 0 && rc != -EAGAIN && rc != -EINTR)
            give_up(uffd, fd);
        atomic_fetch_add_explicit(&log->busy, 1, memory_order_acq_rel);
        for (long i = 0; i < rc / (long)sizeof(messages[0]); i++) /* after `busy` is even: a woken helper does not wait for it */
            weft_unmap_wakeup_report(range_of(&messages[i]).start, range_of(&messages[i]).end);
        if (!atomic_load_explicit(&uffd->is_alive, memory_order_relaxed))
            return;
    }
    atomic_store_explicit(&uffd->is_alive, 0, memory_order_release);
}

static void *listen_as_pthread(void *arg)
{
    listen_to(arg);
    return NULL;
}

/* For containers whose seccomp filter refuses the system call but that have the device. */
static int open_device(void)
{
    int device = open(DEVICE, O_RDWR | O_CLOEXEC);
    if (device < 0)
        return -1;
    int fd = ioctl(device, DEVICE_NEW, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY), saved = errno;
    close(device);
    errno = saved;
    return fd;
}

static int open_kernel(uint64_t features, bool by_device)
{
    long fd = by_device ? open_device() : syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
    if (fd < 0 && errno == EINVAL && !by_device) /* before 5.11: no such flag, more privilege needed */
        fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    if (ioctl((int)fd, UFFDIO_API, &api)) {
        int saved = errno;
        close((int)fd);
        errno = saved;
        return -1;
    }
    return (int)fd;
}

static bool kernel_counts(void)
{
    struct utsname name;
    int major = 0, minor = 0;

    return !uname(&name) && sscanf(name.release, "%d.%d", &major, &minor) == 2 && (major > 5 || (major == 5 && minor >= 15));
}

/* Starts the listener: a raw thread, else a pthread with all signals blocked. NULL, or why there is none. */
static const char *start(weft_uffd *uffd)
{
    sigset_t all, before;

    atomic_store(&uffd->is_alive, 1);
    if (weft_raw_thread(listen_to, uffd) <= 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        uffd->is_pthread = pthread_create(&uffd->thread, NULL, listen_as_pthread, uffd) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!uffd->is_pthread)
            return "no thread could be started for its events";
    }
    while (!atomic_load_explicit(&uffd->has_begun, memory_order_acquire))
        sched_yield();
    if (atomic_load_explicit(&uffd->is_alive, memory_order_acquire))
        return NULL;
    if (uffd->is_pthread)
        pthread_join(uffd->thread, NULL);
    return "close_range is refused (Linux before 5.9, or a filter), so the program might close the listener's descriptor";
}

/* NULL, or why the descriptor cannot be told from others, which share its inode. */
static const char *identify(weft_uffd *uffd)
{
    uffd->id = weft_fd_id_of(uffd->fd);
    if (uffd->stop < 0)
        return "no eventfd can be made";
    return weft_fd_id_equal(uffd->id, weft_fd_id_of(uffd->stop)) ? "this kernel (before 5.12) does not tell its descriptor from others"
                                                                 : NULL;
}

int weft_uffd_open(weft_uffd *uffd, weft_inval_log *log, char *why, size_t capacity)
{
    *uffd = (weft_uffd){.fd = -1, .stop = -1, .log = log};
    int refused = 0;
    for (;; uffd->by_device = true) {
        uffd->fd = open_kernel(EVENTS | WP_HUGETLBFS_SHMEM, uffd->by_device);
        if (uffd->fd < 0 && errno == EINVAL)
            uffd->fd = open_kernel(EVENTS, uffd->by_device);
        if (uffd->fd >= 0 || uffd->by_device)
            break;
        refused = errno;
    }
    if (uffd->fd < 0) {
        int device = errno;
        size_t used = (size_t)snprintf(why, capacity, "the kernel refuses it: %s%s", strerror(refused),
                                       refused == EPERM ? " (a container's filter of system calls, or Linux before 5.11)" : "");
        if (used < capacity)
            snprintf(why + used, capacity - used, ", and " DEVICE ": %s", strerror(device));
        return WEFT_E_UNSUPPORTED;
    }
    uffd->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const char *problem = identify(uffd);
    uffd->can_sync = !problem && kernel_counts() && weft_uffd_is_synced(uffd);
    problem = problem ? problem : start(uffd);
    if (problem) {
        snprintf(why, capacity, "%s", problem);
        weft_uffd_forget(uffd);
        return WEFT_E_UNSUPPORTED;
    }
    return WEFT_OK;
}

bool weft_uffd_is_own(const weft_uffd *uffd)
{
    return weft_fd_id_equal(uffd->id, weft_fd_id_of(uffd->fd));
}

void weft_uffd_keep(weft_uffd *uffd)
{
    close(uffd->stop);
    uffd->stop = -1;
}

void weft_uffd_forget(weft_uffd *uffd)
{
    atomic_store(&uffd->is_alive, 0);
    if (weft_uffd_is_own(uffd))
        close(uffd->fd);
    if (uffd->stop >= 0)
        close(uffd->stop);
    uffd->fd = uffd->stop = -1;
}

void weft_uffd_close(weft_uffd *uffd)
{
    if (uffd->fd < 0)
        return;
    eventfd_write(uffd->stop, 1);
    if (uffd->is_pthread)
        pthread_join(uffd->thread, NULL);
    while (atomic_load_explicit(&uffd->is_alive, memory_order_acquire))
        sched_yield();
    weft_uffd_forget(uffd);
}

bool weft_uffd_register(const weft_uffd *uffd, uint64_t start, uint64_t end)
{
    struct uffdio_register request = {.range = {start, end - start}, .mode = UFFDIO_REGISTER_MODE_WP};

    return atomic_load_explicit(&uffd->is_alive, memory_order_acquire) && weft_uffd_is_own(uffd) &&
           !ioctl(uffd->fd, UFFDIO_REGISTER, &request) && weft_uffd_is_own(uffd); /* closed meanwhile: the ioctl reached another file */
}

bool weft_uffd_is_synced(const weft_uffd *uffd)
{
    struct uffdio_writeprotect nothing = {.range = {4096, 0}};

    return weft_raw_syscall(SYS_ioctl, uffd->fd, UFFDIO_WRITEPROTECT, (long)&nothing, 0) == -EINVAL &&
           weft_uffd_is_own(uffd); /* last: if it is the file now, it was during the ioctl */
}
