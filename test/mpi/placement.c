/* np: 1 3 4 8 : where ranks share CPUs they are placed evenly at the start; no rank is bound, before and after collectives that sleep */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <unistd.h>

#include "check.h"

int main(void)
{
    int rank, size, here[8], cpus, most = 0;
    cpu_set_t before, after;
    CHECK(!sched_getaffinity(0, sizeof before, &before));
    check_start(NULL, NULL, &rank, &size);
    cpus = CPU_COUNT(&before);
    for (int i = 0; i < 200; i++) {
        int cpu = sched_getcpu();
        if (i % 20 == rank)
            usleep(3000); /* the others sleep meanwhile, and are woken */
        OK(MPI_Allgather(&cpu, 1, MPI_INT, here, 1, MPI_INT, MPI_COMM_WORLD));
        CHECK(CPU_ISSET(here[rank], &before), "CPU %d", here[rank]);
        CHECK(!sched_getaffinity(0, sizeof after, &after) && CPU_EQUAL(&before, &after), "%d CPUs, not %d", CPU_COUNT(&after), cpus);
    }
    for (int i = 0; i < size; i++) {
        int mates = 0;
        for (int j = 0; j < size; j++)
            mates += here[j] == here[i];
        most = mates > most ? mates : most;
    }
    if (!rank) /* the kernel has the last word */
        printf("%d ranks on %d CPUs, at most %d on one\n", size, cpus, most);
    OK(MPI_Finalize());
    return 0;
}
