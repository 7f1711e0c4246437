/* SPDX-License-Identifier: BSD-3-Clause
 *
 * count_words: ranks count up a word of rank 0 by MPI_Fetch_and_op, in a window with weft_device_atomics, while rank 0 is outside of MPI:
 * no value comes twice, and rank 0 spends almost no CPU time. Arguments: operations of each rank; most seconds.
 */
#include <stdatomic.h>
#include <time.h>

#include "check.h"

static int rank, size;

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Sleeps until all others have put their mark. */
static void stay_away(const int64_t *words)
{
    struct timespec pause = {0, 20000000};
    double begin = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), took;
    for (int marks = 0; marks < size - 1;) {
        nanosleep(&pause, NULL);
        marks = 0;
        for (int r = 1; r < size; r++)
            marks += atomic_load((const _Atomic int64_t *)&words[r]) != 0;
    }
    took = seconds_of(CLOCK_MONOTONIC) - begin;
    cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("rank 0 was outside of MPI for %.1f s and used %.3f s of its CPU meanwhile\n", took, cpu);
    CHECK(cpu < 0.02 * took + 0.05, "%.3f s of CPU in %.1f s", cpu, took);
}

/* Returns how many it did. Values grow: those of all ranks are checked by their sum. */
static int64_t count(MPI_Win win, int64_t most, double seconds, int64_t *sum)
{
    const int64_t one = 1;
    int64_t done = 0, last = -1;
    double end = seconds_of(CLOCK_MONOTONIC) + seconds;
    for (; done < most && (done % 64 || seconds_of(CLOCK_MONOTONIC) < end); done++) {
        int64_t value = -1;
        OK(MPI_Fetch_and_op(&one, &value, MPI_INT64_T, 0, 0, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(value > last, "%lld after %lld", (long long)value, (long long)last);
        last = value;
        *sum += value;
    }
    return done;
}

int main(int argc, char **argv)
{
    int64_t *words, none = 0, mine[2] = {0, 0}, all[2];
    MPI_Info info;
    MPI_Win win;
    check_start(&argc, &argv, &rank, &size);
    CHECK(argc == 3 && size > 1, "usage: count_words OPERATIONS SECONDS");
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "weft_device_atomics", "true"));
    OK(MPI_Win_allocate((MPI_Aint)size * 8, 8, info, MPI_COMM_WORLD, &words, &win));
    OK(MPI_Info_free(&info));
    memset(words, 0, (size_t)size * 8);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (rank) { /* connects */
        OK(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &none, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_NO_OP, win));
        OK(MPI_Win_flush(0, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank) {
        mine[0] = count(win, atoll(argv[1]), atof(argv[2]), &mine[1]);
        OK(MPI_Put(&mine[0], 1, MPI_INT64_T, 0, rank, 1, MPI_INT64_T, win));
        OK(MPI_Win_flush(0, win));
    } else {
        stay_away(words);
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Reduce(mine, all, 2, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD));
    if (!rank) {
        printf("%lld operations\n", (long long)all[0]);
        CHECK(words[0] == all[0] && all[1] == all[0] * (all[0] - 1) / 2, "the word is %lld, the sum of values %lld", (long long)words[0],
              (long long)all[1]);
    }
    OK(MPI_Win_free(&win));
    return MPI_Finalize();
}
