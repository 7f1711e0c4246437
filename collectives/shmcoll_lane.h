/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_lane: lanes of a node area. A persistent call that goes through slots gets lines and slots of its own, since its starts have no
 * order among those of other calls (MPI 5.0 6.13): a small area (shmcoll_area.h) in the memory that the communicator's area leaves free.
 * Its queue holds at most the one call. The members agree on the place when the call is made; member 0 chooses it, and takes it back when
 * all members have closed the lane. Called by coll.c; requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_LANE_H
#define WEFT_COLLECTIVES_SHMCOLL_LANE_H

#include "collectives/shmcoll_area.h"

/* Collective, blocks: performs an operation of the area, in which `call` is published for the check. No nonblocking call is under way
 * there. *lane: for this call, closed by weft_shmcoll_close(); NULL on all members if the area has no memory left, or one member has none.
 * Returns an error of the area. */
int weft_shmcoll_open_lane(weft_shmcoll *area, enum weft_coll_kind kind, const weft_coll *args, weft_call call, weft_shmcoll **lane);

#endif
