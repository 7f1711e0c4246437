/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_value: binary values over PMI, whose values are text of limited length. Format: number of bytes, '.', then six bits per character
 * (letters, digits, '-', '_'); split into fragments, each with its own key: rank.key.fragment.
 */
#ifndef WEFT_LAUNCH_PMI_VALUE_H
#define WEFT_LAUNCH_PMI_VALUE_H

#include "launch/pmi.h"

#define WEFT_PMI_VALUE_MAX 65536 /* bytes */

/* Puts a value of this rank; visible to others after the next fence. */
int weft_pmi_value_put(weft_pmi *pmi, const char *key, const void *bytes, size_t count);
/* *count: capacity of `bytes`, then the value's size. WEFT_E_UNSUPPORTED: that rank had put no such key before the last fence. */
int weft_pmi_value_get(weft_pmi *pmi, uint32_t rank, const char *key, void *bytes, size_t *count);

#endif
