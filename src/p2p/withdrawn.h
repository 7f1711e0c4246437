/* SPDX-License-Identifier: BSD-3-Clause
 *
 * withdrawn: what is left of a promise whose receive was cancelled while its send may already be writing: a buffer that takes the place of
 * the user's. If the send has used the promise, the message enters matching when USE arrives, as if it had come by itself then (p2p/held),
 * and is copied to its receive once all of it is here. Else REVOKED frees the buffer. docs/wire.md, "Promises".
 * Called by promise and the rendezvous. Requires worker->lock.
 */
#ifndef WEFT_P2P_WITHDRAWN_H
#define WEFT_P2P_WITHDRAWN_H

#include <stdbool.h>

#include "base/list.h"
#include "core/peer.h"

struct weft_rndv;

/* Moves the state of a valid promise from its receive to a buffer of its own, with what the user's buffer holds: peers must not be able to
 * write there any more. all: list of the worker's. False: no memory; nothing has changed. */
bool weft_withdrawn_new(weft_list_link *all, struct weft_rndv *rndv);
/* USE: the message takes its place in MPI's order. */
void weft_withdrawn_on_use(struct weft_rndv *rndv);
/* The send has not used the promise and will not: frees the buffer. */
void weft_withdrawn_on_revoked(struct weft_rndv *rndv);
/* The peer sends nothing any more: frees those that it has not used. */
void weft_withdrawn_give_up(weft_list_link *all, const weft_peer *peer);
/* The world has closed: requests and states of rendezvous are gone already. */
void weft_withdrawn_free_all(weft_list_link *all);

#endif
