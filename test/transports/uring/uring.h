/* SPDX-License-Identifier: BSD-3-Clause
 *
 * uring: a software HCA for tests, private to its folder. Registrations are io_uring's fixed buffers, long-term pins of the kernel, and
 * bytes enter and leave registered memory only through these pages: use of a registration after its memory was unmapped accesses the old
 * pages, as with hardware. So errors of a registration cache show without hardware, between processes of one machine. Not faster than shm.
 *   fixed_bufs  registrations, keys, copies to and from pinned pages: fixed_bufs.c
 *   hca         the HCA's thread: work of the owner, of peers, of the kernel: hca.c
 *   rma         a socket and a staging file between two HCAs: gets and puts chunk by chunk: rma.c
 *   frame_sock  frames, a socket for each direction of a pair; open, close, failure: frame_sock.c
 *   iface       the op table; open, close, poll, arm: iface.c
 * Two threads: the owner's worker (iface, frame_sock) and the HCA (hca, rma). They share only what iface->lock guards: ops go in by
 * `posted`, come back by `ended`, and registrations are looked up under it.
 */
#ifndef WEFT_TRANSPORTS_URING_URING_H
#define WEFT_TRANSPORTS_URING_URING_H

#include <liburing.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "transport/iface.h"
#include "transport/rkey_table.h"

#define URING_FRAME_MAX (32u << 10)
#define URING_REGIONS 8192u       /* slots of the table of registrations; the kernel's limit is 16,384 */
#define URING_REGION_MAX (1ull << 30) /* the kernel's limit for one registration */
#define URING_CHUNK (256u << 10)  /* bytes per copy through the staging file */
#define URING_SLOTS 4u            /* chunks of one rma connection in flight */
#define URING_ID_BYTES 16

typedef struct uring_iface uring_iface;
typedef struct uring_ep uring_ep;
typedef struct uring_rma uring_rma;

/* Source of an epoll event; first member of its owner. */
enum uring_source_kind { URING_LISTEN, URING_WAKEUP, URING_IN, URING_OUT, URING_WAKE, URING_RING, URING_RMA };
typedef struct uring_source {
    enum uring_source_kind kind;
    int fd; /* -1: none */
} uring_source;

/* Address of an iface. Processes of another boot or network namespace are not reachable. */
typedef struct uring_iface_addr {
    uint64_t magic, boot, netns;
    uint8_t id[URING_ID_BYTES];
} uring_iface_addr;
_Static_assert(sizeof(uring_iface_addr) <= WEFT_ADDR_MAX, "an address");

/* -- fixed_bufs.c -- */
typedef struct uring_fixed_bufs {
    struct io_uring ring;
    weft_rkey_table keys;                   /* guarded by iface->lock, as is ... */
    uint16_t users[URING_REGIONS];       /* ... this: chunks of each registration that the kernel copies */
    pthread_cond_t unused;               /* one of them fell to 0 */
    uint32_t in_kernel;                  /* sum of users */
} uring_fixed_bufs;

/* Reason why the kernel offers no fixed buffers; NULL: it does. Tested once. */
const char *uring_fixed_bufs_unavailable(void);
int uring_fixed_bufs_open(uring_fixed_bufs *bufs, uint64_t salt);
void uring_fixed_bufs_close(uring_fixed_bufs *bufs);
int uring_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
int uring_mr_dereg(weft_iface *iface, weft_mr *mr);
/* Starts a copy by the kernel between registered memory and a file; `tag` returns with the completion. WEFT_E_KEY with a text. whole,
 * whole_bytes: the op of which this is a part; the key must allow all of it. */
typedef struct uring_span {
    const weft_rkey *rkey;
    uint64_t whole, whole_bytes, at;
    uint32_t bytes, rights;
    bool into_file;
    int file;
    uint64_t file_at;
    void *tag;
} uring_span;
int uring_fixed_bufs_copy(uring_iface *iface, const uring_span *span, uint32_t *index);
void uring_fixed_bufs_copied(uring_iface *iface, uint32_t index);

/* -- rma.c: HCA's thread only -- */
enum uring_op_kind { URING_GET, URING_PUT, URING_FLUSH, URING_CLOSE };
typedef struct uring_op {
    weft_list_link link;      /* in posted, then in its rma's ops, then in ended */
    enum uring_op_kind kind;
    uring_ep *ep;
    uint64_t local, remote, bytes;
    weft_rkey local_key, key;
    void *done;
    int rc;
    uint64_t issued;     /* bytes that have a slot or are done */
    uint32_t in_slots;
    bool is_issued;      /* all of it (an empty op also needs a slot once) */
    char text[160];      /* error text */
} uring_op;

typedef struct uring_slot {
    uring_rma *rma;
    uring_op *op;        /* requester's; NULL: free */
    bool is_busy, in_kernel;
    bool writes;         /* remote memory: a put */
    bool into_file;      /* direction of the kernel's copy */
    uint32_t index;      /* of the registration while in_kernel */
    uint64_t at, whole, whole_bytes;
    uint32_t bytes, moved;
    weft_rkey rkey;
} uring_slot;

struct uring_rma {
    uring_source source;
    weft_list_link link;      /* in hca.rmas: those that this HCA serves */
    uring_iface *iface;
    int file;            /* staging: URING_SLOTS chunks; -1 none */
    bool serves;         /* the peer requests, this HCA responds */
    bool is_dead;        /* the peer has closed the socket */
    uint32_t in_kernel;  /* slots */
    weft_list_link ops;       /* requester's, in order of posting */
    uring_slot slots[URING_SLOTS];
};

void uring_rma_init(uring_rma *rma, uring_iface *iface, bool serves);
/* Posts an op of the owner. */
void uring_rma_post(uring_ep *ep, uring_op *op);
/* The socket is readable or closed. Frees a served connection when nothing of it is left. */
void uring_rma_ready(uring_rma *rma);
/* The kernel has copied a chunk; res: of the io_uring completion. */
void uring_rma_moved(uring_slot *slot, int res);
void uring_rma_close(uring_rma *rma);

/* -- hca.c -- */
typedef struct uring_hca {
    pthread_t thread;
    int epoll;
    uring_source listen, wake, ring;
    weft_list_link rmas;     /* that this HCA serves */
    bool stops;          /* guarded by iface->lock */
} uring_hca;

int uring_hca_open(uring_iface *iface);
void uring_hca_close(uring_iface *iface);
void uring_hca_post(uring_iface *iface, uring_op *op);
void uring_hca_end(uring_iface *iface, uring_op *op); /* HCA's thread: the op has ended, wakes the owner */

/* -- frame_sock.c: the owner's worker only -- */
typedef struct uring_in {  /* a receiving socket */
    uring_source source;
    weft_list_link link;        /* in iface->ins */
    uring_ep *ep;      /* NULL before HELLO */
    bool has_left;
} uring_in;

struct uring_ep {
    weft_ep ep;
    weft_list_link link;        /* in iface->eps */
    weft_proc_id proc_id;
    uring_iface_addr remote;
    uring_source out;      /* sending socket, connected at the first frame */
    bool wants_writable;       /* a send returned AGAIN: the wakeup is raised when the socket is writable */
    bool has_left;         /* the peer has sent LEAVE */
    bool is_broken, is_failed;
    uint32_t ops_open;     /* posted ops that have not ended */
    bool is_closing;       /* the rma connection is closing or closed: no op is open */
    uring_rma rma;       /* owned by the HCA's thread */
};

int uring_ep_open(weft_iface *iface, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **ep);
int uring_ep_close(weft_iface *iface, weft_ep *ep);
int uring_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
/* Handles an event of a socket. Returns the number of events reported. */
int uring_frame_sock_event(uring_iface *iface, uring_source *source, uint32_t events);
/* The peer has failed. */
void uring_frame_sock_break(uring_iface *iface, uring_ep *ep);
/* Reports failed peers whose last frames have arrived. Returns their number. */
int uring_frame_sock_deaths(uring_iface *iface);
void uring_frame_sock_close(uring_iface *iface);

/* -- iface.c -- */
struct uring_iface {
    weft_iface iface;
    weft_proc_id self;
    uring_iface_addr addr;
    int epoll;
    uring_source listen, wakeup;
    weft_list_link eps, ins;
    uint32_t broken;       /* eps with a failure that was not reported yet */
    bool tries_again;      /* a connection could not be queued: retry soon */
    void *frame_out, *frame_in; /* bounce memory, one frame each */
    pthread_mutex_t lock;  /* guards the rest, and bufs.keys, bufs.users */
    weft_list_link posted, ended;
    uring_fixed_bufs bufs;
    uring_hca hca;
};

/* Opens a listening socket of that id; `suffix` distinguishes frames from rma. -1 with a text. */
int uring_socket_listen(const uring_iface_addr *addr, char suffix);
/* Opens a connected socket; -1 with errno. */
int uring_socket_connect(const uring_iface_addr *addr, char suffix);
/* Accepts a connection of the same user; -1: none. */
int uring_socket_accept(int listen);
int uring_watch(int epoll, uring_source *source, uint32_t events);
void uring_unwatch(int epoll, uring_source *source); /* also closes it */

extern const weft_iface_ops weft_uring_ops;

#endif
