/* SPDX-License-Identifier: BSD-3-Clause
 *
 * match: who gets which message (MPI 5.0, 3.5: order by post number). Posted receives and unexpected (unexpected) messages of one channel,
 * each found in O(1) by source and tag; wildcards are keys of their own, and the lowest post number of the keys that fit wins.
 * Early messages stand under wildcard keys only after the first receive that asked by one.
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
    weft_fifo_entry match;  /* by source and tag */
    weft_list_link all;          /* in order of arrival */
    struct weft_peer *peer;
    weft_hdr hdr;
    struct unexpected_wild *wild; /* its places under the wildcard keys, if there are any */
    uint64_t body[];
} weft_unexpected;

typedef struct weft_match {
    weft_req *latest;       /* the youngest posted receives that ask for the same, oldest first, stand apart: neither a ping-pong nor a
                             * window of like receives touches the map. Linked by match.next; the first one's match.prev is the last */
    weft_fifomap posted;    /* all older ones */
    uint32_t posted_wild;   /* how many of those hold a wildcard */
    uint32_t unexpected_count;   /* and senders that keep messages back (p2p/stall): a receive has to look */
    weft_fifomap unexpected;
    weft_list_link unexpected_all;
    bool is_indexed;        /* unexpected messages stand under their wildcard keys too */
} weft_match;

void weft_match_open(weft_match *match);
/* Posted receives and unexpected messages must be gone. */
void weft_match_close(weft_match *match);

static inline uint64_t weft_match_key(int32_t source, int32_t tag) { return (uint64_t)(uint32_t)source << 32 | (uint32_t)tag; }

static inline bool weft_match_is_wild(const weft_req *req) { return req->rank == WEFT_ANY || req->tag == WEFT_ANY_TAG; }

/* Moves the latest ones to the others. */
void weft_match_settle(weft_match *match);

/* A blocking receive where the latest ones ask for the same and are blocking receives of other threads: it goes before them, since its
 * thread runs and theirs may sleep. They are logically concurrent (MPI 5.0, 3.5): none of them returned before this one began. False: not so, or
 * the first of them was overtaken often enough. */
bool weft_match_overtake(weft_match *match, weft_req *req);

/* Posts a receive (rank, tag, order are set). */
static inline void weft_match_post(weft_match *match, weft_req *req)
{
    weft_req *first = match->latest;
    req->is_posted = req->is_latest = true;
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
        weft_match_settle(match);
    req->match.prev = &req->match;
    match->latest = req;
}

/* Takes the first of the latest. */
static inline void weft_match_pop(weft_match *match)
{
    weft_fifo_entry *next = match->latest->match.next;
    if (next)
        next->prev = match->latest->match.prev;
    match->latest = next ? weft_container(next, weft_req, match) : NULL;
}

static inline void weft_match_remove(weft_match *match, weft_req *req)
{
    match->posted_wild -= weft_match_is_wild(req);
    weft_fifomap_remove(&match->posted, &req->match);
}

/* A receive that is cancelled. */
void weft_match_unpost(weft_match *match, weft_req *req);
/* Is a receive posted that asks for just this tag (or for WEFT_ANY_TAG, by wildcard), from source or from any? */
bool weft_match_is_posted(const weft_match *match, int32_t source, int32_t tag);
/* One receive of each source and tag (wildcards are such) that are posted. */
void weft_match_each_posted(const weft_match *match, void (*each)(void *arg, const weft_req *req), void *arg);

weft_req *weft_match_posted_wild(weft_match *match, int32_t source, int32_t tag, weft_fifo_entry *exact);

/* Among all but the latest. */
static inline weft_req *weft_match_older(weft_match *match, int32_t source, int32_t tag)
{
    weft_fifo_entry *entry = weft_fifomap_find(&match->posted, weft_match_key(source, tag));
    if (weft_unlikely(match->posted_wild))
        return weft_match_posted_wild(match, source, tag, entry);
    return entry ? weft_container(entry, weft_req, match) : NULL;
}

/* The posted receive that a message from source with tag matches, taken out; NULL when there is none. */
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

/* Keeps an unexpected message (all but its index entries filled in). */
void weft_unexpected_add(weft_match *match, struct weft_worker *worker, weft_unexpected *unexpected);
weft_unexpected *weft_unexpected_search(weft_match *match, struct weft_worker *worker, int32_t source, int32_t tag);
/* Takes it out of the matching; it stays the caller's, who frees it with weft_unexpected_free. */
void weft_unexpected_remove(weft_match *match, struct weft_worker *worker, weft_unexpected *unexpected);

/* The unexpected message that a receive from source (or WEFT_ANY) with tag (or WEFT_ANY_TAG) would get, left where it is; or NULL. */
static inline weft_unexpected *weft_match_find(weft_match *match, struct weft_worker *worker, int32_t source, int32_t tag)
{
    return weft_likely(match->unexpected_count == 0) ? NULL : weft_unexpected_search(match, worker, source, tag);
}

/* The RTS of this peer that matched nothing yet and whose request has this name there, or NULL. */
weft_unexpected *weft_match_announced(struct weft_worker *worker, const struct weft_peer *peer, uint32_t name);

weft_unexpected *weft_unexpected_new(struct weft_worker *worker, struct weft_peer *peer, const weft_hdr *hdr, const void *body);
void weft_unexpected_free(struct weft_worker *worker, weft_unexpected *unexpected);

#endif
