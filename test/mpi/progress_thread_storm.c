/* np: 2 4 : with WEFT_PROGRESS_THREAD=on calls of all kinds follow each other at random distances: data is right, and nothing hangs */
/* Each operation begins and ends the loan of the worker to the thread; the distances make it do so at every point of a call. */
#include "check.h"

#include <stdbool.h>
#include <time.h>

enum { COUNT = 1 << 14, ROUNDS = 300 };

static double in[4][COUNT], out[4][COUNT];
static int size;
static uint32_t seed_common, seed_own;

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Up to a millisecond, mostly less, without a system call. */
static void wander(void)
{
    struct timespec begin, now;
    long ns = (long)(next(&seed_own) % 1000000) >> (next(&seed_own) % 6);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000000l + now.tv_nsec - begin.tv_nsec < ns);
}

static double term(int rank, int round, int i) { return (double)((i * 3 + round * 5 + rank) % 251); }

static void begin(int which, int round, int count, MPI_Request requests[2])
{
    int to = (check_rank + 1) % size, from = (check_rank + size - 1) % size;
    for (int i = 0; i < count; i++)
        in[which][i] = term(check_rank, round + which, i);
    if (next(&seed_common) % 2) {
        OK(MPI_Iallreduce(in[which], out[which], count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]));
        requests[1] = MPI_REQUEST_NULL;
        return;
    }
    OK(MPI_Irecv(out[which], count, MPI_DOUBLE, from, which, MPI_COMM_WORLD, &requests[0]));
    wander();
    OK(MPI_Isend(in[which], count, MPI_DOUBLE, to, which, MPI_COMM_WORLD, &requests[1]));
}

static void end(MPI_Request *requests)
{
    int flag = 0;
    if (next(&seed_own) % 2) {
        OK(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
        return;
    }
    while (!flag) {
        wander();
        OK(MPI_Testall(8, requests, &flag, MPI_STATUSES_IGNORE));
    }
}

static void check(int which, int round, int count, bool is_sum)
{
    int from = (check_rank + size - 1) % size;
    for (int i = 0; i < count; i++) {
        double expected = is_sum ? 0 : term(from, round + which, i);
        for (int rank = 0; is_sum && rank < size; rank++)
            expected += term(rank, round + which, i);
        CHECK(out[which][i] == expected, "round %d, operation %d: element %d is %g, expected %g", round, which, i, out[which][i], expected);
    }
}

static void one_round(int round)
{
    MPI_Request requests[8];
    bool is_sum[4];
    int counts[4], value = round;
    for (int which = 0; which < 4; which++) {
        uint32_t before = seed_common;
        counts[which] = 1 << next(&before) % 15;
        next(&seed_common);
        before = seed_common;
        is_sum[which] = next(&before) % 2;
        begin(which, round, counts[which], &requests[2 * which]);
        wander();
    }
    if (next(&seed_common) % 3 == 0)
        OK(MPI_Bcast(&value, 1, MPI_INT, round % size, MPI_COMM_WORLD));
    wander();
    end(requests);
    for (int which = 0; which < 4; which++)
        check(which, round, counts[which], is_sum[which]);
    CHECK(value == round, "round %d: the value is %d", round, value);
}

int main(int argc, char **argv)
{
    setenv("WEFT_PROGRESS_THREAD", "on", 1);
    check_start(&argc, &argv, &check_rank, &size);
    seed_common = 1;
    seed_own = (uint32_t)check_rank + 7;
    for (int round = 0; round < ROUNDS; round++)
        one_round(round);
    OK(MPI_Finalize());
    return 0;
}
