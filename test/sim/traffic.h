/* SPDX-License-Identifier: BSD-3-Clause
 *
 * traffic: programs for weft_sim_run: random messages, and collectives. See traffic.c and colls.c.
 */
#ifndef WEFT_TEST_SIM_TRAFFIC_H
#define WEFT_TEST_SIM_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct traffic {
    uint64_t seed;
    uint32_t rounds;
    bool has_few_states; /* memory for a few rendezvous only; no probes, which may wait for a message that its sender cannot announce */
} traffic;

int traffic_program(int rank, void *arg); /* arg: traffic */
/* After a run of traffic: frees what unfinished ranks still hold. */
void traffic_clear(void);
int colls_program(int rank, void *arg);
int calls_program(int rank, void *arg);

#endif
