/* SPDX-License-Identifier: BSD-3-Clause
 *
 * damage: what the runs of damage.c and the MPI programs of damage_mpi.c share.
 */
#ifndef WEFT_TEST_SIM_DAMAGE_H
#define WEFT_TEST_SIM_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

/* What a run saw; all ranks are fibres of one thread. */
typedef struct damage {
    uint64_t seed;
    bool is_cut;      /* one rank of each call asks for other counts; else the network flips bits */
    uint32_t arrived; /* at the meetings of all ranks */
    uint32_t calls, told, wrong;
    uint32_t silent;  /* results that are wrong, of calls that said nothing */
    uint32_t untrue;  /* errors that are not those of damage, or told to an error handler not once */
} damage;

typedef int damage_program(int rank, void *damage);
/* MPI programs: collectives under flips and after them; the making of communicators under flips; a call that cannot be done. */
damage_program damage_calls, damage_making, damage_stopping;

#endif
