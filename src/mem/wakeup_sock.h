/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wakeup_sock: a rank page's doorbell for a rank that sleeps on descriptors: a futex cannot be polled together with them. The rank binds a
 * datagram socket to an abstract name and shows the name in its page; weft_segment_wake then sends a byte to it where it would
 * wake the futex. `asleep` stays the flag, so the order of stores and looks is that of the futex.
 * No wake-up is lost: a byte that comes late, after its sleep, stays readable and only ends the next sleep early; a full queue is
 * readable as well. Nothing but a wake-up can be had by sending to the name, so whoever finds it can at most keep us awake.
 * Abstract names end at the network namespace: who cannot send there marks the page, and its owner sleeps in naps from then on.
 */
#ifndef WEFT_MEM_WAKEUP_SOCK_H
#define WEFT_MEM_WAKEUP_SOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/segment.h"

#define WEFT_CHIME_NAP_NS 2000000u /* how long who cannot be rung may sleep */

/* Owner, awake: a descriptor that is readable once the page is rung, or -1 (nobody may make sockets here: nap). */
int weft_wakeup_sock_open(weft_rank_page *page);
void weft_wakeup_sock_close(weft_rank_page *page, int fd);
/* Owner, awake: forgets what rang. */
void weft_wakeup_sock_drain(int fd);
/* Has a neighbour failed to reach us? */
static inline bool weft_wakeup_sock_is_deaf(const weft_rank_page *page)
{
    return atomic_load_explicit(&page->chime_deaf, memory_order_relaxed);
}

/* Anybody, also the launcher, any thread: wakes the owner, whose page showed this name (not 0). */
void weft_wakeup_sock_ring(weft_rank_page *page, uint64_t name);

#endif
