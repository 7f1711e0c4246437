/* SPDX-License-Identifier: BSD-3-Clause
 *
 * uring: a software HCA for trials, private to its folder. Its registrations are the kernel's own long-term pins (io_uring's
 * fixed buffers), and bytes enter and leave registered memory through those pages only, never through an address: whoever uses a
 * registration after its memory was unmapped gets the old pages, as with hardware. So it shows what a registration cache does
 * wrong, without hardware or emulation, between processes of one machine. Not for production: nothing here is faster than shm.
 *
 *   pins     registrations: a slot of the ring's table each; keys; reading and writing pinned pages           fixed_bufs.c
 *   hca      the thread that is the HCA: requests of the owner, of peers, of the kernel                       hca.c
 *   wire     one socket and one staging file between two HCAs: gets and puts chunk by chunk                   rma.c
 *   line     frames: one socket for each direction of a pair; greeting, parting, death                        frame_sock.c
 *   port     the table; open, close, poll, arm                                                                iface.c
 *
 * Two threads: the owner's worker (line, port) and the HCA (hca, wire). They meet under port->lock only: orders go in by `posted`,
 * come back by `ended`, and registrations are looked up under it.
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
#define URING_CHUNK (256u << 10)  /* bytes that cross the staging file at one time */
#define URING_SLOTS 4u            /* chunks of one wire under way */
#define URING_ID_BYTES 16

typedef struct uring_iface uring_iface;
typedef struct uring_ep uring_ep;
typedef struct uring_rma uring_rma;

/* What an epoll event is about: always the first member of its owner. */
enum uring_source_kind { URING_LISTEN, URING_WAKEUP, URING_IN, URING_OUT, URING_WAKE, URING_RING, URING_RMA };
typedef struct uring_source {
    enum uring_source_kind kind;
    int fd; /* -1: none */
} uring_source;

/* Where a port is found. Processes of another boot or network namespace are not reached. */
typedef struct uring_iface_addr {
    uint64_t magic, boot, netns;
    uint8_t id[URING_ID_BYTES];
} uring_iface_addr;
_Static_assert(sizeof(uring_iface_addr) <= WEFT_ADDR_MAX, "an address");

/* -- fixed_bufs.c -- */
typedef struct uring_fixed_bufs {
    struct io_uring ring;
    weft_rkey_table keys;                   /* guarded by the port's lock, as is ... */
    uint16_t users[URING_REGIONS];       /* ... this: chunks that the kernel moves from or to a registration */
    pthread_cond_t unused;               /* one of them fell to 0 */
    uint32_t in_kernel;                  /* over all */
} uring_fixed_bufs;

/* Why this kernel offers no fixed buffers to us, or NULL. Tried once. */
const char *uring_fixed_bufs_unavailable(void);
int uring_fixed_bufs_open(uring_fixed_bufs *bufs, uint64_t salt);
void uring_fixed_bufs_close(uring_fixed_bufs *bufs);
int uring_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr);
int uring_mr_dereg(weft_iface *iface, weft_mr *mr);
/* Has the kernel move bytes between registered memory and a file; `tag` comes back with the completion. WEFT_E_KEY with a text.
 * `whole` and `whole_bytes`: the operation that this is a part of, which the key must allow altogether. */
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
    weft_list_link link;      /* in posted, then in its wire's ops, then in ended */
    enum uring_op_kind kind;
    uring_ep *ep;
    uint64_t local, remote, bytes;
    weft_rkey local_key, key;
    void *done;
    int rc;
    uint64_t issued;     /* bytes that have a slot or are over */
    uint32_t in_slots;
    bool is_issued;      /* all of it (an empty one, too, needs a slot once) */
    char text[160];      /* of what was wrong */
} uring_op;

typedef struct uring_slot {
    uring_rma *rma;
    uring_op *op;        /* requester's; NULL: free */
    bool is_busy, in_kernel;
    bool writes;         /* remote memory: a put */
    bool into_file;      /* what the kernel does at the moment */
    uint32_t index;      /* of the registration while in_kernel */
    uint64_t at, whole, whole_bytes;
    uint32_t bytes, moved;
    weft_rkey rkey;
} uring_slot;

struct uring_rma {
    uring_source source;
    weft_list_link link;      /* in hca.wires: those that we serve */
    uring_iface *iface;
    int file;            /* staging: URING_SLOTS chunks; -1 none */
    bool serves;         /* the peer asks, we answer */
    bool is_dead;        /* the peer hung up */
    uint32_t in_kernel;  /* slots */
    weft_list_link ops;       /* requester's, in order of posting */
    uring_slot slots[URING_SLOTS];
};

void uring_rma_init(uring_rma *rma, uring_iface *iface, bool serves);
/* An order of the owner. */
void uring_rma_post(uring_ep *ep, uring_op *op);
/* Something can be read, or the peer hung up. Frees a wire that we served when nothing of it is left. */
void uring_rma_ready(uring_rma *rma);
/* The kernel has moved a chunk: `res` as io_uring tells it. */
void uring_rma_moved(uring_slot *slot, int res);
void uring_rma_close(uring_rma *rma);

/* -- hca.c -- */
typedef struct uring_hca {
    pthread_t thread;
    int epoll;
    uring_source listen, wake, ring;
    weft_list_link rmas;     /* that we serve */
    bool stops;          /* guarded by the port's lock */
} uring_hca;

int uring_hca_open(uring_iface *iface);
void uring_hca_close(uring_iface *iface);
void uring_hca_post(uring_iface *iface, uring_op *op);
void uring_hca_end(uring_iface *iface, uring_op *op); /* HCA's thread: over, tell the owner */

/* -- frame_sock.c: the owner's worker only -- */
typedef struct uring_in {  /* a socket that brings frames */
    uring_source source;
    weft_list_link link;        /* in port->ins */
    uring_ep *ep;      /* NULL before HELLO */
    bool has_left;
} uring_in;

struct uring_ep {
    weft_ep ep;
    weft_list_link link;        /* in port->paths */
    weft_proc_id proc_id;
    uring_iface_addr remote;
    uring_source out;      /* our frames leave here; connected at the first */
    bool wants_writable;       /* a send was refused: the wakeup is raised when there is room */
    bool has_left;         /* the peer parted in peace */
    bool is_broken, is_failed;
    uint32_t ops_open;     /* orders that have not come back */
    bool is_closing;       /* the wire was ordered to close, or is closed: then nothing is open */
    uring_rma rma;       /* HCA's */
};

int uring_ep_open(weft_iface *iface, const weft_proc_id *who, const void *addr, size_t bytes, void *peer, weft_ep **ep);
int uring_ep_close(weft_iface *iface, weft_ep *ep);
int uring_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame);
/* One event of a socket: how many things were told or done. */
int uring_frame_sock_event(uring_iface *iface, uring_source *source, uint32_t events);
/* The peer is known to be dead. */
void uring_frame_sock_break(uring_iface *iface, uring_ep *ep);
/* Tells of deaths whose last frames have arrived. How many. */
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
    uint32_t broken;       /* paths whose death is not told yet */
    bool tries_again;      /* a connection could not be queued: look again soon */
    void *frame_out, *frame_in; /* bounce memory, one frame each */
    pthread_mutex_t lock;  /* guards the rest, and pins.keys, pins.users */
    weft_list_link posted, ended;
    uring_fixed_bufs bufs;
    uring_hca hca;
};

/* A listening socket of that id; `suffix` tells frames from moves. -1 with a text. */
int uring_socket_listen(const uring_iface_addr *addr, char suffix);
/* A connected one: -1 with errno. */
int uring_socket_connect(const uring_iface_addr *addr, char suffix);
/* Takes a connection of our own user: -1 when there is none. */
int uring_socket_accept(int listen);
int uring_watch(int epoll, uring_source *source, uint32_t events);
void uring_unwatch(int epoll, uring_source *source); /* and closes */

extern const weft_iface_ops weft_uring_ops;

#endif
