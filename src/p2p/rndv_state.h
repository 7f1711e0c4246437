/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_state: states of a rendezvous and the frames that are legal in each (docs/wire.md, "States of a rendezvous"). p2p/rndv looks up
 * each frame of a rendezvous here before a half handles it; test/unit/test_rndv tries every pair. Types and one constant table, no state.
 */
#ifndef WEFT_P2P_RNDV_STATE_H
#define WEFT_P2P_RNDV_STATE_H

#include <stdint.h>

/* State of a rendezvous (weft_rndv.state), from weft_rndv_alloc to weft_rndv_free. */
enum weft_rndv_state {
    WEFT_RNDV_ILLEGAL, /* no state: the table's answer to a frame that is not legal */
    /* sender */
    WEFT_RNDV_SEND_ANNOUNCED,  /* RTS sent; unmatched, or the receiver reads */
    WEFT_RNDV_SEND_CANCELLING, /* the same, and CANCEL sent */
    WEFT_RNDV_SEND_MOVING,     /* CTS for copy or put came: DATA frames or puts */
    WEFT_RNDV_SEND_SPLIT,      /* CTS for split came: own put, and the receiver's FIN to come */
    WEFT_RNDV_SEND_ENDING,     /* FIN came: the receiver sends no more; own fragments may be in flight */
    /* receiver: the protocol, in the order of enum weft_rndv_proto */
    WEFT_RNDV_RECV_COPY,
    WEFT_RNDV_RECV_GET,
    WEFT_RNDV_RECV_SPLIT,
    WEFT_RNDV_RECV_PUT,
    WEFT_RNDV_RECV_CSUM,   /* empty receive buffer: only the checksum is to come */
    WEFT_RNDV_RECV_ENDING, /* FIN came: the sender sends no more; own fragments may be in flight */
    WEFT_RNDV_RECV_PROMISED, /* not matched: a posted receive has promised its buffer (p2p/promise) */
    WEFT_RNDV_STATES
};

/* Frames, as far as states tell them apart. */
enum weft_rndv_frame {
    WEFT_RNDV_ON_CTS_COPY,
    WEFT_RNDV_ON_CTS_SPLIT,
    WEFT_RNDV_ON_CTS_PUT,
    WEFT_RNDV_ON_CTS_CSUM,
    WEFT_RNDV_ON_DATA,
    WEFT_RNDV_ON_CSUM,
    WEFT_RNDV_ON_FIN,           /* the peer's whole part has ended */
    WEFT_RNDV_ON_FIN_SEGMENT,   /* a segment is written */
    WEFT_RNDV_ON_FIN_ERROR,     /* either, with an error */
    WEFT_RNDV_ON_FIN_CANCELLED,
    WEFT_RNDV_ON_USE,           /* the sender uses the promise */
    WEFT_RNDV_ON_OTHER,         /* unknown protocol, bytes outside of the message, a checksum that was not requested */
    WEFT_RNDV_FRAMES
};

/* State after the frame, or WEFT_RNDV_ILLEGAL. */
extern const uint8_t weft_rndv_next[WEFT_RNDV_STATES][WEFT_RNDV_FRAMES];
extern const char *const weft_rndv_state_names[WEFT_RNDV_STATES], *const weft_rndv_frame_names[WEFT_RNDV_FRAMES];

#endif
