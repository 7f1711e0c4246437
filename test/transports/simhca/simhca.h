/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simhca: a simulated libibverbs and librdmacm. It defines the ibv_ functions, so code for libibverbs runs unchanged, in one process,
 * deterministically by a seed: delays, lost datagrams, every completion status, broken queue pairs, flapping links, low limits, bytes that
 * become visible line by line. For tests only; accesses no real device.
 * Linking: a test links libsimhca.a in place of libibverbs and librdmacm (of rdma_cm only what transports/verbs uses, between ports with
 * IPv4 addresses): test_x_y_LDADD = <objects of transports/verbs> libsimhca.a $(LDADD)
 * Use: simhca_open, ibv_get_device_list and so on, simhca_close, which reports leaked objects. Without simhca_open the first call opens
 * profile "calm", seed 1 (or WEFT_TEST_SIMHCA="profile:seed").
 * Time is virtual and advances only in calls: each poll of a completion queue adds some. A program that waits without polling calls
 * simhca_pass. One thread; any thread may call ibv_reg_mr and ibv_dereg_mr.
 */
#ifndef WEFT_SIMHCA_SIMHCA_H
#define WEFT_SIMHCA_SIMHCA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ibv_qp;

/* What a device does with IBV_ACCESS_RELAXED_ORDERING. */
enum simhca_relaxed { SIMHCA_IGNORES_RELAXED, SIMHCA_HONOURS_RELAXED, SIMHCA_REFUSES_RELAXED };

/* Properties of the fabric and its devices. Zero means none, or the stated default. */
typedef struct simhca_profile {
    const char *name;
    uint32_t devices;             /* of each host; 0: 1 */
    bool is_ib;                   /* link layer InfiniBand: LIDs, GID index 0; else RoCE with v1 and v2 GIDs */
    bool separate;                /* device i reaches devices i of other hosts only; else all reach all */
    uint32_t delay_ns;            /* a packet takes 1..delay_ns; 0: 500 */
    uint32_t ack_ns;              /* the same for an acknowledgement; 0: delay_ns */
    uint32_t ns_per_kib;          /* in addition, by length */
    /* datagrams, of 1,000 */
    uint32_t lose_permille, twice_permille, overtake_permille;
    /* connected queue pairs */
    uint32_t break_per_100k;      /* messages at which the queue pair breaks, in a way of simhca_break */
    uint32_t ack_loss_permille;   /* lost acknowledgements: the requester retransmits */
    uint32_t refuse_per_100k;     /* calls of ibv_post_send that fail with ENOMEM although entries are free */
    uint32_t flip_permille;       /* messages with one flipped bit in the middle (no HCA does this; checksums must detect it) */
    bool torn;                    /* bytes of writes and reads become visible line by line, over time; reads take words at two times */
    bool in_order;                /* ... in the order of addresses; ibv_query_qp_data_in_order returns so */
    enum simhca_relaxed relaxed;  /* honoured: writes there are acknowledged first and become visible later, line by line, in any order;
                                   * at the latest before a receive of their queue pair completes */
    bool no_atomics;
    bool glob_atomics;            /* IBV_ATOMIC_GLOB: atomic with the CPU's; else with those of the device alone: a CPU's are lost */
    bool early;                   /* as iWARP: sends and writes complete when sent, reads when answered */
    bool no_windows;              /* memory windows of type 2B */
    bool no_srq;                  /* no shared receive queues */
    bool no_rc;                   /* no connected queue pairs: transports/verbs refuses the device */
    bool needs_grh;               /* InfiniBand: paths within the subnet need a GRH, too (IBV_QPF_GRH_REQUIRED) */
    bool drops_inline;            /* creates queue pairs with max_inline_data 0, whatever is asked */
    bool foreign_gid;             /* GID 3, IPv4 of RoCE v2, belongs to another network namespace; 5 is this one's */
    uint32_t pkey_index;          /* of the one valid entry of the P_Key table, 0x8001; 0: entry 0 is the default partition */
    uint32_t flap_per_100k;       /* messages and datagrams at which their port goes down ... */
    uint64_t flap_ns;             /* ... longest duration; one in eight lasts a hundred times as long */
    /* limits of a device; 0: ample */
    uint32_t max_qp, max_qp_wr, max_cqe, max_srq_wr, max_sge, max_inline, max_rd_atomic, max_mr, max_mw, max_ah;
    uint32_t max_msg_bytes;
    uint32_t max_init_rd_atomic;  /* of the requester; 0: max_rd_atomic */
    uint64_t mr_bytes_max;           /* most bytes that one process may register: its RLIMIT_MEMLOCK */
    uint64_t pin_ns, pin_page_ns; /* time of a registration, and per page */
    uint32_t reg_refuse_permille; /* registrations that fail with ENOMEM at random ... */
    uint32_t own_regions;         /* ... behind a library's own, the first so many of a process; 0: 8 */
} simhca_profile;

/* Profile by name: those of simhca_profiles. NULL: unknown. */
const simhca_profile *simhca_profile_find(const char *name);
extern const simhca_profile simhca_profiles[]; /* ends with name NULL */

enum simhca_count {
    SIMHCA_POSTS, SIMHCA_SENDS, SIMHCA_WRITES, SIMHCA_READS, SIMHCA_ATOMICS, SIMHCA_BYTES, SIMHCA_INLINE, SIMHCA_UNSIGNALLED,
    SIMHCA_COMPLETIONS, SIMHCA_ERRORS, SIMHCA_FLUSHED, SIMHCA_RNR, SIMHCA_RESENT, SIMHCA_ACKS_LOST, SIMHCA_BREAKS, SIMHCA_TORN,
    SIMHCA_DATAGRAMS, SIMHCA_DATAGRAMS_LOST, SIMHCA_DATAGRAMS_TWICE, SIMHCA_OVERTAKEN, SIMHCA_FLAPS, SIMHCA_DROPPED,
    SIMHCA_REGISTERED, SIMHCA_REG_REFUSED, SIMHCA_POST_REFUSED, SIMHCA_KEYS_REFUSED, SIMHCA_FLIPPED, SIMHCA_EVENTS, SIMHCA_WAKES,
    SIMHCA_KILLED, SIMHCA_OVERRUNS, SIMHCA_QPS, SIMHCA_BINDS, SIMHCA_RELAXED_WRITES,
    SIMHCA_COUNT_LAST
};
extern const char *const simhca_count_names[SIMHCA_COUNT_LAST];

/* Opens the one fabric of this process; copies the profile. Processes of one host share its devices; processes_per_host 0: one process
 * per host. False: out of memory. */
bool simhca_open(const simhca_profile *profile, uint64_t seed, uint32_t processes_per_host);
/* Frees everything. Returns the number of objects (contexts, queue pairs, regions ...) that living processes leaked; prints their kinds
 * to `out`. */
uint32_t simhca_close(FILE *out);
bool simhca_is_open(void);
/* Devices opened later belong to this simulated process (initially 0). */
void simhca_process(uint32_t process);
uint32_t simhca_process_now(void);

/* -- time -- */
uint64_t simhca_now_ns(void);
/* Advances time by ns and processes the events due by then. */
void simhca_pass(uint64_t ns);
/* Uses an external clock: time that calls take is passed to `pass`, which then calls simhca_advance. NULL: the simulator's own clock. */
void simhca_clock(void (*pass)(void *arg, uint64_t ns), void *arg);
void simhca_advance(uint64_t now_ns);
/* Time of the next event; UINT64_MAX: none. */
uint64_t simhca_next_due(void);
/* Grows with each descriptor that became readable: until then a sleeper need not poll its silent descriptor. */
extern uint64_t simhca_rings;
/* Grows with each delivered message of a connected queue pair. */
extern uint64_t simhca_activity;

uint64_t simhca_counter(enum simhca_count which);
/* Prints one line: profile, seed, nonzero counts. */
void simhca_print(FILE *out);

/* -- faults on command -- */
enum simhca_break_kind {
    SIMHCA_BREAK_LOST,   /* the message and all later ones are lost: transport retry exceeded at the sender */
    SIMHCA_BREAK_ACK,    /* the message arrives, its acknowledgement is lost: error at the sender, success at the receiver */
    SIMHCA_BREAK_LOCAL,  /* this queue pair fails: local operation error; the other side gets no notice */
    SIMHCA_BREAK_REMOTE, /* the remote queue pair fails */
    SIMHCA_BREAK_BOTH,
    SIMHCA_BREAK_EVENT,  /* this queue pair goes to ERR with an asynchronous event, all work is flushed: no other status */
    SIMHCA_BREAK_LAST
};
/* Breaks a connected queue pair: at its next message for LOST and ACK, else at once. */
void simhca_break(struct ibv_qp *qp, enum simhca_break_kind kind);
/* A connected queue pair, selected by seed; NULL: none. */
struct ibv_qp *simhca_any_qp(void);
/* Ends a simulated process as SIGKILL does: the kernel destroys its objects; no process is notified. */
void simhca_kill(uint32_t process);
/* Port `port` (from 1) of device `device` of a host goes down or up. */
void simhca_link(uint32_t host, uint32_t device, uint8_t port, bool is_up);
/* Whether the device receives no rdma_cm messages, as soft-RoCE after a send by a port that was down. how: 1 sets this, 0 clears it, -1
 * only queries. */
bool simhca_deafen(uint32_t host, uint32_t device, int how);
/* Called at each registration until simhca_close, with its access flags. True: the device treats it as relaxed, whatever they say. */
void simhca_on_register(bool (*is_relaxed)(unsigned access));
/* The device fails for good: its calls return EIO, queue pairs die without completions. */
void simhca_device_fatal(uint32_t host, uint32_t device);

#endif
