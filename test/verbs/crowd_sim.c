/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crowd_sim: the crowd's devices are simulated: a host each, virtual time.
 */
#include <stdio.h>
#include <string.h>

#include "test/verbs/crowd.h"
#include "test/transports/simhca/simhca.h"

const bool crowd_is_real = false;
static const simhca_profile rails[] = {{.name = "two", .devices = 2, .separate = true, .delay_ns = 2000},
                                       {.name = "four", .devices = 4, .separate = true, .delay_ns = 2000}};

bool crowd_is_absent(void) { return false; }

void crowd_devices_open(crowd *c)
{
    const simhca_profile *profile = simhca_profile_find(c->profile);
    if (!profile)
        profile = &rails[strcmp(c->profile, "four") == 0];
    EXPECT(c, simhca_open(profile, c->seed, 0), "there are devices");
}

void crowd_devices_close(crowd *c)
{
    EXPECT(c, simhca_close(stdout) == 0, "nothing is left open");
}

void crowd_device_of(crowd *c, uint32_t node)
{
    (void)c;
    simhca_process(node);
}

uint64_t (*crowd_clock(void))(void) { return simhca_now_ns; }

uint64_t crowd_now(const crowd *c)
{
    (void)c;
    return simhca_is_open() ? simhca_now_ns() : 0;
}

void crowd_kill(crowd *c, uint32_t node)
{
    c->nodes[node].is_dead = true;
    simhca_kill(node);
}

void crowd_link(crowd *c, uint32_t rail, bool is_up)
{
    (void)c;
    simhca_link(0, rail, 1, is_up);
}

void crowd_fatal(crowd *c)
{
    (void)c;
    simhca_device_fatal(0, 0);
}

void crowd_deafen(crowd *c, bool is_on)
{
    (void)c;
    simhca_deafen(0, 0, is_on);
}

/* Datagrams pass, as simulated links lose packets only when down, with an event; rdma_cm's messages are lost. */
void crowd_silence(crowd *c, bool is_on)
{
    verbs_ep *ep = crowd_path(c, 0, 1);
    crowd_deafen(c, is_on);
    if (is_on && ep->qps[0].ibv_qp)
        simhca_break(ep->qps[0].ibv_qp, SIMHCA_BREAK_LOST);
}
