/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keys: own memory of a window, registered with the network for the other members' devices, and the members' remote keys, which they
 * exchange once when the window opens. A key opens exactly the window's bytes and ends with the window.
 */
#ifndef WEFT_RMA_KEYS_H
#define WEFT_RMA_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/iface.h"

struct weft_window;

/* Why a member's memory has no key. */
enum weft_window_keyless {
    WEFT_KEYLESS_NO_NEED, /* all others map it, or there are none, or no bytes */
    WEFT_KEYLESS_NO_NETWORK, /* no transport of the member registers memory for get and put */
    WEFT_KEYLESS_REFUSED, /* the device or a limit refused the registration */
    WEFT_KEYLESS_KNOB,    /* WEFT_RMA_DEVICE, WEFT_REG_MODE or WEFT_CHECKSUM excludes it */
    WEFT_KEYLESS_DYNAMIC  /* attached memory is not known to the others */
};

/* What a member tells the others. */
typedef struct weft_window_key {
    char network[8];  /* name of the transport, cut off; "": no key */
    uint8_t keyless;  /* enum weft_window_keyless, if there is no key */
    weft_rkey rkey;
} weft_window_key;

/* Local: registers own memory if other members need a key. A refusal is no error: they send messages. Drops worker->lock while it
 * registers much memory. */
void weft_window_key_make(struct weft_window *window, weft_window_key *key);
/* Local: no member uses the key any more. */
void weft_window_key_end(struct weft_window *window);
/* Is this a key for the iface? */
bool weft_window_key_fits(const weft_window_key *key, const weft_iface *iface);
/* Reason in words. */
const char *weft_window_keyless_text(const weft_window_key *key);

#endif
