/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recovery: the last rank kills itself in the midst of something (mpirun --enable-recovery); the others must get MPI_ERR_PROC_ABORTED where
 * they need it, go on, and have right data. Argument: put, regions, message, lock, target, notify, coll, dead; left: it calls MPI_Finalize.
 * Called by the script `recovery`.
 */
#include <mpi-ext.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { WORDS = 1 << 17, ROUNDS = 20 };

static int rank, size, last;
static MPI_Win win;
static uint64_t *memory, *data;

#define CHECK(holds, ...)                                                    \
    do {                                                                     \
        if (!(holds)) {                                                      \
            fprintf(stderr, "rank %d, line %d: %s: ", rank, __LINE__, #holds); \
            fprintf(stderr, __VA_ARGS__);                                    \
            fprintf(stderr, "\n");                                           \
            MPI_Abort(MPI_COMM_WORLD, 1);                                    \
        }                                                                    \
    } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS, "failed")

/* Checks that the call failed because a process has died. */
static void is_abort(int code, const char *call)
{
    int class;
    CHECK(code != MPI_SUCCESS, "%s did not fail", call);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_PROC_ABORTED, "%s: class %d", call, class);
}

/* Checks also that the text says so. */
static void is_death(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    is_abort(code, call);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "died") || strstr(text, "gone"), "%s: %s", call, text);
}

static void on_alarm(int sig)
{
    (void)sig;
    kill(getpid(), SIGKILL);
}

/* The last rank dies after a short time, in any call. */
static void die_soon(void)
{
    struct itimerval at = {.it_value.tv_usec = 20000 + getpid() % 50 * 1000};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &at, NULL);
}

static void fill(int from, int round)
{
    for (int i = 0; i < WORDS; i++)
        data[i] = (uint64_t)from * 1000003 + (uint64_t)round * 7919 + (uint64_t)i * i;
}

static void verify(const uint64_t *got, int from, int round, const char *what)
{
    for (int i = 0; i < WORDS; i++)
        CHECK(got[i] == (uint64_t)from * 1000003 + (uint64_t)round * 7919 + (uint64_t)i * i, "%s of rank %d, word %d", what, from, i);
}

/* Rank 0 receives from any source: a message of each live rank, and one error for the dead rank. */
static void hear_all(void)
{
    int deaths = 0, value;
    for (int i = 1; i < size; i++) {
        MPI_Status status;
        int rc = MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status);
        if (rc == MPI_SUCCESS)
            continue;
        is_death(rc, "MPI_Recv from any source");
        CHECK(status.MPI_SOURCE == last, "source %d", status.MPI_SOURCE);
        deaths++;
    }
    CHECK(deaths == 1, "%d deaths", deaths);
}

static void tell(void) { OK(MPI_Send(&rank, 1, MPI_INT, 0, 5, MPI_COMM_WORLD)); }

static void open_window(int is_created)
{
    MPI_Aint bytes = rank ? 8 : (MPI_Aint)size * WORDS * 8;
    if (is_created) {
        memory = malloc((size_t)bytes);
        OK(MPI_Win_create(memory, bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    } else
        OK(MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

/* A barrier of the live ranks: none leaves while others need it. */
static void leave_together(void)
{
    for (int i = 1; rank == 0 && i < last; i++)
        OK(MPI_Recv(data, 1, MPI_INT, i, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank) {
        OK(MPI_Send(&rank, 1, MPI_INT, 0, 8, MPI_COMM_WORLD));
        OK(MPI_Recv(data, 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    for (int i = 1; rank == 0 && i < last; i++)
        OK(MPI_Send(&rank, 1, MPI_INT, i, 8, MPI_COMM_WORLD));
}

/* Puts of all ranks to rank 0, to displacement `at` and its own words behind, in which the last rank dies. */
static void put_until_death(MPI_Aint at, MPI_Aint unit)
{
    if (rank == last)
        die_soon();
    for (int round = 0; rank && (round < ROUNDS || rank == last); round++) {
        fill(rank, round);
        OK(MPI_Put(data, WORDS, MPI_UINT64_T, 0, at + (MPI_Aint)rank * WORDS * unit, WORDS, MPI_UINT64_T, win));
        OK(MPI_Win_flush(0, win));
    }
    if (rank)
        tell();
    else
        hear_all();
    OK(MPI_Win_sync(win));
    for (int from = 1; rank == 0 && from < last; from++)
        verify(memory + (size_t)from * WORDS, from, ROUNDS - 1, "put");
}

/* By a device or by messages. */
static void in_a_put(void)
{
    open_window(1);
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    put_until_death(0, 1);
    OK(MPI_Win_unlock_all(win));
}

/* The same on a dynamic window, of which all know a region of rank 0 and one of the last rank. The first is detached when a rank that was
 * told of it is dead, and serves the others when it is attached again. */
static void in_a_region(void)
{
    MPI_Aint bytes = (MPI_Aint)size * WORDS * 8, own, at[16], displacement;
    int rc;
    memory = calloc(1, (size_t)bytes);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_attach(win, memory, bytes));
    OK(MPI_Get_address(memory, &own));
    OK(MPI_Allgather(&own, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; i < 4; i++) {
        int target = i % 2 ? last : 0;
        displacement = at[target] + (MPI_Aint)rank * WORDS * 8;
        OK(MPI_Put(data, WORDS, MPI_UINT64_T, target, displacement, WORDS, MPI_UINT64_T, win));
        OK(MPI_Win_flush(target, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    put_until_death(at[0], 8);
    if (rank == 0) {
        OK(MPI_Win_detach(win, memory));
        memset(memory, 0, (size_t)bytes);
        OK(MPI_Win_attach(win, memory, bytes));
    }
    leave_together();
    rc = MPI_Put(data, WORDS, MPI_UINT64_T, last, at[last], WORDS, MPI_UINT64_T, win);
    is_abort(rc ? rc : MPI_Win_flush(last, win), "MPI_Win_flush of a put to a dead rank's region"); /* a device may know it first */
    MPI_Win_flush(last, win); /* other lost operations are reported now */
    for (int i = 0; i < 2 && rank; i++) {
        fill(rank, i);
        OK(MPI_Put(data, WORDS, MPI_UINT64_T, 0, at[0] + (MPI_Aint)rank * WORDS * 8, WORDS, MPI_UINT64_T, win));
        OK(MPI_Win_flush(0, win));
    }
    leave_together();
    for (int from = 1; rank == 0 && from < last; from++)
        verify(memory + (size_t)from * WORDS, from, 1, "put into the region attached again");
    OK(MPI_Win_unlock_all(win));
}

/* Long and short messages of all ranks to rank 0, which has receives posted. */
static void in_a_message(void)
{
    if (rank == last)
        die_soon();
    for (int round = 0; rank && (round < ROUNDS || rank == last); round++) {
        fill(rank, round);
        OK(MPI_Send(data, round % 3 ? WORDS : 10, MPI_UINT64_T, 0, 6, MPI_COMM_WORLD));
    }
    for (int round = 0; rank == 0 && round < ROUNDS; round++)
        for (int from = 1; from < last; from++) {
            fill(from, round);
            uint64_t *got = malloc(WORDS * 8);
            memcpy(got, data, WORDS * 8);
            memset(got, 0, round % 3 ? WORDS * 8 : 80);
            OK(MPI_Recv(got, WORDS, MPI_UINT64_T, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            verify(got, from, round, "message");
            free(got);
        }
    if (rank == 0) { /* the messages of the dead rank, then the error */
        int rc;
        while ((rc = MPI_Recv(data, WORDS, MPI_UINT64_T, last, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)) == MPI_SUCCESS)
            ;
        is_death(rc, "MPI_Recv");
        hear_all();
    } else
        tell();
}

/* The dead rank holds rank 0's lock. Others, and rank 0, get the lock or an error. */
static void in_a_lock(void)
{
    open_window(0);
    if (rank == last) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        for (int i = 0; i < last; i++)
            OK(MPI_Send(&rank, 1, MPI_INT, i, 7, MPI_COMM_WORLD));
        die_soon();
        for (;;)
            pause();
    }
    OK(MPI_Recv(data, 1, MPI_INT, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    int rc = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    if (rc == MPI_SUCCESS)
        OK(MPI_Win_unlock(0, win));
    else
        is_death(rc, "MPI_Win_lock");
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win)); /* another lock is not touched */
    OK(MPI_Win_unlock(1, win));
    if (rank)
        tell();
    else
        hear_all();
}

/* Locks the last rank, which is gone, until that fails; if it is on this node the lock is in memory, and can be taken. */
static void lock_the_gone(int is_near, const char *word)
{
    int rc = MPI_SUCCESS, length;
    char text[MPI_MAX_ERROR_STRING];
    usleep(400000);
    for (int i = 0; rc == MPI_SUCCESS && (!is_near || i < 10); i++) {
        rc = MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, last, 0, win);
        if (rc == MPI_SUCCESS)
            MPI_Win_unlock(last, win);
    }
    CHECK(is_near == (rc == MPI_SUCCESS), "locking a gone target on %s node", is_near ? "this" : "another");
    if (is_near)
        return;
    is_abort(rc, "MPI_Win_lock");
    MPI_Error_string(rc, text, &length);
    /* a target that is not reachable counts as dead */
    CHECK(strstr(text, "target") && (strstr(text, word) || strstr(text, "died")), "%s", text);
}

#define LONG (1 << 20) /* bytes of a long operation: announced, and fetched by the target */

/* One operation on the last rank that needs its answer, or its part in a rendezvous. */
static int fetch(int kind)
{
    static char block[LONG];
    uint64_t one = 1, zero = 0, got = 0;
    MPI_Request req;
    int rc;
    switch (kind) {
    case 0: rc = MPI_Fetch_and_op(&one, &got, MPI_UINT64_T, last, 0, MPI_SUM, win); break;
    case 1: rc = MPI_Compare_and_swap(&one, &zero, &got, MPI_UINT64_T, last, 0, win); break;
    case 2: rc = MPI_Get_accumulate(&one, 1, MPI_UINT64_T, &got, 1, MPI_UINT64_T, last, 0, 1, MPI_UINT64_T, MPI_SUM, win); break;
    case 3: rc = MPI_Get(&got, 1, MPI_UINT64_T, last, 0, 1, MPI_UINT64_T, win); break;
    case 4: rc = MPI_Put(block, LONG, MPI_BYTE, last, 0, LONG, MPI_BYTE, win); break;
    case 5: rc = MPI_Accumulate(block, LONG, MPI_BYTE, last, 0, LONG, MPI_BYTE, MPI_BOR, win); break;
    case 6:
        rc = MPI_Rput(block, LONG, MPI_BYTE, last, 0, LONG, MPI_BYTE, win, &req);
        return rc ? rc : MPI_Wait(&req, MPI_STATUS_IGNORE);
    default:
        rc = MPI_Rget_accumulate(&one, 1, MPI_UINT64_T, &got, 1, MPI_UINT64_T, last, 0, 1, MPI_UINT64_T, MPI_SUM, win, &req);
        return rc ? rc : MPI_Wait(&req, MPI_STATUS_IGNORE);
    }
    return rc ? rc : MPI_Win_flush(last, win);
}

/* The last rank calls MPI_Finalize while others fetch from it by messages (and by a device, for gets): each kind ends with an error, but
 * for gets and puts that need no part of the process. */
static void fetch_from_the_gone(void)
{
    int rc = MPI_SUCCESS;
    OK(MPI_Win_create(calloc(1, LONG), LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == last) {
        usleep(100000);
        MPI_Finalize();
        exit(0);
    }
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    for (int i = 0; rc == MPI_SUCCESS; i++) /* the end may come in any of them */
        rc = fetch(i % 8);
    is_abort(rc, "an operation that needs an answer");
    for (int kind = 0; kind < 8; kind++)
        if ((rc = fetch(kind)) != MPI_SUCCESS || (kind != 3 && kind != 4 && kind != 6))
            is_abort(rc, "an operation on a target that has left");
}

/* The last rank calls MPI_Finalize while rank 0 holds its lock. MPI_Win_unlock of rank 0 and MPI_Win_lock of the other ranks return. */
static void hold_the_lock_of_the_gone(void)
{
    uint64_t one = 1;
    int rc;
    open_window(0);
    if (rank == 0)
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == last) {
        MPI_Finalize();
        exit(0);
    }
    if (rank == 0) {
        usleep(300000);
        rc = MPI_Put(&one, 1, MPI_UINT64_T, last, 0, 1, MPI_UINT64_T, win);
        if (rc)
            is_abort(rc, "MPI_Put");
        rc = MPI_Win_unlock(last, win);
    } else {
        rc = MPI_Win_lock(MPI_LOCK_SHARED, last, 0, win); /* within a node the lock is in memory, and comes when rank 0 gives it back */
        if (!rc)
            rc = MPI_Win_unlock(last, win);
    }
    if (rc)
        is_abort(rc, "MPI_Win_lock or MPI_Win_unlock");
}

/* The last rank dies, or calls MPI_Finalize, and others ask for its lock then. */
static void a_target_goes(int dies)
{
    MPI_Comm node;
    MPI_Group near, all;
    int is_near;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_group(node, &near));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_translate_ranks(all, 1, &last, near, &is_near));
    is_near = is_near != MPI_UNDEFINED;
    open_window(0);
    if (rank == last && dies) {
        for (int i = 0; i < last; i++) /* all have left the barrier: what this rank sent in it may still be under way */
            OK(MPI_Recv(data, 1, MPI_INT, i, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        kill(getpid(), SIGKILL);
    }
    if (dies)
        OK(MPI_Send(&rank, 1, MPI_INT, last, 9, MPI_COMM_WORLD));
    if (rank == last) {
        MPI_Finalize();
        exit(0);
    }
    lock_the_gone(is_near, dies ? "died" : "MPI_Finalize");
    OK(MPI_Group_free(&near));
    OK(MPI_Group_free(&all));
    if (dies && rank)
        tell();
    else if (dies)
        hear_all();
}

/* Rank 0 waits for more notifications than come, since the dead rank owes them: one wait fails, later ones go on; so does a test. */
static void in_a_notification(void)
{
    MPI_Count value = 0;
    int flag = 0, index = 0, ids[2] = {1, 0}, rc = MPI_SUCCESS;
    open_window(size % 2);
    OK(MPIX_Win_notify_init(win, 2));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (rank == last)
        die_soon();
    for (int round = 0; rank && (round < ROUNDS || rank == last); round++) {
        fill(rank, round);
        rc = MPIX_Put_notify(data, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win, 0);
        CHECK(rc == MPI_SUCCESS || rank == last, "MPIX_Put_notify");
    }
    if (rank == 0) {
        is_death(MPIX_Win_notify_waitany(win, 2, ids, (MPI_Count[]){1000, (MPI_Count)1 << 60}, &index, &value), "MPIX_Win_notify_waitany");
        OK(MPIX_Win_notify_wait(win, 0, ROUNDS * (last - 1), &value));
        OK(MPIX_Win_notify_test(win, 1, 1, &flag, &value));
        CHECK(!flag && !value, "%d, %d", flag, (int)value);
        hear_all();
    } else {
        while (rc == MPI_SUCCESS)
            rc = MPIX_Win_notify_test(win, 1, 1, &flag, &value);
        is_death(rc, "MPIX_Win_notify_test");
        OK(MPI_Win_flush(0, win));
        tell();
    }
    OK(MPI_Win_unlock_all(win));
}

/* Collectives fail on all members; those on a communicator of live ranks do not. */
static void in_a_collective(void)
{
    int rc = MPI_SUCCESS, sum = 0, others[1] = {last};
    MPI_Group all, living;
    MPI_Comm comm;
    if (rank == last)
        die_soon();
    for (int i = 0; rc == MPI_SUCCESS; i++)
        rc = i % 3 == 0 ? MPI_Allreduce(MPI_IN_PLACE, data, 1000, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD)
             : i % 3 == 1 ? MPI_Bcast(data, WORDS / 4, MPI_UINT64_T, i % size, MPI_COMM_WORLD) : MPI_Barrier(MPI_COMM_WORLD);
    is_death(rc, "a collective");
    is_death(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_excl(all, 1, others, &living));
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, living, 3, &comm));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == last * (last - 1) / 2, "%d", sum);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&living));
}

/* The last rank dies before any contact. Each kind of call with it fails. */
static void after_death(void)
{
    MPI_Request reqs[3];
    MPI_Status statuses[3];
    int codes[3], flag;
    if (rank == last)
        kill(getpid(), SIGKILL);
    OK(MPI_Irecv(data, WORDS, MPI_UINT64_T, last, 1, MPI_COMM_WORLD, &reqs[0]));
    is_death(MPI_Wait(&reqs[0], &statuses[0]), "MPI_Wait of a receive");
    is_death(MPI_Recv(data, 1, MPI_INT, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Recv");
    is_death(MPI_Probe(last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "MPI_Probe");
    is_death(MPI_Iprobe(last, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE), "MPI_Iprobe");
    is_death(MPI_Send(data, 1, MPI_INT, last, 1, MPI_COMM_WORLD), "MPI_Send of a short message");
    is_death(MPI_Send(data, WORDS, MPI_UINT64_T, last, 1, MPI_COMM_WORLD), "MPI_Send of a long message");
    is_death(MPI_Ssend(data, 1, MPI_INT, last, 1, MPI_COMM_WORLD), "MPI_Ssend");
    codes[0] = MPI_Isend(data, WORDS, MPI_UINT64_T, last, 1, MPI_COMM_WORLD, &reqs[0]);
    if (codes[0] == MPI_SUCCESS)
        is_death(MPI_Wait(&reqs[0], &statuses[0]), "MPI_Wait of a send");
    if (rank)
        tell();
    else
        hear_all();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    last = size - 1;
    data = malloc(WORDS * 8);
    memset(data, 0, WORDS * 8);
    !strcmp(what, "put") ? in_a_put() : !strcmp(what, "regions") ? in_a_region() : !strcmp(what, "message") ? in_a_message()
        : !strcmp(what, "lock") ? in_a_lock() : !strcmp(what, "notify") ? in_a_notification()
        : !strcmp(what, "target") ? a_target_goes(1) : !strcmp(what, "left") ? a_target_goes(0)
        : !strcmp(what, "fetch") ? fetch_from_the_gone()
        : !strcmp(what, "held") ? hold_the_lock_of_the_gone()
        : !strcmp(what, "coll") ? in_a_collective() : after_death();
    leave_together();
    fprintf(stderr, "%s: rank %d is done\n", what, rank);
    free(data);
    MPI_Finalize();
    return 0;
}
