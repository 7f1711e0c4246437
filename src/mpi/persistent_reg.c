/* SPDX-License-Identifier: BSD-3-Clause
 *
 * persistent_reg: see persistent_reg.h.
 */
#include "mpi/persistent_reg.h"

#include <stdlib.h>

#include "collectives/sched.h"
#include "core/peer.h"

struct weft_keep {
    weft_list_link link;   /* in its world's `keeps` */
    weft_worker *worker;
    weft_reg_persistent *kept;  /* NULL: released when the world closed */
};

weft_keep *weft_keep_take(weft_worker *worker, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_reg_persistent *kept = weft_reg_persist(worker, addr, bytes, rights);
    weft_keep *keep = kept ? malloc(sizeof *keep) : NULL;
    if (!keep) {
        weft_reg_unpersist(worker, kept);
        return NULL;
    }
    keep->worker = worker;
    keep->kept = kept;
    weft_list_append(&((weft_mpi_world *)worker->world->mpi)->keeps, &keep->link);
    return keep;
}

static void give_back(weft_keep *keep)
{
    if (!keep->kept)
        return;
    weft_list_remove(&keep->link);
    weft_reg_unpersist(keep->worker, keep->kept);
    keep->kept = NULL;
}

void weft_keep_drop(weft_keep *keep)
{
    if (keep)
        give_back(keep);
    free(keep);
}

void weft_keep_end_all(weft_mpi_world *mpi)
{
    while (!weft_list_is_empty(&mpi->keeps))
        give_back(weft_container(mpi->keeps.next, weft_keep, link));
}

/* -- persistent collectives -- */

typedef struct span {
    char *from, *to;
    uint32_t rights;
} span;

typedef struct plan_keeps {
    uint32_t count;
    weft_keep *keeps[];
} plan_keeps;

static void drop_plan(void *kept)
{
    plan_keeps *all = kept;
    for (uint32_t i = 0; i < all->count; i++)
        weft_keep_drop(all->keeps[i]);
    free(all);
}

static int by_address(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Is this step's message a contiguous rendezvous over an iface that needs registered memory? Packed or short messages are copied. */
static bool is_span(const weft_sched *sched, const weft_step *step, span *span)
{
    const weft_type *type = step->to_type;
    const weft_peer *peer;
    uint64_t bytes = step->to_count * (uint64_t)type->size, min;
    const char *buf = step->verb == WEFT_STEP_SEND ? step->from : step->to;
    if ((step->verb != WEFT_STEP_SEND && step->verb != WEFT_STEP_RECV) || !type->is_dense)
        return false;
    peer = sched->team->chan->peers[step->peer];
    min = peer ? (uint64_t)peer->eager_max + 1 : WEFT_PERSISTENT_REG_MIN;
    if (bytes < min || (peer && !weft_reg_needed(peer->ep->iface)))
        return false;
    span->from = (char *)buf + type->true_lb;
    span->to = span->from + bytes;
    span->rights = step->verb == WEFT_STEP_SEND ? WEFT_ACCESS_READ : WEFT_ACCESS_WRITE;
    return true;
}

/* Merges overlapping spans into one region: each message must find its memory in a single region. Also merges adjacent spans with
 * equal rights (blocks of one buffer). */
static uint32_t merge(span *spans, uint32_t count)
{
    uint32_t last = 0;
    qsort(spans, count, sizeof *spans, by_address);
    for (uint32_t i = 1; i < count; i++) {
        span *at = &spans[last], *next = &spans[i];
        if (next->from < at->to || (next->from == at->to && next->rights == at->rights)) {
            at->to = next->to > at->to ? next->to : at->to;
            at->rights |= next->rights;
        } else {
            spans[++last] = *next;
        }
    }
    return last + 1;
}

void weft_keep_plan(weft_req *req)
{
    weft_sched *sched = req->extra;
    span *spans = malloc((sched->step_count ? sched->step_count : 1) * sizeof *spans);
    plan_keeps *all = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; spans && i < sched->step_count; i++)
        count += is_span(sched, &sched->steps[i], &spans[count]);
    if (count) {
        count = merge(spans, count);
        all = malloc(sizeof *all + count * sizeof *all->keeps);
    }
    if (all) {
        all->count = count;
        for (uint32_t i = 0; i < count; i++)
            all->keeps[i] = weft_keep_take(req->worker, spans[i].from, (uint64_t)(spans[i].to - spans[i].from),
                                           spans[i].rights);
        sched->kept = all;
        sched->drop_kept = drop_plan;
    }
    free(spans);
}
