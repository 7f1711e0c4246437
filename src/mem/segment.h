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

#define WEFT_SEGMENT_MAGIC 0x57454654u /* "WEFT" */
#define WEFT_SEGMENT_VERSION 4
#define WEFT_PAGE 4096

/* Sizes that the creator writes to the hdr; readers must use those in the hdr. All parts are sparse. */
#define WEFT_SEGMENT_RING_BYTES ((uint64_t)64 << 10)  /* one sender's ring in one inbox; its first 8 KiB are used first */
#define WEFT_SEGMENT_POOL_BYTES ((uint64_t)2 << 20)   /* bulk chunks of one rank */
#define WEFT_SEGMENT_AREA_BYTES ((uint64_t)2 << 20)   /* one node area */
#define WEFT_SEGMENT_AREA_COUNT 64
#define WEFT_SEGMENT_RANKS_MAX 4096
#define WEFT_MODEX_CAPACITY 2048                      /* bytes of one rank's keys and values */

/* What a rank waits for. */
enum weft_wait_reason {
    WEFT_WAIT_REASON_NONE, WEFT_WAIT_REASON_SEND, WEFT_WAIT_REASON_RECV, WEFT_WAIT_REASON_PROBE, WEFT_WAIT_REASON_REQUESTS,
    WEFT_WAIT_REASON_COLLECTIVE, WEFT_WAIT_REASON_FINALIZE, WEFT_WAIT_REASON_LAUNCH
};
#define WEFT_STATUS_ANY_TAG (-2)

/* What a thread waits for: written by the thread (relaxed stores) after a long wait, read by the launcher at any time. */
typedef struct weft_page_status {
    _Atomic uint64_t since_ns;    /* weft_clock_ns at the start of the wait; 0: not waiting */
    _Atomic uint64_t bytes;
    _Atomic int32_t peer;         /* world rank waited for; -1: any, -2: none */
    _Atomic int32_t tag;
    _Atomic uint32_t why;         /* enum weft_wait_reason */
    _Atomic uint32_t asleep_on;   /* 1 while asleep */
} weft_page_status;

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

/* One page per local rank. */
typedef struct weft_rank_page {
    /* Futex: a ticket (a new one for each sleep) while the rank sleeps, else 0. A waker sets 0 and wakes the futex, or sends to the
     * socket `chime` if set. Alone in its cache line. */
    _Alignas(WEFT_LINE) _Atomic uint32_t asleep;
    /* Bit s set: the ring of sender s (local index) has data and is not being polled. One cache line per 512 senders. */
    _Alignas(WEFT_LINE) _Atomic uint64_t active_summary; /* bit w: word w of active is not 0 */
    _Alignas(WEFT_LINE) _Atomic uint64_t active[64];     /* up to 4,096 senders */
    /* For peers that copy by CMA; they test it by reading probe_word before use. */
    _Alignas(WEFT_LINE) _Atomic uint32_t pid;            /* in this rank's pid namespace; 0 before it has started */
    _Atomic uint32_t state;                              /* enum weft_rank_state */
    _Atomic uint64_t probe_addr;                         /* address of probe_word in this process */
    _Atomic uint64_t probe_word;                         /* a random word */
    _Atomic int32_t exit_code;                           /* MPI_Abort's argument, read by the launcher */
    _Atomic uint32_t job_rank;                           /* rank in the job, for a receiver that finds this rank's bit in `active` */
    _Atomic uint32_t tickets;                            /* last ticket used in `asleep`; owner only */
    _Atomic uint32_t membarrier_ok;                      /* 1: registered for membarrier GLOBAL_EXPEDITED */
    /* Name of the socket to send to instead of waking the futex (mem/wakeup_sock); 0: none. Written by the owner while awake. */
    _Alignas(WEFT_LINE) _Atomic uint64_t chime;
    _Atomic uint32_t chime_deaf;                         /* 1: a node-local rank could not send to it */
    _Atomic uint64_t woken_ns;                           /* weft_clock_ns when weft_segment_wake() last ended a sleep */
    _Alignas(WEFT_LINE) weft_page_status status;
    _Atomic uint32_t call_records;                       /* number of records ever used; 0: calls are not recorded */
    _Atomic uint32_t call_is_threaded;                   /* 1: each record holds its thread's wait; 0: `status` does */
    /* Modex data of the rank: key\0, u16 length, value, ... Complete once modex_ready is set (release; also a futex). */
    _Alignas(WEFT_LINE) _Atomic uint32_t modex_ready;
    uint32_t modex_bytes;
    char modex[WEFT_MODEX_CAPACITY];
} weft_rank_page;

_Static_assert(sizeof(weft_rank_page) <= WEFT_PAGE, "one page per rank");

enum weft_rank_state {
    WEFT_RANK_NONE = 0,  /* not yet in MPI_Init; stays so in a program that never calls it */
    WEFT_RANK_INIT = 1,  /* inside or after MPI_Init */
    WEFT_RANK_FINAL = 2, /* finalized */
    WEFT_RANK_ABORT = 3, /* called MPI_Abort: exit_code holds its argument */
    WEFT_RANK_DEAD = 4,  /* written by the launcher: the process ended without finalize */
};

/* Layout: hdr page | one page per local rank | node areas for collectives | inboxes (n of n rings each) | bulk pools (one per rank)
 * | call records (one part per rank) | extra: the launcher's modex_cache of other nodes (launch/modex_cache.h), empty on one node. */
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
    _Alignas(WEFT_LINE) _Atomic uint64_t area_taken[16]; /* bitmap of areas in use, up to 1,024 */
    _Alignas(WEFT_LINE) _Atomic uint64_t fences[8];      /* node-wide start-up counters; see launch/boot_mpirun.c */
    _Alignas(WEFT_LINE) _Atomic uint32_t spoken;         /* selects the process that prints why the job ends; see launch/abort_text.c */
} weft_segment_hdr;

/* This process's view. */
typedef struct weft_segment {
    int fd;
    weft_segment_hdr *hdr; /* mapping of hdr and rank pages only */
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
/* Maps a part (offset page-aligned) shared, read-write. */
int weft_segment_view(const weft_segment *segment, uint64_t offset, uint64_t bytes, void **addr);
void weft_segment_drop(void *addr, uint64_t bytes);

static inline weft_rank_page *weft_segment_rank(const weft_segment *segment, uint32_t local)
{
    return (weft_rank_page *)((char *)segment->hdr + segment->hdr->rank_pages + (uint64_t)local * WEFT_PAGE);
}

/* Allocates a node area, all zero; WEFT_E_NOSPACE if all are in use. weft_segment_release_area() zeroes it (punches a hole). */
int weft_segment_take_area(const weft_segment *segment, uint32_t *index);
void weft_segment_release_area(const weft_segment *segment, uint32_t index);

/* Wakes the rank if it sleeps. Any thread; does not block. The caller must have stored its data before (release). The store-load order
 * is the sleeper's (membarrier); if that is refused (membarrier_ok is 0) the caller must issue a fence before. */
void weft_segment_wake(weft_rank_page *page);

/* Owner, requires worker->lock: marks the rank as about to sleep; returns the futex value to sleep on. It is a ticket, so that a thread
 * woken before its futex call does not sleep on the later sleep of another thread. */
static inline uint32_t weft_page_sleep_begin(weft_rank_page *page)
{
    uint32_t ticket = atomic_load_explicit(&page->asleep, memory_order_relaxed);
    if (ticket)
        return ticket;
    ticket = atomic_load_explicit(&page->tickets, memory_order_relaxed) + 1;
    ticket += !ticket;
    atomic_store_explicit(&page->tickets, ticket, memory_order_relaxed);
    atomic_store_explicit(&page->asleep, ticket, memory_order_seq_cst);
    return ticket;
}

/* As weft_segment_wake(), inline: no call if the rank is awake. */
static inline void weft_page_wake_if_asleep(weft_rank_page *page)
{
    if (__builtin_expect(atomic_load_explicit(&page->asleep, memory_order_relaxed), 0))
        weft_segment_wake(page);
}

#endif
