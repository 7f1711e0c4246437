/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_value: bytes as values of PMI, which takes text of limited length only. A value is written six bits to a character (letters, digits,
 * '-', '_'), behind the number of its bytes and a '.', and cut into pieces, each under a key of its own: rank.key.piece.
 */
#ifndef WEFT_LAUNCH_PMI_VALUE_H
#define WEFT_LAUNCH_PMI_VALUE_H

#include "launch/pmi.h"

#define WEFT_PMI_VALUE_MAX 65536 /* bytes */

/* This rank's. Others see it after the next fence. */
int weft_pmi_value_put(weft_pmi *pmi, const char *key, const void *bytes, size_t count);
/* *count: the room, then what was there. WEFT_E_UNSUPPORTED: that rank had put no such key before the last fence. */
int weft_pmi_value_get(weft_pmi *pmi, uint32_t rank, const char *key, void *bytes, size_t *count);

#endif
