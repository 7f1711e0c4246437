/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abort_text: prints why a job ends, once per segment: ranks often fail for one reason at the same time, and the first (the leader)
 * prints for all. Called by the boots' abort operations and by weft_boot_abort_text().
 * Invariant: a text is always printed. No rank exits before the leader is done, as the launcher kills all when one exits; if the
 * leader hangs or died, another rank replaces it after PATIENCE_NS.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "launch/boot_internal.h"

#define PATIENCE_NS 8000000000u /* for one leader, which may get no CPU for seconds */
#define STAY_NS 100000000u      /* delay of the other ranks' exit, so that the launcher sees the leader's first */
#define SPOKEN UINT32_MAX       /* printed; else 0: no leader yet, or the leader's local rank + 1 */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* True: this rank is the leader and must print. False: another rank has printed. Waits for the leader. */
static bool floor_take(_Atomic uint32_t *spoken, uint32_t mine)
{
    uint32_t seen = 0, speaker = 0;
    uint64_t deadline = 0;

    while (!atomic_compare_exchange_strong(spoken, &seen, mine)) {
        if (seen == SPOKEN)
            return false;
        uint64_t now = weft_clock_ns();
        if (seen != speaker) {
            speaker = seen;
            deadline = now + PATIENCE_NS;
        }
        if (now < deadline) {
            nap();
            seen = 0;
        }
    }
    return true;
}

void weft_abort_text_print(const weft_segment *segment, uint32_t local, const char *text)
{
    _Atomic uint32_t *spoken = &segment->hdr->spoken;

    if (!text || !*text)
        return;
    if (floor_take(spoken, local + 1)) {
        weft_log_error("%s", text);
        atomic_store(spoken, SPOKEN);
        return;
    }
    for (uint64_t until = weft_clock_ns() + STAY_NS; weft_clock_ns() < until;)
        nap();
}

void weft_abort_text_suppress(const weft_segment *segment)
{
    uint32_t nobody = 0;
    atomic_compare_exchange_strong(&segment->hdr->spoken, &nobody, SPOKEN);
}

void weft_boot_abort_text(const char *text)
{
    const char *from = getenv(WEFT_WORD_NAME);
    weft_segment segment;
    weft_boot_env word;

    if (from && weft_boot_env_parse(from, &word) && !weft_boot_segment_again(&word, &segment))
        weft_abort_text_print(&segment, word.local, text); /* segment stays open: the process exits */
    else
        weft_log_error("%s", text);
}
