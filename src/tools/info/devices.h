/* SPDX-License-Identifier: BSD-3-Clause
 *
 * devices: what this machine offers to move bytes with, and what watches the memory that is registered for it. Called by weft-info's
 * main. Opens no port: a transport tells by itself what it finds.
 */
#ifndef WEFT_TOOLS_INFO_DEVICES_H
#define WEFT_TOOLS_INFO_DEVICES_H

#include <stdbool.h>

#include "tools/info/out.h"

/* The transports: usable or why not, and what each finds. A network's module is loaded only where a device seems to be active, or with
 * `all`. */
void devices_show(out *to, bool all);
/* The watches of the registration cache: in force, or why not. Runs their self-tests. */
void devices_show_watches(out *to);

#endif
