/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keys: own memory of a window, registered with the network for the other members' devices, and the members' remote keys, which they
 * exchange once when the window opens. A key opens exactly the window's bytes and ends with the window. Of a dynamic window they exchange
 * the names of their networks, and the address and key of the root of their region tables (region_table.h). Its regions have keys of their
 * own, which may end at any time; so puts without bytes that notify (device_op.c), which need a valid key, go to the root's first word.
 */
#ifndef WEFT_RMA_KEYS_H
#define WEFT_RMA_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/worker_type.h"
#include "rma/key.h"

struct weft_window;

/* Local: registers own memory if other members need a key, or of a dynamic window the root of its region table. A refusal is no error: they
 * send messages. Drops worker->lock while it registers much memory. */
void weft_window_key_make(struct weft_window *window, void *root, uint64_t root_bytes, weft_window_key *key);
/* Local: registers memory of the window with its network, for puts and gets of the members. 0 or an error. Drops worker->lock while it
 * registers much memory. */
int weft_window_mr_reg(struct weft_window *window, weft_iface *iface, void *addr, uint64_t bytes, weft_mr *mr);
/* Local: ends a registration of weft_window_mr_reg, with worker->lock dropped as there. */
void weft_window_mr_dereg(struct weft_window *window, weft_mr *mr);
/* Local: no member uses the key any more. */
void weft_window_key_end(struct weft_window *window);
/* The network by which members that do not share memory with this process reach it; NULL: none with keys. */
weft_iface *weft_window_network(const weft_worker *worker);
/* Does the iface's device, which is atomic with itself only, perform atomics on own memory? Then peers' may be allowed there (words.h). */
bool weft_window_has_loopback(weft_iface *iface);
/* Is this a key for the iface? */
bool weft_window_key_fits(const weft_window_key *key, const weft_iface *iface);
/* Reason in words. */
const char *weft_window_keyless_text(const weft_window_key *key);

#endif
