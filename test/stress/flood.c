/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flood [MESSAGES]: every rank leaves that many Isends of 8 bytes outstanding to rank 0, which sleeps, receives one message sent behind
 * them on another communicator, and then all from any source: in order, while its memory grows by less than 32 MB. Prints the time of an
 * Isend, the time of all, and the growth. For any MPI; with FLOOD_GROWS=1 in the environment the growth is no failure.
 */
#include "../mpi/check.h"

#include <unistd.h>

enum { TAG = 7, MAX_KB = 32 << 10 };

static MPI_Comm other;
static int rank, size, messages = 1000000;

/* A value of /proc/self/status, KiB. */
static long status_kb(const char *name)
{
    char line[256];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && kb < 0 && fgets(line, sizeof line, status))
        if (!strncmp(line, name, strlen(name)))
            kb = atol(line + strlen(name));
    if (status)
        fclose(status);
    CHECK(kb >= 0, "no %s in /proc/self/status", name);
    return kb;
}

static void flood(double *isend_ns)
{
    int64_t *values = malloc((size_t)messages * sizeof *values);
    MPI_Request *requests = malloc((size_t)messages * sizeof *requests);
    CHECK(values && requests);
    for (int i = 0; i < messages; i++) /* touched before the measurement */
        values[i] = (int64_t)rank << 40 | i, requests[i] = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < messages; i++)
        OK(MPI_Isend(&values[i], 1, MPI_INT64_T, 0, TAG, MPI_COMM_WORLD, &requests[i]));
    *isend_ns = (MPI_Wtime() - start) * 1e9 / messages;
    OK(MPI_Send(&rank, 1, MPI_INT, 0, TAG, other)); /* rank 0 is in MPI while all of them are outstanding */
    OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
    free(values);
    free(requests);
}

static void drain(void)
{
    int *next = calloc((size_t)size, sizeof *next);
    int64_t value;
    MPI_Status status;
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(300000);
    for (int from = size - 1, last; from > 0; from--)
        OK(MPI_Recv(&last, 1, MPI_INT, from, TAG, other, MPI_STATUS_IGNORE));
    for (int64_t left = (int64_t)messages * (size - 1); left > 0; left--) {
        OK(MPI_Recv(&value, 1, MPI_INT64_T, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status));
        int from = status.MPI_SOURCE;
        CHECK(value == ((int64_t)from << 40 | next[from]), "message %d from %d is number %d from %d", next[from], from, (int)value,
              (int)(value >> 40));
        next[from]++;
    }
    free(next);
}

int main(int argc, char **argv)
{
    double isend_ns = 0, slowest = 0;
    check_start(&argc, &argv, &rank, &size);
    if (argc > 1)
        messages = atoi(argv[1]);
    CHECK(messages > 0 && size > 1);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    long before = status_kb("VmRSS:");
    double start = MPI_Wtime();
    if (rank)
        flood(&isend_ns);
    else
        drain();
    double took = MPI_Wtime() - start;
    long growth = status_kb("VmHWM:") - before;
    OK(MPI_Reduce(&isend_ns, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    if (rank == 0) {
        printf("%d x %d messages: %.2f s, %.0f ns an Isend, rank 0 grew by %ld KiB\n", size - 1, messages, took, slowest, growth);
        CHECK(growth < MAX_KB || getenv("FLOOD_GROWS"), "grew by %ld KiB", growth);
    }
    OK(MPI_Comm_free(&other));
    OK(MPI_Finalize());
    return 0;
}
