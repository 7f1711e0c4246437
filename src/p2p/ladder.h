/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ladder: which way a message of so many bytes takes, and why. Two compares on the hot path (eager_max in the peer); the rung of a
 * rendezvous is chosen by the receiver from what transfers of that size class took: each rung that the ifaces offer is tried a few times
 * at first use, the fastest stays, and the others are measured again when that costs little of the time that was spent since.
 * A ladder belongs to an iface and a kind of peer: what memory taught says nothing of a network, nor one's own node of others.
 *
 * Both ways at once. Where moving bytes takes CPU time, two ranks that send to each other share it: a rung that occupies both of them for
 * one message is worth nothing then. Such transfers have records of their own, in which the bytes of both directions count. Of a
 * pair the lower rank chooses for both: its RTS names the rung (a hint), because two that choose by themselves disturb each other.
 */
#ifndef WEFT_P2P_LADDER_H
#define WEFT_P2P_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "p2p/rndv.h"

#define WEFT_LADDER_CLASSES 24 /* by power of two from 4 KiB */

typedef struct weft_rung_record {
    uint32_t tries;    /* transfers of the present trial, or the last one, and ... */
    uint32_t stints;   /* ... what was learnt from them; goes on after it */
    uint32_t in_flight;   /* receives that began and are not over */
    float ns_per_byte; /* smoothed; 0 = never measured */
} weft_rung_record;

/* One size class of one sort of transfers. */
typedef struct weft_ladder_row {
    weft_rung_record record[WEFT_RUNG_LAST];
    uint64_t spent_ns; /* in stints since a rung was last tried again */
    uint32_t stints;   /* ... and so many there were */
    uint8_t next;      /* the rung that is tried again next */
    uint8_t used;      /* the rung that was last chosen without a trial */
    uint8_t streak;    /* how many stints came after one of the same rung, ... */
    const weft_rung_record *latest; /* ... this one */
} weft_ladder_row;

/* Time in which the transfers under way were all of one rung and row: what they bring per time is what that rung is worth, also when
 * many overlap and each of them takes long. A lone transfer is a stint of its own. */
typedef struct weft_stint {
    weft_ladder_row *row;
    weft_rung_record *of;
    uint64_t since; /* ns; 0: others are under way, too */
    uint64_t bytes;
    uint32_t ended;
    uint32_t stale; /* sends that may have been all but over when it began: they end first, and do not count */
    bool is_both_ways;
} weft_stint;

/* What was not registered before costs more, and so does what moves both ways: rows of their own. Guarded by the worker. */
typedef struct weft_ladder {
    weft_ladder_row rows[2][2][WEFT_LADDER_CLASSES]; /* [is_cold][is_both_ways] */
    uint32_t in_flight; /* receives, in all */
    uint32_t sends;  /* announced and not over */
    weft_stint stint;
} weft_ladder;

/* A transfer of the receiver. */
typedef struct weft_climb {
    enum weft_rung rung;
    bool is_cold, is_both_ways;
    uint64_t bytes;
} weft_climb;

/* What both sides' memory allows for one message. */
typedef struct weft_offer {
    bool can_move; /* both ends are one dense run of bytes, and may be registered where that is needed */
    bool has_key;  /* the sender's is registered */
    bool is_cold;  /* that of one side was not */
} weft_offer;

/* The ladders of a worker, one for each iface and kind of peer; NULL: out of memory. Freed with the worker. */
weft_ladder *weft_ladder_open(const weft_worker *worker);
/* The one for this peer. */
weft_ladder *weft_ladder_of(const weft_worker *worker, const weft_peer *peer);
/* The largest eager message to this peer, bytes. */
uint32_t weft_ladder_eager_max(const weft_peer *peer);
/* Do transfers over this iface take CPU time of both sides, so that what moves the other way slows them down? */
bool weft_ladder_is_shared(const weft_iface *iface);
/* The rung for a rendezvous. */
enum weft_rung weft_ladder_choose(weft_ladder *ladder, const weft_peer *peer, uint64_t bytes, const weft_offer *offer, bool is_both_ways);
/* Can this rung, which the sender hints at, be taken? */
bool weft_ladder_allows(const weft_peer *peer, enum weft_rung rung, const weft_offer *offer);
/* Each transfer begins once and ends once, with the same words; a failed one teaches nothing. Times by weft_clock_ns. */
void weft_ladder_begin(weft_ladder *ladder, const weft_climb *climb, uint64_t now);
void weft_ladder_end(weft_ladder *ladder, const weft_climb *climb, bool has_failed, uint64_t began, uint64_t now);
/* So does each message that was announced; bytes: 0 when it failed. */
void weft_ladder_send_begin(weft_ladder *ladder);
void weft_ladder_send_end(weft_ladder *ladder, uint64_t bytes, uint64_t now);

/* One line for each rung in reach of `peer`, as weft-info prints it: "up to 16384: eager: fits ..."; cut at room. */
void weft_ladder_show(const weft_ladder *ladder, const weft_peer *peer, char *text, size_t room);
const char *weft_rung_name(enum weft_rung rung);

#endif
