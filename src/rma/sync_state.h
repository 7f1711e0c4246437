/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sync_state: state of a window's synchronization, and its messages: NOTIFY frames of the window's channel. Private to src/rma.
 */
#ifndef WEFT_RMA_SYNC_STATE_H
#define WEFT_RMA_SYNC_STATE_H

#include "core/wait.h"
#include "mem/rank_page.h"
#include "rma/sync.h"

/* First byte of a NOTIFY. Those of operations are below (inbox.h). */
enum weft_sync_kind {
    WEFT_SYNC_POST = 64, /* the sender has posted its memory to the receiver */
    WEFT_SYNC_COMPLETE,  /* the sender's access epoch on the receiver has ended */
    WEFT_SYNC_LOCK,      /* the sender wants the receiver's lock */
    WEFT_SYNC_GRANT,     /* the receiver has the sender's lock now */
    WEFT_SYNC_UNLOCK,    /* the sender gives the receiver's lock back */
    WEFT_SYNC_SERVE,     /* a member of the receiver's node has given its lock back, for which others queue */
    WEFT_SYNC_REFUSE     /* the receiver never gets the sender's lock: a dead member has it */
};

typedef struct weft_sync_note {
    uint8_t kind; /* enum weft_sync_kind */
    uint8_t is_exclusive; /* LOCK, UNLOCK */
    uint8_t unused[6];
} weft_sync_note;

/* What this member knows of another. */
typedef struct weft_sync_member {
    const weft_window_told *from; /* posts and completes of the member: in memory of the node, or `told` */
    weft_window_told *to;   /* of this member to it; NULL: by messages */
    weft_window_told told;  /* by messages, and what this member tells itself */
    weft_rank_page *page;   /* its page, if `to` is in memory of the node; else NULL */
    uint32_t taken[WEFT_WINDOW_ENDS]; /* of the counts of `from`, those whose wait is over */
    bool is_granted;    /* its lock was granted */
    bool is_refused;    /* its lock will not be granted: a dead member of its node has it */
    bool holds;         /* it has this member's lock, by messages; is_exclusive tells which */
    bool queues;        /* it queues for this member's lock, as follows */
    bool is_exclusive;
    uint32_t ticket;    /* lock_word.h */
    uint32_t next;      /* member that queues behind it; UINT32_MAX: none */
} weft_sync_member;

typedef struct weft_window_sync {
    uint32_t calls; /* of weft_rma_start_epoch and weft_rma_wait */
    uint32_t locks; /* that this member holds or waits for, of members that it maps, while deaths matter */
    uint32_t first, last; /* of the members that queue by messages for this member's lock; UINT32_MAX: none */
    weft_list_link waits;  /* weft_sync_wait of this process's threads */
    weft_sync_member members[];
} weft_window_sync;

int weft_window_sync_open(weft_window *window);
/* After weft_window_memory_map: members of the node tell each other by memory from now on. */
void weft_window_sync_map(weft_window *window);
void weft_window_sync_close(weft_window *window);
void weft_window_sync_on_notify(weft_window *window, uint32_t from, const void *body, uint32_t bytes);
int weft_window_sync_tell(weft_window *window, uint32_t to, enum weft_sync_kind kind, bool is_exclusive);
/* Members have died, or left: gives back what they had of this member's lock by messages, and ends waits for them. from: a member that is
 * known to have left; UINT32_MAX: it is to be found out. */
void weft_window_sync_on_gone(weft_window *window, uint32_t from);
/* The same for locks (lock.c); may be called again for the same member. */
void weft_window_lock_on_gone(weft_window *window, uint32_t member);
/* Will a member perform and send nothing more? Knows it also of the launcher, and if the member is on this node by its page; then true only
 * after a turn that found no frame. For conditions of waits: does not poll. */
bool weft_window_is_gone(weft_window *window, uint32_t member);
/* The same for calls, outside of waits and polls: polls, and may give up the lock meanwhile. */
bool weft_window_look_gone(weft_window *window, uint32_t member);
/* In a long wait for the member: asks the launcher, whose answer may be known at the next call. Ends what waits for it, once it is gone. */
void weft_window_ask_gone(weft_window *window, uint32_t member);
/* The same for the members that threads wait for here. */
void weft_window_sync_ask_gone(weft_window *window);
/* Has the member closed the window, or died? Knows it also before its last frames have been read; asks, but neither polls nor waits. */
bool weft_window_has_closed(weft_window *window, uint32_t member);
/* What the member, which is gone, did: "has died". */
const char *weft_window_gone_text(const weft_window *window, uint32_t member);
/* A LOCK, GRANT, UNLOCK, SERVE or REFUSE has come (lock.c). */
void weft_window_lock_on_note(weft_window *window, uint32_t from, const weft_sync_note *note);

/* Waits until is_over(), which may be called by another thread of this process, under the lock. member: which is awaited; WEFT_ANY. */
typedef struct weft_sync_wait {
    weft_wait wait;
    weft_list_link link; /* in window->sync->waits */
    weft_window *window;
    bool (*is_over)(struct weft_sync_wait *self);
    const uint32_t *ranks; /* arguments of is_over */
    uint32_t count, member, ticket;
    enum weft_window_epoch_end end;
    bool is_exclusive;
} weft_sync_wait;
void weft_window_sync_await(weft_sync_wait *self);

#endif
