/* SPDX-License-Identifier: BSD-3-Clause
 *
 * match: slow paths of matching: wildcards, unexpected messages, cancel. See match.h.
 */
#include "p2p/match.h"

#include <string.h>

#include "core/peer.h"
#include "core/worker.h"
#include "mem/pool.h"
#include "p2p/rndv_wire.h"

struct unexpected_wild {
    weft_fifo_entry by_source, by_tag; /* keys (source, any tag) and (any source, tag) */
    weft_unexpected *unexpected;
};

void weft_match_open(weft_match *match)
{
    memset(match, 0, sizeof *match);
    weft_fifomap_open(&match->posted);
    weft_fifomap_open(&match->unexpected);
    weft_list_init(&match->unexpected_all);
}

void weft_match_close(weft_match *match)
{
    weft_fifomap_close(&match->posted);
    weft_fifomap_close(&match->unexpected);
}

void weft_match_flush_latest(weft_match *match)
{
    for (weft_fifo_entry *entry = &match->latest->match, *next; entry; entry = next) {
        weft_req *req = weft_container(entry, weft_req, match);
        next = entry->next;
        req->posted_as = WEFT_POSTED_OLDER;
        match->posted_wild += weft_match_is_wild(req);
        weft_fifomap_insert(&match->posted, entry, weft_match_key(req->rank, req->tag));
    }
    match->latest = NULL;
}

void weft_match_post_long(weft_match *match, weft_req *req)
{
    if (match->latest)
        weft_match_flush_latest(match);
    req->is_posted = true;
    req->posted_as = WEFT_POSTED_LONG;
    match->posted_wild += weft_match_is_wild(req);
    weft_fifomap_insert(&match->posted, &req->match, weft_match_key(req->rank, req->tag));
    weft_worker_help_begin(req->worker, true);
}

void weft_match_on_long(weft_req *req) { weft_worker_help_end(req->worker, true); }

void weft_match_unpost(weft_match *match, weft_req *req)
{
    bool is_latest = req->posted_as == WEFT_POSTED_LATEST;
    weft_fifo_entry *entry = &req->match, *last = is_latest ? match->latest->match.prev : NULL;
    req->is_posted = false;
    if (!is_latest) {
        weft_match_remove(match, req);
    } else if (req == match->latest) {
        weft_match_pop(match);
    } else {
        entry->prev->next = entry->next;
        if (entry == last)
            match->latest->match.prev = entry->prev;
        else
            entry->next->prev = entry->prev;
    }
}

bool weft_match_is_posted(const weft_match *match, int32_t source, int32_t tag)
{
    const weft_req *latest = match->latest;
    return (latest && latest->tag == tag && (latest->rank == source || latest->rank == WEFT_ANY)) ||
           weft_fifomap_find(&match->posted, weft_match_key(source, tag)) ||
           weft_fifomap_find(&match->posted, weft_match_key(WEFT_ANY, tag));
}

void weft_match_each_posted(const weft_match *match, void (*each)(void *arg, const weft_req *req), void *arg)
{
    if (match->latest)
        each(arg, match->latest);
    for (uint32_t i = 0; match->posted.keys && i <= match->posted.mask; i++)
        for (weft_fifo_entry *entry = match->posted.buckets[i]; entry; entry = entry->chain)
            each(arg, weft_container(entry, weft_req, match));
}

static weft_req *older(weft_req *a, weft_fifo_entry *entry)
{
    weft_req *b = entry ? weft_container(entry, weft_req, match) : NULL;
    return !a || (b && b->order < a->order) ? b : a;
}

#define OVERTAKEN_MAX 255 /* bounds the delay of a sleeping thread's receive */

bool weft_match_overtake(weft_match *match, weft_req *req)
{
    weft_req *first = match->latest;
    if (!req->is_blocking || first->overtaken >= OVERTAKEN_MAX)
        return false;
    for (weft_fifo_entry *entry = &first->match; entry; entry = entry->next)
        if (!weft_container(entry, weft_req, match)->is_blocking)
            return false;
    first->overtaken++;
    req->match.next = &first->match;
    req->match.prev = first->match.prev;
    first->match.prev = &req->match;
    match->latest = req;
    return true;
}

weft_req *weft_match_posted_wild(weft_match *match, int32_t source, int32_t tag, weft_fifo_entry *exact)
{
    weft_req *req = older(NULL, exact);
    req = older(req, weft_fifomap_find(&match->posted, weft_match_key(WEFT_ANY, tag)));
    req = older(req, weft_fifomap_find(&match->posted, weft_match_key(source, WEFT_ANY_TAG)));
    return older(req, weft_fifomap_find(&match->posted, weft_match_key(WEFT_ANY, WEFT_ANY_TAG)));
}

/* False: out of memory. The caller then drops the whole index and searches walk the list: wildcards must see every message. */
static bool index_one(weft_match *match, weft_worker *worker, weft_unexpected *unexpected)
{
    struct unexpected_wild *wild = weft_pool_alloc(worker->pool, sizeof *wild);
    if (!wild)
        return false;
    wild->unexpected = unexpected;
    unexpected->wild = wild;
    weft_fifomap_insert(&match->unexpected, &wild->by_source, weft_match_key(unexpected->hdr.src, WEFT_ANY_TAG));
    weft_fifomap_insert(&match->unexpected, &wild->by_tag, weft_match_key(WEFT_ANY, unexpected->hdr.tag));
    return true;
}

static void unindex_one(weft_match *match, weft_worker *worker, weft_unexpected *unexpected)
{
    weft_fifomap_remove(&match->unexpected, &unexpected->wild->by_source);
    weft_fifomap_remove(&match->unexpected, &unexpected->wild->by_tag);
    weft_pool_free(worker->pool, unexpected->wild, sizeof *unexpected->wild);
    unexpected->wild = NULL;
}

static void unindex_all(weft_match *match, weft_worker *worker)
{
    match->is_indexed = false;
    for (weft_list_link *link = match->unexpected_all.next; link != &match->unexpected_all; link = link->next) {
        weft_unexpected *unexpected = weft_container(link, weft_unexpected, all);
        if (unexpected->wild)
            unindex_one(match, worker, unexpected);
    }
}

static void index_all(weft_match *match, weft_worker *worker)
{
    match->is_indexed = true;
    for (weft_list_link *link = match->unexpected_all.next; link != &match->unexpected_all; link = link->next)
        if (!index_one(match, worker, weft_container(link, weft_unexpected, all))) {
            unindex_all(match, worker);
            return;
        }
}

/* Follows the body of an unexpected RTS. */
typedef struct place {
    weft_fifo_entry entry; /* in worker->announced */
    weft_unexpected *unexpected;
} place;

static uint64_t place_at(const weft_hdr *hdr) { return weft_round_up(sizeof(weft_unexpected) + hdr->bytes, sizeof(uint64_t)); }

static uint64_t size_of(const weft_hdr *hdr)
{
    return hdr->kind == WEFT_FRAME_RTS ? place_at(hdr) + sizeof(place) : sizeof(weft_unexpected) + hdr->bytes;
}

static place *place_of(weft_unexpected *unexpected) { return (place *)((char *)unexpected + place_at(&unexpected->hdr)); }

static uint64_t announced_key(const weft_peer *peer, uint32_t id) { return (uint64_t)peer->number << 32 | id; }

weft_unexpected *weft_match_announced(weft_worker *worker, const weft_peer *peer, uint32_t id)
{
    weft_fifo_entry *entry = weft_fifomap_find(&worker->announced, announced_key(peer, id));
    return entry ? weft_container(entry, place, entry)->unexpected : NULL;
}

static void index_announced(weft_worker *worker, weft_unexpected *unexpected)
{
    place *at = place_of(unexpected);
    at->unexpected = unexpected;
    weft_fifomap_insert(&worker->announced, &at->entry, announced_key(unexpected->peer, ((const weft_rts *)unexpected->body)->req_id));
}

void weft_unexpected_add(weft_match *match, weft_worker *worker, weft_unexpected *unexpected)
{
    if (unexpected->hdr.kind == WEFT_FRAME_RTS)
        index_announced(worker, unexpected);
    weft_fifomap_insert(&match->unexpected, &unexpected->match, weft_match_key(unexpected->hdr.src, unexpected->hdr.tag));
    weft_list_append(&match->unexpected_all, &unexpected->all);
    match->unexpected_count++;
    unexpected->wild = NULL;
    if (weft_unlikely(match->is_indexed) && !index_one(match, worker, unexpected))
        unindex_all(match, worker);
}

void weft_unexpected_remove(weft_match *match, weft_worker *worker, weft_unexpected *unexpected)
{
    weft_fifomap_remove(&match->unexpected, &unexpected->match);
    weft_list_remove(&unexpected->all);
    match->unexpected_count--;
    if (unexpected->hdr.kind == WEFT_FRAME_RTS)
        weft_fifomap_remove(&worker->announced, &place_of(unexpected)->entry);
    if (weft_unlikely(unexpected->wild != NULL))
        unindex_one(match, worker, unexpected);
}

static weft_unexpected *walk(weft_match *match, int32_t source, int32_t tag)
{
    for (weft_list_link *link = match->unexpected_all.next; link != &match->unexpected_all; link = link->next) {
        weft_unexpected *unexpected = weft_container(link, weft_unexpected, all);
        if ((source == WEFT_ANY || source == unexpected->hdr.src) && (tag == WEFT_ANY_TAG || tag == unexpected->hdr.tag))
            return unexpected;
    }
    return NULL;
}

weft_unexpected *weft_unexpected_search(weft_match *match, weft_worker *worker, int32_t source, int32_t tag)
{
    bool any_source = source == WEFT_ANY, any_tag = tag == WEFT_ANY_TAG;
    weft_fifo_entry *entry;
    if (any_source && any_tag)
        return weft_list_is_empty(&match->unexpected_all) ? NULL : weft_container(match->unexpected_all.next, weft_unexpected, all);
    if (any_source || any_tag) {
        if (!match->is_indexed)
            index_all(match, worker);
        if (!match->is_indexed)
            return walk(match, source, tag);
    }
    entry = weft_fifomap_find(&match->unexpected, weft_match_key(source, tag));
    if (!entry)
        return NULL;
    if (any_tag)
        return weft_container(entry, struct unexpected_wild, by_source)->unexpected;
    if (any_source)
        return weft_container(entry, struct unexpected_wild, by_tag)->unexpected;
    return weft_container(entry, weft_unexpected, match);
}

weft_unexpected *weft_unexpected_new(weft_worker *worker, struct weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    uint64_t bytes = size_of(hdr);
    weft_unexpected *unexpected = weft_pool_alloc(worker->pool, bytes);
    if (!unexpected)
        return NULL;
    worker->counters[WEFT_COUNT_UNEXPECTED_NOW] += bytes;
    if (worker->counters[WEFT_COUNT_UNEXPECTED_NOW] > worker->counters[WEFT_COUNT_UNEXPECTED_MAX])
        worker->counters[WEFT_COUNT_UNEXPECTED_MAX] = worker->counters[WEFT_COUNT_UNEXPECTED_NOW];
    unexpected->peer = peer;
    unexpected->hdr = *hdr;
    if (weft_likely(body != NULL))
        memcpy(unexpected->body, body, hdr->bytes);
    return unexpected;
}

void weft_unexpected_free(weft_worker *worker, weft_unexpected *unexpected)
{
    uint64_t bytes = size_of(&unexpected->hdr);
    worker->counters[WEFT_COUNT_UNEXPECTED_NOW] -= bytes;
    weft_pool_free(worker->pool, unexpected, bytes);
}
