/* np: 2 4 : outstanding sends to a rank that sleeps wait at their senders: all arrive in order, whatever is received first */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include "check.h"

/* FLOOD_MANY in the environment: more messages (stress). Each sender may use 1 MiB of the receiver's memory (knob credit_kib): 8,192 of
 * these messages; with their headers they take twice as much. */
enum { MANY = 400000, BOUND = 4 << 20, FLOOD = 7, LATE = 8, EVERY = 1000 };

static int rank, size, many = MANY;

/* Peak of the bytes of unexpected messages. */
static uint64_t max_unexpected(void)
{
    int provided, index, count, is_there = 0;
    uint64_t value = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_get_num(&count));
    is_there = MPI_T_pvar_get_index("weft_unexpected_max", MPI_T_PVAR_CLASS_HIGHWATERMARK, &index) == MPI_SUCCESS;
    CHECK(is_there);
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    OK(MPI_T_pvar_read(session, handle, &value));
    OK(MPI_T_pvar_handle_free(session, &handle));
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    return value;
}

static int64_t value_of(int from, int i) { return (int64_t)from << 40 | i; }

/* Every thousandth is awaited out of order; freeing, testing or awaiting a request must not lose its message. */
static void flood(MPI_Comm other)
{
    int64_t *values = malloc((size_t)many * sizeof *values), late = -rank;
    MPI_Request *requests = malloc((size_t)many * sizeof *requests), last;
    int flag;
    for (int i = 0; i < many; i++) {
        values[i] = value_of(rank, i);
        OK(MPI_Isend(&values[i], 1, MPI_INT64_T, 0, FLOOD, MPI_COMM_WORLD, &requests[i]));
        if (i % EVERY == 7)
            OK(MPI_Request_free(&requests[i]));
        else if (i % EVERY == 9)
            OK(MPI_Cancel(&requests[i]));
        else if (i % EVERY == 11)
            OK(MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE));
    }
    OK(MPI_Isend(&late, 1, MPI_INT64_T, 0, LATE, other, &last));
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* messages of another channel pass the flood */
    OK(MPI_Waitall(many, requests, MPI_STATUSES_IGNORE));
    OK(MPI_Wait(&last, MPI_STATUS_IGNORE));
    free(values);
    free(requests);
}

static void drain(MPI_Comm other)
{
    int64_t value;
    int *next = calloc((size_t)size, sizeof *next);
    MPI_Status status;
    usleep(300000);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int from = size - 1; from > 0; from--) {
        OK(MPI_Recv(&value, 1, MPI_INT64_T, from, LATE, other, MPI_STATUS_IGNORE));
        CHECK(value == -from);
    }
    for (int64_t i = (int64_t)many * (size - 1); i > 0; i--) {
        int from = i % 5 ? MPI_ANY_SOURCE : (int)(i % (size - 1)) + 1;
        if (from != MPI_ANY_SOURCE && next[from] == many)
            from = MPI_ANY_SOURCE;
        OK(MPI_Recv(&value, 1, MPI_INT64_T, from, FLOOD, MPI_COMM_WORLD, &status));
        from = status.MPI_SOURCE;
        CHECK(value == value_of(from, next[from]), "message %d from %d is number %d from %d", next[from], from, (int)value,
              (int)(value >> 40));
        next[from]++;
    }
    CHECK(max_unexpected() < (uint64_t)BOUND * (unsigned)(size - 1), "%llu bytes", (unsigned long long)max_unexpected());
    free(next);
}

int main(int argc, char **argv)
{
    MPI_Comm other;
    check_start(&argc, &argv, &rank, &size);
    if (getenv("FLOOD_MANY"))
        many = atoi(getenv("FLOOD_MANY"));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    if (rank)
        flood(other);
    else
        drain(other);
    OK(MPI_Comm_free(&other));
    OK(MPI_Finalize());
    return 0;
}
