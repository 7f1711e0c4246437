/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bulk: see bulk.h. The owner allocates and takes freed chunks back here; the reader's side is inline in bulk.h.
 */
#include "transports/shm/bulk.h"

#include <string.h>
#include <sys/mman.h>

#include "base/status.h"

int weft_bulk_open(const weft_segment *segment, uint32_t local, bool is_sparing, weft_bulk_owner *owner)
{
    void *addr;
    int rc;
    *owner = (weft_bulk_owner){.segment = segment, .offset = segment->hdr->pools + local * segment->hdr->pool_bytes,
                               .is_sparing = is_sparing};
    rc = weft_segment_view(segment, owner->offset, sizeof *owner->bulk, &addr);
    if (rc == 0)
        owner->bulk = addr;
    return rc;
}

void weft_bulk_close(weft_bulk_owner *owner)
{
    if (owner->bulk)
        weft_segment_drop(owner->bulk, sizeof *owner->bulk);
    owner->bulk = NULL;
}

static bool is_back(const weft_bulk_owner *owner, uint32_t index)
{
    return !atomic_load_explicit(&owner->bulk->flags[index].is_allocated, memory_order_acquire); /* pairs with weft_bulk_free */
}

static int claim_more(weft_bulk_owner *owner)
{
    uint64_t first = offsetof(weft_bulk, chunks) + (uint64_t)owner->claimed * WEFT_BULK_CHUNK;
    int rc = owner->claimed ? 0 : weft_segment_claim(owner->segment, owner->offset, offsetof(weft_bulk, chunks));
    if (rc == 0)
        rc = weft_segment_claim(owner->segment, owner->offset + first, WEFT_BULK_STEP * WEFT_BULK_CHUNK);
    if (rc == 0) {
        madvise(owner->bulk->chunks[owner->claimed], WEFT_BULK_STEP * WEFT_BULK_CHUNK, MADV_POPULATE_WRITE); /* else a fault per page */
        owner->claimed += WEFT_BULK_STEP;
    }
    if (rc && owner->claimed) /* out of memory: the claimed chunks must do */
        rc = WEFT_AGAIN;
    return rc;
}

static void take_from(weft_bulk_share *share, uint32_t index)
{
    for (uint32_t i = 0; i < share->count; i++)
        if (share->ids[i] == index)
            share->ids[i] = share->ids[--share->count];
    share->next = 0;
}

/* A chunk without holder, else a new one, else a free one of another ep. Chunks are freed at any time between two loads: each decision uses
 * one load. */
static int find_other(weft_bulk_owner *owner, uint32_t *index)
{
    uint32_t other = WEFT_BULK_COUNT;
    int rc;
    for (uint32_t i = 0; i < owner->claimed; i++) {
        if (owner->holder[i] && other < WEFT_BULK_COUNT)
            continue;
        if (!is_back(owner, i))
            continue;
        if (!owner->holder[i]) {
            *index = i;
            return 0;
        }
        other = i;
    }
    if (owner->claimed < WEFT_BULK_COUNT && (rc = claim_more(owner)) <= 0) {
        *index = owner->claimed - WEFT_BULK_STEP;
        return rc;
    }
    if (other == WEFT_BULK_COUNT)
        return WEFT_AGAIN;
    take_from(owner->holder[other], other);
    owner->held--;
    *index = other;
    return 0;
}

static bool may_grow(const weft_bulk_owner *owner, const weft_bulk_share *share)
{
    return share->count < WEFT_BULK_SHARE && (share->count < WEFT_BULK_SHARE_SURE || owner->held < WEFT_BULK_COUNT - WEFT_BULK_RESERVE);
}

static void add_to(weft_bulk_owner *owner, weft_bulk_share *share, uint32_t index)
{
    /* inserted behind the chunks in use: before next */
    memmove(share->ids + share->next + 1, share->ids + share->next, share->count - share->next);
    share->ids[share->next++] = (uint8_t)index;
    if (share->next == ++share->count)
        share->next = 0;
    share->rounds = 0;
    owner->holder[index] = share;
    owner->held++;
}

/* A chunk without holder, or a new one; false: there is none. */
static bool find_unheld(weft_bulk_owner *owner, uint32_t *index)
{
    if (owner->held == (owner->is_out_of_memory ? owner->claimed : WEFT_BULK_COUNT))
        return false;
    for (uint32_t i = 0; i < owner->claimed; i++)
        if (!owner->holder[i] && is_back(owner, i)) {
            *index = i;
            return true;
        }
    if (owner->claimed == WEFT_BULK_COUNT || owner->is_out_of_memory)
        return false;
    owner->is_out_of_memory = claim_more(owner) != 0; /* the claimed chunks must do */
    *index = owner->claimed - WEFT_BULK_STEP;
    return !owner->is_out_of_memory;
}

/* Whether it takes a new chunk before it needs one: until a step is complete, and to begin another after enough rounds. */
static bool grows(const weft_bulk_owner *owner, const weft_bulk_share *share)
{
    if (owner->is_sparing)
        return !share->count;
    return share->count < WEFT_BULK_SHARE_USUAL && (share->count % WEFT_BULK_STEP || !share->count || share->rounds >= WEFT_BULK_ROUNDS);
}

static int find(weft_bulk_owner *owner, weft_bulk_share *share, uint32_t *index)
{
    int rc;
    if (grows(owner, share) && may_grow(owner, share) && find_unheld(owner, index)) {
        add_to(owner, share, *index);
        return 0;
    }
    if (share->count && is_back(owner, share->ids[share->next])) {
        *index = share->ids[share->next];
        if (++share->next == share->count) {
            share->next = 0;
            share->rounds += share->rounds < WEFT_BULK_ROUNDS;
        }
        return 0;
    }
    if (!may_grow(owner, share))
        return WEFT_AGAIN;
    rc = find_other(owner, index);
    if (rc == 0)
        add_to(owner, share, *index);
    return rc;
}

int weft_bulk_alloc(weft_bulk_owner *owner, weft_bulk_share *share, uint32_t *index)
{
    int rc = find(owner, share, index);
    bool is_blocked = rc == WEFT_AGAIN;
    if (share->count) /* else the next allocation waits for this line, which the reader has */
        weft_prefetch_write(&owner->bulk->flags[share->ids[share->next]]);
    if (rc == 0)
        atomic_store_explicit(&owner->bulk->flags[*index].is_allocated, 1, memory_order_relaxed);
    if (rc >= 0 && (is_blocked || owner->is_blocked)) { /* stored at each failure: the sleeper's barrier follows the last */
        owner->is_blocked = is_blocked;
        atomic_store_explicit(&owner->bulk->wanted, is_blocked, memory_order_relaxed);
    }
    return rc;
}

void weft_bulk_leave(weft_bulk_owner *owner, weft_bulk_share *share)
{
    for (uint32_t i = 0; i < share->count; i++)
        owner->holder[share->ids[i]] = NULL;
    owner->held -= share->count;
    share->count = share->rounds = 0;
}
