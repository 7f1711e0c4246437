/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rdmacm: connecting by rdma_cm: where there are no datagrams (iWARP), or where the knob asks for it. Called by conn.c and life.c
 * in place of notes; the states of a path are the same.
 */
#ifndef WEFT_TRANSPORTS_VERBS_RDMACM_H
#define WEFT_TRANSPORTS_VERBS_RDMACM_H

#include "transports/verbs/conn.h"

/* Listeners on every rail, if one of them needs it or the knob says so. A port that can do without goes on without, with a
 * word. */
int verbs_rdmacm_open(verbs_iface *iface);
void verbs_rdmacm_close(verbs_iface *iface);
/* A path between these two is connected so. */
bool verbs_rdmacm_is_for(const verbs_ep *ep);
/* Goes on with every link of a path that is CONNECTING. */
void verbs_rdmacm_try(verbs_ep *ep);
/* The path goes up: links that are not connected by now are closed, the first of the others carries frames. False: there is
 * none. */
bool verbs_rdmacm_settle(verbs_ep *ep);
/* The link's queue pair is about to be destroyed; and has been. */
void verbs_rdmacm_disconnect(verbs_rc_qp *link);
void verbs_rdmacm_forget(verbs_rc_qp *link);
/* What came by the event channel. How many. */
int verbs_rdmacm_turn(verbs_iface *iface);

/* -- cm_deferred.c -- */
struct rdma_cm_id;
/* What is said by this rail can leave. */
bool verbs_cm_deferred_may_speak(const verbs_rail *rail);
/* Destroys the id, now or when that can be said. */
void verbs_cm_deferred_end(const verbs_rail *rail, struct rdma_cm_id *id);
/* Something was connected by the rail (one that is up may still have no routes), or (NULL) the port closes: destroys what was kept. */
void verbs_cm_deferred_over(verbs_iface *iface, const verbs_rail *rail);

#endif
