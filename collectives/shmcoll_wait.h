/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_wait: begins operations of a node area and waits for their posts. Called by shmcoll.c; requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_WAIT_H
#define WEFT_COLLECTIVES_SHMCOLL_WAIT_H

#include "collectives/shmcoll_area.h"

/* Begins the next operation and returns its number, or 0 on error (area->rc). is_writer: this member writes data in it. May block. */
uint64_t weft_shmcoll_begin(weft_shmcoll *area, bool is_writer);
/* Blocks until `member`, a writer in s, has posted s. Returns an error if it is gone or its calls differ; then area->rc is set. */
int weft_shmcoll_await(weft_shmcoll *area, uint32_t member, uint64_t s);
/* The same for all members, all other ones being writers in s. */
int weft_shmcoll_await_all(weft_shmcoll *area, uint64_t s);

#endif
