/* SPDX-License-Identifier: BSD-3-Clause
 *
 * soak: shared by the parts of test/stress/soak.c. Every thread runs rounds on communicators of its own. A round is of one kind; all
 * members of a communicator choose the same kind and sizes, because `shared` is the same generator on each. A round receives all that it
 * sends and leaves no request.
 */
#ifndef TEST_STRESS_SOAK_H
#define TEST_STRESS_SOAK_H

#include <stdatomic.h>
#include <time.h>

#include "check.h"

enum { SOAK_THREADS_MAX = 8, SOAK_LARGEST = 1 << 21, SOAK_RANK_BYTES = 1024 };

/* Read by the script while the job runs: one line of 1024 bytes for each rank, in a mapped file. */
typedef struct soak_thread {
    _Atomic uint64_t ticks; /* completed messages, collectives and rounds */
    _Atomic uint32_t round;
    char deed[20];
} soak_thread;

typedef struct soak_rank {
    int32_t pid, threads;
    uint64_t lost_wakeups; /* unused by the program; the script reads counters from its output */
    soak_thread thread[SOAK_THREADS_MAX];
} soak_rank;

typedef struct soak {
    MPI_Comm comm; /* of this round */
    int rank, size;
    uint64_t shared, own; /* generators: the same on all members; this thread's */
    unsigned round;
    int tag; /* of this round; the following 7 are free too */
    soak_thread *page;
    int spoils; /* one byte of this round's messages must be corrupted */
} soak;

static inline unsigned soak_pick(soak *s, unsigned below) { return check_random(&s->shared) % below; }
static inline unsigned soak_own(soak *s, unsigned below) { return check_random(&s->own) % below; }
static inline void soak_tick(soak *s) { atomic_fetch_add_explicit(&s->page->ticks, 1, memory_order_relaxed); }

/* Seed of a message for check_fill: differs for each round, sender, receiver and number. */
static inline unsigned soak_seed(const soak *s, int from, int to, int number)
{
    return s->round * 2654435761u + (unsigned)from * 40503u + (unsigned)to * 9973u + (unsigned)number * 7u;
}

/* Bytes of a message: mostly small, sometimes large, around the powers of two where protocols change. */
static inline size_t soak_bytes(uint64_t *state)
{
    static const unsigned char powers[] = {0, 3, 5, 5, 6, 8, 10, 10, 12, 13, 14, 16, 17, 20};
    size_t power = (size_t)1 << powers[check_random(state) % sizeof powers];
    return power - 1 + check_random(state) % (power + 2);
}

static inline void soak_nap(unsigned us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000L};
    nanosleep(&time, NULL);
}

/* Waits for all, by one of the suitable calls. Statuses are in the order of requests. */
void soak_finish(soak *s, int count, MPI_Request *reqs, MPI_Status *statuses);

typedef struct soak_deed {
    const char *name;
    void (*run)(soak *s);
    unsigned weight;
} soak_deed;

extern const soak_deed soak_p2p_deeds[], soak_coll_deeds[]; /* end with a name of NULL */

#endif
