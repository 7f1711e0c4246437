/* SPDX-License-Identifier: BSD-3-Clause
 *
 * build: what type.c and build.c tell each other; nobody else includes it.
 */
#ifndef WEFT_TYPE_BUILD_H
#define WEFT_TYPE_BUILD_H

#include "type/type.h"

/* A zeroed type with one reference and no magic yet: not alive until build.c says so. NULL when memory is out. */
weft_type *weft_type_blank(void);

#endif
