/* SPDX-License-Identifier: BSD-3-Clause
 *
 * environment: time, names, versions and hardware (MPI 5.0, 9.1 and 9.6). Called by the generated entries at any time, also before init.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hw_resource.h"
#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/info.h"

double weft_mpi_wtime(void) { return (double)weft_clock_ns() * 1e-9; }

double weft_mpi_wtick(void)
{
    struct timespec tick;
    return clock_getres(CLOCK_MONOTONIC, &tick) ? 1e-9 : (double)tick.tv_sec + (double)tick.tv_nsec * 1e-9;
}

int weft_mpi_get_processor_name(char *name, int *resultlen)
{
    weft_world *world = weft_world_now;
    if (world && world->boot->host[0])
        snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", world->boot->host);
    else if (gethostname(name, MPI_MAX_PROCESSOR_NAME))
        return weft_fail(WEFT_E_SYSTEM, "gethostname failed");
    name[MPI_MAX_PROCESSOR_NAME - 1] = 0;
    *resultlen = (int)strlen(name);
    return 0;
}

int weft_mpi_get_version(int *version, int *subversion)
{
    *version = MPI_VERSION; /* programs check it against their header; functions not implemented raise errors of their own */
    *subversion = MPI_SUBVERSION;
    return 0;
}

int weft_mpi_get_library_version(char *version, int *resultlen)
{
    snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Weft %s, MPI standard ABI %d.%d, built with %s", PACKAGE_VERSION,
             MPI_ABI_VERSION, MPI_ABI_SUBVERSION, __VERSION__);
    *resultlen = (int)strlen(version);
    return 0;
}

/* The kinds of hardware by hwloc's names: "true" where this process may use one instance only (MPI 5.0 9.1.2.5). */
int weft_mpi_get_hw_resource_info(MPI_Info *hw_info)
{
    weft_hw_resource found[WEFT_HW_RESOURCES_MAX];
    int count = weft_hw_resources(found), rc = 0;
    weft_info *info = weft_info_new();
    if (!info)
        return WEFT_E_NOMEM;
    for (int i = 0; i < count && !rc; i++)
        rc = weft_info_set(info, found[i].type, found[i].instance >= 0 ? "true" : "false");
    if (rc)
        weft_info_drop(info);
    else
        *hw_info = info;
    return rc;
}
