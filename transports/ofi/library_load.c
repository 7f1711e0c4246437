/* SPDX-License-Identifier: BSD-3-Clause
 *
 * library_load: loads ofi_libfabric.so and defines libfabric's functions for ofi.so, which is not linked to it. See library.h. `loading`
 * guards `library`, which is set once.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/quiet_load.h"
#include "base/status.h"
#include "transports/ofi/library.h"
#include "transports/ofi/ofi.h"

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static const ofi_library *_Atomic library;

static int load(void)
{
    char path[4096];
    Dl_info here;
    const char *file = dladdr(&weft_ofi_ops, &here) && here.dli_fname ? here.dli_fname : "", *slash = strrchr(file, '/'), *words;
    const ofi_library *found;
    void *handle;
    snprintf(path, sizeof path, "%.*sofi_libfabric.so", slash ? (int)(slash - file + 1) : 0, file);
    handle = weft_quiet_load(path);
    found = handle ? dlsym(handle, "weft_ofi_library") : NULL;
    if (!found) {
        words = dlerror();
        return weft_fail(WEFT_E_UNSUPPORTED, "libfabric cannot be loaded: %s", words ? words : path);
    }
    if (strcmp(found->release, PACKAGE_VERSION) != 0)
        return weft_fail(WEFT_E_UNSUPPORTED, "%s is of another version than the library: install both again", path);
    atomic_store_explicit(&library, found, memory_order_release);
    return 0;
}

int ofi_library_load(void)
{
    int rc = 0;
    pthread_mutex_lock(&loading);
    if (!library)
        rc = load();
    pthread_mutex_unlock(&loading);
    return rc;
}

static const ofi_library *lib(void) { return atomic_load_explicit(&library, memory_order_acquire); }

/* The module exports none of these: libfabric calls its own. */
uint32_t fi_version(void) { return lib()->version(); }
const char *fi_strerror(int code) { return lib()->strerror(code); }
void fi_freeinfo(struct fi_info *info) { lib()->freeinfo(info); }
struct fi_info *fi_dupinfo(const struct fi_info *info) { return lib()->dupinfo(info); }

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
    return lib()->getinfo(version, node, service, flags, hints, info);
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context) { return lib()->fabric(attr, fabric, context); }
