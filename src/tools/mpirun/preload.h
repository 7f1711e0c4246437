/* SPDX-License-Identifier: BSD-3-Clause
 *
 * preload: prepends libweft-memhooks.so to a rank's LD_PRELOAD, so that the registration cache sees unmapping before it happens.
 * It also sets ASAN_OPTIONS to permit a library before AddressSanitizer's.
 */
#ifndef WEFT_MPIRUN_PRELOAD_H
#define WEFT_MPIRUN_PRELOAD_H

#include "tools/mpirun/environ.h"

/* No effect if WEFT_REGCACHE_MONITOR selects another monitor, if the library is not installed, or if it would conflict. 0 or -1: out of
 * memory. */
int preload_set(const app *part, env_list *env);

#endif
