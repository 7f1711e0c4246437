/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched: collective operations as schedules. An algorithm calls weft_sched_send, recv, copy, reduce, fence, temp, sub, among once, for its
 * rank. An immediate schedule performs each step at once (blocking calls). A recorded one keeps the steps for weft_sched_progress and may be
 * restarted (persistent calls). A started one (nonblocking calls) performs its steps at once until it has to wait; the rest is recorded.
 * Algorithms check no errors, allocate nothing and do no datatype arithmetic: errors are kept in the schedule (struct weft_sched).
 * Every function requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_SCHED_H
#define WEFT_COLLECTIVES_SCHED_H

#include "collectives/team.h"

typedef void weft_sched_algorithm(weft_sched *sched, const weft_coll *args);

/* Steps. Ranks are those of the view; count elements of type at buf. Steps begin in the order of the calls. copy and reduce end before
 * the next step begins. A message ends when it is awaited, or at the next fence: only then may a received buffer be read, or a sent one be
 * overwritten. An algorithm ends with an implicit fence. Messages between two ranks match in the order of the calls on each side. */
/* A message of the schedule, for weft_sched_await. */
typedef uint32_t weft_sched_message;
#define WEFT_SCHED_NO_MESSAGE UINT32_MAX /* an await has no effect */
weft_sched_message weft_sched_send(weft_sched *sched, uint32_t to, const void *buf, uint64_t count, const weft_type *type);
weft_sched_message weft_sched_recv(weft_sched *sched, uint32_t from, void *buf, uint64_t count, const weft_type *type);
/* The schedule sends in one direction only, from the root or to it. Its longer messages are announced, although they might be sent eagerly,
 * if the receiver waits for them: it copies them itself. That is so where a message between the members is one copy by the kernel, but not
 * in a stream of such schedules with one root, which sends them ahead. */
#define WEFT_SCHED_ANNOUNCED 6144 /* bytes */
static inline void weft_sched_one_way(weft_sched *sched, uint32_t root, bool from_root)
{
    uint32_t stream = 2 * root + 1 + from_root;

    sched->announces = weft_coll_is_copied_pair(&sched->team->params, sched->team->size) && sched->team->stream != stream;
    sched->team->stream = stream;
}
/* Later steps begin when this message has ended; other messages go on. No effect if it was awaited before. */
void weft_sched_await(weft_sched *sched, weft_sched_message message);
/* The last sends of a pipeline: bounds how many are under way. All zero at first. */
#define WEFT_SCHED_WINDOW 8
typedef struct weft_sched_window {
    weft_sched_message sent[WEFT_SCHED_WINDOW];
    uint64_t count;
} weft_sched_window;
/* Awaits the oldest send of the window if that is full, before a new one. */
static inline void weft_sched_window_add(weft_sched *sched, weft_sched_window *window, weft_sched_message sent)
{
    weft_sched_message *oldest = &window->sent[window->count++ % WEFT_SCHED_WINDOW];

    if (window->count > WEFT_SCHED_WINDOW)
        weft_sched_await(sched, *oldest);
    *oldest = sent;
}
/* No effect if `to` and `from` are the same memory in the same layout. */
void weft_sched_copy(weft_sched *sched, void *to, uint64_t to_count, const weft_type *to_type, const void *from, uint64_t from_count,
                    const weft_type *from_type);
/* inout = in op inout with the schedule's operator. */
void weft_sched_reduce(weft_sched *sched, const void *in, void *inout, uint64_t count, const weft_type *type);
/* Awaits all messages. */
void weft_sched_fence(weft_sched *sched);
/* call(sched, arg); must not wait. */
void weft_sched_call(weft_sched *sched, weft_sched_callback *call, void *arg);
/* Returns memory for count elements of type with their extent; the address is that of element 0. Freed with the schedule (restarts keep
 * it). Out of memory: returns NULL and the schedule stops, so later steps do not access it. */
void *weft_sched_temp(weft_sched *sched, uint64_t count, const weft_type *type);
/* Runs `algorithm` among `ranks` only: ranks of the current view, including this one; valid during the call. Ends with a fence. */
void weft_sched_sub(weft_sched *sched, const uint32_t *ranks, uint32_t size, weft_sched_algorithm *algorithm, const weft_coll *args);
/* The same among consecutive ranks of the current view, without an array. */
void weft_sched_among(weft_sched *sched, weft_members ranks, weft_sched_algorithm *algorithm, const weft_coll *args);

/* The team's member with this rank in the current view. */
static inline uint32_t weft_sched_member(const weft_sched *sched, uint32_t rank)
{
    return sched->map ? sched->map[rank] : sched->base + rank;
}

#define WEFT_COLL_FEW 1024 /* elements; shorter reductions run under the lock and offer it to no waiting thread */
void weft_coll_call_op(weft_worker *worker, const weft_op *op, const weft_type *type, const void *in, const void *second, void *out,
                       uint64_t count);
/* weft_op_combine for collectives. Releases the lock during user operators and long reductions; the caller holds op and type. */
static inline void weft_coll_combine(weft_worker *worker, const weft_op *op, const weft_type *type, const void *in, const void *second,
                                     void *out, uint64_t count)
{
    if (weft_likely(op->handle && count <= WEFT_COLL_FEW))
        weft_op_combine(op, type, in, second, out, count);
    else
        weft_coll_call_op(worker, op, type, in, second, out, count);
}

/* The same in place: inout = in op inout. */
static inline void weft_coll_apply_op(weft_worker *worker, const weft_op *op, const weft_type *type, const void *in, void *inout,
                                      uint64_t count)
{
    weft_coll_combine(worker, op, type, in, inout, inout, count);
}

/* weft_copy for collectives. Releases the lock during long copies. */
void weft_coll_copy(weft_worker *worker, const weft_type *to_type, void *to, uint64_t to_count, const weft_type *from_type,
                    const void *from, uint64_t from_count);

/* Element i of buf. */
static inline void *weft_sched_at(const void *buf, const weft_type *type, uint64_t i)
{
    return (char *)buf + (int64_t)i * type->extent;
}

/* First element of block i, where count elements are split evenly into `blocks` blocks; i = blocks gives count. */
static inline uint64_t weft_sched_block_start(uint64_t count, uint32_t blocks, uint32_t i)
{
    uint64_t each = count / blocks, more = count % blocks;
    return each * i + (i < more ? i : more);
}

#define WEFT_SCHED_BYTE_HANDLE 0x247 /* MPI_BYTE in the ABI; this layer does not include mpi.h */
/* The type of raw bytes. */
static inline const weft_type *weft_sched_bytes(void) { return weft_type_of((const void *)(uintptr_t)WEFT_SCHED_BYTE_HANDLE); }

/* ---- for coll.c, sched_progress.c and tests; see also sched_internal.h ---- */

void weft_sched_begin_immediate(weft_sched *sched, weft_team *team, int tag);
/* Waits for the requests under way and frees what the schedule owns, not the schedule. Returns its error. */
int weft_sched_end_immediate(weft_sched *sched);
/* Records `algorithm`; *req owns the schedule. On an error *req is NULL and the team has stopped. */
int weft_sched_record(weft_team *team, weft_sched_algorithm *algorithm, const weft_coll *args, int tag, weft_req **req);
/* Nonblocking call: performs the steps of `algorithm` as far as they do not have to wait, and the others by progress. *req: its request,
 * or worker->done_sched if it has ended. WEFT_E_NOMEM: *req is NULL and the team has stopped; later errors are the request's. */
int weft_sched_start(weft_team *team, weft_sched_algorithm *algorithm, const weft_coll *args, int tag, weft_req **req);
/* Makes an empty one: *req owns it. WEFT_E_NOMEM, and the team has stopped. */
int weft_sched_make(weft_team *team, const weft_op *op, int tag, weft_req **req);
/* worker->free_scheds. */
void weft_sched_free_spares(weft_worker *worker);
/* worker->progress_scheds: performs steps of all schedules in worker->scheds. Returns how many schedules. */
int weft_sched_progress(weft_worker *worker);
/* Starts a persistent or newly recorded schedule. */
int weft_sched_restart(weft_req *req);
/* The same, but its first steps are left to progress, except for a call through the area: in the middle of another schedule's end. */
void weft_sched_restart_later(weft_req *req);
/* Records rc (not 0) as damage or as the error that stops the schedule; the latter also stops the team. */
void weft_sched_fail(weft_sched *sched, int rc) __attribute__((cold));
static inline int weft_sched_code(const weft_sched *sched) { return weft_unlikely(sched->rc) ? sched->rc : sched->damage; }
/* Gives the temporary memory back to the worker, which keeps some for later schedules. */
void weft_sched_free_memory(weft_sched *sched);

#endif
