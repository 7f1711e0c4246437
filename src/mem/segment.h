/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment: the one piece of shared memory that the ranks of a job have on a node. Whoever starts them makes it (mpirun; under a
 * foreign launcher the lowest rank of the node) as a memfd, sized once and sealed, sparse: what is not touched costs nothing.
 * All-zero is a valid start of everything in it, so that no rank waits for another at start-up: a rank may ring and fill the inbox
 * of a neighbour that has not even been exec'ed.
 * Layout: hdr page | a page per local rank | node areas for collectives | inboxes (n of n rings each) | bulk pools (one per rank) | call records (one part per rank) |
 * what the launcher keeps there of other nodes (launch/far.h; nothing in a job of one node).
 * Touching pages: call weft_segment_claim first; a full machine is then WEFT_E_NOSPACE and never a SIGBUS.
 */
#ifndef WEFT_MEM_SEGMENT_H
#define WEFT_MEM_SEGMENT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/macros.h"

#define WEFT_SEGMENT_MAGIC 0x57454654u /* "WEFT" */
#define WEFT_SEGMENT_VERSION 4
#define WEFT_PAGE 4096

/* Sizes that the maker writes into the hdr; readers take them from there. All of it is sparse. */
#define WEFT_SEGMENT_RING_BYTES ((uint64_t)64 << 10)  /* one sender's ring in one inbox; its first 8 KiB are touched first */
#define WEFT_SEGMENT_POOL_BYTES ((uint64_t)2 << 20)   /* bulk chunks that one rank lends */
#define WEFT_SEGMENT_AREA_BYTES ((uint64_t)2 << 20)   /* one node area */
#define WEFT_SEGMENT_AREA_COUNT 64
#define WEFT_SEGMENT_RANKS_MAX 4096
#define WEFT_MODEX_CAPACITY 2048                           /* of one rank's keys and values */

/* What a rank waits for. */
enum weft_wait_reason {
    WEFT_WAIT_REASON_NONE, WEFT_WAIT_REASON_SEND, WEFT_WAIT_REASON_RECV, WEFT_WAIT_REASON_PROBE, WEFT_WAIT_REASON_REQUESTS, WEFT_WAIT_REASON_COLLECTIVE, WEFT_WAIT_REASON_FINALIZE, WEFT_WAIT_REASON_LAUNCH
};
#define WEFT_STATUS_ANY_TAG (-2)

/* What a thread waits for: written by it (relaxed stores) once it waits long, read by the launcher without its help. */
typedef struct weft_page_status {
    _Atomic uint64_t since_ns;    /* weft_clock_ns when the call began to wait; 0 = not waiting */
    _Atomic uint64_t bytes;
    _Atomic int32_t peer;         /* world rank waited for; -1 any, -2 none */
    _Atomic int32_t tag;
    _Atomic uint32_t why;         /* enum weft_wait_reason */
    _Atomic uint32_t asleep_on;   /* 1 while asleep */
} weft_page_status;

/* Whether a thread holds its worker's lock. */
enum weft_call_lock { WEFT_CALL_FREE, WEFT_CALL_WANTS, WEFT_CALL_HOLDS };

/* The MPI calls of a thread (core/call_status), a line each: its own plain stores, read by the launcher. */
typedef struct weft_call_record {
    _Alignas(WEFT_LINE) uint64_t count; /* calls begun, above WEFT_CALL_DEPTH_BITS bits of how deep it is in them; 0 there: not in MPI */
    uint32_t call;                /* the latest, by its number in weft_call_names; 0: none yet */
    uint32_t lock;                /* enum weft_call_lock */
    uint32_t thread;              /* kernel's id; 0: the record is free */
    weft_page_status wait;        /* of a program with MPI_THREAD_MULTIPLE; others show theirs in the rank's page */
} weft_call_record;

/* Names of calls by their numbers (src/api/call_names.c, generated); linked into launchers only. */
extern const char *const weft_call_names[];
extern const uint32_t weft_call_names_count;

#define WEFT_CALL_DEPTH_BITS 16
#define WEFT_CALL_BYTES 65536     /* of one rank's records */
#define WEFT_CALL_RECORDS ((uint32_t)(WEFT_CALL_BYTES / sizeof(weft_call_record)))

/* One page per local rank. */
typedef struct weft_rank_page {
    /* doorbell: not 0 while the rank sleeps (a ticket, another each time); whoever finds it so sets 0 and wakes the futex, or rings the
     * chime where there is one. Alone in its line. */
    _Alignas(WEFT_LINE) _Atomic uint32_t asleep;
    /* set bits name senders (local index) whose ring has news and is not being polled; a line of its own per 512 senders */
    _Alignas(WEFT_LINE) _Atomic uint64_t active_summary; /* bit w: word w of active is not 0 */
    _Alignas(WEFT_LINE) _Atomic uint64_t active[64];     /* up to 4,096 senders */
    /* who I am, for whoever wants to copy by kernel: tested on `probe` before use */
    _Alignas(WEFT_LINE) _Atomic uint32_t pid;            /* as this rank sees itself; 0 until it has started */
    _Atomic uint32_t state;                              /* enum weft_rank_state */
    _Atomic uint64_t probe_addr;                         /* where this process holds probe_word */
    _Atomic uint64_t probe_word;                         /* a random word */
    _Atomic int32_t exit_code;                           /* MPI_Abort's argument, told to the launcher */
    _Atomic uint32_t job_rank;                           /* rank in the job, for whoever finds our bit in its inbox */
    _Atomic uint32_t tickets;                            /* the last one given; the rank's own */
    _Atomic uint32_t membarrier_ok;                      /* registered for GLOBAL_EXPEDITED */
    /* a socket's name to send to instead of waking the futex (mem/wakeup_sock); 0: none. The owner's, changed only while awake */
    _Alignas(WEFT_LINE) _Atomic uint64_t chime;
    _Atomic uint32_t chime_deaf;                         /* set by a neighbour that could not reach it */
    _Atomic uint64_t woken_ns;                           /* weft_clock_ns when a neighbour last ended its sleep: what wake-ups cost */
    _Alignas(WEFT_LINE) weft_page_status status;
    _Atomic uint32_t call_records;                       /* of this rank that have been in use; 0: its calls are not shown */
    _Atomic uint32_t call_is_threaded;                   /* each record shows its thread's wait; else `status` does */
    /* what the rank tells others who ask: key\0, u16 length, value, ...; complete once modex_ready is set (release; a futex) */
    _Alignas(WEFT_LINE) _Atomic uint32_t modex_ready;
    uint32_t modex_bytes;
    char modex[WEFT_MODEX_CAPACITY];
} weft_rank_page;

_Static_assert(sizeof(weft_rank_page) <= WEFT_PAGE, "one page per rank");

enum weft_rank_state {
    WEFT_RANK_NONE = 0,  /* started, has not called MPI_Init (a program that never does leaves it so) */
    WEFT_RANK_INIT = 1,  /* inside or after MPI_Init */
    WEFT_RANK_FINAL = 2, /* finalized */
    WEFT_RANK_ABORT = 3, /* called MPI_Abort: exit_code holds its argument */
    WEFT_RANK_DEAD = 4,  /* written by the launcher: the process is gone without finalize */
};

typedef struct weft_segment_hdr {
    uint32_t magic, version;
    uint32_t ranks;            /* on this node */
    uint32_t cpus_shared;      /* 1 when ranks of this node have fewer CPUs than ranks (launcher's word); each rank checks itself too */
    uint64_t job;              /* hash of the namespace */
    uint64_t total_bytes;
    uint64_t rank_pages;       /* offsets from the segment's start */
    uint64_t areas, area_bytes, area_count;
    uint64_t inboxes, ring_bytes; /* ring of sender s in inbox r: inboxes + (r * ranks + s) * ring_bytes */
    uint64_t extra, extra_bytes;  /* the launcher's */
    uint64_t calls;               /* records of rank r: calls + r * WEFT_CALL_BYTES */
    uint64_t pools, pool_bytes;   /* bulk chunks that rank r lends: pools + r * pool_bytes */
    _Alignas(WEFT_LINE) _Atomic uint64_t area_taken[16]; /* bitmap: up to 1,024 node areas */
    _Alignas(WEFT_LINE) _Atomic uint64_t fences[8];      /* node-wide start-up counters; see launch */
    _Alignas(WEFT_LINE) _Atomic uint32_t spoken;         /* who says why the job ends; see launch/abort_text.c */
} weft_segment_hdr;

/* This process's view. */
typedef struct weft_segment {
    int fd;
    weft_segment_hdr *hdr; /* hdr and rank pages and nothing else are mapped here */
    uint64_t mapped_bytes;
} weft_segment;

/* Makes a segment for `ranks` processes (1..4096): memfd (else an unlinked file), sized and sealed. The descriptor is *not* close-on-exec
 * if `inherit`. WEFT_E_SYSTEM, WEFT_E_NOSPACE. */
int weft_segment_make(uint32_t ranks, uint64_t job, int inherit, weft_segment *segment);
/* The same, with so many bytes behind all else. */
int weft_segment_make_with(uint32_t ranks, uint64_t extra_bytes, uint64_t job, int inherit, weft_segment *segment);
/* Maps an inherited or received descriptor after checking magic, version and size. Takes the descriptor over. */
int weft_segment_open(int fd, weft_segment *segment);
/* Unmaps and closes. Views made by weft_segment_view stay until they are dropped. */
void weft_segment_close(weft_segment *segment);
/* Reserves pages (fallocate): WEFT_E_NOSPACE instead of a later SIGBUS. Offsets need not be aligned. */
int weft_segment_claim(const weft_segment *segment, uint64_t offset, uint64_t bytes);
/* Maps a stretch (offset page-aligned) shared read-write into this process. */
int weft_segment_view(const weft_segment *segment, uint64_t offset, uint64_t bytes, void **addr);
void weft_segment_drop(void *addr, uint64_t bytes);

static inline weft_rank_page *weft_segment_rank(const weft_segment *segment, uint32_t local)
{
    return (weft_rank_page *)((char *)segment->hdr + segment->hdr->rank_pages + (uint64_t)local * WEFT_PAGE);
}

/* Takes a free node area (zeroed), gives its index or WEFT_E_NOSPACE; release zeroes it again (punches the hole). */
int weft_segment_take_area(const weft_segment *segment, uint32_t *index);
void weft_segment_release_area(const weft_segment *segment, uint32_t index);

/* Wakes the rank if it sleeps. The caller has stored its news before (release); the sleeper paid for the store-load order, or
 * `fence` is set where membarrier is refused. */
void weft_segment_wake(weft_rank_page *page);

/* Owner: says that we are about to sleep, and gives the futex value to sleep on. A thread that was woken and is late for its futex
 * must not fall asleep on another thread's later sleep: hence a ticket. Under the worker's lock. */
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

/* The same, without a call when the rank is awake. */
static inline void weft_page_wake_if_asleep(weft_rank_page *page)
{
    if (__builtin_expect(atomic_load_explicit(&page->asleep, memory_order_relaxed), 0))
        weft_segment_wake(page);
}

#endif
