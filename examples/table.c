/* SPDX-License-Identifier: BSD-3-Clause
 * table: a hash table spread over all ranks, by one-sided calls alone. Ranks add to the values of random keys all at once; a slot is
 * claimed by compare-and-swap, a value grows by accumulate; no rank serves another. Then every key's value is compared with what was added.
 *     mpicc table.c -o table && mpirun -n 4 ./table [additions of each rank]
 * Exit code: 0 every value is right, 1 one is wrong or the table was full, 2 bad usage.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum
{
    SLOTS = 4096, /* of each rank */
    KEYS = 2500   /* per rank: the table becomes 61 % full */
};

/* Two words of a slot in the window: the key, 0 for a free slot, and the value. */
typedef struct table
{
    MPI_Win win; /* locked by MPI_Win_lock_all */
    int rank, ranks;
    long probes;
} table;

static uint64_t hash(uint64_t key)
{
    key ^= key >> 33;
    key *= 0xff51afd7ed558ccdu;
    key ^= key >> 33;
    key *= 0xc4ceb9fe1a85ec53u;
    return key ^ key >> 33;
}

/* Finds the key's slot, or claims a free one if `claim`. Returns the slot's number over all ranks; -1: not there, or no slot is free. */
static int64_t find(table *t, int64_t key, int claim)
{
    int64_t slots = (int64_t)SLOTS * t->ranks, at = (int64_t)(hash((uint64_t)key) % (uint64_t)slots), none = 0;

    for (int64_t i = 0; i < slots; i++, at = (at + 1) % slots) {
        int64_t is = 0;
        t->probes++;
        if (claim) {
            MPI_Compare_and_swap(&key, &none, &is, MPI_INT64_T, (int)(at / SLOTS), at % SLOTS * 2, t->win);
        } else {
            MPI_Get(&is, 1, MPI_INT64_T, (int)(at / SLOTS), at % SLOTS * 2, 1, MPI_INT64_T, t->win);
        }
        MPI_Win_flush((int)(at / SLOTS), t->win);
        if (is == key || (is == 0 && claim)) {
            return at;
        }
        if (is == 0) {
            return -1;
        }
    }
    return -1;
}

/* Adds to a key's value, which begins as 0. Completes when the table is flushed; *amount is free then. 0; -1: the table is full. */
static int add(table *t, int64_t key, const int64_t *amount)
{
    int64_t at = find(t, key, 1);

    if (at < 0) {
        return -1;
    }
    MPI_Accumulate(amount, 1, MPI_INT64_T, (int)(at / SLOTS), at % SLOTS * 2 + 1, 1, MPI_INT64_T, MPI_SUM, t->win);
    return 0;
}

/* The value of a key, 0 if it is not there. No rank may be adding. */
static int64_t look_up(table *t, int64_t key)
{
    int64_t at = find(t, key, 0), value = 0;

    if (at >= 0) {
        MPI_Get(&value, 1, MPI_INT64_T, (int)(at / SLOTS), at % SLOTS * 2 + 1, 1, MPI_INT64_T, t->win);
        MPI_Win_flush((int)(at / SLOTS), t->win);
    }
    return value;
}

/* Addition i of a rank: the same numbers wherever it is computed. */
static int64_t key_of(const table *t, int rank, long i)
{
    return 1 + (int64_t)(hash((uint64_t)rank << 40 ^ (uint64_t)i) % ((uint64_t)KEYS * (uint64_t)t->ranks));
}

/* Compares the values of this rank's share of the keys; returns how many are wrong. */
static int check(table *t, long additions)
{
    int64_t keys = (int64_t)KEYS * t->ranks, first = keys * t->rank / t->ranks, last = keys * (t->rank + 1) / t->ranks;
    int64_t *must = calloc((size_t)(last - first), sizeof *must);
    int wrong = 0;

    for (int r = 0; r < t->ranks; r++) {
        for (long i = 0; i < additions; i++) {
            int64_t at = key_of(t, r, i) - 1 - first;
            if (at >= 0 && at < last - first) {
                must[at] += i + 1;
            }
        }
    }
    for (int64_t k = first; k < last; k++) {
        wrong += look_up(t, k + 1) != must[k - first];
    }
    free(must);
    return wrong;
}

int main(int argc, char **argv)
{
    table t = {.probes = 0};
    int64_t *slots, *amounts;
    int wrong = 0, all = 0;
    double start, looked;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
    long additions = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
    if (additions < 1 || additions > 10000000 || argc > 2) {
        if (!t.rank) {
            fprintf(stderr, "usage: table [additions of each rank, 1 to 10000000]\n");
        }
        MPI_Finalize();
        return 2;
    }
    MPI_Win_allocate(2 * SLOTS * sizeof *slots, sizeof *slots, MPI_INFO_NULL, MPI_COMM_WORLD, &slots, &t.win);
    amounts = malloc((size_t)additions * sizeof *amounts);
    if (!amounts) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Win_lock_all(0, t.win);
    for (int i = 0; i < 2 * SLOTS; i++) {
        slots[i] = 0;
    }
    MPI_Win_sync(t.win);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (long i = 0; i < additions; i++) {
        amounts[i] = i + 1;
        wrong += add(&t, key_of(&t, t.rank, i), &amounts[i]) != 0;
    }
    MPI_Win_flush_all(t.win);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime() - start;
    looked = MPI_Wtime();
    wrong += check(&t, additions);
    looked = MPI_Wtime() - looked;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!t.rank) {
        printf("table: %d ranks, %ld additions each, %.2f us an addition, %.2f us a look-up, %.2f probes, %d wrong\n", t.ranks, additions,
               start / (double)additions * 1e6, looked / KEYS * 1e6, (double)t.probes / (double)(additions + KEYS), all);
    }
    free(amounts);
    MPI_Win_unlock_all(t.win);
    MPI_Win_free(&t.win);
    MPI_Finalize();
    return all != 0;
}
