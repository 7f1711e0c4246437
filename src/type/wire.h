/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wire: a datatype as bytes, for a process that has no handle of it: bounds and layout (layout.h), not the envelope. A decoded type moves
 * data as the original does; it has no contents. Sender and receiver run the same version.
 */
#ifndef WEFT_TYPE_WIRE_H
#define WEFT_TYPE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "type/type.h"

/* Allocates the encoded form (malloc) of a derived type. 0 or WEFT_E_NOMEM. */
int weft_type_encode(const weft_type *type, void **out, uint64_t *bytes);
/* Makes a committed type with one reference. 0; WEFT_E_NOMEM; WEFT_E_TYPE: these bytes are no type. */
int weft_type_decode(const void *in, uint64_t bytes, weft_type **out);

#endif
