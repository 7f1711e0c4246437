/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn_parts: tests of conn.c that are defined in other files.
 */
#ifndef TEST_VERBS_CONN_PARTS_H
#define TEST_VERBS_CONN_PARTS_H

#include "test/verbs/crowd.h"

/* Rail pairing: both sides must compute the same pairs from any addresses. */
void conn_pairs_agree(crowd *c);
/* The side that reconnects may have nothing to send while the other has; on iWARP it must send first. */
void conn_one_sends(crowd *c);

/* -- conn_rails.c -- */
void conn_loses_a_rail(crowd *c);
void conn_idles_while_rails_flap(crowd *c);
void conn_leaves_out_silent_pair(crowd *c); /* a pair of rails that never answers is left out */
void conn_outlives_a_device(crowd *c);
void conn_leaves_out_unreachable_rail(crowd *c);   /* one that answers datagrams but not rdma_cm */
void conn_fails_unreachable_peer(crowd *c);        /* ... when it is the only one */

#endif
