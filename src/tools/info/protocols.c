/* SPDX-License-Identifier: BSD-3-Clause
 *
 * protocols: two ranks on one communication context of a world, without the MPI layer. Called by weft-info's main.
 * Invariant: both ranks do the same transfers in the same order, so neither deadlocks.
 */
#include "tools/info/protocols.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "p2p/chan.h"
#include "p2p/dispatch.h"
#include "p2p/p2p.h"
#include "p2p/rndv_select.h"

#define LARGEST (16u << 20)
#define TIMES 12 /* transfers of each size: each protocol is tried about three times at first use */
#define BYTE_HANDLE 0x247 /* MPI_BYTE in the standard ABI */

int protocols_start(void)
{
    char self[PATH_MAX], mpirun[PATH_MAX + 16];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = 0;
    const char *slash = strrchr(self, '/');
    snprintf(mpirun, sizeof(mpirun), "%.*s/mpirun", slash ? (int)(slash - self) : 0, self);
    execl(mpirun, mpirun, "-n", "2", self, "--protocols-rank", (char *)NULL);
    fprintf(stderr, "weft-info: cannot start %s: %s. --protocols needs the mpirun of the same installation\n", mpirun, strerror(errno));
    return 1;
}

/* One message each way; the reply keeps the ranks in step. */
static int exchange(weft_chan *chan, uint32_t rank, char *buffer, uint64_t bytes)
{
    const weft_type *type = weft_type_of((void *)(uintptr_t)BYTE_HANDLE);
    weft_recv_info found;
    for (uint32_t turn = 0; turn < 2; turn++) {
        int rc = turn == rank ? weft_send(chan, (int)!rank, 0, buffer, bytes, type, WEFT_SEND_STANDARD)
                              : weft_recv(chan, (int)!rank, 0, buffer, bytes, type, &found);
        if (rc)
            return rc;
    }
    return 0;
}

static int measure(weft_world *world, uint32_t rank)
{
    weft_chan *chan;
    weft_peer *peer;
    char *buffer = malloc(LARGEST);
    int rc = WEFT_E_NOMEM;
    if (!buffer)
        return weft_fail(rc, "no memory for messages of %u bytes", LARGEST);
    memset(buffer, 1, LARGEST);
    rc = weft_chan_open(world->workers[0], NULL, rank, 0, &chan);
    if (rc)
        goto undo_buffer;
    rc = weft_chan_connect(chan, (const uint32_t[]){chan->id, chan->id});
    for (uint64_t bytes = 4096; bytes <= LARGEST && rc == 0; bytes *= 2)
        for (int i = 0; i < TIMES && rc == 0; i++)
            rc = exchange(chan, rank, buffer, bytes);
    if (rc == 0)
        rc = weft_chan_resolve_peer(chan, !rank, &peer);
    if (rc == 0 && rank == 0) {
        static char text[8192];
        weft_rndv_stats_show(peer->rndv_stats, peer, text, sizeof(text));
        printf("protocols between two ranks of this machine, measured now (the fastest is selected)\n"
               " up to bytes  protocol and measured rates\n%s", text);
    }
    weft_chan_close(chan);
undo_buffer:
    free(buffer);
    return rc;
}

int protocols_rank(void)
{
    weft_boot *boot;
    weft_world *world;
    weft_knobs_load(false);
    int rc = weft_boot_start(&boot);
    if (rc == 0 && boot->size != 2) {
        boot->ops->finalize(boot);
        fputs("weft-info: --protocols-rank is internal; use weft-info --protocols\n", stderr);
        return 2;
    }
    uint32_t rank = rc ? 0 : boot->rank;
    rc = rc ? rc : weft_p2p_open(boot, 0, &world);
    if (rc == 0) {
        rc = measure(world, rank);
        int closed = weft_world_close(world);
        rc = rc ? rc : closed;
    }
    if (rc)
        weft_log_error("--protocols: the measurement failed: %s", weft_fail_text(rc));
    fflush(stdout);
    return rc ? 1 : 0;
}
