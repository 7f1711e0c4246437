/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_probe: asks weft_boot_start who it is and prints the answer; the tests of test/launch run it under every launcher there
 * is. Each rank writes its number into every neighbour's page and reads its own: the segment is one, or the probe fails.
 *   boot_probe [MODE]    die: end without finish; abort: by the boot's abort; sleep: wait to be killed; late: come 5 s late on
 * rank 1; child: run ourselves once more, as a rank's child
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/status.h"
#include "launch/boot.h"

static void nap_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* Each rank counts itself into every page's probe_word; all must see all. */
static int neighbours_meet(weft_boot *boot)
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
    if (boot->has_segment && neighbours_meet(boot))
        return 4;
    if (!strcmp(mode, "die") && boot->rank == 0)
        return 0;
    if (!strcmp(mode, "abort")) {
        boot->ops->fence(boot); /* a rank that still boots would end for want of rank 0's word, and maybe first */
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
    boot->ops->finish(boot);
    return 0;
}
