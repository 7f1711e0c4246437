/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fixed_bufs: registrations in an io_uring's table of fixed buffers: long-term pins, held by the kernel until the slot is cleared. Any
 * thread registers; copies are started by the HCA's thread. A chunk is looked up and given to the kernel under one lock, and dereg waits
 * for chunks in flight: afterwards nothing accesses the pages, as with hardware.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/status.h"
#include "test/transports/uring/uring.h"

#define DYING 0x8000u    /* value of users: being deregistered */
#define RING_ENTRIES 32   /* few: a chunk leaves the queue at once, and some kernels count the ring as locked memory */

static int update(uring_fixed_bufs *bufs, uint32_t index, void *addr, uint64_t bytes)
{
    struct iovec memory = {addr, bytes};
    __u64 tag = 0;
    int rc = io_uring_register_buffers_update_tag(&bufs->ring, index, &memory, &tag, 1);
    return rc < 0 ? rc : 0;
}

static char reason[256];

static void try_once(void)
{
    /* a separate mapping: older kernels refuse .bss, which may be part of a file's */
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct io_uring ring;
    uring_fixed_bufs bufs;
    int rc = io_uring_queue_init(4, &ring, 0);
    if (rc) {
        snprintf(reason, sizeof reason, "io_uring_setup failed: %s (%s)", strerror(-rc),
                 rc == -EPERM ? "forbidden by the sysctl kernel.io_uring_disabled or by a container's seccomp filter"
                 : rc == -ENOSYS ? "this kernel was built without it, or seccomp hides it"
                                  : "the limit on locked memory may be too low");
        munmap(page, 4096);
        return;
    }
    rc = io_uring_register_buffers_sparse(&ring, 4);
    if (rc == 0) {
        bufs.ring = ring;
        rc = update(&bufs, 1, page, 4096);
    }
    if (rc)
        snprintf(reason, sizeof reason, "io_uring's fixed buffers cannot be registered one by one: %s (%s)", strerror(-rc),
                 rc == -ENOMEM ? "the limit on locked memory, ulimit -l, is met" : "Linux 5.19 or newer is needed");
    io_uring_queue_exit(&ring);
    munmap(page, 4096);
}

const char *uring_fixed_bufs_unavailable(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, try_once);
    return *reason ? reason : NULL;
}

int uring_fixed_bufs_open(uring_fixed_bufs *bufs, uint64_t salt)
{
    int rc = io_uring_queue_init(RING_ENTRIES, &bufs->ring, 0);
    if (rc)
        return weft_fail(WEFT_E_SYSTEM, "io_uring_setup for %d entries failed: %s", RING_ENTRIES, strerror(-rc));
    io_uring_ring_dontfork(&bufs->ring);
    rc = io_uring_register_buffers_sparse(&bufs->ring, URING_REGIONS);
    if (rc) {
        io_uring_queue_exit(&bufs->ring);
        return weft_fail(WEFT_E_SYSTEM, "a table of %u fixed buffers was refused by io_uring: %s", URING_REGIONS, strerror(-rc));
    }
    weft_rkey_table_open(&bufs->keys, salt);
    pthread_cond_init(&bufs->unused, NULL);
    return 0;
}

void uring_fixed_bufs_close(uring_fixed_bufs *bufs)
{
    io_uring_queue_exit(&bufs->ring);
    weft_rkey_table_close(&bufs->keys);
    pthread_cond_destroy(&bufs->unused);
}

static int explain(int rc, const void *addr, uint64_t bytes)
{
    if (rc == -ENOMEM)
        return weft_fail(WEFT_E_NOSPACE, "%" PRIu64
                         " bytes at %p cannot be pinned: the limit on locked memory (ulimit -l) is met", bytes, addr);
    if (rc == -EFAULT || rc == -EOPNOTSUPP || rc == -EOVERFLOW || rc == -EINVAL)
        return weft_fail(WEFT_E_UNSUPPORTED, "%" PRIu64
                         " bytes at %p cannot be pinned: %s (not mapped, read-only, or of a file)", bytes, addr,
                         strerror(-rc));
    return weft_fail(WEFT_E_SYSTEM, "%" PRIu64 " bytes at %p cannot be pinned: %s", bytes, addr, strerror(-rc));
}

int uring_mr_reg(weft_iface *base, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr)
{
    uring_iface *iface = (uring_iface *)base;
    uint32_t index;
    int rc;
    if (kind != WEFT_MEMORY_HOST)
        return weft_fail(WEFT_E_UNSUPPORTED, "io_uring pins memory of the host only");
    if (bytes > URING_REGION_MAX)
        return weft_fail(WEFT_E_UNSUPPORTED, "%" PRIu64 " bytes are more than the %llu that io_uring registers in one piece",
                         bytes, URING_REGION_MAX);
    pthread_mutex_lock(&iface->lock);
    rc = iface->bufs.keys.live < URING_REGIONS
             ? weft_rkey_table_add(&iface->bufs.keys, addr, bytes, rights, mr)
             : weft_fail(WEFT_E_NOSPACE, "all %u registrations are in use", URING_REGIONS);
    pthread_mutex_unlock(&iface->lock);
    if (rc)
        return rc;
    /* The key is not published yet: pinning, which may take long, needs no lock. */
    index = weft_rkey_table_index(&mr->rkey);
    rc = bytes ? update(&iface->bufs, index, addr, bytes) : 0;
    if (rc == 0)
        return 0;
    pthread_mutex_lock(&iface->lock);
    weft_rkey_table_remove(&iface->bufs.keys, mr);
    pthread_mutex_unlock(&iface->lock);
    return explain(rc, addr, bytes);
}

int uring_mr_dereg(weft_iface *base, weft_mr *mr)
{
    uring_iface *iface = (uring_iface *)base;
    weft_rkey rkey = mr->rkey;
    uint32_t index;
    int rc;
    pthread_mutex_lock(&iface->lock);
    rc = weft_rkey_table_check(&iface->bufs.keys, &rkey, (uintptr_t)mr->addr, 0, 0);
    if (rc == 0) {
        index = weft_rkey_table_index(&rkey);
        iface->bufs.users[index] |= DYING; /* refused from now on, but the slot is not reused yet */
        while (iface->bufs.users[index] != DYING)
            pthread_cond_wait(&iface->bufs.unused, &iface->lock);
        iface->bufs.users[index] = 0;
        if (mr->bytes && update(&iface->bufs, index, NULL, 0))
            rc = weft_fail(WEFT_E_SYSTEM, "the registration of %p cannot be ended", mr->addr);
        weft_rkey_table_remove(&iface->bufs.keys, mr);
    }
    pthread_mutex_unlock(&iface->lock);
    return rc;
}

int uring_fixed_bufs_copy(uring_iface *iface, const uring_span *span, uint32_t *index)
{
    uring_fixed_bufs *bufs = &iface->bufs;
    struct io_uring_sqe *order;
    int rc;
    pthread_mutex_lock(&iface->lock);
    rc = weft_rkey_table_check(&bufs->keys, span->rkey, span->whole, span->whole_bytes, span->rights);
    if (rc == 0 && bufs->users[weft_rkey_table_index(span->rkey)] & DYING)
        rc = weft_fail(WEFT_E_KEY, "a remote key's memory is being unmapped by its owner");
    if (rc == 0 && span->bytes) {
        *index = weft_rkey_table_index(span->rkey);
        order = io_uring_get_sqe(&bufs->ring);
        if (!order)
            rc = weft_fail(WEFT_E_INTERN, "io_uring's queue is full with %u chunks under way", bufs->in_kernel);
    }
    if (rc == 0 && span->bytes) {
        if (span->into_file)
            io_uring_prep_write_fixed(order, span->file, (void *)(uintptr_t)span->at, span->bytes, span->file_at, (int)*index);
        else
            io_uring_prep_read_fixed(order, span->file, (void *)(uintptr_t)span->at, span->bytes, span->file_at, (int)*index);
        io_uring_sqe_set_data(order, span->tag);
        bufs->users[*index]++;
        bufs->in_kernel++;
        do
            rc = io_uring_submit(&bufs->ring); /* the kernel holds the registration from here on */
        while (rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
        if (rc < 0) {
            bufs->users[*index]--;
            bufs->in_kernel--;
        }
        rc = rc >= 0 ? 0 : weft_fail(WEFT_E_SYSTEM, "io_uring_enter failed: %s", strerror(-rc));
    }
    pthread_mutex_unlock(&iface->lock);
    return rc;
}

void uring_fixed_bufs_copied(uring_iface *iface, uint32_t index)
{
    pthread_mutex_lock(&iface->lock);
    iface->bufs.in_kernel--;
    if ((--iface->bufs.users[index] & ~DYING) == 0)
        pthread_cond_broadcast(&iface->bufs.unused);
    pthread_mutex_unlock(&iface->lock);
}
