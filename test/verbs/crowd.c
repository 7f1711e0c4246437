/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crowd: see crowd.h.
 */
#include "test/verbs/crowd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define LONGEST 3000

static uint32_t longest = LONGEST; /* less where little memory may be locked */
#define MINUTE_NS 60000000000ull

void crowd_expect(crowd *c, bool ok, const char *sentence, int line)
{
    if (ok)
        return;
    c->failures++;
    printf("    line %d: not so: %s (profile %s, seed %llu)\n", line, sentence, c->profile, (unsigned long long)c->seed);
}

uint64_t crowd_random(crowd *c)
{
    c->random ^= c->random << 13;
    c->random ^= c->random >> 7;
    c->random ^= c->random << 17;
    return c->random;
}

void crowd_init(crowd *c, const char *profile, uint64_t seed)
{
    *c = (crowd){.profile = profile, .seed = seed, .random = seed * 0x9e3779b97f4a7c15u + 1, .is_real = crowd_is_real};
}

/* -- frames: number n to each peer is n mod something long and filled with what n says -- */

static uint32_t length_of(uint32_t number) { return number % 7 == 3 ? number * 37 % longest : number * 5 % 200; }
static uint8_t byte_of(uint32_t number, uint32_t at) { return (uint8_t)(number * 31 + at * 7 + 5); }

static int send_one(crowd_node *node, uint32_t to, uint32_t number)
{
    uint8_t body[LONGEST];
    weft_frame frame = {.hdr = {.seq = number, .kind = WEFT_FRAME_EAGER, .bytes = length_of(number)}, .body = body};
    for (uint32_t i = 0; i < frame.hdr.bytes; i++)
        body[i] = byte_of(number, i);
    return node->iface->ops->send(node->iface, node->eps[to], &frame);
}

static void up_recv_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    crowd_node *node = owner, *from = peer;
    const uint8_t *bytes = body;
    uint32_t number = ++node->heard[from->proc_id.rank];
    bool ok = hdr->seq == number && hdr->bytes == length_of(number);
    for (uint32_t i = 0; ok && i < hdr->bytes; i++)
        ok = bytes[i] == byte_of(number, i);
    if (!ok)
        printf("    rank %u: from %u came frame %u, not %u\n", node->proc_id.rank, from->proc_id.rank, hdr->seq, number);
    EXPECT(node->crowd, ok, "frames are whole and in order");
}

static void up_done(void *owner, void *done, int rc) { (void)owner, (void)done, (void)rc; }
static void up_notified(void *owner, void *peer, uint32_t notify) { (void)owner, (void)peer, (void)notify; }

static void up_peer_failed(void *owner, void *peer, int rc)
{
    crowd_node *node = owner;
    (void)peer;
    node->losts++;
    snprintf(node->why, sizeof node->why, "%s", weft_fail_text(rc));
}

void crowd_reach(crowd *c, uint32_t from, uint32_t to)
{
    crowd_node *a = &c->nodes[from], *b = &c->nodes[to];
    char addr[WEFT_ADDR_MAX];
    size_t bytes = sizeof addr;
    if (a->eps[to])
        return;
    int rc = b->iface->ops->get_addr(b->iface, addr, &bytes);
    if (rc == 0)
        rc = a->iface->ops->ep_open(a->iface, &b->proc_id, addr, bytes, b, &a->eps[to]);
    if (rc)
        printf("    %s\n", weft_fail_text(rc));
    EXPECT(c, rc == 0, "a peer can be reached");
}

static void *up_accept_peer(void *owner, const weft_proc_id *proc_id)
{
    crowd_node *node = owner;
    crowd_reach(node->crowd, node->proc_id.rank, proc_id->rank);
    return node->eps[proc_id->rank] ? &node->crowd->nodes[proc_id->rank] : NULL;
}

static const weft_iface_callbacks ups = {.recv_frame = up_recv_frame, .done = up_done, .notify = up_notified, .peer_failed = up_peer_failed,
                                         .accept_peer = up_accept_peer};

void crowd_open(crowd *c, uint32_t count)
{
    memset(c->nodes, 0, sizeof c->nodes);
    c->count = count;
    crowd_devices_open(c);
    for (uint32_t i = 0; i < count; i++) {
        crowd_node *node = &c->nodes[i];
        weft_iface_params params = {.owner = node, .callbacks = &ups, .self = {.job = 99, .rank = i}, .local_rank = -1, .peers = count - 1,
                             .now_ns = crowd_clock()};
        node->crowd = c;
        node->proc_id = params.self;
        crowd_device_of(c, i);
        int rc = weft_verbs_ops.open(&params, &node->iface);
        if (rc) {
            printf("    a port cannot be opened: %s\n", weft_fail_text(rc));
            exit(1);
        }
        if (node->iface->caps.frame_max < longest)
            longest = node->iface->caps.frame_max;
    }
}

/* -- progress -- */

void crowd_talk(crowd *c, uint32_t from, uint32_t to, uint32_t more) { c->nodes[from].wanted[to] += more; }

int crowd_try(crowd *c, uint32_t from, uint32_t to) { return send_one(&c->nodes[from], to, 1); }

bool crowd_has(const crowd *c, uint32_t from, uint32_t to, uint32_t frames) { return c->nodes[to].heard[from] == frames; }

static void send_some(crowd_node *node)
{
    for (uint32_t to = 0; to < node->crowd->count; to++)
        while (node->sent[to] < node->wanted[to] && node->eps[to]) {
            if (send_one(node, to, node->sent[to] + 1))
                break;
            node->sent[to]++;
        }
}

void crowd_turn(crowd *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        crowd_node *node = &c->nodes[i];
        if (node->is_dead || !node->iface)
            continue;
        send_some(node);
        node->iface->ops->poll(node->iface, 16);
        if (c->has_hub && i)
            c->nodes[0].iface->ops->poll(c->nodes[0].iface, 16);
    }
}

static bool is_all_there(const crowd *c)
{
    for (uint32_t from = 0; from < c->count; from++)
        for (uint32_t to = 0; to < c->count; to++)
            if (!c->nodes[from].is_dead && !c->nodes[to].is_dead && c->nodes[to].heard[from] < c->nodes[from].wanted[to])
                return false;
    return true;
}

void crowd_show(const crowd *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < c->count; k++) {
            const verbs_ep *ep = (const verbs_ep *)c->nodes[i].eps[k];
            if (ep)
                printf("    %u to %u: state %d epoch %u wanted %u sent %u heard there %u credits %u token %d unsent %u tries "
                       "%u: %s\n", i, k,
                       ep->state, ep->epoch, c->nodes[i].wanted[k], c->nodes[i].sent[k], c->nodes[k].heard[i], ep->credits,
                       ep->has_token, ep->unsent, (unsigned)ep->tries, ep->last_error);
        }
}

void crowd_until_quiet(crowd *c)
{
    uint64_t begin = crowd_now(c);
    while (!is_all_there(c) && crowd_now(c) - begin < MINUTE_NS)
        crowd_turn(c);
    if (!is_all_there(c)) {
        crowd_show(c);
        for (uint32_t i = 0; i < c->count; i++) /* one long wait fails the test */
            memcpy(c->nodes[i].wanted, c->nodes[i].sent, sizeof c->nodes[i].wanted);
    }
    EXPECT(c, is_all_there(c), "everything arrives within a minute");
}

verbs_ep *crowd_path(crowd *c, uint32_t node, uint32_t other) { return (verbs_ep *)c->nodes[node].eps[other]; }

uint64_t crowd_count(const crowd *c, uint32_t node, enum verbs_print_counters which)
{
    return ((verbs_iface *)c->nodes[node].iface)->counts[which];
}

/* Puts one queue pair of the node into error without its knowledge. */
void crowd_break(crowd *c, uint32_t node)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    for (uint32_t other = 0; other < c->count; other++) {
        verbs_ep *ep = crowd_path(c, node, other);
        if (ep && ep->home && ep->home->ibv_qp)
            ibv_modify_qp(ep->home->ibv_qp, &attr, IBV_QP_STATE);
    }
}

/* -- the end -- */

void crowd_leave(crowd *c, uint32_t node, uint32_t other)
{
    crowd_node *one = &c->nodes[node];
    uint64_t begin = crowd_now(c);
    int rc = WEFT_AGAIN;
    while (one->eps[other] && crowd_now(c) - begin < MINUTE_NS) {
        rc = one->iface->ops->ep_close(one->iface, one->eps[other]);
        if (rc == 0)
            one->eps[other] = NULL;
        else
            crowd_turn(c);
    }
    EXPECT(c, rc == 0, "leaving takes no minute");
}

static bool leave_all_once(crowd *c)
{
    bool is_left = true;
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < c->count; k++) {
            crowd_node *node = &c->nodes[i];
            if (node->is_dead || !node->eps[k])
                continue;
            if (node->iface->ops->ep_close(node->iface, node->eps[k]) == 0)
                node->eps[k] = NULL;
            else
                is_left = false;
        }
    return is_left;
}

void crowd_close(crowd *c)
{
    uint64_t begin = crowd_now(c);
    bool is_left;
    while (!(is_left = leave_all_once(c)) && crowd_now(c) - begin < MINUTE_NS)
        crowd_turn(c);
    if (!is_left)
        crowd_show(c);
    EXPECT(c, is_left, "all leave within a minute");
    for (uint32_t i = 0; i < c->count; i++)
        if (c->nodes[i].iface && !c->nodes[i].is_dead)
            c->nodes[i].iface->ops->close(c->nodes[i].iface);
    crowd_devices_close(c);
}
