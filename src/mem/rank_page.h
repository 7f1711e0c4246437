/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rank_page: a rank's page in the segment (mem/segment.h): whether it sleeps, its process, status and modex data. Read and written by
 * all ranks of the node and by the launcher. All zero is a valid initial state.
 */
#ifndef WEFT_MEM_RANK_PAGE_H
#define WEFT_MEM_RANK_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/macros.h"
#include "mem/wakeup_sock.h"

#define WEFT_PAGE 4096
#define WEFT_PAGE_WAIT_BYTES 188
#define WEFT_MODEX_CAPACITY 2048 /* bytes of one rank's keys and values */

/* What a rank waits for. */
enum weft_wait_reason {
    WEFT_WAIT_REASON_NONE, WEFT_WAIT_REASON_SEND, WEFT_WAIT_REASON_RECV, WEFT_WAIT_REASON_PROBE, WEFT_WAIT_REASON_REQUESTS,
    WEFT_WAIT_REASON_COLLECTIVE, WEFT_WAIT_REASON_FINALIZE, WEFT_WAIT_REASON_LAUNCH, WEFT_WAIT_REASON_REGISTRATION,
    WEFT_WAIT_REASON_WINDOW, WEFT_WAIT_REASON_NOTIFY
};
#define WEFT_STATUS_ANY_TAG (-2)
/* NOTIFY: peer is the window's number, tag the counter (-N: one of N), bytes how many notifications have come << 32 | how many must. */

/* What a thread waits for: written by the thread (relaxed stores) after a long wait, read by the launcher at any time. */
typedef struct weft_page_status {
    _Atomic uint64_t since_ns;    /* weft_clock_ns at the start of the wait; 0: not waiting */
    _Atomic uint64_t bytes;
    _Atomic int32_t peer;         /* world rank waited for; -1: any, -2: none */
    _Atomic int32_t tag;
    _Atomic uint32_t why;         /* enum weft_wait_reason */
    _Atomic uint32_t asleep_on;   /* 1 while asleep */
} weft_page_status;

/* One page per local rank. */
typedef struct weft_rank_page {
    /* Futex: a ticket (a new one for each sleep) while the rank sleeps, else 0. A waker sets 0 and wakes the futex, or sends to the
     * socket `sock` if open. Alone in its cache line. */
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
    /* Written by waits, and by calls that wait a little, if ranks share CPUs. */
    _Alignas(WEFT_LINE) _Atomic uint32_t cpu;            /* where the rank last waited for another one: 1 + CPU; 0: not known */
    _Atomic uint32_t yields;                             /* 1: it is in sched_yield: another rank may have its CPU */
    _Alignas(WEFT_LINE) weft_wakeup_sock sock;           /* woken instead of the futex if open */
    _Atomic uint64_t woken_ns;                           /* weft_clock_ns when weft_page_wake() last ended a sleep */
    _Atomic uint64_t pid_space;                          /* inode of the pid namespace of `pid`; 0: not told (core/cpu_share) */
    _Alignas(WEFT_LINE) weft_page_status status;
    _Atomic uint32_t call_records;                       /* number of records ever used; 0: calls are not recorded */
    _Atomic uint32_t call_is_threaded;                   /* 1: each record holds its thread's wait; 0: `status` does */
    /* What of this machine the rank's network waits for (weft_iface_callbacks.waits), a clause for mpirun's report. */
    _Alignas(WEFT_LINE) _Atomic uint32_t iface_waits;    /* 1: iface_wait is valid */
    char iface_wait[WEFT_PAGE_WAIT_BYTES];
    /* Modex data of the rank: key\0, u16 length, value, ... Complete once modex_ready is set (release; also a futex). */
    _Alignas(WEFT_LINE) _Atomic uint32_t modex_ready;
    uint32_t modex_bytes;
    char modex[WEFT_MODEX_CAPACITY];
} weft_rank_page;

_Static_assert(sizeof(weft_rank_page) <= WEFT_PAGE, "one page per rank");

enum weft_rank_state {
    WEFT_RANK_NONE = 0,  /* not yet in MPI_Init; stays so in a program that never calls it */
    WEFT_RANK_INIT = 1,  /* inside or after MPI_Init */
    WEFT_RANK_FINAL = 2, /* finalized, and does not return to MPI; of a rank at rest written by the launcher when it has ended */
    WEFT_RANK_ABORT = 3, /* called MPI_Abort: exit_code holds its argument */
    WEFT_RANK_DEAD = 4,  /* written by the launcher: the process ended without finalize */
    WEFT_RANK_REST = 5,  /* finalized; may open a session */
};

/* Wakes the rank if it sleeps. Any thread; does not block. The caller must have stored its data before (release). The store-load order
 * is the sleeper's (membarrier); if that is refused (membarrier_ok is 0) the caller must issue a fence before. */
void weft_page_wake(weft_rank_page *page);

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

/* As weft_page_wake(), inline: no call if the rank is awake. */
static inline void weft_page_wake_if_asleep(weft_rank_page *page)
{
    if (__builtin_expect(atomic_load_explicit(&page->asleep, memory_order_relaxed), 0))
        weft_page_wake(page);
}

#endif
