/* SPDX-License-Identifier: BSD-3-Clause
 *
 * params: the machine's parameters by which algorithms are chosen (cost.h): from the caps of transports, agreed on by a team's members.
 * Invariant: nothing that is measured at run time decides the order in which floating-point values are reduced, so that it does not vary
 * between runs. (Of two ranks all algorithms reduce in the same order.)
 */
#ifndef WEFT_COLLECTIVES_PARAMS_H
#define WEFT_COLLECTIVES_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_coll_link {
    uint32_t latency_ns;  /* of a short message, with both overheads */
    uint32_t overhead_ns; /* time that a message costs the CPU on each side; at most half of latency_ns */
    uint32_t mbyte_per_s;
} weft_coll_link;

typedef struct weft_coll_params {
    weft_coll_link node, net;      /* messages within a node, between nodes */
    uint32_t reduce_mbyte_per_s;   /* bytes of the result */
    uint32_t copy_mbyte_per_s;
    uint32_t flag_ns;              /* until a member sees another one's post in a node area */
    /* No bools: they are sent. */
    uint32_t shares_cpus;          /* not 0: all members are on one node with more ranks than CPUs */
    uint32_t is_copied_once;       /* not 0: all members are on one node, and a message between two is one copy by the kernel */
} weft_coll_params;

/* Two members with a CPU each: then that copy takes less time than two through slots. */
static inline bool weft_coll_is_copied_pair(const weft_coll_params *params, uint32_t ranks)
{
    return ranks == 2 && params->is_copied_once && !params->shares_cpus;
}

/* Until a team agrees on its network's, and inside all nodes. The node's link and the rates were fitted to times of each algorithm measured
 * with 2 ranks on CPUs of their own, and 4 and 8 on 2 shared ones: the choices, not the times of single messages, are near the best. */
extern const weft_coll_params weft_coll_params_default;
/* A link by the caps of a transport; values that are 0 (unknown) are those of `otherwise`. */
weft_coll_link weft_coll_link_of(uint32_t latency_ns, uint32_t mbyte_per_s, const weft_coll_link *otherwise);
/* Bytes that a link carries in its latency: the unit of pipelined segments. 1 KB to 1 MB. */
uint32_t weft_coll_link_bytes(const weft_coll_link *link);

#endif
