/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_pool: see rndv_pool.h. Free states form a stack: the latest freed is in the cache. Index 0 is not used: an id is never 0.
 */
#include "p2p/rndv_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/worker.h"
#include "p2p/chan.h"

#define INDEX_MASK ((1u << WEFT_RNDV_ID_BITS) - 1)

typedef struct weft_rndv_cell {
    _Alignas(WEFT_LINE) weft_rndv rndv;
} cell;
_Static_assert(offsetof(weft_rndv, arrived) + 8 <= WEFT_LINE, "a send uses little beyond the first line");

int weft_rndv_pool_open(weft_worker *worker)
{
    weft_rndv_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return weft_fail(WEFT_E_NOMEM, "no memory for the states of long messages");
    pool->max = INDEX_MASK;
    pool->reserve = WEFT_RNDV_RECV_RESERVE;
    weft_list_init(&pool->pending);
    worker->rndv_pool = pool;
    return 0;
}

void weft_rndv_pool_close(weft_worker *worker)
{
    weft_rndv_pool *pool = worker->rndv_pool;
    for (uint32_t i = 0; i < pool->slab_count; i++)
        free(pool->slabs[i]);
    free(pool->slabs);
    free(pool);
    worker->rndv_pool = NULL;
}

static weft_rndv *state_at(const weft_rndv_pool *pool, uint32_t index)
{
    return &pool->slabs[index / WEFT_RNDV_SLAB][index % WEFT_RNDV_SLAB].rndv;
}

static void push_free(weft_rndv_pool *pool, uint32_t index)
{
    state_at(pool, index)->next_free = pool->free;
    pool->free = index;
    pool->free_count++;
}

/* False: all that there may be are made, or out of memory. */
static bool grow(weft_rndv_pool *pool)
{
    uint32_t first = pool->slab_count * WEFT_RNDV_SLAB;
    cell *slab;
    if (first > pool->max)
        return false;
    if (pool->slab_count == pool->slab_capacity) {
        uint32_t capacity = pool->slab_capacity ? 2 * pool->slab_capacity : 4;
        cell **more = realloc(pool->slabs, capacity * sizeof *more);
        if (!more)
            return false;
        pool->slabs = more;
        pool->slab_capacity = capacity;
    }
    slab = aligned_alloc(WEFT_LINE, WEFT_RNDV_SLAB * sizeof *slab);
    if (!slab)
        return false;
    memset(slab, 0, WEFT_RNDV_SLAB * sizeof *slab);
    pool->slabs[pool->slab_count++] = slab;
    for (uint32_t i = WEFT_RNDV_SLAB; i--;) {
        slab[i].rndv.id = 1u << WEFT_RNDV_ID_BITS | (first + i);
        if (first + i && first + i <= pool->max)
            push_free(pool, first + i);
    }
    return true;
}

/* No state is free. Writes one line to the log, once per process, if all ids are in use; lack of memory is not logged. */
static __attribute__((cold)) int on_empty(weft_rndv_pool *pool)
{
    if (!pool->slab_count)
        return weft_fail(WEFT_E_NOMEM, "no memory for the states of long messages");
    if (pool->slab_count * WEFT_RNDV_SLAB > pool->max && !pool->is_full_reported) {
        pool->is_full_reported = true;
        weft_log_once(WEFT_LOG_WARN, "%u long messages are under way, as many as a process can have: further ones wait until some have\n"
                      "ended, and so do short ones behind them to the same rank. Post receives earlier, or complete sends before the next.",
                      pool->max);
    }
    return WEFT_AGAIN;
}

/* Takes a free state; NULL: no more than `reserve` are free. */
static weft_rndv *take(weft_rndv_pool *pool, weft_req *req, weft_peer *peer, uint32_t reserve)
{
    weft_rndv *rndv;
    if (weft_unlikely(pool->free_count <= reserve) && (!grow(pool) || pool->free_count <= reserve))
        return NULL;
    rndv = state_at(pool, pool->free);
    pool->free = rndv->next_free;
    pool->free_count--;
    rndv->req = req;
    rndv->peer = peer;
    rndv->iface = peer->ep->iface;
    rndv->reg = NULL;
    rndv->fragment_count = 0;
    rndv->arrived = 0;
    rndv->is_cold = rndv->has_csum = rndv->has_begun = rndv->is_posted = rndv->awaits_reg = false;
    rndv->is_helped = req->chan && req->chan->is_helped;
    weft_worker_help_begin(req->worker, rndv->is_helped);
    return rndv;
}

int weft_rndv_alloc(weft_req *req, weft_peer *peer, weft_rndv **out)
{
    weft_rndv_pool *pool = req->worker->rndv_pool;
    weft_rndv *rndv = take(pool, req, peer, req->kind == WEFT_REQ_RECV ? 0 : pool->reserve);
    if (weft_unlikely(!rndv))
        return on_empty(pool);
    *out = rndv;
    weft_rndv_bind(rndv);
    return 0;
}

weft_rndv *weft_rndv_alloc_posted(weft_req *req, weft_peer *peer)
{
    weft_rndv_pool *pool = req->worker->rndv_pool;
    weft_rndv *rndv = pool->posted_count < pool->max / WEFT_RNDV_POSTED_SHARE ? take(pool, req, peer, pool->reserve) : NULL;
    if (!rndv)
        return NULL;
    pool->posted_count++;
    rndv->is_posted = true;
    return rndv;
}

static void end_posted(weft_rndv *rndv)
{
    rndv->req->worker->rndv_pool->posted_count -= rndv->is_posted;
    rndv->is_posted = false;
}

void weft_rndv_bind_posted(weft_rndv *rndv)
{
    end_posted(rndv);
    weft_rndv_bind(rndv);
}

void weft_rndv_free(weft_rndv *rndv)
{
    weft_rndv_pool *pool = rndv->req->worker->rndv_pool;
    uint32_t index = rndv->id & INDEX_MASK;
    weft_worker_help_end(rndv->req->worker, rndv->is_helped);
    end_posted(rndv);
    rndv->req->has_rndv = false;
    rndv->req = NULL;
    rndv->id = (rndv->id + (1u << WEFT_RNDV_ID_BITS)) & ~WEFT_NOTIFY_WINDOW;
    push_free(pool, index);
}

weft_rndv *weft_rndv_lookup(const weft_peer *peer, uint32_t id)
{
    const weft_rndv_pool *pool = peer->worker->rndv_pool;
    uint32_t index = id & INDEX_MASK;
    weft_rndv *rndv = index / WEFT_RNDV_SLAB < pool->slab_count ? state_at(pool, index) : NULL;
    return rndv && rndv->req && rndv->id == id && rndv->peer == peer ? rndv : NULL;
}

weft_rndv *weft_rndv_next_used(const weft_worker *worker, uint32_t from, uint32_t *index)
{
    const weft_rndv_pool *pool = worker->rndv_pool;
    for (*index = from; *index < pool->slab_count * WEFT_RNDV_SLAB; ++*index)
        if (state_at(pool, *index)->req)
            return state_at(pool, *index);
    return NULL;
}
