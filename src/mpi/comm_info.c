/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_info: see comm_info.h. What the assertions are used for: docs/architecture.md, Messages.
 */
#include "mpi/comm_info.h"

#include "base/macros.h"
#include "base/status.h"
#include "collectives/coll.h"
#include "mpi/calls.h"
#include "mpi/memory_kinds.h"

/* Whether the progress thread advances the communicator's operations (core/progress_thread). Default: by WEFT_PROGRESS_THREAD. */
static const char progress_key[] = "weft_progress_thread";

/* Whether the order of reductions depends neither on nodes nor on the form of the call. Default: WEFT_REPRODUCIBLE. */
static const char reproducible_key[] = "weft_reproducible";

/* By bit of weft_comm.hints (enum weft_comm_hint). The default is false. */
static const char *const hints[] = {
    "mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length", "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
};

static bool is_helped(const weft_comm *comm) { return comm->chan->is_helped; }

static void set_helped(weft_comm *comm, bool value)
{
    value &= comm->worker->progress_thread != NULL;
    weft_chan_set_helped(comm->chan, value);
    weft_chan_set_helped(comm->team.chan, value);
}

void weft_comm_set_hints(weft_comm *comm, const weft_info *info)
{
    char kinds[WEFT_INFO_VALUE_BYTES];
    bool value;
    if (weft_info_find(info, "mpi_assert_memory_alloc_kinds", kinds) && weft_memory_kinds_known(kinds))
        comm->asserted_kinds = weft_memory_kinds_keep(kinds);
    if (weft_info_find_bool(info, progress_key, &value))
        set_helped(comm, value);
    if (weft_info_find_bool(info, reproducible_key, &value))
        weft_team_set_reproducible(&comm->team, value);
    for (unsigned i = 0; i < weft_count(hints); i++) {
        if (weft_info_find_bool(info, hints[i], &value))
            comm->hints = value ? comm->hints | 1u << i : comm->hints & ~(1u << i);
    }
    comm->chan->may_overtake = comm->hints & WEFT_COMM_ALLOW_OVERTAKING;
}

int weft_mpi_comm_set_info(weft_comm *comm, weft_info *info)
{
    weft_comm_set_hints(comm, info);
    return 0;
}

/* Returns all supported hints with their values (MPI 5.0 7.4.4). */
int weft_mpi_comm_get_info(weft_comm *comm, MPI_Info *info_used)
{
    weft_info *info = weft_info_new();
    int rc = info ? weft_memory_kinds_add(info, comm->asserted_kinds) : WEFT_E_NOMEM;
    for (unsigned i = 0; i < weft_count(hints) && !rc; i++)
        rc = weft_info_set(info, hints[i], comm->hints >> i & 1 ? "true" : "false");
    if (!rc)
        rc = weft_info_set(info, progress_key, is_helped(comm) ? "true" : "false");
    if (!rc)
        rc = weft_info_set(info, reproducible_key, comm->team.is_reproducible ? "true" : "false");
    if (rc)
        weft_info_drop(info);
    else
        *info_used = info;
    return rc;
}
