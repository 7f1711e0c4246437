/* np: 2 4 : with WEFT_PROGRESS_THREAD=on a rank uses no CPU while an operation waits for another rank, outside MPI and in a call */
#include "check.h"

#include <sys/resource.h>
#include <unistd.h>

/* As in idle.c: longer waits at each try, until both shares are small. */
#define TRIES 6
enum { COUNT = 1 << 17 };

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static double min[] = {1, 1, 1}; /* CPU time by time waited: outside MPI, in a call, outside with nothing under way */

static void waited(int where, double start, double cpu)
{
    double share = (cpu_seconds() - cpu) / (MPI_Wtime() - start);
    if (share < min[where])
        min[where] = share;
}

int main(int argc, char **argv)
{
    static double in[COUNT], out[COUNT];
    int rank, size, bad = 1, all_bad = 1;
    setenv("WEFT_PROGRESS_THREAD", "on", 1);
    check_start(&argc, &argv, &rank, &size);
    for (int i = 0; i < TRIES && all_bad; i++) {
        useconds_t wait_us = 200000u << i;
        MPI_Request request;
        double start, cpu;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank > 0)
            OK(MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request));
        start = MPI_Wtime();
        cpu = cpu_seconds();
        usleep(wait_us);
        waited(0, start, cpu);
        if (rank == 0) {
            usleep(wait_us);
            OK(MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request));
        }
        start = MPI_Wtime();
        cpu = cpu_seconds();
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (rank > 0)
            waited(1, start, cpu);
        start = MPI_Wtime();
        cpu = cpu_seconds();
        usleep(wait_us);
        waited(2, start, cpu);
        bad = min[0] > 0.1 || (rank && min[1] > 0.1) || min[2] > 0.1;
        OK(MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
    CHECK(!bad, "shares of a CPU: %.3f outside MPI, %.3f in MPI_Wait, %.3f with nothing under way", min[0], min[1], min[2]);
    OK(MPI_Finalize());
    return 0;
}
