/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_csum: see shmcoll_csum.h.
 */
#include "collectives/shmcoll_csum.h"

#include <stdio.h>

#include "base/crc.h"
#include "base/status.h"
#include "collectives/calls.h"
#include "type/pack.h"

#define PIECE 2048 /* bytes packed at a time, on the stack */

static struct weft_shmcoll_csum *sum_of(const weft_shmcoll *node, const weft_shmcoll_piece *piece)
{
    return &node->sums[((uint64_t)piece->member * WEFT_SHMCOLL_DEPTH + piece->s % WEFT_SHMCOLL_DEPTH) * node->ranks + piece->index];
}

static uint32_t sum_up(const weft_shmcoll_piece *piece)
{
    uint8_t packed[PIECE];
    uint32_t sum = 0;

    if (piece->type->is_dense)
        return weft_crc32c(0, (const char *)piece->buf + piece->offset, piece->bytes);
    for (uint64_t at = 0; at < piece->bytes; at += PIECE) {
        uint64_t here = piece->bytes - at < PIECE ? piece->bytes - at : PIECE;
        weft_pack(piece->type, piece->buf, piece->count, piece->offset + at, here, packed);
        sum = weft_crc32c(sum, packed, here);
    }
    return sum;
}

void weft_shmcoll_csum_write(weft_shmcoll *node, const weft_shmcoll_piece *piece)
{
    *sum_of(node, piece) = (struct weft_shmcoll_csum){.sum = sum_up(piece), .is_tainted = node->is_tainted};
}

void weft_shmcoll_taint(weft_shmcoll *node, const weft_shmcoll_piece *piece) { sum_of(node, piece)->is_tainted = 1; }

static void say_where(char *text, size_t room, uint32_t difference, uint64_t at, uint64_t bytes)
{
    uint64_t bit;

    if (!weft_crc32c_find_bit(difference, bytes, &bit))
        snprintf(text, room, "more than one bit is wrong, somewhere in its bytes %llu to %llu", (unsigned long long)at,
                 (unsigned long long)(at + bytes) - 1);
    else if (bit >= 8 * bytes)
        snprintf(text, room, "the sum itself is wrong, the data is as it was sent");
    else
        snprintf(text, room, "bit %d of its byte %llu is wrong", (int)(bit % 8), (unsigned long long)(at + bit / 8));
}

void weft_shmcoll_check(weft_shmcoll *node, const weft_shmcoll_piece *piece, uint64_t at)
{
    const struct weft_shmcoll_csum *written = sum_of(node, piece);
    uint32_t got = piece->bytes ? sum_up(piece) : written->sum;
    char where[100];

    if (weft_likely(got == written->sum && !written->is_tainted))
        return;
    node->damages++;
    if (node->damage)
        return;
    if (got == written->sum)
        snprintf(where, sizeof where, "it was damaged before rank %u folded it", weft_shmcoll_name(node, piece->member));
    else
        say_where(where, sizeof where, written->sum ^ got, at, piece->bytes);
    node->damage = weft_fail(WEFT_E_CORRUPT,
                             "what rank %u gave in %s, root %u, was damaged on its way to rank %u: %s.\n"
                             "(operation %llu of this node's shared slots; CRC32C %08x written, %08x read)\n"
                             "Memory fails, or that rank changed its buffer before its call was over.",
                             weft_shmcoll_name(node, piece->member), weft_coll_name(node->kind),
                             weft_shmcoll_name(node, (uint32_t)node->root),
                             weft_shmcoll_name(node, node->rank), where,
                             (unsigned long long)piece->s, written->sum, got);
}
