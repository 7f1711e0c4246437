/* SPDX-License-Identifier: BSD-3-Clause
 *
 * environ: builds the environment of a rank.
 */
#ifndef WEFT_MPIRUN_ENVIRON_H
#define WEFT_MPIRUN_ENVIRON_H

#include "tools/mpirun/options.h"

/* Growing, NULL-terminated list of NAME=VALUE; owns its strings. */
typedef struct env_list {
    char **items;
    uint32_t count, capacity;
} env_list;

/* Sets NAME=VALUE (copied); replaces an earlier value of the name. 0 or -1: out of memory. */
int env_set(env_list *list, const char *text);
/* Builds the environment of a part: mpirun's, without variables of other launchers, with the user's edits. 0 or -1: out of memory. */
int env_make(const options *opts, const app *part, env_list *list);
void env_free(env_list *list);

#endif
