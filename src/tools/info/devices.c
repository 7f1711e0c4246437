/* SPDX-License-Identifier: BSD-3-Clause
 *
 * devices: sections "transports" and "registration" of weft-info.
 */
#include "tools/info/devices.h"

#include <stdio.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "core/iface_select.h"
#include "mem/memmon.h"
#include "tools/wrapper/prefix.h"
#include "transport/module.h"

typedef struct describe_ctx {
    out *to;
    const char *name, *why; /* why: text already printed, or NULL */
} describe_ctx;

static void describe_line(void *arg, const char *text)
{
    const describe_ctx *self = arg;
    if (self->why && strcmp(text, self->why) == 0)
        return;
    out_row(self->to, self->to->is_json ? self->name : "", self->to->is_json ? "detail" : "", text);
}

static void show(out *to, const char *name, const weft_iface_ops *ops, const char *why)
{
    describe_ctx self = {to, name, NULL};
    if (ops && !why)
        why = ops->unavailable();
    self.why = why;
    out_row(to, name, why ? "unavailable" : "usable", why ? why : "");
    if (ops)
        ops->describe(describe_line, &self);
}

static void show_network(out *to, const char *name, bool is_promising)
{
    const char *why = NULL;
    const weft_iface_ops *ops;
    if (!is_promising) {
        out_row(to, name, "not probed", "no active device found; weft-info --transports loads the module and probes it");
        return;
    }
    ops = weft_transport_find(name, &why);
    show(to, name, ops, ops ? NULL : why);
}

/* weft-info is linked with the library's code, so modules cannot be found beside the library: the installation's path is used. */
void devices_show(out *to, bool all)
{
    const char *modules = weft_knob.module_dir, *name;
    char path[PATH_MAX + 8];
    bool is_promising;
    prefix installed;
    prefix_find(&installed);
    snprintf(path, sizeof path, "%s/weft", installed.lib);
    if (!modules || !*modules)
        weft_knob.module_dir = path;
    out_section(to, "transports", "transports, with their devices and addresses");
    show(to, weft_self_ops.name, &weft_self_ops, NULL);
    show(to, weft_shm_ops.name, &weft_shm_ops, NULL);
    for (uint32_t i = 0; (name = weft_iface_select_network(i, &is_promising)); i++)
        show_network(to, name, all || is_promising);
    out_section_end(to);
    weft_knob.module_dir = modules;
}

/* Prints a line "name: text" as a row. */
static void describe_memmon(void *arg, const char *text)
{
    char name[64];
    const char *colon = strstr(text, ": ");
    snprintf(name, sizeof name, "%.*s", (int)(colon ? colon - text : 0), text);
    out_row(arg, name, colon ? colon + 2 : text, NULL);
}

void devices_show_memmons(out *to)
{
    out_section(to, "registration", "memory monitors of the registration cache (memmon)");
    weft_memmon_describe(describe_memmon, to);
    out_section_end(to);
}
