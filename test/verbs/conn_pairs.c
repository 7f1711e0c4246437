/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn_pairs: see conn_parts.h. Random addresses, no devices.
 */
#include "test/verbs/conn_parts.h"

#include <stdlib.h>
#include <string.h>

#include "transports/verbs/conn.h"

static verbs_address address_in(crowd *c, uint32_t networks)
{
    verbs_address address = {.prefix_bits = 24, .flags = crowd_random(c) % 8 ? 0 : VERBS_ADDRESS_V1};
    uint8_t v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 0, [14] = (uint8_t)(crowd_random(c) % networks),
                      [15] = (uint8_t)crowd_random(c)};
    memcpy(address.gid.raw, v4, 16);
    return address;
}

static verbs_ep *path_between(verbs_iface *iface, const verbs_iface_addr *remote, uint32_t rank)
{
    verbs_ep *ep = calloc(1, sizeof *ep);
    ep->hs = calloc(1, sizeof *ep->hs);
    ep->hs->ep = ep;
    ep->iface = iface;
    ep->proc_id = (weft_proc_id){.job = 1, .rank = rank};
    ep->remote = *remote;
    return ep;
}

static uint8_t some_rails(crowd *c) { return (uint8_t)(1 + crowd_random(c) % VERBS_RAILS); }

void conn_pairs_agree(crowd *c)
{
    for (int round = 0; round < 2000; round++) {
        verbs_iface *ports[2] = {calloc(1, sizeof(verbs_iface)), calloc(1, sizeof(verbs_iface))};
        verbs_iface_addr cards[2] = {{.rails = some_rails(c)}, {.rails = some_rails(c)}};
        verbs_ep *eps[2];
        for (int side = 0; side < 2; side++) {
            ports[side]->rail_count = cards[side].rails;
            ports[side]->self = (weft_proc_id){.job = 1, .rank = (uint32_t)side};
            for (uint8_t i = 0; i < cards[side].rails; i++) {
                cards[side].address[i] = address_in(c, 1 + (uint32_t)round % 4);
                ports[side]->rails[i] = (verbs_rail){.iface = ports[side], .index = i};
            }
        }
        for (int side = 0; side < 2; side++) {
            eps[side] = path_between(ports[side], &cards[1 - side], (uint32_t)(1 - side));
            verbs_rail_pair(eps[side], &cards[side]);
        }
        bool ok = eps[0]->qp_count == eps[1]->qp_count;
        for (uint8_t i = 0; i < eps[0]->qp_count; i++) {
            bool is_mirrored = false;
            for (uint8_t k = 0; k < eps[1]->qp_count; k++)
                is_mirrored |= eps[0]->qps[i].rail->index == eps[1]->qps[k].remote_rail &&
                               eps[1]->qps[k].rail->index == eps[0]->qps[i].remote_rail &&
                               eps[0]->hs->qp_hs[i].is_suspect == eps[1]->hs->qp_hs[k].is_suspect;
            ok = ok && is_mirrored;
        }
        EXPECT(c, ok, "both sides pair their rails alike");
        for (int side = 0; side < 2; side++) {
            free(eps[side]->hs);
            free(eps[side]);
            free(ports[side]);
        }
    }
}
