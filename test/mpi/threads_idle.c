/* np: 2 4 : threads of a rank that sleep in one worker do not keep each other awake while one of them gets messages now and then */
#include "check.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#define TICKS 100
#define WAITERS 3
/* The best counts, with more time between messages at each try until all cases pass: on a slow machine a message costs much CPU time, but
 * only threads that keep each other awake use all of the time between them. */
#define TRIES 6
#define SLEEPS_MAX(tries) ((tries) * (TICKS + 4ull) * (WAITERS + 1) * 4)

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static void *wait_long(void *arg)
{
    int tag = 100 + *(int *)arg, value;
    OK(MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return NULL;
}

static void tick(int rank, int size, useconds_t apart_us)
{
    int value = 0;
    for (int i = 0; i < TICKS; i++)
        if (rank > 0)
            OK(MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        else {
            usleep(apart_us);
            for (int to = 1; to < size; to++)
                OK(MPI_Send(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD));
        }
}

int main(int argc, char **argv)
{
    int rank, size, provided, index, count, value = 0, number[WAITERS], bad = 1, all_bad = 1, tries;
    unsigned long long sleeps = 0;
    pthread_t waiters[WAITERS];
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    setenv("WEFT_SLEEP", "always", 1); /* independent of the number of CPUs */
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_get_index("weft_sleeps", MPI_T_PVAR_CLASS_COUNTER, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    for (int i = 0; rank > 0 && i < WAITERS; i++) {
        number[i] = i;
        CHECK(pthread_create(&waiters[i], NULL, wait_long, &number[i]) == 0);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_T_pvar_start(session, handle));
    double min = 1;
    for (tries = 0; tries < TRIES && all_bad; tries++) {
        double start = MPI_Wtime(), cpu = cpu_seconds(), share;
        tick(rank, size, 2000u << tries);
        share = (cpu_seconds() - cpu) / (MPI_Wtime() - start);
        if (share < min)
            min = share;
        bad = min >= 0.4;
        OK(MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
    OK(MPI_T_pvar_read(session, handle, &sleeps));
    CHECK(sleeps < SLEEPS_MAX(tries), "slept %llu times for %d messages", sleeps, tries * TICKS);
    CHECK(!bad, "burnt %.3f s of CPU in each second", min);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int to = 1; rank == 0 && to < size; to++)
        for (int i = 0; i < WAITERS; i++)
            OK(MPI_Send(&value, 1, MPI_INT, to, 100 + i, MPI_COMM_WORLD));
    for (int i = 0; rank > 0 && i < WAITERS; i++)
        pthread_join(waiters[i], NULL);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
