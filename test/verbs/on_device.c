/* SPDX-License-Identifier: BSD-3-Clause
 *
 * on_device: verbs' tests on the machine's own devices: two of them, or one with itself. See bench.h.
 */
#include <sched.h>
#include <stdlib.h>

#include "base/knob.h"
#include "test/verbs/bench.h"
#include "transports/verbs/verbs.h"

const bool bench_is_real = true;

static uint64_t before;

static uint64_t not_ready(void) { return verbs_not_ready("rxe1", 1) + verbs_not_ready("rxe2", 1); }

uint64_t bench_not_ready(void) { return not_ready() - before; }

const char *bench_open(const char *profile, uint64_t seed)
{
    (void)profile, (void)seed;
    setenv("WEFT_DEVICES", "rxe1;rxe2", 0);
    weft_knobs_load(true);
    before = not_ready();
    return weft_verbs_ops.unavailable();
}

uint32_t bench_close(void) { return 0; }

void bench_next(uint32_t index, weft_iface_params *params) { (void)index, (void)params; }

void bench_idle(void) { sched_yield(); } /* software devices of the kernel need this CPU */

void bench_fault(struct ibv_qp *qp, uint64_t random)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    (void)random;
    ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}
