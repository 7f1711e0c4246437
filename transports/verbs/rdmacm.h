/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rdmacm: connecting by rdma_cm, for iWARP (no UD) or if WEFT_VERBS_CONNECT asks for it. Called by conn.c and life.c in place of UD
 * messages; the states of an ep are the same.
 */
#ifndef WEFT_TRANSPORTS_VERBS_RDMACM_H
#define WEFT_TRANSPORTS_VERBS_RDMACM_H

#include "transports/verbs/conn.h"

/* Opens listeners on every rail, if one needs them or the knob asks for them. If only the knob asks, a failure is logged and UD is used. */
int verbs_rdmacm_open(verbs_iface *iface);
void verbs_rdmacm_close(verbs_iface *iface);
/* True if rdma_cm connects this ep: all its pairs of rails have listeners on both sides. */
bool verbs_rdmacm_is_for(const verbs_ep *ep);
/* Starts the connection of every QP of a CONNECTING ep; goes up when all are connected or late. */
void verbs_rdmacm_try(verbs_ep *ep);
/* The ep goes up: closes QPs that are not connected; the first of the others becomes home. False: there is none. */
bool verbs_rdmacm_settle(verbs_ep *ep);
/* disconnect: before the QP is destroyed; forget: after. */
void verbs_rdmacm_disconnect(verbs_rc_qp *link);
void verbs_rdmacm_forget(verbs_rc_qp *link);
/* Handles the events of the channel; their number. */
int verbs_rdmacm_turn(verbs_iface *iface);

/* -- cm_deferred.c -- */
struct rdma_cm_id;
/* True if a message of the kernel's CM can leave by this rail. */
bool verbs_cm_deferred_may_speak(const verbs_rail *rail);
/* Destroys the id now, or when its port is active again. */
void verbs_cm_deferred_end(const verbs_rail *rail, struct rdma_cm_id *id);
/* Destroys the deferred ids of `rail`, by which a connection was made (an active port may still lack routes); NULL: all, at close. */
void verbs_cm_deferred_over(verbs_iface *iface, const verbs_rail *rail);

#endif
