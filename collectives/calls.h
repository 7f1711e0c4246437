/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls: one member's call as weft_call: kind, form, count, root and operator, to compare calls of two members and describe them in errors.
 * Called by coll.c and stop.c (messages), and shmcoll_check.c (node areas).
 */
#ifndef WEFT_COLLECTIVES_CALLS_H
#define WEFT_COLLECTIVES_CALLS_H

#include "collectives/team.h"

const char *weft_coll_name(enum weft_coll_kind kind);
/* Only pairs of members know the counts (gatherv, scatterv, alltoallv, alltoallw, neighborhood collectives): no choice depends on them. */
static inline bool weft_coll_is_by_pairs(enum weft_coll_kind kind)
{
    return kind == WEFT_COLL_GATHERV || kind == WEFT_COLL_SCATTERV || kind == WEFT_COLL_ALLTOALLV || kind == WEFT_COLL_ALLTOALLW ||
           kind >= WEFT_COLL_NEIGHBOR_ALLGATHER;
}

/* Those of them that may go through slots (shmcoll_alltoallv.c). */
static inline bool weft_coll_is_alltoallv(enum weft_coll_kind kind) { return kind == WEFT_COLL_ALLTOALLV || kind == WEFT_COLL_ALLTOALLW; }

/* The kind has one algorithm (select.c). */
static inline bool weft_coll_has_one_rule(enum weft_coll_kind kind) { return weft_coll_is_by_pairs(kind) && !weft_coll_is_alltoallv(kind); }

/* Bytes by which rules are chosen, equal on all members: of the vector or buffer; in gather, scatter, allgather and alltoall, of one rank's
 * block; in allgatherv and reduce_scatter, of all; 0 where only pairs of members know it. */
static inline uint64_t weft_coll_bytes(enum weft_coll_kind kind, const weft_coll *args, bool is_root)
{
    if (kind == WEFT_COLL_BARRIER || weft_coll_is_by_pairs(kind))
        return 0;
    if ((kind == WEFT_COLL_GATHER && !is_root) || (kind == WEFT_COLL_SCATTER && is_root))
        return args->sendcount * (uint64_t)args->sendtype->size;
    return args->recvcount * (uint64_t)args->recvtype->size;
}

/* In place of a kind: a call that makes a communicator of an intercommunicator. Its steps are no schedules (mpi/exchange), but it has a
 * number, so that another call under that number is found; bytes: enum weft_call_maker. */
#define WEFT_CALL_MAKES 30u
enum weft_call_maker { WEFT_CALL_DUP, WEFT_CALL_CREATE, WEFT_CALL_SPLIT, WEFT_CALL_SPLIT_TYPE, WEFT_CALL_MERGE, WEFT_CALL_MAKERS };
const char *weft_call_maker_name(uint32_t maker);

enum weft_call_form { WEFT_CALL_BLOCKING, WEFT_CALL_NONBLOCKING, WEFT_CALL_PERSISTENT };
#define WEFT_CALL_FORM_SHIFT 5

#define WEFT_CALL_INTER 0x80u /* in weft_call.what: on an intercommunicator */

/* Of the bytes of each block, which all members must give alike. A layout without types. */
uint32_t weft_call_blocks_hash(const weft_layout *layout, const weft_type *type, uint32_t ranks);

static inline weft_call weft_call_of(enum weft_coll_kind kind, enum weft_call_form form, const weft_coll *args, uint64_t bytes)
{
    weft_call call = {(uint64_t)kind | (uint64_t)form << WEFT_CALL_FORM_SHIFT | (uint64_t)((uint32_t)args->root ^ args->blocks_hash) << 32,
                      bytes};

    if (args->op)
        call.what |= (uint64_t)args->op->handle << 8 | (uint64_t)(uint16_t)args->recvtype->size << 16;
    return call;
}

static inline weft_call weft_call_nonblocking(weft_call blocking)
{
    return (weft_call){blocking.what | (uint64_t)WEFT_CALL_NONBLOCKING << WEFT_CALL_FORM_SHIFT, blocking.bytes};
}

/* The same call with another root; `call` has root 0, and no hash of counts. */
static inline weft_call weft_call_rooted(weft_call call, int root)
{
    return (weft_call){call.what | (uint64_t)(uint32_t)root << 32, call.bytes};
}

/* On an intercommunicator. allgather and alltoall move other numbers of bytes in each direction: bytes are those that a rank of the first
 * group sends, and in place of the root (up to 4 GB) those of the second one. The root's group knows neither bytes nor operator. */
weft_call weft_call_of_inter(const weft_team *team, enum weft_coll_kind kind, enum weft_call_form form, const weft_coll *args);

static inline enum weft_coll_kind weft_call_kind(weft_call call) { return call.what & ((1u << WEFT_CALL_FORM_SHIFT) - 1); }
static inline uint32_t weft_call_root(weft_call call) { return (uint32_t)(call.what >> 32); }

/* Tag of schedule `number`, with a hash of the call. is_agreement: without it, for messages of weft_shmcoll_agree. */
static inline uint32_t weft_call_tag(weft_call call, uint32_t number, bool is_agreement)
{
    uint64_t mixed = is_agreement ? 0 : ((call.what ^ call.what >> 29) * 0x9E3779B97F4A7C15ull + call.bytes) * 0xD1B54A32D192ED03ull;
    return (number & WEFT_TAG_BITS) | (uint32_t)(mixed >> 56) << WEFT_TAG_HASH_SHIFT;
}

/* Truncates to `capacity` bytes. team, member: whose call it is; read on intercommunicators only. */
void weft_call_describe(const weft_team *team, uint32_t member, weft_call call, char *text, size_t capacity);
/* "rank 3"; on an intercommunicator its process too, since both groups have ranks. */
typedef struct weft_member_name {
    char text[64];
} weft_member_name;
weft_member_name weft_member_name_of(const weft_team *team, uint32_t member);
/* Both make the same call, but `remote` sends more than `local` can receive: MPI_ERR_TRUNCATE. `rank` makes local, `member` remote. */
bool weft_call_is_truncated(weft_call local, uint32_t rank, weft_call remote, uint32_t member);

#endif
