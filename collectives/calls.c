/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls: see calls.h.
 */
#include "collectives/calls.h"

#include <stdio.h>

const char *weft_coll_name(enum weft_coll_kind kind)
{
    static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce", "gather", "scatter",
                                        "allgather", "alltoall", "gatherv", "scatterv", "allgatherv", "alltoallv", "alltoallw", "scan",
                                        "exscan", "reduce_scatter_block", "reduce_scatter", "neighbor_allgather", "neighbor_allgatherv",
                                        "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw"};
    return kind < WEFT_COLL_KINDS ? names[kind] : "?";
}

uint32_t weft_call_blocks_hash(const weft_layout *layout, const weft_type *type, uint32_t ranks)
{
    uint64_t mixed = 1;

    for (uint32_t i = 0; i < ranks; i++)
        mixed = (mixed ^ (uint64_t)weft_counts_get(layout->counts, i) * (uint64_t)type->size) * 0x9E3779B97F4A7C15ull + (mixed >> 29);
    return (uint32_t)(mixed >> 32);
}

weft_call weft_call_of_inter(const weft_team *team, enum weft_coll_kind kind, enum weft_call_form form, const weft_coll *args)
{
    bool is_root = args->root == (int)team->rank, is_exchange = kind == WEFT_COLL_ALLGATHER || kind == WEFT_COLL_ALLTOALL;
    uint64_t bytes = args->root == WEFT_ROOT_NONE ? 0 : weft_coll_bytes(kind, args, is_root), back = 0;
    weft_call call;

    if (kind == WEFT_COLL_ALLGATHERV) /* a member knows only its own part of what its group sends */
        bytes = 0;
    if (is_exchange) {
        uint64_t sent = args->sendcount * (uint64_t)args->sendtype->size;
        back = team->local.first ? sent : bytes;
        bytes = team->local.first ? bytes : sent;
    }
    call = weft_call_of(kind, form, args, bytes);
    call.what |= WEFT_CALL_INTER | (back < UINT32_MAX ? back : UINT32_MAX) << 32;
    return call;
}

/* Rank in its own group of a member of an intercommunicator. */
static uint32_t group_rank(const weft_team *team, uint32_t member)
{
    uint32_t first_count = team->local.first + team->remote.first; /* one of them is 0 */

    return member < first_count ? member : member - first_count;
}

weft_member_name weft_member_name_of(const weft_team *team, uint32_t member)
{
    weft_member_name name;

    if (team && team->is_inter)
        snprintf(name.text, sizeof name.text, "process %u (rank %u of its group)", weft_group_process(team->chan->group, member).rank,
                 group_rank(team, member));
    else
        snprintf(name.text, sizeof name.text, "rank %u", member);
    return name;
}

/* On an intercommunicator: what is not described as on others. False: nothing. */
static bool describe_inter(const weft_team *team, uint32_t member, weft_call call, const char *form, char *text, size_t capacity)
{
    enum weft_coll_kind kind = weft_call_kind(call);
    unsigned long long first = call.bytes, second = weft_call_root(call);
    bool is_first = member < team->local.first + team->remote.first;

    if (kind == WEFT_COLL_ALLGATHER || kind == WEFT_COLL_ALLTOALL)
        snprintf(text, capacity, "%s%s that sends %llu and receives %llu bytes a rank", form, weft_coll_name(kind),
                 is_first ? first : second, is_first ? second : first);
    else if (weft_call_root(call) == (uint32_t)WEFT_ROOT_NONE)
        snprintf(text, capacity, "%s%s, root MPI_PROC_NULL", form, weft_coll_name(kind));
    else
        return false;
    return true;
}

const char *weft_call_maker_name(uint32_t maker)
{
    static const char *const names[] = {"MPI_Comm_dup", "MPI_Comm_create", "MPI_Comm_split", "MPI_Comm_split_type", "MPI_Intercomm_merge"};
    return maker < weft_count(names) ? names[maker] : "another call that makes a communicator";
}

static void describe_root(const weft_team *team, uint32_t member, weft_call call, char *text, size_t capacity)
{
    if (!(call.what & WEFT_CALL_INTER))
        snprintf(text, capacity, "%u", weft_call_root(call));
    else if (weft_call_root(call) == member)
        snprintf(text, capacity, "MPI_ROOT");
    else
        snprintf(text, capacity, "%u", group_rank(team, weft_call_root(call)));
}

void weft_call_describe(const weft_team *team, uint32_t member, weft_call call, char *text, size_t capacity)
{
    static const char *const forms[] = {"", "nonblocking ", "persistent ", ""};
    enum weft_coll_kind kind = weft_call_kind(call);
    const char *form = forms[call.what >> WEFT_CALL_FORM_SHIFT & 3], *name = weft_coll_name(kind),
               *op = weft_op_name((int32_t)(call.what >> 8 & 255));
    unsigned long long bytes = call.bytes;
    uint32_t size = call.what >> 16 & 65535;
    char root[16];

    if ((uint32_t)kind == WEFT_CALL_MAKES) {
        snprintf(text, capacity, "%s", weft_call_maker_name((uint32_t)call.bytes));
        return;
    }
    if ((call.what & WEFT_CALL_INTER) && describe_inter(team, member, call, form, text, capacity))
        return;
    describe_root(team, member, call, root, sizeof root);
    switch (kind) {
    case WEFT_COLL_BARRIER:
    case WEFT_COLL_ALLTOALLV:
    case WEFT_COLL_ALLTOALLW:
    case WEFT_COLL_NEIGHBOR_ALLGATHER ... WEFT_COLL_NEIGHBOR_ALLTOALLW:
        snprintf(text, capacity, "%s%s", form, name);
        break;
    case WEFT_COLL_ALLGATHERV:
        if (call.what & WEFT_CALL_INTER)
            snprintf(text, capacity, "%s%s", form, name);
        else
            snprintf(text, capacity, "%s%s of %llu bytes in all (counts' hash %08x)", form, name, bytes, weft_call_root(call));
        break;
    case WEFT_COLL_GATHERV:
    case WEFT_COLL_SCATTERV:
        snprintf(text, capacity, "%s%s, root %s", form, name, root);
        break;
    case WEFT_COLL_SCAN:
    case WEFT_COLL_EXSCAN:
    case WEFT_COLL_REDUCE_SCATTER_BLOCK:
    case WEFT_COLL_ALLREDUCE:
        snprintf(text, capacity, "%s%s of %llu bytes (each %u) by %s", form, name, bytes, size, op);
        break;
    case WEFT_COLL_REDUCE_SCATTER:
        snprintf(text, capacity, "%s%s of %llu bytes (each %u) by %s (counts' hash %08x)", form, name, bytes, size, op,
                 weft_call_root(call));
        break;
    case WEFT_COLL_REDUCE:
        snprintf(text, capacity, "%s%s of %llu bytes (each %u) by %s, root %s", form, name, bytes, size, op, root);
        break;
    case WEFT_COLL_BCAST:
        snprintf(text, capacity, "%s%s of %llu bytes, root %s", form, name, bytes, root);
        break;
    case WEFT_COLL_GATHER:
    case WEFT_COLL_SCATTER:
        snprintf(text, capacity, "%s%s of %llu bytes a rank, root %s", form, name, bytes, root);
        break;
    default:
        snprintf(text, capacity, "%s%s of %llu bytes a rank", form, name, bytes);
    }
}

bool weft_call_is_truncated(weft_call local, uint32_t rank, weft_call remote, uint32_t member)
{
    enum weft_coll_kind kind = weft_call_kind(local);
    uint32_t root = weft_call_root(local);

    if (local.what != remote.what || remote.bytes <= local.bytes)
        return false;
    return kind == WEFT_COLL_BCAST || kind == WEFT_COLL_SCATTER ? member == root : kind == WEFT_COLL_GATHER && rank == root;
}
