/* SPDX-License-Identifier: BSD-3-Clause
 * mcs: a fair lock that any number of ranks share, by one-sided calls alone: the queue of Mellor-Crummey and Scott. Each waiting rank polls
 * a word of its own window, so a held lock causes no traffic. Every rank takes the lock many times and changes two words that it protects.
 *     mpicc mcs.c -o mcs && mpirun -n 4 ./mcs [turns of each rank]
 * Exit code: 0 no update was lost, 1 one was, 2 bad usage.
 */
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { NOBODY = -1 };

/* Displacements in every rank's window of int64_t. */
enum
{
    NEXT,    /* rank that waits behind this one */
    WAITS,   /* 1 until the rank before hands the lock on */
    TAIL,    /* rank 0 only: last rank in the queue */
    COUNTER, /* rank 0 only: what the lock protects */
    SQUARES, /* rank 0 only: sum of squares of the counter's values */
    WORDS = 8 /* a cache line */
};

typedef struct mcs
{
    MPI_Win win; /* locked by MPI_Win_lock_all */
    int rank;
} mcs;

static int64_t fetch(const mcs *m, int target, int word, MPI_Op op, int64_t value)
{
    int64_t old = 0;

    MPI_Fetch_and_op(&value, &old, MPI_INT64_T, target, word, op, m->win);
    MPI_Win_flush(target, m->win);
    return old;
}

/* Joins the queue and waits for the rank before. */
static void acquire(const mcs *m)
{
    int64_t before;

    fetch(m, m->rank, NEXT, MPI_REPLACE, NOBODY);
    fetch(m, m->rank, WAITS, MPI_REPLACE, 1);
    before = fetch(m, 0, TAIL, MPI_REPLACE, m->rank);
    if (before == NOBODY) {
        return;
    }
    fetch(m, (int)before, NEXT, MPI_REPLACE, m->rank);
    while (fetch(m, m->rank, WAITS, MPI_NO_OP, 0)) {
        sched_yield(); /* ranks may outnumber CPUs */
    }
}

/* Hands the lock to the next rank, or empties the queue. */
static void release(const mcs *m)
{
    int64_t nobody = NOBODY, me = m->rank, tail = 0, next = fetch(m, m->rank, NEXT, MPI_NO_OP, 0);

    if (next == NOBODY) {
        MPI_Compare_and_swap(&nobody, &me, &tail, MPI_INT64_T, 0, TAIL, m->win);
        MPI_Win_flush(0, m->win);
        if (tail == me) {
            return;
        }
        while ((next = fetch(m, m->rank, NEXT, MPI_NO_OP, 0)) == NOBODY) { /* a rank is joining */
            sched_yield();
        }
    }
    fetch(m, (int)next, WAITS, MPI_REPLACE, 0);
}

/* Reads and writes two words, each by a call of its own: only the lock keeps them together. */
static int update(const mcs *m)
{
    int64_t words[2] = {0, 0};
    int wrong;

    MPI_Get(words, 2, MPI_INT64_T, 0, COUNTER, 2, MPI_INT64_T, m->win);
    MPI_Win_flush(0, m->win);
    wrong = words[1] != words[0] * (words[0] + 1) * (2 * words[0] + 1) / 6;
    words[0]++;
    words[1] += words[0] * words[0];
    MPI_Put(&words[0], 1, MPI_INT64_T, 0, COUNTER, 1, MPI_INT64_T, m->win);
    MPI_Put(&words[1], 1, MPI_INT64_T, 0, SQUARES, 1, MPI_INT64_T, m->win);
    MPI_Win_flush(0, m->win); /* complete before the lock is handed on */
    return wrong;
}

int main(int argc, char **argv)
{
    mcs m;
    int64_t *words;
    int ranks, wrong = 0, all = 0;
    double start;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long turns = argc > 1 ? strtol(argv[1], NULL, 10) : 200;
    if (turns < 1 || turns > 100000 || argc > 2) {
        if (!m.rank) {
            fprintf(stderr, "usage: mcs [turns of each rank, 1 to 100000]\n");
        }
        MPI_Finalize();
        return 2;
    }
    MPI_Win_allocate(WORDS * sizeof *words, sizeof *words, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &m.win);
    MPI_Win_lock_all(0, m.win);
    words[TAIL] = NOBODY;
    words[COUNTER] = words[SQUARES] = 0;
    MPI_Win_sync(m.win);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (long i = 0; i < turns; i++) {
        acquire(&m);
        wrong += update(&m);
        release(&m);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime() - start;
    wrong += fetch(&m, 0, COUNTER, MPI_NO_OP, 0) != turns * ranks;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!m.rank) {
        printf("mcs: %d ranks, %ld turns each, %.2f us a turn, %d wrong\n", ranks, turns, start / (double)(turns * ranks) * 1e6, all);
    }
    MPI_Win_unlock_all(m.win);
    MPI_Win_free(&m.win);
    MPI_Finalize();
    return all != 0;
}
