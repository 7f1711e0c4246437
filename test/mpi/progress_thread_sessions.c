/* np: 2 4 : sessions alone, and a communicator whose info key calls for the progress thread: it works and ends with each session and at
 * exit */
#include "check.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 16, OUT_S = 120 };

static double in[COUNT], out[COUNT];

static void check_key(MPI_Comm comm, const char *expected)
{
    char value[64] = "";
    int length = sizeof value, flag = 0;
    MPI_Info info;
    OK(MPI_Comm_get_info(comm, &info));
    OK(MPI_Info_get_string(info, "weft_progress_thread", &length, value, &flag));
    CHECK(flag && strcmp(value, expected) == 0, "the key is %s, expected %s", value, expected);
    OK(MPI_Info_free(&info));
}

/* Rank 0 stays outside MPI until the last rank has seen the end of the sum. */
static void reduce_outside(MPI_Comm comm, int rank, int size)
{
    MPI_Request request;
    sigset_t served;
    int pid = (int)getpid();
    sigemptyset(&served);
    sigaddset(&served, SIGUSR1);
    OK(MPI_Bcast(&pid, 1, MPI_INT, 0, comm));
    for (int i = 0; i < COUNT; i++)
        in[i] = rank + i;
    OK(MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request));
    if (rank == 0)
        CHECK(sigtimedwait(&served, NULL, &(struct timespec){.tv_sec = OUT_S}) == SIGUSR1, "nothing progressed outside MPI");
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank == size - 1)
        kill((pid_t)pid, SIGUSR1);
    for (int i = 0; i < COUNT; i++)
        CHECK(out[i] == size * (double)i + size * (size - 1) / 2.0, "element %d is %g", i, out[i]);
}

int main(void)
{
    sigset_t served;
    sigemptyset(&served);
    sigaddset(&served, SIGUSR1);
    sigprocmask(SIG_BLOCK, &served, NULL);
    for (int round = 0; round < 3; round++) {
        MPI_Session session;
        MPI_Group group;
        MPI_Comm comm, other;
        MPI_Info info;
        int rank, size;
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
        OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "weft_progress_thread", "true"));
        OK(MPI_Comm_create_from_group(group, "progress", info, MPI_ERRORS_ARE_FATAL, &comm));
        OK(MPI_Comm_rank(comm, &rank));
        OK(MPI_Comm_size(comm, &size));
        check_rank = rank;
        check_key(comm, "true");
        reduce_outside(comm, rank, size);
        OK(MPI_Info_set(info, "weft_progress_thread", "false"));
        OK(MPI_Comm_dup_with_info(comm, info, &other));
        check_key(other, "false");
        OK(MPI_Info_set(info, "weft_progress_thread", "true"));
        OK(MPI_Comm_set_info(other, info));
        check_key(other, "true");
        reduce_outside(other, rank, size);
        OK(MPI_Info_free(&info));
        OK(MPI_Comm_free(&other));
        OK(MPI_Comm_free(&comm));
        OK(MPI_Group_free(&group));
        OK(MPI_Session_finalize(&session));
    }
    return 0;
}
