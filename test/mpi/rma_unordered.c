/* np: 1 2 3 4 : windows with the info key accumulate_ordering=none: many fetches of one counter under way at once, each value fetched
 * once */
/* SPDX-License-Identifier: BSD-3-Clause */
/* With the argument "ordered" without the key. Rank 0 prints how long a fetch took. */
#include "check.h"

enum { AT_ONCE = 64, TURNS = 40, COUNTER = 0, SUM, WORDS };

int main(int argc, char **argv)
{
    int rank, size, all;
    int64_t *mine, *got, *times, one = 1, two = 2;
    double from, took;
    MPI_Info info;
    MPI_Win win;
    check_start(&argc, &argv, &rank, &size);
    all = size * AT_ONCE * TURNS;
    got = malloc(AT_ONCE * sizeof *got);
    times = calloc((size_t)(2 * size * all), sizeof *times);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "weft_device_atomics", "true"));
    if (argc < 2 || strcmp(argv[1], "ordered"))
        OK(MPI_Info_set(info, "accumulate_ordering", "none"));
    OK(MPI_Win_allocate(WORDS * sizeof *mine, sizeof *mine, info, MPI_COMM_WORLD, &mine, &win));
    OK(MPI_Info_free(&info));
    memset(mine, 0, WORDS * sizeof *mine);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    from = MPI_Wtime();
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 1; i <= size; i++) {
            int target = (rank + i) % size;
            for (int k = 0; k < AT_ONCE; k++) {
                OK(MPI_Fetch_and_op(&one, &got[k], MPI_INT64_T, target, COUNTER, MPI_SUM, win));
                OK(MPI_Accumulate(&two, 1, MPI_INT64_T, target, SUM, 1, MPI_INT64_T, MPI_SUM, win));
            }
            OK(MPI_Win_flush(target, win));
            for (int k = 0; k < AT_ONCE; k++) {
                CHECK(got[k] >= 0 && got[k] < all, "%lld", (long long)got[k]);
                times[target * all + got[k]]++;
            }
        }
    took = MPI_Wtime() - from;
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Allreduce(times, times + size * all, size * all, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < size * all; i++)
        CHECK(times[size * all + i] == 1, "value %d of rank %d: %lld times", i % all, i / all, (long long)times[size * all + i]);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    CHECK(mine[COUNTER] == all && mine[SUM] == 2 * all, "%lld, %lld", (long long)mine[COUNTER], (long long)mine[SUM]);
    OK(MPI_Win_unlock(rank, win));
    if (rank == 0)
        printf("a fetch and a sum: %.3f us\n", took * 1e6 / TURNS / size / AT_ONCE);
    OK(MPI_Win_free(&win));
    free(times);
    free(got);
    OK(MPI_Finalize());
    return 0;
}
