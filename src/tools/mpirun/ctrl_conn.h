/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctrl_conn: authenticated connection between head and daemon, or daemon and daemon. Frame: u32 body bytes, u32 kind, u32 node (receiver or
 * sender), body, 16 bytes of HMAC-SHA256 over direction, frame number and all of these. Numbers are little-endian. The key is per
 * connection: a process that forwards a frame signs it anew. Without the secret frames cannot be forged, changed, replayed or dropped
 * unnoticed. Bodies are encrypted, by a key of the connection too, but those of IN and OUT (docs/launch.md). One thread; nothing blocks.
 */
#ifndef WEFT_MPIRUN_CTRL_CONN_H
#define WEFT_MPIRUN_CTRL_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "tools/mpirun/buffer.h"
#include "tools/mpirun/ctrl_pack.h"

#define CTRL_VERSION 5u
#define CTRL_SECRET_BYTES WEFT_SHA256_BYTES
#define CTRL_BODY_MAX ((size_t)64 << 20)
#define CTRL_SILENCE_MS 10000 /* a host that acknowledges nothing for so long is lost; probed after 3 s of silence */

enum ctrl_kind {
    /* head to daemon */
    CTRL_START = 1,      /* job_desc.h: prepare */
    CTRL_GO,             /* start the ranks */
    CTRL_SIGNAL,         /* u32 */
    CTRL_END, CTRL_KILL,
    CTRL_DRAIN,        /* u32: was ended, u32: has failed */
    CTRL_WAIT_REPORT,  /* print the wait report */
    CTRL_IN,           /* standard input; empty: its end */
    CTRL_CREDIT,       /* u32: bytes of output that the head has passed on */
    CTRL_CLOSED,       /* u32 1 or 2: the head's stdout or stderr was closed */
    CTRL_DEATH,        /* u32 rank: it has died, and the job goes on */
    CTRL_GIVE_UP = 30, /* u32 node, a child of this daemon: give it up */
    /* daemon to head */
    CTRL_READY = 32, /* prepared */
    CTRL_FAILED,     /* u32 exit code: could not be prepared or started; a MESSAGE came before */
    CTRL_STARTED,    /* u32: number of ranks started */
    CTRL_MESSAGE,    /* text for the user */
    CTRL_OUT,        /* u32 1 or 2, bytes: whole lines of output */
    CTRL_IN_ACK,     /* u32: bytes of standard input consumed; UINT32_MAX: no more are wanted */
    CTRL_ENDED,      /* u32 rank, i32 raw status, u32 state, u64 pid, u32 is refused, u32 was in PMIx */
    CTRL_NOEXEC,     /* u32 rank, u32 what, u32 error */
    CTRL_ABORTED,    /* u32 rank, u32 code, text, u32 by PMI */
    CTRL_DONE,       /* this daemon and those below have finished; the last frame */
    CTRL_SIGNALED,   /* u32: the daemon received this terminating signal */
    CTRL_LOST = 60,  /* text. From its parent: the daemon ended without DONE; those below it are lost too */
    CTRL_NO_CONNECT, /* text. From its parent: the daemon never connected */
    /* both ways */
    CTRL_MODEX_REQ = 64, /* u32 rank: request its address */
    CTRL_MODEX_DATA,     /* u32 rank, u32 state, bytes */
    CTRL_FENCE,          /* u64 number: to the head: all ranks here have entered; to daemons: all ranks of the job have */
    CTRL_FRAGMENT,          /* fragment of a pmix_msg: pmix_channel.h */
    CTRL_FRAGMENT_ACK,         /* u32: bytes of fragments received */
};

typedef struct ctrl_conn {
    struct ctrl_conn *via;    /* connection that carries what is sent; NULL: this is a connection itself */
    uint32_t node;       /* node in frames sent: the receiver; in a daemon: the daemon's own */
    int fd;              /* -1: none */
    bool is_head;
    bool has_send_failed;        /* sending has failed; received frames are still read */
    unsigned char key[WEFT_SHA256_BYTES];
    weft_hmac cipher; /* begun with the key of encryption */
    uint64_t sent, received;
    buffer out, in;
    const char *error; /* reason of the failure, for texts; NULL: none */
} ctrl_conn;

/* The connection that carries the frames. */
static inline ctrl_conn *ctrl_conn_carrier(ctrl_conn *self)
{
    return self->via ? self->via : self;
}

typedef struct ctrl_frame {
    uint32_t kind, node;
    const char *body; /* points into the connection's buffer; valid until the next call */
    size_t bytes;
} ctrl_frame;

/* Handshake, in order: the daemon sends hello; the head sends answer with its proof; the daemon sends its proof.
 * The hello is the same in all releases: its mac shows that it was made with the job's secret, so that only a daemon of this job can say
 * that it runs another release. Its first receiver may send it to others, so it proves no connection: that is what the proof is for. */
typedef struct ctrl_hello {
    char magic[8];
    uint32_t version, node;
    char release[32];
    unsigned char nonce[32], mac[32];
} ctrl_hello;

typedef struct ctrl_answer {
    char magic[8];
    uint32_t version, is_other; /* is_other: not 0: another release; proof is unset */
    char release[32];
    unsigned char nonce[32], proof[32];
} ctrl_answer;

/* Fills secret with random bytes. 0 or -1 with errno. */
int ctrl_secret_make(unsigned char *secret);
void ctrl_hello_make(const unsigned char *secret, uint32_t node, ctrl_hello *hello);
/* True if it is a hello of this job, of any release; is_same_release: of this release. */
bool ctrl_hello_is_valid(const unsigned char *secret, const ctrl_hello *hello);
bool ctrl_hello_is_same_release(const ctrl_hello *hello);
/* Head: creates the answer to a valid hello. */
void ctrl_answer_make(const unsigned char *secret, const ctrl_hello *hello, ctrl_answer *answer);
/* Daemon: true if the answer proves that the head knows the secret. */
bool ctrl_answer_is_valid(const unsigned char *secret, const ctrl_hello *hello, const ctrl_answer *answer);
/* Computes the daemon's proof; the head compares it (weft_bytes_equal). */
void ctrl_proof_make(const unsigned char *secret, const ctrl_hello *hello, const ctrl_answer *answer, unsigned char proof[32]);

/* Opens the connection on an authenticated socket, which becomes non-blocking, with keepalive and TCP_USER_TIMEOUT. */
void ctrl_conn_open(ctrl_conn *self, int fd, bool is_head, const unsigned char *secret, const ctrl_hello *hello, const ctrl_answer *answer);
void ctrl_conn_close(ctrl_conn *self);
/* Queues a frame and writes what the socket takes. No effect after an error. */
void ctrl_conn_send(ctrl_conn *self, uint32_t kind, const void *body, size_t bytes);
/* Forwards a frame of another connection; keeps its node. */
void ctrl_conn_forward(ctrl_conn *self, const ctrl_frame *frame);
void ctrl_conn_flush(ctrl_conn *self);
/* Reads once from the socket; does not block. */
void ctrl_conn_read(ctrl_conn *self);
/* Returns the next complete frame; false: none. Frames received before the peer closed are returned although `error` is set. */
bool ctrl_conn_next(ctrl_conn *self, ctrl_frame *frame);

/* Sends the bytes as the body of a frame and frees the buffer; a failure of packing ends the connection. */
void pack_send(pack *self, ctrl_conn *to, uint32_t kind);

#endif
