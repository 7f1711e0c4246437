/* SPDX-License-Identifier: BSD-3-Clause
 *
 * worker_type: lock domain: a lock and the ifaces, peers, channels, pools and running schedules that it guards. A communicator belongs to
 * one worker; threads scale by workers. See worker.h for the calls.
 */
#ifndef WEFT_CORE_WORKER_TYPE_H
#define WEFT_CORE_WORKER_TYPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fifomap.h"
#include "base/list.h"
#include "core/counters_type.h"
#include "core/lock.h"
#include "core/req_type.h"
#include "transport/iface.h"

struct weft_world;
struct weft_peer;
struct weft_chan;
struct weft_wait;
typedef struct weft_progress_thread weft_progress_thread;

#define WEFT_WORKER_IFACES 4
#define WEFT_NOTIFY_WINDOW (1u << 31) /* in a put's notification: it is of a window (rma/notify.h); else the id of a rendezvous */

typedef struct weft_worker {
    struct weft_world *world;
    uint32_t index;
    union {
        struct {
            bool is_threaded;      /* MPI_THREAD_MULTIPLE, or lent to the progress thread: take the lock */
            _Atomic bool has_tool; /* a tool listens to events (base/event): calls deliver them */
        };
        uint16_t is_special;       /* either: calls take their slow path */
    };
    bool is_armed;         /* a thread has armed the ifaces; that thread disarms them */
    bool is_asleep;        /* that thread sleeps on the wakeups */
    weft_iface *ifaces[WEFT_WORKER_IFACES];
    bool has_addr[WEFT_WORKER_IFACES]; /* the iface is a network: its address is published by modex */
    uint32_t iface_count;
    char no_network[200];  /* why the first network with an active device did not open, if none opened; "": no reason */
    bool wants_fd;         /* sleeps on descriptors, not on a futex */
    uint64_t serial;       /* of all workers that this process ever opened; owner of the groups' arrays of peers */
    struct weft_peer *_Atomic peers; /* all that there was contact with, latest first; none is removed before the worker closes */
    struct weft_peer **peer_slots; /* the same, hashed by process; [peer_mask + 1] */
    uint32_t peer_mask, peer_count;
    struct weft_chan_slot *chans; /* by index bits of the channel id */
    uint32_t chan_capacity, chan_lowest; /* channel indices below chan_lowest are all in use */
    weft_list_link backlog; /* peers with deferred frames or messages that wait for credit */
    weft_list_link scheds; /* schedules that progress can advance */
    uint32_t scheds_ready; /* length of scheds */
    int (*progress_scheds)(struct weft_worker *worker); /* advances scheds; set by collectives */
    struct weft_sched *spare_scheds; /* freed ones, for the next nonblocking collectives; freed with the worker */
    uint32_t spare_sched_count; /* their number */
    struct weft_sched_blocks *spare_blocks; /* temporary memory for the next collectives (collectives/sched_memory); NULL: none yet */
    void (*free_scheds)(struct weft_worker *worker); /* frees spare_scheds and spare_blocks; set by collectives; NULL: there are none */
    weft_list_link areas;  /* node areas with nonblocking calls under way, but those that a thread advances now */
    uint32_t area_count;   /* length of areas */
    bool has_ready_area;   /* the last thread that advanced areas left one that can go on without a post of others */
    bool has_barred_area;  /* the last poll left one to the program's threads (progress_thread) */
    int (*progress_areas)(struct weft_worker *worker); /* advances areas; set by collectives */
    weft_list_link inboxes; /* windows with messages of operations to handle (rma/inbox) */
    int (*progress_inboxes)(struct weft_worker *worker); /* handles them; set by rma */
    weft_list_link devices; /* windows with operations that found the iface full or await a registration (rma/device) */
    int (*progress_devices)(struct weft_worker *worker); /* continues them; set by rma */
    void (*on_window_notify)(struct weft_worker *worker, uint32_t value); /* a put's notification with WEFT_NOTIFY_WINDOW; set by rma */
    struct weft_window **notified; /* windows by their number (rma/notify.h), owned; NULL: none yet */
    uint32_t notified_count;       /* numbers given so far */
    struct weft_window_kept *kept; /* memory of windows that the program did not free, latest first (rma/open.c), owned; NULL: none */
    void (*free_kept)(struct weft_worker *worker); /* frees it; set by rma; NULL: there is none */
    const struct weft_segment_hdr *recovery; /* the launcher lists deaths here (mpirun --enable-recovery); NULL: a death ends the job */
    uint32_t deaths_seen;   /* number of those passed to on_death */
    void (*on_death)(struct weft_worker *worker, uint32_t rank); /* the process of a rank of the job has died; set by p2p */
    void (*on_long_wait)(struct weft_worker *worker); /* a thread has slept for a second, or longer; set by p2p; NULL: none */
    weft_list_link fragments; /* fragments of transfers: sent in chunks, found the iface full, or await a registration (p2p/frag) */
    uint32_t awaited_regs;    /* registrations by a helper thread that fragments or a waiting call await */
    uint32_t idle_fragments;  /* fragments of the list that await one: no work until the leader is woken */
    int (*progress_fragments)(struct weft_worker *worker); /* advances fragments; set by p2p */
    void (*on_peer_connect)(struct weft_peer *peer); /* new peer: sets its limits; set by p2p; NULL: none */
    int (*flush)(struct weft_peer *peer); /* sends messages that wait for credit, as far as it lasts; set by p2p */
    const weft_iface_callbacks *callbacks; /* upcalls of the ifaces; owned by p2p */
    _Alignas(WEFT_REQ_BYTES) weft_req done_req; /* shared "already complete" request of eager sends */
    weft_req done_sched; /* the same of collectives that an attempt ended */
    weft_list_link free_reqs;
    void *slabs;               /* memory of the request pool, returned to the process at close; NULL: none */
    struct weft_failure *failures; /* ring of error texts of failed requests (core/failure); NULL: none failed */
    uint32_t failure_next;     /* count of failures; its remainder is the slot of the next one */
    uint64_t empty_turns;      /* turns of waits whose poll found nothing */
    uint32_t unpolled;         /* receives completed by unexpected messages since weft_worker_catch_up polled */
    uint64_t post_order;       /* post number of the next receive */
    uint64_t synced_order;     /* receives with lower post numbers need no check for unmapped memory (core/reg) */
    struct weft_rndv_stats *rndv_stats; /* of p2p, by iface and kind of peer; freed with the worker */
    uint64_t persistent_bytes; /* bytes of persistent registrations (core/reg_persistent) */
    uint32_t credit_return_min; /* due credits from which a CREDIT frame is sent, in WEFT_CREDIT_BYTES */
    struct weft_pool *pool;    /* unexpected messages and deferred frames, by exact size classes */
    weft_fifomap announced;    /* unmatched RTS, by peer and its request id: those that a sender may cancel (p2p/match) */
    struct weft_promises *promises; /* persistent requests that keep matching each other (p2p/promise) */
    struct weft_rndv_pool *rndv_pool; /* rendezvous in flight, and their ids (p2p/rndv_pool) */
    void (*on_close)(struct weft_worker *worker); /* frees promises and rndv_pool; set by p2p; NULL: none */
    uint64_t counters[WEFT_COUNT_LAST]; /* core/counters */
    void (*count)(struct weft_worker *worker); /* updates counters kept elsewhere (registrations); NULL: none */
    weft_lock lock;
    /* the progress thread (core/progress_thread) */
    weft_progress_thread *progress_thread; /* NULL: none may be started */
    bool helps;                /* channels are helped unless an info key says otherwise; constant while the world is open */
    bool is_lent;              /* is_threaded was set for the progress thread */
    bool is_helping;           /* the progress thread waits in this worker */
    bool was_visited;          /* a thread has locked since the progress thread's last look */
    void (*on_leave)(struct weft_worker *worker); /* the progress thread rests until the leader leaves: wakes it; NULL: it does not */
    _Atomic uint32_t helped;   /* operations under way that the progress thread can advance */
    _Atomic bool wants_thread; /* one has begun since the thread was called */
    /* threads that wait (core/leader) */
    struct weft_wait *_Atomic leader; /* polls for all; NULL: none */
    struct weft_wait *heir;    /* parked thread that checks for a leader; NULL: none */
    weft_list_link parked;     /* all parked threads, latest first */
    bool has_woken;            /* a sleeping parked thread was woken since the leader's last check */
    _Atomic uint32_t leaves;   /* times that a leader stepped down; wraps */
    _Atomic uint32_t spinners; /* parked threads that spin, at most spare_cpus */
    uint32_t spare_cpus;       /* CPUs of this rank, less one for the leader; constant */
} weft_worker;

#endif
