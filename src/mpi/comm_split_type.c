/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_split_type: MPI_Comm_split_type (MPI 5.0 7.4.2): parts that share memory, a hardware resource or a process set. Called by the
 * generated entry. Below the node a communicator is split twice: by node, and the parts of each node by instance of the resource.
 * Invariant: all members make the same splits, whatever their own hardware is; a member without a part has color MPI_UNDEFINED. So they
 * first agree that they pass the same type and resource.
 */
#include <ctype.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "base/hw_resource.h"
#include "base/status.h"
#include "collectives/stop.h"
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

/* What info names. */
typedef struct guide {
    enum { GUIDE_NONE, GUIDE_SHARED, GUIDE_HARDWARE, GUIDE_PSET } kind;
    char value[WEFT_INFO_VALUE_BYTES]; /* of the key; empty: GUIDE_NONE */
} guide;

static int read_guide(bool may_be_pset, const weft_info *info, guide *guide)
{
    char pset[WEFT_INFO_VALUE_BYTES];
    bool has_type = weft_info_find(info, TYPE_KEY, guide->value), has_pset = may_be_pset && weft_info_find(info, PSET_KEY, pset);
    if (has_type && has_pset)
        return weft_fail(WEFT_E_ARG, "MPI_Comm_split_type: argument info has both " TYPE_KEY " (%.60s) and " PSET_KEY
                         " (%.60s): one of them at a time", guide->value, pset);
    if (has_type)
        guide->kind = strcmp(guide->value, "mpi_shared_memory") ? GUIDE_HARDWARE : GUIDE_SHARED;
    if (has_pset) {
        guide->kind = GUIDE_PSET;
        memcpy(guide->value, pset, sizeof pset);
    }
    return 0;
}

static int split_guided(weft_comm *comm, guide *guide, int key, weft_comm **made)
{
    const weft_boot *boot = comm->worker->world->boot;
    switch (guide->kind) {
    case GUIDE_PSET:
        return split_by_pset(comm, guide->value, key, made);
    case GUIDE_SHARED:
        return weft_comm_split(comm, shared_color(boot), key, 0, made);
    case GUIDE_HARDWARE:
        return split_twice(comm, node_color(boot), key, color_of_type, guide->value, made);
    default:
        return weft_comm_split(comm, MPI_UNDEFINED, key, 0, made);
    }
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

static int split_by(weft_comm *comm, int split_type, guide *guide, int key, weft_info *info, weft_comm **made)
{
    switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
        return weft_comm_split(comm, shared_color(comm->worker->world->boot), key, 0, made);
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        return split_guided(comm, guide, key, made);
    case MPI_COMM_TYPE_HW_UNGUIDED:
        return split_unguided(comm, key, info, made);
    default:
        return weft_comm_split(comm, MPI_UNDEFINED, key, 0, made);
    }
}

/* -- what all members must pass alike, since it decides which splits they make -- */

enum { TYPE, NOT_TYPE, RESOURCE, NOT_RESOURCE, COMMON }; /* words of the agreement: each value, and its complement for the maximum */

static const char *name_of(int split_type)
{
    switch (split_type) {
    case MPI_COMM_TYPE_SHARED: return "MPI_COMM_TYPE_SHARED";
    case MPI_COMM_TYPE_HW_GUIDED: return "MPI_COMM_TYPE_HW_GUIDED";
    case MPI_COMM_TYPE_HW_UNGUIDED: return "MPI_COMM_TYPE_HW_UNGUIDED";
    case MPI_COMM_TYPE_RESOURCE_GUIDED: return "MPI_COMM_TYPE_RESOURCE_GUIDED";
    case MPI_UNDEFINED: return "MPI_UNDEFINED";
    default: return NULL;
    }
}

/* Hash of the resource, without regard to case as hw_resource has it. A process set of which this process is no member may be any. */
static bool hash_resource(const weft_comm *comm, const guide *guide, uint32_t *hash)
{
    if (guide->kind == GUIDE_NONE || (guide->kind == GUIDE_PSET && (!comm->group->session || weft_session_pset(guide->value) < 0)))
        return false;
    *hash = 2166136261u ^ (uint32_t)guide->kind; /* FNV-1a */
    for (const char *at = guide->value; *at; at++)
        *hash = (*hash ^ (uint32_t)tolower((unsigned char)*at)) * 16777619u;
    return true;
}

/* All members pass the same split type and resource; members without one (MPI_UNDEFINED, no key) pass any. rc: an earlier error of this
 * member. */
static int agree(weft_comm *comm, int split_type, const guide *guide, int rc)
{
    weft_exchange over = comm->is_inter ? weft_exchange_over_intercomm(comm, false) : weft_exchange_over_comm(comm);
    uint32_t words[COMMON] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}, hash;
    if (!rc && split_type != MPI_UNDEFINED) {
        words[TYPE] = (uint32_t)split_type;
        words[NOT_TYPE] = ~words[TYPE];
    }
    if (!rc && hash_resource(comm, guide, &hash)) {
        words[RESOURCE] = hash;
        words[NOT_RESOURCE] = ~hash;
    }
    rc = weft_exchange_agree(&over, rc, words, COMMON);
    if (rc)
        return rc;
    if (words[TYPE] != ~words[NOT_TYPE] && words[TYPE] != UINT32_MAX)
        return weft_fail(WEFT_E_NOT_SAME, "the members pass different split types: this one %s; %s and %s are among them.\n"
                         "  All members must pass the same split_type, or MPI_UNDEFINED.", name_of(split_type),
                         name_of((int)words[TYPE]), name_of((int)~words[NOT_TYPE]));
    if (words[RESOURCE] != ~words[NOT_RESOURCE] && words[RESOURCE] != UINT32_MAX)
        return weft_fail(WEFT_E_NOT_SAME, "the members name different resources in info: this one %s%.60s%s.\n"
                         "  All members must pass the same value of " TYPE_KEY " or " PSET_KEY ".",
                         guide->kind == GUIDE_NONE ? "none" : guide->kind == GUIDE_PSET ? PSET_KEY " \"" : TYPE_KEY " \"",
                         guide->value, guide->kind == GUIDE_NONE ? "" : "\"");
    return 0;
}

int weft_mpi_comm_split_type(weft_comm *comm, int split_type, int key, weft_info *info, MPI_Comm *newcomm, int failed)
{
    bool is_guided = split_type == MPI_COMM_TYPE_HW_GUIDED || split_type == MPI_COMM_TYPE_RESOURCE_GUIDED;
    guide guide = {.kind = GUIDE_NONE};
    weft_comm *made = NULL;
    int rc = failed;
    if (!rc && !name_of(split_type))
        rc = weft_fail(WEFT_E_ARG, "split_type %d is none of MPI_COMM_TYPE_... or MPI_UNDEFINED", split_type);
    if (!rc && is_guided)
        rc = read_guide(split_type == MPI_COMM_TYPE_RESOURCE_GUIDED, info, &guide);
    if (comm->is_inter)
        weft_team_begin_making(&comm->team, &comm->local->team, WEFT_CALL_SPLIT_TYPE);
    rc = agree(comm, split_type, &guide, rc);
    if (!rc)
        rc = split_by(comm, split_type, &guide, key, info, &made);
    if (comm->is_inter)
        weft_team_end_making(&comm->team);
    *newcomm = made ? made : MPI_COMM_NULL;
    return rc;
}
