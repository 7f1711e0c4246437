/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module: transports that stand in a shared object of their own, linked to a library that most jobs never need (libibverbs). A module
 * is <libdir>/weft/<name>.so; it exports one function, weft_module, and gets what it needs of the house through weft_services,
 * because the library that loads it exports the ABI and nothing else. Inside a module the usual names (weft_fail, weft_log,
 * weft_knob) work: transport/module_glue.c, linked into every module, passes them on.
 */
#ifndef WEFT_TRANSPORT_MODULE_H
#define WEFT_TRANSPORT_MODULE_H

#include "base/knob.h"
#include "base/log.h"
#include "transport/iface.h"

#define WEFT_MODULE_VERSION 2 /* of the contract: a module built for another one is refused */

typedef struct weft_services {
    uint32_t version;
    const char *release; /* PACKAGE_VERSION of the library */
    int (*fail)(int code, const char *format, ...);
    const char *(*fail_text)(int code);
    void (*log)(enum weft_log_level level, const char *format, ...);
    const weft_knobs *knob;
} weft_services;

/* What a module exports as "weft_module": its table, or NULL when version or release differ (*why says so, static). */
typedef const weft_iface_ops *weft_module_entry(const weft_services *services, const char **why);

/* The transport of that name: built in, loaded before, or loaded now. NULL with a sentence in *why (thread-local or static). Loaded
 * modules stay. Any thread. */
const weft_iface_ops *weft_transport_find(const char *name, const char **why);

#endif
