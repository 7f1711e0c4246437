/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collectives: prints which algorithm each collective takes, by length, with its cost in the model of collectives/cost.h.
 */
#ifndef WEFT_TOOLS_INFO_COLLECTIVES_H
#define WEFT_TOOLS_INFO_COLLECTIVES_H

#include <stdint.h>

#include "tools/info/out.h"

#define COLLECTIVES_RANKS_MAX 1000000u

/* Blocking calls of `ranks` ranks on `nodes` nodes, with operators that commute. */
void collectives_show(out *to, uint32_t ranks, uint32_t nodes);

#endif
