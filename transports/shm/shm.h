/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm: the iface and eps of the shared-memory transport; private to its folder and its tests.
 */
#ifndef WEFT_TRANSPORTS_SHM_SHM_H
#define WEFT_TRANSPORTS_SHM_SHM_H

#include "mem/segment.h"
#include "transport/iface.h"
#include "transports/shm/bulk.h"
#include "transports/shm/ring.h"
#include "base/nt_copy.h"

#define WEFT_SHM_HOT_FEW 4 /* this many rings are always polled; beyond, idle ones are closed and their senders must raise the wakeup */

/* An idle ring is closed after its patience_ns: MIN at first, doubled up to MAX if it was opened again soon after a close, so that a peer
 * that sends in every iteration keeps its ring open. One barrier closes all that are due. */
#define WEFT_SHM_PATIENCE_MIN_NS 10000000u
#define WEFT_SHM_PATIENCE_MAX_NS 1280000000u
#define WEFT_SHM_REOPEN_SOON 32 /* "soon": within this many times patience_ns from close to reopen */

/* Pause before a sender that was deferred (no memory) is tried again; doubles up to MAX. */
#define WEFT_SHM_RETRY_MIN_NS 1000000u
#define WEFT_SHM_RETRY_MAX_NS 128000000u

/* Tenths: factor by which non-temporal stores must be faster for both sides together. A body in a hot place is mostly read at once,
 * one in a cold place later. */
#define WEFT_SHM_WORTH_HOT 20
#define WEFT_SHM_WORTH_COLD 11
#define WEFT_SHM_TRIAL_COLD 6 /* samples: 96 bodies, more than a pair has chunks */

#define WEFT_SHM_HOT_MAX 4096 /* bytes: longer bodies go into chunks while there are any, shorter ones into the ring's blocks */
#define WEFT_SHM_FRAG 8192    /* copying this many bytes costs some ten times the handling of a frame */
#define WEFT_SHM_FRAGS_MAX (128u << 10) /* of longer messages RTS and CTS take less than a twentieth of the time */

enum weft_cma_state { WEFT_CMA_UNKNOWN, WEFT_CMA_WORKS, WEFT_CMA_REFUSED };

enum shm_chore {
    SHM_CHECK_DEAD = 1,
    SHM_RETRY = 2,     /* deferred senders wait for retry_at_ns */
    SHM_SET_ASIDE = 4  /* some deferred senders are among the hot rings */
};

typedef struct shm_ep {
    weft_ep ep;
    uint32_t local;        /* node-local rank of the peer */
    weft_rank_page *page;  /* of the peer */
    weft_ring_out out;     /* to the peer; ring NULL: never sent */
    weft_ring_in in;       /* from the peer; ring NULL: never received */
    weft_bulk *bulk;       /* the peer's chunks, mapped at the first long frame; NULL: not yet */
    weft_bulk_share share; /* chunks of this rank that this ep uses */
    uint32_t announce_flags; /* ring flags with which announce() needs no fence (weft_ring_announce_flags) */
    uint32_t consumed_before; /* in.consumed at the last idle check */
    uint64_t active_ns;    /* time when a change of it was last seen */
    uint64_t patience_ns;  /* idle time after which the ring is closed; 0: never opened */
    uint64_t closed_ns;    /* time when it was closed as idle; 0: it is open or never was */
    bool is_hot;
    bool is_lost;
    bool is_blocked;       /* a send returned AGAIN and none succeeded since */
    enum weft_cma_state cma;
} shm_ep;

typedef struct shm_iface {
    weft_iface iface;
    const weft_segment *segment;
    uint32_t local, ranks;
    weft_rank_page *page;
    weft_bulk_owner bulk;
    weft_nt_copy store[WEFT_WARMTHS];
    void *scratch;         /* private buffer of WEFT_BULK_CHUNK bytes, allocated at first use */
    uint32_t ring_flags;   /* flags of an open ring: WEFT_RING_OPEN, and WEFT_RING_FENCE without membarrier */
    uint32_t chores;       /* enum shm_chore: work of the next poll beside the open rings */
    bool is_retrying;
    uint64_t retry_ns, retry_at_ns; /* pause; time of the next try of deferred senders */
    uint64_t *deferred;    /* [ranks / 64] bit set of deferred senders */
    uint64_t (*now_ns)(void);
    bool wants_fd;         /* the owner sleeps on descriptors: wakeup_fd replaces the futex */
    int wakeup_fd;         /* mem/wakeup_sock's descriptor, or -1 */
    uint32_t polls;
    uint64_t check_at_ns;   /* time of the next check for idle rings */
    uint32_t hot_count;
    shm_ep **hot;        /* [ranks] eps whose rings every poll checks */
    shm_ep **eps;      /* [ranks] by node-local rank; NULL: no ep, or closed */
    bool *has_left;        /* [ranks] the ep was closed; only a BYE may still come */
} shm_iface;

/* Where the ring of a pair lies in the segment; ranks are node-local. */
static inline uint64_t shm_ring_offset(const shm_iface *shm, uint32_t receiver, uint32_t sender)
{
    const weft_segment_hdr *hdr = shm->segment->hdr;
    return hdr->inboxes + ((uint64_t)receiver * hdr->ranks + sender) * hdr->ring_bytes;
}

/* recv.c, for the operations table in iface.c: */
int weft_shm_arm(weft_iface *iface, weft_wakeup *wakeup);
void weft_shm_disarm(weft_iface *iface);
/* Opens the rings whose active bits are set and receives at least one frame of each, whatever the budget. Returns the number of frames. */
int weft_shm_activate_rings(shm_iface *shm, int budget);
/* Closes idle rings. Returns how many of them turned out to hold a frame. */
int weft_shm_deactivate_rings(shm_iface *shm, uint64_t now_ns);

#endif
