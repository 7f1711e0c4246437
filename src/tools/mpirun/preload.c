/* SPDX-License-Identifier: BSD-3-Clause
 *
 * preload: see preload.h. Called for each part when its environment is built.
 * The library is optional: userfaultfd is the other monitor. In doubt LD_PRELOAD stays as it is.
 */
#include "tools/mpirun/preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/raw_thread.h"
#include "tools/wrapper/prefix.h"

#define PRELOAD "LD_PRELOAD"
#define ASAN "ASAN_OPTIONS"

static const char *value_of(const env_list *env, const char *name)
{
    size_t length = strlen(name);

    for (uint32_t i = 0; i < env->count; i++)
        if (!strncmp(env->items[i], name, length) && env->items[i][length] == '=')
            return env->items[i] + length + 1;
    return "";
}

/* True if the ranks' WEFT_REGCACHE_MONITOR, which may differ from mpirun's own, selects another monitor. */
static bool is_excluded(const env_list *env)
{
    static const char *const others[] = {"userfaultfd", "none", "odp"};
    const char *monitor = value_of(env, "WEFT_REGCACHE_MONITOR");

    for (size_t i = 0; i < weft_count(others); i++)
        if (!strcasecmp(monitor, others[i]))
            return true;
    return false;
}

/* Sets NAME=FIRST:SECOND; no colon if one is empty. */
static int env_join(env_list *env, const char *name, const char *first, const char *second)
{
    char *text = NULL;

    if (asprintf(&text, "%s=%s%s%s", name, first, *first && *second ? ":" : "", second) < 0)
        return -1;
    int rc = env_set(env, text);
    free(text);
    return rc;
}

int preload_set(const app *part, env_list *env)
{
    const char *given = value_of(env, PRELOAD);
    prefix here;

    /* AddressSanitizer's library must be the first. */
    if (WEFT_IS_SANITIZED || part->has_asan || strstr(given, "libasan") || is_excluded(env))
        return 0;
    prefix_find(&here);
    char path[sizeof(here.lib) + 32];
    snprintf(path, sizeof(path), "%s/weft/libweft-memhooks.so", here.lib);
    /* Spaces and colons separate entries and cannot be quoted: ld.so would print an error in every process. */
    if (path[strcspn(path, " :")] || access(path, R_OK) || strstr(given, path))
        return 0;
    if (env_join(env, PRELOAD, path, given))
        return -1;
    /* A script may start a program with AddressSanitizer, which by default exits if another library precedes its own. */
    return strstr(value_of(env, ASAN), "verify_asan_link_order") ? 0 : env_join(env, ASAN, value_of(env, ASAN), "verify_asan_link_order=0");
}
