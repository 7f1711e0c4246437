/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rig: shared by runs of the whole library: a world over the simulator's boot with two channels, and message patterns that identify their
 * message, so that a misplaced byte shows its origin.
 */
#ifndef WEFT_TEST_SIM_RIG_H
#define WEFT_TEST_SIM_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "collectives/coll.h"
#include "collectives/sched.h"
#include "core/world.h"
#include "p2p/p2p.h"
#include "test/transports/sim/sim.h"

#define RIG_BYTE 0x247 /* MPI_BYTE, MPI_INT64_T and MPI_SUM of the standard ABI */

typedef struct rig {
    int rank, size;
    weft_world *world;
    weft_chan *chan; /* messages of the test */
    weft_team team;  /* collectives, on a channel of their own */
    uint64_t random;
} rig;

/* Opens this rank's world. A nonzero result is a failure of the run. */
int rig_open(rig *rig, uint64_t seed);
int rig_close(rig *rig);
/* The same after a rest, as a process does whose transports allow that. */
int rig_rest_and_close(rig *rig);
int rig_barrier(rig *rig);
const weft_type *rig_type(uint32_t handle);
uint64_t rig_random(uint64_t *state);

void rig_fill(uint8_t *to, uint64_t name, uint64_t bytes);
/* Returns the offset of the first wrong byte, or bytes if none. */
uint64_t rig_wrong(const uint8_t *at, uint64_t name, uint64_t bytes);

/* Number of messages with wrong bytes or in the wrong place, counted by rig_fail_wrong. */
extern uint32_t rig_wrongs;
int rig_fail_wrong(const rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the place; returns 1, for `return rig_fail(...)`. */
int rig_fail(const rig *rig, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Around runs that must fail: suppresses stderr and the leak checker, for ranks that fail or end early. */
int rig_mute(void);
void rig_unmute(int kept);

#endif
