/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abort_text: the text that says why a job ends. Ranks often fail for one reason at the same moment; the first one speaks for all, so
 * that the reason stands once on the screen and not a thousand times. Called by the boots' aborts, and for processes without one.
 * Invariant: never no text. Nobody leaves before the speaker is through, since the launcher ends all when one has left; and when
 * the speaker is stuck or dead, another takes its place.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "launch/boot_internal.h"

#define PATIENCE_NS 8000000000u /* for one speaker, who may not get a CPU for seconds */
#define STAY_NS 100000000u      /* for the launcher, to hear of the speaker's end before ours */
#define SPOKEN UINT32_MAX       /* else: 0 nobody, or the speaker's local rank + 1 */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Whether we are to speak; if not, the text has been written by another. */
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
        weft_abort_text_print(&segment, word.local, text); /* ours to the end: the process is about to leave */
    else
        weft_log_error("%s", text);
}
