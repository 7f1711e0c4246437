/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_runs: programs of ranks over transports/verbs on simulated HCAs, and runs of them by seed. One run at a time per process.
 */
#ifndef WEFT_TEST_SIM_VERBS_RUNS_H
#define WEFT_TEST_SIM_VERBS_RUNS_H

#include "test/sim/verbs_net.h"

typedef struct verbs_program {
    const char *name;
    int (*what)(int rank, void *arg);
    bool is_rig;    /* below MPI: knobs are set directly, the argument is a traffic */
    bool withdraws; /* memory that others may be about to write, so that keys are refused, which breaks connections */
    bool asks;      /* waits for a rank that has ended: queries the launcher after each sleep; no wake-up comes */
    bool rests;     /* a rank that goes to rest closes its connections alone: its peers get errors */
    bool mixes;     /* some ranks have rdma_cm, and cannot rest */
} verbs_program;
extern const verbs_program verbs_programs[]; /* ends with name NULL */
/* The program whose name the text begins with; NULL: none. */
const verbs_program *verbs_program_find(const char *text);

typedef struct verbs_outcome {
    int rc;
    bool withdraws, asks, rests; /* of the program */
    uint32_t left;               /* objects not freed */
    uint64_t wrong;              /* registrations for relaxed ordering that must be ordered */
    uint32_t pending;            /* eps to the dead rank with operations in flight */
    weft_sim_report report;
    uint64_t counts[SIMHCA_COUNT_LAST];
    char waits[WEFT_IFACE_WAIT_BYTES]; /* the latest clause of callbacks.waits */
    uint32_t waiting;                  /* ranks that had one at the end */
} verbs_outcome;

extern bool verbs_keeps_registrations; /* also when no transfer uses them */

/* Sets the environment: protocols, registration and other knobs, by the seed. */
void verbs_choose_knobs(uint64_t seed, const simhca_profile *profile);
/* Do connections break at random? */
bool verbs_breaks(const simhca_profile *profile);
void verbs_run_rounds(const verbs_program *program, const simhca_profile *profile, weft_sim_config *config, uint32_t rounds,
                      verbs_outcome *out);
/* The program's usual number of rounds. */
uint32_t verbs_rounds(const verbs_program *program);
void verbs_run(const verbs_program *program, const simhca_profile *profile, weft_sim_config *config, verbs_outcome *out);
/* In a process of its own, with a planted fault or none: late writes of a faulty run can damage the heap. rc is 128 plus the signal that
 * ended the process, if one did. */
void verbs_run_apart(enum verbs_net_mutant what, const verbs_program *program, const simhca_profile *profile, weft_sim_config *config,
                     uint32_t rounds, verbs_outcome *out);
/* By names. */
verbs_outcome verbs_run_on(const simhca_profile *profile, const char *name, uint32_t ranks, uint64_t seed);
verbs_outcome verbs_run_one(const char *name, const char *profile, uint32_t ranks, uint64_t seed);

/* Did the run end well, without effects that its fabric and program do not have? */
bool verbs_is_good(const simhca_profile *profile, const verbs_outcome *out);
/* Prints the counts that are not zero. */
void verbs_show(const uint64_t *counts);

#endif
