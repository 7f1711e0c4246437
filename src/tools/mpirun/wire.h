/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire: one connection between head and daemon: frames, and the proof on both sides that the other knows the job's secret.
 * A frame is: u32 bytes of the body, u32 kind, u32 node (whom it is for, or who speaks), the body, 16 bytes of HMAC-SHA256 over
 * direction, number and all of that, by a key that holds for this connection only: who passes a frame on signs it anew. So frames are
 * neither made, changed, repeated nor left out by whoever does not know the secret; they are not hidden from who can listen
 * (docs/launch.md). Numbers are little-endian.
 */
#ifndef WEFT_MPIRUN_WIRE_H
#define WEFT_MPIRUN_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "tools/mpirun/buffer.h"

#define CTRL_VERSION 2u
#define CTRL_SECRET_BYTES WEFT_SHA256_BYTES
#define CTRL_BODY_MAX ((size_t)64 << 20)
#define CTRL_SILENCE_MS 10000 /* a host that acknowledges nothing for so long is lost; asked after 3 s of silence */

enum wire_kind {
    /* head to daemon */
    CTRL_START = 1, /* job_desc.h: prepare */
    CTRL_GO,        /* start the ranks */
    CTRL_SIGNAL,    /* u32 */
    CTRL_END, CTRL_KILL,
    CTRL_DRAIN,     /* u32: was ended, u32: has failed */
    CTRL_WAITS,     /* say who waits for whom */
    CTRL_IN,        /* standard input; empty: its end */
    CTRL_CREDIT,    /* u32: so many bytes of output were passed on */
    CTRL_CLOSED,    /* u32 1 or 2: nobody reads that output any more */
    CTRL_PART = 30, /* u32 node, which that daemon has started: give it up */
    /* daemon to head */
    CTRL_READY = 32, /* prepared */
    CTRL_REFUSED_ALL, /* u32 exit code: could not be prepared or started; a SAY came before */
    CTRL_STARTED,   /* u32: so many ranks live */
    CTRL_MESSAGE,       /* text for the user */
    CTRL_OUT,       /* u32 1 or 2, bytes: whole lines of output */
    CTRL_TAKEN,     /* u32: so many bytes of standard input were taken; UINT32_MAX: no more are wanted */
    CTRL_ENDED,     /* u32 rank, i32 raw status, u32 state, u64 pid, u32 is refused, u32 spoke PMIx */
    CTRL_NOEXEC,    /* u32 rank, u32 what, u32 error */
    CTRL_ABORTED,   /* u32 rank, u32 code, text, u32: by PMI */
    CTRL_DONE,      /* nothing is left there and below; the last frame */
    CTRL_SIGNALED,      /* u32: somebody sent the daemon this signal, which ends programs */
    CTRL_LOST = 60, /* text. Of who has started it: it is gone without its last word, and with it what is below */
    CTRL_NO_CONNECT,     /* text. Of who has started it: it never came */
    /* both ways */
    CTRL_MODEX_REQ = 64, /* u32 rank: whose card */
    CTRL_MODEX_DATA,      /* u32 rank, u32 state, bytes */
    CTRL_FENCE,     /* u64 number: up: our ranks have come; down: all have */
    CTRL_PIECE,     /* a piece of a note between PMIx servers: haul.h */
    CTRL_PIECES,    /* u32: so many bytes of pieces have come */
};

typedef struct wire {
    struct wire *via; /* what is sent goes by that one; NULL: this is one itself */
    uint32_t node;    /* whom we send to; at a daemon's end: who sends, itself */
    int fd; /* -1: none */
    bool is_head;
    bool is_deaf; /* nothing can be sent any more */
    unsigned char key[WEFT_SHA256_BYTES];
    uint64_t sent, got;
    buffer out, in;
    const char *trouble; /* why it broke; NULL: it has not */
} wire;

/* The connection by which it goes. */
static inline wire *wire_under(wire *self)
{
    return self->via ? self->via : self;
}

typedef struct wire_frame {
    uint32_t kind, node;
    const char *body; /* inside of the wire's buffer: until the next call */
    size_t bytes;
} wire_frame;

/* The opening, in order. A daemon says HELLO; the head proves itself and asks; the daemon proves itself. */
typedef struct wire_hello {
    char magic[8];
    uint32_t version, node;
    char release[32];
    unsigned char nonce[32];
} wire_hello;

typedef struct wire_answer {
    char magic[8];
    uint32_t version, is_other; /* not 0: another release; there is no proof */
    char release[32];
    unsigned char nonce[32], proof[32];
} wire_answer;

/* 0 or -1 with errno. */
int secret_make(unsigned char *secret);
void wire_hello_make(uint32_t node, wire_hello *hello);
/* Whether it is one, of any version. */
bool wire_hello_is_sound(const wire_hello *hello);
bool wire_hello_is_ours(const wire_hello *hello);
/* Head: the answer to a sound hello. */
void wire_answer_make(const unsigned char *secret, const wire_hello *hello, wire_answer *answer);
/* Daemon: whether the head knows the secret. */
bool wire_answer_is_true(const unsigned char *secret, const wire_hello *hello, const wire_answer *answer);
/* The daemon's proof, which the head compares (weft_bytes_equal). */
void wire_proof_make(const unsigned char *secret, const wire_hello *hello, const wire_answer *answer, unsigned char proof[32]);

/* A proven connection, from now on non-blocking, with the kernel's own watch over a silent peer. */
void wire_open(wire *self, int fd, bool is_head, const unsigned char *secret, const wire_hello *hello, const wire_answer *answer);
void wire_close(wire *self);
/* Queues a frame and writes what goes. After trouble nothing happens. */
void wire_send(wire *self, uint32_t kind, const void *body, size_t bytes);
/* Passes on a frame that has come by another wire: it keeps its node. */
void wire_pass(wire *self, const wire_frame *frame);
void wire_flush(wire *self);
/* Reads what is there. */
void wire_read(wire *self);
/* The next whole frame; false: none, or trouble. Trouble by the peer's end shows after its last frame. */
bool wire_next(wire *self, wire_frame *frame);

/* Bodies. A failed pack or unpack stays so. */
typedef struct pack {
    buffer bytes;
    bool has_failed;
} pack;
void pack_u32(pack *self, uint32_t value);
void pack_u64(pack *self, uint64_t value);
void pack_bytes(pack *self, const void *bytes, size_t count); /* as they are */
void pack_text(pack *self, const char *text);                 /* NULL stays NULL */
void pack_send(pack *self, wire *to, uint32_t kind);          /* and frees */

typedef struct unpack {
    const char *at;
    size_t left;
    bool has_failed;
} unpack;
uint32_t unpack_u32(unpack *self);
uint64_t unpack_u64(unpack *self);
/* Stays inside of the frame; NULL also after a failure. */
const char *unpack_text(unpack *self);

#endif
