/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calls: what a member calls, in few words, so that two members' calls can be compared and told in a text: kind, form, count, root, operator.
 * Called by shmcoll_check.c (calls through shared slots), coll.c and stop.c.
 */
#ifndef WEFT_COLLECTIVES_CALLS_H
#define WEFT_COLLECTIVES_CALLS_H

#include "collectives/select.h"

enum weft_call_form { WEFT_CALL_BLOCKING, WEFT_CALL_NONBLOCKING, WEFT_CALL_PERSISTENT };
#define WEFT_CALL_FORM_SHIFT 5

static inline weft_call weft_call_of(enum weft_coll_kind kind, enum weft_call_form form, const weft_coll *args, uint64_t bytes)
{
    weft_call call = {(uint64_t)kind | (uint64_t)form << WEFT_CALL_FORM_SHIFT | (uint64_t)(uint32_t)args->root << 32, bytes};

    if (args->op)
        call.what |= (uint64_t)args->op->handle << 8 | (uint64_t)(uint16_t)args->recvtype->size << 16;
    return call;
}

static inline enum weft_coll_kind weft_call_kind(weft_call call) { return call.what & ((1u << WEFT_CALL_FORM_SHIFT) - 1); }
static inline uint32_t weft_call_root(weft_call call) { return (uint32_t)(call.what >> 32); }

/* A tag for schedule `number`; is_agreement: of what the library itself agrees on before it looks at the call. */
static inline uint32_t weft_call_tag(weft_call call, uint32_t number, bool is_agreement)
{
    uint64_t mixed = is_agreement ? 0 : ((call.what ^ call.what >> 29) * 0x9E3779B97F4A7C15ull + call.bytes) * 0xD1B54A32D192ED03ull;
    return (number & WEFT_TAG_BITS) | (uint32_t)(mixed >> 56) << WEFT_TAG_HASH_SHIFT;
}

/* Cuts at `room`. */
void weft_call_describe(weft_call call, char *text, size_t room);
/* Of the same call on two members, `ours` has less room than arrives from `member`: the standard has a class for this. */
bool weft_call_is_cut(weft_call ours, uint32_t rank, weft_call theirs, uint32_t member);

#endif
