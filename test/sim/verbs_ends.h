/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verbs_ends: two ends of a connection by plain ibv_ calls, for the tests of the simulated HCA itself.
 */
#ifndef WEFT_TEST_SIM_VERBS_ENDS_H
#define WEFT_TEST_SIM_VERBS_ENDS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "test/transports/simhca/simhca.h"

#define END_BYTES 65536u
#define END_DEPTH 16u

typedef struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;     /* connected */
    struct ibv_mr *mr;     /* of memory, with all access rights */
    uint8_t *memory;
    union ibv_gid gid;
    int gid_index;
    uint16_t pkey_index;
    bool needs_grh;
    uint16_t lid;
    uint32_t psn;
} end;

/* Options of a pair; all zero: defaults. */
typedef struct end_wish {
    uint8_t timeout, retries, rnr_retries; /* 0: defaults 10, 3, 7 */
    bool no_srq;
    uint32_t depth, cqe;                   /* 0: END_DEPTH, 256 */
    uint32_t inlined;                      /* largest inline length */
    int access;                            /* 0: all remote rights */
    int wrong_psn;                         /* added to the PSN given to the other side */
} end_wish;

/* Opens two connected processes on two hosts. False if a call failed. */
bool ends_open(end *ends, const simhca_profile *profile, uint64_t seed, const end_wish *wish);
/* Frees all. Returns the number of objects left open (0, or the test leaks). */
uint32_t ends_close(end *ends);
/* Opens one process without a connection. */
bool end_open(end *end, uint32_t process, const end_wish *wish);
int end_to_init(end *end, const end_wish *wish);
int end_to_rtr(end *end, const struct end *remote, const end_wish *wish);
int end_to_rts(end *end, const end_wish *wish);
/* Posts one work request; returns the call's rc. */
int end_recv(end *end, uint64_t wr_id, uint32_t at, uint32_t bytes);
int end_post(end *end, uint64_t wr_id, enum ibv_wr_opcode opcode, uint32_t at, uint32_t bytes, unsigned flags,
             const struct end *remote, uint32_t remote_at);
/* Polls for one completion of this end, at most a virtual minute. False if none came. */
bool end_wait(end *end, struct ibv_wc *wc);
/* True if no completion comes for a virtual second. */
bool end_is_silent(end *end);

#endif
