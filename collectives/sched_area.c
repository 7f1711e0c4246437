/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_area: see sched_area.h.
 */
#include "collectives/sched_area.h"

#include <string.h>

#include "base/status.h"
#include "collectives/sched_internal.h"
#include "collectives/shmcoll_queue.h"

/* A copy of the caller's array. out of memory: at is NULL, and the schedule stops. */
static weft_counts copy_counts(weft_sched *sched, weft_counts counts, uint32_t ranks)
{
    weft_counts own = {.width = counts.width};

    if (counts.at)
        own.at = weft_sched_temp(sched, ranks * counts.width, weft_sched_bytes());
    if (own.at)
        memcpy((void *)own.at, counts.at, ranks * counts.width);
    return own;
}

/* Out of memory: NULL, and the schedule stops. */
static const weft_type *const *find_types(weft_sched *sched, const void *const *types, uint32_t ranks)
{
    const weft_type **found = types ? weft_sched_temp(sched, ranks * sizeof *found, weft_sched_bytes()) : NULL;

    for (uint32_t i = 0; found && i < ranks; i++)
        found[i] = weft_type_of(types[i]);
    return found;
}

static const weft_layout *copy_layout(weft_sched *sched, const weft_layout *layout)
{
    weft_layout *own = weft_sched_temp(sched, sizeof *own, weft_sched_bytes());

    if (own)
        *own = (weft_layout){.counts = copy_counts(sched, layout->counts, sched->size),
                             .displs = copy_counts(sched, layout->displs, sched->size),
                             .types = layout->types, .held = find_types(sched, layout->types, sched->size)};
    return own;
}

static void hold_types(const weft_layout *layout, uint32_t ranks)
{
    for (uint32_t i = 0; layout && layout->held && i < ranks; i++)
        weft_type_hold(layout->held[i]);
}

static void drop_types(const weft_layout *layout, uint32_t ranks)
{
    for (uint32_t i = 0; layout && layout->held && i < ranks; i++)
        weft_type_drop(layout->held[i]);
}

void weft_sched_drop_types(const weft_coll *args, uint32_t ranks)
{
    if (args->sendtype)
        weft_type_drop(args->sendtype);
    if (args->recvtype)
        weft_type_drop(args->recvtype);
    drop_types(args->send_layout, ranks);
    drop_types(args->recv_layout, ranks);
}

/* The schedule performs the steps of `algorithm` from now on. */
static void record(weft_sched *sched, weft_sched_algorithm *algorithm, const weft_coll *args)
{
    algorithm(sched, args);
    weft_sched_fence(sched);
    weft_sched_drop_types(&sched->pending->args, sched->size);
    sched->pending = NULL;
}

static void on_end(weft_shmcoll_pending *pending)
{
    weft_sched *sched = pending->owner;

    if (!sched->rc)
        sched->rc = pending->rc;
    sched->damage = pending->damage;
    if (!sched->rc && weft_unlikely(pending->area->left)) {
        weft_coll rest = pending->args;
        rest.moved = &pending->area->moved;
        record(sched, pending->rest, &rest);
        weft_sched_make_ready(sched);
        return;
    }
    weft_sched_end(sched);
}

/* The schedule drops the types and closes a lane when it is freed. */
static void own(weft_sched *sched, weft_shmcoll_pending *pending)
{
    if (pending->args.sendtype)
        weft_type_hold(pending->args.sendtype);
    if (pending->args.recvtype)
        weft_type_hold(pending->args.recvtype);
    hold_types(pending->args.send_layout, sched->size);
    hold_types(pending->args.recv_layout, sched->size);
    sched->pending = pending;
}

int weft_sched_record_in_area(weft_team *team, weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, weft_call call, int tag,
                              weft_sched_algorithm *rest, weft_req **req)
{
    int rc = weft_sched_make(team, args->op, tag, req);
    weft_shmcoll_pending *pending;
    weft_sched *sched;

    if (rc)
        return rc;
    sched = (*req)->extra;
    pending = weft_sched_temp(sched, sizeof *pending, weft_sched_bytes());
    if (pending) {
        *pending = (weft_shmcoll_pending){.area = area, .kind = kind, .args = *args, .call = call, .tag = (uint32_t)tag, .end = on_end,
                                          .rest = rest, .owner = sched};
        pending->args.op = sched->op;
        if (args->send_layout)
            pending->args.send_layout = copy_layout(sched, args->send_layout);
        if (args->recv_layout)
            pending->args.recv_layout = copy_layout(sched, args->recv_layout);
    }
    if (!sched->rc)
        own(sched, pending);
    rc = sched->rc;
    if (rc) {
        weft_req_free(*req);
        *req = NULL;
    }
    return rc;
}

void weft_sched_decide(weft_sched *sched, weft_shmcoll *area, weft_sched_algorithm *algorithm)
{
    sched->pending->area = area;
    if (!area)
        record(sched, algorithm, &sched->pending->args);
}

void weft_sched_begin_in_area(weft_sched *sched)
{
    weft_shmcoll *area = sched->pending->area;
    int rc;

    if (weft_likely(!sched->rc)) {
        rc = weft_shmcoll_enqueue(sched->pending);
        if (weft_likely(!rc))
            return;
        weft_sched_fail(sched, rc);
    } else if (area) { /* NULL: the call was deferred */
        weft_shmcoll_drop_attempt(area);
    }
    weft_sched_end(sched);
}

void weft_sched_spin(weft_req *req)
{
    const weft_sched *sched = req->extra;

    if (sched->pending && sched->pending->area) /* else the call is deferred */
        weft_shmcoll_spin(sched->pending);
}
