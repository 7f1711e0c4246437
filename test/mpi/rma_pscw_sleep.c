/* np: 2 4 : post and complete wake those that sleep in start and wait, and nobody sleeps on for a second */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "tool_counter.h"

#include <time.h>
#include <unistd.h>

/* Longer than any wait spins, so that the other ranks sleep; by turns before each call that others wait for. */
static void nap(int does)
{
    struct timespec time = {0, 4000000};
    if (does)
        nanosleep(&time, NULL);
}

/* A sleep that nobody ends lasts a second: without wake-ups the turns take minutes, with them a second. */
enum { TURNS = 240, SECONDS = 60 };

int main(int argc, char **argv)
{
    int rank, size, provided;
    int64_t *mine;
    MPI_Group all;
    MPI_Win win;
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_Win_allocate(size * (MPI_Aint)sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    OK(MPI_Win_get_group(win, &all));
    MPI_T_pvar_handle sleeps = counter("weft_sleeps");
    unsigned long long slept;
    alarm(SECONDS);
    for (int64_t turn = 0; turn < TURNS; turn++) {
        nap(turn % (2 * size) == 2 * rank);
        OK(MPI_Win_post(all, 0, win));
        OK(MPI_Win_start(all, 0, win));
        for (int to = 0; to < size; to++)
            OK(MPI_Put(&turn, 1, MPI_INT64_T, to, rank, 1, MPI_INT64_T, win));
        nap(turn % (2 * size) == 2 * rank + 1);
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
        for (int from = 0; from < size; from++)
            CHECK(mine[from] == turn, "%ld from %d in turn %ld", (long)mine[from], from, (long)turn);
    }
    alarm(0);
    slept = value_of(sleeps);
    OK(MPI_Allreduce(MPI_IN_PLACE, &slept, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(slept, "no rank has slept: the test is void");
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_Group_free(&all));
    OK(MPI_Win_free(&win));
    OK(MPI_Finalize());
    OK(MPI_T_finalize());
    return 0;
}
