/* SPDX-License-Identifier: BSD-3-Clause
 *
 * environ: the environment that a rank gets.
 */
#ifndef WEFT_MPIRUN_ENVIRON_H
#define WEFT_MPIRUN_ENVIRON_H

#include "tools/mpirun/options.h"

/* A growing, NULL-terminated list of NAME=VALUE, which it owns. */
typedef struct env_list {
    char **items;
    uint32_t count, room;
} env_list;

/* Sets (text is copied; a later one of the same name replaces). 0 or -1 out of memory. */
int env_set(env_list *list, const char *text);
/* The environment of a part: ours, less what other launchers left for us, with the user's edits. */
int env_make(const options *opts, const app *part, env_list *list);
void env_free(env_list *list);

#endif
