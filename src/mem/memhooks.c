/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memhooks: libweft-memhooks.so, preloaded by mpirun. Intercepts libc's functions that change mappings, syscall() too, and publishes
 * each range before the change. Runs in any program, before libc is ready, in signal handlers, in a child after fork or vfork.
 * `seen` holds the ranges mapped through the hooks; only these are vouched for, as malloc's own mappings never leave libc.
 * Inline system calls cannot be intercepted: a reused address is noticed, an inline remap is not. Hence not trusted alone (memmon.c).
 * Invariant: a range leaves `seen`, then is published, then the system call runs. mprotect is left out: the pages stay the same.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/raw_thread.h"
#include "mem/memhooks.h"
#include "mem/ranges.h"

#define SEEN_CAPACITY 8192
#define ATTACHED_CAPACITY 64
#define PATIENCE 100000 /* tries for the lock; after that its owner is presumed dead */
#define GUARD_INSTALL 102 /* MADV_GUARD_INSTALL, since Linux 6.13 */
#define DONTNEED_LOCKED 24
#define DONTUNMAP 4          /* MREMAP_DONTUNMAP, since 5.7 */
#define PROCESS_MADVISE 440  /* a system call that has the same number everywhere, since 5.10 */
#define VECTORS_MAX 1024     /* the kernel's UIO_MAXIOV */
#define OPEN __attribute__((visibility("default")))

static bool is_range_seen(uint64_t start, uint64_t end);

OPEN weft_memhooks weft_memhooks_attach = {.version = WEFT_MEMHOOKS_VERSION, .bytes = sizeof(weft_memhooks),
                                           .is_range_seen = is_range_seen};

static weft_range seen_at[SEEN_CAPACITY];
static weft_ranges seen = {.capacity = SEEN_CAPACITY, .at = seen_at};
static struct attached {
    uint64_t start, bytes;
} attached[ATTACHED_CAPACITY];

/* -- the lock: holds the address of the owner's errno, so that a signal handler that interrupted the owner detects itself -- */

static _Atomic(void *) owner;
static _Atomic bool is_broken; /* a lock holder died or was interrupted: `seen` cannot be trusted any more; never cleared */

static bool lock(void)
{
    void *me = &errno;

    for (int n = 0; n < PATIENCE && !atomic_load_explicit(&is_broken, memory_order_relaxed); n++) {
        void *unowned = NULL;
        if (atomic_compare_exchange_weak_explicit(&owner, &unowned, me, memory_order_acquire, memory_order_relaxed))
            return true;
        if (unowned == me)
            break;
        if (n > 16)
            sched_yield();
    }
    atomic_store(&is_broken, true);
    return false;
}

static void unlock(void) { atomic_store_explicit(&owner, NULL, memory_order_release); }

static void leave_to_child(void)
{
    if (atomic_exchange(&owner, NULL))
        atomic_store(&is_broken, true);
}

/* -- ranges seen -- */

static uint64_t page_mask(void)
{
    static _Atomic uint64_t mask;
    uint64_t known = atomic_load_explicit(&mask, memory_order_relaxed);

    if (!known) {
        known = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
        atomic_store_explicit(&mask, known, memory_order_relaxed);
    }
    return known;
}

static weft_range whole_pages(const void *addr, size_t bytes)
{
    uint64_t mask = page_mask(), first = (uint64_t)(uintptr_t)addr, start = first & ~mask, end = (first + bytes + mask) & ~mask;
    return (weft_range){start, end < start ? UINT64_MAX & ~mask : end};
}

static bool is_range_seen(uint64_t start, uint64_t end)
{
    if (!lock())
        return false;
    bool is_seen = weft_ranges_hold(&seen, start, end);
    unlock();
    return is_seen;
}

/* The kernel has just returned these addresses. If still in `seen`, they were unmapped past the hooks: publishes them. */
static void on_reused_range(weft_range range)
{
    bool is_new = true;

    if (range.start >= range.end)
        return;
    if (lock()) {
        uint32_t at = weft_ranges_after(&seen, range.start);
        is_new = at < seen.count && seen.at[at].start < range.end;
        if (is_new)
            weft_ranges_remove(&seen, range.start, range.end);
        unlock();
    }
    if (is_new)
        weft_inval_log_append(&weft_memhooks_attach.log, range.start, range.end);
}

static void add_range(weft_range range)
{
    if (range.start < range.end && lock()) {
        weft_ranges_add(&seen, range.start, range.end); /* table full: not vouched for */
        unlock();
    }
}

/* These addresses are about to change: removes and publishes them. */
static void invalidate_range(weft_range range)
{
    if (range.start >= range.end)
        return;
    if (lock()) {
        weft_ranges_remove(&seen, range.start, range.end);
        unlock();
    }
    weft_inval_log_append(&weft_memhooks_attach.log, range.start, range.end);
}

/* -- the intercepted functions -- */

static struct {
    long (*syscall)(long, ...);
    int (*munmap)(void *, size_t);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    void *(*mremap)(void *, size_t, size_t, int, ...);
    int (*madvise)(void *, size_t, int);
    int (*brk)(void *);
    void *(*sbrk)(intptr_t);
    void *(*shmat)(int, const void *, int);
    int (*shmdt)(const void *);
} behind;

/* Finds the next definitions: libc's, or those of another preloaded library. Until it has run, the hooks make the system calls. */
static __attribute__((constructor)) void find_behind(void)
{
    *(void **)&behind.syscall = dlsym(RTLD_NEXT, "syscall");
    *(void **)&behind.munmap = dlsym(RTLD_NEXT, "munmap");
    *(void **)&behind.mmap = dlsym(RTLD_NEXT, "mmap");
    *(void **)&behind.mremap = dlsym(RTLD_NEXT, "mremap");
    *(void **)&behind.madvise = dlsym(RTLD_NEXT, "madvise");
    *(void **)&behind.brk = dlsym(RTLD_NEXT, "brk");
    *(void **)&behind.sbrk = dlsym(RTLD_NEXT, "sbrk");
    *(void **)&behind.shmat = dlsym(RTLD_NEXT, "shmat");
    *(void **)&behind.shmdt = dlsym(RTLD_NEXT, "shmdt");
    pthread_atfork(NULL, NULL, leave_to_child);
}

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    if (!behind.syscall && !WEFT_RAW_SYSCALLS)
        *(void **)&behind.syscall = dlsym(RTLD_NEXT, "syscall");
    if (behind.syscall)
        return behind.syscall(number, a, b, c, d, e, f);
    long got = weft_raw_syscall6(number, a, b, c, d, e, f);
    if (got >= 0 || got < -4095)
        return got;
    errno = (int)-got;
    return -1;
}

/* -- mapping, by any call -- */

static void before_mmap(const void *addr, size_t bytes, int flags)
{
    if (flags & MAP_FIXED)
        invalidate_range(whole_pages(addr, bytes));
}

static void after_mmap(void *got, size_t bytes, int flags)
{
    if (got == MAP_FAILED)
        return;
    on_reused_range(whole_pages(got, bytes));
    if ((flags & MAP_ANONYMOUS) && (flags & MAP_TYPE) == MAP_PRIVATE)
        add_range(whole_pages(got, bytes));
}

/* Returns whether the old range was seen; the new one then is, too. */
static bool before_mremap(const void *old, size_t old_bytes, size_t new_bytes, int flags, const void *to)
{
    weft_range before = whole_pages(old, old_bytes), kept = whole_pages(old, new_bytes);
    bool moves = (flags & MREMAP_FIXED) || ((flags & MREMAP_MAYMOVE) && (new_bytes > old_bytes || (flags & DONTUNMAP)));
    bool was_seen = is_range_seen(before.start, before.end);

    if (flags & MREMAP_FIXED)
        invalidate_range(whole_pages(to, new_bytes));
    if (moves)
        invalidate_range(before);
    else if (kept.end < before.end)
        invalidate_range((weft_range){kept.end, before.end});
    return was_seen;
}

static void after_mremap(void *got, const void *old, size_t old_bytes, size_t new_bytes, bool was_seen)
{
    if (got == MAP_FAILED)
        return;
    weft_range now = whole_pages(got, new_bytes), before = whole_pages(old, old_bytes);
    if (got != old)
        on_reused_range(now);
    else if (before.end < now.end)
        on_reused_range((weft_range){before.end, now.end}); /* grew in place */
    if (was_seen)
        add_range(now);
}

static void before_madvise(const void *addr, size_t bytes, int advice)
{
    weft_range range = whole_pages(addr, bytes);
    bool throws_away = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE || advice == DONTNEED_LOCKED ||
                       advice == GUARD_INSTALL;

    if (throws_away)
        weft_inval_log_append(&weft_memhooks_attach.log, range.start | WEFT_INVAL_LOG_DISCARDED, range.end);
}

OPEN int munmap(void *addr, size_t bytes)
{
    invalidate_range(whole_pages(addr, bytes));
    return behind.munmap ? behind.munmap(addr, bytes) : (int)call(SYS_munmap, (long)addr, (long)bytes, 0, 0, 0, 0);
}

OPEN void *mmap(void *addr, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    before_mmap(addr, bytes, flags);
    void *got = behind.mmap ? behind.mmap(addr, bytes, protection, flags, fd, offset)
                            : (void *)call(SYS_mmap, (long)addr, (long)bytes, protection, flags, fd, offset);
    after_mmap(got, bytes, flags);
    return got;
}

OPEN void *mmap64(void *addr, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    return mmap(addr, bytes, protection, flags, fd, offset);
}

OPEN void *mremap(void *old, size_t old_bytes, size_t new_bytes, int flags, ...)
{
    va_list rest;
    void *to = NULL;

    va_start(rest, flags);
    if (flags & (MREMAP_FIXED | DONTUNMAP))
        to = va_arg(rest, void *);
    va_end(rest);
    bool was_seen = before_mremap(old, old_bytes, new_bytes, flags, to);
    void *got = behind.mremap ? behind.mremap(old, old_bytes, new_bytes, flags, to)
                              : (void *)call(SYS_mremap, (long)old, (long)old_bytes, (long)new_bytes, flags, (long)to, 0);
    after_mremap(got, old, old_bytes, new_bytes, was_seen);
    return got;
}

OPEN int madvise(void *addr, size_t bytes, int advice)
{
    before_madvise(addr, bytes, advice);
    return behind.madvise ? behind.madvise(addr, bytes, advice)
                          : (int)call(SYS_madvise, (long)addr, (long)bytes, advice, 0, 0, 0);
}

/* -- the heap: libc tracks its end, so its functions must be called, not the system call -- */

static void *call_sbrk(intptr_t change)
{
    if (!behind.sbrk)
        *(void **)&behind.sbrk = dlsym(RTLD_NEXT, "sbrk");
    return behind.sbrk(change);
}

OPEN int brk(void *end)
{
    char *now = call_sbrk(0);

    if ((char *)end < now)
        invalidate_range(whole_pages(end, (size_t)(now - (char *)end)));
    if (!behind.brk)
        *(void **)&behind.brk = dlsym(RTLD_NEXT, "brk");
    return behind.brk(end);
}

OPEN void *sbrk(intptr_t change)
{
    if (change < 0) {
        char *now = call_sbrk(0);
        invalidate_range(whole_pages(now + change, (size_t)-change));
    }
    return call_sbrk(change);
}

/* -- SysV memory: shmdt has no length argument, so the lengths are kept here -- */

static uint64_t attached_bytes(uint64_t start, bool forgets)
{
    uint64_t bytes = 0;

    if (!lock())
        return 0;
    for (int i = 0; i < ATTACHED_CAPACITY; i++)
        if (attached[i].bytes && attached[i].start == start) {
            bytes = attached[i].bytes;
            if (forgets)
                attached[i].bytes = 0;
            break;
        }
    unlock();
    return bytes;
}

static void attach(uint64_t start, uint64_t bytes)
{
    if (!lock())
        return;
    for (int i = 0; i < ATTACHED_CAPACITY; i++)
        if (!attached[i].bytes) {
            attached[i] = (struct attached){start, bytes};
            weft_ranges_add(&seen, start, start + bytes);
            break; /* table full: not vouched for */
        }
    unlock();
}

/* The segment's size; 0: no permission to query it. */
static uint64_t before_shmat(int id, const void *addr, int flags)
{
    int saved = errno;
    struct shmid_ds about = {.shm_segsz = 0};
    bool is_known = shmctl(id, IPC_STAT, &about) == 0;

    errno = saved;
    if (addr && (flags & SHM_REMAP)) /* of unknown size: it may end anywhere */
        invalidate_range(is_known ? whole_pages(addr, about.shm_segsz)
                                  : (weft_range){(uint64_t)(uintptr_t)addr & ~page_mask(), UINT64_MAX});
    return is_known ? about.shm_segsz : 0;
}

static void after_shmat(void *got, uint64_t bytes)
{
    if (got == (void *)-1 || !bytes)
        return;
    weft_range range = whole_pages(got, bytes);
    on_reused_range(range);
    attach(range.start, range.end - range.start);
}

static void before_shmdt(const void *addr)
{
    uint64_t start = (uint64_t)(uintptr_t)addr, bytes = attached_bytes(start, true);

    if (bytes)
        invalidate_range((weft_range){start, start + bytes});
}

OPEN void *shmat(int id, const void *addr, int flags)
{
    uint64_t bytes = before_shmat(id, addr, flags);

    if (!behind.shmat)
        *(void **)&behind.shmat = dlsym(RTLD_NEXT, "shmat");
    void *got = behind.shmat(id, addr, flags);
    after_shmat(got, bytes);
    return got;
}

OPEN int shmdt(const void *addr)
{
    before_shmdt(addr);
    if (!behind.shmdt)
        *(void **)&behind.shmdt = dlsym(RTLD_NEXT, "shmdt");
    return behind.shmdt(addr);
}

/* -- syscall(): the same calls by number -- */

static void before_brk(uint64_t end)
{
    uint64_t now = (uint64_t)call(SYS_brk, 0, 0, 0, 0, 0, 0);

    if (end && end < now)
        invalidate_range(whole_pages((void *)(uintptr_t)end, now - end));
}

/* The target may be another process: extra ranges do no harm. Arguments that the kernel would refuse are ignored. */
static void before_process_madvise(const struct iovec *vectors, size_t count, int advice)
{
    if (vectors && count <= VECTORS_MAX)
        for (size_t i = 0; i < count; i++)
            before_madvise(vectors[i].iov_base, vectors[i].iov_len, advice);
}

/* Returns what after_call() needs: mremap: whether the range was seen; shmat: the segment's size. */
static uint64_t before_call(long number, const long *a)
{
    switch (number) {
    case SYS_munmap:
    case SYS_remap_file_pages:
        invalidate_range(whole_pages((void *)a[0], (size_t)a[1]));
        return 0;
    case SYS_mmap:
        before_mmap((void *)a[0], (size_t)a[1], (int)a[3]);
        return 0;
    case SYS_mremap:
        return before_mremap((void *)a[0], (size_t)a[1], (size_t)a[2], (int)a[3], (void *)a[4]);
    case SYS_madvise:
        before_madvise((void *)a[0], (size_t)a[1], (int)a[2]);
        return 0;
    case PROCESS_MADVISE:
        before_process_madvise((const struct iovec *)a[1], (size_t)a[2], (int)a[3]);
        return 0;
    case SYS_brk:
        before_brk((uint64_t)a[0]);
        return 0;
    case SYS_shmat:
        return before_shmat((int)a[0], (void *)a[1], (int)a[2]);
    case SYS_shmdt:
        before_shmdt((void *)a[0]);
        return 0;
    default:
        return 0;
    }
}

static void after_call(long number, const long *a, long got, uint64_t known)
{
    if (number == SYS_mmap)
        after_mmap((void *)got, (size_t)a[1], (int)a[3]);
    else if (number == SYS_mremap)
        after_mremap((void *)got, (void *)a[0], (size_t)a[1], (size_t)a[2], known != 0);
    else if (number == SYS_shmat)
        after_shmat((void *)got, known);
}

/* Reads six arguments, given or not, as libc's does. */
OPEN long syscall(long number, ...)
{
    va_list rest;
    long a[6];

    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    uint64_t known = before_call(number, a);
    long got = call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    after_call(number, a, got, known);
    return got;
}
