/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_select: selects eager_max and the rendezvous protocol by measurement, per iface, kind of peer (same node or remote) and size
 * class. At first use each protocol is tried a few times; the fastest is used, and others are measured again if that costs little
 * of the time spent since. Ranks of a node that share CPUs use what takes least CPU time instead, without trials. Called by the receiver
 * (rndv); guarded by the worker.
 * Transfers in both directions at once share CPU time and have records of their own, which count the bytes of both directions.
 * The lower rank of a pair then chooses for both by a hint in its RTS: two independent choices would disturb each other.
 */
#ifndef WEFT_P2P_RNDV_SELECT_H
#define WEFT_P2P_RNDV_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/peer.h"
#include "p2p/rndv_wire.h"

#define WEFT_RNDV_SIZE_CLASSES 24 /* by power of two from 4 KiB */

/* One protocol in one row. */
typedef struct weft_rndv_record {
    uint32_t tries;     /* transfers selected for the current or last trial */
    uint32_t samples;   /* weighted samples since that trial began; TRIALS end it */
    uint32_t in_flight; /* receives begun and not ended */
    float ns_per_byte;  /* smoothed; 0: never measured */
} weft_rndv_record;

/* One size class, by is_cold and is_both_ways. */
typedef struct weft_rndv_stats_row {
    weft_rndv_record record[WEFT_RNDV_LAST];
    uint64_t spent_ns; /* time in samples since a protocol was last measured again */
    uint32_t samples;  /* number of those samples */
    uint8_t next;      /* protocol to be measured again next */
    uint8_t used;      /* protocol last chosen outside of a trial */
    uint8_t streak;    /* consecutive samples of `latest` after its first one, at most COLD */
    const weft_rndv_record *latest; /* record of the last sample; NULL: none */
} weft_rndv_stats_row;

/* Interval in which all transfers in flight have one protocol and row: the joint rate is one sample, however many overlap. */
typedef struct weft_rndv_sample {
    weft_rndv_stats_row *row;
    weft_rndv_record *of; /* record of `row` that is measured */
    uint64_t since;       /* begin, ns of weft_clock_ns; 0: not measuring, other transfers are in flight */
    uint64_t bytes;       /* moved since */
    uint32_t ended;       /* transfers ended since */
    uint32_t stale;       /* sends in flight at the begin and not ended; they do not count */
    bool is_both_ways;
} weft_rndv_sample;

/* Statistics of one iface and kind of peer. Unregistered memory and both directions at once have rows of their own. */
typedef struct weft_rndv_stats {
    weft_rndv_stats_row rows[2][2][WEFT_RNDV_SIZE_CLASSES]; /* [is_cold][is_both_ways] */
    uint32_t in_flight; /* receives in all rows */
    uint32_t sends;     /* sends announced and not ended */
    weft_rndv_sample sample;
} weft_rndv_stats;

/* A transfer as its receiver counts it. */
typedef struct weft_rndv_xfer {
    enum weft_rndv_proto proto;
    bool is_cold, is_both_ways;
    uint64_t bytes;
} weft_rndv_xfer;

/* What the memory of both sides allows for one message. */
typedef struct weft_rndv_caps {
    bool can_move; /* both buffers are contiguous, and may be registered if the iface needs that */
    bool has_key;  /* RTS carries the key of the send buffer */
    bool is_cold;  /* the buffer of one side was not registered */
} weft_rndv_caps;

/* Statistics of a worker, one per iface and kind of peer. NULL: out of memory. Freed with the worker. */
weft_rndv_stats *weft_rndv_stats_open(const weft_worker *worker);
/* The element for this peer. */
weft_rndv_stats *weft_rndv_stats_of(const weft_worker *worker, const weft_peer *peer);
/* Longest eager message to this peer, bytes. */
uint32_t weft_rndv_eager_max(const weft_peer *peer);
/* Do transfers over this iface use CPU time of the ranks, so that the two directions slow each other down? */
bool weft_rndv_is_shared(const weft_iface *iface);
/* Selects the protocol of a rendezvous; may count it as a trial. */
enum weft_rndv_proto weft_rndv_select(weft_rndv_stats *stats, const weft_peer *peer, uint64_t bytes, const weft_rndv_caps *rndv_caps,
                                      bool is_both_ways);
/* May the receiver use this protocol, which the sender proposes? */
bool weft_rndv_allows(const weft_peer *peer, enum weft_rndv_proto proto, const weft_rndv_caps *rndv_caps);
/* Each transfer must begin and end once, with equal *xfer. A failed one is not measured. Times are of weft_clock_ns. */
void weft_rndv_xfer_begin(weft_rndv_stats *stats, const weft_rndv_xfer *xfer, uint64_t now);
void weft_rndv_xfer_end(weft_rndv_stats *stats, const weft_rndv_xfer *xfer, bool has_failed, uint64_t began, uint64_t now);
/* The same for each announced send. bytes: 0 if it failed. */
void weft_rndv_send_begin(weft_rndv_stats *stats);
void weft_rndv_send_end(weft_rndv_stats *stats, uint64_t bytes, uint64_t now);

/* Writes a line for eager and one per measured size class (weft-info --protocols), truncated to capacity bytes. */
void weft_rndv_stats_show(const weft_rndv_stats *stats, const weft_peer *peer, char *text, size_t capacity);
const char *weft_rndv_proto_name(enum weft_rndv_proto proto);

#endif
