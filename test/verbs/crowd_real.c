/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crowd_real: the crowd over real devices of libibverbs, which WEFT_DEVICES assigns to the nodes. Links are cut with ip(8), as root:
 * WEFT_TEST_LINKS names the network interfaces of node 0's rails ("v1 v3").
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/knob.h"
#include "test/verbs/crowd.h"
#include "transports/verbs/conn.h"

const bool crowd_is_real = true;

bool crowd_is_absent(void)
{
    const char *why = weft_verbs_ops.unavailable();
    if (why)
        printf("skipped: %s\n", why);
    return why != NULL;
}

void crowd_devices_open(crowd *c) { (void)c; }
void crowd_devices_close(crowd *c) { (void)c; }
void crowd_device_of(crowd *c, uint32_t node) { (void)c, (void)node; }
uint64_t (*crowd_clock(void))(void) { return NULL; }

uint64_t crowd_now(const crowd *c)
{
    (void)c;
    return weft_clock_ns();
}

/* Destroys its queue pairs, as the kernel does for a killed process; its iface is never polled again. */
void crowd_kill(crowd *c, uint32_t node)
{
    c->nodes[node].is_dead = true;
    c->nodes[node].iface->ops->close(c->nodes[node].iface);
}

/* By the lab's commands if there is a lab: its routes are lost with the link. */
void crowd_link(crowd *c, uint32_t rail, bool is_up)
{
    char command[160], *names = getenv("WEFT_TEST_LINKS"), copy[64] = "", *save = NULL, *name;
    snprintf(copy, sizeof copy, "%s", names ? names : "v1 v3");
    name = strtok_r(copy, " ", &save);
    while (rail-- && name)
        name = strtok_r(NULL, " ", &save);
    name = name ? name : "v1";
    if (getenv("RDMA_LAB"))
        snprintf(command, sizeof command, "bash -c '. \"$RDMA_LAB/lib/guest.sh\"; lab_%s %s'", is_up ? "mend" : "cut", name + 1);
    else
        snprintf(command, sizeof command, "ip link set %s %s", name, is_up ? "up" : "down");
    EXPECT(c, system(command) == 0, "a link can be switched");
}

/* A real device cannot be made to fail: it is marked dead instead. */
void crowd_fatal(crowd *c)
{
    verbs_iface *iface = (verbs_iface *)c->nodes[0].iface;
    iface->rails[0].is_dead = true;
    iface->rails[0].is_up = false;
    verbs_conn_on_rail_change(&iface->rails[0]);
}

void crowd_deafen(crowd *c, bool is_on) { (void)c, (void)is_on; }

void crowd_silence(crowd *c, bool is_on)
{
    EXPECT(c, system(is_on ? "tc qdisc add dev v1 root netem loss 100%" : "tc qdisc del dev v1 root") == 0, "a wire can be hurt");
}
