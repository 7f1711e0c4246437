/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hosts: the machines that the user names, and how many ranks each is to take: from --host, and from files in Open MPI's and
 * MPICH's forms.
 */
#ifndef WEFT_MPIRUN_HOSTS_H
#define WEFT_MPIRUN_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct host_row {
    char *name;      /* as the user wrote it */
    uint32_t slots;  /* 1 where nobody said */
    bool is_counted; /* somebody said */
    bool is_here;    /* this machine */
    bool is_settled; /* is_here is known */
} host_row;

typedef struct host_list {
    host_row *rows;
    uint32_t count;
} host_list;

/* Adds what "a,b:2,n[01-03]:4" names; a name that comes again adds its slots. `option` is for texts. 0, or an exit code, said. */
int hosts_add(host_list *self, const char *option, const char *text);
/* Adds what a file names: lines "h", "h:2", "h slots=2 max_slots=4", "n[1-4]", with comments after '#'. */
int hosts_read(host_list *self, const char *option, const char *path);
/* Adds what a resource manager's `from` names ("n[01-03],b"), each with so many slots (0: it does not say). 0, or an exit code, said. */
int hosts_put(host_list *self, const char *from, const char *text, uint32_t slots);
/* Finds out which of them are this machine, where that is not known, and makes one row of those. has_one_name: each host stands there
 * by one name only, so when one is ours by its letters no resolver is asked for a thousand others. */
void hosts_settle(host_list *self, bool has_one_name);
/* The same name, one of them perhaps without its domain. */
bool hosts_are_alike(const char *a, const char *b);
/* The row of that name, or of this machine under another of its names; NULL: not in the list. */
host_row *hosts_find(const host_list *self, const char *name);
/* Leaves of `wanted` what `given` holds, under the names and with the slots there unless a number was said with the host. `what` and `help`
 * are for the text about one that is not there. Both are settled after. 0, or an exit code, said. */
int hosts_narrow(const host_list *given, host_list *wanted, const char *what, const char *help);
void hosts_free(host_list *self);

/* The number of one host's entry at most, and of ranks on one of them (mem/segment.h). */
#define HOSTS_MAX 1024
#define HOST_RANKS_MAX 4096

#endif
