/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ladder: which way a message of so many bytes takes, and why. Two compares on the hot path (eager_max in the peer); the rung of a
 * rendezvous is chosen by the receiver from what its own transfers of that size class took: each rung that the ports offer is tried
 * a few times at first use, the fastest stays, and is put to the test again now and then. One ladder per lane, for all its peers.
 */
#ifndef WEFT_P2P_LADDER_H
#define WEFT_P2P_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "p2p/rndv.h"

#define WEFT_LADDER_CLASSES 24 /* by power of two from 4 KiB */

typedef struct weft_rung_record {
    uint32_t tries, stints;
    uint32_t flying;        /* transfers that began and are not over */
    float best_ns_per_byte; /* of the last trials; 0 = never measured */
} weft_rung_record;

/* Time in which the transfers under way were all of one rung and class: what they bring per time is what that rung is worth, also when
 * many overlap and each of them takes long. A lone transfer is a stint of its own. */
typedef struct weft_stint {
    weft_rung_record *of;
    uint64_t since; /* ns; 0: others are under way, too */
    uint64_t bytes;
    uint32_t ended;
} weft_stint;

/* What was not registered before costs more: it is a ladder of its own. */
typedef struct weft_ladder {
    weft_rung_record record[2][WEFT_LADDER_CLASSES][WEFT_RUNG_LAST]; /* warm, cold */
    uint32_t transfers[2][WEFT_LADDER_CLASSES];
    uint32_t flying; /* in all */
    weft_stint stint;
} weft_ladder;

/* A transfer of the receiver. */
typedef struct weft_climb {
    enum weft_rung rung;
    bool is_cold;
    uint64_t bytes;
} weft_climb;

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
/* Each transfer begins once and ends once, with the same words; a failed one teaches nothing. Times by weft_clock_ns. */
void weft_ladder_begin(weft_ladder *ladder, const weft_climb *climb, uint64_t now);
void weft_ladder_end(weft_ladder *ladder, const weft_climb *climb, bool has_failed, uint64_t began, uint64_t now);

/* One line for each rung in reach of `peer`, as weft-info prints it: "up to 16384: eager: fits ..."; cut at room. */
void weft_ladder_show(const weft_ladder *ladder, const weft_peer *peer, char *text, size_t room);
const char *weft_rung_name(enum weft_rung rung);

#endif
