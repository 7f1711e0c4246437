/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wakeup_sock: wakes a rank that sleeps in poll() on descriptors, which a futex cannot. The rank binds a datagram socket to an abstract
 * name and stores the name in its page; weft_segment_wake() then sends a byte instead of waking the futex. `asleep` is still the flag.
 * No wake-up is lost: a late byte ends the next sleep early, and a full queue is readable too. A foreign sender can only cause wake-ups.
 * Abstract names are per network namespace: a sender that cannot reach the socket sets chime_deaf, and the owner then polls in naps.
 */
#ifndef WEFT_MEM_WAKEUP_SOCK_H
#define WEFT_MEM_WAKEUP_SOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/segment.h"

#define WEFT_CHIME_NAP_NS 2000000u /* longest sleep of a rank without a usable socket */

/* Owner, awake: opens the socket; returns a descriptor that becomes readable at a wake-up, or -1 (no sockets: sleep in naps). */
int weft_wakeup_sock_open(weft_rank_page *page);
void weft_wakeup_sock_close(weft_rank_page *page, int fd);
/* Owner, awake: discards received bytes. */
void weft_wakeup_sock_drain(int fd);
/* True if a sender failed to reach the socket. */
static inline bool weft_wakeup_sock_is_deaf(const weft_rank_page *page)
{
    return atomic_load_explicit(&page->chime_deaf, memory_order_relaxed);
}

/* Wakes the owner of the page; `name` was read from it and is not 0. Any process of the node, any thread; does not block. */
void weft_wakeup_sock_ring(weft_rank_page *page, uint64_t name);

#endif
