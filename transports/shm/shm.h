/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm: the iface and eps of the shared-memory transport, private to its folder and its tests.
 */
#ifndef WEFT_TRANSPORTS_SHM_SHM_H
#define WEFT_TRANSPORTS_SHM_SHM_H

#include "mem/segment.h"
#include "transport/iface.h"
#include "transports/shm/bulk.h"
#include "transports/shm/ring.h"
#include "base/nt_copy.h"

#define WEFT_SHM_HOT_FEW 4 /* so many rings are always polled; beyond, silent ones are closed and raise the wakeup when they speak */

/* A ring is closed when it was silent for its patience: at least so long, and longer (up to MAX) where it was opened again soon after a
 * close, so that neighbours that speak in every iteration of a program keep their rings open. One barrier closes all that are due. */
#define WEFT_SHM_PATIENCE_MIN_NS 10000000u
#define WEFT_SHM_PATIENCE_MAX_NS 1280000000u
#define WEFT_SHM_REOPEN_SOON 32 /* times the patience, from close to reopen */

/* Pause before a sender that could not be received from (no memory) is tried again; doubles up to MAX. */
#define WEFT_SHM_RETRY_MIN_NS 1000000u
#define WEFT_SHM_RETRY_MAX_NS 128000000u

#define WEFT_SHM_FRAG 4096  /* copying so many bytes takes some ten times as long as handing a frame over */

enum weft_cma_state { WEFT_CMA_UNKNOWN, WEFT_CMA_WORKS, WEFT_CMA_REFUSED };

enum shm_chore {
    SHM_LOOK_FOR_DEAD = 1,
    SHM_RETRY = 2,     /* deferred senders wait for retry_at_ns */
    SHM_SET_ASIDE = 4  /* some of them are among the hot rings */
};

typedef struct shm_ep {
    weft_ep ep;
    uint32_t local;        /* the neighbour's index on the node */
    weft_rank_page *page;  /* the neighbour's */
    weft_ring_out out;     /* ring NULL: never sent */
    weft_ring_in in;       /* ring NULL: never received */
    weft_bulk *bulk;       /* the neighbour's chunks, mapped at the first long frame */
    weft_bulk_share share; /* of ours */
    uint32_t announce_flags; /* ring flags on which a sender need not fence (weft_ring_announce_flags) */
    uint32_t taken_before; /* in.consumed when silence was last looked for */
    uint64_t active_ns;    /* when it was last seen to have changed */
    uint64_t patience_ns;  /* silence after which the ring is closed; 0: never opened */
    uint64_t closed_ns;    /* when silence closed it; 0: never */
    bool is_hot;
    bool is_lost;
    bool is_blocked;       /* a frame was refused and none got through since */
    enum weft_cma_state cma;
} shm_ep;

typedef struct shm_iface {
    weft_iface iface;
    const weft_segment *segment;
    uint32_t local, ranks;
    weft_rank_page *page;
    weft_bulk_owner bulk;
    weft_nt_copy store;
    void *scratch;         /* a chunk's room at home, made at first use */
    uint32_t ring_flags;   /* what an open ring says: WEFT_RING_OPEN, and WEFT_RING_FENCE without membarrier */
    uint32_t chores;       /* enum shm_chore: what a poll has to do beside the open rings */
    bool is_retrying;
    uint64_t retry_ns, retry_at_ns; /* pause, and when the deferred senders are tried again */
    uint64_t *deferred;    /* [ranks / 64] senders that could not be received from */
    uint64_t (*now_ns)(void);
    bool wants_fd;         /* the owner sleeps on descriptors: chime rings instead of the futex */
    int chime;             /* mem/wakeup_sock's descriptor, or -1 */
    uint32_t polls;
    uint64_t look_at_ns;   /* silent rings are looked for no earlier */
    uint32_t hot_count;
    shm_ep **hot;        /* [ranks] rings that every poll looks at */
    shm_ep **eps;      /* [ranks] by local index; NULL: not reached, or left */
    bool *has_left;        /* [ranks]: we have left it; what it may still say is its goodbye */
} shm_iface;

/* shm.c, for the table in iface.c: */
int weft_shm_arm(weft_iface *iface, weft_wakeup *wakeup);
void weft_shm_disarm(weft_iface *iface);
/* Opens the rings whose senders left a note, and takes at least a frame of each, whatever the budget; how many frames came. */
int weft_shm_activate_rings(shm_iface *shm, int budget);
/* Closes rings that were silent too long; how many of the closed ones turned out to hold a frame. */
int weft_shm_deactivate_rings(shm_iface *shm, uint64_t now_ns);

#endif
