/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window_limits: windows of rising sizes where the node may have no room for them: each is made and works, or all ranks get an error with a
 * text. Prints one line for each. Argument: most MiB of each rank. Called by the script `window_limits`.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* Every rank writes three words of each member's memory, near its begin, middle and end, and reads them back. */
static int is_working(MPI_Win win, MPI_Aint words)
{
    MPI_Aint places[] = {rank, words / 2 + rank, words - 1 - rank};
    uint64_t got[3][16] = {{0}}, value[3][16];
    int bad = 0, all;
    MPI_Win_fence(0, win);
    for (int i = 0; i < 3; i++)
        for (int to = 0; to < size; to++) {
            value[i][to] = (uint64_t)rank * 1000 + (uint64_t)(10 * to + i);
            MPI_Put(&value[i][to], 1, MPI_UINT64_T, to, places[i], 1, MPI_UINT64_T, win);
        }
    MPI_Win_fence(0, win);
    for (int i = 0; i < 3; i++)
        for (int to = 0; to < size; to++)
            MPI_Get(&got[i][to], 1, MPI_UINT64_T, to, places[i], 1, MPI_UINT64_T, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 3; i++)
        for (int to = 0; to < size; to++)
            bad |= got[i][to] != value[i][to];
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return !all;
}

static void try_one(const char *what, int is_shared, MPI_Aint bytes)
{
    MPI_Win win;
    char *memory, text[MPI_MAX_ERROR_STRING] = "";
    int length, failed, all, rc = is_shared ? MPI_Win_allocate_shared(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win)
                                            : MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    failed = rc != MPI_SUCCESS;
    if (failed)
        MPI_Error_string(rc, text, &length);
    if (MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) { /* no memory for collectives either */
        if (failed)
            printf("%s %lld: %s\n", what, (long long)bytes, text);
        fflush(stdout);
        MPI_Finalize();
        exit(0);
    }
    if (all && all != size)
        printf("rank %d: %s %lld: %d of %d ranks failed\n", rank, what, (long long)bytes, all, size);
    else if (all && rank == 0)
        printf("%s %lld: %s\n", what, (long long)bytes, text);
    if (all)
        return;
    int works = is_working(win, bytes / 8);
    if (rank == 0)
        printf("%s %lld: %s\n", what, (long long)bytes, works ? "works" : "WRONG DATA");
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    MPI_Aint most = (MPI_Aint)(argc > 1 ? atoi(argv[1]) : 64) << 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (MPI_Aint bytes = 4096; bytes <= most; bytes *= 16) {
        try_one("allocate", 0, bytes);
        try_one("shared", 1, bytes);
    }
    try_one("allocate", 0, most);
    try_one("shared", 1, most);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
