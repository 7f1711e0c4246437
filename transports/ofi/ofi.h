/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi: Weft's transport over libfabric, private to its folder. One reliable datagram endpoint (FI_EP_RDM) for each port, with one
 * address vector and one completion queue; frames are messages, get and put are libfabric's reads and writes.
 *
 *   find     which provider: what fi_getinfo offers, in its own order                                       provider_select.c
 *   host     the addresses of this host, the address that tells them, the order in which a peer's are tried    addr_list.c
 *   call     acquaintance: who answers is who was meant, at which address; lost, and why; parting           handshake.c
 *   probe    what the kernel says of an address: an ordinary TCP connection, begun and dropped              tcp_probe.c
 *   flow     frames: slots, numbers, windows; arriving                                                       flow.c
 *   move     gets, puts, atomics: pieces, their ends and their errors                                       rma.c
 *   memory   registrations and keys                                                                          memory.c
 *   port     the table; open, close, poll, arm                                                               iface.c
 *
 * What libfabric leaves to us: tcp answers "try again" for ever where nobody listens, never tells of a peer that died while we only
 * listen, and connects anew by itself after a break, so that messages may be lost between two that arrive. Hence calls with nonces,
 * probes, and numbers in front of every frame.
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

#define OFI_MESSAGE 33024u        /* largest message of ours; rxm is told to send so much without asking first (provider_select.c) */
#define OFI_LONG_MESSAGE 66048u   /* ... over plain TCP: three messages to move 64 KiB by a get take longer than to copy them twice */
#define OFI_CHUNK 65536u          /* a stream of frames: whole pages each */
#define OFI_SMALL 1024u           /* a small slot */
#define OFI_HELD_MIN 8192u        /* bodies from here on go from where they lie, but for blocking sends */
#define OFI_BUNDLE_FRAME 32832u    /* over sockets: frames of a burst that go in one message are no longer, with headers */
#define OFI_SLOTS 64u
#define OFI_SMALL_SLOTS 256u
#define OFI_RECVS 4u              /* receive buffers, of which each takes many messages ... */
#define OFI_RECV_BYTES (256u << 10)
#define OFI_SINGLES 64u           /* ... or one each, where the provider has no FI_MULTI_RECV, and over plain TCP: libfabric 1.17 calls */
#define OFI_TCP_RECVS 4u          /* a buffer free there while another peer's message still comes in. So many of them are posted, that they */
                                  /* stay in the cache: the kernel keeps what finds none. More only when nothing comes (ofi_poll) */
#define OFI_PIECE (1u << 20)      /* a get or put is cut into such pieces; over sockets into halves of it, ... */
#define OFI_PIECES_PATH 16u       /* ... of which at most so many ... */
#define OFI_PATH_BYTES (4u << 20) /* ... and so many bytes are under way with one peer, frames wait behind them on a TCP connection; ... */
#define OFI_TCP_BYTES (1u << 20)  /* ... so many over sockets: what lies in their buffers for long is in no cache when it is read */
#define OFI_PIECES 64u            /* under way on a port */
#define OFI_WINDOW 4096u          /* frames that the peer has not acknowledged */
#define OFI_BATCH 16u             /* completions read at one time */
#define OFI_SPOTS 32u             /* addresses of one peer that are tried */
#define OFI_CALL_NS 250000000u    /* without an answer for so long the kernel is asked */
#define OFI_PROBE_NS 3000000000u  /* no answer of the kernel's: a firewall, or nobody */
#define OFI_TURN_NS 20000u        /* between two looks at calls under way */

typedef struct ofi_iface ofi_iface;
typedef struct ofi_ep ofi_ep;

typedef union ofi_address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    uint8_t opaque[176];
} ofi_address;

/* -- what stands on the wire -- */

enum ofi_kind { OFI_FRAME = 1, OFI_NOTIFY, OFI_ACK, OFI_PING, OFI_CALL };
/* In front of every frame, notice and call. Lengths are multiples of 8, so that bodies keep their alignment in a buffer of many messages.
 * Several frames may follow each other in one message (coalesce.c). */
typedef struct ofi_wire {
    uint32_t to;    /* the path's index at the receiver, as its call told */
    uint32_t seq;   /* FRAME and NOTIFY count from 1; else 0 */
    uint32_t ack;   /* the last number had from the receiver */
    uint16_t check; /* low half of the receiver's nonce: what was meant for an earlier owner of this address is dropped */
    uint8_t kind, flags;
} ofi_wire;

typedef struct ofi_framed {
    ofi_wire wire;
    weft_hdr hdr;
    uint8_t body[];
} ofi_framed;

typedef struct ofi_notice {
    ofi_wire wire;
    uint32_t value, zero;
} ofi_notice;

/* flags of a call */
#define OFI_CALL_WRONG 1 /* you have reached somebody else */
#define OFI_CALL_LEAVE 2 /* I leave: tell me that you have heard it */
/* Who speaks, to whom, and how to answer. `attempt` asks for an answer, which has the same number in `echo`. */
typedef struct ofi_handshake {
    ofi_wire wire;
    weft_proc_id proc_id;
    uint64_t nonce, to_nonce;
    uint32_t attempt, echo;
    uint32_t path;           /* the index of my path to you */
    uint32_t sent, received; /* frames, so far */
    uint32_t hint_bytes;
    uint8_t hint[sizeof(struct sockaddr_in6) + 4]; /* my address as you should see it; 0 bytes: the first of my address */
} ofi_handshake;
_Static_assert(sizeof(ofi_wire) == 16 && sizeof(ofi_handshake) % 8 == 0 && sizeof(ofi_framed) == 40, "the wire");

/* -- addresses -- */

enum ofi_form { OFI_FORM_IN = 1, OFI_FORM_IN6, OFI_FORM_OPAQUE };
typedef struct ofi_iface_addr {
    uint16_t version;
    uint8_t form, count;   /* of addresses; OPAQUE: bytes of the one */
    uint32_t protocol;     /* libfabric's number of what is spoken on the wire */
    uint64_t nonce;
    uint32_t host;         /* tells hosts (network namespaces) apart: loopback is tried on one's own only */
    uint16_t port;         /* IN, IN6; network order */
    uint8_t key_form, zero;
    char provider[24];
    uint8_t addresses[200]; /* IN: 4 bytes and a rank; IN6: 16 and a rank; a low rank is better */
} ofi_iface_addr;
_Static_assert(sizeof(ofi_iface_addr) <= WEFT_ADDR_MAX, "an address");

enum ofi_candidate_state { OFI_CANDIDATE_NEW, OFI_CANDIDATE_PROBED, OFI_CANDIDATE_LISTENS, OFI_CANDIDATE_FAILED };
typedef struct ofi_candidate { /* one address of a peer */
    ofi_address address;
    uint32_t bytes;
    fi_addr_t to;
    bool is_inserted, has_hint;
    uint32_t hint_bytes;   /* our address as this one sees it; asked for once */
    uint8_t hint[sizeof(struct sockaddr_in6) + 4];
    enum ofi_candidate_state state;
    uint32_t score;        /* low: tried first */
    uint32_t attempt;      /* number of the last call there; 0 none */
    int probe;             /* a socket that connects, or -1 */
    uint64_t probed_ns;
    char why[112];         /* FAILED */
} ofi_candidate;

/* -- things that libfabric tells the end of -- */

enum ofi_work_kind { OFI_WORK_RECV, OFI_WORK_SLOT, OFI_WORK_PIECE };
typedef struct ofi_work {
    struct fi_context2 context; /* libfabric's while it is under way; first */
    enum ofi_work_kind kind;
    ofi_ep *ep;
} ofi_work;

typedef struct ofi_slot {
    ofi_work work;
    weft_list_link link;  /* in its free list */
    bool is_small;
    uint32_t about;  /* a call: the index of its path */
    void *held;      /* who is told when the body is free that was sent from where it lies; NULL: nobody, it was copied here */
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
    weft_list_link link;      /* in its path's ops, in order of posting */
    enum ofi_op_kind kind;
    ofi_ep *ep;
    weft_rma rma;
    weft_rkey rkey;        /* move.key points here */
    void *desc;          /* of local memory */
    uint64_t issued;
    uint32_t pieces;     /* under way, or to be tried again */
    bool is_issued;      /* all */
    bool owes_notice;
    int rc;
    char text[256];      /* of rc */
    enum weft_amo_op amo;
    uint64_t operand, compare, *before;
} ofi_op;

typedef struct ofi_piece {
    ofi_work work;
    weft_list_link link;      /* free, or in its path's `again` */
    ofi_op *op;
    uint64_t at, bytes;  /* within the op */
    uint32_t tries;
    uint64_t *words;     /* operand, compare, result: registered memory */
} ofi_piece;

/* -- a peer -- */

enum ofi_state {
    OFI_IDLE,     /* nothing was asked for yet */
    OFI_CALLING,  /* who answers? */
    OFI_OPEN,
    OFI_BROKEN,   /* was open, an operation failed: calls again, and goes on if nothing was lost */
    OFI_LOST
};
typedef struct ofi_coalesce { /* frames to a peer that wait to go together; changed by the owner, under the flusher's lock */
    weft_list_link link;        /* in port->bundles while there is a slot */
    ofi_slot *slot;        /* NULL: nothing is gathered */
    fi_addr_t to;
    uint32_t bytes, frames, number;
    bool was_sent;         /* by the flusher: may be forgotten */
    uint32_t burst, burst_poll; /* frames to this peer since the last poll, and which one that was */
} ofi_coalesce;

struct ofi_ep {
    weft_ep ep;
    weft_list_link link;        /* in port->paths */
    weft_list_link calling;     /* in port->calling: calls, probes, or parts */
    bool is_calling;
    weft_proc_id proc_id;
    ofi_iface_addr addr;
    enum ofi_state state;
    uint32_t index;        /* ours */
    uint32_t theirs;       /* its index of us; known when is_heard */
    bool is_heard;
    ofi_candidate *candidates;       /* in the order of trying */
    uint32_t candidate_count, candidate;
    uint32_t attempt;      /* the last number given */
    uint32_t repeats;      /* of the call at this candidate */
    uint64_t called_ns;    /* since when we wait for an answer at this candidate; 0: the call has not gone yet */
    uint64_t began_ns;     /* since when we call at all */
    uint64_t tried_ns;     /* since when at this candidate; BROKEN: when the numbers did not fit last */
    uint32_t reply_due, echo_candidate; /* an answer that could not be sent yet, */
    uint64_t owed_ns;      /* ... asked for then */
    uint64_t heard_ns;     /* the last look of the clock since something came; 0: look */
    bool is_pinged;
    uint32_t sent, received, acked, told; /* frames: given to the provider, had in order, acknowledged by and to the peer */
    uint32_t slots_out;    /* in the provider's hands, or filled with a bundle */
    ofi_coalesce bundle;
    weft_list_link early;       /* frames that came before their turn */
    weft_list_link ops, again;  /* moves; pieces to be tried once more */
    weft_list_link moving;      /* in port->moving while there are ops */
    bool is_moving;
    uint32_t pieces_out;
    uint64_t bytes_out;    /* in them */
    bool wants_room;       /* a send was refused */
    bool is_leaving, has_left; /* we; the peer, or it has heard that we do, or is gone */
    uint32_t leave_attempt;
    char broken_by[160];   /* what made us call again */
};

/* Who sends the bundles of a program that does not poll (coalesce.c). `lock` is over all bundles. */
typedef struct ofi_flusher {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool is_there, cannot_be, is_asleep, is_closing;
    uint32_t number;   /* of bundles begun */
    uint32_t direct_max; /* so many frames of a burst go at once */
    uint32_t prompt_bursts;   /* bursts in a row that a poll followed soon */
    bool was_needed, has_gathered; /* since the last poll */
    uint64_t burst_ns; /* when the last frame of a burst went alone since then; 0: none did */
} ofi_flusher;

struct ofi_iface {
    weft_iface iface;
    weft_proc_id self;
    ofi_iface_addr addr;
    uint64_t (*now_ns)(void);
    struct fi_info *info;
    uint32_t passed;      /* providers before this one that could not be opened */
    bool is_far;          /* the job has ranks on other hosts */
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_ep *ep;
    struct fid_av *av;
    struct fid_cq *cq;
    int cq_fd, epoll, timer;   /* cq_fd -1: the provider has none, we look by ourselves every millisecond */
    bool is_timed;             /* the timer was set */
    bool is_edged;             /* cq_fd may stay readable: what counts is that it becomes so */
    bool is_armed, is_full;    /* is_full: the provider refused something, and nothing of ours will tell when to try again */
    uint32_t idle_polls, barren_polls, skips, arm_refusals, polls;
    uint64_t turned_ns, looked_ns; /* last looks at calls under way, at peers that are silent */
    bool has_multi_recv, sorts, needs_desc;
    uint32_t inject_max, message_max;
    uint8_t *arena;            /* one stretch for all buffers, registered at once where the provider wants that */
    uint64_t arena_bytes;
    struct fid_mr *arena_mr;
    void *arena_desc;
    ofi_recv recvs[OFI_SINGLES];
    uint32_t recv_count, recv_posted, recv_min, recv_max; /* there are, have been posted; so many shall be: between least and count */
    ofi_slot slots[OFI_SLOTS + OFI_SMALL_SLOTS];
    weft_list_link free_big, free_small;
    weft_list_link bundles;         /* of all paths */
    ofi_flusher flusher;
    struct fi_cq_data_entry entries[OFI_BATCH]; /* that were read, and of which some wait for the next poll's budget ... */
    uint32_t entry, entry_count;
    size_t entry_at;           /* ... the first of them from this byte on */
    bool gathers, is_polling;  /* a message costs much more than a copy; within a poll, which sends what was gathered in it */
    uint32_t piece_bytes, path_bytes; /* the longest; so much at a time with one peer */
    ofi_piece pieces[OFI_PIECES];
    weft_list_link free_pieces;
    void *bounce;              /* for a body that came at an odd place */
    weft_list_link paths, calling, moving;
    ofi_ep **by_index;
    uint32_t index_room;
    uint32_t ops_open;
    uint64_t key_next;         /* atomic: keys that we choose */
    uint64_t counts[10];
};
enum ofi_print_counters { OFI_COUNT_SENT, OFI_COUNT_INJECTED, OFI_COUNT_ARRIVED, OFI_COUNT_AGAIN, OFI_COUNT_PIECES, OFI_COUNT_CALLS, OFI_COUNT_POLLS,
                 OFI_COUNT_BREAKS, OFI_COUNT_BUNDLES, OFI_COUNT_GATHERED };

/* -- provider_select.c -- */
const char *ofi_unavailable(void);
void ofi_describe(void (*line)(void *arg, const char *text), void *arg);
/* The provider to be used, its addresses not bound to one of this host's where that can be. */
int ofi_provider_select(ofi_iface *iface);
bool ofi_is_plain_tcp(const struct fi_info *info); /* libfabric's own reliable datagrams over TCP */
bool ofi_is_local(const struct fi_info *info);  /* reaches this host only */
bool ofi_is_socket(const struct fi_info *info); /* over the kernel's IP sockets: one address stands for all */

/* -- addr_list.c -- */
int ofi_addr_make(ofi_iface *iface);
int ofi_candidates_make(const ofi_iface *iface, ofi_ep *ep);
const char *ofi_address_text(const ofi_address *address, uint32_t bytes, char *text, size_t room);
/* Our address as that candidate would see it; 0: unknown. */
uint32_t ofi_hint(const ofi_iface *iface, const ofi_candidate *candidate, uint8_t *hint, size_t room);
/* Has this host an address of the family that others may reach? */
bool ofi_host_has(int family);
void ofi_host_tell(void (*line)(void *arg, const char *text), void *arg);

/* -- tcp_probe.c -- */
void ofi_tcp_probe_begin(ofi_candidate *candidate, uint64_t now);
void ofi_tcp_probe_poll(ofi_candidate *candidate, uint64_t now);
void ofi_tcp_probe_end(ofi_candidate *candidate);

/* -- handshake.c -- */
int ofi_ep_open(weft_iface *iface, const weft_proc_id *who, const void *addr, size_t bytes, void *peer, weft_ep **ep);
int ofi_ep_close(weft_iface *iface, weft_ep *ep);
void ofi_handshake_begin(ofi_iface *iface, ofi_ep *ep);
void ofi_handshake_arrive(ofi_iface *iface, const ofi_handshake *call);
/* Calls under way, and peers that have been silent for long. How many things happened. */
int ofi_handshake_turn(ofi_iface *iface);
/* Something failed: is the peer there, and was anything lost? */
void ofi_break(ofi_iface *iface, ofi_ep *ep, const char *why);
void ofi_lose(ofi_iface *iface, ofi_ep *ep, const char *why);
void ofi_ep_free(ofi_iface *iface, ofi_ep *ep);

/* -- flow.c -- */
int ofi_flow_open(ofi_iface *iface);
int ofi_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
int ofi_notify(ofi_iface *iface, ofi_ep *ep, uint32_t value);
/* A message without a number, from the stack; 0, or AGAIN. */
int ofi_say(ofi_iface *iface, fi_addr_t to, const void *message, size_t bytes);
void ofi_sign(const ofi_iface *iface, ofi_ep *ep, ofi_wire *wire, enum ofi_kind kind);
/* One completion of a receive, from byte *at of its message on, which is entry->len when all of it was taken. How many things came up. */
int ofi_arrived(ofi_iface *iface, const struct fi_cq_data_entry *entry, size_t *at, int budget);
void ofi_slot_ended(ofi_iface *iface, ofi_slot *slot);
int ofi_post_recvs(ofi_iface *iface); /* as many as shall be: 0, AGAIN, or an error */
void ofi_recv_ended(ofi_iface *iface, ofi_recv *recv); /* the provider is done with it */
/* Tells the peer how much we had, if it may wait for that. */
void ofi_acknowledge(ofi_iface *iface, ofi_ep *ep, uint32_t min);
void ofi_flow_drop(ofi_ep *ep);

/* A big slot that goes to the path; NULL: none is free, or it has enough. */
ofi_slot *ofi_flow_slot(ofi_iface *iface, ofi_ep *ep);
/* The next frame to the path, as it goes. */
void ofi_flow_fill(ofi_iface *iface, ofi_ep *ep, ofi_framed *place, const weft_frame *frame);

/* -- coalesce.c -- */
void ofi_coalesce_open(ofi_iface *iface);
void ofi_coalesce_close(ofi_iface *iface); /* before the endpoint is; all paths are gone */
enum ofi_gathering { OFI_ALONE, OFI_GATHERED, OFI_BLOCKED };
/* A frame of so many bytes, with headers, that may be sent now. ALONE: let it go by itself; GATHERED: it was taken; BLOCKED: what is
 * gathered goes before it, and cannot go now. */
enum ofi_gathering ofi_coalesce_meet(ofi_iface *iface, ofi_ep *ep, const weft_frame *frame, size_t bytes);
/* Sends what is gathered for the path. false: it cannot go now, and is tried again at each poll. */
bool ofi_coalesce_flush_ep(ofi_iface *iface, ofi_ep *ep);
/* ... for all. */
void ofi_coalesce_flush(ofi_iface *iface);
/* So many of the frames that were sent to the path are still here. */
uint32_t ofi_coalesce_frames(ofi_iface *iface, ofi_ep *ep);
/* Forgets what is gathered for a path that is lost or freed. */
void ofi_coalesce_drop(ofi_iface *iface, ofi_ep *ep);

/* -- rma.c -- */
bool ofi_can_rma(weft_iface *iface, weft_ep *ep);
int ofi_get(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
int ofi_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma);
int ofi_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic);
int ofi_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done);
void ofi_piece_ended(ofi_iface *iface, ofi_piece *piece, const struct fi_cq_err_entry *error);
/* Issues what there is room for, and ends what is over. */
int ofi_rma_progress(ofi_iface *iface, ofi_ep *ep);
void ofi_rma_fail(ofi_iface *iface, ofi_ep *ep, int rc, const char *text);
enum weft_amo_domain ofi_amo_domain(ofi_iface *iface);

/* -- memory.c -- */
int ofi_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
int ofi_mr_dereg(weft_iface *iface, weft_mr *mr);
/* Registers memory for ourselves. */
int ofi_register(ofi_iface *iface, void *addr, uint64_t bytes, uint64_t access, struct fid_mr **mr);
/* May so much be done there by this key? WEFT_E_KEY with a text. Else where it stands for the provider. */
int ofi_key_check(const weft_rkey *rkey, uint64_t remote, uint64_t bytes, uint32_t right, uint64_t *addr, uint64_t *mr_key);
uint8_t ofi_key_bytes(void);

/* -- iface.c -- */
/* The provider refused something: whoever sleeps is woken soon to try again. */
void ofi_ring_soon(ofi_iface *iface);
/* The provider's words for a failed call, or for a completion in error. */
const char *ofi_words(ssize_t rc);
extern const weft_iface_ops weft_ofi_ops;

#endif
