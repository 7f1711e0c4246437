/* SPDX-License-Identifier: BSD-3-Clause
 *
 * preload: puts libweft-memhooks.so in front of a rank's LD_PRELOAD, so that the registration cache hears of unmapping before it
 * happens. ASAN_OPTIONS then allow a library in front of AddressSanitizer's.
 */
#ifndef WEFT_MPIRUN_PRELOAD_H
#define WEFT_MPIRUN_PRELOAD_H

#include "tools/mpirun/environ.h"

/* Does nothing where the knob pin_watch excludes it, where it is not installed, or where it would be in the way. 0 or -1 out of
 * memory. */
int preload_set(const app *part, env_list *env);

#endif
