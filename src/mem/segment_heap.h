/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_heap: blocks of any size out of a node's segment (mem/segment.h), for memory that ranks of the node share. The heap is sparse:
 * some times the machine's memory, or what the limit of file sizes leaves; its bytes are reserved when a block is taken. Any process of the
 * node, any thread; lock-free, so that a process that dies leaves nothing locked: at most the units that it was taking stay in use.
 */
#ifndef WEFT_MEM_SEGMENT_HEAP_H
#define WEFT_MEM_SEGMENT_HEAP_H

#include "mem/segment.h"

/* Takes a block of at least `bytes` (> 0), all zero, whose pages are reserved. *offset: from the segment's start, page-aligned.
 * WEFT_E_NOSPACE: the heap, or the node's memory, is full; nothing is taken. */
int weft_segment_heap_take(const weft_segment *segment, uint64_t bytes, uint64_t *offset);
/* Returns a block that no process maps any more, to the node's memory too. bytes: as taken. */
void weft_segment_heap_return(const weft_segment *segment, uint64_t offset, uint64_t bytes);
/* Largest block of an empty heap, bytes; 0: the segment has no heap. */
static inline uint64_t weft_segment_heap_bytes(const weft_segment *segment) { return segment->hdr->heap_bytes; }

#endif
