/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_probe: prints the result of weft_boot_start; the tests of test/launch run it under every launcher. Each rank writes its number into
 * the page of every rank of its node and reads its own, so it fails unless they share one segment.
 *   boot_probe [MODE]    die: ends without finalize; abort: by the boot's abort; sleep: until killed; late: rank 1 starts 5 s late; child:
 * runs itself as a rank's child; addresses: all put an address and get all others; lazy: only rank 0 gets, the last one's; mute: rank 0
 * gets that of the last rank, which ends without a commit; stages: all learn from the launcher that rank 0 rests, returns, rests, has ended
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/status.h"
#include "launch/boot.h"
#include "launch/modex_cache.h"

static void nap_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Each rank counts itself into every page's probe_word; all must see all. */
static int neighbours_exchange(weft_boot *boot)
{
    for (uint32_t r = 0; r < boot->local_size; r++)
        atomic_fetch_add(&weft_segment_rank(&boot->segment, r)->probe_word, boot->local_rank + 1);
    uint64_t want = (uint64_t)boot->local_size * (boot->local_size + 1) / 2;
    for (int i = 0; i < 24000; i++) { /* two minutes: the others may start late on a slow machine */
        if (atomic_load(&weft_segment_rank(&boot->segment, boot->local_rank)->probe_word) == want)
            return 0;
        nap_ms(5);
    }
    printf("rank %u: the neighbours are not in one segment\n", boot->rank);
    return 1;
}

static void addr_fill(uint32_t rank, unsigned char *card, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        card[i] = (unsigned char)(rank * 31 + i * 7);
}

/* Gets an address twice: from the launcher, and from the modex cache. */
static int addr_check(weft_boot *boot, uint32_t rank)
{
    unsigned char want[300], got[400];

    addr_fill(rank, want, sizeof(want));
    for (int turn = 0; turn < 2; turn++) {
        size_t bytes = sizeof(got);
        int rc = boot->ops->get(boot, rank, "probe.card", got, &bytes);
        if (rc || bytes != sizeof(want) || memcmp(got, want, sizeof(want))) {
            printf("rank %u: the card of rank %u: %s\n", boot->rank, rank, rc ? weft_fail_text(rc) : "other bytes");
            return 7;
        }
    }
    return 0;
}

/* Number of addresses of other nodes that the node's segment holds as expected. */
static int fetched_count(weft_boot *boot)
{
    const weft_segment_hdr *hdr = boot->segment.hdr;
    int count = 0;
    void *view;

    if (!hdr->extra_bytes || weft_segment_view(&boot->segment, hdr->extra, hdr->extra_bytes, &view))
        return 0;
    for (uint32_t r = 0; r < boot->size; r++)
        count += atomic_load(weft_modex_state(view, r)) != WEFT_MODEX_NONE;
    weft_segment_drop(view, hdr->extra_bytes);
    return count;
}

static int addrs_exchange(weft_boot *boot, const char *mode)
{
    unsigned char card[300];
    bool is_mute = !strcmp(mode, "mute");
    int rc = 0;

    addr_fill(boot->rank, card, sizeof(card));
    if (is_mute && boot->rank == boot->size - 1)
        return 0;
    if (boot->ops->put(boot, "probe.card", card, sizeof(card)) || boot->ops->commit(boot))
        return 8;
    if (is_mute && boot->rank == 0) {
        size_t bytes = sizeof(card);
        rc = boot->ops->get(boot, boot->size - 1, "probe.card", card, &bytes);
        printf("mute: %s\n", rc ? weft_fail_text(rc) : "it has told");
    }
    if (is_mute)
        return 0;
    for (uint32_t r = 0; r < boot->size && !rc; r++)
        if (!strcmp(mode, "cards") || (boot->rank == 0 && r == boot->size - 1))
            rc = addr_check(boot, r);
    for (int turn = 0; turn < 3 && !rc; turn++)
        if ((rc = boot->ops->fence(boot)) != 0)
            printf("rank %u: fence %d: %s\n", boot->rank, turn, weft_fail_text(rc));
    printf("rank %u: %d cards from elsewhere\n", boot->rank, fetched_count(boot));
    return rc;
}

/* Rank 0 leaves at once; the others request its address, and must get an answer or an error in time. */
static int first_is_gone(weft_boot *boot)
{
    unsigned char card[300];
    size_t bytes = sizeof(card);

    addr_fill(boot->rank, card, sizeof(card));
    if (boot->ops->put(boot, "probe.card", card, sizeof(card)) || boot->ops->commit(boot))
        return 8;
    if (boot->rank == 0)
        return 0;
    nap_ms(1000);
    int rc = boot->ops->get(boot, 0, "probe.card", card, &bytes);
    printf("left: %s\n", rc ? weft_fail_text(rc) : "it was there");
    return 0;
}

/* Repeats the query until the launcher reports the stage `want`. */
static int stage_check(weft_boot *boot, uint32_t rank, int want)
{
    int got = boot->ops->stage(boot, rank, true);
    for (int turn = 1; got != want && turn < 2400; turn++) {
        nap_ms(5);
        got = boot->ops->stage(boot, rank, got >= 0);
    }
    if (got != want)
        printf("rank %u: rank %u has stage %d, not %d\n", boot->rank, rank, got, want);
    return got != want;
}

static int stages_tell(weft_boot *boot)
{
    static const uint32_t stages[] = {WEFT_RANK_INIT, WEFT_RANK_REST, WEFT_RANK_INIT, WEFT_RANK_REST};
    int rc = boot->ops->commit(boot);
    for (int i = 0; i < 4 && !rc; i++) {
        if (boot->rank == 0)
            boot->ops->set_stage(boot, stages[i]);
        rc = boot->ops->fence(boot);
        if (!rc)
            rc = stage_check(boot, 0, (int)stages[i]);
        if (!rc)
            rc = boot->ops->fence(boot);
    }
    if (boot->rank == 0) {
        fflush(stdout);
        _exit(rc != 0); /* at rest */
    }
    if (!rc)
        rc = stage_check(boot, 0, WEFT_RANK_FINAL);
    printf("rank %u: the stages are %s\n", boot->rank, rc ? "wrong" : "told");
    return rc;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    weft_boot *boot;

    weft_knobs_load(true);
    if (!strcmp(mode, "late") && getenv("PMIX_RANK") && atoi(getenv("PMIX_RANK")) == 1)
        nap_ms(5000);
    int rc = weft_boot_start(&boot);
    if (rc) {
        fprintf(stderr, "boot failed: %s\n", weft_fail_text(rc));
        return 3;
    }
    printf("%s: rank %u of %u, local %u of %u, node %u of %u, app %u, segment %s\n", boot->ops->name, boot->rank, boot->size,
           boot->local_rank, boot->local_size, boot->node, boot->nodes, boot->app, boot->has_segment ? "yes" : "no");
    fflush(stdout);
    if (boot->has_segment && neighbours_exchange(boot))
        return 4;
    if (!strcmp(mode, "cards") || !strcmp(mode, "lazy") || !strcmp(mode, "mute")) {
        rc = addrs_exchange(boot, mode);
        boot->ops->finalize(boot);
        return rc ? 9 : 0;
    }
    if (!strcmp(mode, "stages")) {
        rc = stages_tell(boot);
        boot->ops->finalize(boot);
        return rc ? 10 : 0;
    }
    if (!strcmp(mode, "left")) {
        rc = first_is_gone(boot);
        boot->ops->finalize(boot);
        return rc;
    }
    if (!strcmp(mode, "die") && boot->rank == 0)
        return 0;
    if (!strcmp(mode, "abort")) {
        boot->ops->fence(boot); /* a rank still in boot would fail without rank 0's commit, perhaps first */
        if (boot->rank == 0)
            boot->ops->abort(boot, 42, "the probe was told to");
    }
    if (!strcmp(mode, "child")) {
        char self[4096];
        ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
        self[length > 0 ? length : 0] = '\0';
        if (system(self))
            return 6;
    } else if (*mode && strcmp(mode, "late"))
        nap_ms(100000);
    rc = boot->ops->fence(boot);
    if (rc) {
        fprintf(stderr, "fence failed: %s\n", weft_fail_text(rc));
        return 5;
    }
    boot->ops->finalize(boot);
    return 0;
}
