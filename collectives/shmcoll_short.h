/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_short: short calls through a node area that a program repeats: the data of each member fits its line, and the arguments are those
 * of its latest call of this kind, so that the choice of the algorithm, lengths, offsets and the operator's kernel are known. One function
 * performs all kinds: publish the own data, await those that it needs, read. Posts and lines are those of the rounds in shmcoll.c: each
 * member may make a call this way or that. Called by coll.c and shmcoll_queue.c; requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_SHORT_H
#define WEFT_COLLECTIVES_SHMCOLL_SHORT_H

#include "collectives/calls.h"
#include "collectives/shmcoll_area.h"

/* Remembers a call that goes through the area by `rule`, if it is short, its types are predefined (so no handle is used again for another
 * type), and its data is not checked. */
void weft_shmcoll_note_short(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, const struct weft_coll_rule *rule);
/* Forgets all: other algorithms may be chosen from now on. */
void weft_shmcoll_forget_shorts(weft_shmcoll *area);

/* The remembered call, if these arguments are the same; NULL: they are not. Buffers may differ, and the root, if it is another member. */
static inline const weft_shmcoll_short *weft_shmcoll_find_short(const weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args)
{
    const weft_shmcoll_short *same;

    if (weft_unlikely(!area->shorts || kind >= WEFT_COLL_LAST))
        return NULL;
    same = &area->shorts[kind][args->root == (int)area->rank];
    return same->is_valid && same->recvcount == args->recvcount && same->recvtype == args->recvtype &&
                   same->sendcount == args->sendcount && same->sendtype == args->sendtype && same->op == args->op &&
                   same->in_place == args->in_place
               ? same
               : NULL;
}

/* The call as it is published, blocking. */
static inline weft_call weft_shmcoll_short_call(const weft_shmcoll_short *same, const weft_coll *args)
{
    return weft_call_rooted(same->call, args->root);
}

/* Blocking. Publishes the call for the check, and performs it. */
int weft_shmcoll_run_short(weft_shmcoll *area, enum weft_coll_kind kind, const weft_shmcoll_short *same, const weft_coll *args);
/* As weft_shmcoll_open_and_try. */
int weft_shmcoll_try_short(weft_shmcoll *area, enum weft_coll_kind kind, const weft_shmcoll_short *same, const weft_coll *args,
                           uint32_t looks);

#endif
