/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters: reports the iface's counters (WEFT_COUNTERS=1), by the worker's owner before the iface is closed; and RNR NAKs by the
 * devices' own counters, as the device resends those messages without a completion.
 * Invariant: names are in the order of enum verbs_print_counters.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "transports/verbs/verbs.h"

static const char *const names[] = {
    [VERBS_COUNT_POSTS] = "posts", [VERBS_COUNT_REQUESTS] = "work_requests", [VERBS_COUNT_COMPLETIONS] = "completions",
    [VERBS_COUNT_INLINE] = "inlined", [VERBS_COUNT_SIGNALLED] = "signalled", [VERBS_COUNT_RING_FRAMES] = "ring_frames",
    [VERBS_COUNT_BREAKS] = "breaks", [VERBS_COUNT_RESENT] = "frames_resent", [VERBS_COUNT_REPOSTED_FRAGS] = "fragments_reposted",
    [VERBS_COUNT_CONTROL] = "control_frames", [VERBS_COUNT_CONNECTS] = "connects", [VERBS_COUNT_DATAGRAMS] = "datagrams",
    [VERBS_COUNT_EVENTS] = "device_events", [VERBS_COUNT_EVICTIONS] = "connections_evicted",
    [VERBS_COUNT_IMMEDIATES] = "immediates", [VERBS_COUNT_MW_BINDS] = "mws_bound", [VERBS_COUNT_MW_LOST] = "mws_lost",
    [VERBS_COUNT_OWN_ATOMICS] = "own_atomics", [VERBS_COUNT_RELAXED] = "mrs_relaxed",
};
_Static_assert(weft_count(names) == VERBS_COUNT_LAST, "every count has a name");

uint64_t verbs_not_ready(const char *device, uint32_t port_num)
{
    static const char *const files[] = {"rnr_nak_retry_err" /* mlx5 */, "rcvd_rnr_err" /* rxe */};
    uint64_t count = 0;
    for (size_t i = 0; i < weft_count(files); i++) {
        char path[160];
        FILE *file;
        snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%" PRIu32 "/hw_counters/%s", device, port_num, files[i]);
        file = fopen(path, "re");
        if (file && fscanf(file, "%" SCNu64, &count) != 1)
            count = 0;
        if (file)
            fclose(file);
    }
    return count;
}

void verbs_counters_begin(verbs_iface *iface)
{
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        verbs_rail *rail = &iface->rails[i];
        rail->not_ready = verbs_not_ready(ibv_get_device_name(rail->context->device), rail->port_num);
    }
}

void verbs_counters(weft_iface *generic, void (*line)(void *arg, const char *text), void *arg)
{
    const verbs_iface *iface = (const verbs_iface *)generic;
    char text[1024];
    int n = 0;
    for (int i = 0; i < VERBS_COUNT_LAST; i++) {
        uint64_t count = __atomic_load_n(&iface->counts[i], __ATOMIC_RELAXED);
        if (count && n >= 0 && (size_t)n < sizeof text)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s %s %" PRIu64, n ? "," : "verbs:", names[i], count);
    }
    if (n > 0)
        line(arg, text);
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        const verbs_rail *rail = &iface->rails[i];
        uint64_t more = verbs_not_ready(ibv_get_device_name(rail->context->device), rail->port_num) - rail->not_ready;
        snprintf(text, sizeof text, "verbs: %s received %" PRIu64 " RNR NAKs (all users of the device)", rail->name, more);
        if (more)
            line(arg, text);
    }
}
