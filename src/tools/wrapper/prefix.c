/* SPDX-License-Identifier: BSD-3-Clause
 *
 * prefix: finds the installation by /proc/self/exe. Invariant: both paths are absolute.
 */
#include "tools/wrapper/prefix.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Maps `target` of an installation with its bin at `bin` to one with its bin at `here`: removes from `here` as many components as `bin`
 * has below the prefix shared with `target`. False: the path is too long. */
static bool moved(const char *here, const char *bin, const char *target, char *out)
{
    size_t shared = 0;
    for (size_t i = 0;; i++) {
        bool ends_bin = bin[i] == '/' || !bin[i], ends_target = target[i] == '/' || !target[i];
        if (ends_bin && ends_target)
            shared = i;
        if (bin[i] != target[i] || !bin[i])
            break;
    }
    char path[2 * PATH_MAX];
    size_t length = (size_t)snprintf(path, sizeof(path), "%s", here);
    for (const char *up = bin + shared; *up; up++) {
        if (*up != '/' || !up[1] || up[1] == '/')
            continue;
        char *last = strrchr(path, '/');
        if (!last)
            return false;
        *last = 0;
        length = (size_t)(last - path);
    }
    length += (size_t)snprintf(path + length, sizeof(path) - length, "%s", target + shared);
    if (length >= PATH_MAX)
        return false;
    memcpy(out, path, length + 1);
    return true;
}

void prefix_find(prefix *self)
{
    char here[PATH_MAX], header[PATH_MAX + 8];
    ssize_t length = readlink("/proc/self/exe", here, sizeof(here) - 1);
    here[length > 0 ? length : 0] = 0;
    char *last = strrchr(here, '/');
    if (last) {
        *last = 0;
        if (moved(here, WEFT_BINDIR, WEFT_INCLUDEDIR, self->include) && moved(here, WEFT_BINDIR, WEFT_LIBDIR, self->lib)) {
            snprintf(header, sizeof(header), "%s/mpi.h", self->include);
            if (access(header, R_OK) == 0)
                return;
        }
    }
    snprintf(self->include, sizeof(self->include), "%s", WEFT_INCLUDEDIR);
    snprintf(self->lib, sizeof(self->lib), "%s", WEFT_LIBDIR);
}
