/* SPDX-License-Identifier: BSD-3-Clause
 *
 * budget: the calls whose instructions test/perf/budget counts. Two ranks; rank 0 runs under callgrind, which client requests switch on
 * around each counted call and dump after it, so that each call has its own count. Rank 1 runs without callgrind.
 * With FORTRAN, the calls are those of budget_fortran.F90, and few.
 * Invariant: no counted call waits. While rank 0 sends, rank 1 sleeps outside of MPI (so no wakeup is raised); before rank 0 receives, it
 * sleeps outside of MPI until the message is in the ring. Before a collective rank 0 sleeps until rank 1 has posted; rank 1 then polls
 * (WEFT_SLEEP=never), so no wakeup is raised either.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <valgrind/callgrind.h>

enum
{
    CALLS = 24,  /* of each kind: fewer than the cells of any ring */
    TAG = 7,
    BYTES = 8
};

/* Collection is on between the two requests only; the dump's name identifies the call. */
#define COUNT(what, calls)                \
    do {                                  \
        CALLGRIND_TOGGLE_COLLECT;         \
        calls;                            \
        CALLGRIND_TOGGLE_COLLECT;         \
        CALLGRIND_DUMP_STATS_AT(what);    \
    } while (0)

/* A nonblocking call and its MPI_Wait; `start` uses &request. */
#define COUNT_WITH_WAIT(what, start)                            \
    do {                                                        \
        MPI_Request request;                                    \
                                                                \
        COUNT(what, start;                                      \
              MPI_Wait(&request, MPI_STATUS_IGNORE));           \
    } while (0)

static MPI_Comm made; /* a communicator that the program makes */

#ifdef FORTRAN
int made_handle_(void) { return MPI_Comm_toint(made); }

/* What budget_fortran.F90 calls, and its procedures. */
void toggle_(void) { CALLGRIND_TOGGLE_COLLECT; }

void nothing_(const void *buffer, const int *count, const int *type, const int *to, const int *tag, const int *comm, int *ierror)
{
    __asm__ volatile("" : : "r"(buffer), "r"(count), "r"(type), "r"(to), "r"(tag), "r"(comm), "r"(ierror) : "memory");
}

void nothing_short_(int *request, int *status, int *ierror)
{
    __asm__ volatile("" : : "r"(request), "r"(status), "r"(ierror) : "memory");
}

#define COUNT_FORTRAN(name)                \
    void f_##name##_(char *buffer);        \
    static void count_##name(char *buffer) \
    {                                      \
        f_##name##_(buffer);               \
        CALLGRIND_DUMP_STATS_AT(#name);    \
    }
COUNT_FORTRAN(nothing)
COUNT_FORTRAN(nothing_short)
COUNT_FORTRAN(send)
COUNT_FORTRAN(send_made)
COUNT_FORTRAN(send_null)
COUNT_FORTRAN(recv)
COUNT_FORTRAN(isend)
COUNT_FORTRAN(wait)
#else
__attribute__((noinline, noclone)) static int nothing(const void *buffer, int count, MPI_Datatype type, int to,
                                                             int tag, MPI_Comm comm)
{
    __asm__ volatile("" : : "r"(buffer), "r"(count), "r"(type), "r"(to), "r"(tag), "r"(comm) : "memory");
    return 0;
}

__attribute__((noinline, noclone)) static int nothing_short(MPI_Request *request, MPI_Status *status)
{
    __asm__ volatile("" : : "r"(request), "r"(status) : "memory");
    return 0;
}

/* Cost of counting itself: arguments, call, return. */
__attribute__((noinline)) static void count_nothing(char *buffer)
{
    COUNT("nothing", nothing(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD));
}

static void count_send(char *buffer)
{
    COUNT("send", MPI_Send(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD));
}

static void count_send_made(char *buffer)
{
    COUNT("send_made", MPI_Send(buffer, BYTES, MPI_BYTE, 1, TAG, made));
}

static void count_send_null(char *buffer)
{
    COUNT("send_null", MPI_Send(buffer, BYTES, MPI_BYTE, MPI_PROC_NULL, TAG, MPI_COMM_WORLD));
}

static void count_recv(char *buffer)
{
    COUNT("recv", MPI_Recv(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void count_isend_wait(char *buffer)
{
    MPI_Request request;

    COUNT("isend_wait", MPI_Isend(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void count_isend(char *buffer)
{
    MPI_Request request;

    COUNT("isend", MPI_Isend(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void count_wait(char *buffer)
{
    MPI_Request request;

    MPI_Isend(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
    COUNT("wait", MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* As count_nothing, of two arguments. */
__attribute__((noinline)) static void count_nothing_short(char *buffer)
{
    MPI_Request request;

    (void)buffer;
    COUNT("nothing_short", nothing_short(&request, MPI_STATUS_IGNORE));
}

/* Irecv posts, Wait polls: the message has arrived. */
static void count_irecv_wait(char *buffer)
{
    MPI_Request request;

    COUNT("irecv_wait", MPI_Irecv(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* Of the request that `persistent` made. */
static MPI_Request started;

static void persistent(char *buffer, int is_send)
{
    if (is_send)
        MPI_Send_init(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &started);
    else
        MPI_Recv_init(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &started);
}

static void count_start_send(char *buffer)
{
    persistent(buffer, 1);
    COUNT("start_send", MPI_Start(&started); MPI_Wait(&started, MPI_STATUS_IGNORE));
    MPI_Request_free(&started);
}

static void count_start_recv(char *buffer)
{
    persistent(buffer, 0);
    COUNT("start_recv", MPI_Start(&started); MPI_Wait(&started, MPI_STATUS_IGNORE));
    MPI_Request_free(&started);
}

/* Memory of rank 1, in a window of both. */
static MPI_Win window;

static void count_put_flush(char *buffer)
{
    COUNT("put_flush", MPI_Put(buffer, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, window); MPI_Win_flush(1, window));
}

static void count_get_flush(char *buffer)
{
    COUNT("get_flush", MPI_Get(buffer, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, window); MPI_Win_flush(1, window));
}

static void count_put_flush_created(char *buffer)
{
    COUNT("put_flush_created", MPI_Put(buffer, BYTES, MPI_BYTE, 1, 0, BYTES, MPI_BYTE, window); MPI_Win_flush(1, window));
}

static void count_fetch_and_op_flush(char *buffer)
{
    int64_t one = 1, old;

    (void)buffer;
    COUNT("fetch_and_op_flush", MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, 0, MPI_SUM, window); MPI_Win_flush(1, window));
}

static void count_barrier(char *buffer)
{
    (void)buffer;
    COUNT("barrier", MPI_Barrier(MPI_COMM_WORLD));
}

static void count_ibarrier(char *buffer)
{
    (void)buffer;
    COUNT_WITH_WAIT("ibarrier", MPI_Ibarrier(MPI_COMM_WORLD, &request));
}

static void count_bcast_root(char *buffer)
{
    COUNT("bcast_root", MPI_Bcast(buffer, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static void count_ibcast_root(char *buffer)
{
    COUNT_WITH_WAIT("ibcast_root", MPI_Ibcast(buffer, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
}

static void count_allreduce(char *buffer)
{
    int64_t one = 1;

    COUNT("allreduce", MPI_Allreduce(&one, buffer, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
}

static void count_iallreduce(char *buffer)
{
    int64_t one = 1;

    COUNT_WITH_WAIT("iallreduce", MPI_Iallreduce(&one, buffer, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request));
}

static void count_scan_first(char *buffer)
{
    int64_t one = 1;

    COUNT("scan_first", MPI_Scan(&one, buffer, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
}

static void count_iscan_first(char *buffer)
{
    int64_t one = 1;

    COUNT_WITH_WAIT("iscan_first", MPI_Iscan(&one, buffer, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request));
}

static void count_gather(char *buffer)
{
    int64_t both[2];

    COUNT("gather", MPI_Gather(buffer, 1, MPI_INT64_T, both, 1, MPI_INT64_T, 0, MPI_COMM_WORLD));
}

static void count_igather(char *buffer)
{
    int64_t both[2];

    COUNT_WITH_WAIT("igather", MPI_Igather(buffer, 1, MPI_INT64_T, both, 1, MPI_INT64_T, 0, MPI_COMM_WORLD, &request));
}

static void count_alltoall(char *buffer)
{
    int64_t from[2] = {1, 1}, to[2];

    (void)buffer;
    COUNT("alltoall", MPI_Alltoall(from, 1, MPI_INT64_T, to, 1, MPI_INT64_T, MPI_COMM_WORLD));
}

static void count_ialltoall(char *buffer)
{
    int64_t from[2] = {1, 1}, to[2];

    (void)buffer;
    COUNT_WITH_WAIT("ialltoall", MPI_Ialltoall(from, 1, MPI_INT64_T, to, 1, MPI_INT64_T, MPI_COMM_WORLD, &request));
}
#endif

static void nap(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

/* Rank 0 sends CALLS messages over `comm` by `count` while rank 1 stays out of MPI. */
static int sends(int rank, MPI_Comm comm, void (*count)(char *))
{
    char buffer[BYTES] = "", expected[BYTES];
    int wrong = 0;

    if (rank) {
        /* The token signals that rank 0 is ready; this sleep keeps the counted calls free of wakeups. */
        MPI_Recv(buffer, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        nap(1500);
        for (int i = 0; i < CALLS; i++) {
            memset(expected, i + 1, BYTES);
            MPI_Recv(buffer, BYTES, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
            wrong |= memcmp(buffer, expected, BYTES) != 0;
        }
        MPI_Send(buffer, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        return wrong;
    }
    MPI_Send(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    nap(100);
    for (int i = 0; i < CALLS; i++) {
        memset(buffer, i + 1, BYTES);
        count(buffer);
    }
    MPI_Recv(buffer, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}

/* Rank 0 requests a message, sleeps until it has arrived, and receives it by `count`. */
static int receives(int rank, void (*count)(char *))
{
    char buffer[BYTES] = "", expected[BYTES];
    int wrong = 0;

    for (int i = 0; i < CALLS; i++) {
        memset(expected, i + 1, BYTES);
        if (rank) {
            MPI_Recv(buffer, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(expected, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Send(expected, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
            nap(20);
            count(buffer);
            wrong |= memcmp(buffer, expected, BYTES) != 0;
        }
    }
    return wrong;
}

#ifndef FORTRAN
/* Both ranks perform collectives; rank 1 has posted each before rank 0 calls it. Counts of rank 1 are not kept. */
static int collectives(void (*count)(char *), int rank)
{
    int64_t buffer = 1;

    for (int i = 0; i < CALLS; i++) {
        if (!rank)
            nap(20);
        count((char *)&buffer);
    }
    return 0;
}

/* Rank 0 accesses a word of rank 1 and reads it back; rank 1 waits in a barrier. */
static int accesses(int rank)
{
    char buffer[BYTES] = "", read[BYTES];
    int64_t *word, sum = 0;
    int wrong = 0;

    MPI_Win_allocate(sizeof *word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &window);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < CALLS && !rank; i++) {
        memset(buffer, i + 1, BYTES);
        count_put_flush(buffer);
        count_get_flush(read);
        count_fetch_and_op_flush(buffer);
        wrong |= memcmp(buffer, read, BYTES) != 0;
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(&sum, CALLS, BYTES);
    wrong |= rank && *word != sum + 1; /* the last put, and the count behind it */
    MPI_Win_free(&window);
    return wrong;
}

/* The same, by puts alone, in memory that rank 0 does not map. */
static int accesses_created(int rank)
{
    char buffer[BYTES], word[BYTES] = "";
    int wrong;

    MPI_Win_create(word, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock_all(0, window);
    for (int i = 0; i < CALLS && !rank; i++) {
        memset(buffer, i + 1, BYTES);
        count_put_flush_created(buffer);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    memset(buffer, CALLS, BYTES);
    wrong = rank && memcmp(word, buffer, BYTES) != 0;
    MPI_Win_free(&window);
    return wrong;
}
#endif

int main(int argc, char **argv)
{
    char buffer[BYTES] = "";
    int rank, size, wrong;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        fprintf(stderr, "budget: two ranks are wanted, not %d\n", size);
        MPI_Finalize();
        return 2;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    for (int i = 0; i < CALLS && !rank; i++) {
        count_nothing(buffer);
        count_nothing_short(buffer);
        count_send_null(buffer);
    }
    wrong = sends(rank, MPI_COMM_WORLD, count_send);
    wrong |= sends(rank, made, count_send_made);
    wrong |= sends(rank, MPI_COMM_WORLD, count_isend);
    wrong |= sends(rank, MPI_COMM_WORLD, count_wait);
    wrong |= receives(rank, count_recv);
#ifndef FORTRAN
    wrong |= sends(rank, MPI_COMM_WORLD, count_isend_wait);
    wrong |= sends(rank, MPI_COMM_WORLD, count_start_send);
    wrong |= receives(rank, count_irecv_wait);
    wrong |= receives(rank, count_start_recv);
    collectives(count_barrier, rank);
    collectives(count_ibarrier, rank);
    collectives(count_bcast_root, rank);
    collectives(count_ibcast_root, rank);
    collectives(count_allreduce, rank);
    collectives(count_iallreduce, rank);
    collectives(count_scan_first, rank);
    collectives(count_iscan_first, rank);
    collectives(count_gather, rank);
    collectives(count_igather, rank);
    collectives(count_alltoall, rank);
    collectives(count_ialltoall, rank);
    wrong |= accesses(rank);
    wrong |= accesses_created(rank);
#endif
    MPI_Comm_free(&made);
    MPI_Finalize();
    if (wrong) {
        fprintf(stderr, "budget: rank %d has wrong bytes\n", rank);
    }
    return wrong;
}
