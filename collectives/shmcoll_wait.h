/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_wait: begins operations of a node area and waits for their posts. Called by shmcoll.c; requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_WAIT_H
#define WEFT_COLLECTIVES_SHMCOLL_WAIT_H

#include "collectives/shmcoll_area.h"

/* Begins the next operation and returns its number, or 0 on error (area->rc). is_writer: this member writes data in it. May block.
 * ahead: weft_shmcoll_ahead(). */
uint64_t weft_shmcoll_begin(weft_shmcoll *area, uint32_t ahead, bool is_writer);
/* The same in a scan that `ahead` operations of scans precede. may_wait: else it returns 0 with area->rc 0, as weft_shmcoll_try_begin. */
uint64_t weft_shmcoll_begin_relay(weft_shmcoll *area, uint32_t ahead, bool may_wait);
/* Blocks until `member`, a writer in s, has posted s. Returns an error if it is gone or its calls differ; then area->rc is set. */
int weft_shmcoll_await(weft_shmcoll *area, uint32_t member, uint64_t s);
/* The same for all members, all other ones being writers in s. */
int weft_shmcoll_await_all(weft_shmcoll *area, uint64_t s);

/* Nonblocking calls: the same without waiting. If they would have to wait, they set area->awaited, and begin returns 0 with area->rc 0, the
 * others WEFT_AGAIN; a member that sleeps then is woken by the post. */
uint64_t weft_shmcoll_try_begin(weft_shmcoll *area, uint32_t ahead, bool is_writer);
int weft_shmcoll_test(weft_shmcoll *area, uint32_t member, uint64_t s);
int weft_shmcoll_test_all(weft_shmcoll *area, uint64_t s);
/* After these, from time to time and before a sleep: looks for members that will never post area->awaited. 0, or the error as above. */
int weft_shmcoll_check_awaited(weft_shmcoll *area);

#endif
