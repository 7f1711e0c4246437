/* np: 2 3 : a receiver that computes first is flooded with unexpected messages: its memory stays bounded and all arrive */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

/* Without a bound about 100 MiB would accumulate; each sender may leave 1 MiB (knob credit_kib) and announce the rest. */
enum { MANY = 100000, BYTES = 1024, BOUND_MIB = 24 };

static int rank, size;

/* MiB of memory that this process has ever had resident. */
static long peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

int main(int argc, char **argv)
{
    unsigned char message[BYTES];
    check_start(&argc, &argv, &rank, &size);
    if (rank) {
        for (int i = 0; i < MANY; i++) {
            check_fill(message, BYTES, (unsigned)i);
            OK(MPI_Send(message, i % BYTES + 1, MPI_BYTE, 0, i % 1000, MPI_COMM_WORLD));
        }
    } else {
        long before = peak_mib(), after;
        double until = MPI_Wtime() + 0.5;
        int flag;
        usleep(100000);             /* "computes" */
        while (MPI_Wtime() < until) /* progress without a receive: all messages are unexpected */
            OK(MPI_Iprobe(MPI_ANY_SOURCE, 5000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        for (int from = size - 1; from > 0; from--)
            for (int i = 0; i < MANY; i++) {
                int count;
                MPI_Status status;
                OK(MPI_Recv(message, BYTES, MPI_BYTE, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
                OK(MPI_Get_count(&status, MPI_BYTE, &count));
                CHECK(status.MPI_TAG == i % 1000 && count == i % BYTES + 1 &&
                          check_wrong(message, (size_t)count, (unsigned)i) == (size_t)count,
                      "message %d from %d: tag %d, %d bytes", i, from, status.MPI_TAG, count);
            }
        after = peak_mib();
        CHECK(after - before < BOUND_MIB, "%ld MiB before the flood, %ld after", before, after);
    }
    OK(MPI_Finalize());
    return 0;
}
