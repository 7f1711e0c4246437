/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostlist: expands compact host lists, "n[01-03,7]-ib[0-1],b", as users and resource managers write them.
 */
#ifndef WEFT_MPIRUN_HOSTLIST_H
#define WEFT_MPIRUN_HOSTLIST_H

#define HOSTLIST_MALFORMED (-1)
#define HOSTLIST_TOO_MANY (-2)
#define HOSTLIST_NAMES_MAX 65536 /* of a list: the most ranks of a job. Repeated numbers, "[1,1][1,1]...", would else never end */
#define HOSTLIST_NAME_MAX 300 /* bytes of a name with its NUL; a longer name is malformed */

/* Calls `take` for each name, in order, until it returns non-zero. Returns 0, take's result, HOSTLIST_MALFORMED, or
 * HOSTLIST_TOO_MANY. */
int hostlist_each(const char *text, int (*take)(void *owner, const char *name), void *owner);

#endif
