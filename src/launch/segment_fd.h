/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_fd: passes the segment's descriptor from the node's lowest rank to the others (SCM_RIGHTS), under a foreign launcher. Also
 * proves that ranks the launcher places on one node can share memory. Called by boot_pmi and boot_pmix. All calls block.
 */
#ifndef WEFT_LAUNCH_SEGMENT_FD_H
#define WEFT_LAUNCH_SEGMENT_FD_H

#include <stddef.h>
#include <stdint.h>

#include "mem/segment.h"

#define WEFT_SEGMENT_FD_KEY "weft.segment"

/* Value of WEFT_SEGMENT_FD_KEY in the launcher's key-value store, which only processes of the job can read. */
typedef struct weft_segment_fd {
    uint64_t nonce[2]; /* random; a request must repeat it */
    uint64_t members;  /* hash of the node's ranks as the serving rank knows them; 0 on both sides: unused */
    char path[108];    /* of a Unix socket */
} weft_segment_fd;

/* Listens at a new name in `dir` and fills `offer`. Returns the descriptor, or an error (< 0). */
int weft_segment_fd_open(const char *dir, uint64_t members, weft_segment_fd *offer);
/* Serves `count` - 1 ranks (all of `ranks` but the first, by index); returns when all have the descriptor. WEFT_E_TIMEOUT: the text
 * names the ranks missing after WEFT_START_TIMEOUT_S. */
int weft_segment_fd_serve(int fd, const weft_segment_fd *offer, const weft_segment *segment, const uint32_t *ranks, uint32_t count);
/* Fetches the descriptor and opens the segment. `peer`: the serving rank, for error texts. `members` must equal the offer's, else the
 * launcher has given the two ranks different lists. */
int weft_segment_fd_fetch(const weft_segment_fd *offer, size_t bytes, uint64_t members, uint32_t index, const char *peer,
                          weft_segment *segment);
/* Unlinks the name and closes fd. */
void weft_segment_fd_close(int fd, const weft_segment_fd *offer);

#endif
