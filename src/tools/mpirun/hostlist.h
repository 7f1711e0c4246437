/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostlist: names of hosts written in short, "n[01-03,7]-ib[0-1],b", as people and resource managers write them.
 */
#ifndef WEFT_MPIRUN_NAMES_H
#define WEFT_MPIRUN_NAMES_H

#define NAMES_MALFORMED (-1)
#define NAME_ROOM 300 /* a longer one is malformed */

/* Calls `take` for each name, in the order in which they stand; one that is not 0 ends it. 0, take's, or NAMES_MALFORMED. */
int hostlist_each(const char *text, int (*take)(void *owner, const char *name), void *owner);

#endif
