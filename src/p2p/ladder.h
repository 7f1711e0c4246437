/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ladder: which way a message of so many bytes takes, and why. Two compares on the hot path (eager_max in the peer); the rung of a
 * rendezvous is chosen by the receiver from what its own transfers of that size class took: each rung that the ports offer is tried
 * a few times at first use, the fastest stays, and is put to the test again now and then. One ladder per lane.
 */
#ifndef WEFT_P2P_LADDER_H
#define WEFT_P2P_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "p2p/rndv.h"

#define WEFT_LADDER_CLASSES 24 /* by power of two from 4 KiB */

typedef struct weft_rung_record {
    uint32_t tries;
    float best_ns_per_byte; /* of the last trials; 0 = never measured */
} weft_rung_record;

/* What was not registered before costs more: it is a ladder of its own. */
typedef struct weft_ladder {
    weft_rung_record record[2][WEFT_LADDER_CLASSES][WEFT_RUNG_LAST]; /* warm, cold */
    uint32_t transfers[2][WEFT_LADDER_CLASSES];
} weft_ladder;

/* What both sides' memory allows for one message. */
typedef struct weft_offer {
    bool can_move; /* both ends are one dense run of bytes, and may be registered where that is needed */
    bool has_key;  /* the sender's is registered */
    bool is_cold;  /* that of one side was not */
} weft_offer;

/* The largest eager message to this peer, bytes. */
uint32_t weft_ladder_eager_max(const weft_peer *peer);
/* The rung for a rendezvous. */
enum weft_rung weft_ladder_choose(weft_ladder *ladder, const weft_peer *peer, uint64_t bytes, const weft_offer *offer);
void weft_ladder_learn(weft_ladder *ladder, enum weft_rung rung, bool is_cold, uint64_t bytes, uint64_t took_ns);

/* One line for each rung in reach of `peer`, as weft-info prints it: "up to 16384: eager: fits ..."; cut at room. */
void weft_ladder_show(const weft_ladder *ladder, const weft_peer *peer, char *text, size_t room);
const char *weft_rung_name(enum weft_rung rung);

#endif
