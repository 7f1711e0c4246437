/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment: the shared memory of one job on one node: a sparse memfd, sized once and sealed. Created by mpirun, or under a foreign
 * launcher by the node's lowest rank; mapped by all ranks of the node and by mpirun.
 * All zero is a valid initial state of every part: a rank may wake another and fill its inbox before that one is exec'ed.
 * Before touching pages call weft_segment_claim(): if memory is full it returns WEFT_E_NOSPACE, and no SIGBUS follows.
 */
#ifndef WEFT_MEM_SEGMENT_H
#define WEFT_MEM_SEGMENT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/macros.h"
#include "mem/rank_page.h"

#define WEFT_SEGMENT_MAGIC 0x57454654u /* "WEFT" */
#define WEFT_SEGMENT_VERSION 8

/* Sizes that the creator writes to the hdr; readers must use those in the hdr. All parts are sparse. */
#define WEFT_SEGMENT_RING_BYTES ((uint64_t)64 << 10)  /* one sender's ring in one inbox; its first 8 KiB are used first */
#define WEFT_SEGMENT_POOL_BYTES ((uint64_t)4 << 20)   /* bulk chunks of one rank */
#define WEFT_SEGMENT_AREA_BYTES ((uint64_t)4 << 20)   /* one node area */
#define WEFT_SEGMENT_AREA_COUNT 1024 /* at most */
#define WEFT_SEGMENT_AREA_FEW 64     /* where the limit of file sizes allows no more */
#define WEFT_SEGMENT_RANKS_MAX 4096
#define WEFT_SEGMENT_DEATHS_MAX 256      /* ranks of a job that may die before the job must end */
#define WEFT_SEGMENT_HEAP_UNITS 65536u                  /* at most, of the heap */
#define WEFT_SEGMENT_HEAP_UNIT_MIN ((uint64_t)64 << 10) /* bytes; larger if the heap has more than that many */

/* Whether a thread holds its worker's lock. */
enum weft_call_lock { WEFT_CALL_FREE, WEFT_CALL_WANTS, WEFT_CALL_HOLDS };

/* The MPI calls of a thread (core/call_status), one cache line: plain stores by the thread, read by the launcher. */
typedef struct weft_call_record {
    _Alignas(WEFT_LINE) uint64_t count; /* low WEFT_CALL_DEPTH_BITS bits: call depth, 0: not in MPI; above: calls begun */
    uint32_t call;                /* latest call: index into weft_call_names; 0: none yet */
    uint32_t lock;                /* enum weft_call_lock */
    uint32_t thread;              /* kernel thread id; 0: the record is free */
    weft_page_status wait;        /* valid if call_is_threaded, else weft_rank_page.status is */
} weft_call_record;

/* Names of MPI calls by number (src/api/call_names.c, generated); linked into launchers only. */
extern const char *const weft_call_names[];
extern const uint32_t weft_call_names_count;

#define WEFT_CALL_DEPTH_BITS 16
#define WEFT_CALL_BYTES 65536     /* records of one rank */
#define WEFT_CALL_RECORDS ((uint32_t)(WEFT_CALL_BYTES / sizeof(weft_call_record)))

/* Layout: hdr page | one page per local rank | bitmap of the heap | node areas for collectives | inboxes (n of n rings each) | bulk pools
 * (one per rank) | call records (one part per rank) | extra: the launcher's modex_cache of other nodes (launch/modex_cache.h), empty on one
 * node | heap (mem/segment_heap.h), empty where no space is left for it. */
typedef struct weft_segment_hdr {
    uint32_t magic, version;
    uint32_t ranks;            /* on this node */
    uint32_t cpus_shared;      /* 1: the launcher found fewer CPUs than ranks on this node; each rank checks too */
    uint64_t job;              /* hash of the namespace */
    uint64_t total_bytes;
    uint64_t rank_pages;       /* this and all others: offsets from the segment's start */
    uint64_t areas, area_bytes, area_count;
    uint64_t inboxes, ring_bytes; /* ring of sender s in inbox r: inboxes + (r * ranks + s) * ring_bytes */
    uint64_t extra, extra_bytes;  /* for the launcher */
    uint64_t calls;               /* records of rank r: calls + r * WEFT_CALL_BYTES */
    uint64_t pools, pool_bytes;   /* bulk chunks of rank r: pools + r * pool_bytes */
    uint64_t heap, heap_bytes;    /* heap_bytes: a multiple of heap_unit */
    uint64_t heap_map, heap_unit; /* bitmap of the units in use */
    _Alignas(WEFT_LINE) _Atomic uint64_t area_taken[16]; /* bitmap of areas in use, up to 1,024 */
    _Alignas(WEFT_LINE) _Atomic uint64_t heap_returns;   /* times that units of the heap were given back */
    _Alignas(WEFT_LINE) _Atomic uint64_t fences[8];      /* node-wide start-up counters; see launch/boot_mpirun.c */
    _Alignas(WEFT_LINE) _Atomic uint32_t spoken;         /* selects the process that prints why the job ends; see launch/abort_text.c */
    /* Written by the launcher. recovers: the job goes on when a rank dies (mpirun --enable-recovery); `dead` has those that have, of all
     * nodes, by rank in the job: the first `deaths` are set. */
    _Alignas(WEFT_LINE) _Atomic uint32_t deaths;
    uint32_t recovers;
    uint32_t dead[WEFT_SEGMENT_DEATHS_MAX];
} weft_segment_hdr;

_Static_assert(sizeof(weft_segment_hdr) <= WEFT_PAGE, "the hdr is one page");

/* This process's view. */
typedef struct weft_segment {
    int fd;
    weft_segment_hdr *hdr; /* mapping of hdr, rank pages and bitmap of the heap only */
    uint64_t mapped_bytes;
} weft_segment;

/* Creates a segment for `ranks` processes (1..4096): a sealed memfd, else an unlinked file, which cannot be sealed. The descriptor is
 * *not* close-on-exec if `inherit`. WEFT_E_ARG, WEFT_E_SYSTEM, WEFT_E_NOSPACE. */
int weft_segment_make(uint32_t ranks, uint64_t job, int inherit, weft_segment *segment);
/* The same, with extra_bytes at the end for the launcher. */
int weft_segment_make_with(uint32_t ranks, uint64_t extra_bytes, uint64_t job, int inherit, weft_segment *segment);
/* Maps an inherited or received descriptor after checking magic, version, layout and size. Owns fd: closes it on failure. */
int weft_segment_open(int fd, weft_segment *segment);
/* Unmaps and closes. Views of weft_segment_view() stay mapped until weft_segment_drop(). */
void weft_segment_close(weft_segment *segment);
/* Reserves pages (fallocate): WEFT_E_NOSPACE instead of a later SIGBUS. Offsets need not be aligned. */
int weft_segment_claim(const weft_segment *segment, uint64_t offset, uint64_t bytes);
/* Zeroes a part (offset page-aligned) and gives its pages back to the node: punches a hole. 0 or an error: it cannot be zeroed. */
int weft_segment_zero(const weft_segment *segment, uint64_t offset, uint64_t bytes);
/* Maps a part (offset page-aligned) shared, read-write. */
int weft_segment_view(const weft_segment *segment, uint64_t offset, uint64_t bytes, void **addr);
void weft_segment_drop(void *addr, uint64_t bytes);

static inline weft_rank_page *weft_segment_rank(const weft_segment *segment, uint32_t local)
{
    return (weft_rank_page *)((char *)segment->hdr + segment->hdr->rank_pages + (uint64_t)local * WEFT_PAGE);
}

/* Allocates a node area, all zero; WEFT_E_NOSPACE if all are in use. weft_segment_free_area() zeroes it (punches a hole). */
int weft_segment_alloc_area(const weft_segment *segment, uint32_t *index);
void weft_segment_free_area(const weft_segment *segment, uint32_t index);

#endif
