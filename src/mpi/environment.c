/* SPDX-License-Identifier: BSD-3-Clause
 *
 * environment: time, names and versions (MPI 5.0, 9.1 and 9.6). Called by the generated entries at any time, also before init.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "mpi/calls.h"

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

int weft_mpi_abi_get_version(int *abi_major, int *abi_minor)
{
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return 0;
}
