/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_select: which way a message of so many bytes takes, and why. Two compares on the hot path (eager_max in the peer); the protocol of a
 * rendezvous is chosen by the receiver from what transfers of that size class took: each protocol that the ifaces offer is tried a few times
 * at first use, the fastest stays, and the others are measured again when that costs little of the time that was spent since.
 * A ladder belongs to an iface and a kind of peer: what memory taught says nothing of a network, nor one's own node of others.
 *
 * Both ways at once. Where moving bytes takes CPU time, two ranks that send to each other share it: a protocol that occupies both of them for
 * one message is worth nothing then. Such transfers have records of their own, in which the bytes of both directions count. Of a
 * pair the lower rank chooses for both: its RTS names the protocol (a hint), because two that choose by themselves disturb each other.
 */
#ifndef WEFT_P2P_RNDV_SELECT_H
#define WEFT_P2P_RNDV_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "p2p/rndv.h"

#define WEFT_RNDV_SIZE_CLASSES 24 /* by power of two from 4 KiB */

typedef struct weft_rndv_record {
    uint32_t tries;    /* transfers of the present trial, or the last one, and ... */
    uint32_t samples;   /* ... what was learnt from them; goes on after it */
    uint32_t in_flight;   /* receives that began and are not over */
    float ns_per_byte; /* smoothed; 0 = never measured */
} weft_rndv_record;

/* One size class of one sort of transfers. */
typedef struct weft_rndv_stats_row {
    weft_rndv_record record[WEFT_RNDV_LAST];
    uint64_t spent_ns; /* in stints since a protocol was last tried again */
    uint32_t samples;   /* ... and so many there were */
    uint8_t next;      /* the protocol that is tried again next */
    uint8_t used;      /* the protocol that was last chosen without a trial */
    uint8_t streak;    /* how many stints came after one of the same protocol, ... */
    const weft_rndv_record *latest; /* ... this one */
} weft_rndv_stats_row;

/* Time in which the transfers under way were all of one protocol and row: what they bring per time is what that protocol is worth, also when
 * many overlap and each of them takes long. A lone transfer is a stint of its own. */
typedef struct weft_rndv_sample {
    weft_rndv_stats_row *row;
    weft_rndv_record *of;
    uint64_t since; /* ns; 0: others are under way, too */
    uint64_t bytes;
    uint32_t ended;
    uint32_t stale; /* sends that may have been all but over when it began: they end first, and do not count */
    bool is_both_ways;
} weft_rndv_sample;

/* What was not registered before costs more, and so does what moves both ways: rows of their own. Guarded by the worker. */
typedef struct weft_rndv_stats {
    weft_rndv_stats_row rows[2][2][WEFT_RNDV_SIZE_CLASSES]; /* [is_cold][is_both_ways] */
    uint32_t in_flight; /* receives, in all */
    uint32_t sends;  /* announced and not over */
    weft_rndv_sample sample;
} weft_rndv_stats;

/* A transfer of the receiver. */
typedef struct weft_rndv_xfer {
    enum weft_rndv_proto proto;
    bool is_cold, is_both_ways;
    uint64_t bytes;
} weft_rndv_xfer;

/* What both sides' memory allows for one message. */
typedef struct weft_rndv_caps {
    bool can_move; /* both ends are one dense run of bytes, and may be registered where that is needed */
    bool has_key;  /* the sender's is registered */
    bool is_cold;  /* that of one side was not */
} weft_rndv_caps;

/* The ladders of a worker, one for each iface and kind of peer; NULL: out of memory. Freed with the worker. */
weft_rndv_stats *weft_rndv_stats_open(const weft_worker *worker);
/* The one for this peer. */
weft_rndv_stats *weft_rndv_stats_of(const weft_worker *worker, const weft_peer *peer);
/* The largest eager message to this peer, bytes. */
uint32_t weft_rndv_eager_max(const weft_peer *peer);
/* Do transfers over this iface take CPU time of both sides, so that what moves the other way slows them down? */
bool weft_rndv_is_shared(const weft_iface *iface);
/* The protocol for a rendezvous. */
enum weft_rndv_proto weft_rndv_select(weft_rndv_stats *stats, const weft_peer *peer, uint64_t bytes, const weft_rndv_caps *rndv_caps, bool is_both_ways);
/* Can this protocol, which the sender hints at, be taken? */
bool weft_rndv_allows(const weft_peer *peer, enum weft_rndv_proto proto, const weft_rndv_caps *rndv_caps);
/* Each transfer begins once and ends once, with the same words; a failed one teaches nothing. Times by weft_clock_ns. */
void weft_rndv_xfer_begin(weft_rndv_stats *stats, const weft_rndv_xfer *xfer, uint64_t now);
void weft_rndv_xfer_end(weft_rndv_stats *stats, const weft_rndv_xfer *xfer, bool has_failed, uint64_t began, uint64_t now);
/* So does each message that was announced; bytes: 0 when it failed. */
void weft_rndv_send_begin(weft_rndv_stats *stats);
void weft_rndv_send_end(weft_rndv_stats *stats, uint64_t bytes, uint64_t now);

/* One line for each protocol in reach of `peer`, as weft-info prints it: "up to 16384: eager: fits ..."; cut at room. */
void weft_rndv_stats_show(const weft_rndv_stats *stats, const weft_peer *peer, char *text, size_t room);
const char *weft_rndv_proto_name(enum weft_rndv_proto proto);

#endif
