/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_csum: what crosses the slots of a node area is checked from end to end (WEFT_CHECKSUM; if one member asks for it, all do).
 * Who writes a piece of its place sums it as it lies in the user's buffer; who reads that piece sums what landed in its own
 * buffer, or in the place, where a fold reads it there. Called by shmcoll.c.
 * Invariant: damage ends the call on the member that sees it, after its part in the operation: the others and the area go on.
 * Without sums (node->sums is NULL) this costs one branch for each piece.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_CSUM_H
#define WEFT_COLLECTIVES_SHMCOLL_CSUM_H

#include "collectives/sched.h"
#include "collectives/shmcoll_area.h"

struct weft_shmcoll_csum {
    uint32_t sum;
    uint32_t is_tainted; /* its writer made it out of damaged pieces */
};

/* A piece of what `member` writes in operation s: its index there, and the bytes [offset, offset + bytes) in pack order of count
 * elements of type at buf. */
typedef struct weft_shmcoll_piece {
    uint64_t s;
    uint32_t member, index;
    const weft_type *type;
    const void *buf;
    uint64_t count, offset, bytes;
} weft_shmcoll_piece;

/* How much of an area the sums take. */
uint64_t weft_shmcoll_csum_bytes(uint32_t ranks);
/* The writer's: before it posts. */
void weft_shmcoll_csum_write(weft_shmcoll *node, const weft_shmcoll_piece *piece);
/* Readers must not trust what we wrote. */
void weft_shmcoll_taint(weft_shmcoll *node, const weft_shmcoll_piece *piece);
/* The reader's. `at`: which byte of the member's vector (or of its block for us) the piece begins with, for the text. What is
 * wrong is told once for each call, and counted in node->damages. */
void weft_shmcoll_check(weft_shmcoll *node, const weft_shmcoll_piece *piece, uint64_t at);

#endif
