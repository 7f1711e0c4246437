/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handout: one rank of a node gives the segment's descriptor to the others, under a launcher that is not ours. "On the same node"
 * is what the launcher says; here it is proven, by attaching.
 */
#ifndef WEFT_LAUNCH_HANDOUT_H
#define WEFT_LAUNCH_HANDOUT_H

#include <stddef.h>
#include <stdint.h>

#include "mem/segment.h"

#define WEFT_HANDOUT_KEY "weft.segment"

/* Travels through the launcher's key-value store, which only the job's processes can read. */
typedef struct weft_handout {
    uint64_t nonce[2];
    uint64_t members; /* hash of the node's ranks as the offering rank was told of them; 0: not compared */
    char path[108]; /* of a Unix socket */
} weft_handout;

/* Listens at a fresh name in `dir`. The descriptor, or an error (< 0). */
int weft_handout_open(const char *dir, uint64_t members, weft_handout *offer);
/* Serves `count` - 1 ranks (all of `ranks` but the first, by their index); returns when all have it. WEFT_E_TIMEOUT names who has
 * not come within the knob start_timeout_s. */
int weft_handout_serve(int fd, const weft_handout *offer, const weft_segment *segment, const uint32_t *ranks, uint32_t count);
/* Asks for it. `who` is for the text of an error. Other members than the offer's are an error: the launcher told the two differently. */
int weft_handout_fetch(const weft_handout *offer, size_t bytes, uint64_t members, uint32_t index, const char *who, weft_segment *segment);
/* Removes the name and closes. */
void weft_handout_close(int fd, const weft_handout *offer);

#endif
