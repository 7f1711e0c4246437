/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_internal: what type.c and type_create.c tell each other; nobody else includes it.
 */
#ifndef WEFT_TYPE_TYPE_INTERNAL_H
#define WEFT_TYPE_TYPE_INTERNAL_H

#include "type/type.h"

/* A zeroed type with one reference and no magic yet: not alive until type_create.c says so. NULL when memory is out. */
weft_type *weft_type_blank(void);

#endif
