/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bcast: the root's data to all. Called through choose.c. Ranks are counted from the root ("turned"). Where a message is cut,
 * it is cut as bytes of the packed form: the ranks' types need only have the same signature, so elements could not be counted
 * alike.
 */
#include "collectives/algorithms.h"

/* The message as bytes: the user's buffer if its type is dense, else a packed copy. */
typedef struct bytes_view {
    char *at;
    uint64_t count;
    bool is_packed;
} bytes_view;

static bytes_view view_open(weft_plan *plan, const weft_coll *args, bool has_data)
{
    bytes_view view = {.at = args->recvbuf, .count = args->recvcount * (uint64_t)args->recvtype->size};

    if (args->recvtype->is_dense)
        return view;
    view.is_packed = true;
    view.at = weft_plan_temp(plan, view.count, weft_plan_bytes());
    if (has_data)
        weft_plan_copy(plan, view.at, view.count, weft_plan_bytes(), args->recvbuf, args->recvcount, args->recvtype);
    return view;
}

static void view_close(weft_plan *plan, const weft_coll *args, const bytes_view *view, bool has_data)
{
    if (view->is_packed && !has_data)
        weft_plan_copy(plan, args->recvbuf, args->recvcount, args->recvtype, view->at, view->count, weft_plan_bytes());
}

static uint32_t turned(const weft_plan *plan, int root) { return (plan->rank + plan->size - (uint32_t)root) % plan->size; }
static uint32_t unturned(const weft_plan *plan, int root, uint64_t v) { return (uint32_t)((v + (uint32_t)root) % plan->size); }

void weft_bcast_binomial(weft_plan *plan, const weft_coll *args)
{
    uint32_t v = turned(plan, args->root);
    uint64_t bit = 1;

    while (bit < plan->size && !(v & bit))
        bit *= 2;
    if (v) {
        weft_plan_recv(plan, unturned(plan, args->root, v - bit), args->recvbuf, args->recvcount, args->recvtype);
        weft_plan_fence(plan);
    }
    for (bit /= 2; bit; bit /= 2)
        if (v + bit < plan->size)
            weft_plan_send(plan, unturned(plan, args->root, v + bit), args->recvbuf, args->recvcount, args->recvtype);
    weft_plan_fence(plan);
}

static void scatter_halves(weft_plan *plan, const weft_coll *args, const bytes_view *view, uint32_t v)
{
    const weft_type *byte = weft_plan_bytes();
    uint32_t size = plan->size;
    uint64_t bit = 1;

    while (bit < size && !(v & bit))
        bit *= 2;
    if (v) {
        uint64_t from = weft_plan_block_start(view->count, size, v);
        uint64_t to = weft_plan_block_start(view->count, size, v + bit < size ? (uint32_t)(v + bit) : size);
        weft_plan_recv(plan, unturned(plan, args->root, v - bit), view->at + from, to - from, byte);
        weft_plan_fence(plan);
    }
    for (bit /= 2; bit; bit /= 2) {
        if (v + bit >= size)
            continue;
        uint64_t from = weft_plan_block_start(view->count, size, (uint32_t)(v + bit));
        uint64_t to = weft_plan_block_start(view->count, size, v + 2 * bit < size ? (uint32_t)(v + 2 * bit) : size);
        weft_plan_send(plan, unturned(plan, args->root, v + bit), view->at + from, to - from, byte);
    }
    weft_plan_fence(plan);
}

/* Each passes on round the ring what it has; the root takes nothing back, for its buffer is only to be read. */
static void ring(weft_plan *plan, const weft_coll *args, const bytes_view *view, uint32_t v)
{
    const weft_type *byte = weft_plan_bytes();
    uint32_t size = plan->size;

    for (uint32_t i = 0; i + 1 < size; i++) {
        uint32_t out = (v + size - i) % size, in = (v + 2 * size - i - 1) % size;
        uint64_t from = weft_plan_block_start(view->count, size, out), to = weft_plan_block_start(view->count, size, in);
        if (v + 1 < size)
            weft_plan_send(plan, unturned(plan, args->root, v + 1), view->at + from,
                           weft_plan_block_start(view->count, size, out + 1) - from, byte);
        if (v)
            weft_plan_recv(plan, unturned(plan, args->root, v - 1), view->at + to,
                           weft_plan_block_start(view->count, size, in + 1) - to, byte);
        weft_plan_fence(plan);
    }
}

void weft_bcast_scatter_ring(weft_plan *plan, const weft_coll *args)
{
    uint32_t v = turned(plan, args->root);
    bytes_view view = view_open(plan, args, v == 0);

    scatter_halves(plan, args, &view, v);
    ring(plan, args, &view, v);
    view_close(plan, args, &view, v == 0);
}

void weft_bcast_chain(weft_plan *plan, const weft_coll *args)
{
    const weft_type *byte = weft_plan_bytes();
    uint32_t v = turned(plan, args->root);
    bytes_view view = view_open(plan, args, v == 0);
    uint64_t segment = (uint64_t)plan->team->latency_bytes * 4, here;

    if (v && view.count) {
        here = view.count < segment ? view.count : segment;
        weft_plan_recv(plan, unturned(plan, args->root, v - 1), view.at, here, byte);
        weft_plan_fence(plan);
    }
    for (uint64_t at = 0; at < view.count; at += segment) {
        uint64_t next = at + segment;
        here = view.count - at < segment ? view.count - at : segment;
        if (v + 1 < plan->size)
            weft_plan_send(plan, unturned(plan, args->root, v + 1), view.at + at, here, byte);
        if (v && next < view.count)
            weft_plan_recv(plan, unturned(plan, args->root, v - 1), view.at + next,
                           view.count - next < segment ? view.count - next : segment, byte);
        weft_plan_fence(plan);
    }
    view_close(plan, args, &view, v == 0);
}
