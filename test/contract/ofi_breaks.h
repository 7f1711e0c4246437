/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi_breaks: tests of TCP connections that are reset while both ends live.
 */
#ifndef WEFT_TEST_CONTRACT_OFI_BREAKS_H
#define WEFT_TEST_CONTRACT_OFI_BREAKS_H

#include "test/contract/rig.h"

/* Random frames in both directions, gets and puts, while random connections of this process are reset: all arrive once, in order. Returns
 * the number of messages that were sent again. */
uint64_t breaks_random(const rig_row *row, uint64_t seed);
/* A put ends though the connection is reset whenever more than a few KiB of it are under way. */
void breaks_long_fragments(const rig_row *row);
/* Only frames that complete at once were under way, and nothing is sent after the reset. */
void breaks_last_frame(const rig_row *row);
/* The reset hits the frames before a close. */
void breaks_before_close(const rig_row *row);
/* A body sent without copy is given back though the peer does not poll, and arrives unchanged after a reset. */
void breaks_late_copy(const rig_row *row);

#endif
