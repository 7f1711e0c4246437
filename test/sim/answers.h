/* SPDX-License-Identifier: BSD-3-Clause
 *
 * answers: what the ranks of a collective give, and what each must find afterwards, worked out anew for every element.
 */
#ifndef WEFT_TEST_SIM_ANSWERS_H
#define WEFT_TEST_SIM_ANSWERS_H

#include "test/sim/crew.h"

#define ANSWERS_INT64 0x258 /* MPI_INT64_T and MPI_SUM of the standard ABI */
#define ANSWERS_SUM 0x21

/* One collective call, the same on every rank. */
typedef struct question {
    enum weft_coll_kind kind;
    uint64_t salt;
    int root;
} question;

/* What the collective takes and gives, but for the plan's own arguments: count elements for each rank. */
weft_coll question_args(const question *question, int64_t *send, int64_t *receive, uint64_t count);
/* Before the call: fills send, wipes receive; both have room for count elements of each rank, and one. */
void question_fill(const crew *crew, const question *question, int64_t *send, int64_t *receive, uint64_t count);
/* The place of the first wrong element in receive, of those that this rank is to find; -1: all are right. */
int64_t question_wrong(const crew *crew, const question *question, const int64_t *receive, uint64_t count);

#endif
