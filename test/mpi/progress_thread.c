/* np: 2 3 4 : with WEFT_PROGRESS_THREAD=on operations progress while a rank stays outside MPI; the program's operators run on its thread */
/* The rank that stays outside waits for a signal, which another rank sends when the operation has ended there: no result depends on time,
 * and without the thread the outside rank waits for all of OUT_S. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 17, PARTITIONS = 8, OUT_S = 120 };

static double in[COUNT], out[COUNT];
static int size, pids[64], wrong_threads;
static pthread_t main_thread;

/* This rank leaves MPI until so many ranks have called let_in(). */
static void stay_out(const char *what, int left)
{
    sigset_t served;
    sigemptyset(&served);
    sigaddset(&served, SIGRTMIN);
    for (; left > 0; left--)
        if (sigtimedwait(&served, NULL, &(struct timespec){.tv_sec = OUT_S}) != SIGRTMIN) {
            CHECK(0, "%s: nothing progressed while rank %d was outside MPI", what, check_rank);
            exit(1);
        }
}

static void let_in(int who) { kill((pid_t)pids[who], SIGRTMIN); }

static void set_data(int round)
{
    for (int i = 0; i < COUNT; i++) {
        in[i] = (double)((i * 7 + round + check_rank) % 1009);
        out[i] = -1;
    }
}

static void check_sums(int count, int round, const char *what)
{
    for (int i = 0; i < count; i++) {
        double sum = 0;
        for (int rank = 0; rank < size; rank++)
            sum += (double)((i * 7 + round + rank) % 1009);
        CHECK(out[i] == sum, "%s: element %d is %g, expected %g", what, i, out[i], sum);
    }
}

static void check_copy(int from, int round, const char *what)
{
    for (int i = 0; i < COUNT; i++)
        CHECK(out[i] == (double)((i * 7 + round + from) % 1009), "%s: element %d is %g", what, i, out[i]);
}

static void receive_outside(int who, int round)
{
    MPI_Request request;
    set_data(round);
    for (int from = 0; from < size; from++)
        if (check_rank == who && from != who) {
            OK(MPI_Irecv(out, COUNT, MPI_DOUBLE, from, 1, MPI_COMM_WORLD, &request));
            OK(MPI_Send(NULL, 0, MPI_BYTE, from, 2, MPI_COMM_WORLD));
            stay_out("a receive", 1);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            check_copy(from, round, "a receive");
        } else if (check_rank == from && from != who) {
            OK(MPI_Recv(NULL, 0, MPI_BYTE, who, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Ssend(in, COUNT, MPI_DOUBLE, who, 1, MPI_COMM_WORLD));
            let_in(who);
        }
}

static void send_outside(int who, int round)
{
    MPI_Request requests[64];
    set_data(round);
    if (check_rank == who) {
        for (int to = 0; to < size; to++)
            OK(MPI_Isend(in, COUNT, MPI_DOUBLE, to == who ? MPI_PROC_NULL : to, 3, MPI_COMM_WORLD, &requests[to]));
        stay_out("a send", size - 1);
        OK(MPI_Waitall(size, requests, MPI_STATUSES_IGNORE));
    } else {
        OK(MPI_Recv(out, COUNT, MPI_DOUBLE, who, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check_copy(who, round, "a send");
        let_in(who);
    }
}

/* More short messages than a peer gives credit for. */
static void burst_outside(int who, int round)
{
    enum { MANY = 8000, WORDS = 32 };
    static MPI_Request requests[MANY];
    int to = (who + 1) % size;
    set_data(round);
    if (check_rank == who) {
        for (int i = 0; i < MANY; i++)
            OK(MPI_Isend(in + i, WORDS, MPI_DOUBLE, to, 5, MPI_COMM_WORLD, &requests[i]));
        stay_out("a burst of short messages", 1);
        OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    } else if (check_rank == to) {
        usleep(1000);
        for (int i = 0; i < MANY; i++) {
            OK(MPI_Recv(out, WORDS, MPI_DOUBLE, who, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int k = 0; k < WORDS; k++)
                CHECK(out[k] == (double)(((i + k) * 7 + round + who) % 1009), "message %d: element %d is %g", i, k, out[k]);
        }
        let_in(who);
    }
}

static void reduce_outside(int who, int round, int count, MPI_Request *persistent)
{
    MPI_Request request = MPI_REQUEST_NULL;
    set_data(round);
    if (persistent)
        OK(MPI_Start(persistent));
    else
        OK(MPI_Iallreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request));
    if (check_rank == who)
        stay_out("a reduction", size - 1);
    OK(MPI_Wait(persistent ? persistent : &request, MPI_STATUS_IGNORE));
    if (check_rank != who)
        let_in(who);
    check_sums(count, round, "a reduction");
}

static void partitions_outside(int round)
{
    MPI_Request request;
    set_data(round);
    if (check_rank == 0) {
        OK(MPI_Precv_init(out, PARTITIONS, COUNT / PARTITIONS, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        stay_out("a partitioned receive", 1);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check_copy(1, round, "a partitioned receive");
        OK(MPI_Request_free(&request));
    } else if (check_rank == 1) {
        OK(MPI_Psend_init(in, PARTITIONS, COUNT / PARTITIONS, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        OK(MPI_Start(&request));
        OK(MPI_Pready_range(0, PARTITIONS - 1, request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        let_in(0);
        OK(MPI_Request_free(&request));
    }
}

static void add(void *from, void *into, int *count, MPI_Datatype *type)
{
    double *a = from, *b = into;
    (void)type;
    wrong_threads += !pthread_equal(pthread_self(), main_thread);
    for (int i = 0; i < *count; i++)
        b[i] += a[i];
}

/* Another operation keeps the thread at work meanwhile. */
static void operator_on_own_thread(int round)
{
    MPI_Request requests[2];
    static double sum;
    double one = 1;
    MPI_Op op;
    OK(MPI_Op_create(add, 1, &op));
    set_data(round);
    OK(MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, op, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Op_free(&op));
    if (check_rank == 0)
        usleep(20000);
    OK(MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[1]));
    usleep(20000);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(sum == size, "the sum of ones is %g", sum);
    check_sums(COUNT, round, "a reduction by the program's operator");
    CHECK(!wrong_threads, "the program's operator ran %d times on another thread", wrong_threads);
}

static void fork_beside(int round)
{
    MPI_Request request;
    int status = 0;
    pid_t child;
    set_data(round);
    OK(MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request));
    child = fork();
    if (!child)
        exit(0); /* with the exit handlers of the library */
    CHECK(waitpid(child, &status, 0) == child && status == 0, "a forked child ended with %d", status);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_sums(COUNT, round, "a reduction beside a fork");
}

int main(int argc, char **argv)
{
    MPI_Request persistent;
    sigset_t served;
    int pid = (int)getpid();
    sigemptyset(&served);
    sigaddset(&served, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &served, NULL);
    setenv("WEFT_PROGRESS_THREAD", "on", 1);
    setenv("WEFT_RNDV_SCHEME", "copy", 1); /* the sender's CPU is needed too */
    main_thread = pthread_self();
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Allreduce_init(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent));
    for (int round = 0; round < 6; round++) {
        receive_outside(round % size, round);
        send_outside(round % size, round);
        burst_outside(round % size, round);
        reduce_outside(round % size, round, 1, NULL);
        reduce_outside(round % size, round, COUNT, NULL);
        reduce_outside(round % size, round, COUNT, &persistent);
        partitions_outside(round);
        operator_on_own_thread(round);
        fork_beside(round);
    }
    OK(MPI_Request_free(&persistent));
    OK(MPI_Finalize());
    return 0;
}
