/* SPDX-License-Identifier: BSD-3-Clause
 *
 * match: the seldom halves: wildcards and early messages. See match.h.
 */
#include "p2p/match.h"

#include <string.h>

#include "core/peer.h"
#include "core/worker.h"
#include "mem/pool.h"
#include "p2p/rndv.h"

struct early_wild {
    weft_fifo_entry by_source, by_tag;
    weft_early *early;
};

void weft_match_open(weft_match *match)
{
    memset(match, 0, sizeof *match);
    weft_fifomap_open(&match->posted);
    weft_fifomap_open(&match->early);
    weft_list_init(&match->early_all);
}

void weft_match_close(weft_match *match)
{
    weft_fifomap_close(&match->posted);
    weft_fifomap_close(&match->early);
}

void weft_match_settle(weft_match *match)
{
    for (weft_fifo_entry *entry = &match->latest->match, *next; entry; entry = next) {
        weft_req *req = weft_container(entry, weft_req, match);
        next = entry->next;
        req->is_latest = false;
        match->posted_wild += weft_match_is_wild(req);
        weft_fifomap_insert(&match->posted, entry, weft_match_key(req->rank, req->tag));
    }
    match->latest = NULL;
}

void weft_match_unpost(weft_match *match, weft_req *req)
{
    weft_fifo_entry *entry = &req->match, *last = req->is_latest ? match->latest->match.prev : NULL;
    req->is_posted = false;
    if (!req->is_latest) {
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
           weft_fifomap_find(&match->posted, weft_match_key(source, tag)) || weft_fifomap_find(&match->posted, weft_match_key(WEFT_ANY, tag));
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

#define OVERTAKEN_MAX 256

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

/* Without memory for its place an early message would be invisible to wildcard receives: the index is given up and find walks. */
static bool index_one(weft_match *match, weft_worker *worker, weft_early *early)
{
    struct early_wild *wild = weft_pool_take(worker->pool, sizeof *wild);
    if (!wild)
        return false;
    wild->early = early;
    early->wild = wild;
    weft_fifomap_insert(&match->early, &wild->by_source, weft_match_key(early->hdr.src, WEFT_ANY_TAG));
    weft_fifomap_insert(&match->early, &wild->by_tag, weft_match_key(WEFT_ANY, early->hdr.tag));
    return true;
}

static void unindex_one(weft_match *match, weft_worker *worker, weft_early *early)
{
    weft_fifomap_remove(&match->early, &early->wild->by_source);
    weft_fifomap_remove(&match->early, &early->wild->by_tag);
    weft_pool_give(worker->pool, early->wild, sizeof *early->wild);
    early->wild = NULL;
}

static void unindex_all(weft_match *match, weft_worker *worker)
{
    match->is_indexed = false;
    for (weft_list_link *link = match->early_all.next; link != &match->early_all; link = link->next) {
        weft_early *early = weft_container(link, weft_early, all);
        if (early->wild)
            unindex_one(match, worker, early);
    }
}

static void index_all(weft_match *match, weft_worker *worker)
{
    match->is_indexed = true;
    for (weft_list_link *link = match->early_all.next; link != &match->early_all; link = link->next)
        if (!index_one(match, worker, weft_container(link, weft_early, all))) {
            unindex_all(match, worker);
            return;
        }
}

/* Behind the body of an RTS. */
typedef struct place {
    weft_fifo_entry entry; /* in worker->announced */
    weft_early *early;
} place;

static uint64_t place_at(const weft_hdr *hdr) { return weft_round_up(sizeof(weft_early) + hdr->bytes, sizeof(uint64_t)); }

static uint64_t size_of(const weft_hdr *hdr)
{
    return hdr->kind == WEFT_FRAME_RTS ? place_at(hdr) + sizeof(place) : sizeof(weft_early) + hdr->bytes;
}

static place *place_of(weft_early *early) { return (place *)((char *)early + place_at(&early->hdr)); }

static uint64_t announced_key(const weft_peer *peer, uint32_t name) { return (uint64_t)peer->proc_id.rank << 32 | name; }

weft_early *weft_match_announced(weft_worker *worker, const weft_peer *peer, uint32_t name)
{
    weft_fifo_entry *entry = weft_fifomap_find(&worker->announced, announced_key(peer, name));
    return entry ? weft_container(entry, place, entry)->early : NULL;
}

static void note_announced(weft_worker *worker, weft_early *early)
{
    place *at = place_of(early);
    at->early = early;
    weft_fifomap_insert(&worker->announced, &at->entry, announced_key(early->peer, ((const weft_rts *)early->body)->req_id));
}

void weft_match_keep(weft_match *match, weft_worker *worker, weft_early *early)
{
    if (early->hdr.kind == WEFT_FRAME_RTS)
        note_announced(worker, early);
    weft_fifomap_insert(&match->early, &early->match, weft_match_key(early->hdr.src, early->hdr.tag));
    weft_list_append(&match->early_all, &early->all);
    match->early_count++;
    early->wild = NULL;
    if (weft_unlikely(match->is_indexed) && !index_one(match, worker, early))
        unindex_all(match, worker);
}

void weft_match_take(weft_match *match, weft_worker *worker, weft_early *early)
{
    weft_fifomap_remove(&match->early, &early->match);
    weft_list_remove(&early->all);
    match->early_count--;
    if (early->hdr.kind == WEFT_FRAME_RTS)
        weft_fifomap_remove(&worker->announced, &place_of(early)->entry);
    if (weft_unlikely(early->wild != NULL))
        unindex_one(match, worker, early);
}

static weft_early *walk(weft_match *match, int32_t source, int32_t tag)
{
    for (weft_list_link *link = match->early_all.next; link != &match->early_all; link = link->next) {
        weft_early *early = weft_container(link, weft_early, all);
        if ((source == WEFT_ANY || source == early->hdr.src) && (tag == WEFT_ANY_TAG || tag == early->hdr.tag))
            return early;
    }
    return NULL;
}

weft_early *weft_match_look(weft_match *match, weft_worker *worker, int32_t source, int32_t tag)
{
    bool any_source = source == WEFT_ANY, any_tag = tag == WEFT_ANY_TAG;
    weft_fifo_entry *entry;
    if (any_source && any_tag)
        return weft_list_is_empty(&match->early_all) ? NULL : weft_container(match->early_all.next, weft_early, all);
    if (any_source || any_tag) {
        if (!match->is_indexed)
            index_all(match, worker);
        if (!match->is_indexed)
            return walk(match, source, tag);
    }
    entry = weft_fifomap_find(&match->early, weft_match_key(source, tag));
    if (!entry)
        return NULL;
    if (any_tag)
        return weft_container(entry, struct early_wild, by_source)->early;
    if (any_source)
        return weft_container(entry, struct early_wild, by_tag)->early;
    return weft_container(entry, weft_early, match);
}

weft_early *weft_early_new(weft_worker *worker, struct weft_peer *peer, const weft_hdr *hdr, const void *body)
{
    uint64_t bytes = size_of(hdr);
    weft_early *early = weft_pool_take(worker->pool, bytes);
    if (!early)
        return NULL;
    worker->counters[WEFT_COUNT_UNEXPECTED_NOW] += bytes;
    if (worker->counters[WEFT_COUNT_UNEXPECTED_NOW] > worker->counters[WEFT_COUNT_UNEXPECTED_MAX])
        worker->counters[WEFT_COUNT_UNEXPECTED_MAX] = worker->counters[WEFT_COUNT_UNEXPECTED_NOW];
    early->peer = peer;
    early->hdr = *hdr;
    if (weft_likely(body != NULL))
        memcpy(early->body, body, hdr->bytes);
    return early;
}

void weft_early_free(weft_worker *worker, weft_early *early)
{
    uint64_t bytes = size_of(&early->hdr);
    worker->counters[WEFT_COUNT_UNEXPECTED_NOW] -= bytes;
    weft_pool_give(worker->pool, early, bytes);
}
