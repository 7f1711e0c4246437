/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bcast: the root's data to all ranks. Called through select.c. Ranks are relative to the root (vrank).
 * Fragments split packed bytes, not elements: the ranks' types need only have equal signatures.
 */
#include "collectives/algorithms.h"
#include "collectives/pipeline.h"

/* The message as bytes: the user's buffer if its type is dense, else a packed copy. */
typedef struct bytes_view {
    char *at;
    uint64_t count;
    bool is_packed;
} bytes_view;

static bytes_view view_open(weft_sched *sched, const weft_coll *args, bool has_data)
{
    bytes_view view = {.at = args->recvbuf, .count = args->recvcount * (uint64_t)args->recvtype->size};

    if (args->recvtype->is_dense)
        return view;
    view.is_packed = true;
    view.at = weft_sched_temp(sched, view.count, weft_sched_bytes());
    if (has_data)
        weft_sched_copy(sched, view.at, view.count, weft_sched_bytes(), args->recvbuf, args->recvcount, args->recvtype);
    return view;
}

static void view_close(weft_sched *sched, const weft_coll *args, const bytes_view *view, bool has_data)
{
    if (view->is_packed && !has_data)
        weft_sched_copy(sched, args->recvbuf, args->recvcount, args->recvtype, view->at, view->count, weft_sched_bytes());
}

static uint32_t vrank(const weft_sched *sched, int root) { return (sched->rank + sched->size - (uint32_t)root) % sched->size; }
static uint32_t rank_of_vrank(const weft_sched *sched, int root, uint64_t v) { return (uint32_t)((v + (uint32_t)root) % sched->size); }

/* A k-nomial tree: the children of v are v + d k^j for d = 1 .. k - 1, if the digits of v up to the j-th are 0 in base k. Larger subtrees
 * are served first. */
static void knomial(weft_sched *sched, const weft_coll *args, uint32_t k)
{
    uint32_t v = vrank(sched, args->root);
    uint64_t level = 1;

    while (level < sched->size && v / level % k == 0)
        level *= k;
    if (v) {
        weft_sched_recv(sched, rank_of_vrank(sched, args->root, v - v / level % k * level), args->recvbuf, args->recvcount, args->recvtype);
        weft_sched_fence(sched);
    }
    for (level /= k; level; level /= k)
        for (uint32_t i = 1; i < k && v + i * level < sched->size; i++)
            weft_sched_send(sched, rank_of_vrank(sched, args->root, v + i * level), args->recvbuf, args->recvcount, args->recvtype);
    weft_sched_fence(sched);
}

void weft_bcast_binomial(weft_sched *sched, const weft_coll *args) { knomial(sched, args, 2); }
void weft_bcast_knomial_4(weft_sched *sched, const weft_coll *args) { knomial(sched, args, 4); }
void weft_bcast_knomial_8(weft_sched *sched, const weft_coll *args) { knomial(sched, args, 8); }

/* Block v of the bytes is that of vrank v. */
static weft_blocks view_blocks(const weft_sched *sched, const bytes_view *view)
{
    return weft_blocks_even(view->at, view->count, weft_sched_bytes(), sched->size);
}

/* Ring allgather of the blocks. The root only sends: its buffer is read-only. */
static void ring(weft_sched *sched, const weft_coll *args, const bytes_view *view, uint32_t v)
{
    const weft_type *byte = weft_sched_bytes();
    uint32_t size = sched->size;
    weft_sched_window window = {.count = 0};

    for (uint32_t i = 0; i + 1 < size && !sched->rc; i++) {
        uint32_t out = (v + size - i) % size, in = (v + 2 * size - i - 1) % size;
        uint64_t from = weft_sched_block_start(view->count, size, out), to = weft_sched_block_start(view->count, size, in);
        if (v + 1 < size)
            weft_sched_window_add(sched, &window, weft_sched_send(sched, rank_of_vrank(sched, args->root, v + 1), view->at + from,
                                                                  weft_sched_block_start(view->count, size, out + 1) - from, byte));
        if (v)
            weft_sched_await(sched, weft_sched_recv(sched, rank_of_vrank(sched, args->root, v - 1), view->at + to,
                                                    weft_sched_block_start(view->count, size, in + 1) - to, byte));
    }
    weft_sched_fence(sched);
}

void weft_bcast_scatter_ring(weft_sched *sched, const weft_coll *args)
{
    uint32_t v = vrank(sched, args->root);
    bytes_view view = view_open(sched, args, v == 0);
    weft_blocks blocks = view_blocks(sched, &view);

    if (sched->rc)
        return;
    weft_scatter_blocks_halving(sched, &blocks, (uint32_t)args->root);
    ring(sched, args, &view, v);
    view_close(sched, args, &view, v == 0);
}

void weft_bcast_scatter_doubling(weft_sched *sched, const weft_coll *args)
{
    bool is_root = sched->rank == (uint32_t)args->root;
    bytes_view view = view_open(sched, args, is_root);
    weft_blocks blocks = view_blocks(sched, &view);

    if (sched->rc)
        return;
    weft_scatter_blocks_halving(sched, &blocks, (uint32_t)args->root);
    weft_allgather_blocks_multiplying(sched, &blocks, (uint32_t)args->root, 2, true);
    view_close(sched, args, &view, is_root);
}

static weft_sched_message recv_segment(weft_sched *sched, const bytes_view *view, uint64_t segment, uint64_t at, uint32_t parent)
{
    if (parent == WEFT_PIPELINE_NONE || at >= view->count)
        return WEFT_SCHED_NO_MESSAGE;
    return weft_sched_recv(sched, parent, view->at + at, view->count - at < segment ? view->count - at : segment, weft_sched_bytes());
}

/* Segments from the parent, to both children. */
static void pipeline(weft_sched *sched, const weft_coll *args, weft_pipeline_node node)
{
    bool is_root = node.parent == WEFT_PIPELINE_NONE;
    bytes_view view = view_open(sched, args, is_root);
    uint64_t segment = weft_pipeline_segment(sched, view.count, weft_sched_bytes()), number = 0;
    uint32_t children[] = {node.lower, node.upper};
    weft_sched_message arrivals[WEFT_PIPELINE_AHEAD];
    weft_sched_window window = {.count = 0};

    for (uint64_t i = 0; i < WEFT_PIPELINE_AHEAD && !sched->rc; i++)
        arrivals[i] = recv_segment(sched, &view, segment, i * segment, node.parent);
    for (uint64_t at = 0; at < view.count && !sched->rc; at += segment, number++) {
        weft_sched_message *arrival = &arrivals[number % WEFT_PIPELINE_AHEAD];
        weft_sched_await(sched, *arrival);
        *arrival = recv_segment(sched, &view, segment, at + WEFT_PIPELINE_AHEAD * segment, node.parent);
        for (int i = 0; i < 2; i++)
            if (children[i] != WEFT_PIPELINE_NONE)
                weft_sched_window_add(sched, &window, weft_sched_send(sched, children[i], view.at + at,
                                                                      view.count - at < segment ? view.count - at : segment,
                                                                      weft_sched_bytes()));
    }
    view_close(sched, args, &view, is_root);
}

void weft_bcast_chain(weft_sched *sched, const weft_coll *args)
{
    pipeline(sched, args, weft_pipeline_chain(sched->size, sched->rank, (uint32_t)args->root));
}

void weft_bcast_binary(weft_sched *sched, const weft_coll *args)
{
    pipeline(sched, args, weft_pipeline_binary(sched->size, sched->rank, (uint32_t)args->root));
}
