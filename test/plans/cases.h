/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cases: one collective call on all ranks (fibres of the model, or threads): buffers, naive results, and their comparison, which includes
 * gaps of strided types and buffers that must not change.
 */
#ifndef WEFT_TEST_PLANS_CASES_H
#define WEFT_TEST_PLANS_CASES_H

#include "collectives/sched.h"

/* long: integers, sum. pair: affine maps, composed (does not commute) or added. wide: pairs with a gap after each. back: the same with a
 * negative extent. empty: no data, but an extent. */
enum cases_type { CASES_LONG, CASES_PAIR, CASES_WIDE, CASES_BACK, CASES_EMPTY, CASES_TYPES };

/* Kinds that node areas perform: cases_area_kinds[0 .. CASES_AREA_KINDS - 1], barrier first; and the types of those calls. */
enum { CASES_AREA_KINDS = 13, CASES_AREA_TYPES = CASES_WIDE + 1 };
extern const enum weft_coll_kind cases_area_kinds[CASES_AREA_KINDS];

typedef struct cases_call {
    enum weft_coll_kind kind;
    uint32_t ranks;
    uint64_t count; /* elements per rank, or of the vector */
    int root;
    bool in_place;
    enum cases_type type;
    bool commutes;  /* the operator is a commutative one; of long always */
    uint32_t round; /* varies the data */
    uint32_t first; /* not 0: on an intercommunicator, whose first group are members 0 .. first - 1; root is a member */
    uint64_t back;  /* then, in allgather and alltoall: elements per rank that the second group sends, as count for the first one */
} cases_call;

typedef struct cases_side {
    weft_coll args;
    char *send, *recv, *expect_send, *expect_recv;
    uint64_t send_bytes, recv_bytes;
    weft_layout send_layout, recv_layout; /* of calls with a count for each rank; their arrays: */
    void *arrays[6];
    int array_count;
} cases_side;

void cases_open(void);
void cases_close(void);
/* Buffers and arguments of one rank, and the expected results. */
void cases_begin(const cases_call *call, uint32_t rank, cases_side *side);
/* Copies the receive buffer of `from`, which the same call began. */
void cases_refill(cases_side *side, const cases_side *from);
/* Copies all data and the expected results of `from`, the same call with another round. Counts depend on the round modulo 8. */
void cases_renew(cases_side *side, const cases_side *from);
/* NULL: equal; else what differs (static text). */
const char *cases_compare(const cases_side *side);
void cases_end(cases_side *side);

#endif
