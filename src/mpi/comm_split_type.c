/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_split_type: MPI_Comm_split_type (MPI 5.0 7.4.2): parts that share memory, a hardware resource or a process set. Called by the
 * generated entry. Below the node a communicator is split twice: by node, and the parts of each node by instance of the resource.
 * Invariant: all members make the same splits, whatever their own hardware is; a member without a part has color MPI_UNDEFINED.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/hw_resource.h"
#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/comm.h"
#include "mpi/exchange.h"
#include "mpi/info.h"
#include "mpi/session_type.h"

#define TYPE_KEY "mpi_hw_resource_type"
#define PSET_KEY "mpi_pset_name"

/* Ranks of one machine, or of one virtual node, have the same color. */
static int node_color(const weft_boot *boot) { return boot->node_of ? (int)boot->node_of[boot->rank] : 0; }

/* Ranks that can share memory have the same color. Without shared memory each rank is alone. */
static int shared_color(const weft_boot *boot)
{
    return boot->has_segment ? node_color(boot) : (int)(boot->nodes + boot->rank);
}

/* Splits by node; then, unless `color` is NULL, each part by color(part, arg). A part is freed when it is split further. */
static int split_twice(weft_comm *comm, int node, int key, int (*color)(weft_comm *part, void *arg, int *rc), void *arg, weft_comm **made)
{
    weft_comm *part;
    int rc = weft_comm_split(comm, node, key, 0, &part), later = 0, chosen;
    MPI_Comm gone = part;
    *made = NULL;
    if (!part) /* an error, or an intercommunicator's node without members in the other group */
        return rc;
    chosen = color(part, arg, &later);
    rc = weft_comm_split(part, chosen, 0, later, made); /* the part has the order of `key` */
    weft_mpi_comm_free(&gone);
    return rc;
}

/* -- a kind of resource that the program names -- */

static int color_of_type(weft_comm *part, void *type, int *rc)
{
    int instance;
    (void)part;
    (void)rc;
    return weft_hw_resource_find(type, &instance) && instance >= 0 ? instance : MPI_UNDEFINED;
}

/* Process sets exist in communicators of sessions only; in others all members have MPI_COMM_NULL. */
static int split_by_pset(weft_comm *comm, const char *name, int key, weft_comm **made)
{
    int pset = comm->group->session ? weft_session_pset(name) : -1;
    int color = pset == WEFT_PSET_WORLD ? 0 : pset == WEFT_PSET_SELF ? comm->rank : MPI_UNDEFINED;
    return weft_comm_split(comm, color, key, 0, made);
}

static int split_guided(weft_comm *comm, bool may_be_pset, int key, const weft_info *info, weft_comm **made)
{
    const weft_boot *boot = comm->worker->world->boot;
    char type[WEFT_INFO_VALUE_BYTES], pset[WEFT_INFO_VALUE_BYTES];
    bool has_type = weft_info_find(info, TYPE_KEY, type), has_pset = may_be_pset && weft_info_find(info, PSET_KEY, pset);
    if (has_type && has_pset)
        return weft_comm_split(comm, MPI_UNDEFINED, key, weft_fail(WEFT_E_ARG, "MPI_Comm_split_type: argument info has both "
                               TYPE_KEY " (%.60s) and " PSET_KEY " (%.60s): one of them at a time", type, pset), made);
    if (has_pset)
        return split_by_pset(comm, pset, key, made);
    if (!has_type)
        return weft_comm_split(comm, MPI_UNDEFINED, key, 0, made);
    if (strcmp(type, "mpi_shared_memory") == 0)
        return weft_comm_split(comm, shared_color(boot), key, 0, made);
    return split_twice(comm, node_color(boot), key, color_of_type, type, made);
}

/* -- the largest kind of resource that divides the communicator -- */

typedef struct search {
    const weft_comm *whole; /* the communicator that is split */
    char type[64];          /* kind found; empty: none */
} search;

/* The number of kinds, and this process's instance of each plus 1 (0: several). */
typedef struct view {
    uint32_t words[WEFT_HW_RESOURCES_MAX + 1];
} view;

/* Minima and maxima of all members' views. Allocates nothing: a member that fails alone would leave the others waiting. */
static int reduce_views(weft_comm *part, const view *own, view *least, view *most)
{
    weft_exchange over = weft_exchange_over_comm(part);
    int rc;
    *least = *own;
    for (int i = 0; i <= WEFT_HW_RESOURCES_MAX; i++)
        most->words[i] = ~own->words[i];
    rc = weft_exchange_min(&over, least->words, WEFT_HW_RESOURCES_MAX + 1);
    if (!rc)
        rc = weft_exchange_min(&over, most->words, WEFT_HW_RESOURCES_MAX + 1);
    for (int i = 0; i <= WEFT_HW_RESOURCES_MAX; i++)
        most->words[i] = ~most->words[i];
    return rc;
}

/* The largest kind of which the members use different instances, or some an instance and others several. Kinds are compared by their
 * number, as processes of one node see the same files of /sys; if their numbers differ (a container hides some), nothing is divided. */
static int find_kind(weft_comm *part, search *search, int *rc)
{
    weft_hw_resource found[WEFT_HW_RESOURCES_MAX];
    int count = weft_hw_resources(found);
    view own = {{0}}, least, most;
    for (int i = 0; i < count; i++)
        own.words[i] = (uint32_t)found[i].instance + 1;
    own.words[WEFT_HW_RESOURCES_MAX] = (uint32_t)count;
    *rc = reduce_views(part, &own, &least, &most);
    if (*rc || least.words[WEFT_HW_RESOURCES_MAX] != most.words[WEFT_HW_RESOURCES_MAX])
        return MPI_UNDEFINED;
    for (int kind = 1; kind < count; kind++) /* 0 is the machine */
        if (least.words[kind] != most.words[kind]) {
            snprintf(search->type, sizeof search->type, "%s", found[kind].type);
            return found[kind].instance >= 0 ? found[kind].instance : MPI_UNDEFINED;
        }
    return MPI_UNDEFINED;
}

/* A part of one node: the node itself divides the communicator if it has members elsewhere. Kinds below the node are not looked for on
 * intercommunicators, whose two groups would have to agree. */
static int color_of_kind(weft_comm *part, void *arg, int *rc)
{
    search *search = arg;
    bool is_whole = part->size == search->whole->size && part->chan->size == search->whole->chan->size;
    if (!is_whole) {
        snprintf(search->type, sizeof search->type, "hwloc://Machine");
        return 0;
    }
    return part->is_inter ? MPI_UNDEFINED : find_kind(part, search, rc);
}

/* Sets the key of info, if there is one to set, to the kind of hardware that the new communicator stands for. */
static int split_unguided(weft_comm *comm, int key, weft_info *info, weft_comm **made)
{
    search search = {.whole = comm};
    int rc = split_twice(comm, node_color(comm->worker->world->boot), key, color_of_kind, &search, made);
    if (rc || !*made || !info || info->is_constant)
        return rc;
    return weft_info_set(info, TYPE_KEY, search.type);
}

static int split_by(weft_comm *comm, int split_type, int key, weft_info *info, weft_comm **made)
{
    switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
        return weft_comm_split(comm, shared_color(comm->worker->world->boot), key, 0, made);
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        return split_guided(comm, split_type == MPI_COMM_TYPE_RESOURCE_GUIDED, key, info, made);
    case MPI_COMM_TYPE_HW_UNGUIDED:
        return split_unguided(comm, key, info, made);
    case MPI_UNDEFINED:
        return weft_comm_split(comm, MPI_UNDEFINED, key, 0, made);
    default:
        return weft_comm_split(comm, MPI_UNDEFINED, key,
                               weft_fail(WEFT_E_ARG, "split_type %d is none of MPI_COMM_TYPE_... or MPI_UNDEFINED", split_type), made);
    }
}

int weft_mpi_comm_split_type(weft_comm *comm, int split_type, int key, weft_info *info, MPI_Comm *newcomm, int failed)
{
    weft_comm *made;
    int rc = failed ? weft_comm_split(comm, MPI_UNDEFINED, key, failed, &made) : split_by(comm, split_type, key, info, &made);
    *newcomm = made ? made : MPI_COMM_NULL;
    return rc;
}
