/* SPDX-License-Identifier: BSD-3-Clause
 *
 * show_map: prints for --verbose, before ranks start, the number of ranks, programs, hosts, and how each host is reached.
 */
#ifndef WEFT_MPIRUN_SHOW_MAP_H
#define WEFT_MPIRUN_SHOW_MAP_H

#include "tools/mpirun/map.h"
#include "tools/mpirun/options.h"

/* `host`: name of this machine. */
void show_map_print(const options *opts, const map *map, const char *host);

#endif
