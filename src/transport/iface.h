/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface: the contract between transports and the layers above (core, p2p). A transport fills one weft_iface_ops and passes test/contract.
 * Threads: calls require the worker's lock, except mr_reg and mr_dereg: a registration helper may call these at any time, so an iface
 * must guard its table of regions itself. A transport's own threads must not call callbacks.
 * Re-entrancy: callbacks.recv_frame may call send, get and put on the same iface; it must not call poll, arm, ep_open or close.
 * Errors: base/status.h, described by weft_fail. Missing operations return WEFT_E_UNSUPPORTED; a pointer is NULL only where noted.
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
typedef struct weft_mw weft_mw; /* memory window: a temporary key for one peer; owned by the iface */

/* Permanent identity of a process's worker: job (hash of the namespace, by the launcher), rank, worker. A rank alone is not unique. */
typedef struct weft_proc_id {
    uint64_t job;
    uint32_t rank;
    uint32_t worker;
} weft_proc_id;

/* Access of *remote* peers by the region's own key. MW: none by that key; windows may be bound to parts of it (caps.has_mw).
 * ORDERED: a peer's put is visible here once it has ended there (done, flush), to any thread that looks: for memory that the owner polls,
 * or that something else than the peer's own next frame reports. Without it the put is visible when a notification of its own, or a frame
 * that the peer sent after its end, is delivered; until then its bytes may come in any order. ATOMIC includes it. */
enum weft_access { WEFT_ACCESS_READ = 1, WEFT_ACCESS_WRITE = 2, WEFT_ACCESS_ATOMIC = 4, WEFT_ACCESS_MW = 8, WEFT_ACCESS_ORDERED = 16 };
enum weft_memory_kind { WEFT_MEMORY_HOST = 0, WEFT_MEMORY_DEVICE = 1 };
enum weft_amo_op { WEFT_AMO_ADD, WEFT_AMO_SWAP, WEFT_AMO_CAS, WEFT_AMO_AND, WEFT_AMO_OR, WEFT_AMO_XOR };
/* Scope of atomicity of an amo: NONE: no amos; NIC: amos of the same device; CPU: also the CPUs' atomics. */
enum weft_amo_domain { WEFT_AMO_NONE, WEFT_AMO_NIC, WEFT_AMO_CPU };

#define WEFT_RKEY_BYTES 32
typedef struct weft_rkey { /* remote key of a region or window; sent in RTS and CTS */
    uint8_t length;
    uint8_t bytes[WEFT_RKEY_BYTES];
} weft_rkey;

/* Memory registered by mr_reg. The caller owns the struct; the iface owns `device`. A region without rights is only the local side of
 * get and put; its key must not be sent. */
typedef struct weft_mr {
    void *addr;
    uint64_t bytes;
    uint32_t rights;      /* enum weft_access bits granted: those requested, and more where the fabric needs them (iWARP's read sinks) or
                           * gives them unasked (ORDERED) */
    weft_rkey rkey;
    void *device;
} weft_mr;

/* One get or put. Where caps.mr_local is set, local memory must be registered. */
typedef struct weft_rma {
    void *local;
    const weft_mr *mr;         /* of local; NULL: not registered */
    uint64_t remote;           /* address in the peer */
    const weft_rkey *rkey;     /* of remote, as the peer sent it */
    uint64_t bytes;            /* at most caps.rma_max */
    void *done;                /* argument of callbacks.done; NULL: no callback */
    uint32_t notify;           /* put, if caps.notify: value for the peer's callbacks.notify once the data is visible; 0: none */
    bool notify_after_all;     /* with notify, if caps.notify_after_all: the value also waits for all earlier puts of the ep to be visible
                                * or to have failed */
} weft_rma;

typedef struct weft_atomic {
    enum weft_amo_op op;
    uint64_t remote;
    const weft_rkey *rkey;
    uint64_t operand, compare;
    uint64_t *before; /* receives the old value before callbacks.done; NULL: not wanted */
    void *done;       /* argument of callbacks.done; NULL: no callback */
} weft_atomic;

/* Capabilities and estimates, constant after open. Protocols are selected by these, never by a transport's name. */
typedef struct weft_caps {
    uint32_t frame_max;   /* largest body of a frame, bytes */
    uint32_t chunk;       /* body size at which a long stream of frames is fastest, bytes */
    uint32_t chunk_alone; /* largest body that uses no buffers shared with other eps, bytes; 0: no difference */
    uint32_t frag;        /* bytes of a fragment, where copying in and out overlap if a body goes in several frames; 0: send one frame */
    uint32_t frags_max;   /* longest message that such fragments may carry eagerly, bytes; 0: none longer than an eager one */
    uint32_t eager;       /* longest message that is best sent eagerly, bytes; 0: unspecified */
    uint32_t zcopy_min;   /* shortest body for which zero copy (frame.zcopy_ctx) pays, bytes; 0: none */
    uint32_t inline_max;  /* largest body that costs no more than an empty one, bytes */
    uint64_t rma_max;     /* largest single get or put, bytes */
    uint32_t rma_fragment; /* the CPU copies inside get and put: bytes of a call of about 20 us, the limit; 0: a device moves them */
    uint32_t latency_ns;  /* one way, small frame; an estimate */
    uint32_t mbyte_per_s; /* an estimate; 0: unknown */
    uint8_t key_bytes;    /* length of a weft_rkey; 0: no keys */
    uint8_t rails;        /* devices or links over which one ep stripes gets and puts; 0 and 1: one */
    uint64_t mr_bytes_max;   /* maximum of registered bytes at one time; 0: unknown */
    uint32_t mr_count_max; /* maximum of regions at one time; 0: unknown */
    bool pages_on_demand; /* ODP: registrations follow the page tables, need no monitor, never go stale; untested on real devices */
    bool wants_regcache;  /* mr_reg costs a system call and pins pages: registrations should be cached */
    bool get, put, notify;
    bool notify_after_all; /* rma.notify_after_all works; such a put may have no bytes, then `local` and `mr` may be NULL */
    bool prompt;     /* get and put without a notification are complete, also at the peer, when they return 0; flush adds nothing */
    bool ordered;    /* frames to a peer arrive in order of send; a transport over an unordered fabric must sort by seq */
    bool mr_local;   /* get and put need a weft_mr for local memory */
    bool revokes;    /* when mr_dereg returns no peer writes or reads by the region's key any more; one that tries gets WEFT_E_KEY */
    bool has_mw;     /* mw_bind and mw_invalidate exist: keys for one peer, limited in range and time */
    bool share;      /* share works with peers of the same node */
    bool outlives_sender; /* sent frames arrive even if the sender has exited: closing need not wait for the peer's BYE */
    bool may_rest;   /* the owner may stop polling for any time (after ep_rest, where that exists), and may close the iface with open eps */
    enum weft_amo_domain amo; /* scope of atomicity; NONE: no amos */
    uint64_t amo_device; /* NIC: the device that performs peers' amos here: atomic with those by all ifaces of this machine that have the
                          * same number; 0: unknown */
} weft_caps;

/* Wakeup source of an iface, filled in by arm: a futex or a descriptor, not both. Without own events (self): NULL and -1. */
typedef struct weft_wakeup {
    uint32_t *futex;    /* sleep while *futex == value; NULL: none */
    uint32_t value;     /* of *futex when armed */
    int fd;             /* sleep until this descriptor is readable; -1: none */
    uint64_t within_ns; /* longest sleep, for a timer of the iface, ns; 0: no timer */
} weft_wakeup;

/* A connection that an error had broken goes on. */
typedef struct weft_failover {
    uint32_t paths;  /* pairs of local and remote ports that it uses now */
    uint32_t path;   /* local port that carries frames */
    uint32_t breaks; /* of this connection so far */
} weft_failover;

#define WEFT_IFACE_WAIT_BYTES 160

/* Why a peer gives no answer, as far as the owner knows: no reason, it may be at rest (the owner cannot find out), it is at rest, its
 * process has ended. */
enum weft_absence { WEFT_ABSENCE_NONE, WEFT_ABSENCE_MAYBE, WEFT_ABSENCE_REST, WEFT_ABSENCE_END };

/* What the owner of an ep that needs polling is about to do (ops.ep_rest). */
enum weft_ep_rest {
    WEFT_EP_RETURN, /* poll again, after a rest */
    WEFT_EP_REST,   /* stop polling, once all frames of the ep have arrived */
    WEFT_EP_LEAVE,  /* stop polling now; frames that have not arrived are sent after the return */
    WEFT_EP_IDLE    /* poll on, while the peer rests: a later poll closes the connection once all frames have arrived. Also by an upcall */
};

/* Upcalls of an iface to its owner, given at open. They run inside poll, or inside send, get and put where noted. */
typedef struct weft_iface_callbacks {
    /* A frame from `peer` (the cookie given to ep_open, or returned by accept_peer). hdr and body are valid during the call only; body is
     * aligned to 8 bytes. May send. */
    void (*recv_frame)(void *owner, void *peer, const weft_hdr *hdr, const void *body);
    /* A get, put, amo or flush completed; may be called before that call returns. Or a zero-copy body (frame.zcopy_ctx) may be reused,
     * which does not mean that it arrived. */
    void (*done)(void *owner, void *done, int rc);
    /* A put's notification. */
    void (*notify)(void *owner, void *peer, uint32_t notify);
    /* The peer has failed for good, after all its received frames were delivered. Once per ep. Not called after ep_close. */
    void (*peer_failed)(void *owner, void *peer, int rc);
    /* First frame of an unknown process: creates an ep to it (calls ep_open) and returns the peer cookie for recv_frame. */
    void *(*accept_peer)(void *owner, const weft_proc_id *proc_id);
    /* A broken connection goes on; nothing was lost. NULL: the owner needs no report. */
    void (*failover)(void *owner, void *peer, const weft_failover *what);
    /* What of this machine the iface waits for before it can reach a peer, a clause of less than WEFT_IFACE_WAIT_BYTES; NULL: for nothing
     * any more. For mpirun's report of waits. NULL: the owner needs no report. */
    void (*waits)(void *owner, const char *text);
    /* Asked about a peer that does not answer, at most some times a second: one at rest is not lost. NULL: no peer rests. */
    enum weft_absence (*absence)(void *owner, void *peer);
} weft_iface_callbacks;

/* Parameters of open. Pointers outlive the iface. */
typedef struct weft_iface_params {
    void *owner;
    const weft_iface_callbacks *callbacks;
    weft_proc_id self;
    const void *segment; /* shm: the node's weft_segment (mem/segment.h); sim: its fabric; others NULL */
    int local_rank;      /* index in the segment; networks: among ranks that share memory; -1: none */
    bool wants_fd;       /* the owner sleeps on descriptors of other ifaces too: arm must return a descriptor, not a futex */
    uint64_t (*now_ns)(void); /* clock of timers, ns; NULL: weft_clock_ns (sim has its own) */
    bool shares_cpus;    /* ranks of the node share CPUs (weft_world.is_oversubscribed) */
    bool is_far;         /* the job has ranks on other hosts: node-local providers are useless */
    uint32_t peers;      /* processes of the job that may have to be reached; 0: unknown */
    uint32_t ranks;      /* of the job on this node, which share its memory and its limits; 0: unknown */
    const char *providers; /* ofi: only these providers of libfabric, in order of preference ("opx,psm2"); NULL: any */
} weft_iface_params;

/* Counters of an iface that core/counters.def lists; they only grow. */
typedef struct weft_iface_counts {
    uint64_t barriers;     /* membarrier system calls */
    uint64_t rings_closed; /* idle rings taken out of polling */
} weft_iface_counts;

struct weft_iface { /* common part; first member of a transport's iface */
    const weft_iface_ops *ops;
    bool is_quiet; /* set by the iface while only its own send, put or get can create events: polls are skipped */
    void *owner;
    const weft_iface_callbacks *callbacks;
    void *regcache; /* weft_regcache of this iface, owned by core/reg; NULL: not created; the iface must not touch it */
    weft_caps caps;
    weft_iface_counts counts;
};

struct weft_ep { /* connection to one peer on one iface; first member of a transport's ep */
    weft_iface *iface;
    void *peer;     /* cookie of callbacks recv_frame, notify and peer_failed */
    uint32_t cells_free;  /* frames of at most inline_max bytes that weft_shm_send_short can still send; shm only, else 0 */
};

/* Shared memory of processes of one node. */
typedef struct weft_shared {
    void *addr;      /* in this process */
    uint64_t bytes;
    uint64_t handle; /* processes of the node attach by calling share with it; 0: none */
} weft_shared;

#define WEFT_ADDR_MAX 256

struct weft_iface_ops {
    const char *name;
    /* Reason why this transport cannot be used here (a sentence, static or thread-local); NULL: it can. Cheap; callable at any time. */
    const char *(*unavailable)(void);
    /* Reports devices and addresses, and why one is not used, a line per call of `line`; for weft-info. Callable at any time. */
    void (*describe)(void (*line)(void *arg, const char *text), void *arg);

    /* -- open, close, connections -- */
    int (*open)(const weft_iface_params *params, weft_iface **iface);
    void (*close)(weft_iface *iface); /* frees everything; all eps must be closed */
    int (*get_addr)(weft_iface *iface, void *addr, size_t *bytes); /* own address; *bytes: in: capacity, out: length */
    /* Creates an ep from the peer's address. Sends nothing: connections start at the first send. WEFT_E_UNSUPPORTED: not reachable. */
    int (*ep_open)(weft_iface *iface, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **ep);
    /* Closes an ep after both sides sent BYE and drained. WEFT_AGAIN while own frames are in flight. Does not call peer_failed. */
    int (*ep_close)(weft_iface *iface, weft_ep *ep);

    /* -- memory: mr_reg and mr_dereg by any thread if caps.wants_regcache, else by the owner's threads only -- */
    int (*mr_reg)(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
    int (*mr_dereg)(weft_iface *iface, weft_mr *mr); /* its windows must be invalidated before */
    /* handle 0 on entry: creates `bytes` of zeroed shared memory; else attaches the memory of that handle. unshare unmaps it here. */
    int (*share)(weft_iface *iface, uint64_t bytes, weft_shared *shared);
    int (*unshare)(weft_iface *iface, weft_shared *shared);

    /* -- data transfer: 0, AGAIN (poll, then retry) or an error -- */
    /* Sends hdr unchanged and the body. 0: the caller may reuse the body. INPROGRESS, only with zcopy_ctx: accepted; the body must not
     * change until a later poll calls callbacks.done(zcopy_ctx), exactly once, also if the peer fails. */
    int (*send)(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
    /* Whether get and put work with this peer; tested, since the kernel may refuse. Called before a protocol is selected. */
    bool (*can_rma)(weft_iface *iface, weft_ep *ep);
    int (*get)(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
    int (*put)(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
    int (*amo)(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic); /* E_NOSPACE: no memory for its result could be registered */
    /* Calls callbacks.done when all earlier puts and amos on the ep are complete: locally (buffers reusable) or remotely (visible). */
    int (*flush)(weft_iface *iface, weft_ep *ep, bool remotely, void *done);

    /* -- progress -- */
    /* Handles up to `budget` events; returns their number (0: none) or an error of the whole device. A copied frame counts
     * WEFT_POLL_EXTRA more, which bounds the time of a poll; the last frame may exceed the budget. */
    int (*poll)(weft_iface *iface, int budget);
    /* Before a sleep: later arrivals raise the wakeup; includes the memory ordering (membarrier). The caller then polls once more and
     * sleeps only if that finds nothing. Arrivals without an event (memory rings) must be disabled first: until their senders
     * acknowledge, arm returns AGAIN (poll, arm later) and nothing is armed.
     * The wakeup is also raised when a call that returned AGAIN can be retried.
     * Successful arm and disarm alternate; one thread of the owner sleeps at a time. Other threads may send and poll in between: arrivals
     * after such a poll still raise the wakeup. */
    int (*arm)(weft_iface *iface, weft_wakeup *wakeup);
    void (*disarm)(weft_iface *iface);

    /* -- where caps.has_mw; NULL elsewhere -- */
    /* Binds a window to [addr, addr + bytes) of a region with MW: a key with only these rights, for the peer of this ep. It is valid for
     * later sends on the ep, until mw_invalidate or until the connection breaks. An RMA with a dead key ends with WEFT_E_STALE, reported by
     * the peer's own iface; the caller must move the bytes otherwise. AGAIN: not connected or no window free; the caller may do without. */
    int (*mw_bind)(weft_iface *iface, weft_ep *ep, const weft_mr *mr, void *addr, uint64_t bytes, uint32_t rights,
                weft_rkey *rkey, weft_mw **mw);
    /* Revokes the key, at the latest by the end of the second poll after it. The iface owns mw again. Its ep may be closed already. */
    void (*mw_invalidate)(weft_iface *iface, weft_mw *mw);

    /* -- may be NULL -- */
    /* Closes the connection, not the ep, before the owner stops polling: AGAIN until it is closed, a poll may open it anew. The peer is not
     * asked and not told. The next frame of either side connects. NULL: the owner may stop polling while eps are connected. */
    int (*ep_rest)(weft_iface *iface, weft_ep *ep, enum weft_ep_rest how);

    /* Performs amos on memory of this process by its own device, as peers' amos on it: atomic with these if caps.amo is NIC. ADD and CAS;
     * remote and rkey are of an own region with ATOMIC; `done` is not looked at, no callback is called. All are performed when it returns
     * 0, in any order; on an error some may be. It waits for the device alone, for a time that its time-outs bound. count 0: can it be
     * done? The first call makes what is needed. */
    int (*amo_self)(weft_iface *iface, const weft_atomic *atomics, uint32_t count);

    /* Prints the iface's own counters (work requests, retries), a line per call of `line`; at exit with WEFT_COUNTERS=1. NULL: none. */
    void (*print_counters)(weft_iface *iface, void (*line)(void *arg, const char *text), void *arg);
};

/* ops.describe of a transport without devices: prints nothing. */
void weft_describe_nothing(void (*line)(void *arg, const char *text), void *arg);

/* Built-in transports. The hot path calls shm directly. */
extern const weft_iface_ops weft_self_ops, weft_shm_ops;
int weft_shm_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
int weft_shm_poll(weft_iface *iface, int budget);
/* Sends a frame of at most inline_max bytes. Requires ep->cells_free > 0; cannot fail. The header is given as its three words in memory. */
void weft_shm_send_short(weft_ep *ep, uint64_t head0, uint64_t head1, uint64_t head2, const void *body);

/* Null objects: calls on the null iface return WEFT_E_PEER. */
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

/* Events that a copied body counts beside its frame, one per 8 KiB: a budget of 32 allows 256 KiB. */
#define WEFT_POLL_EXTRA(bytes) ((int)((bytes) >> 13))

static inline int weft_iface_poll(weft_iface *iface, int budget)
{
    if (__builtin_expect(iface->ops == &weft_shm_ops, 1))
        return weft_shm_poll(iface, budget);
    return iface->ops->poll(iface, budget);
}

#endif
