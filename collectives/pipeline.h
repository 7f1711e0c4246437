/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pipeline: trees along which vectors move in segments. Called by bcast.c, reduce.c and scan.c.
 */
#ifndef WEFT_COLLECTIVES_PIPELINE_H
#define WEFT_COLLECTIVES_PIPELINE_H

#include "collectives/sched.h"

#define WEFT_PIPELINE_NONE UINT32_MAX

/* A rank's place in a tree. */
typedef struct weft_pipeline_node {
    uint32_t parent, lower, upper; /* WEFT_PIPELINE_NONE: none. lower, upper: children; in order, over ranks below and above this one */
} weft_pipeline_node;

/* root, root + 1 .., modulo size. */
weft_pipeline_node weft_pipeline_chain(uint32_t size, uint32_t rank, uint32_t root);
/* Two chains that meet at the root: of the ranks below it, and of those above it. */
weft_pipeline_node weft_pipeline_chain_in_order(uint32_t size, uint32_t rank, uint32_t root);
/* Binary tree of floor(log2(size)) levels below the root. */
weft_pipeline_node weft_pipeline_binary(uint32_t size, uint32_t rank, uint32_t root);
/* The same in rank order; a level more, at most, as each side of the root is a tree of its own. */
weft_pipeline_node weft_pipeline_binary_in_order(uint32_t size, uint32_t rank, uint32_t root);

/* Receives are posted for so many segments: the one that is awaited, and the next. */
#define WEFT_PIPELINE_AHEAD 2
/* Segments of a buffer that holds what is received, reduced and sent on: as many more are being sent. */
#define WEFT_PIPELINE_SLOTS (2 * WEFT_PIPELINE_AHEAD)

/* Elements of a segment of a vector: at least 1, and count if all are not more than that. */
uint64_t weft_pipeline_segment(const weft_sched *sched, uint64_t count, const weft_type *type);

#endif
