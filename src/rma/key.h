/* SPDX-License-Identifier: BSD-3-Clause
 *
 * key: what a member tells the others of its registered memory (keys.h).
 */
#ifndef WEFT_RMA_KEY_H
#define WEFT_RMA_KEY_H

#include <stdint.h>

#include "transport/iface.h"

/* Why a member's memory has no key. */
enum weft_window_keyless {
    WEFT_KEYLESS_NO_NEED, /* all others map it, or there are none, or no bytes */
    WEFT_KEYLESS_NO_NETWORK, /* no transport of the member registers memory for get and put */
    WEFT_KEYLESS_REFUSED, /* the device or a limit refused the registration */
    WEFT_KEYLESS_KNOB     /* WEFT_RMA_DEVICE, WEFT_REG_MODE or WEFT_CHECKSUM excludes it */
};

/* What a member tells the others. */
typedef struct weft_window_key {
    char network[8];  /* name of the transport, cut off; "": no key */
    uint8_t keyless;  /* enum weft_window_keyless, if there is no key */
    uint8_t amo;      /* enum weft_amo_domain of the member's device, whose atomics the key allows; NONE: it allows none. NIC: the
                       * device alone changes the member's words (words.h) */
    uint64_t device;  /* amo NIC: caps.amo_device */
    weft_rkey rkey;   /* a dynamic window's: of the root of its region table; length 0: it could not be registered */
    uint64_t root;    /* DYNAMIC: address of the root (region_table.h), whose first word takes notifications without data */
} weft_window_key;

#endif
