/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sched_area: see sched_area.h.
 */
#include "collectives/sched_area.h"

#include <string.h>

#include "collectives/sched_internal.h"
#include "collectives/shmcoll_queue.h"

static void on_end(weft_shmcoll_pending *pending)
{
    weft_sched *sched = pending->owner;

    if (!sched->rc)
        sched->rc = pending->rc;
    sched->damage = pending->damage;
    weft_sched_end(sched);
}

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

static const weft_layout *copy_layout(weft_sched *sched, const weft_layout *layout)
{
    weft_layout *own = weft_sched_temp(sched, sizeof *own, weft_sched_bytes());

    if (own)
        *own = (weft_layout){.counts = copy_counts(sched, layout->counts, sched->size),
                             .displs = copy_counts(sched, layout->displs, sched->size)};
    return own;
}

/* The schedule drops the types and closes a lane when it is freed. */
static void own(weft_sched *sched, weft_shmcoll_pending *pending)
{
    if (pending->args.sendtype)
        weft_type_hold(pending->args.sendtype);
    if (pending->args.recvtype)
        weft_type_hold(pending->args.recvtype);
    sched->pending = pending;
}

int weft_sched_record_in_area(weft_team *team, weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, weft_call call, int tag,
                              weft_req **req)
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
                                          .owner = sched};
        pending->args.op = sched->op;
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
    weft_shmcoll_pending *pending = sched->pending;

    pending->area = area;
    if (area)
        return;
    algorithm(sched, &pending->args);
    weft_sched_fence(sched);
    weft_sched_drop_types(&pending->args);
    sched->pending = NULL;
}

void weft_sched_begin_in_area(weft_sched *sched)
{
    int rc = sched->rc ? sched->rc : weft_shmcoll_enqueue(sched->pending);

    if (weft_likely(!rc))
        return;
    if (!sched->rc)
        weft_sched_fail(sched, rc);
    weft_sched_end(sched);
}

void weft_sched_spin(weft_req *req)
{
    const weft_sched *sched = req->extra;

    if (sched->pending && sched->pending->area) /* else the call is deferred */
        weft_shmcoll_spin(sched->pending);
}
