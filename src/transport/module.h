/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module: transports in shared objects, linked to libraries that most jobs do not need (libibverbs). A module is <libdir>/weft/<name>.so
 * and exports one function, weft_module. It calls the library through weft_services, since the library exports only the MPI ABI.
 * transport/module_glue.c, linked into every module, forwards weft_fail and weft_log and holds a copy of weft_knob.
 */
#ifndef WEFT_TRANSPORT_MODULE_H
#define WEFT_TRANSPORT_MODULE_H

#include "base/knob.h"
#include "base/log.h"
#include "transport/iface.h"

#define WEFT_MODULE_VERSION 2 /* of weft_services and iface.h; other versions are refused */

typedef struct weft_services {
    uint32_t version;
    const char *release; /* PACKAGE_VERSION of the library */
    int (*fail)(int code, const char *format, ...);
    const char *(*fail_text)(int code);
    void (*log)(enum weft_log_level level, const char *format, ...);
    const weft_knobs *knob;
} weft_services;

/* Type of the exported "weft_module": returns the transport's table; NULL: version or release differ (*why: a static text). */
typedef const weft_iface_ops *weft_module_entry(const weft_services *services, const char **why);

/* The transport of that name: built in, already loaded, or loaded now. NULL: *why has a sentence (thread-local or static). Modules are
 * never unloaded. Any thread; takes a lock and may block in dlopen. */
const weft_iface_ops *weft_transport_find(const char *name, const char **why);

#endif
