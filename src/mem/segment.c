/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment: creation and mapping. The creator sizes and seals the memfd before it is shared, so no mapping can be truncated.
 * It claims hdr, rank pages and bitmap of the heap only; the user of any other page claims that page first.
 */
#include "mem/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory_size.h"
#include "base/status.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SHRINK 0x0002
#define F_SEAL_GROW 0x0004
#endif

#define HEAP_MAP_BYTES (WEFT_SEGMENT_HEAP_UNITS / 8)
#define HEAP_OF_MEMORY 4 /* times the machine's memory: what is freed leaves gaps, which need no memory */

/* Unlinked file if memfd_create is refused. /dev/shm first: on a disk the kernel would write the pages back. */
static int file_open_unlinked(void)
{
    const char *dirs[] = {"/dev/shm", getenv("TMPDIR"), "/tmp"};

    for (size_t i = 0; i < weft_count(dirs); i++) {
        if (!dirs[i] || !*dirs[i])
            continue;
        int fd = open(dirs[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0)
            return fd;
        if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
            continue;
        char path[4096];
        size_t length = strlen(dirs[i]);
        if (length > sizeof(path) - 16)
            continue;
        memcpy(path, dirs[i], length);
        memcpy(path + length, "/weft-XXXXXX", sizeof("/weft-XXXXXX"));
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0) {
            unlink(path);
            return fd;
        }
    }
    return -1;
}

static int file_open(int *sealable)
{
    int fd = memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL) /* before Linux 6.3: no MFD_NOEXEC_SEAL */
        fd = memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    *sealable = fd >= 0;
    return fd >= 0 ? fd : file_open_unlinked();
}

static int pages_reserve(int fd, uint64_t offset, uint64_t bytes)
{
    int rc;

    do
        rc = fallocate(fd, 0, (off_t)offset, (off_t)bytes);
    while (rc < 0 && errno == EINTR);
    if (rc == 0 || errno == EOPNOTSUPP || errno == ENOSYS) /* the file system cannot reserve pages: continue */
        return WEFT_OK;
    if (errno == ENOSPC || errno == ENOMEM || errno == EDQUOT || errno == EFBIG)
        return weft_fail(WEFT_E_NOSPACE, "no memory for %llu more bytes of shared memory (%s): use fewer ranks or free memory",
                         (unsigned long long)bytes, strerror(errno));
    return weft_fail(WEFT_E_SYSTEM, "reserving %llu bytes of shared memory failed: %s", (unsigned long long)bytes,
                     strerror(errno));
}

/* The heap's unit: so many bytes that the units are not too many. */
static uint64_t heap_unit_of(uint64_t heap_bytes)
{
    uint64_t unit = WEFT_SEGMENT_HEAP_UNIT_MIN;

    while (heap_bytes / unit > WEFT_SEGMENT_HEAP_UNITS)
        unit *= 2;
    return unit;
}

/* The only function that defines the order of the parts. heap_bytes: rounded down to units. */
static void hdr_lay_out(weft_segment_hdr *hdr, uint32_t ranks, uint64_t extra_bytes, uint64_t area_count, uint64_t heap_bytes, uint64_t job)
{
    memset(hdr, 0, sizeof(*hdr));
    hdr->magic = WEFT_SEGMENT_MAGIC;
    hdr->version = WEFT_SEGMENT_VERSION;
    hdr->ranks = ranks;
    hdr->job = job;
    hdr->rank_pages = WEFT_PAGE;
    hdr->area_bytes = WEFT_SEGMENT_AREA_BYTES;
    hdr->area_count = area_count;
    hdr->ring_bytes = WEFT_SEGMENT_RING_BYTES;
    hdr->pool_bytes = WEFT_SEGMENT_POOL_BYTES;
    hdr->heap_map = hdr->rank_pages + (uint64_t)ranks * WEFT_PAGE;
    hdr->areas = weft_round_up(hdr->heap_map + HEAP_MAP_BYTES, WEFT_SEGMENT_RING_BYTES);
    hdr->inboxes = hdr->areas + hdr->area_count * hdr->area_bytes;
    hdr->pools = hdr->inboxes + (uint64_t)ranks * ranks * hdr->ring_bytes;
    hdr->calls = hdr->pools + ranks * hdr->pool_bytes;
    hdr->extra = hdr->calls + (uint64_t)ranks * WEFT_CALL_BYTES;
    hdr->extra_bytes = weft_round_up(extra_bytes, WEFT_PAGE);
    hdr->heap_unit = heap_unit_of(heap_bytes);
    hdr->heap = weft_round_up(hdr->extra + hdr->extra_bytes, hdr->heap_unit);
    hdr->heap_bytes = heap_bytes / hdr->heap_unit * hdr->heap_unit;
    hdr->total_bytes = hdr->heap_bytes ? hdr->heap + hdr->heap_bytes : hdr->extra + hdr->extra_bytes;
}

static uint64_t front_bytes(const weft_segment_hdr *hdr)
{
    return hdr->heap_map + HEAP_MAP_BYTES;
}

static int front_map(weft_segment *segment, uint64_t bytes)
{
    void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);

    if (addr == MAP_FAILED)
        return weft_fail(WEFT_E_SYSTEM, "mapping %llu bytes of the node's shared memory failed: %s", (unsigned long long)bytes,
                         strerror(errno));
    segment->hdr = addr;
    segment->mapped_bytes = bytes;
    return WEFT_OK;
}

/* Length of a file, at most; the kernel kills a process that exceeds it. */
static uint64_t file_limit(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : INT64_MAX;
}

static uint64_t heap_bytes_wanted(void)
{
    return weft_memory_size(((uint64_t)1 << 32) / HEAP_OF_MEMORY) * HEAP_OF_MEMORY;
}

/* Sizes the file, with as much heap as the limit and the file system allow: each try has half as much; the last ones have none, and at last
 * few areas. */
static int file_size(int fd, weft_segment_hdr *hdr, uint32_t ranks, uint64_t extra_bytes, uint64_t job)
{
    uint64_t limit = file_limit(), heap_bytes = heap_bytes_wanted(), area_count = WEFT_SEGMENT_AREA_COUNT;

    for (;;) {
        hdr_lay_out(hdr, ranks, extra_bytes, area_count, heap_bytes, job);
        if (hdr->total_bytes <= limit && ftruncate(fd, (off_t)hdr->total_bytes) == 0)
            return WEFT_OK;
        if (area_count == WEFT_SEGMENT_AREA_FEW)
            break;
        if (heap_bytes < WEFT_SEGMENT_HEAP_UNIT_MIN)
            area_count = WEFT_SEGMENT_AREA_FEW;
        heap_bytes /= 2;
    }
    if (hdr->total_bytes > limit)
        return weft_fail(WEFT_E_NOSPACE, "shared memory of %llu bytes (sparse) exceeds the limit of file sizes: see ulimit -f",
                         (unsigned long long)hdr->total_bytes);
    return weft_fail(errno == EFBIG || errno == ENOSPC ? WEFT_E_NOSPACE : WEFT_E_SYSTEM,
                     "shared memory of %llu bytes (sparse) was refused: %s; see ulimit -f", (unsigned long long)hdr->total_bytes,
                     strerror(errno));
}

int weft_segment_make(uint32_t ranks, uint64_t job, int inherit, weft_segment *segment)
{
    return weft_segment_make_with(ranks, 0, job, inherit, segment);
}

int weft_segment_make_with(uint32_t ranks, uint64_t extra_bytes, uint64_t job, int inherit, weft_segment *segment)
{
    weft_segment_hdr hdr;
    int sealable, rc;

    *segment = (weft_segment){.fd = -1};
    if (ranks < 1 || ranks > WEFT_SEGMENT_RANKS_MAX)
        return weft_fail(WEFT_E_ARG, "%u ranks on one node: at least 1 and at most %d can share memory", ranks,
                         WEFT_SEGMENT_RANKS_MAX);
    segment->fd = file_open(&sealable);
    if (segment->fd < 0)
        return weft_fail(WEFT_E_SYSTEM, "no shared memory: memfd_create and files in /dev/shm, TMPDIR and /tmp all fail (%s)",
                         strerror(errno));
    rc = file_size(segment->fd, &hdr, ranks, extra_bytes, job);
    if (rc)
        goto undo_open;
    rc = pages_reserve(segment->fd, 0, front_bytes(&hdr));
    if (rc)
        goto undo_open;
    if (sealable && fcntl(segment->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)) {
        rc = weft_fail(WEFT_E_SYSTEM, "sealing the shared memory failed: %s", strerror(errno));
        goto undo_open;
    }
    rc = front_map(segment, front_bytes(&hdr));
    if (rc)
        goto undo_open;
    memcpy(segment->hdr, &hdr, sizeof(hdr));
    if (inherit)
        fcntl(segment->fd, F_SETFD, 0);
    return WEFT_OK;

undo_open:
    close(segment->fd);
    segment->fd = -1;
    return rc;
}

/* Checks a received hdr against the layout and the file's size: all offsets are taken from it. */
static int hdr_check(const weft_segment_hdr *hdr, uint64_t file_bytes)
{
    weft_segment_hdr want;

    if (hdr->magic != WEFT_SEGMENT_MAGIC)
        return weft_fail(WEFT_E_INTERN, "the launcher's descriptor is not a Weft segment (magic %#x)", hdr->magic);
    if (hdr->version != WEFT_SEGMENT_VERSION)
        return weft_fail(WEFT_E_INTERN,
                         "the launcher's shared memory has format %u, this library expects %u: "
                         "use mpirun and library of one version",
                         hdr->version, WEFT_SEGMENT_VERSION);
    if (hdr->ranks < 1 || hdr->ranks > WEFT_SEGMENT_RANKS_MAX)
        return weft_fail(WEFT_E_INTERN, "the launcher's shared memory is for %u ranks", hdr->ranks);
    if (hdr->extra_bytes > file_bytes || hdr->heap_bytes > file_bytes || hdr->area_count > WEFT_SEGMENT_AREA_COUNT)
        return weft_fail(WEFT_E_INTERN, "the launcher's shared memory is shorter than its header says");
    hdr_lay_out(&want, hdr->ranks, hdr->extra_bytes, hdr->area_count, hdr->heap_bytes, hdr->job);
    if (hdr->rank_pages != want.rank_pages || hdr->areas != want.areas || hdr->inboxes != want.inboxes ||
        hdr->pools != want.pools || hdr->calls != want.calls || hdr->total_bytes != want.total_bytes ||
        hdr->ring_bytes != want.ring_bytes || hdr->pool_bytes != want.pool_bytes || hdr->extra != want.extra ||
        hdr->extra_bytes != want.extra_bytes || hdr->heap != want.heap || hdr->heap_bytes != want.heap_bytes ||
        hdr->heap_unit != want.heap_unit || hdr->heap_map != want.heap_map || file_bytes < want.total_bytes)
        return weft_fail(WEFT_E_INTERN, "the launcher's shared memory has another layout than this library expects: "
                                        "use mpirun and library of one version");
    return WEFT_OK;
}

int weft_segment_open(int fd, weft_segment *segment)
{
    weft_segment_hdr hdr;
    struct stat stat;
    int rc;

    *segment = (weft_segment){.fd = fd};
    if (fstat(fd, &stat) || pread(fd, &hdr, sizeof(hdr), 0) != (ssize_t)sizeof(hdr))
        rc = weft_fail(WEFT_E_SYSTEM, "the launcher's shared memory (descriptor %d) cannot be read: %s", fd, strerror(errno));
    else
        rc = hdr_check(&hdr, (uint64_t)stat.st_size);
    if (rc == WEFT_OK)
        rc = front_map(segment, front_bytes(&hdr));
    if (rc) {
        close(fd);
        segment->fd = -1;
        return rc;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return WEFT_OK;
}

void weft_segment_close(weft_segment *segment)
{
    if (segment->hdr)
        munmap(segment->hdr, segment->mapped_bytes);
    if (segment->fd >= 0)
        close(segment->fd);
    *segment = (weft_segment){.fd = -1};
}

int weft_segment_claim(const weft_segment *segment, uint64_t offset, uint64_t bytes)
{
    uint64_t from = offset / WEFT_PAGE * WEFT_PAGE;
    uint64_t to = weft_round_up(offset + bytes, WEFT_PAGE);

    if (bytes == 0)
        return WEFT_OK;
    if (to > segment->hdr->total_bytes || to < offset)
        return weft_fail(WEFT_E_INTERN, "claim of bytes %llu..%llu of a segment of %llu", (unsigned long long)offset,
                         (unsigned long long)to, (unsigned long long)segment->hdr->total_bytes);
    return pages_reserve(segment->fd, from, to - from);
}

int weft_segment_view(const weft_segment *segment, uint64_t offset, uint64_t bytes, void **addr)
{
    *addr = NULL;
    if (offset % WEFT_PAGE || bytes == 0 || offset + bytes > segment->hdr->total_bytes || offset + bytes < offset)
        return weft_fail(WEFT_E_INTERN, "view of %llu bytes at %llu of a segment of %llu", (unsigned long long)bytes,
                         (unsigned long long)offset, (unsigned long long)segment->hdr->total_bytes);
    void *view = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, (off_t)offset);
    if (view == MAP_FAILED)
        return weft_fail(errno == ENOMEM ? WEFT_E_NOMEM : WEFT_E_SYSTEM,
                         "mapping %llu bytes of the node's shared memory failed: %s", (unsigned long long)bytes, strerror(errno));
    *addr = view;
    return WEFT_OK;
}

void weft_segment_drop(void *addr, uint64_t bytes)
{
    if (addr)
        munmap(addr, bytes);
}

int weft_segment_zero(const weft_segment *segment, uint64_t offset, uint64_t bytes)
{
    void *view;
    int rc;

    if (fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) == 0)
        return WEFT_OK;
    rc = weft_segment_view(segment, offset, bytes, &view); /* no holes in this file system: zero it by hand */
    if (rc)
        return rc;
    memset(view, 0, bytes);
    weft_segment_drop(view, bytes);
    return WEFT_OK;
}

int weft_segment_alloc_area(const weft_segment *segment, uint32_t *index)
{
    weft_segment_hdr *hdr = segment->hdr;

    for (uint32_t word = 0; word * 64 < hdr->area_count; word++) {
        uint64_t taken = atomic_load_explicit(&hdr->area_taken[word], memory_order_relaxed);
        while (~taken) {
            uint32_t bit = (uint32_t)__builtin_ctzll(~taken);
            if (word * 64 + bit >= hdr->area_count)
                break;
            /* acquire, pairs with weft_segment_free_area(): the hole is punched before the area is used again */
            if (atomic_compare_exchange_weak_explicit(&hdr->area_taken[word], &taken, taken | (uint64_t)1 << bit,
                                                      memory_order_acquire, memory_order_relaxed)) {
                *index = word * 64 + bit;
                return WEFT_OK;
            }
        }
    }
    return weft_fail(WEFT_E_NOSPACE, "all %llu shared areas for collectives of this node are in use",
                     (unsigned long long)hdr->area_count);
}

void weft_segment_free_area(const weft_segment *segment, uint32_t index)
{
    weft_segment_hdr *hdr = segment->hdr;
    uint64_t offset = hdr->areas + index * hdr->area_bytes;

    if (weft_segment_zero(segment, offset, hdr->area_bytes))
        return; /* cannot be zeroed: the area stays in use */
    atomic_fetch_and_explicit(&hdr->area_taken[index / 64], ~((uint64_t)1 << index % 64), memory_order_release);
}
