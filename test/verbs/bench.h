/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench: what verbs' own tests run on: real devices (on_device.c) or simulated ones (on_simhca.c). The tests are the same source.
 */
#ifndef WEFT_TEST_VERBS_BENCH_H
#define WEFT_TEST_VERBS_BENCH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/iface.h"

/* NULL, or why nothing can be run here. */
const char *bench_open(const char *profile, uint64_t seed);
/* How many things were left open (0 where that cannot be known). */
uint32_t bench_close(void);
/* Before port number `index` is opened; sets the clock where it is not the machine's. */
void bench_next(uint32_t index, weft_iface_params *params);
/* By the address that the other port gives out. */
static inline bool bench_reach(weft_iface *iface, weft_iface *other, const weft_proc_id *proc_id, void *peer, weft_ep **ep)
{
    char addr[WEFT_ADDR_MAX];
    size_t bytes = sizeof addr;
    return other->ops->get_addr(other, addr, &bytes) == 0 && iface->ops->ep_open(iface, proc_id, addr, bytes, peer, ep) == 0;
}
/* Nothing has happened lately. */
void bench_idle(void);
/* Puts a connected queue pair into error, in one of the ways there are. */
void bench_fault(struct ibv_qp *qp, uint64_t random);
/* How often since bench_open a message found no receive posted (RNR); 0 where the devices do not tell. */
uint64_t bench_not_ready(void);
/* Real devices: what happens together is chance. */
extern const bool bench_is_real;

#endif
