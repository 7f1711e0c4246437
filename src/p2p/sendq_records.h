/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sendq_records: FIFO of the messages of a send queue (sendq.c), in blocks: tag, length and payload of a short message, or a pointer to a
 * request.
 */
#ifndef WEFT_P2P_SENDQ_RECORDS_H
#define WEFT_P2P_SENDQ_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "base/macros.h"
#include "core/req_type.h"
#include "mem/pool.h"

#define WEFT_RECORD_REQ UINT32_MAX
typedef struct weft_record {
    int32_t tag;
    uint32_t bytes; /* of the payload; WEFT_RECORD_REQ: the payload is a weft_req *, NULL if it was removed */
    uint64_t payload[];
} weft_record;

typedef struct weft_record_block {
    struct weft_record_block *next;
    uint32_t capacity, used; /* allocated bytes; used bytes including this header */
} weft_record_block;

/* All-zero: empty. */
typedef struct weft_records {
    weft_record_block *first, *last; /* NULL: no records */
    uint32_t at;                     /* offset of the oldest record in the first block, bytes */
} weft_records;

#define WEFT_RECORDS_BLOCK_FIRST 4096 /* bytes of the first block; of the next ones */
#define WEFT_RECORDS_BLOCK_NEXT WEFT_POOL_MAX

static inline uint32_t weft_record_bytes(uint32_t bytes)
{
    return (uint32_t)(sizeof(weft_record) + (bytes == WEFT_RECORD_REQ ? sizeof(weft_req *) : weft_round_up(bytes, sizeof(uint64_t))));
}

static inline weft_req **weft_record_req(weft_record *one) { return (weft_req **)one->payload; }

static inline weft_record *weft_record_at(const weft_record_block *block, uint32_t at) { return (weft_record *)((char *)block + at); }

/* The oldest record; there must be one. */
static inline weft_record *weft_records_front(const weft_records *self) { return weft_record_at(self->first, self->at); }

#define WEFT_RECORD_GONE INT32_MIN /* tag of a copy that has left; no message has it */

/* The record has left, or was removed. */
static inline void weft_record_set_gone(weft_record *one)
{
    if (one->bytes == WEFT_RECORD_REQ)
        *weft_record_req(one) = NULL;
    else
        one->tag = WEFT_RECORD_GONE;
}
static inline bool weft_record_is_gone(weft_record *one)
{
    return one->bytes == WEFT_RECORD_REQ ? !*weft_record_req(one) : one->tag == WEFT_RECORD_GONE;
}

/* The oldest record with one of the tags, among the oldest `most`; NULL: none. */
static inline weft_record *weft_records_find(const weft_records *self, const weft_bag *tags, int most)
{
    uint32_t at = self->at;
    for (weft_record_block *block = self->first; block; block = block->next, at = sizeof *block)
        for (; at < block->used && most; at += weft_record_bytes(weft_record_at(block, at)->bytes), most--)
            if (!weft_record_is_gone(weft_record_at(block, at)) && weft_bag_has(tags, weft_record_at(block, at)->tag))
                return weft_record_at(block, at);
    return NULL;
}

/* Appends space for a record; the caller sets its fields. NULL: out of memory. */
static inline weft_record *weft_records_append(weft_records *self, weft_pool *pool, uint32_t bytes)
{
    uint32_t need = weft_record_bytes(bytes);
    weft_record *one;
    if (!self->last || self->last->used + need > self->last->capacity) {
        uint32_t capacity = self->first ? WEFT_RECORDS_BLOCK_NEXT : WEFT_RECORDS_BLOCK_FIRST;
        weft_record_block *more = weft_pool_alloc(pool, capacity);
        if (!more)
            return NULL;
        *more = (weft_record_block){.capacity = capacity, .used = sizeof *more};
        if (self->last)
            self->last->next = more;
        else
            self->first = more, self->at = sizeof *more;
        self->last = more;
    }
    one = weft_record_at(self->last, self->last->used);
    self->last->used += need;
    return one;
}

static inline void weft_records_drop_front(weft_records *self, weft_pool *pool)
{
    weft_record_block *first = self->first;
    self->at += weft_record_bytes(weft_records_front(self)->bytes);
    if (self->at < first->used)
        return;
    self->first = first->next;
    self->at = sizeof *first;
    if (!self->first)
        self->last = NULL;
    weft_pool_free(pool, first, first->capacity);
}

#endif
