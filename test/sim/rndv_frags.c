/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_frags: rendezvous in fragments with failures midway: rma becomes impossible between the pair after some fragments are exposed; a
 * put fails while the sender still requests fragments. Both sides must end.
 *    rndv_frags  runs all; a deadlock is a failure
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "p2p/rndv_pool.h"
#include "test/sim/rig.h"

#define BYTES ((uint64_t)4 << 20) /* sixteen fragments, if memory is registered */

static struct {
    bool refuses;       /* midway, rma becomes impossible for this pair at the receiver */
    uint32_t fails_at;  /* number of the sender's put that fails; 0: none */
    uint32_t puts;
    int code[2];
    bool is_right;
} plot;

static int failing_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    return ++plot.puts == plot.fails_at ? weft_fail(WEFT_E_KEY, "a planted failure") : weft_sim_ops.put(iface, ep, rma);
}

static int receive(rig *rig, uint8_t *buf)
{
    weft_worker *worker = rig->world->workers[0];
    weft_req *req;
    int rc = weft_irecv(rig->chan, 0, 1, buf, BYTES, rig_type(RIG_BYTE), &req);
    if (rc)
        return rc;
    if (plot.refuses) {
        while (!worker->counters[WEFT_COUNT_RNDV_PUT] || !req->has_rndv || req->rndv->next < BYTES / 4)
            weft_worker_poll(worker);
        weft_peer_known(worker, weft_group_process(rig->chan->group, 0))->no_rma = true;
    }
    rc = weft_req_wait(req);
    weft_req_free(req);
    return rc;
}

static int program(int rank, void *arg)
{
    weft_iface_ops ops = weft_sim_ops;
    uint8_t *buf = calloc(1, BYTES), *sent = malloc(BYTES);
    rig rig;
    int rc = rig_open(&rig, 1);
    (void)arg;
    rig_fill(sent, 7, BYTES);
    rc = rc ? rc : rig_barrier(&rig); /* both are connected: an iface is found by its ops */
    if (!rc && rank == 0) {
        weft_peer *peer = weft_peer_known(rig.world->workers[0], weft_group_process(rig.chan->group, 1));
        weft_iface *iface = peer->ep->iface;
        const weft_iface_ops *own = iface->ops;
        ops.put = failing_put;
        iface->ops = &ops;
        plot.code[0] = weft_send(rig.chan, 1, 1, sent, BYTES, rig_type(RIG_BYTE), WEFT_SEND_STANDARD);
        iface->ops = own;
    } else if (!rc) {
        plot.code[1] = receive(&rig, buf);
        plot.is_right = memcmp(buf, sent, BYTES) == 0;
    }
    rc = rc ? rc : rig_close(&rig);
    free(buf);
    free(sent);
    return rc;
}

static int run(uint64_t seed)
{
    weft_sim_config config = {.ranks = 2, .seed = seed, .profile = weft_sim_profile_find(seed % 2 ? "pinning" : "rails"),
                              .is_quiet = true};
    weft_knobs_load(false);
    weft_knob.rndv_scheme = WEFT_RNDV_SCHEME_PUT;
    weft_knob.reg_mode = WEFT_REG_MODE_PIPELINE;
    plot.puts = 0;
    plot.is_right = false;
    plot.code[0] = plot.code[1] = 0;
    return weft_sim_run(&config, program, NULL);
}

static void rma_fails_midway(void)
{
    plot.fails_at = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        plot.refuses = true;
        CU_ASSERT(run(seed) == 0 && !plot.code[0] && !plot.code[1] && plot.is_right);
        CU_ASSERT(plot.puts > 0);
    }
    plot.refuses = false;
}

static void put_fails(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (plot.fails_at = 1; plot.fails_at <= 5; plot.fails_at++) {
            CU_ASSERT(run(seed) == 0);
            CU_ASSERT(plot.code[0] == WEFT_E_KEY && plot.code[1] == WEFT_E_KEY);
        }
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("rendezvous fragments", NULL, NULL);
    CU_add_test(suite, "rma becomes impossible midway", rma_fails_midway);
    CU_add_test(suite, "a put fails", put_fails);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
