/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rail_pair: pairs local with remote rails. Both sides compute the same result from both addresses, in the same order (rails of the
 * smaller proc_id first), without a message. Rails of one network are paired first. The rest is paired by order if it could communicate
 * at all, as suspects: a probe must be answered before they are used. Called by ep.c when an ep is opened.
 */
#include <string.h>

#include "transports/verbs/conn.h"
#include "transports/verbs/gid.h"

#define WEIGHT_NEAR 2
#define NETWORK_BITS_IPV6 64

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    uint8_t mask = (uint8_t)(0xff00u >> bits % 8);
    if (memcmp(a, b, bits / 8) != 0)
        return false;
    return bits % 8 == 0 || (a[bits / 8] & mask) == (b[bits / 8] & mask);
}

/* True if both have the same link layer and address family. */
static bool is_same_kind(const verbs_address *a, const verbs_address *b)
{
    return a->flags == b->flags && ((a->flags & VERBS_ADDRESS_IB) || verbs_gid_is_ipv4(&a->gid) == verbs_gid_is_ipv4(&b->gid));
}

static bool is_same_network(const verbs_address *a, const verbs_address *b)
{
    if (!is_same_kind(a, b))
        return false;
    if ((a->flags & VERBS_ADDRESS_IB) || !verbs_gid_is_ipv4(&a->gid))
        return same_bits(a->gid.raw, b->gid.raw, NETWORK_BITS_IPV6);
    return a->prefix_bits && a->prefix_bits == b->prefix_bits && same_bits(a->gid.raw + 12, b->gid.raw + 12, a->prefix_bits);
}

typedef struct pairing {
    const verbs_iface_addr *left, *right;
    int8_t right_of[VERBS_RAILS]; /* -1: none */
    bool is_sure[VERBS_RAILS], is_taken[VERBS_RAILS];
} pairing;

static void match(pairing *p, bool (*fits)(const verbs_address *, const verbs_address *), bool is_sure)
{
    for (uint8_t l = 0; l < p->left->rails; l++)
        for (uint8_t r = 0; r < p->right->rails && p->right_of[l] < 0; r++)
            if (!p->is_taken[r] && fits(&p->left->address[l], &p->right->address[r])) {
                p->right_of[l] = (int8_t)r;
                p->is_sure[l] = is_sure;
                p->is_taken[r] = true;
            }
}

/* RMA bytes are shared by distance: a rail on a farther NUMA node gets half. */
static uint32_t weight_of(const verbs_ep *ep, const verbs_rail *rail)
{
    return rail->numa_distance <= ep->iface->rails[0].numa_distance ? WEIGHT_NEAR : 1;
}

static void add(verbs_ep *ep, uint8_t local_rail, uint8_t remote_rail, bool is_sure)
{
    uint8_t at = ep->qp_count++;
    verbs_rc_qp *qp = &ep->qps[at];
    verbs_rail *rail = &ep->iface->rails[local_rail];
    *qp = (verbs_rc_qp){.ep = ep, .rail = rail, .remote_rail = remote_rail, .weight = weight_of(ep, rail)};
    weft_list_init(&qp->bound_mws);
    weft_list_init(&qp->posted);
    ep->hs->qp_hs[at] = (verbs_qp_handshake){.mark = {.kind = VERBS_WORK_MARK, .rail = local_rail, .qp = qp}, .is_suspect = !is_sure};
}

void verbs_rail_pair(verbs_ep *ep, const verbs_iface_addr *local)
{
    bool is_left = verbs_conn_precedes(ep);
    pairing p = {.left = is_left ? local : &ep->remote, .right = is_left ? &ep->remote : local, .right_of = {-1, -1, -1, -1}};
    bool has_sure = false;
    match(&p, is_same_network, true);
    match(&p, is_same_kind, false);
    for (uint8_t l = 0; l < p.left->rails; l++)
        has_sure |= p.right_of[l] >= 0 && p.is_sure[l];
    ep->qp_count = 0;
    for (uint8_t i = 0; i < ep->iface->rail_count; i++) /* in the order of the local rails: nearest first */
        for (uint8_t l = 0; l < p.left->rails; l++) {
            uint8_t r = (uint8_t)p.right_of[l];
            if (p.right_of[l] >= 0 && (is_left ? l : r) == i)
                add(ep, i, is_left ? r : l, p.is_sure[l] || !has_sure);
        }
}
