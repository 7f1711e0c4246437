/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pingpong: pairs of ranks exchange messages of all sizes for some seconds, every byte checked, while test/verbs disturbs the network.
 * Prints the number of rounds and the time of the slowest.
 *     pingpong SECONDS [MOST-BYTES [SLOWEST-SECONDS]]
 * Exit code 1 when a payload was wrong or a round took longer than SLOWEST-SECONDS (0: no matter). Each rank writes a line to the file
 * that PINGPONG_MARKS names when its first rounds have passed: disturbances begin after that.
 */
#include "../mpi/check.h"

#include <mpi.h>

enum { PING = 1, PONG, FROM_EACH = 2, /* messages each way and round */
       BEGUN = 3 };                   /* rounds after which it is under way */

typedef struct end {
    int rank, partner;
    size_t max;
    unsigned char *out[FROM_EACH], *in[FROM_EACH];
} end;

/* Sizes go round the edges of protocols: inline, a cell, a frame, chunks, and odd ones. */
static size_t size_of(unsigned round, int which, size_t max)
{
    static const size_t sizes[] = {0, 8, 63, 64, 220, 1024, 4095, 4096, 8191, 16384, 16385, 32768, 65537, 262144, 1000003, 4194304};
    size_t bytes = sizes[(round * 5 + (unsigned)which * 3) % (sizeof sizes / sizeof sizes[0])];
    return bytes < max ? bytes : max;
}

static void one_round(end *me, unsigned round)
{
    MPI_Request requests[2 * FROM_EACH];
    MPI_Status statuses[2 * FROM_EACH];
    for (int i = 0; i < FROM_EACH; i++) {
        size_t bytes = size_of(round, i, me->max);
        check_fill(me->out[i], bytes, round * 7 + (unsigned)(i + 31 * me->rank));
        memset(me->in[i], 0xEE, bytes);
        OK(MPI_Irecv(me->in[i], (int)bytes, MPI_BYTE, me->partner, PING + i, MPI_COMM_WORLD, &requests[i]));
    }
    for (int i = 0; i < FROM_EACH; i++)
        OK(MPI_Isend(me->out[i], (int)size_of(round, i, me->max), MPI_BYTE, me->partner, PING + i, MPI_COMM_WORLD,
                     &requests[FROM_EACH + i]));
    OK(MPI_Waitall(2 * FROM_EACH, requests, statuses));
    for (int i = 0; i < FROM_EACH; i++) {
        size_t bytes = size_of(round, i, me->max);
        int count = -1;
        OK(MPI_Get_count(&statuses[i], MPI_BYTE, &count));
        CHECK((size_t)count == bytes, "round %u: %d bytes came, not %zu", round, count, bytes);
        for (size_t at = 0; at < bytes; at++)
            CHECK(me->in[i][at] == check_byte(round * 7 + (unsigned)(i + 31 * me->partner), at), "round %u, message %d, byte %zu of %zu",
                  round, i, at, bytes);
    }
}

static void mark(int rank)
{
    const char *path = getenv("PINGPONG_MARKS");
    FILE *marks = path ? fopen(path, "a") : NULL;
    CHECK(marks || !path, "%s cannot be written", path);
    if (marks) {
        fprintf(marks, "%d\n", rank);
        fclose(marks);
    }
}

int main(int argc, char **argv)
{
    end me = {0};
    int size, go = 1;
    unsigned round = 0;
    check_start(&argc, &argv, &me.rank, &size);
    double seconds = argc > 1 ? atof(argv[1]) : 1, slowest = 0, max_slow = argc > 3 ? atof(argv[3]) : 0;
    me.max = argc > 2 ? (size_t)atol(argv[2]) : 4194304;
    CHECK(size % 2 == 0, "ranks come in pairs");
    me.partner = me.rank ^ 1;
    for (int i = 0; i < FROM_EACH; i++) {
        me.out[i] = malloc(me.max + 1);
        me.in[i] = malloc(me.max + 1);
        CHECK(me.out[i] && me.in[i], "no memory");
    }
    double begin = MPI_Wtime();
    for (; go; round++) {
        double at = MPI_Wtime();
        one_round(&me, round);
        if (round + 1 == BEGUN)
            mark(me.rank);
        double now = MPI_Wtime();
        slowest = now - at > slowest ? now - at : slowest;
        go = now - begin < seconds; /* the even rank of each pair decides */
        if (me.rank % 2 == 0)
            OK(MPI_Send(&go, 1, MPI_INT, me.partner, 99, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(&go, 1, MPI_INT, me.partner, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    printf("rank %d: %u rounds, the slowest took %.3f s\n", me.rank, round, slowest);
    CHECK(max_slow == 0 || slowest <= max_slow, "a round took %.3f s", slowest);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < FROM_EACH; i++) {
        free(me.out[i]);
        free(me.in[i]);
    }
    MPI_Finalize();
    return 0;
}
