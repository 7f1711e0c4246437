/* SPDX-License-Identifier: BSD-3-Clause
 *
 * match: tag matching of one channel, ordered by post number (MPI 5.0 3.5). Posted receives and unexpected messages are found in O(1)
 * by source and tag. A wildcard is a key of its own; among matching keys the lowest post number wins.
 * Unexpected messages are indexed by wildcard keys from the first wildcard receive or probe on.
 * Called by the other files of p2p. Requires worker->lock.
 */
#ifndef WEFT_P2P_MATCH_H
#define WEFT_P2P_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fifomap.h"
#include "base/list.h"
#include "core/req.h"
#include "transport/frame.h"

struct weft_peer;
struct weft_worker;

/* An unexpected message: header and body (the eager payload, or the RTS), at their exact size. */
typedef struct weft_unexpected {
    weft_fifo_entry match;        /* in weft_match.unexpected, by source and tag */
    weft_list_link all;           /* in weft_match.unexpected_all, in order of arrival */
    struct weft_peer *peer;       /* sender */
    weft_hdr hdr;
    struct unexpected_wild *wild; /* entries under the wildcard keys; NULL: not indexed */
    uint64_t body[];
} weft_unexpected;

typedef struct weft_match {
    weft_req *latest;              /* youngest posted receives with one key, oldest first; see below. NULL: none */
    weft_fifomap posted;           /* all other posted receives, by source and tag */
    uint32_t posted_wild;          /* number of receives in posted with a wildcard */
    uint32_t unexpected_count;     /* unexpected messages plus stalled senders (p2p/stall); 0: a receive needs no search */
    weft_fifomap unexpected;       /* by source and tag */
    weft_list_link unexpected_all; /* in order of arrival */
    bool is_indexed;               /* every unexpected message has wildcard entries */
} weft_match;
/* latest keeps ping-pongs and windows of equal receives out of the map. Linked by match.next; the first one's match.prev is the last. */

void weft_match_open(weft_match *match);
/* Posted receives and unexpected messages must be gone. */
void weft_match_close(weft_match *match);

static inline uint64_t weft_match_key(int32_t source, int32_t tag) { return (uint64_t)(uint32_t)source << 32 | (uint32_t)tag; }

static inline bool weft_match_is_wild(const weft_req *req) { return req->rank == WEFT_ANY || req->tag == WEFT_ANY_TAG; }

/* Moves the latest receives into the posted map. */
void weft_match_flush_latest(weft_match *match);

/* Posts req ahead of the latest receives if it and all of these are blocking: its thread runs, others may sleep. They have the same key.
 * Blocking receives of different threads are logically concurrent (MPI 5.0 3.5). False: not posted; also if the first of them
 * was overtaken OVERTAKEN_MAX times. */
bool weft_match_overtake(weft_match *match, weft_req *req);

/* Posts a receive. Its rank, tag and order must be set. */
static inline void weft_match_post(weft_match *match, weft_req *req)
{
    weft_req *first = match->latest;
    req->is_posted = true;
    req->posted_as = WEFT_POSTED_LATEST;
    req->match.next = NULL;
    if (first && first->rank == req->rank && first->tag == req->tag) {
        if (weft_unlikely(first->is_blocking) && weft_match_overtake(match, req))
            return;
        req->match.prev = first->match.prev;
        first->match.prev->next = &req->match;
        first->match.prev = &req->match;
        return;
    }
    if (first)
        weft_match_flush_latest(match);
    req->match.prev = &req->match;
    match->latest = req;
}

/* Removes the first of the latest receives, which must exist. */
static inline void weft_match_pop(weft_match *match)
{
    weft_fifo_entry *next = match->latest->match.next;
    if (next)
        next->prev = match->latest->match.prev;
    match->latest = next ? weft_container(next, weft_req, match) : NULL;
}

/* Posts a receive that calls for the progress thread, since its message may be announced at any time. */
void weft_match_post_long(weft_match *match, weft_req *req);
/* Such a receive leaves the map. */
void weft_match_on_long(weft_req *req);

static inline void weft_match_remove(weft_match *match, weft_req *req)
{
    if (weft_unlikely(req->posted_as == WEFT_POSTED_LONG))
        weft_match_on_long(req);
    if (weft_unlikely(match->posted_wild))
        match->posted_wild -= weft_match_is_wild(req);
    weft_fifomap_remove(&match->posted, &req->match);
}

/* Removes a posted receive (cancel). O(1). */
void weft_match_unpost(weft_match *match, weft_req *req);
/* Is a receive posted with exactly this tag (WEFT_ANY_TAG: with a tag wildcard) from source or WEFT_ANY? */
bool weft_match_is_posted(const weft_match *match, int32_t source, int32_t tag);
/* Calls each() for one posted receive per key; a wildcard counts as a key. */
void weft_match_each_posted(const weft_match *match, void (*each)(void *arg, const weft_req *req), void *arg);

/* Oldest of exact (may be NULL) and the wildcard receives of the posted map that match; NULL: none. */
weft_req *weft_match_posted_wild(weft_match *match, int32_t source, int32_t tag, weft_fifo_entry *exact);

/* Oldest matching receive of the posted map (not the latest), left in it; NULL: none. */
static inline weft_req *weft_match_older(weft_match *match, int32_t source, int32_t tag)
{
    weft_fifo_entry *entry = weft_fifomap_find(&match->posted, weft_match_key(source, tag));
    if (weft_unlikely(match->posted_wild))
        return weft_match_posted_wild(match, source, tag, entry);
    return entry ? weft_container(entry, weft_req, match) : NULL;
}

/* Removes and returns the posted receive that a message from source with tag matches; NULL: none. */
static inline weft_req *weft_match_posted(weft_match *match, int32_t source, int32_t tag)
{
    weft_req *req;
    if (match->posted.keys && (req = weft_match_older(match, source, tag))) {
        weft_match_remove(match, req);
        req->is_posted = false;
        return req;
    }
    req = match->latest;
    if (weft_unlikely(!req) || (req->tag != tag && req->tag != WEFT_ANY_TAG) || (req->rank != source && req->rank != WEFT_ANY))
        return NULL;
    weft_match_pop(match);
    req->is_posted = false;
    return req;
}

/* Adds a message that weft_unexpected_new made. */
void weft_unexpected_add(weft_match *match, struct weft_worker *worker, weft_unexpected *unexpected);
/* Oldest match, left in the queue; NULL: none. Accepts wildcards and indexes the queue at the first one. */
weft_unexpected *weft_unexpected_search(weft_match *match, struct weft_worker *worker, int32_t source, int32_t tag);
/* Removes the message from the queue. The caller then owns it and frees it with weft_unexpected_free. */
void weft_unexpected_remove(weft_match *match, struct weft_worker *worker, weft_unexpected *unexpected);

/* Unexpected message that a receive with this source and tag (wildcards allowed) would match, left in the queue; NULL: none. */
static inline weft_unexpected *weft_match_find(weft_match *match, struct weft_worker *worker, int32_t source, int32_t tag)
{
    return weft_likely(match->unexpected_count == 0) ? NULL : weft_unexpected_search(match, worker, source, tag);
}

/* Unmatched RTS of this peer; id: the sender's request id. NULL: none. */
weft_unexpected *weft_match_announced(struct weft_worker *worker, const struct weft_peer *peer, uint32_t id);

/* Copies a message; body NULL: hdr->bytes bytes stay unset. NULL: out of memory. Free with weft_unexpected_free. */
weft_unexpected *weft_unexpected_new(struct weft_worker *worker, struct weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_unexpected_free(struct weft_worker *worker, weft_unexpected *unexpected);

#endif
