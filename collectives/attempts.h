/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attempts: how long a nonblocking call may wait for the other members inside its start, so that it needs no schedule. A wait is short in
 * any case; one that does not end its call costs time for nothing, so after some of them only a few calls wait at all. Used by
 * sched_start.c (messages) and shmcoll_queue.c (node areas). Requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_ATTEMPTS_H
#define WEFT_COLLECTIVES_ATTEMPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

#define WEFT_ATTEMPTS_TRUST 16 /* waits after one that ended */
#define WEFT_ATTEMPTS_EVERY 32 /* after these, one call of so many waits; the others look once */
#define WEFT_ATTEMPTS_YIELDS 4 /* ranks share CPUs: yields of a wait. One runs the members of this CPU once */

/* All zero at first. Of this member: members may differ. */
typedef struct weft_attempts {
    uint32_t failed; /* waits and single looks that did not end, since a wait did */
    uint32_t credit; /* waits that may still fail before calls only look once */
} weft_attempts;

static inline bool weft_attempts_may_wait(const weft_attempts *attempts)
{
    return attempts->credit || attempts->failed % WEFT_ATTEMPTS_EVERY == 0;
}

static inline void weft_attempts_note(weft_attempts *attempts, bool has_ended)
{
    if (weft_likely(has_ended)) {
        *attempts = (weft_attempts){.credit = WEFT_ATTEMPTS_TRUST};
        return;
    }
    attempts->failed++;
    attempts->credit -= attempts->credit > 0;
}

#endif
