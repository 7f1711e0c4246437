/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_env: parses WEFT_BOOT and hashes job names. Linked into the library and the launcher.
 */
#include "launch/boot_env.h"

#include <stdio.h>

int weft_boot_env_parse(const char *text, weft_boot_env *env)
{
    int version = 0, end = 0;

    if (sscanf(text, "%d:%d:%u:%u:%u:%ld:%255[^:]%n", &version, &env->fd, &env->rank, &env->local, &env->app, &env->launcher,
               env->name, &end) != 7)
        return 0;
    return version == WEFT_BOOT_ENV_VERSION && text[end] == '\0' && env->fd >= 0;
}

uint64_t weft_boot_env_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash ? hash : 1;
}
