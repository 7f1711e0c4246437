/* SPDX-License-Identifier: BSD-3-Clause
 *
 * front: the module `ofi` as it is found: loads the rest, which is linked to libfabric, from beside itself (ofi-fabric.so). Debian's
 * libfabric is linked to libpsm and libpsm2, for adapters of 2003 and 2015. Each measures its clock for a tenth of a second as soon as
 * it is loaded, before anybody asks for it. On a host that has no such adapter two small libraries of their names are loaded before
 * (decoy.c): the dynamic linker takes them for the real ones, and whatever libfabric asks of them fails, as it would without an adapter.
 * A libfabric that wants more of them than they have cannot be loaded with them: then they go, and it gets the real ones.
 */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/module.h"
#include "transports/ofi/hush.h"

__attribute__((visibility("default"))) weft_module_entry weft_module;

static bool stands(const char *pattern)
{
    glob_t found;
    bool any = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return any;
}

/* FI_PROVIDER may list, after a ^, those that are not wanted. */
static bool names_psm(const char *text) { return text && *text != '^' && strstr(text, "psm"); }

static bool is_real_wanted(const weft_services *services)
{
    return names_psm(services->knob->ofi_provider) || names_psm(getenv("FI_PROVIDER")) || stands("/dev/hfi1*") || stands("/dev/ipath*");
}

/* NAME beside this module; NULL: it is not there, or cannot be loaded. */
static void *load_beside(const char *name)
{
    char path[4096];
    Dl_info here;
    const char *file = dladdr((const void *)&weft_module, &here) && here.dli_fname ? here.dli_fname : "";
    const char *slash = strrchr(file, '/');
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - file + 1) : 0, file, name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

const weft_port_ops *weft_module(const weft_services *services, const char **why)
{
    static _Thread_local char text[512];
    static const char *const decoys[] = {"decoy-psm.so", "decoy-psm2.so"};
    void *decoy[2] = {NULL, NULL}, *fabric;
    weft_module_entry *entry = NULL;
    for (int i = 0; i < 2 && !is_real_wanted(services); i++)
        decoy[i] = load_beside(decoys[i]);
    fabric = load_beside("ofi-fabric.so");
    for (int i = 0; i < 2; i++)
        if (decoy[i] && !fabric)
            dlclose(decoy[i]);
    if (!fabric)
        fabric = load_beside("ofi-fabric.so");
    if (fabric)
        *(void **)&entry = dlsym(fabric, "weft_module");
    if (entry) {
        ofi_hush();
        return entry(services, why);
    }
    snprintf(text, sizeof text, "cannot be loaded: %.480s", dlerror());
    *why = text;
    return NULL;
}
