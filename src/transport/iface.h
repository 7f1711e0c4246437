/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface: the transport contract, the house's thin waist. A transport is one folder that fills one weft_iface_ops and passes
 * test/contract. Whoever is above (core, p2p) knows a device by its iface only; a transport knows nothing above this file.
 *
 * Threads: every call on an iface is made under its worker's lock, but map and unmap: these a helper that pins may call at any time, so a
 * iface guards what it keeps of regions itself. An iface never makes a thread call up.
 * Re-entrancy: callbacks.recv_frame may call send/get/put on the same iface (replies); it never calls poll, arm, reach or close.
 * Errors: negative codes of base/status.h, described by weft_fail where they arise. Absent operations answer
 * WEFT_E_UNSUPPORTED: a pointer in the table is never NULL, but where it says so.
 */
#ifndef WEFT_TRANSPORT_IFACE_H
#define WEFT_TRANSPORT_IFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/frame.h"

typedef struct weft_iface weft_iface;
typedef struct weft_ep weft_ep;
typedef struct weft_iface_ops weft_iface_ops;
typedef struct weft_mw weft_mw; /* an iface's own: memory that one peer may touch for now */

/* Names a process for good: job (namespace, hashed by the launcher) and rank in it. Never a world rank alone. */
typedef struct weft_proc_id {
    uint64_t job;
    uint32_t rank;
    uint32_t worker;
} weft_proc_id;

/* What *remote* peers may do by the region's own key. MW: nothing by that; parts of it may be lent (caps.has_mw). */
enum weft_access { WEFT_ACCESS_READ = 1, WEFT_ACCESS_WRITE = 2, WEFT_ACCESS_ATOMIC = 4, WEFT_ACCESS_MW = 8 };
enum weft_memory_kind { WEFT_MEMORY_HOST = 0, WEFT_MEMORY_DEVICE = 1 };
enum weft_amo_op { WEFT_AMO_ADD, WEFT_AMO_SWAP, WEFT_AMO_CAS, WEFT_AMO_AND, WEFT_AMO_OR, WEFT_AMO_XOR };
/* Who an amo is atomic with: nobody (absent), other amos of the same device, or also the CPUs' own atomics. */
enum weft_amo_domain { WEFT_AMO_NONE, WEFT_AMO_NIC, WEFT_AMO_CPU };

#define WEFT_RKEY_BYTES 32
typedef struct weft_rkey { /* what a peer needs to reach mapped memory; travels in RTS and CTS */
    uint8_t length;
    uint8_t bytes[WEFT_RKEY_BYTES];
} weft_rkey;

/* Memory made known to a device by map. Caller owns the struct; the iface owns `device`. A region of no rights serves as the local side
 * of moves only; its key is never given away. */
typedef struct weft_mr {
    void *addr;
    uint64_t bytes;
    uint32_t rights;      /* what was granted: at least what was asked for; more where the fabric needs it (iWARP's read sinks) */
    weft_rkey rkey;
    void *device;
} weft_mr;

/* One get or put. Local memory must be mapped where caps.mr_local says so. `done` is named back by callbacks.done. */
typedef struct weft_rma {
    void *local;
    const weft_mr *mr; /* of local, or NULL */
    uint64_t remote;           /* address in the peer */
    const weft_rkey *rkey;       /* of remote, as the peer sent it */
    uint64_t bytes;            /* at most caps.rma_max */
    void *done;                /* NULL: nobody asks */
    uint32_t notify;           /* put only, if caps.notify: the peer's callbacks.notify gets this value after the data is visible; 0 = none */
} weft_rma;

typedef struct weft_atomic {
    enum weft_amo_op op;
    uint64_t remote;
    const weft_rkey *rkey;
    uint64_t operand, compare;
    uint64_t *before; /* gets the old value by the time of done; NULL if not wanted */
    void *done;
} weft_atomic;

/* Numbers and bits, constant after open. The ladder is made from these, never from a transport's name. */
typedef struct weft_caps {
    uint32_t frame_max;   /* largest body of a frame, bytes */
    uint32_t chunk;       /* body size at which a long stream of frames is fastest, bytes */
    uint32_t chunk_alone; /* largest body that needs no room shared with other eps, bytes; 0 = no such difference */
    uint32_t frag;        /* a body that both sides copy is there sooner in several frames of so many bytes, one copied out while the next is
                           * copied in; 0: in one */
    uint32_t eager;       /* longest message that is best sent eagerly, bytes; 0 = no opinion */
    uint32_t zcopy_min;    /* bodies of at least so many bytes are better read where they lie than copied: give frame.zcopy_ctx; 0: none is */
    uint32_t inline_max;  /* largest body that costs no more than an empty one */
    uint64_t rma_max;    /* largest single get/put, bytes */
    uint32_t rma_fragment;  /* the calling CPU copies, inside of get and put: so many bytes take some 20 us (no call should be longer); 0: a device moves */
    uint32_t latency_ns;  /* one way, small frame; an estimate */
    uint32_t mbyte_per_s; /* an estimate; 0 = unknown */
    uint8_t key_bytes;
    uint8_t rails;        /* devices or links that one ep stripes its moves over; 0 and 1: one */
    uint64_t pin_bytes;   /* most that may be mapped at one time, and ... */
    uint32_t pin_regions; /* ... in so many regions; 0: not known */
    bool pages_on_demand; /* the device follows the page tables: registrations need no watch and never go stale; never tried on a real one */
    bool wants_regcache;            /* map costs a system call and pins pages: registrations are worth caching */
    bool get, put, notify;
    bool ordered;    /* frames to a peer arrive in order of send; a transport whose fabric does not keep order sorts by seq before it calls up */
    bool mr_local; /* get/put need weft_mr for local memory */
    bool has_mw;      /* lend and unlend are there: keys for one peer, of no more bytes and no longer than is needed */
    bool share;      /* share works with peers of the same node */
    bool outlives_sender;    /* what was sent is received even when the sender has left before (memory that outlives it): no goodbye need be waited for */
    enum weft_amo_domain amo;
} weft_caps;

/* How to sleep on an iface, filled in by arm. At most one of both: an iface that never rings by itself (self) leaves NULL and -1. */
typedef struct weft_wakeup {
    uint32_t *futex;    /* sleep while *futex == value ... */
    uint32_t value;
    int fd;             /* ... or until this descriptor is readable; -1 = none */
    uint64_t within_ns; /* poll again within so long even if nothing rings: a timer of the iface; 0 = none */
} weft_wakeup;

/* What an iface tells its owner. Given at open. All run inside poll, or inside send/get/put where said. */
typedef struct weft_iface_callbacks {
    /* A frame from `peer` (the cookie of reach, or what greet gave). hdr and body are the iface's again on return: copy what stays.
     * May send. body is aligned to 8 bytes. */
    void (*recv_frame)(void *owner, void *peer, const weft_hdr *hdr, const void *body);
    /* A get, put, amo or flush ended; may also be called before that call returns. Or a body that send held is free again: whether it
     * arrived is not told here. */
    void (*done)(void *owner, void *done, int rc);
    /* A put's notification. */
    void (*notify)(void *owner, void *peer, uint32_t notify);
    /* The peer is gone for good: its frames that came before have all arrived. Once per ep. Not called after leave. */
    void (*peer_failed)(void *owner, void *peer, int rc);
    /* Somebody not yet reached by us sends: returns the cookie to use in arrive, and makes us able to answer (calls reach). */
    void *(*accept_peer)(void *owner, const weft_proc_id *who);
} weft_iface_callbacks;

/* What open may use. Pointers outlive the iface. */
typedef struct weft_iface_params {
    void *owner;
    const weft_iface_callbacks *callbacks;
    weft_proc_id self;
    const void *segment; /* shm: the node's weft_segment (mem/segment.h); sim: its fabric; others NULL */
    int local_rank;      /* index in the segment, or -1 */
    bool wants_fd;       /* the owner sleeps on other ifaces' descriptors too: arm must give one, never a futex */
    uint64_t (*now_ns)(void); /* the clock that timers run by; NULL: weft_clock_ns (sim gives its own) */
    bool is_far;         /* ranks of the job run on other hosts: what reaches this one only need not begin */
} weft_iface_params;

/* What core/counters.def shows of an iface; only grows. */
typedef struct weft_iface_counts {
    uint64_t barriers;     /* memory barriers on all CPUs that it asked the kernel for */
    uint64_t rings_closed; /* rings that it stopped to poll, as they were silent */
} weft_iface_counts;

struct weft_iface { /* common part; a transport's own iface begins with it */
    const weft_iface_ops *ops;
    bool is_quiet; /* set by an iface while nothing but its own send, put, get could make poll find anything: polls are skipped */
    void *owner;
    const weft_iface_callbacks *callbacks;
    void *regcache;    /* the owner's: registrations with this iface (core/reg); an iface leaves it alone */
    weft_caps caps;
    weft_iface_counts counts;
};

struct weft_ep { /* the iface's side of one peer; a transport's own ep begins with it */
    weft_iface *iface;
    void *peer;     /* cookie given back in arrive and lost */
    uint32_t room;  /* so many more frames of at most inline_max bytes are sure to be taken; shm only, others leave 0 */
};

/* Memory that node-mates map: the same pages in each process that shares it. */
typedef struct weft_shared {
    void *addr;      /* here */
    uint64_t bytes;
    uint64_t handle; /* names it to node-mates: pass it over, they call share with it */
} weft_shared;

#define WEFT_ADDR_MAX 256

struct weft_iface_ops {
    const char *name;
    /* Why this transport cannot be used here (a sentence, static or thread-local), or NULL when it can. Cheap; any time. */
    const char *(*unavailable)(void);
    /* Says line by line what it found here (devices, ifaces, addresses) and why it would not use one; for weft-info. Any time. */
    void (*describe)(void (*line)(void *arg, const char *text), void *arg);

    /* -- life and acquaintance -- */
    int (*open)(const weft_iface_params *params, weft_iface **iface);
    void (*close)(weft_iface *iface); /* all eps left before; frees everything */
    int (*get_addr)(weft_iface *iface, void *card, size_t *bytes); /* my address: in *bytes the room, out the length */
    /* Makes an ep from the peer's address. Nothing is exchanged before the first send. WEFT_E_UNSUPPORTED: not reachable this way. */
    int (*ep_open)(weft_iface *iface, const weft_proc_id *who, const void *card, size_t bytes, void *peer, weft_ep **ep);
    /* Ends an ep in peace, after both sides sent BYE and all was drained: WEFT_AGAIN until nothing of ours is in flight. Not `lost`. */
    int (*ep_close)(weft_iface *iface, weft_ep *ep);

    /* -- memory. map and unmap: by any thread where caps.wants_regcache says that they take long, else by the owner's only -- */
    int (*mr_reg)(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
    int (*mr_dereg)(weft_iface *iface, weft_mr *mr); /* all that was lent of it was taken back before */
    /* handle 0 on entry: makes `bytes` of zeroed shared memory; else attaches that of a node-mate. unshare ends our mapping. */
    int (*share)(weft_iface *iface, uint64_t bytes, weft_shared *shared);
    int (*unshare)(weft_iface *iface, weft_shared *shared);

    /* -- moving bytes: 0, AGAIN (poll, then try again) or an error -- */
    /* The frame's body is free again on return. hdr is sent as it stands. INPROGRESS, where frame.zcopy_ctx is not NULL: it is taken, and its body
     * must stay as it is until a later poll tells callbacks.done(frame.zcopy_ctx) so, once, also when the peer is lost. */
    int (*send)(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
    /* Do get and put work with this very peer? Proven, not assumed (the kernel may refuse); asked before a rung is chosen. */
    bool (*can_rma)(weft_iface *iface, weft_ep *ep);
    int (*get)(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
    int (*put)(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
    int (*amo)(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic);
    /* done is told when all earlier puts and amos on the ep are complete: locally (buffers free) or remotely (visible there). */
    int (*flush)(weft_iface *iface, weft_ep *ep, bool remotely, void *done);

    /* -- progress -- */
    /* Handles up to `budget` events; returns how many (0 = nothing was there) or an error of the whole device. A frame that is copied
     * counts WEFT_POLL_EXTRA more, so that a poll's time is bounded; the last one may go beyond the budget. */
    int (*poll)(weft_iface *iface, int budget);
    /* About to sleep: makes whatever comes from now on raise the wakeup, and pays for the ordering (membarrier). The caller then
     * polls once more and sleeps only if that found nothing. An arrival that makes no event of its own (a ring in memory) must be
     * taken back here: until its senders have acknowledged, arm answers AGAIN (poll on, arm later) and nothing is armed. After a
     * call's AGAIN the wakeup is also raised when that call may be tried again. arm that answered 0 and disarm alternate: the owner has one
     * thread that sleeps, and no other arms before it has disarmed. Other threads may send and poll in between: what arrives after such a
     * poll rings as before. */
    int (*arm)(weft_iface *iface, weft_wakeup *wakeup);
    void (*disarm)(weft_iface *iface);

    /* -- where caps.has_mw; NULL elsewhere -- */
    /* A key to [addr, addr + bytes) of a region with MW, for the peer of this ep alone, with no other rights than these. It works in
     * what is sent on the ep from now on, until it is taken back or the connection behind the ep breaks: a move with it then ends
     * with WEFT_E_STALE (the peer's own iface says so, nobody else's memory or transfer is touched), and its bytes must go another way.
     * AGAIN: not now (not connected, no room); whoever cannot wait does without. */
    int (*mw_bind)(weft_iface *iface, weft_ep *ep, const weft_mr *mr, void *addr, uint64_t bytes, uint32_t rights,
                weft_rkey *rkey, weft_mw **mw);
    /* Takes it back: at the latest when the next poll or two are over nobody can use the key. The loan is the iface's again; its ep may
     * have gone before. */
    void (*mw_invalidate)(weft_iface *iface, weft_mw *mw);

    /* Says line by line what the iface counted by itself (work requests, retries); at exit with WEFT_COUNTERS=1. May be
     * NULL: nothing to say. */
    void (*print_counters)(weft_iface *iface, void (*line)(void *arg, const char *text), void *arg);
};

/* tell of a transport that has no devices to speak of. */
void weft_describe_nothing(void (*line)(void *arg, const char *text), void *arg);

/* The transports that are built in; the hot path asks for shm by name. */
extern const weft_iface_ops weft_self_ops, weft_shm_ops;
int weft_shm_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
int weft_shm_poll(weft_iface *iface, int budget);
/* A short frame while ep->room is not 0: cannot fail. The header comes in three words as it lies in memory. */
void weft_shm_send_short(weft_ep *ep, uint64_t head0, uint64_t head1, uint64_t head2, const void *body);

/* Null objects: every call on the null iface answers WEFT_E_PEER. */
extern const weft_iface_ops weft_null_ops;
extern weft_iface weft_null_iface;
extern weft_ep weft_null_ep;

static inline int weft_iface_send(weft_ep *ep, const weft_frame *frame)
{
    weft_iface *iface = ep->iface;
    if (__builtin_expect(iface->ops == &weft_shm_ops, 1))
        return weft_shm_send(iface, ep, frame);
    return iface->ops->send(iface, ep, frame);
}

/* Of a budget of 32: 256 KB. */
#define WEFT_POLL_EXTRA(bytes) ((int)((bytes) >> 13))

static inline int weft_iface_poll(weft_iface *iface, int budget)
{
    if (__builtin_expect(iface->ops == &weft_shm_ops, 1))
        return weft_shm_poll(iface, budget);
    return iface->ops->poll(iface, budget);
}

#endif
