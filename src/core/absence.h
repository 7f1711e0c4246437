/* SPDX-License-Identifier: BSD-3-Clause
 *
 * absence: whether a process that does not answer is in MPI, at rest after MPI_Finalize, or has ended: by its page, if it runs on this
 * node, else by the launcher. Called by core/bye, p2p and, as callbacks.absence, by ifaces; requires worker->lock.
 */
#ifndef WEFT_CORE_ABSENCE_H
#define WEFT_CORE_ABSENCE_H

#include <stdint.h>

#include "core/peer_type.h"

/* By the page of a rank of this node: an enum weft_rank_state; WEFT_RANK_NONE also if it has no page here. */
uint32_t weft_absence_page(const weft_worker *worker, uint32_t rank);
/* The launcher answers later: MAYBE until then. An answer is at most three seconds old, and younger than weft_absence_forget. */
enum weft_absence weft_absence_of(weft_peer *peer);
/* What was answered before counts no more. */
void weft_absence_forget(weft_peer *peer);

#endif
