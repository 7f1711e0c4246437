/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm: the port and paths of the shared-memory transport, private to its folder and its tests.
 */
#ifndef WEFT_TRANSPORTS_SHM_SHM_H
#define WEFT_TRANSPORTS_SHM_SHM_H

#include "mem/segment.h"
#include "transport/port.h"
#include "transports/shm/bulk.h"
#include "transports/shm/ring.h"
#include "base/store.h"

#define WEFT_SHM_HOT_FEW 4 /* so many rings are always polled; beyond, silent ones are closed and ring the bell when they speak */

enum weft_cma_state { WEFT_CMA_UNKNOWN, WEFT_CMA_WORKS, WEFT_CMA_REFUSED };

typedef struct shm_path {
    weft_path path;
    uint32_t local;        /* the neighbour's index on the node */
    weft_rank_page *page;  /* the neighbour's */
    weft_ring_out out;     /* ring NULL: never sent */
    weft_ring_in in;       /* ring NULL: never received */
    weft_bulk *bulk;       /* the neighbour's chunks, mapped at the first long frame */
    weft_bulk_share share; /* of ours */
    uint32_t taken_before; /* in.taken when silence was last looked for */
    bool is_hot;
    bool is_lost;
    bool is_starved;       /* a frame was refused and none got through since */
    enum weft_cma_state cma;
} shm_path;

typedef struct shm_port {
    weft_port port;
    const weft_segment *segment;
    uint32_t local, ranks;
    weft_rank_page *page;
    weft_bulk_owner bulk;
    weft_store store;
    void *scratch;         /* a chunk's room at home, made at first use */
    uint32_t ring_flags;   /* what an open ring says: WEFT_RING_OPEN, and WEFT_RING_FENCE without membarrier */
    bool look_for_dead;
    bool wants_fd;         /* the owner sleeps on descriptors: chime rings instead of the futex */
    int chime;             /* mem/chime's descriptor, or -1 */
    uint32_t polls;
    uint32_t hot_count;
    shm_path **hot;        /* [ranks] rings that every poll looks at */
    shm_path **paths;      /* [ranks] by local index; NULL: not reached, or left */
    bool *has_left;        /* [ranks]: we have left it; what it may still say is its goodbye */
} shm_port;

/* shm.c, for the table in port.c: */
int weft_shm_arm(weft_port *port, weft_bell *bell);
void weft_shm_disarm(weft_port *port);
/* Opens the rings whose senders left a note; how many frames came. */
int weft_shm_greet(shm_port *shm, int budget);
int weft_shm_cool(shm_port *shm); /* how many of the closed ones turned out to hold news */

#endif
