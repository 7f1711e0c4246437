/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inquiry: finds calls that differ where no message shows it. A member whose wait has become long sends an inquiry (NOTIFY) to each member
 * that its collectives wait for; stop.c handles it there. Called by core/wait after a second, then after twice as long each time. Requires
 * worker->lock.
 * Invariant: between members whose calls are equal an inquiry changes nothing, so it may come late or not at all.
 */
#ifndef WEFT_COLLECTIVES_INQUIRY_H
#define WEFT_COLLECTIVES_INQUIRY_H

struct weft_chan;

/* chan->on_long_wait of a team's channel. */
void weft_inquiry_send(struct weft_chan *chan);

#endif
