/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window: memory that the members of a group open to each other's one-sided access (MPI 5.0 chapter 12), without MPI's objects and rules
 * (src/mpi/win.h has these). open.h opens and closes it, memory.h maps memory of the node, op.h moves data, sync.h is the synchronization.
 * Guarded by worker->lock, but what members of a node share (weft_window_control, and the memory itself).
 *
 * Each target is reached in one way, chosen when the window is opened:
 *   mapped   the target's memory is mapped here (own rank, or allocated memory of the node): loads, stores, atomics of this CPU, but for
 *            accumulates on device words (words.h)
 *   device   the transport's get and put move the data of puts and gets, without the target's CPU (device.h), and its atomics perform short
 *            accumulates, if they agree with those of the target's CPU; others go by message, and on a dynamic window all accumulates, and
 *            what lies in no region that is found (device_lookup.c)
 *   message  the operation is sent as messages of the window's channel; the target's progress performs it and counts it as performed
 * All accumulates to a location are performed by a CPU of the target's node, by one and the same way for a location (atomic.h), or by
 * atomics of a device: if these do not agree with the CPU's instructions they alone change the location (words.h). So all ways may be
 * mixed. Puts and gets by a device are mixed with them as MPI allows: a location is not put to and accumulated to at once.
 */
#ifndef WEFT_RMA_WINDOW_H
#define WEFT_RMA_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "collectives/team.h"
#include "p2p/chan.h"

enum weft_window_flavor { WEFT_WINDOW_CREATE, WEFT_WINDOW_ALLOCATE, WEFT_WINDOW_DYNAMIC, WEFT_WINDOW_SHARED };

/* What members tell each other of exposure and access epochs (pscw.c). */
enum weft_window_epoch_end { WEFT_WINDOW_POST, WEFT_WINDOW_COMPLETE, WEFT_WINDOW_ENDS };

#define WEFT_WINDOW_DETACHES 64u

/* State of one member that others of its node map: zero when the window opens. A member that none of them maps has one in own memory. */
typedef struct weft_window_control {
    _Alignas(WEFT_LINE) _Atomic uint64_t lock;        /* passive target lock (lock_word.h) */
    _Atomic uint32_t waiting;                         /* members of the node that wait for it (lock.c) */
    _Atomic uint32_t queued;                          /* members that wait for it by messages (lock.c) */
    _Atomic uint32_t by_message;                      /* members that wait for it or hold it by messages; written by the target */
    _Alignas(WEFT_LINE) _Atomic uint32_t accumulate;  /* guards accumulates that no atomic instruction performs (atomic.c): its
                                                       * holder, a thread that neither waits nor calls the program meanwhile; 0: free */
    _Alignas(WEFT_LINE) _Atomic uint32_t awaited[WEFT_WINDOW_ENDS]; /* 1 + the member whose post or complete this one waits for; 0: none */
    _Alignas(WEFT_LINE) _Atomic uint32_t holds; /* if the job goes on when this member dies: 1 + the member whose lock it holds or
                                                 * waits for; 0: none, UINT32_MAX: several (lock.c) */
    _Alignas(WEFT_LINE) _Atomic uint32_t detaches[WEFT_WINDOW_DETACHES]; /* DYNAMIC: regions detached so far, by a hash of their base */
} weft_window_control;

/* The count of detaches of regions with this base, and of some others. */
static inline _Atomic uint32_t *weft_window_detaches(weft_window_control *control, uint64_t base)
{
    return &control->detaches[base * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}
_Static_assert(WEFT_WINDOW_DETACHES == 1u << (64 - 58), "the hash has six bits");

struct weft_window_device;
struct weft_device_target;
struct weft_rma_words;

/* Operations that are loads, stores or instructions of this CPU alone on a target's memory; bits. */
enum weft_window_direct {
    WEFT_DIRECT_COPY = 1,       /* puts and gets */
    WEFT_DIRECT_ACCUMULATE = 2, /* accumulates; and operations that notify, as these keep the order with accumulates */
    WEFT_DIRECT_ALL = 3
};

/* What one member has told another: counts that only grow. In memory of the node, written by the one, or in that of the other. */
typedef struct weft_window_told {
    _Atomic uint32_t counts[WEFT_WINDOW_ENDS];
} weft_window_told;

/* What a member knows of a target. */
typedef struct weft_window_target {
    char *mapped;                 /* the target's memory in this process; NULL: by messages, or the target has none */
    weft_window_control *control; /* the target's, in this process; NULL: it is on another node, or the node has no memory for it */
    bool is_mapped;               /* its memory is mapped here, and its control */
    uint8_t direct;               /* bits: enum weft_window_direct; 0: not mapped, or dynamic */
    bool has_device_words;        /* a device that is atomic with itself only changes its words of 8 bytes (words.h) */
    bool words_by_message;        /* ... and this process, which maps them, sends messages; decided at the first accumulate */
    struct weft_rma_words *words; /* ... and uses this, owned; NULL: it is the own rank, or not decided */
    uint64_t base;                /* address in the target (DYNAMIC: 0, displacements are addresses) */
    uint64_t bytes;               /* of its memory (DYNAMIC: not known here, UINT64_MAX) */
    uint64_t unit;                /* displacement unit, bytes */
    struct weft_device_target *device; /* operations by a device (device_state.h), owned; NULL: none yet, or it is mapped */
    /* By messages (op.c): operations of this origin, which only grow. */
    uint64_t sent;                /* started */
    uint64_t performed;           /* of those, known to be performed at the target */
    uint64_t left_turn;           /* 1 + worker->empty_turns when it was first seen to have left; 0: not yet */
    bool is_lost;                 /* its process has died (p2p/lost) */
    bool has_left;                /* it has called MPI_Finalize, or has freed the window: nothing comes from it any more */
} weft_window_target;

typedef struct weft_window weft_window;
struct weft_window {
    weft_worker *worker;
    weft_chan *chan;              /* messages of operations and synchronization; of the window's own communicator */
    weft_team *team;              /* collectives of the same */
    uint32_t size, rank;
    enum weft_window_flavor flavor;
    weft_window_target *targets;  /* [size], owned */
    bool has_lost;                /* a member's process has died */
    bool is_unordered;            /* this member's accumulates need no order (info key accumulate_ordering) */
    uint64_t messaged;            /* sum over targets of sent - performed */
    uint64_t moving;              /* operations by devices under way, and targets with such puts that no flush has completed */
    struct weft_window_device *device; /* keys, and operations by devices (device_state.h), owned */
    struct weft_window_memory *memory; /* memory that the window allocated, and controls (memory.c), owned */
    struct weft_window_sync *sync;     /* state of locks and of post, start, complete, wait (sync_state.h), owned */
    struct weft_window_inbox *inbox;   /* operations that arrive (inbox.c), owned */
    struct weft_window_regions *regions; /* DYNAMIC: attached memory (regions.c), owned; else NULL */
    struct weft_window_notify *notify;   /* notification counters (notify.h), owned; NULL: none */
};

/* Is it known that the target performs and sends nothing more? weft_window_is_gone finds out. */
static inline bool weft_window_target_is_gone(const weft_window_target *target) { return target->is_lost || target->has_left; }
static inline bool weft_window_is_mapped(const weft_window_target *target) { return target->is_mapped; }

#endif
