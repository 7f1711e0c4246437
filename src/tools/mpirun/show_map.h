/* SPDX-License-Identifier: BSD-3-Clause
 *
 * show_map: what --verbose says before ranks start: how many, of what, where, and how each host is reached.
 */
#ifndef WEFT_MPIRUN_PLAN_H
#define WEFT_MPIRUN_PLAN_H

#include "tools/mpirun/map.h"
#include "tools/mpirun/options.h"

/* `host`: the name of this machine. */
void show_map_print(const options *opts, const map *map, const char *host);

#endif
