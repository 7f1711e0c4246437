/* np: 1 2 3 4 : histories of fetch_and_op and compare_and_swap of all ranks on few words are linearizable */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

/* Ranks record when each call began and when its flush returned, by the node's clock, what it asked and what it got. A search looks for an
 * order of all calls in which each gets what it got, and no call comes before one that had ended before it began (Wing and Gong). Histories
 * are short, and values are unique, which keeps the search small. */
enum { EACH = 12, ROUNDS = 60, RANKS = 4, CALLS = EACH * RANKS };

typedef enum kind { ADD, SWAP, REPLACE, READ, KINDS } kind;

typedef struct call
{
    double begin, end;
    int64_t kind, value, compare, got;
} call;

static int rank, size;
static MPI_Win win;

static void do_call(call *c, MPI_Aint at)
{
    c->got = -1;
    c->begin = MPI_Wtime();
    if (c->kind == SWAP)
        OK(MPI_Compare_and_swap(&c->value, &c->compare, &c->got, MPI_INT64_T, 0, at, win));
    else
        OK(MPI_Fetch_and_op(&c->value, &c->got, MPI_INT64_T, 0, at, c->kind == ADD ? MPI_SUM : c->kind == REPLACE ? MPI_REPLACE : MPI_NO_OP,
                            win));
    OK(MPI_Win_flush(0, win));
    c->end = MPI_Wtime();
}

static int64_t after(const call *c, int64_t value)
{
    return c->kind == ADD ? value + c->value : c->kind == REPLACE || (c->kind == SWAP && c->compare == value) ? c->value : value;
}

/* Places the calls next[r], ... of each rank; 1 if that is possible. steps: limit of the search, -1 when it is used up. */
static int place(call calls[RANKS][EACH], int next[RANKS], int64_t value, long *steps)
{
    double first_end = 1e300;
    int left = 0;
    if (--*steps < 0)
        return 0;
    for (int r = 0; r < size; r++)
        if (next[r] < EACH) {
            left++;
            first_end = calls[r][next[r]].end < first_end ? calls[r][next[r]].end : first_end;
        }
    if (!left)
        return 1;
    for (int r = 0; r < size; r++) {
        if (next[r] == EACH || calls[r][next[r]].begin > first_end || calls[r][next[r]].got != value)
            continue;
        const call *c = &calls[r][next[r]++];
        if (place(calls, next, after(c, value), steps))
            return 1;
        next[r]--;
    }
    return 0;
}

static void print(call calls[RANKS][EACH])
{
    static const char *const names[] = {"add", "swap", "replace", "read"};
    for (int r = 0; r < size; r++)
        for (int i = 0; i < EACH; i++)
            fprintf(stderr, "rank %d %.9f %.9f %s %ld (compared %ld) got %ld\n", r, calls[r][i].begin, calls[r][i].end,
                    names[calls[r][i].kind], (long)calls[r][i].value, (long)calls[r][i].compare, (long)calls[r][i].got);
}

/* family 0: add and read; 1: swap and read; 2: replace and read: concurrent calls use one operator or MPI_NO_OP. */
static void round_of(int number, MPI_Aint at)
{
    static call calls[RANKS][EACH];
    call mine[EACH];
    uint64_t random = (uint64_t)number * 77 + (uint64_t)rank;
    int64_t known = 0, begins = 0;
    int family = number % 3, next[RANKS] = {0};
    long steps = 2000000;
    if (rank == 0)
        OK(MPI_Accumulate(&begins, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_REPLACE, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < EACH; i++) {
        int is_read = check_random(&random) % 4 == 0;
        mine[i] = (call){.kind = is_read && family != 1 ? READ : family == 0 ? ADD : family == 1 ? SWAP : REPLACE, .compare = known};
        mine[i].value = family == 0 ? (int64_t)1 << (4 * rank) : (number * 100 + i + 1) * 10 + rank;
        if (is_read && family == 1)
            mine[i].compare = -5; /* never there: a read */
        do_call(&mine[i], at);
        known = after(&mine[i], mine[i].got);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Gather(mine, sizeof mine, MPI_BYTE, calls, sizeof mine, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (rank == 0 && !place(calls, next, 0, &steps)) {
        if (steps >= 0)
            print(calls);
        CHECK(steps < 0, "round %d is not linearizable: the calls are above", number);
        fprintf(stderr, "round %d: too many orders, not decided\n", number);
    }
}

int main(int argc, char **argv)
{
    int64_t *mine;
    check_start(&argc, &argv, &rank, &size);
    CHECK(size <= RANKS);
    for (int flavor = 0; flavor < 2; flavor++) {
        if (flavor)
            OK(MPI_Win_create(mine = malloc(64), 64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        else
            OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
        OK(MPI_Win_lock_all(0, win));
        for (int i = 0; i < ROUNDS; i++)
            round_of(i, i % 8);
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_free(&win));
        if (flavor)
            free(mine);
    }
    OK(MPI_Finalize());
    return 0;
}
