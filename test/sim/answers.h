/* SPDX-License-Identifier: BSD-3-Clause
 *
 * answers: input and expected output of a collective on every rank, computed for each element independently of the library.
 */
#ifndef WEFT_TEST_SIM_ANSWERS_H
#define WEFT_TEST_SIM_ANSWERS_H

#include "test/sim/rig.h"

#define ANSWERS_INT64 0x258 /* MPI_INT64_T and MPI_SUM of the standard ABI */
#define ANSWERS_SUM 0x21
/* Kinds with answers: not reduce_scatter, and of the v-forms equal blocks without a layout. test/random has the others. */
enum { ANSWERS_KINDS = WEFT_COLL_REDUCE_SCATTER_BLOCK };

/* One collective call, the same on every rank. */
typedef struct question {
    enum weft_coll_kind kind;
    uint64_t salt;
    int root;
} question;

/* Arguments of the collective without those of its schedule: count elements for each rank. */
weft_coll question_args(const question *question, int64_t *send, int64_t *receive, uint64_t count);
/* Before the call: fills send and clears receive. Both have space for count elements of each rank and one more. */
void question_fill(const rig *rig, const question *question, int64_t *send, int64_t *receive, uint64_t count);
/* Returns the index of the first wrong element in receive, among those that this rank receives; -1: all correct. */
int64_t question_wrong(const rig *rig, const question *question, const int64_t *receive, uint64_t count);

#endif
