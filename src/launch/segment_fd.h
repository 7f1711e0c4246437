/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_fd: one rank of a node gives the segment's descriptor to the others, under a launcher that is not ours. "On the same node"
 * is what the launcher says; here it is proven, by attaching.
 */
#ifndef WEFT_LAUNCH_SEGMENT_FD_H
#define WEFT_LAUNCH_SEGMENT_FD_H

#include <stddef.h>
#include <stdint.h>

#include "mem/segment.h"

#define WEFT_HANDOUT_KEY "weft.segment"

/* Travels through the launcher's key-value store, which only the job's processes can read. */
typedef struct weft_segment_fd {
    uint64_t nonce[2];
    uint64_t members; /* hash of the node's ranks as the offering rank was told of them; 0: not compared */
    char path[108]; /* of a Unix socket */
} weft_segment_fd;

/* Listens at a fresh name in `dir`. The descriptor, or an error (< 0). */
int weft_segment_fd_open(const char *dir, uint64_t members, weft_segment_fd *offer);
/* Serves `count` - 1 ranks (all of `ranks` but the first, by their index); returns when all have it. WEFT_E_TIMEOUT names who has
 * not come within the knob start_timeout_s. */
int weft_segment_fd_serve(int fd, const weft_segment_fd *offer, const weft_segment *segment, const uint32_t *ranks, uint32_t count);
/* Asks for it. `who` is for the text of an error. Other members than the offer's are an error: the launcher told the two differently. */
int weft_segment_fd_fetch(const weft_segment_fd *offer, size_t bytes, uint64_t members, uint32_t index, const char *who, weft_segment *segment);
/* Removes the name and closes. */
void weft_segment_fd_close(int fd, const weft_segment_fd *offer);

#endif
