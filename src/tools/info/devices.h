/* SPDX-License-Identifier: BSD-3-Clause
 *
 * devices: prints the transports usable on this machine, their devices, and the monitors of registered memory. Called by weft-info's
 * main. Opens no iface: the transport's ops unavailable() and describe() report what they find.
 */
#ifndef WEFT_TOOLS_INFO_DEVICES_H
#define WEFT_TOOLS_INFO_DEVICES_H

#include <stdbool.h>

#include "tools/info/out.h"

/* Prints each transport: usable or why not, and its devices. Loads a network's module only if a device seems active, or with `all`. */
void devices_show(out *to, bool all);
/* Prints the sources of the memory monitor (memmon): active or why not. Runs their self-tests. */
void devices_show_memmons(out *to);

#endif
