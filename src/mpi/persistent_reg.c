/* SPDX-License-Identifier: BSD-3-Clause
 *
 * persistent_reg: see persistent_reg.h.
 */
#include "mpi/persistent_reg.h"

#include <stdlib.h>

#include "collectives/sched.h"
#include "core/peer.h"

struct weft_persistent_reg {
    weft_list_link link;   /* in its world's `keeps` */
    weft_worker *worker;
    weft_reg_persistent *registration;  /* NULL: released when the world closed */
};

weft_persistent_reg *weft_persistent_reg_acquire(weft_worker *worker, const void *addr, uint64_t bytes, uint32_t access)
{
    weft_reg_persistent *registration = weft_reg_persist(worker, addr, bytes, access);
    weft_persistent_reg *reg = registration ? malloc(sizeof *reg) : NULL;
    if (!reg) {
        weft_reg_unpersist(worker, registration);
        return NULL;
    }
    reg->worker = worker;
    reg->registration = registration;
    weft_list_append(&((weft_mpi_world *)worker->world->mpi)->persistent_regs, &reg->link);
    return reg;
}

static void release(weft_persistent_reg *reg)
{
    if (!reg->registration)
        return;
    weft_list_remove(&reg->link);
    weft_reg_unpersist(reg->worker, reg->registration);
    reg->registration = NULL;
}

void weft_persistent_reg_release(weft_persistent_reg *reg)
{
    if (reg)
        release(reg);
    free(reg);
}

void weft_persistent_reg_release_all(weft_mpi_world *mpi)
{
    while (!weft_list_is_empty(&mpi->persistent_regs))
        release(weft_container(mpi->persistent_regs.next, weft_persistent_reg, link));
}

/* -- persistent collectives -- */

typedef struct span {
    char *from, *to;
    uint32_t access;
} span;

typedef struct sched_regs {
    uint32_t count;
    weft_persistent_reg *persistent_regs[];
} sched_regs;

static void free_sched_regs(void *registration)
{
    sched_regs *all = registration;
    for (uint32_t i = 0; i < all->count; i++)
        weft_persistent_reg_release(all->persistent_regs[i]);
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
    const char *buf = step->op == WEFT_STEP_SEND ? step->from : step->to;
    if ((step->op != WEFT_STEP_SEND && step->op != WEFT_STEP_RECV) || !type->is_dense)
        return false;
    peer = sched->team->chan->peers[step->peer];
    min = peer ? (uint64_t)peer->eager_max + 1 : WEFT_PERSISTENT_REG_MIN;
    if (bytes < min || (peer && !weft_reg_needed(peer->ep->iface)))
        return false;
    span->from = (char *)buf + type->true_lb;
    span->to = span->from + bytes;
    span->access = step->op == WEFT_STEP_SEND ? WEFT_ACCESS_READ : WEFT_ACCESS_WRITE;
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
        if (next->from < at->to || (next->from == at->to && next->access == at->access)) {
            at->to = next->to > at->to ? next->to : at->to;
            at->access |= next->access;
        } else {
            spans[++last] = *next;
        }
    }
    return last + 1;
}

void weft_persistent_reg_acquire_sched(weft_req *req)
{
    weft_sched *sched = req->extra;
    span *spans = malloc((sched->step_count ? sched->step_count : 1) * sizeof *spans);
    sched_regs *all = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; spans && i < sched->step_count; i++)
        count += is_span(sched, &sched->steps[i], &spans[count]);
    if (count) {
        count = merge(spans, count);
        all = malloc(sizeof *all + count * sizeof *all->persistent_regs);
    }
    if (all) {
        all->count = count;
        for (uint32_t i = 0; i < count; i++)
            all->persistent_regs[i] = weft_persistent_reg_acquire(req->worker, spans[i].from, (uint64_t)(spans[i].to - spans[i].from),
                                                                  spans[i].access);
        sched->regs = all;
        sched->free_regs = free_sched_regs;
    }
    free(spans);
}
