/* SPDX-License-Identifier: BSD-3-Clause
 * notify: notified access with any MPI. Where mpi-ext.h has it (macro MPIX_NOTIFIED_ACCESS) this header only includes that; else it defines
 * the same calls by standard ones, and NOTIFY_FALLBACK: a put, a flush, and an accumulate on a counter in a second window. So a
 * notification costs two round trips, and a wait polls. The calls with a notification are for passive target epochs only (MPI_Win_lock,
 * MPI_Win_lock_all): between fences, or start and complete, no standard call orders the count after the data, and MPI_Win_flush is refused
 * there; then nothing is counted, and the call gives the flush's error (MPI_ERR_RMA_SYNC). C11. NOTIFY_STANDARD, defined before, forces the
 * standard calls.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <mpi.h>

#if defined __has_include && !defined NOTIFY_STANDARD
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#endif

#ifndef MPIX_NOTIFIED_ACCESS
#define NOTIFY_FALLBACK 1

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* A counter has a cache line. MPICH 4.0 over UCX also computes wrong addresses in windows that do not begin at a multiple of 64 bytes. */
enum { NOTIFY_LINE = 64 };

/* Of a window: its attribute. */
typedef struct notify_state
{
    MPI_Win counters; /* of each rank, 64-bit integers, NOTIFY_LINE bytes apart; locked by all as long as it exists */
    int rank;
} notify_state;

/* Key of the attribute. One variable, whatever number of files include this. */
__attribute__((weak)) int notify_keyval = MPI_KEYVAL_INVALID;

static inline int notify_delete(MPI_Win win, int keyval, void *attribute, void *extra)
{
    notify_state *state = (notify_state *)attribute;

    (void)win, (void)keyval, (void)extra;
    MPI_Win_unlock_all(state->counters);
    MPI_Win_free(&state->counters);
    free(state);
    return MPI_SUCCESS;
}

static inline notify_state *notify_of(MPI_Win win)
{
    void *state = NULL;
    int found = 0;

    if (notify_keyval != MPI_KEYVAL_INVALID) {
        MPI_Win_get_attr(win, notify_keyval, &state, &found);
    }
    return found ? (notify_state *)state : NULL;
}

/* A communicator of the window's ranks. Its group is made of MPI_COMM_WORLD's, since MPICH 4.0 ends in MPI_Comm_create_group with a
 * window's. */
static inline void notify_comm(MPI_Win win, MPI_Comm *comm)
{
    MPI_Group group, world, same;
    int n, *ranks;

    MPI_Win_get_group(win, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_size(group, &n);
    ranks = (int *)malloc(2 * (size_t)n * sizeof *ranks);
    for (int i = 0; i < n; i++) {
        ranks[n + i] = i;
    }
    MPI_Group_translate_ranks(group, n, ranks + n, world, ranks);
    MPI_Group_incl(world, n, ranks, &same);
    MPI_Comm_create_group(MPI_COMM_WORLD, same, 0, comm);
    free(ranks);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Group_free(&same);
}

static inline int MPIX_Win_notify_init(MPI_Win win, int count)
{
    notify_state *state;
    MPI_Comm comm;
    int64_t *memory;

    if (notify_of(win) || count < 0 || !(state = (notify_state *)malloc(sizeof *state))) {
        return MPI_ERR_ARG;
    }
    notify_comm(win, &comm);
    MPI_Comm_rank(comm, &state->rank);
    MPI_Win_allocate((MPI_Aint)count * NOTIFY_LINE, NOTIFY_LINE, MPI_INFO_NULL, comm, &memory, &state->counters);
    MPI_Win_lock_all(0, state->counters);
    for (int i = 0; i < count; i++) {
        memory[(size_t)i * NOTIFY_LINE / sizeof *memory] = 0;
    }
    MPI_Win_sync(state->counters);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    if (notify_keyval == MPI_KEYVAL_INVALID) {
        MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, notify_delete, &notify_keyval, NULL);
    }
    return MPI_Win_set_attr(win, notify_keyval, state);
}

/* Completes the operations on the target, then counts. */
static inline int notify_count(MPI_Win win, int target, int id)
{
    notify_state *state = notify_of(win);
    int64_t one = 1;
    int rc;

    if (!state) {
        return MPI_ERR_WIN;
    }
    if (target == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    rc = MPI_Win_flush(target, win);
    rc = rc ? rc : MPI_Accumulate(&one, 1, MPI_INT64_T, target, id, 1, MPI_INT64_T, MPI_SUM, state->counters);
    return rc ? rc : MPI_Win_flush(target, state->counters);
}

static inline int MPIX_Put_notify(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp, int target_count,
                                  MPI_Datatype target_type, MPI_Win win, int id)
{
    int rc = MPI_Put(origin, count, type, target, disp, target_count, target_type, win);

    return rc ? rc : notify_count(win, target, id);
}

static inline int MPIX_Get_notify(void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp, int target_count,
                                  MPI_Datatype target_type, MPI_Win win, int id)
{
    int rc = MPI_Get(origin, count, type, target, disp, target_count, target_type, win);

    return rc ? rc : notify_count(win, target, id);
}

#if MPI_VERSION >= 4
static inline int MPIX_Put_notify_c(const void *origin, MPI_Count count, MPI_Datatype type, int target, MPI_Aint disp,
                                    MPI_Count target_count, MPI_Datatype target_type, MPI_Win win, int id)
{
    int rc = MPI_Put_c(origin, count, type, target, disp, target_count, target_type, win);

    return rc ? rc : notify_count(win, target, id);
}

static inline int MPIX_Get_notify_c(void *origin, MPI_Count count, MPI_Datatype type, int target, MPI_Aint disp, MPI_Count target_count,
                                    MPI_Datatype target_type, MPI_Win win, int id)
{
    int rc = MPI_Get_c(origin, count, type, target, disp, target_count, target_type, win);

    return rc ? rc : notify_count(win, target, id);
}
#endif

/* Reads an own counter, or replaces it by 0. A call, not a load: it gives progress to a library that needs it. */
static inline int notify_fetch(MPI_Win win, int id, MPI_Op op, MPI_Count *value)
{
    notify_state *state = notify_of(win);
    int64_t zero = 0, old = 0;
    int rc;

    if (!state) {
        return MPI_ERR_WIN;
    }
    rc = MPI_Fetch_and_op(&zero, &old, MPI_INT64_T, state->rank, id, op, state->counters);
    rc = rc ? rc : MPI_Win_flush(state->rank, state->counters);
    *value = (MPI_Count)old;
    atomic_thread_fence(memory_order_seq_cst);
    return rc;
}

static inline int MPIX_Win_notify_reset(MPI_Win win, int id, MPI_Count *value)
{
    return notify_fetch(win, id, MPI_REPLACE, value);
}

static inline int MPIX_Win_notify_test(MPI_Win win, int id, MPI_Count threshold, int *flag, MPI_Count *value)
{
    int rc = notify_fetch(win, id, MPI_NO_OP, value);

    *flag = !rc && *value >= threshold;
    return rc;
}

static inline int MPIX_Win_notify_waitany(MPI_Win win, int count, const int ids[], const MPI_Count thresholds[], int *index,
                                          MPI_Count *value)
{
    for (int turn = 1;; turn++) {
        for (int i = 0; i < count; i++) {
            int flag, rc = MPIX_Win_notify_test(win, ids[i], thresholds[i], &flag, value);
            if (rc || flag) {
                *index = i;
                return rc;
            }
        }
        if (turn % 16 == 0) {
            sched_yield(); /* ranks may outnumber CPUs */
        }
    }
}

static inline int MPIX_Win_notify_wait(MPI_Win win, int id, MPI_Count threshold, MPI_Count *value)
{
    int index;

    return MPIX_Win_notify_waitany(win, 1, &id, &threshold, &index, value);
}

#endif
#endif
