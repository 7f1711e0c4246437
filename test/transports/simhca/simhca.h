/* SPDX-License-Identifier: BSD-3-Clause
 *
 * simhca: libibverbs over an HCA that is made of a seed. It defines the ibv_ functions themselves, so what is written for
 * libibverbs runs over it unchanged, in one process, deterministically: delays, lost datagrams, every completion status, broken
 * queue pairs, links that flap, narrow limits, bytes that become visible line by line. For tests only; no real device is ever
 * touched.
 *
 * Linking: a test that is to run over it puts libsimhca.la on its link line and neither libibverbs nor librdmacm (what
 * transports/verbs uses of rdma_cm is simulated, too, between ports that have IPv4 addresses):
 *     test_x_y_LDADD = <objects of transports/verbs> libsimhca.la $(LDADD)
 * Use: simhca_open, then ibv_get_device_list and on, then simhca_close, which says what was left open. Where nothing was opened
 * the first call opens profile "calm", seed 1 (or WEFT_TEST_SIMHCA="profile:seed").
 *
 * Time is virtual and stands still between calls: each poll of a completion queue lets some pass. A program that waits without
 * polling calls simhca_pass. All is one thread's, but for ibv_reg_mr and ibv_dereg_mr, which any thread may call.
 */
#ifndef WEFT_SIMHCA_SIMHCA_H
#define WEFT_SIMHCA_SIMHCA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct ibv_qp;

/* What the fabric and its devices are like. Zero means none, or the default named. */
typedef struct simhca_profile {
    const char *name;
    uint32_t devices;             /* of each host; 0: 1 */
    bool is_ib;                   /* link layer InfiniBand: LIDs, GID index 0; else RoCE with v1 and v2 GIDs */
    bool separate;                /* device i reaches devices i of other hosts only; else all reach all */
    uint32_t delay_ns;            /* a packet takes 1..delay_ns; 0: 500 */
    uint32_t ack_ns;              /* so does an acknowledgement; 0: delay_ns */
    uint32_t ns_per_kib;          /* and this on top, by length */
    /* datagrams, of 1,000 */
    uint32_t lose_permille, twice_permille, overtake_permille;
    /* connected queue pairs */
    uint32_t break_per_100k;      /* messages at which the queue pair breaks, in one of simhca_break's ways */
    uint32_t ack_loss_permille;   /* acknowledgements that are lost: the requester sends again */
    uint32_t refuse_per_100k;     /* ibv_post_send that fails with ENOMEM although there is room */
    uint32_t flip_permille;       /* messages of which a bit in the middle is wrong (no HCA does that; checksums should see it) */
    bool torn;                    /* written and read bytes become visible line by line, over time */
    bool in_order;                /* ... in the order of addresses; ibv_query_qp_data_in_order says so */
    bool no_atomics;
    bool early;                   /* as iWARP's: sends and writes are told as over when they have left, reads when they are answered */
    bool no_windows;              /* memory windows of type 2B */
    uint32_t flap_per_100k;       /* messages and datagrams at which their port goes down ... */
    uint64_t flap_ns;             /* ... for so long at most; one in eight a hundred times as long */
    /* limits of a device; 0: plenty */
    uint32_t max_qp, max_qp_wr, max_cqe, max_srq_wr, max_sge, max_inline, max_rd_atomic, max_mr, max_mw, max_ah;
    uint32_t max_msg_bytes;
    uint64_t mr_bytes_max;           /* what one process may have pinned: its RLIMIT_MEMLOCK */
    uint64_t pin_ns, pin_page_ns; /* what a registration costs, and each of its pages */
    uint32_t reg_refuse_permille; /* registrations that fail with ENOMEM for no reason */
} simhca_profile;

/* calm datagrams breaks flap rails narrow torn pin wild ib flipped early; NULL when there is none. */
const simhca_profile *simhca_profile_find(const char *name);
extern const simhca_profile simhca_profiles[]; /* ends with name NULL */

enum simhca_count {
    SIMHCA_POSTS, SIMHCA_SENDS, SIMHCA_WRITES, SIMHCA_READS, SIMHCA_ATOMICS, SIMHCA_BYTES, SIMHCA_INLINE, SIMHCA_UNSIGNALLED,
    SIMHCA_COMPLETIONS, SIMHCA_ERRORS, SIMHCA_FLUSHED, SIMHCA_RNR, SIMHCA_RESENT, SIMHCA_ACKS_LOST, SIMHCA_BREAKS, SIMHCA_TORN,
    SIMHCA_DATAGRAMS, SIMHCA_DATAGRAMS_LOST, SIMHCA_DATAGRAMS_TWICE, SIMHCA_OVERTAKEN, SIMHCA_FLAPS, SIMHCA_DROPPED,
    SIMHCA_REGISTERED, SIMHCA_REG_REFUSED, SIMHCA_POST_REFUSED, SIMHCA_KEYS_REFUSED, SIMHCA_FLIPPED, SIMHCA_EVENTS, SIMHCA_WAKES,
    SIMHCA_KILLED, SIMHCA_OVERRUNS, SIMHCA_QPS, SIMHCA_BINDS, SIMHCA_COUNT_LAST
};
extern const char *const simhca_count_names[SIMHCA_COUNT_LAST];

/* Makes the one fabric of this process; the profile is copied. Processes of one host share its devices: `processes_per_host` 0
 * puts each on a host of its own. False when out of memory. */
bool simhca_open(const simhca_profile *profile, uint64_t seed, uint32_t processes_per_host);
/* Frees all. How many objects (contexts, queue pairs, regions ...) living processes left open; their kinds go to `out`. */
uint32_t simhca_close(FILE *out);
bool simhca_is_open(void);
/* Devices opened from now on belong to this simulated process (0 at first). */
void simhca_process(uint32_t process);
uint32_t simhca_process_now(void);

/* -- time -- */
uint64_t simhca_now_ns(void);
/* Lets `ns` pass and everything happen that is due by then. */
void simhca_pass(uint64_t ns);
/* For whoever keeps the time himself: what passes inside calls is told to `pass` (which then calls simhca_advance);
 * NULL: we keep it. */
void simhca_clock(void (*pass)(void *arg, uint64_t ns), void *arg);
void simhca_advance(uint64_t now_ns);
/* When the next event is due; UINT64_MAX when there is none. */
uint64_t simhca_next_due(void);
/* Grows with every descriptor that became readable: a sleeper whose descriptor was silent needs not look before it has grown. */
extern uint64_t simhca_rings;
/* Grows with every message of a connected queue pair that was delivered. */
extern uint64_t simhca_activity;

uint64_t simhca_counter(enum simhca_count which);
/* One line: profile, seed, counts that are not 0. */
void simhca_print(FILE *out);

/* -- harm on command -- */
enum simhca_break_kind {
    SIMHCA_BREAK_LOST,   /* the message is lost, and all later ones: transport retry exceeded here */
    SIMHCA_BREAK_ACK,    /* the message arrives, its acknowledgement never does: error here, success there */
    SIMHCA_BREAK_LOCAL,  /* our queue pair fails by itself: local operation error, the other side knows nothing */
    SIMHCA_BREAK_REMOTE, /* the other side's queue pair fails by itself */
    SIMHCA_BREAK_BOTH,
    SIMHCA_BREAK_EVENT,  /* ours is put to ERR with an asynchronous event and everything flushed: no other status */
    SIMHCA_BREAK_LAST
};
/* Breaks a connected queue pair: at its next message for LOST and ACK, else at once. */
void simhca_break(struct ibv_qp *qp, enum simhca_break_kind kind);
/* Any connected queue pair, by seed: what `breaks` of a test asks for. NULL when there is none. */
struct ibv_qp *simhca_any_qp(void);
/* Ends a simulated process as kill -9 does: the kernel destroys what it had; nobody is told. */
void simhca_kill(uint32_t process);
/* Port `port` (from 1) of device `device` of a host goes down or up. */
void simhca_link(uint32_t host, uint32_t device, uint8_t port, bool is_up);
/* Whether the device hears nothing of rdma_cm any more, as soft-RoCE's that had to send it by a port that was down. `how` 1 makes it so,
 * 0 ends it, -1 only asks. */
bool simhca_deafen(uint32_t host, uint32_t device, int how);
/* The device fails for good: its calls give EIO, queue pairs die without completions. */
void simhca_device_fatal(uint32_t host, uint32_t device);

#endif
