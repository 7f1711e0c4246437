/* SPDX-License-Identifier: BSD-3-Clause
 *
 * far: what the ranks of a node know of other nodes, in the segment's last part: who stands where, and the addresses that somebody here
 * has asked for. The launcher's process on the node (mpirun or its daemon) writes; a rank that wants an address that is not there yet
 * marks it and rings the launcher. All-zero but for the hdr is a valid start.
 * Layout: hdr | node of each rank | its index there | state of each address | which are wanted | a page per address.
 */
#ifndef WEFT_LAUNCH_FAR_H
#define WEFT_LAUNCH_FAR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/segment.h"

#define WEFT_FAR_MAGIC 0x46415221u

enum weft_far_state {
    WEFT_FAR_NONE,   /* nobody here has asked */
    WEFT_FAR_WANTED, /* asked; a futex */
    WEFT_FAR_TOLD,   /* there */
    WEFT_FAR_GONE,   /* never will be: the rank ended without telling */
};

typedef struct weft_far_hdr {
    uint32_t magic, size, nodes, node; /* ranks of the job; where we are */
    _Atomic uint64_t fenced; /* fences of the whole job that are passed; a futex on its low half */
    _Atomic uint32_t owed;   /* not 0: somebody elsewhere waits for an address of ours; who commits rings */
    uint64_t node_of, local_of, states, wanted, cards; /* offsets from this hdr */
    weft_rank_page wakeup;     /* of the launcher: chime and chime_deaf only */
} weft_far_hdr;

typedef struct weft_far_card {
    uint32_t bytes;
    char modex[WEFT_MODEX_CAPACITY];
} weft_far_card;

_Static_assert(sizeof(weft_far_card) <= WEFT_PAGE, "one page per address");

/* Bytes for a job of so many ranks, and how many of them are claimed at the start. */
uint64_t weft_far_bytes(uint32_t size);
uint64_t weft_far_front_bytes(uint32_t size);
/* Launcher: writes hdr and tables into a fresh view of the segment's extra part. */
void weft_far_make(weft_far_hdr *far, uint32_t size, uint32_t nodes, uint32_t node, const uint32_t *node_of, const uint32_t *local_of);
/* Whether a view of so many bytes holds one for such a job. */
bool weft_far_is_sound(const weft_far_hdr *far, uint64_t bytes, uint32_t size);

static inline void *weft_far_at(const weft_far_hdr *far, uint64_t offset)
{
    return (char *)far + offset;
}

static inline _Atomic uint32_t *weft_far_state(const weft_far_hdr *far, uint32_t rank)
{
    return (_Atomic uint32_t *)weft_far_at(far, far->states) + rank;
}

/* Bit r % 64 of word r / 64. */
static inline _Atomic uint64_t *weft_far_wanted(const weft_far_hdr *far)
{
    return weft_far_at(far, far->wanted);
}

static inline weft_far_card *weft_far_card_of(const weft_far_hdr *far, uint32_t rank)
{
    return weft_far_at(far, far->cards + (uint64_t)rank * WEFT_PAGE);
}

#endif
