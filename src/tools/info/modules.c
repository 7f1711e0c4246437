/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modules: see modules.h. Module files of the compiler NAME stand in the folder weft/NAME beside mpi.h.
 */
#include "tools/info/modules.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/wrapper/prefix.h"

void modules_show(out *to)
{
    char folder[PATH_MAX + 8], path[PATH_MAX + 300], names[1024] = "";
    struct dirent **found;
    prefix installed;
    prefix_find(&installed);
    snprintf(folder, sizeof folder, "%s/weft", installed.include);
    int count = scandir(folder, &found, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        size_t used = strlen(names);
        snprintf(path, sizeof path, "%s/%s/mpi_f08.mod", folder, found[i]->d_name);
        if (found[i]->d_name[0] != '.' && access(path, R_OK) == 0)
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", found[i]->d_name);
        free(found[i]);
    }
    if (count >= 0)
        free(found);
    out_row(to, "Fortran modules", *names ? names : "none", "compilers that have them; mpifort -fc=NAME");
}
