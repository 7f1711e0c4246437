/* SPDX-License-Identifier: BSD-3-Clause
 *
 * made_rank: one rank of three over a made-up iface, for harnesses that hand it frames: the iface accepts every frame and completes no get
 * or put. Frames come from rank 1 unless a harness says otherwise. Without shared memory and progress; a harness may add both.
 */
#ifndef WEFT_TEST_FUZZ_MADE_RANK_H
#define WEFT_TEST_FUZZ_MADE_RANK_H

#include <setjmp.h>

#include "core/world.h"
#include "p2p/chan.h"
#include "p2p/p2p.h"
#include "p2p/rndv_select.h"

enum { MADE_BYTES = 20000, MADE_FRAME_MAX = 4096, MADE_REQUESTS = 6, MADE_CHAN = 9 };

typedef struct made_rank {
    weft_iface iface;
    weft_ep ep;
    weft_boot boot;
    weft_sleep_ops sleep_ops;
    weft_world world;
    weft_worker worker;
    weft_peer peer, *peers[3];
    weft_rndv_stats stats;
    weft_chan chan; /* with id MADE_CHAN */
    weft_chan_slot slots[16];
    weft_group *group;
    weft_req *reqs[MADE_REQUESTS];
    char bufs[MADE_REQUESTS][2 * MADE_BYTES];
} made_rank;

extern jmp_buf made_rank_refused;    /* where the boot's abort goes */
extern weft_type *made_rank_strided; /* every second byte; lasts, as requests that never end hold it */

made_rank *made_rank_open(void);
/* Frees also messages and fragments that never end. */
void made_rank_close(made_rank *self);

#endif
