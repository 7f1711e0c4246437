/* SPDX-License-Identifier: BSD-3-Clause
 *
 * damage: shared by the runs of damage.c and the MPI programs of damage_mpi.c.
 */
#ifndef WEFT_TEST_SIM_DAMAGE_H
#define WEFT_TEST_SIM_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Observations of a run; all ranks are fibres of one thread. */
typedef struct damage {
    uint64_t seed;
    bool is_cut;      /* one rank of each call passes other counts; else the network flips bits */
    uint32_t arrived; /* ranks that have arrived at meetings */
    uint32_t calls, reported, wrong;
    uint32_t silent;  /* wrong results of calls that returned no error */
    uint32_t untrue;  /* errors of another class, or not reported to an error handler exactly once */
} damage;

typedef int damage_program(int rank, void *damage);
/* MPI programs: collectives while bits are flipped and afterwards; communicator creation while bits are flipped; a call that cannot be
 * performed. */
damage_program damage_calls, damage_making, damage_stopping;

#endif
