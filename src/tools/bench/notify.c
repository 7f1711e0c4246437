/* SPDX-License-Identifier: BSD-3-Clause
 * notify: ping-pong of notified puts (MPIX_Put_notify and MPIX_Win_notify_wait; with MPIs that lack these by examples/notify.h): each rank
 * puts into the other's window, and waits for the count of what is put into its own. With --rotate buffer and place rotate together.
 */
#include "buffer.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "../../../examples/notify.h"

enum
{
    TAG_PAIR = 1,
    COUNTER = 0
};

struct bench_notify_state
{
    MPI_Comm comm; /* leader and partner */
    MPI_Win win;
    unsigned char *memory; /* this rank's part of the window */
    int other;             /* rank of the other in comm */
    MPI_Count come;        /* notifications that this rank has waited for */
};

/* Whether the pair goes on: neither rank has failed. */
static bool agrees(const bench_case *c, int failed)
{
    int other = 1;

    MPI_Sendrecv(&failed, 1, MPI_INT, c->partner, TAG_PAIR, &other, 1, MPI_INT, c->partner, TAG_PAIR, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return !failed && !other;
}

static int open_notify(bench_case *c)
{
    int failed = bench_buffer_validation(c, 1) || bench_buffer_open(c, (size_t)c->bytes, (size_t)c->bytes);
    int ranks[2] = {c->is_leader ? c->rank : c->partner, c->is_leader ? c->partner : c->rank};
    MPI_Group all, pair;

    c->notify = calloc(1, sizeof *c->notify);
    if (!agrees(c, failed || !c->notify)) {
        return -1;
    }
    c->share = 0.5;
    c->notify->other = c->is_leader;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, ranks, &pair);
    MPI_Comm_create_group(MPI_COMM_WORLD, pair, TAG_PAIR, &c->notify->comm);
    MPI_Group_free(&pair);
    MPI_Group_free(&all);
    MPI_Win_allocate((MPI_Aint)(c->out.slot_bytes * c->out.slots + BENCH_GUARD), 1, MPI_INFO_NULL, c->notify->comm, &c->notify->memory,
                     &c->notify->win);
    MPIX_Win_notify_init(c->notify->win, 1);
    MPI_Win_lock_all(0, c->notify->win);
    return 0;
}

static void close_notify(bench_case *c)
{
    if (c->notify && c->notify->memory) {
        MPI_Win_unlock_all(c->notify->win);
        MPI_Win_free(&c->notify->win);
        MPI_Comm_free(&c->notify->comm);
    }
    free(c->notify);
    c->notify = NULL;
    bench_buffer_close(c);
}

static size_t memory(const bench_case *c)
{
    return 2 * bench_buffer_memory(c, (size_t)c->bytes, (size_t)c->bytes);
}

static void ping(bench_case *c, const unsigned char *from, size_t at)
{
    int n = (int)c->bytes;

    MPIX_Put_notify(from, n, MPI_BYTE, c->notify->other, (MPI_Aint)at, n, MPI_BYTE, c->notify->win, COUNTER);
}

static void pong(bench_case *c)
{
    MPI_Count value;

    MPIX_Win_notify_wait(c->notify->win, COUNTER, ++c->notify->come, &value);
}

/* Seconds of the round trips. The answer also says that the place may be written again. */
static double run_notify(bench_case *c, long iterations)
{
    double start = MPI_Wtime();

    for (long i = 0; i < iterations; i++) {
        size_t at = c->out.at * c->out.slot_bytes;
        const unsigned char *from = bench_buffer_next(&c->out);
        if (c->is_leader) {
            ping(c, from, at);
            pong(c);
        } else {
            pong(c);
            ping(c, from, at);
        }
    }
    start = MPI_Wtime() - start;
    MPI_Win_flush_all(c->notify->win);
    MPI_Barrier(c->notify->comm);
    return start;
}

/* Both put, and look at what is there when it is counted. */
static void check_notify(bench_case *c, int round)
{
    size_t n = (size_t)c->bytes;

    bench_check_blank(c->notify->memory, n);
    bench_check_fill(c->check_out, n, bench_check_seed(c->rank, c->partner, round, 0));
    MPI_Win_sync(c->notify->win);
    MPI_Barrier(c->notify->comm);
    ping(c, c->check_out, 0);
    pong(c);
    bench_check_message(c, c->notify->memory, n, c->partner, c->rank, round, 0);
    MPI_Win_flush_all(c->notify->win);
    MPI_Barrier(c->notify->comm);
}

const bench_test bench_put_notify = {
    .name = "put_notify",
    .help = "one notified put until its target has seen it (half a round trip)",
    .figure = BENCH_MICROSECONDS,
    .pairs = true,
    .min_bytes = 8,
    .max_bytes = 4 << 20,
    .unit_bytes = 1,
    .memory = memory,
    .open = open_notify,
    .run = run_notify,
    .check = check_notify,
    .close = close_notify,
};
