/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi: transport over libfabric, private to its folder. An iface has one reliable datagram endpoint (FI_EP_RDM), one address vector and
 * one completion queue. Frames are libfabric messages; get and put are its reads and writes.
 *
 *   provider   selects a provider of fi_getinfo's list                                         provider_select.c
 *   library    libfabric itself, loaded when it is needed                                      library.h, library_load.c
 *   endpoint   opens the provider; limits and capabilities                                     endpoint.c
 *   address    addresses of this host; the iface address; order of a peer's candidates         addr_list.c
 *   knock      before libfabric is open: a listening socket; asks a peer for its port          knock.c
 *   ep         peers                                                                           ep.c
 *   handshake  identifies the process at an address; loss of a peer; closing                   handshake.c
 *   probe      asks the kernel about an address: a TCP connection, begun and dropped           tcp_probe.c
 *   flow       frames: slots, numbers, windows; receiving; frames of a burst in one message    flow.c, coalesce.c
 *   keep       over plain TCP: messages until they are acknowledged; sent again after a break  keep.c
 *   watch      finds silent peers and losses that nothing reports                              watch.c
 *   sockets    libfabric's TCP connections: keepalive; ends those whose path is dead           tcp_sockets.c
 *   rma        get, put, atomics: fragments, completions, errors                               rma.c
 *   memory     registrations and keys                                                          memory.c
 *   iface      the operations table; open, close, poll, arm                                    iface.c
 *
 * Limits of libfabric's tcp: it returns "try again" for ever if nothing listens, does not report a dead peer to a side that only
 * receives, and reconnects by itself after an error, so that messages may be lost between two that arrive. Hence handshakes with nonces,
 * probes, and a number in each frame, by which what was lost is sent again.
 */
#ifndef WEFT_TRANSPORTS_OFI_OFI_H
#define WEFT_TRANSPORTS_OFI_OFI_H

#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "transport/iface.h"

#define OFI_MESSAGE 33024u        /* largest message; rxm sends up to this without its own rendezvous (provider_select.c) */
#define OFI_LONG_MESSAGE 66048u   /* largest over plain TCP: moving 64 KiB by a get (three messages) takes longer than two copies */
#define OFI_CHUNK 65536u          /* body of each frame of a stream: whole pages */
#define OFI_SMALL 1024u           /* bytes of a small slot */
#define OFI_ZCOPY_MIN 8192u        /* minimum body sent without a copy, except for blocking sends */
#define OFI_COALESCE_FRAME 32832u    /* over sockets: largest frame with headers that is coalesced */
#define OFI_SLOTS 64u
#define OFI_SMALL_SLOTS 256u
#define OFI_RECVS 4u              /* receive buffers, of many messages each (FI_MULTI_RECV) */
#define OFI_RECV_BYTES (256u << 10)
#define OFI_SINGLES 64u           /* receive buffers of one message each: without FI_MULTI_RECV, and over plain TCP */
/* Over plain TCP libfabric 1.17 frees a multi-receive buffer while another peer's message still arrives in it: so single receives, and
 * this many are posted, so that they stay in the cache. The kernel keeps further messages. More are posted only when idle (ofi_poll). */
#define OFI_TCP_RECVS 4u
#define OFI_FRAG (1u << 20)      /* largest fragment of a get or put; half over sockets */
#define OFI_FRAGS_EP 16u       /* fragments in flight with one peer */
#define OFI_EP_BYTES (4u << 20) /* bytes in flight with one peer; frames wait behind them on a TCP connection */
#define OFI_TCP_BYTES (1u << 20)  /* likewise over sockets: bytes that stay long in socket buffers leave the cache */
#define OFI_FRAGS 64u            /* fragments in flight on an iface */
#define OFI_WINDOW 4096u          /* maximum of unacknowledged frames per peer */
#define OFI_KEEP_BYTES (4u << 20) /* likewise of bytes that are kept until the acknowledgement */
#define OFI_BATCH 16u             /* completions read at one time */
#define OFI_TCP_INLINE 80u        /* caps.inline_max over plain TCP, which takes 128 bytes with headers by inject */
#define OFI_PLAIN_TCP "net,tcp"   /* its names: of libfabric 1.17, of later ones */
#define OFI_CANDIDATES 32u             /* maximum addresses of one peer */
#define OFI_HANDSHAKE_NS 250000000u    /* time without an answer until the addresses are probed */
#define OFI_PROBE_NS 3000000000u  /* time without an answer of the peer's kernel until a probe fails */
#define OFI_TURN_NS 20000u        /* interval of handling pending handshakes */

typedef struct ofi_iface ofi_iface;
typedef struct ofi_ep ofi_ep;

typedef union ofi_address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    uint8_t opaque[176];
} ofi_address;

/* -- wire format -- */

enum ofi_kind { OFI_FRAME = 1, OFI_NOTIFY, OFI_ACK, OFI_PING, OFI_HANDSHAKE };
/* Header of every frame, notification and handshake. Lengths are multiples of 8, so that bodies stay aligned in a buffer of many messages.
 * One message may hold several frames (coalesce.c). */
typedef struct ofi_wire {
    uint64_t nonce; /* the receiver's, which only the job's processes know; messages with another one are dropped */
    uint32_t to;    /* index of the ep at the receiver, from its handshake */
    uint32_t seq;   /* FRAME and NOTIFY: number from 1; PING: of the last frame sent before it; else 0 */
    uint32_t ack;   /* last number received from the receiver of this message */
    uint8_t kind, flags;
    uint16_t zero;
} ofi_wire;

typedef struct ofi_framed {
    ofi_wire wire;
    weft_hdr hdr;
    uint8_t body[];
} ofi_framed;

#define OFI_ASKS 1 /* flag of FRAME, NOTIFY and PING: the sender asks for an acknowledgement now */

typedef struct ofi_notification {
    ofi_wire wire;
    uint32_t value, zero;
} ofi_notification;

#define OFI_HANDSHAKE_CLOSE 1 /* flag of a handshake: the sender closes the ep; asks for an answer */
/* Message OFI_HANDSHAKE: identity of the sender, and a return address. `attempt` asks for an answer, which has this number in
 * `echo`; 0: none. */
typedef struct ofi_handshake {
    ofi_wire wire;
    weft_proc_id proc_id;
    uint64_t nonce;
    uint32_t attempt, echo;
    uint32_t ep_index;           /* index of the sender's ep */
    uint32_t sent, received; /* numbers of frames so far */
    uint32_t hint_bytes;
    uint8_t hint[sizeof(struct sockaddr_in6) + 4]; /* sender's address as the receiver sees it; 0 bytes: first of its iface address */
} ofi_handshake;
_Static_assert(sizeof(ofi_wire) == 24 && sizeof(ofi_handshake) % 8 == 0 && sizeof(ofi_framed) == 48, "the wire");

/* -- addresses -- */

enum ofi_form { OFI_FORM_IN = 1, OFI_FORM_IN6, OFI_FORM_OPAQUE };
typedef struct ofi_iface_addr {
    uint16_t version;
    uint8_t form, count;   /* number of addresses; OPAQUE: bytes of the only one */
    uint32_t protocol;     /* libfabric's number of the wire protocol */
    uint64_t nonce;        /* random number of the process; only the job's processes know it */
    uint32_t host;         /* identifies the network namespace: loopback is tried on the same one only */
    uint16_t port;         /* IN, IN6; network order */
    uint8_t key_form;
    uint8_t knocks;        /* 1: libfabric is not open, port is that of the knock socket, protocol and provider are not known (knock.c) */
    char provider[24];
    uint8_t addresses[200]; /* IN: 4 bytes and one for the order (addr_list.c); IN6: 16 and one; a lower one is better */
} ofi_iface_addr;
_Static_assert(sizeof(ofi_iface_addr) <= WEFT_ADDR_MAX, "an address");

enum ofi_candidate_state { OFI_CANDIDATE_NEW, OFI_CANDIDATE_PROBED, OFI_CANDIDATE_LISTENS, OFI_CANDIDATE_FAILED };
typedef struct ofi_candidate { /* one address of a peer */
    ofi_address address;
    uint32_t bytes;
    fi_addr_t to;
    bool is_inserted, has_hint;
    uint32_t hint_bytes;   /* local address as this one sees it; determined once */
    uint8_t hint[sizeof(struct sockaddr_in6) + 4];
    enum ofi_candidate_state state;
    uint32_t score;        /* lower is tried first */
    uint32_t attempt;      /* number of the last handshake sent there; 0: none */
    int probe;             /* socket of a probe, or -1 */
    uint64_t probed_ns;
    uint32_t *counter;     /* iface->knocks, which counts the probe; NULL: not counted */
    uint32_t refusals, releases; /* knocks that ended without an answer; that were given up for others (knock.c) */
    uint64_t refused_ns, begin_ns; /* time of the first refusal; earliest time of the next knock */
    bool is_prompt, hurries; /* the knock was sent soon after the connection was made; the next one must be, as the last one was not */
    char why[112];         /* text of state FAILED */
} ofi_candidate;

/* -- operations that libfabric completes -- */

enum ofi_work_kind { OFI_WORK_RECV, OFI_WORK_SLOT, OFI_WORK_FRAG };
typedef struct ofi_work {
    struct fi_context2 context; /* libfabric's while in flight; first member */
    enum ofi_work_kind kind;
    ofi_ep *ep;
} ofi_work;

typedef struct ofi_slot {
    ofi_work work;
    weft_list_link link;  /* in its free list, ep->kept, or iface->orphans */
    weft_list_link by_held; /* in iface->held: the provider has released the body, the peer has not acknowledged it */
    bool is_small;
    bool is_extra;   /* allocated beyond the arena's slots */
    bool is_posted;  /* the provider has it, or frames are added to it (coalesce.c) */
    uint32_t about;  /* a handshake: index of its ep; else 0 */
    uint32_t last;   /* number of its last frame; valid in ep->kept */
    uint32_t bytes;  /* of the message, with `body`; valid in ep->kept */
    void *held;      /* zcopy_ctx of a frame sent without copy, for callbacks.done; NULL: the body was copied */
    const uint8_t *body; /* the caller's, of such a frame; place has the headers */
    uint64_t held_ns;    /* time since which it is in iface->held */
    uint8_t *place;
} ofi_slot;

typedef struct ofi_recv {
    ofi_work work;
    uint8_t *place;
    uint32_t bytes;
    bool is_posted;
} ofi_recv;

enum ofi_op_kind { OFI_GET, OFI_PUT, OFI_AMO, OFI_FLUSH };
typedef struct ofi_op {
    weft_list_link link;      /* in ep->ops, in order of posting */
    enum ofi_op_kind kind;
    ofi_ep *ep;
    weft_rma rma;
    weft_rkey rkey;        /* rma.rkey points here */
    void *desc;          /* descriptor of local memory */
    uint64_t issued;
    uint32_t frags;     /* fragments in flight or to be tried again */
    bool is_issued;      /* all fragments were posted once */
    bool notify_due;
    int rc;
    char text[256];      /* text of rc */
    enum weft_amo_op amo;
    uint64_t operand, compare, *before;
} ofi_op;

typedef struct ofi_frag {
    ofi_work work;
    weft_list_link link;      /* in free_frags or ep->again */
    ofi_op *op;
    uint64_t at, bytes;  /* offset in the op, length; both of what is still to move */
    uint64_t part;       /* of these bytes, from `at` on: posted now, or next */
    uint32_t tries;      /* failures of this part and of larger ones at the same offset */
    uint64_t *words;     /* operand, compare, result; registered */
} ofi_frag;

/* -- a peer -- */

enum ofi_state {
    OFI_IDLE,     /* nothing sent yet */
    OFI_CONNECTING,  /* handshake pending */
    OFI_OPEN,
    OFI_RESUMING, /* frames that the peer lacks are sent again; then OPEN */
    OFI_BROKEN,   /* was open, an operation failed: handshake again; then RESUMING, or OPEN if no frame was lost */
    OFI_FAILED
};
typedef struct ofi_coalesce { /* frames to a peer for one message. Changed by the owner under flusher.lock */
    weft_list_link link;        /* in iface->bundles while slot is not NULL */
    ofi_slot *slot;        /* NULL: no frame is held */
    fi_addr_t to;
    uint32_t bytes, frames, number;
    bool was_sent;         /* sent by the flusher: the owner may drop it */
    uint32_t burst, burst_poll; /* frames to this peer since the last poll; number of that poll */
} ofi_coalesce;

struct ofi_ep {
    weft_ep ep;
    weft_list_link link;        /* in iface->eps */
    weft_list_link handshaking;     /* in iface->handshaking: handshake, probe or close pending */
    bool is_handshaking;
    weft_proc_id proc_id;
    ofi_iface_addr addr;
    enum ofi_state state;
    uint32_t index;        /* of this ep, from 1 */
    uint32_t remote_index;       /* index of the peer's ep; valid if is_heard */
    bool has_remote_index;
    ofi_candidate *candidates;       /* in the order of attempts */
    uint32_t candidate_count, candidate_max, candidate; /* entries in use, existing; the one being tried */
    uint32_t attempt;      /* last handshake number used */
    uint32_t repeats;      /* repeated handshakes at this candidate */
    uint64_t called_ns;    /* time of the last handshake to this candidate; 0: not sent yet */
    uint64_t began_ns;     /* start of the handshake */
    uint64_t tried_ns;     /* start at this candidate; BROKEN: last time the numbers did not match */
    uint32_t reply_due, echo_candidate; /* handshake number to be answered (0: none), and at which candidate */
    uint64_t reply_due_ns;      /* time of that request */
    uint64_t received_ns;     /* time of the first check since a message came; 0: not checked yet */
    bool is_pinged;
    uint32_t sent, received, acked, acked_to_peer; /* frames: numbered for sending, received in order, acknowledged by and to the peer */
    uint32_t slots_out;    /* slots in flight or holding coalesced frames */
    weft_list_link kept;   /* messages in order of their numbers: in flight, or (iface->keeps) not acknowledged yet */
    weft_list_link *resend;   /* RESUMING: the next of them to be sent again */
    uint32_t kept_bytes, unasked; /* bytes of the messages in `kept`; bytes sent since an acknowledgement was last requested */
    uint32_t watched;      /* frames sent at the last check: when acknowledged the connection works */
    uint64_t ping_ns, ping_gap_ns; /* earliest time of the next ping, interval to the one after it */
    uint32_t breaks, tries; /* breaks so far; handshakes sent since the last one */
    ofi_coalesce coalesce;
    weft_list_link early;       /* frames received ahead of order */
    weft_list_link ops, again;  /* ops; fragments to be tried again */
    weft_list_link by_rma;      /* in iface->moving while there are ops */
    bool has_rma;
    uint32_t frags_out;
    uint64_t bytes_out;    /* bytes in these fragments */
    bool is_blocked;       /* a send returned AGAIN and none succeeded since */
    bool is_closing, peer_closed; /* ofi_ep_close was called; the peer has closed, has acknowledged the close, or is gone */
    uint32_t close_attempt;
    char broken_by[160];   /* error that led to BROKEN */
    bool is_reported;      /* the log has a line about the break */
};

/* Thread that sends coalesced frames of a program that does not poll (coalesce.c). `lock` protects all bundles. */
typedef struct ofi_flusher {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool is_running, has_failed, is_asleep, is_closing;
    uint32_t number;   /* bundles begun so far */
    uint32_t direct_max; /* frames of a burst that are sent directly */
    uint32_t prompt_bursts;   /* consecutive bursts that a poll followed soon */
    bool was_needed, has_coalesced; /* since the last poll */
    uint64_t burst_ns; /* time of the last directly sent frame of a burst since the last poll; 0: none */
} ofi_flusher;

struct ofi_iface {
    weft_iface iface;
    weft_proc_id self;
    ofi_iface_addr addr;
    uint64_t (*now_ns)(void);
    struct fi_info *info;
    bool is_deferred;     /* libfabric is not open: ofi_contact opens it */
    int listener;         /* knock socket; -1: none */
    bool has_complained;  /* the log says why a knock was not answered */
    uint32_t looks_every, looks_in; /* polls between two looks for knocks; until the next one */
    uint64_t looked_ns;   /* time of the last one */
    uint32_t knocks, knocks_max; /* sockets of own knocks; their maximum, 0: not determined yet */
    uint64_t denied_ns;   /* when a knock last found no socket free, and none was given up for it since; 0: none */
    uint16_t port;        /* libfabric's, over sockets; network order */
    uint32_t passed;      /* number of providers tried before that could not be opened */
    bool has_remote;          /* the job has ranks on other hosts */
    const char *providers;    /* of weft_iface_params */
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_av *av;
    struct fid_cq *cq;
    int cq_fd, epoll, timer;   /* cq_fd -1: the provider has none, the CQ is polled every millisecond */
    bool is_timed;             /* the timer is set */
    bool is_edged;             /* cq_fd may stay readable: watched for edges */
    bool keeps;                /* frames are kept until they are acknowledged, and sent again after a break */
    int sockets;               /* the epoll set of the provider's sockets; -1: unknown */
    bool is_armed, is_full;    /* is_full: the provider refused a call, and no completion will show when to retry */
    uint32_t idle_polls, barren_polls, skips, arm_refusals, polls;
    uint64_t progress_ns, checked_ns; /* last handling of handshakes; last check for silent peers */
    uint64_t watched_ns, sockets_ns;  /* last check for frames without acknowledgement; of the sockets */
    bool has_multi_recv, sorts, needs_desc;
    uint32_t inject_max, message_max;
    uint8_t *arena;            /* memory of all buffers, registered if the provider requires it */
    uint64_t arena_bytes;
    struct fid_mr *arena_mr;
    void *arena_desc;
    ofi_recv recvs[OFI_SINGLES];
    uint32_t recv_count, recv_posted, recv_min, recv_max; /* number existing and posted; target recv_max, within min and count */
    ofi_slot slots[OFI_SLOTS + OFI_SMALL_SLOTS];
    weft_list_link free_big, free_small;
    weft_list_link orphans;            /* slots in flight whose ep was freed */
    weft_list_link held;               /* bodies that are copied if the acknowledgement does not come soon */
    bool wants_sleep;                  /* they are copied at the next poll, so that the owner can sleep */
    uint64_t kept_bytes;               /* of all eps */
    weft_list_link coalescing;         /* of all eps */
    ofi_flusher flusher;
    struct fi_cq_data_entry entries[OFI_BATCH]; /* completions read; some may wait for the next poll's budget */
    uint32_t entry, entry_count;
    size_t entry_at;           /* byte of entries[entry] from which to continue */
    bool coalesces, is_polling;  /* gathers: short frames are coalesced; is_polling: within poll, which flushes at its end */
    uint32_t frag_bytes, ep_bytes; /* largest fragment; bytes in flight with one peer */
    ofi_frag frags[OFI_FRAGS];
    weft_list_link free_frags;
    void *bounce;              /* for a message that arrived unaligned */
    weft_list_link eps, handshaking, rma_active;
    ofi_ep **by_index;
    uint32_t index_capacity;
    uint32_t ops_open;
    uint64_t counts[12];
};
enum ofi_print_counters {
    OFI_COUNT_SENT,
    OFI_COUNT_INJECTED,
    OFI_COUNT_ARRIVED,
    OFI_COUNT_AGAIN,
    OFI_COUNT_FRAGS,
    OFI_COUNT_HANDSHAKES,
    OFI_COUNT_POLLS,
    OFI_COUNT_BREAKS,
    OFI_COUNT_COALESCED_MESSAGES,
    OFI_COUNT_COALESCED_FRAMES,
    OFI_COUNT_RESENT,
    OFI_COUNT_COPIED_LATE
};

/* -- library_load.c -- */
/* Loads libfabric, unless it is. Before any of its functions is called. Any thread. WEFT_E_UNSUPPORTED with a text. */
int ofi_library_load(void);

/* Sets libfabric's variables: in MPI_Init, as other threads may read the environment later. */
void ofi_provider_prepare(void);
/* -- provider_select.c -- */
/* True where all ranks may take plain TCP: no knob or variable names a provider, and the host has no device of another network. */
bool ofi_may_defer(void);
const char *ofi_unavailable(void);
void ofi_describe(void (*line)(void *arg, const char *text), void *arg);
/* Selects the provider (iface->info); over sockets bound to all addresses of the host. iface->passed skips earlier ones. WEFT_E_UNSUPPORTED
 * with a text. */
int ofi_provider_select(ofi_iface *iface);
bool ofi_is_plain_tcp(const struct fi_info *info); /* libfabric's own FI_EP_RDM over TCP, without rxm */
bool ofi_is_local(const struct fi_info *info);  /* reaches this host only */
bool ofi_is_socket(const struct fi_info *info); /* over the kernel's IP sockets: one endpoint has all addresses of the host */

/* -- endpoint.c -- */
/* Opens the provider's endpoint, and makes the address, or completes a deferred one. On error the caller closes what is open. */
int ofi_endpoint_open(ofi_iface *iface);
void ofi_endpoint_close(ofi_iface *iface);
/* Before the first use of the endpoint: opens it, if that was deferred. Takes 0.3 s; waits for no other process. An error has a text that
 * names the knob; a later call tries again. */
int ofi_contact(ofi_iface *iface);
/* Sets the capabilities; those of a deferred iface are final. */
void ofi_caps_set(ofi_iface *iface);
/* Adds a descriptor to the set on which the owner sleeps; how: EPOLLET or 0. */
int ofi_sleep_on(ofi_iface *iface, int fd, uint32_t how);

/* -- knock.c -- */
/* Makes the knock socket and the iface's address. On error nothing is open. */
int ofi_knock_listen(ofi_iface *iface);
void ofi_knock_close(ofi_iface *iface);
/* Call from each poll. Now and then, and in each poll of an owner that polls rarely or sleeps, answers pending knocks, and opens libfabric
 * for the first. Returns their number. */
int ofi_knock_answer(ofi_iface *iface);
/* A step of the handshake with a peer whose port is not known: asks at its addresses. Returns 1 when the port is known or the peer has
 * failed, else 0. */
int ofi_knock_turn(ofi_iface *iface, ofi_ep *ep, uint64_t now);
/* The peer's port is known, in network order: all candidates get it. */
void ofi_knock_learn(const ofi_iface *iface, ofi_ep *ep, uint16_t port);

/* -- addr_list.c -- */
/* Makes iface->addr from the endpoint and the addresses of this host; a deferred one is completed. */
int ofi_addr_make(ofi_iface *iface);
/* Makes iface->addr of a deferred iface, with the port of its knock socket (network order). */
int ofi_addr_defer(ofi_iface *iface, int family, uint16_t port);
/* Makes ep->candidates from ep->addr, sorted by score. WEFT_E_UNSUPPORTED: no address can be reached. */
int ofi_candidates_make(const ofi_iface *iface, ofi_ep *ep);
/* Writes "host:port" and returns text. */
const char *ofi_address_text(const ofi_address *address, uint32_t bytes, char *text, size_t capacity);
/* Local address as the candidate sees it; returns its bytes, 0: unknown. */
uint32_t ofi_hint(const ofi_iface *iface, const ofi_candidate *candidate, uint8_t *hint, size_t capacity);
/* True if a peer's hint is an address of this iface's family: others must not reach the kernel or libfabric. */
bool ofi_hint_is_address(const ofi_iface *iface, const uint8_t *hint, uint32_t bytes);
/* True if the host has an address of the family that other hosts may reach. */
bool ofi_host_has(int family);
/* The family of which this process publishes addresses. */
int ofi_host_family(void);
void ofi_host_describe(void (*line)(void *arg, const char *text), void *arg);

/* -- tcp_probe.c -- */
bool ofi_can_probe(const ofi_iface *iface); /* the provider's addresses are the kernel's TCP */
/* Begins a non-blocking connection: state PROBED, or FAILED at once. */
void ofi_tcp_probe_begin(ofi_candidate *candidate, uint64_t now);
/* State becomes LISTENS, or FAILED with a text, when the kernel has answered or OFI_PROBE_NS have passed. */
void ofi_tcp_probe_poll(ofi_candidate *candidate, uint64_t now);
/* Closes the socket, if any. The state stays. */
void ofi_tcp_probe_end(ofi_candidate *candidate);

/* -- ep.c -- */
int ofi_ep_open(weft_iface *iface, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **ep);

/* -- handshake.c -- */
int ofi_ep_close(weft_iface *iface, weft_ep *ep);
/* State IDLE becomes CALLING; no effect in other states. */
void ofi_handshake_begin(ofi_iface *iface, ofi_ep *ep);
/* The ep to a process; NULL: none. The second opens one by callbacks.accept_peer. */
ofi_ep *ofi_ep_of(const ofi_iface *iface, const weft_proc_id *proc_id);
ofi_ep *ofi_ep_find_or_accept(ofi_iface *iface, const weft_proc_id *proc_id);
/* Handles a received handshake. May call callbacks.accept_peer. */
void ofi_handshake_recv(ofi_iface *iface, const ofi_handshake *msg);
/* Handles pending handshakes and checks silent peers. Returns the number of events. */
int ofi_handshake_turn(ofi_iface *iface);
/* An operation failed: state BROKEN, begins a handshake to learn whether the peer lives and which frames were lost. */
void ofi_break(ofi_iface *iface, ofi_ep *ep, const char *why);
/* The provider refused a send or a fragment. Plain TCP does this only without a connection, and the call has begun to make one: state
 * BROKEN, so that the two ends do not connect at the same time. Other providers: tried again soon. */
void ofi_refused(ofi_iface *iface, ofi_ep *ep, ssize_t rc);

/* Fails all ops and calls callbacks.peer_failed with `why`; no effect if already lost or closed by the peer. */
void ofi_peer_failed(ofi_iface *iface, ofi_ep *ep, const char *why);
/* Frees the ep without callbacks. Slots and fragments in flight are freed at their completions. */
void ofi_ep_free(ofi_iface *iface, ofi_ep *ep);

/* -- flow.c -- */
int ofi_flow_open(ofi_iface *iface);
int ofi_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
/* Sends a put's notification as a numbered message. 0, or AGAIN. */
int ofi_notify(ofi_iface *iface, ofi_ep *ep, uint32_t value);
/* Sends an unnumbered message from the caller's memory (copied). 0, or AGAIN. */
int ofi_handshake_send(ofi_iface *iface, fi_addr_t to, const void *message, size_t bytes);
/* Sends an acknowledgement or a ping. Returns libfabric's code. */
ssize_t ofi_wire_send(ofi_iface *iface, const ofi_ep *ep, const ofi_wire *wire);
/* Fills in the header of a message to the peer, with the acknowledgement. */
void ofi_sign(const ofi_iface *iface, ofi_ep *ep, ofi_wire *wire, enum ofi_kind kind);
/* Handles a receive completion from byte *at on; *at becomes entry->len when all is handled. Returns the number of events. */
int ofi_recv_message(ofi_iface *iface, const struct fi_cq_data_entry *entry, size_t *at, int budget);
/* The provider has released the slot: frees it and calls callbacks.done for a body sent without copy. */
void ofi_slot_done(ofi_iface *iface, ofi_slot *slot);
int ofi_post_recvs(ofi_iface *iface); /* posts receives up to recv_max: 0, AGAIN, or an error */
void ofi_recv_done(ofi_iface *iface, ofi_recv *recv); /* the provider has released the buffer */
/* Sends an acknowledgement if at least `min` frames are unacknowledged. */
void ofi_acknowledge(ofi_iface *iface, ofi_ep *ep, uint32_t min);
/* Frees the frames that were received ahead of order. */
void ofi_flow_drop(ofi_ep *ep);

/* A big slot charged to the ep; NULL: none is free, or the ep has its maximum. */
ofi_slot *ofi_flow_slot(ofi_iface *iface, ofi_ep *ep);
/* A slot for a message; NULL: none is free. */
ofi_slot *ofi_slot_alloc(ofi_iface *iface, size_t bytes);
/* Frees a slot that is in no list. */
void ofi_slot_free(ofi_iface *iface, ofi_slot *slot);
/* Sends the message of `bytes` in a slot: injected if it is short, else with the slot as context. Returns libfabric's code. */
ssize_t ofi_slot_post(ofi_iface *iface, ofi_slot *slot, ofi_ep *ep, size_t bytes);
/* Writes the next frame of the ep in wire format. */
void ofi_flow_fill(ofi_iface *iface, ofi_ep *ep, ofi_framed *place, const weft_frame *frame);

/* -- watch.c -- */
/* Checks open peers, if it is time. */
void ofi_watch(ofi_iface *iface, uint64_t now);
/* Time until a frame without acknowledgement has to be looked at, ns; 0: there is none. */
uint64_t ofi_watch_within(const ofi_iface *iface);

/* -- keep.c -- */
/* Flags for the wire of the next frame of `bytes`. */
uint8_t ofi_keep_flags(ofi_iface *iface, ofi_ep *ep, size_t bytes);
/* Adds `bytes` up to frame `last` to a slot, which becomes the last of ep->kept. */
void ofi_keep(ofi_iface *iface, ofi_ep *ep, ofi_slot *slot, uint32_t last, size_t bytes);
/* The provider has released a slot of ep->kept. May call callbacks.done. */
void ofi_keep_done(ofi_iface *iface, ofi_ep *ep, ofi_slot *slot);
/* Frees what the peer has acknowledged. May call callbacks.done. */
void ofi_keep_acked(ofi_iface *iface, ofi_ep *ep);
/* Copies bodies sent without copy whose acknowledgement does not come soon, so that their owners may go on. Calls callbacks.done. Returns
 * their number. */
int ofi_keep_copy(ofi_iface *iface);
/* Begins to send the kept messages again, from the oldest on. */
void ofi_keep_rewind(ofi_iface *iface, ofi_ep *ep);
/* Continues. False: the provider does not take more now. */
bool ofi_keep_resend(ofi_iface *iface, ofi_ep *ep);
/* Nothing is sent again: frees what the provider does not have. May call callbacks.done. */
void ofi_keep_drop(ofi_iface *iface, ofi_ep *ep);
/* The ep is freed: slots in flight become orphans. */
void ofi_keep_orphan(ofi_iface *iface, ofi_ep *ep);
/* After the endpoint was closed: frees slots that it never completed. */
void ofi_keep_close(ofi_iface *iface);

/* -- tcp_sockets.c -- */
/* Sets keepalive on a connection: its kernel notices a host that is gone within WEFT_PEER_TIMEOUT_S. */
void ofi_tcp_keep_alive(int fd);
/* Sets keepalive on the provider's TCP connections, and ends those on which the peer's kernel has not answered for a while. */
void ofi_tcp_sockets_check(ofi_iface *iface);

/* -- coalesce.c -- */
void ofi_coalesce_open(ofi_iface *iface);
void ofi_coalesce_close(ofi_iface *iface); /* before the endpoint is closed, after all eps */
enum ofi_is_coalescing { OFI_ALONE, OFI_COALESCED, OFI_BLOCKED };
/* A frame of `bytes` with headers may be sent now. ALONE: the caller sends it. GATHERED: it was taken. BLOCKED: held frames precede it and
 * cannot be sent now. */
enum ofi_is_coalescing ofi_coalesce_has(ofi_iface *iface, ofi_ep *ep, const weft_frame *frame, size_t bytes);
/* Sends the held frames of an ep. False: not possible now; each poll tries again. */
bool ofi_coalesce_flush_ep(ofi_iface *iface, ofi_ep *ep);
/* ... of all eps. */
void ofi_coalesce_flush(ofi_iface *iface);
/* Frames of the ep counted in `sent` that are still held. */
uint32_t ofi_coalesce_frames(ofi_iface *iface, ofi_ep *ep);
/* Drops the held frames of an ep that is lost or freed. */
void ofi_coalesce_drop(ofi_iface *iface, ofi_ep *ep);

/* -- rma.c -- */
bool ofi_can_rma(weft_iface *iface, weft_ep *ep);
int ofi_get(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
int ofi_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
int ofi_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic);
int ofi_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done);
/* A fragment has completed; error NULL: successfully. May call callbacks.done. */
void ofi_frag_done(ofi_iface *iface, ofi_frag *frag, const struct fi_cq_err_entry *error);
/* Posts fragments as limits allow, and finishes completed ops (callbacks.done). Returns their number. */
int ofi_rma_progress(ofi_iface *iface, ofi_ep *ep);
/* Fails all ops of the ep. text NULL: the ep is freed, no callbacks; fragments in flight keep their entries until they complete. */
void ofi_rma_fail(ofi_iface *iface, ofi_ep *ep, int rc, const char *text);
/* WEFT_AMO_NIC if the provider has all atomics, else WEFT_AMO_NONE. */
enum weft_amo_domain ofi_amo_domain(ofi_iface *iface);

/* -- memory.c -- */
int ofi_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
int ofi_mr_dereg(weft_iface *iface, weft_mr *mr);
/* Registers memory. 0, WEFT_E_NOMEM or WEFT_E_UNSUPPORTED. */
int ofi_register(ofi_iface *iface, void *addr, uint64_t bytes, uint64_t access, struct fid_mr **mr);
/* Checks bounds and rights of a key: WEFT_E_KEY with a text, or 0 with the provider's address and key. */
int ofi_key_check(const weft_rkey *rkey, uint64_t remote, uint64_t bytes, uint32_t right, uint64_t *addr, uint64_t *mr_key);
uint8_t ofi_key_bytes(void);

/* -- iface.c -- */
/* The provider refused a call: limits the sleep, so that it is retried soon. */
void ofi_wake_soon(ofi_iface *iface);
/* libfabric's text for a return code or a completion error. */
const char *ofi_error_text(ssize_t rc);
extern const weft_iface_ops weft_ofi_ops;

#endif
