/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_internal: shared by the files type*.c of this folder only.
 */
#ifndef WEFT_TYPE_TYPE_INTERNAL_H
#define WEFT_TYPE_TYPE_INTERNAL_H

#include "type/layout.h"
#include "type/type.h"

/* A zeroed type with one reference; type_create.c sets the magic once it is complete. NULL: out of memory. */
weft_type *weft_type_blank(void);
/* An envelope without values that references the types. NULL: out of memory. */
weft_envelope *weft_envelope_new(uint64_t type_count, const weft_type *const *types);
void weft_envelope_drop(weft_envelope *envelope);
/* Copies all that is derived from the constructor: sizes, bounds, class and layout, not the owners of the layout. */
void weft_type_copy_shape(weft_type *type, const weft_type *from);
/* Layout of a type; valid while `scratch` and the type are. */
const weft_type_layout *weft_layout_of(const weft_type *type, weft_type_layout *scratch);

#endif
