/* SPDX-License-Identifier: BSD-3-Clause
 *
 * on_simhca: verbs' tests on simulated devices. See bench.h.
 */
#include <stdio.h>

#include "base/knob.h"
#include "test/verbs/bench.h"
#include "test/transports/simhca/simhca.h"

const bool bench_is_real = false;

const char *bench_open(const char *profile, uint64_t seed)
{
    const simhca_profile *found = simhca_profile_find(profile ? profile : "calm");
    weft_knobs_load(true);
    if (!found)
        return "there is no such profile";
    return simhca_open(found, seed, 0) ? NULL : "no memory";
}

uint32_t bench_close(void)
{
    simhca_print(stdout);
    return simhca_close(stdout);
}

void bench_next(uint32_t index, weft_iface_params *params)
{
    simhca_process(index);
    params->now_ns = simhca_now_ns;
}

/* Time advances faster the longer nothing arrives: a queue pair retries for seconds. */
void bench_idle(void)
{
    static uint64_t last, idle;
    idle = simhca_activity == last ? idle + 1 : 0;
    last = simhca_activity;
    simhca_pass(1000ull << (idle / 64 < 13 ? idle / 64 : 13));
}

void bench_fault(struct ibv_qp *qp, uint64_t random)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    if (random % 4 == 0)
        ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    else
        simhca_break(qp, (enum simhca_break_kind)(random / 4 % SIMHCA_BREAK_LAST));
}

uint64_t bench_not_ready(void) { return simhca_counter(SIMHCA_RNR); }
