/* SPDX-License-Identifier: BSD-3-Clause
 *
 * waits: see waits.h. A rank shows what it waits for when it begins to wait long (core/wait.c); it shows nothing while it computes.
 */
#include "tools/mpirun/waits.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/macros.h"
#include "tools/mpirun/options.h"

#define LINES_MOST 3

static const char *const whys[] = {
    [WEFT_WHY_NONE] = "something", [WEFT_WHY_SEND] = "a send to", [WEFT_WHY_RECV] = "a receive from", [WEFT_WHY_PROBE] = "a probe for",
    [WEFT_WHY_REQUESTS] = "requests with", [WEFT_WHY_COLLECTIVE] = "a collective, for", [WEFT_WHY_FINALIZE] = "MPI_Finalize",
    [WEFT_WHY_LAUNCH] = "start-up",
};

/* "rank 3 (of its communicator), tag 42" as far as it applies. */
static void describe_peer(const weft_page_status *status, uint32_t why, char *text, size_t room)
{
    int32_t peer = atomic_load_explicit(&status->peer, memory_order_relaxed), tag = atomic_load_explicit(&status->tag, memory_order_relaxed);
    int n;

    *text = 0;
    if (why == WEFT_WHY_FINALIZE || why == WEFT_WHY_LAUNCH)
        return;
    n = peer >= 0 ? snprintf(text, room, " rank %d", peer) : snprintf(text, room, why == WEFT_WHY_COLLECTIVE ? " all" : " any rank");
    if (why == WEFT_WHY_COLLECTIVE || n < 0 || (size_t)n >= room)
        return;
    if (tag == WEFT_STATUS_ANY_TAG)
        snprintf(text + n, room - (size_t)n, ", any tag");
    else
        snprintf(text + n, room - (size_t)n, ", tag %d", tag);
}

void waits_tell(const node *node)
{
    uint32_t waiting = 0, busy = 0;
    uint64_t now = weft_clock_ns();

    for (uint32_t i = 0; i < node->count; i++) {
        const weft_rank_page *page = weft_segment_rank(&node->segment, i);
        uint64_t since = atomic_load_explicit(&page->status.since_ns, memory_order_acquire);
        uint32_t why = atomic_load_explicit(&page->status.why, memory_order_relaxed);
        char peer[80];

        if (atomic_load_explicit(&page->state, memory_order_relaxed) != WEFT_RANK_INIT || !since || why >= weft_count(whys)) {
            busy++;
            continue;
        }
        if (waiting++ >= LINES_MOST)
            continue;
        describe_peer(&page->status, why, peer, sizeof peer);
        complain(0, "  rank %u waits in %s%s since %.1f s", node->ranks[i].rank, whys[why], peer, (double)(now - since) * 1e-9);
    }
    if (waiting > LINES_MOST || (waiting && busy))
        complain(0, "  %u more wait in MPI, %u do not", waiting > LINES_MOST ? waiting - LINES_MOST : 0, busy);
}
