/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abort_text: prints why a job ends, once per segment: ranks often fail for one reason at the same time, and the first (the leader)
 * prints for all. Called by the boots' abort operations and by weft_boot_abort_text().
 * Invariant: a text is always printed. No rank exits before the leader is done, as the launcher kills all when one exits; if the
 * leader hangs or died, another rank replaces it after PRINT_LIMIT_NS.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "launch/boot_internal.h"

#define PRINT_LIMIT_NS 8000000000u /* for one leader, which may get no CPU for seconds */
#define EXIT_DELAY_NS 100000000u /* delay of the other ranks' exit, so that the launcher sees the leader's first */
#define TEXT_PRINTED UINT32_MAX /* printed; else 0: no leader yet, or the leader's local rank + 1 */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* True: this rank is the leader and must print. False: another rank has printed. Waits for the leader. */
static bool print_claim(_Atomic uint32_t *printer, uint32_t leader)
{
    uint32_t seen = 0, seen_leader = 0;
    uint64_t deadline = 0;

    while (!atomic_compare_exchange_strong(printer, &seen, leader)) {
        if (seen == TEXT_PRINTED)
            return false;
        uint64_t now = weft_clock_ns();
        if (seen != seen_leader) {
            seen_leader = seen;
            deadline = now + PRINT_LIMIT_NS;
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
    _Atomic uint32_t *printer = &segment->hdr->spoken;

    if (!text || !*text)
        return;
    if (print_claim(printer, local + 1)) {
        weft_log_error("%s", text);
        atomic_store(printer, TEXT_PRINTED);
        return;
    }
    for (uint64_t until = weft_clock_ns() + EXIT_DELAY_NS; weft_clock_ns() < until;)
        nap();
}

void weft_abort_text_suppress(const weft_segment *segment)
{
    uint32_t none = 0;
    atomic_compare_exchange_strong(&segment->hdr->spoken, &none, TEXT_PRINTED);
}

void weft_boot_abort_text(const char *text)
{
    const char *from = getenv(WEFT_BOOT_ENV_NAME);
    weft_segment segment;
    weft_boot_env env;

    if (from && weft_boot_env_parse(from, &env) && !weft_boot_segment_reopen(&env, &segment))
        weft_abort_text_print(&segment, env.local, text); /* segment stays open: the process exits */
    else
        weft_log_error("%s", text);
}
