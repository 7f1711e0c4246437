/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_lane: see shmcoll_lane.h.
 */
#include "collectives/shmcoll_lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/shmcoll.h"
#include "collectives/shmcoll_check.h"
#include "collectives/shmcoll_exchange.h"
#include "core/world.h"

/* What a member says: member 0 the page at which the lane begins, or NO_LANE; the others 0, or NO_LANE. */
#define NO_LANE UINT32_MAX

/* What a member writes in one round is short in the lane's slots (shmcoll_area.h) if that takes at most this part of the lanes' memory. */
#define SHORT_SHARE 16

/* Slots that hold what a member writes in one round, if the area's own do. Equal on all members. */
static uint32_t slot_bytes_for(const weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    uint64_t bytes = weft_coll_bytes(kind, args, args->root == (int)area->rank);
    bool has_parts = kind == WEFT_COLL_SCATTER || kind == WEFT_COLL_ALLTOALL || kind == WEFT_COLL_REDUCE_SCATTER ||
                     kind == WEFT_COLL_REDUCE_SCATTER_BLOCK;

    if (bytes >= area->slot_bytes)
        return area->slot_bytes;
    bytes = has_parts ? area->ranks * weft_round_up(bytes ? bytes : 1, 16) : bytes; /* parts are multiples of 16 */
    if (bytes > WEFT_SHMCOLL_INLINE && area->short_bytes && area->ranks * WEFT_SHMCOLL_SHALLOW * bytes <= area->lanes_bytes / SHORT_SHARE)
        bytes = WEFT_SHMCOLL_SHALLOW / WEFT_SHMCOLL_SLOTS * weft_round_up(bytes, WEFT_LINE);
    return bytes < area->slot_bytes ? (uint32_t)bytes : area->slot_bytes;
}

/* ---- member 0: places ---- */

static void take_back(weft_shmcoll_taken *taken)
{
    weft_list_remove(&taken->link);
    free(taken);
}

static bool is_closed(const weft_shmcoll *area, const weft_shmcoll_taken *taken)
{
    const weft_shmcoll_hdr *hdr = (const weft_shmcoll_hdr *)(area->lanes + taken->from);
    return atomic_load_explicit(&hdr->closed, memory_order_acquire) == area->ranks; /* pairs with weft_shmcoll_close */
}

/* The first free place of so many bytes; *before: the lane that follows it, or the list. UINT64_MAX: none. */
static uint64_t find_place(weft_shmcoll *area, uint64_t bytes, weft_list_link **before)
{
    uint64_t from = 0;

    for (weft_list_link *link = area->lanes_taken.next, *next; link != &area->lanes_taken; link = next) {
        weft_shmcoll_taken *taken = weft_container(link, weft_shmcoll_taken, link);
        next = link->next;
        if (is_closed(area, taken)) {
            take_back(taken);
            continue;
        }
        *before = link;
        if (from + bytes <= taken->from)
            return from;
        from = taken->end;
    }
    *before = &area->lanes_taken;
    return from + bytes <= area->lanes_bytes ? from : UINT64_MAX;
}

static int claim(const weft_shmcoll *area, uint64_t from, uint64_t bytes)
{
    const weft_segment *segment;
    uint64_t offset;

    if (!area->bytes) /* the caller's memory */
        return WEFT_OK;
    segment = &area->worker->world->boot->segment;
    offset = segment->hdr->areas + area->area_index * segment->hdr->area_bytes + (uint64_t)(area->lanes - (char *)area->hdr);
    return weft_segment_claim(segment, offset + from, bytes);
}

/* Takes a place for a lane, and clears its head. NULL: there is none. */
static weft_shmcoll_taken *take_place(weft_shmcoll *area, uint64_t bytes, uint64_t head)
{
    weft_list_link *before;
    uint64_t from = find_place(area, bytes, &before);
    weft_shmcoll_taken *taken = from == UINT64_MAX ? NULL : malloc(sizeof *taken);

    if (!taken)
        return NULL;
    if (claim(area, from, bytes)) {
        free(taken);
        return NULL;
    }
    taken->from = from;
    taken->end = from + bytes;
    weft_list_append(before, &taken->link);
    memset(area->lanes + from, 0, head);
    return taken;
}

/* ---- agreement ---- */

/* Performs the agreement as an operation of the area. *place: where the lane begins, or NO_LANE. */
static int agree(weft_shmcoll *area, weft_call call, uint32_t own, uint32_t *place)
{
    uint32_t words[WEFT_SHMCOLL_RANKS];
    weft_coll args = {.sendbuf = &own, .sendcount = sizeof own, .sendtype = weft_sched_bytes(), .recvbuf = words,
                      .recvcount = sizeof own, .recvtype = weft_sched_bytes()};
    int rc;

    weft_shmcoll_log_call(area, call);
    area->call_hash = area->log_hash;
    rc = weft_shmcoll_stage(area, WEFT_COLL_ALLGATHER, &args);
    if (rc)
        return rc;
    *place = words[0];
    for (uint32_t i = 1; i < area->ranks; i++)
        if (words[i] == NO_LANE)
            *place = NO_LANE;
    return WEFT_OK;
}

static weft_shmcoll *make(void)
{
    weft_shmcoll *lane = calloc(1, sizeof *lane);

    if (lane && !(lane->exchange = malloc(sizeof *lane->exchange))) {
        free(lane);
        return NULL;
    }
    return lane;
}

static void discard(weft_shmcoll *lane)
{
    if (lane)
        free(lane->exchange);
    free(lane);
}

int weft_shmcoll_open_lane(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, weft_call call, weft_shmcoll **lane)
{
    uint64_t head, bytes = weft_shmcoll_bytes_of(area, slot_bytes_for(area, kind, args), &head);
    weft_shmcoll *made;
    weft_shmcoll_taken *taken;
    uint32_t place = 0;
    int rc;

    *lane = NULL;
    if (area->rc)
        return weft_shmcoll_stop_error(area);
    made = make();
    taken = made && !area->rank ? take_place(area, bytes, head) : NULL;
    if (!made || (!area->rank && !taken))
        place = NO_LANE;
    else if (taken)
        place = (uint32_t)(taken->from / WEFT_PAGE);
    rc = agree(area, call, place, &place);
    if (rc || place == NO_LANE) {
        if (taken)
            take_back(taken);
        discard(made);
        return rc;
    }
    if (place > area->lanes_bytes / WEFT_PAGE || bytes > area->lanes_bytes - (uint64_t)place * WEFT_PAGE) {
        discard(made);
        return weft_shmcoll_stop(area, weft_fail(WEFT_E_OTHER, "rank %u said that a persistent request's memory is at page %u of a "
                                                 "node area, which is behind its end: memory fails", weft_shmcoll_rank_of(area, 0), place));
    }
    weft_shmcoll_attach_lane(area, area->lanes + (uint64_t)place * WEFT_PAGE, bytes, made);
    *lane = made;
    return WEFT_OK;
}
