/* SPDX-License-Identifier: BSD-3-Clause
 *
 * peer: one other process as a lane reaches it. Made on first contact; frames to a peer take one path at a time.
 */
#ifndef WEFT_CORE_PEER_H
#define WEFT_CORE_PEER_H

#include <stdint.h>

#include "base/list.h"
#include "core/lane.h"
#include "transport/port.h"

enum weft_peer_state { WEFT_PEER_ALIVE, WEFT_PEER_LOST, WEFT_PEER_LEFT };

struct weft_ladder;

typedef struct weft_peer {
    weft_path *path;       /* never NULL: the dead path when lost */
    weft_lane *lane;
    uint32_t seq_out, seq_in;
    uint32_t credit;       /* what we may still send eagerly, in WEFT_CREDIT_BYTES */
    uint32_t owed;         /* what we have freed of theirs and not yet told */
    weft_link waiting;     /* frames (weft_late) that found the port full; while not empty every frame queues here */
    weft_link backlog;     /* in lane->backlog while waiting is not empty */
    struct weft_ladder *ladder;
    weft_name name;
    enum weft_peer_state state;
    bool said_bye, heard_bye;
} weft_peer;

/* The peer of a rank of our job, reached if need be. WEFT_E_PEER with a text when no port reaches it. */
int weft_peer_find(weft_lane *lane, uint32_t rank, weft_peer **peer);
/* Sends or queues in order. Stamps seq and credits. The body must stay valid until `ended` is called if the frame was queued:
 * queued small bodies (up to 64 bytes, no fill) are copied. `late` may be NULL for those. Returns 0 or an error. */
typedef struct weft_late {
    weft_link link;
    weft_frame frame;
    weft_req *req;                       /* whose frame this is, for fill */
    void (*ended)(struct weft_late *late, int rc);
    uint8_t small[64];
    bool is_owned;                       /* allocated by peer_send */
} weft_late;

#endif
