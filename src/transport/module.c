/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module: looks up transports by name and loads those that are not built in. See module.h. loaded.lock guards the list of modules.
 */
#include "transport/module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/quiet_load.h"
#include "base/status.h"

#define LOADED_MAX 8

static const weft_services services = {.version = WEFT_MODULE_VERSION, .release = PACKAGE_VERSION, .fail = weft_fail,
                                       .fail_text = weft_fail_text, .log = weft_log, .knob = &weft_knob};

static struct {
    pthread_mutex_t lock;
    const weft_iface_ops *ops[LOADED_MAX];
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Path of a module: in the knob's directory, else in weft/ beside the library (found by dladdr, so an installation may be moved). */
static void place_of(const char *name, char *path, size_t capacity)
{
    Dl_info here;
    const char *file = dladdr(&services, &here) && here.dli_fname ? here.dli_fname : "";
    const char *slash = strrchr(file, '/');
    if (weft_knob.module_dir && *weft_knob.module_dir)
        snprintf(path, capacity, "%s/%s.so", weft_knob.module_dir, name);
    else
        snprintf(path, capacity, "%.*sweft/%s.so", slash ? (int)(slash - file + 1) : 0, file, name);
}

static const weft_iface_ops *load(const char *name, const char **why)
{
    static _Thread_local char text[4352];
    char path[4096], *whole;
    weft_module_entry *entry = NULL;
    void *handle;
    place_of(name, path, sizeof path);
    if (access(path, F_OK) != 0) {
        snprintf(text, sizeof text, "is not installed: there is no %s (weft-info lists the transports)", path);
        *why = text;
        return NULL;
    }
    whole = realpath(path, NULL); /* what the module loads later lies beside it, also after a chdir */
    handle = weft_quiet_load(whole ? whole : path);
    free(whole);
    if (handle)
        *(void **)&entry = dlsym(handle, "weft_module");
    if (!entry) {
        const char *words = dlerror();
        snprintf(text, sizeof text, "cannot be loaded: %s", words ? words : path);
        *why = text;
        return NULL;
    }
    return entry(&services, why);
}

static const weft_iface_ops *find_loaded(const char *name)
{
    for (size_t i = 0; i < LOADED_MAX && loaded.ops[i]; i++)
        if (strcmp(loaded.ops[i]->name, name) == 0)
            return loaded.ops[i];
    return NULL;
}

const weft_iface_ops *weft_transport_find(const char *name, const char **why)
{
    static const weft_iface_ops *const built_in[] = {&weft_self_ops, &weft_shm_ops};
    const weft_iface_ops *ops;
    for (size_t i = 0; i < weft_count(built_in); i++)
        if (strcmp(built_in[i]->name, name) == 0)
            return built_in[i];
    pthread_mutex_lock(&loaded.lock);
    ops = find_loaded(name);
    if (!ops && (ops = load(name, why)))
        for (size_t i = 0; i < LOADED_MAX; i++)
            if (!loaded.ops[i]) {
                loaded.ops[i] = ops;
                break;
            }
    pthread_mutex_unlock(&loaded.lock);
    return ops;
}
