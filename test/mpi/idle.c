/* np: 2 4 : a rank that waits long uses no CPU after the first milliseconds, whatever call it waits in, and wakes at once */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* The fixed cost of a wait is compared with a longer wait at each try, until all cases pass: on a slow machine that cost is high, but
 * only a rank that does not sleep uses the same share of a long wait as of a short one. */
#define TRIES 6

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) + 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static const char *const calls[] = {"MPI_Recv", "MPI_Waitall", "MPI_Barrier"};
static double min[] = {1, 1, 1}; /* CPU time by time waited */

static void waited(int call, double start, double cpu)
{
    double share = (cpu_seconds() - cpu) / (MPI_Wtime() - start);
    if (share < min[call])
        min[call] = share;
}

int main(int argc, char **argv)
{
    int rank, size, value = 0, bad = 0, all_bad = 1;
    double start, cpu;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3 * TRIES && all_bad; i++) {
        int round = i % 3;
        if (rank == 0) {
            usleep(200000u << i / 3);
            for (int to = 1; to < size && round < 2; to++)
                MPI_Send(&value, 1, MPI_INT, to, round, MPI_COMM_WORLD);
            if (round == 2)
                MPI_Barrier(MPI_COMM_WORLD);
        }
        start = MPI_Wtime();
        cpu = cpu_seconds();
        if (rank == 0) {
            value = 0;
        } else if (round == 0) {
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            waited(0, start, cpu);
        } else if (round == 1) {
            MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
            MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
            waited(1, start, cpu);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
            waited(2, start, cpu);
        }
        if (round == 2) {
            bad = rank && (min[0] > 0.1 || min[1] > 0.1 || min[2] > 0.1);
            MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        }
    }
    for (int call = 0; rank && call < 3; call++)
        if (min[call] > 0.1)
            fprintf(stderr, "%s burnt %.3f s of CPU in each second\n", calls[call], min[call]);
    MPI_Finalize();
    return bad;
}
