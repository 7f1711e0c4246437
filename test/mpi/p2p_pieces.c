/* np: 2 : a long kernel copy moves in fragments: a short message behind it is received before it ends, and other threads get the
 * lock in between */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tool_counter.h"

#define BYTES (64 << 20)
#define TRIES 100 /* the observing thread needs a CPU during one of these */
#define OVERTAKES 5

static MPI_T_pvar_handle by_get, by_kernel;
static char *buf;

/* Both messages have arrived when the receiver polls: the short one must not wait for all of the long one. 1: it did not; 0: it did, or the
 * sender got no CPU between the two sends; -1: no kernel copy here. */
static int overtake(int rank)
{
    char word[2] = "";
    MPI_Request reqs[2];
    int first = -1;
    if (rank == 0) {
        OK(MPI_Recv(word, 1, MPI_CHAR, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Isend(buf, BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &reqs[0]));
        OK(MPI_Isend("x", 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &reqs[1]));
        OK(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE));
        return 1;
    }
    OK(MPI_Irecv(buf, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &reqs[0]));
    OK(MPI_Irecv(word, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &reqs[1]));
    OK(MPI_Send(word, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD));
    usleep(200000); /* both have arrived now */
    OK(MPI_Waitany(2, reqs, &first, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&reqs[!first], MPI_STATUS_IGNORE));
    if (value_of(by_get) == 0)
        return -1;
    return first == 1;
}

static _Atomic int is_over;

static void *receive(void *arg)
{
    (void)arg;
    OK(MPI_Recv(buf, BYTES, MPI_CHAR, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    atomic_store(&is_over, 1);
    return NULL;
}

/* Does an observing thread see the copy half done? */
static int watch(void)
{
    unsigned long long begin = value_of(by_kernel);
    pthread_t thread;
    int has_seen = 0;
    atomic_store(&is_over, 0);
    CHECK(pthread_create(&thread, NULL, receive, NULL) == 0);
    while (!atomic_load(&is_over)) {
        unsigned long long done = value_of(by_kernel) - begin;
        has_seen |= done > 0 && done < BYTES;
    }
    pthread_join(thread, NULL);
    return has_seen;
}

int main(int argc, char **argv)
{
    int provided, rank, can = 0, has_seen = 0;
    setenv("WEFT_RNDV_SCHEME", "get", 1);
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    check_rank = rank;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    by_get = counter("weft_rndv_get");
    by_kernel = counter("weft_bytes_cma");
    buf = calloc(1, BYTES);
    for (int i = 0; i < OVERTAKES && can == 0; i++) {
        can = overtake(rank);
        OK(MPI_Bcast(&can, 1, MPI_INT, 1, MPI_COMM_WORLD));
    }
    CHECK(can, "the short message always waited for %d bytes of the long one", BYTES);
    can = can > 0;
    for (int i = 0; i < TRIES && can && !has_seen; i++) {
        if (rank == 0)
            OK(MPI_Send(buf, BYTES, MPI_CHAR, 1, 4, MPI_COMM_WORLD));
        else
            has_seen = watch();
        OK(MPI_Bcast(&has_seen, 1, MPI_INT, 1, MPI_COMM_WORLD));
    }
    CHECK(!can || has_seen, "no thread got a turn within any of %d long messages", TRIES);
    free(buf);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return can ? 0 : 77;
}
