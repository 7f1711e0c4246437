/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regcost: cost of the first, second and third transfer from and into a buffer in each registration mode, in the virtual time of a
 * simulated device whose registrations, link and copies have a price (profile "priced"). A model, not a measurement: it compares modes for
 * known prices. The library's other work costs almost nothing in it, and the helper of mode async has its own CPU.
 *    regcost [PIN_NS PIN_PAGE_NS LINK_MB_PER_S COPY_MB_PER_S]
 * As a test: verifies how the modes compare.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "test/sim/rig.h"

enum { USES = 3, SIZES = 5, LARGEST = 16 << 20 };
static const uint64_t sizes[SIZES] = {64 << 10, 256 << 10, 1 << 20, 4 << 20, LARGEST};

typedef struct run {
    uint64_t began_ns, us[SIZES][USES];
    uint8_t *arenas[2];
} run;

/* An empty message in each direction: both ranks are here, and no transfer is in flight. */
static int meet(rig *rig)
{
    int other = 1 - rig->rank, rc = 0;
    for (int turn = 0; turn < 2 && !rc; turn++)
        rc = turn == rig->rank ? weft_send(rig->chan, other, 1, NULL, 0, rig_type(RIG_BYTE), WEFT_SEND_STANDARD)
                                : weft_recv(rig->chan, other, 1, NULL, 0, rig_type(RIG_BYTE), NULL);
    return rc;
}

static int transfer(rig *rig, run *run, uint64_t at, int size, int use)
{
    uint8_t *buf = run->arenas[rig->rank] + at;
    uint64_t name = at + (uint64_t)use;
    if (rig->rank == 0) {
        rig_fill(buf, name, sizes[size]);
        run->began_ns = weft_sim_run_ns();
        return weft_send(rig->chan, 1, 2, buf, sizes[size], rig_type(RIG_BYTE), WEFT_SEND_STANDARD);
    }
    int rc = weft_recv(rig->chan, 0, 2, buf, sizes[size], rig_type(RIG_BYTE), NULL);
    run->us[size][use] = (weft_sim_run_ns() - run->began_ns) / 1000;
    if (!rc && rig_wrong(buf, name, sizes[size]) != sizes[size])
        rc = rig_fail(rig, "wrong bytes");
    return rc;
}

static int program(int rank, void *arg)
{
    run *run = arg;
    rig rig;
    uint64_t at = 0;
    int rc = rig_open(&rig, 1);
    (void)rank;
    for (int size = 0; size < SIZES && !rc; size++) {
        for (int use = 0; use < USES && !rc; use++) {
            rc = meet(&rig);
            rc = rc ? rc : transfer(&rig, run, at, size, use);
        }
        at += sizes[size] + 4096;
    }
    rc = rc ? rc : meet(&rig);
    return rc ? rig_fail(&rig, "%s", weft_fail_text(rc)) : rig_close(&rig);
}

static int measure(const weft_sim_profile *profile, int mode, int scheme, run *run)
{
    weft_sim_config config = {.ranks = 2, .seed = 1, .profile = profile};
    weft_knobs_load(false);
    weft_knob.reg_mode = mode;
    weft_knob.rndv_scheme = scheme;
    weft_knob.regcache_max_size = 1u << 30;
    return weft_sim_run(&config, program, run);
}

static const struct {
    const char *name;
    int mode;
} modes[] = {{"sync", WEFT_REG_MODE_SYNC}, {"pipeline", WEFT_REG_MODE_PIPELINE}, {"async", WEFT_REG_MODE_ASYNC},
             {"never", WEFT_REG_MODE_NEVER}};
enum { NOW, PIPELINE, BEHIND, NEVER, WAYS };

static bool expect(bool is_so, const char *what)
{
    if (!is_so)
        printf("not so: %s\n", what);
    return is_so;
}

/* Transfers of 16 MiB by each protocol: compares the modes. */
static bool judge(run runs[WAYS])
{
    const uint64_t *now = runs[NOW].us[SIZES - 1], *pipeline = runs[PIPELINE].us[SIZES - 1];
    const uint64_t *behind = runs[BEHIND].us[SIZES - 1], *never = runs[NEVER].us[SIZES - 1];
    bool ok = expect(now[1] < now[0] && now[1] < never[1], "the second use of a pinned buffer is the cheapest");
    ok &= expect(pipeline[0] < now[0], "pinning while bytes move costs less than pinning first");
    ok &= expect(10 * pipeline[0] < 12 * pipeline[1], "pinned chunk by chunk, a page is pinned once");
    ok &= expect(behind[1] < behind[0] || behind[2] < behind[0], "what was pinned behind is used later");
    return ok & expect(never[0] == never[2] || 10 * never[0] > 9 * never[2], "without pins no use is cheaper than another");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int scheme;
    } protocols[] = {{"get", WEFT_RNDV_SCHEME_GET}, {"put", WEFT_RNDV_SCHEME_PUT}};
    static run runs[WAYS];
    weft_sim_profile profile = *weft_sim_profile_find("priced");
    bool ok = true;
    if (argc == 5) {
        profile.pin_ns = (uint32_t)atoi(argv[1]);
        profile.pin_page_ns = (uint32_t)atoi(argv[2]);
        profile.link_mbyte_per_s = (uint32_t)atoi(argv[3]);
        profile.copy_mbyte_per_s = (uint32_t)atoi(argv[4]);
    }
    for (int rank = 0; rank < 2; rank++)
        runs[0].arenas[rank] = aligned_alloc(4096, 2 * LARGEST);
    printf("a region %u ns, a page of it %u ns, link %u MB/s, copies %u MB/s; us of the first, second, third use\n",
           profile.pin_ns, profile.pin_page_ns, profile.link_mbyte_per_s, profile.copy_mbyte_per_s);
    for (int r = 0; r < 2; r++) {
        for (int w = 0; w < WAYS; w++) {
            memcpy(runs[w].arenas, runs[0].arenas, sizeof runs[0].arenas);
            if (measure(&profile, modes[w].mode, protocols[r].scheme, &runs[w]))
                return 1;
            printf("%s %-9s", protocols[r].name, modes[w].name);
            for (int s = 0; s < SIZES; s++)
                printf("  %5u KiB: %5u %5u %5u", (unsigned)(sizes[s] >> 10), (unsigned)runs[w].us[s][0],
                       (unsigned)runs[w].us[s][1], (unsigned)runs[w].us[s][2]);
            printf("\n");
        }
        ok &= argc == 5 || judge(runs);
    }
    free(runs[0].arenas[0]);
    free(runs[0].arenas[1]);
    return !ok;
}
