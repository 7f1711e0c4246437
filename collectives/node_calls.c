/* SPDX-License-Identifier: BSD-3-Clause
 *
 * node_calls: see node_calls.h.
 */
#include "collectives/node_calls.h"

#include <stdio.h>

#include "base/status.h"

static enum weft_coll_kind kind_of(uint64_t what) { return what & 255; }
static int32_t op_of(uint64_t what) { return what >> 8 & 255; }
static uint32_t size_of(uint64_t what) { return what >> 16 & 65535; }
static uint32_t root_of(uint64_t what) { return (uint32_t)(what >> 32); }

int weft_node_refuse(weft_node *node)
{
    if (node->rc == WEFT_E_TRUNCATE)
        node->rc = WEFT_E_NOT_SAME;
    return node->rc;
}

int weft_node_pass(weft_node *node, enum weft_coll_kind kind, const weft_coll *args, uint64_t bytes, bool is_alone)
{
    if (node->rc)
        return weft_node_refuse(node);
    weft_node_note(node, kind, args, bytes);
    if (is_alone) /* who thinks that this call goes through slots would wait for us */
        weft_node_wake_all(node);
    return WEFT_OK;
}

void weft_node_go(weft_node *node, enum weft_node_gone how)
{
    atomic_store_explicit(&node->notes[node->rank].gone, how, memory_order_release); /* pairs with weft_node_look */
    weft_node_wake_all(node);
}

/* ---- reading the others' ---- */

typedef struct noted {
    uint64_t chain, what, bytes;
} noted;

/* The last call that both of us noted; 0: none. */
static uint64_t last_common(const weft_node *node, uint32_t member)
{
    uint64_t theirs = atomic_load_explicit(&node->notes[member].calls, memory_order_acquire);
    return theirs < node->calls ? theirs : node->calls;
}

/* Number n of a member's calls, unless it is overwritten, or may be while we read. */
static bool read_call(const weft_node *node, uint32_t member, uint64_t n, noted *call)
{
    const weft_node_notes *notes = &node->notes[member];
    const weft_node_call *from = &notes->call[n % WEFT_NODE_DEPTH];

    call->chain = atomic_load_explicit(&from->chain, memory_order_acquire);
    call->what = atomic_load_explicit(&from->what, memory_order_acquire);
    call->bytes = atomic_load_explicit(&from->bytes, memory_order_acquire);
    return n && atomic_load_explicit(&notes->calls, memory_order_acquire) < n + WEFT_NODE_DEPTH - 1;
}

static bool is_apart(const weft_node *node, uint32_t member)
{
    uint64_t n = last_common(node, member);
    noted ours, theirs;

    return read_call(node, node->rank, n, &ours) && read_call(node, member, n, &theirs) && ours.chain != theirs.chain;
}

int weft_node_look(weft_node *node, uint32_t member, uint64_t s)
{
    bool is_gone = atomic_load_explicit(&node->notes[member].gone, memory_order_acquire) != WEFT_NODE_HERE;

    if (weft_likely(!is_gone && !is_apart(node, member)))
        return WEFT_OK;
    return weft_node_has_posted(node, member, s) ? WEFT_OK : weft_node_differ(node, member); /* it may have, before it went */
}

/* ---- saying how they differ ---- */

static void describe(const noted *call, char *text, size_t room)
{
    enum weft_coll_kind kind = kind_of(call->what);
    const char *name = weft_coll_name(kind);
    unsigned long long bytes = call->bytes;

    switch (kind) {
    case WEFT_COLL_BARRIER:
        snprintf(text, room, "%s", name);
        break;
    case WEFT_COLL_ALLREDUCE:
        snprintf(text, room, "%s of %llu bytes (each %u) by %s", name, bytes, size_of(call->what), weft_op_name(op_of(call->what)));
        break;
    case WEFT_COLL_REDUCE:
        snprintf(text, room, "%s of %llu bytes (each %u) by %s, root %u", name, bytes, size_of(call->what), weft_op_name(op_of(call->what)),
                 root_of(call->what));
        break;
    case WEFT_COLL_BCAST:
        snprintf(text, room, "%s of %llu bytes, root %u", name, bytes, root_of(call->what));
        break;
    case WEFT_COLL_GATHER:
    case WEFT_COLL_SCATTER:
        snprintf(text, room, "%s of %llu bytes a rank, root %u", name, bytes, root_of(call->what));
        break;
    default:
        snprintf(text, room, "%s of %llu bytes a rank", name, bytes);
    }
}

/* The first call in which we differ, of those that still stand; false: none of them. */
static bool first_difference(const weft_node *node, uint32_t member, uint64_t *n, noted *ours, noted *theirs)
{
    uint64_t last = last_common(node, member);

    for (*n = last >= WEFT_NODE_DEPTH ? last - WEFT_NODE_DEPTH + 1 : 1; *n <= last; ++*n)
        if (read_call(node, node->rank, *n, ours) && read_call(node, member, *n, theirs) &&
            (ours->what != theirs->what || ours->bytes != theirs->bytes))
            return true;
    return false;
}

/* What arrives here is longer than there is room for: the standard has a class for this. */
static bool is_cut(const weft_node *node, uint32_t member, uint64_t n, const noted *ours, const noted *theirs)
{
    enum weft_coll_kind kind = kind_of(ours->what);
    uint32_t from = weft_node_name(node, member), here = weft_node_name(node, node->rank), root = root_of(ours->what);

    if (n != node->calls || ours->what != theirs->what || theirs->bytes <= ours->bytes)
        return false;
    return kind == WEFT_COLL_BCAST || kind == WEFT_COLL_SCATTER ? from == root : kind == WEFT_COLL_GATHER && here == root;
}

static int say_difference(const weft_node *node, uint32_t member)
{
    noted ours, theirs;
    char here[100], there[100];
    uint64_t n;

    if (!first_difference(node, member, &n, &ours, &theirs))
        return WEFT_OK;
    describe(&ours, here, sizeof here);
    describe(&theirs, there, sizeof there);
    return weft_fail(is_cut(node, member, n, &ours, &theirs) ? WEFT_E_TRUNCATE : WEFT_E_NOT_SAME,
                     "rank %u called %s; rank %u called %s.\n"
                     "  All members must call the same collectives (this is blocking call %llu here), with equal counts, "
                     "roots and operators.",
                     weft_node_name(node, node->rank), here, weft_node_name(node, member), there, (unsigned long long)n);
}

static int say_gone(const weft_node *node, uint32_t member)
{
    char here[100] = "a collective";
    noted ours;

    if (read_call(node, node->rank, node->calls, &ours))
        describe(&ours, here, sizeof here);
    switch (atomic_load_explicit(&node->notes[member].gone, memory_order_acquire)) {
    case WEFT_NODE_LEFT:
        return weft_fail(WEFT_E_NOT_SAME, "rank %u called %s; rank %u has freed the communicator, or finalized MPI.",
                         weft_node_name(node, node->rank), here, weft_node_name(node, member));
    case WEFT_NODE_STOPPED:
        return weft_fail(WEFT_E_NOT_SAME, "rank %u called %s; rank %u makes no more collective calls here, after an error.",
                         weft_node_name(node, node->rank), here, weft_node_name(node, member));
    default:
        return weft_fail(WEFT_E_NOT_SAME, "rank %u called %s; rank %u made other collective calls before.",
                         weft_node_name(node, node->rank), here, weft_node_name(node, member));
    }
}

int weft_node_stop(weft_node *node, int rc)
{
    node->rc = rc;
    weft_node_go(node, WEFT_NODE_STOPPED);
    return rc;
}

int weft_node_differ(weft_node *node, uint32_t member)
{
    int rc = say_difference(node, member);

    for (uint32_t i = 0; i < node->ranks && !rc; i++) /* who stopped may have been right, as we are */
        if (i != node->rank && i != member)
            rc = say_difference(node, i);
    if (!rc)
        rc = say_gone(node, member);
    node->is_second = atomic_exchange_explicit(&node->head->stopped, 1, memory_order_relaxed) != 0;
    return weft_node_stop(node, rc);
}
