/* np: 2 4 : a rank that waits long uses no CPU after the first milliseconds, whatever call it waits in, and wakes at once */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static int waited(const char *call, double start, double cpu)
{
    double wall = MPI_Wtime() - start, burnt = cpu_seconds() - cpu;
    if (burnt > 0.1 * wall) {
        fprintf(stderr, "%s burnt %.3f s of CPU in %.3f s\n", call, burnt, wall);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int rank, size, value = 0, bad = 0;
    double start, cpu;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 3; round++) {
        if (rank == 0) {
            usleep(400000);
            for (int i = 1; i < size && round < 2; i++)
                MPI_Send(&value, 1, MPI_INT, i, round, MPI_COMM_WORLD);
            if (round == 2)
                MPI_Barrier(MPI_COMM_WORLD);
            continue;
        }
        start = MPI_Wtime();
        cpu = cpu_seconds();
        if (round == 0) {
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            bad += waited("MPI_Recv", start, cpu);
        } else if (round == 1) {
            MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
            MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
            bad += waited("MPI_Waitall", start, cpu);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
            bad += waited("MPI_Barrier", start, cpu);
        }
    }
    MPI_Finalize();
    return bad != 0;
}
