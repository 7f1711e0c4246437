/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot: chooses the way. Our mpirun's word first, then a PMIx server, then alone; but a process that was started as one task of
 * several and finds nobody to ask is an error: four programs that each believe to be the whole job give wrong results in silence.
 */
#include "launch/boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/place.h"
#include "base/status.h"
#include "launch/ways.h"

weft_boot *(*weft_boot_hook)(void);
static _Atomic int own_stage;
_Atomic int *weft_boot_stage = &own_stage;

void weft_boot_host(char *host, size_t room)
{
    if (gethostname(host, room) || !*host)
        snprintf(host, room, "localhost");
    host[room - 1] = '\0';
}

bool weft_boot_is_crowded(uint32_t local, bool is_bound)
{
    if (is_bound) /* the launcher gave each rank CPUs of its own: our affinity tells nothing about the others' */
        return weft_place_quota_cpus() > 0 && (uint32_t)weft_place_quota_cpus() < local;
    return (uint32_t)weft_place_cpus() < local;
}

/* A server of another launcher that was started below our mpirun has a namespace of its own. */
static bool pmix_is_offered(const char *ours)
{
    const char *name = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");

    return name && *name && rank && *rank && (!ours || strcmp(name, ours));
}

static int refuse_alone(const char *seen, int is_pmi1)
{
    if (is_pmi1)
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "this process is one of several (%s), but its launcher speaks PMI-1, which Weft does not speak yet. "
                         "Start it by Weft's own mpirun, or by a launcher with PMIx (srun --mpi=pmix). "
                         "To run it alone, unset PMI_SIZE",
                         seen);
    return weft_fail(WEFT_E_OTHER,
                     "this process is one of several (%s), but no PMIx server answers (PMIX_NAMESPACE is not set). "
                     "Start it by Weft's own mpirun, or by a launcher with PMIx (srun --mpi=pmix). "
                     "To run it alone, unset those variables",
                     seen);
}

int weft_boot_start(weft_boot **boot)
{
    const char *text = getenv(WEFT_WORD_NAME);
    bool has_word = text && *text;
    char seen[256];
    weft_word word;
    int is_pmi1;

    *boot = NULL;
    if (weft_boot_hook && (*boot = weft_boot_hook()))
        return 0;
    if (has_word) {
        if (!weft_word_parse(text, &word))
            return weft_fail(WEFT_E_OTHER,
                             "%s=%s is not a word of this version's mpirun: use mpirun and library of one version, or unset it",
                             WEFT_WORD_NAME, text);
        if (!pmix_is_offered(word.name)) {
            int rc = weft_boot_by_mpirun(&word, boot);
            /* a rank's child: the step that the environment tells of is its parent's and not its own */
            return rc == WEFT_AGAIN ? weft_boot_alone(boot) : rc;
        }
    }
    if (pmix_is_offered(NULL))
        return weft_boot_by_pmix(boot);
    if (weft_step_seen(seen, sizeof(seen), &is_pmi1))
        return refuse_alone(seen, is_pmi1);
    return weft_boot_alone(boot);
}
