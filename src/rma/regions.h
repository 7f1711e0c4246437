/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regions: memory attached to a dynamic window (MPI 5.0 12.2.4), searched for each operation that arrives. If other members reach this one
 * by a network with keys each region is registered there, exactly its bytes. Members find regions in a table (region_table.h), or are told
 * when they ask (known.h); they are told when the region is detached. Requires worker->lock.
 */
#ifndef WEFT_RMA_REGIONS_H
#define WEFT_RMA_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "rma/window.h"
#include "type/type.h"

struct weft_rma_head;

int weft_rma_regions_open(weft_window *window);
/* Address of the root of the table in which others find its regions (region_table.h); NULL: the window is not dynamic. */
void *weft_rma_regions_root(const weft_window *window);
/* Local, when no member operates on the window any more: ends all registrations. */
void weft_rma_regions_unregister(weft_window *window);
/* After weft_rma_regions_unregister. */
void weft_rma_regions_close(weft_window *window);
/* 0; WEFT_E_NOMEM; WEFT_E_RMA_ATTACH: it overlaps attached memory. A refused registration is no error: the region is reached by messages.
 * Drops worker->lock while it registers much memory. */
int weft_rma_attach(weft_window *window, void *base, uint64_t bytes);
/* 0 or WEFT_E_BASE: nothing is attached at base. No device reaches the region any more when it returns: keys have ended, and it is not in
 * the table. Does not wait for the members that know it. Drops worker->lock while it unregisters much memory. */
int weft_rma_detach(weft_window *window, const void *base);
/* Is all of [base, base + bytes) attached? */
bool weft_rma_is_attached(const weft_window *window, uint64_t base, uint64_t bytes);
/* Answers a head that asks for the region of its first byte. type: its datatype; NULL: unknown, the head is damaged. */
void weft_rma_regions_answer(weft_window *window, uint32_t to, const struct weft_rma_head *head, const weft_type *type);
/* Handles a note FOUND: member `from` has read a region in the table. It gets a note REVOKED when the region is detached, or now if the
 * region has been detached. */
void weft_rma_regions_on_found(weft_window *window, uint32_t from, const void *body, uint32_t bytes);

#endif
