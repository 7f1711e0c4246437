/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts: the list of hosts of a job and their slots, from --host, from host files in Open MPI's and MPICH's syntax, and from a resource
 * manager.
 */
#ifndef WEFT_MPIRUN_HOSTS_H
#define WEFT_MPIRUN_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct host_row {
    char *name;       /* as written by the user */
    uint32_t slots;   /* 1 if none were given */
    bool is_counted;  /* slots were given */
    bool is_here;     /* the host is this machine */
    bool is_resolved; /* is_here is valid */
} host_row;

typedef struct host_list {
    host_row *rows;
    uint32_t count;
} host_list;

/* Adds the hosts of "a,b:2,n[01-03]:4"; a repeated name adds its slots. `option` is for messages. 0, or an exit code after a message. */
int hosts_add(host_list *self, const char *option, const char *text);
/* Adds the hosts of a file: lines "h", "h:2", "h slots=2 max_slots=4", "n[1-4]", with comments after '#'. 0, or an exit code after a
 * message. */
int hosts_read(host_list *self, const char *option, const char *path);
/* Adds the hosts of text ("n[01-03],b") from the resource manager's variable `from`, each with `slots` slots (0: not given). 0, or an
 * exit code after a message. */
int hosts_add_expanded(host_list *self, const char *from, const char *text, uint32_t slots);
/* Sets is_here where it is not known and merges the rows of this machine. May block in the resolver. has_one_name: each host is listed
 * under one name only, so that a literal match spares resolving the others. */
void hosts_resolve(host_list *self, bool has_one_name);
/* True if both are the same name; one may lack its domain. */
bool hosts_are_alike(const char *a, const char *b);
/* Returns the row of that name, or of this machine under another of its names; NULL: not listed. */
host_row *hosts_find(const host_list *self, const char *name);
/* Reduces `wanted` to hosts of `given`, with the names and slots of `given` unless a row has a count of its own. A host that is not in
 * `given` is an error; `what` and `help` are for its message. Both lists are resolved afterwards. 0, or an exit code after a message. */
int hosts_intersect(const host_list *given, host_list *wanted, const char *what, const char *help);
void hosts_free(host_list *self);

/* Most rows of a host_list, and most ranks on one host (mem/segment.h). */
#define HOSTS_MAX 4160 /* what two steps of the tree of daemons reach (tree.h) */
#define HOST_RANKS_MAX 4096

#endif
