/* SPDX-License-Identifier: BSD-3-Clause
 *
 * absence: see absence.h.
 */
#include "core/absence.h"

#include "core/world_type.h"

#define FRESH_NS 3000000000ull

uint32_t weft_absence_page(const weft_worker *worker, uint32_t rank)
{
    const weft_boot *boot = worker->world->boot;
    if (!boot->has_segment || rank >= boot->size || (boot->node_of && boot->node_of[rank] != boot->node))
        return WEFT_RANK_NONE;
    return atomic_load_explicit(&weft_segment_rank(&boot->segment, boot->local_of ? boot->local_of[rank] : rank)->state,
                                memory_order_acquire);
}

/* enum weft_rank_state; -1: the launcher was asked. */
static int stage_of(weft_peer *peer)
{
    const weft_world *world = peer->worker->world;
    uint32_t page = weft_absence_page(peer->worker, peer->proc_id.rank);
    uint64_t now;
    bool is_old;
    int told;
    if (page != WEFT_RANK_NONE || peer->proc_id.job != world->boot->job || !world->boot->ops->stage)
        return (int)page;
    told = world->boot->ops->stage(world->boot, peer->proc_id.rank, false);
    if (told == WEFT_RANK_FINAL || told == WEFT_RANK_DEAD) /* however old */
        return told;
    now = weft_world_clock_ns(world);
    is_old = !peer->asked_ns || now - peer->asked_ns > FRESH_NS;
    if (is_old)
        peer->asked_ns = now ? now : 1;
    return world->boot->ops->stage(world->boot, peer->proc_id.rank, is_old);
}

enum weft_absence weft_absence_of(weft_peer *peer)
{
    int stage = peer->has_ended ? WEFT_RANK_FINAL : stage_of(peer);
    switch (stage) {
    case WEFT_RANK_FINAL:
        peer->has_ended = true;
        return WEFT_ABSENCE_END;
    case WEFT_RANK_REST:
        return WEFT_ABSENCE_REST;
    case WEFT_RANK_NONE: /* a launcher that does not say */
        return peer->bye_received || peer->worker->world->has_rested ? WEFT_ABSENCE_MAYBE : WEFT_ABSENCE_NONE;
    default:
        return stage < 0 ? WEFT_ABSENCE_MAYBE : WEFT_ABSENCE_NONE;
    }
}

void weft_absence_forget(weft_peer *peer) { peer->asked_ns = 0; }
