/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_state: the table of legal frames. See rndv_state.h. A pair that is not listed is illegal.
 */
#include "p2p/rndv_state.h"

#define S(state) WEFT_RNDV_##state
#define ON(frame) [WEFT_RNDV_ON_##frame]

/* MOVING accepts further CTS: one for each segment of a put, and for each fragment that a get could not read. Its FIN ends such a get.
 * GET and PUT keep their state after an error: other fragments of the sender are reported too. */
const uint8_t weft_rndv_next[WEFT_RNDV_STATES][WEFT_RNDV_FRAMES] = {
    [S(SEND_ANNOUNCED)] = {ON(CTS_COPY) = S(SEND_MOVING), ON(CTS_SPLIT) = S(SEND_SPLIT), ON(CTS_PUT) = S(SEND_MOVING),
                           ON(CTS_CSUM) = S(SEND_ANNOUNCED), ON(FIN) = S(SEND_ENDING), ON(FIN_ERROR) = S(SEND_ENDING)},
    [S(SEND_CANCELLING)] = {ON(CTS_COPY) = S(SEND_MOVING), ON(CTS_SPLIT) = S(SEND_SPLIT), ON(CTS_PUT) = S(SEND_MOVING),
                            ON(CTS_CSUM) = S(SEND_CANCELLING), ON(FIN) = S(SEND_ENDING), ON(FIN_ERROR) = S(SEND_ENDING),
                            ON(FIN_CANCELLED) = S(SEND_ENDING)},
    [S(SEND_MOVING)] = {ON(CTS_COPY) = S(SEND_MOVING), ON(CTS_PUT) = S(SEND_MOVING), ON(FIN) = S(SEND_ENDING),
                        ON(FIN_ERROR) = S(SEND_ENDING)},
    [S(SEND_SPLIT)] = {ON(FIN) = S(SEND_ENDING), ON(FIN_ERROR) = S(SEND_ENDING)},
    [S(RECV_COPY)] = {ON(DATA) = S(RECV_COPY), ON(CSUM) = S(RECV_COPY), ON(FIN_ERROR) = S(RECV_ENDING)},
    [S(RECV_GET)] = {ON(DATA) = S(RECV_GET), ON(CSUM) = S(RECV_GET), ON(FIN_ERROR) = S(RECV_GET)},
    [S(RECV_SPLIT)] = {ON(DATA) = S(RECV_SPLIT), ON(CSUM) = S(RECV_SPLIT), ON(FIN) = S(RECV_ENDING), ON(FIN_ERROR) = S(RECV_ENDING)},
    [S(RECV_PUT)] = {ON(DATA) = S(RECV_PUT), ON(CSUM) = S(RECV_PUT), ON(FIN_SEGMENT) = S(RECV_PUT), ON(FIN_ERROR) = S(RECV_PUT)},
    [S(RECV_CSUM)] = {ON(CSUM) = S(RECV_CSUM)},
    [S(RECV_PROMISED)] = {ON(USE) = S(RECV_PUT)},
};

const char *const weft_rndv_state_names[WEFT_RNDV_STATES] = {
    [S(ILLEGAL)] = "none", [S(SEND_ANNOUNCED)] = "announced", [S(SEND_CANCELLING)] = "cancelling", [S(SEND_MOVING)] = "moving",
    [S(SEND_SPLIT)] = "split", [S(SEND_ENDING)] = "ending", [S(RECV_COPY)] = "copy", [S(RECV_GET)] = "get", [S(RECV_SPLIT)] = "split",
    [S(RECV_PUT)] = "put", [S(RECV_CSUM)] = "checksum", [S(RECV_ENDING)] = "ending",
    [S(RECV_PROMISED)] = "promised"};

const char *const weft_rndv_frame_names[WEFT_RNDV_FRAMES] = {
    ON(CTS_COPY) = "CTS (copy)", ON(CTS_SPLIT) = "CTS (split)", ON(CTS_PUT) = "CTS (put)", ON(CTS_CSUM) = "CTS (checksum)",
    ON(DATA) = "DATA", ON(CSUM) = "CSUM", ON(FIN) = "FIN", ON(FIN_SEGMENT) = "FIN (segment)", ON(FIN_ERROR) = "FIN (error)",
    ON(FIN_CANCELLED) = "FIN (cancelled)", ON(USE) = "USE", ON(OTHER) = "an unknown frame"};
