/* SPDX-License-Identifier: BSD-3-Clause
 *
 * params: see params.h.
 */
#include "collectives/params.h"

const weft_coll_params weft_coll_params_default = {
    .node = {.latency_ns = 3100, .overhead_ns = 1100, .mbyte_per_s = 12000},
    .net = {.latency_ns = 1500, .overhead_ns = 375, .mbyte_per_s = 12500},
    .reduce_mbyte_per_s = 40000,
    .copy_mbyte_per_s = 12000,
    .flag_ns = 60,
};

weft_coll_link weft_coll_link_of(uint32_t latency_ns, uint32_t mbyte_per_s, const weft_coll_link *otherwise)
{
    weft_coll_link link = *otherwise;

    if (mbyte_per_s)
        link.mbyte_per_s = mbyte_per_s;
    if (latency_ns) { /* of a network of verbs a quarter is the CPU's, of TCP too */
        link.latency_ns = latency_ns;
        link.overhead_ns = latency_ns / 4;
    }
    return link;
}

uint32_t weft_coll_link_bytes(const weft_coll_link *link)
{
    uint64_t bytes = (uint64_t)link->latency_ns * link->mbyte_per_s / 1000;
    return bytes < 1024 ? 1024 : bytes > 1u << 20 ? 1u << 20 : (uint32_t)bytes;
}
