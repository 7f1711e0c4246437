/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_internal: shared by type.c and type_create.c only.
 */
#ifndef WEFT_TYPE_TYPE_INTERNAL_H
#define WEFT_TYPE_TYPE_INTERNAL_H

#include "type/layout.h"
#include "type/type.h"

/* A zeroed type with one reference; type_create.c sets the magic once it is complete. NULL: out of memory. */
weft_type *weft_type_blank(void);
/* Layout of a type; valid while `scratch` and the type are. */
const weft_type_layout *weft_layout_of(const weft_type *type, weft_type_layout *scratch);

#endif
