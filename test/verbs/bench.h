/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bench: devices of verbs' tests: real (on_device.c) or simulated (on_simhca.c), below the same test sources.
 */
#ifndef WEFT_TEST_VERBS_BENCH_H
#define WEFT_TEST_VERBS_BENCH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/iface.h"

/* NULL, or why the tests cannot run here. */
const char *bench_open(const char *profile, uint64_t seed);
/* Number of objects left open (0 if unknown). */
uint32_t bench_close(void);
/* Call before iface number `index` is opened; sets the clock if it is virtual. */
void bench_next(uint32_t index, weft_iface_params *params);
/* By the address that the other port gives out. */
static inline bool bench_reach(weft_iface *iface, weft_iface *other, const weft_proc_id *proc_id, void *peer, weft_ep **ep)
{
    char addr[WEFT_ADDR_MAX];
    size_t bytes = sizeof addr;
    return other->ops->get_addr(other, addr, &bytes) == 0 && iface->ops->ep_open(iface, proc_id, addr, bytes, peer, ep) == 0;
}
/* Called when polls are empty. */
void bench_idle(void);
/* Puts a connected queue pair into error, in one of several ways. */
void bench_fault(struct ibv_qp *qp, uint64_t random);
/* RNR NAKs since bench_open; 0 if the devices do not count them. */
uint64_t bench_not_ready(void);
/* Real devices: runs are not reproducible. */
extern const bool bench_is_real;

#endif
