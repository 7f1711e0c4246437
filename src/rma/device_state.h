/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_state: state of a window's operations by devices. Private to src/rma (keys.c, device*.c).
 */
#ifndef WEFT_RMA_DEVICE_STATE_H
#define WEFT_RMA_DEVICE_STATE_H

#include "base/list.h"
#include "core/done.h"
#include "core/peer.h"
#include "core/reg.h"
#include "core/req.h"
#include "rma/bounce.h"
#include "rma/key.h"
#include "rma/known.h"
#include "rma/message.h"
#include "type/runs.h"

#define WEFT_DEVICE_BUSY 64u /* counts of weft_device_target.busy */

typedef struct weft_window_device {
    weft_window *window;
    weft_list_link link;     /* in worker->devices while `waiting` or `ended` is not empty */
    weft_list_link waiting;  /* targets whose queue is not empty, or that want a flush */
    weft_list_link ended;    /* operations whose message is complete */
    weft_window_key *keys;   /* [size], of the members, owned */
    weft_iface *iface;       /* own memory is registered there; NULL: it is not, nor are regions */
    weft_mr mr;              /* of own memory; of a dynamic window: of its table's root, as its regions have their own (regions.c) */
    bool wants_words;        /* the program asks for device words (words.h) */
    enum weft_amo_domain amo; /* of own memory, as told in its key */
    bool is_full;            /* the network has refused memory, and had no unused registrations left */
    weft_bounce bounce;
} weft_window_device;

enum weft_lookup_stage { WEFT_LOOKUP_ROOT, WEFT_LOOKUP_BLOCK, WEFT_LOOKUP_VERSION, WEFT_LOOKUP_OVER };

/* A search in the region table of a target (device_lookup.c). */
typedef struct weft_device_lookup {
    weft_done done;          /* of a get */
    uint64_t root;           /* address of the table's root */
    const struct weft_device_op *op; /* whose first byte is looked for; NULL: no search is under way */
    char *slot;              /* taken for it */
    enum weft_lookup_stage stage; /* what is read into the slot: */
    uint64_t from, bytes, at; /* address and length, and bytes that were read, or are being read */
    bool is_reading;         /* a get is under way */
    bool is_repeated;        /* the table was changed meanwhile: it is read again at the next turn */
    bool is_found;
    int rc;                  /* of the gets */
    uint32_t tries;
    uint64_t address;        /* looked for */
    uint64_t version;        /* of the root */
    weft_rkey rkey;          /* of the entries */
    uint32_t detaches[WEFT_WINDOW_DETACHES]; /* of the target's control, if it has one, before the root was read */
} weft_device_lookup;

/* A target that was operated on. A count of puts only grows. */
typedef struct weft_device_target {
    weft_done flushed_call;  /* of flushes */
    weft_list_link link;     /* in device->waiting */
    weft_list_link queue;    /* operations that are not all issued, in order */
    weft_window_device *device;
    weft_peer *peer;
    weft_iface *iface;       /* by which it is reached; stays the same if the peer fails */
    const weft_rkey *rkey;   /* of its memory; length 0: the iface needs none, or the window is dynamic */
    weft_known known;        /* regions of a dynamic window */
    weft_device_lookup *lookup; /* DYNAMIC: owned; NULL: the target's table cannot be read */
    uint32_t rank;
    bool can_put, can_get, can_amo, is_flushing;
    uint64_t ops;            /* not complete at the origin */
    uint64_t amos;           /* of those, accumulates */
    uint64_t fetches;        /* of those, gets and accumulates that have been issued, in part at least, or sent as messages: a device's
                              * notification does not follow them by itself */
    uint32_t busy[WEFT_DEVICE_BUSY]; /* elements that accumulates under way change, by a hash of their addresses */
    uint64_t begun;          /* operations so far */
    uint64_t unsure;         /* DYNAMIC: operations issued, in part at least, that may turn out to be refused */
    const weft_known_region *unsure_in; /* the region of all of these; NULL: several */
    weft_list_link under_way; /* operations that count in fetches or unsure */
    uint64_t sent;           /* count of messages that the last operation sent as one has reached (weft_window_target.sent) */
    uint64_t puts;           /* started */
    uint64_t asked;          /* puts that shall be complete at the target */
    uint64_t flushing;       /* puts that the flush under way covers */
    uint64_t flushed;        /* puts that are complete at the target, or failed */
} weft_device_target;

/* Both sides' runs of an operation with gaps. */
typedef struct weft_device_runs {
    weft_runs origin, target;
} weft_device_runs;

/* An accumulate by atomics (device_amo.c). */
typedef struct weft_device_amo {
    enum weft_amo_op op;
    uint64_t count, compare;
    bool is_reserved;  /* its elements count in target->busy */
    uint64_t words[];  /* [3 * count]: addresses of the elements, operands, and the values before */
} weft_device_amo;

/* A put, get or accumulate, or a *notice*: a put of no bytes that carries the notification of the operation before it, where that operation
 * cannot. A notification keeps its place in the queue, and waits for the gets, accumulates and messages before it, and for operations
 * before it that may turn out to be refused (device.c, is_held). */
typedef struct weft_device_op {
    weft_done done;          /* of each part */
    weft_list_link link;     /* in target->queue, or device->ended */
    weft_device_target *target;
    weft_rma_op what;        /* types held */
    weft_req *user;          /* NULL: completes by a flush */
    weft_known_region *region; /* of a dynamic window, held; else NULL */
    weft_reg *reg;           /* of origin memory, held; NULL: none */
    weft_device_runs *runs;  /* owned; NULL: both sides are dense */
    weft_device_amo *amo;    /* of an accumulate, owned; else NULL */
    char *slot;              /* taken for it; NULL: none */
    char *local;             /* next bytes: local_left there, remote_left at remote; the less of both go in one part */
    uint64_t local_left, remote, remote_left;
    uint64_t bytes, issued;
    uint64_t order;          /* target->begun when it began, or of the operation that a notice is for: the queue is sorted by it */
    uint32_t parts;          /* under way */
    uint32_t notify;         /* value of the notification that goes with its last part; 0: none, or done */
    uint32_t carried;        /* the same, once that part is issued */
    struct weft_device_op *notice; /* the notice behind it, which waits for it; NULL: none */
    bool is_led;             /* a notice whose operation is under way */
    bool awaits_reg, uses_slot, is_issued, is_fetch_counted;
    bool awaits_region;      /* its region is not known yet */
    bool is_unsure;          /* counts in target->unsure */
    weft_list_link under_way; /* in target->under_way if it counts in fetches or unsure */
    bool is_refused;         /* its region has ended, or was not found: it waits in the queue to be sent as a message */
    weft_rma_error error;
    weft_completion completion; /* of `message` */
    weft_req *message;       /* it goes by message instead; owned */
} weft_device_op;

/* -- device_target.c -- */

/* Whether any window may use devices (WEFT_RMA_DEVICE, WEFT_REG_MODE, WEFT_CHECKSUM: checksums are of messages). */
bool weft_window_device_is_allowed(void);
/* Does the iface's get and put serve windows better than messages? Where no pages are pinned, and keys are needed all the same, software
 * of the target moves the bytes, and messages cost less. */
bool weft_window_device_serves(const weft_iface *iface);
/* The target's state, made at its first use; NULL: no memory, or it cannot be reached by a device. */
weft_device_target *weft_device_target_of(weft_window *window, uint32_t rank);

/* -- device_lookup.c -- */

/* root: address of the target's table. NULL: no memory. */
weft_device_lookup *weft_device_lookup_new(uint64_t root);
/* Looks for the region of the operation's first byte in the target's table. 0: it is known now; AGAIN; UNSUPPORTED: it is not there, or
 * cannot be read. No other operation may look before this one has got its answer. */
int weft_device_look_up(weft_device_op *op);
/* Tells the target that a region was found, so that it tells of its end; not while frames to the target wait, which computes perhaps. */
void weft_device_tell_found(weft_device_target *target, weft_known_region *region);

/* -- device_op.c -- */

/* region: of a dynamic window, which it takes; else NULL. NULL: no device can perform it, or no memory. req NULL: it has no request. */
weft_device_op *weft_device_op_new(weft_device_target *target, const weft_rma_op *what, weft_known_region *region, weft_req **req);
/* A put or get by an iface that copies inside the call (caps.prompt): is it done? It takes the region then. False: nothing is known to be
 * moved; device_op does it. what->notify is not looked at. */
bool weft_device_copies(weft_device_target *target, const weft_rma_op *what, weft_known_region *region);
/* A notice with this value; NULL: no memory. */
weft_device_op *weft_device_notice_new(weft_device_target *target, uint32_t value);
/* The notice follows the operation; without one it goes with the operation's last part. */
void weft_device_op_notify(weft_device_op *op, uint32_t value, weft_device_op *notice);
/* Issues as much as the iface takes. 0: all is issued, or it has failed, and it may be freed; WEFT_AGAIN. WEFT_E_UNSUPPORTED: nothing was
 * moved, send it by message. */
int weft_device_op_issue(weft_device_op *op);
/* Before it is issued or sent: notifications behind a get or accumulate wait for it. */
void weft_device_op_count_fetch(weft_device_op *op);
/* Sends it as messages, which end it; its notification becomes a notice. */
void weft_device_op_send(weft_device_op *op);
/* Ends it with op->error: completes its request, or keeps the error for the next flush. Frees it. */
void weft_device_op_end(weft_device_op *op);


/* -- device_amo.c -- */

/* Can atomics perform this accumulate: its operator, type and number of elements? base: address of the target's memory. */
bool weft_device_amo_fits(uint64_t base, const weft_rma_op *what);
/* For an operation that fits; the caller frees it. NULL: no memory. */
weft_device_amo *weft_device_amo_new(uint64_t base, const weft_rma_op *what);
/* False: an earlier operation on one of its elements is under way. */
bool weft_device_amo_reserve(weft_device_op *op);
/* Starts the atomic on the next element. 0, AGAIN or an error: then it is not under way. */
int weft_device_amo_start(weft_device_op *op);
/* It goes by message instead. */
void weft_device_amo_drop(weft_device_op *op);
/* No atomic is under way any more: stores what was fetched, unless the operation has failed. */
void weft_device_amo_end(weft_device_op *op);


/* -- device.c -- */

/* Puts the device into worker->devices. */
void weft_device_link(weft_window_device *device);
/* Progress looks at the target's queue. */
void weft_device_wait_turn(weft_device_target *target);

#endif
