/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls: see calls.h.
 */
#include "collectives/calls.h"

#include <stdio.h>

const char *weft_coll_name(enum weft_coll_kind kind)
{
    static const char *const names[] = {"barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"};
    return kind < WEFT_COLL_LAST ? names[kind] : "?";
}

void weft_call_describe(weft_call call, char *text, size_t capacity)
{
    static const char *const forms[] = {"", "nonblocking ", "persistent ", ""};
    enum weft_coll_kind kind = weft_call_kind(call);
    const char *form = forms[call.what >> WEFT_CALL_FORM_SHIFT & 3], *name = weft_coll_name(kind),
               *op = weft_op_name((int32_t)(call.what >> 8 & 255));
    unsigned long long bytes = call.bytes;
    uint32_t size = call.what >> 16 & 65535, root = weft_call_root(call);

    switch (kind) {
    case WEFT_COLL_BARRIER:
        snprintf(text, capacity, "%s%s", form, name);
        break;
    case WEFT_COLL_ALLREDUCE:
        snprintf(text, capacity, "%s%s of %llu bytes (each %u) by %s", form, name, bytes, size, op);
        break;
    case WEFT_COLL_REDUCE:
        snprintf(text, capacity, "%s%s of %llu bytes (each %u) by %s, root %u", form, name, bytes, size, op, root);
        break;
    case WEFT_COLL_BCAST:
        snprintf(text, capacity, "%s%s of %llu bytes, root %u", form, name, bytes, root);
        break;
    case WEFT_COLL_GATHER:
    case WEFT_COLL_SCATTER:
        snprintf(text, capacity, "%s%s of %llu bytes a rank, root %u", form, name, bytes, root);
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
