/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port: verbs' side of the contract: opening and closing in order, the numbers it promises, polling, sleeping. The rooms behind it are
 * told in verbs.h.
 * Invariant: only poll hands completions over; no call into a port polls, so nothing arrives outside.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/flow.h"

#define BATCH 16 /* completions taken from a queue at one time */

/* -- completions -- */

static void hand_over(verbs_rail *rail, const struct ibv_wc *wc)
{
    const verbs_work *work = (const verbs_work *)(uintptr_t)wc->wr_id;
    verbs_link *link = work->link;
    rail->port->counts[VERBS_COUNT_COMPLETIONS]++;
    switch (work->kind) {
    case VERBS_WORK_DATAGRAM_IN:
    case VERBS_WORK_DATAGRAM_OUT:
    case VERBS_WORK_MARK:
        verbs_conn_completion(rail, wc);
        return;
    case VERBS_WORK_RECV:
        rail->cq_used--;
        verbs_flow_completion(rail, wc);
        return;
    default:
        break;
    }
    if (weft_unlikely(wc->status != IBV_WC_SUCCESS)) { /* its room in the queues is counted free when the link is down */
        if (work->kind == VERBS_WORK_MOVE)
            verbs_move_completion(rail, wc);
        verbs_conn_break(link, wc, NULL);
        return;
    }
    link->sq_used -= work->covers;
    rail->cq_used -= work->covers;
    if (work->kind == VERBS_WORK_MOVE)
        verbs_move_completion(rail, wc);
    else if (work->kind == VERBS_WORK_WINDOW)
        verbs_window_completion(wc);
    else
        verbs_flow_completion(rail, wc);
}

int verbs_drain(verbs_port *port, int budget)
{
    struct ibv_wc wc[BATCH];
    int total = 0;
    for (uint8_t i = 0; i < port->rail_count && total < budget; i++) {
        verbs_rail *rail = &port->rails[(port->polls + i) % port->rail_count];
        int room = budget - total < BATCH ? budget - total : BATCH;
        int n = ibv_poll_cq(rail->cq, room, wc);
        for (int k = 0; k < n; k++)
            hand_over(rail, &wc[k]);
        total += n > 0 ? n : 0;
    }
    return total;
}

static int verbs_poll(weft_port *base, int budget)
{
    verbs_port *port = (verbs_port *)base;
    int n;
    port->polls++;
    verbs_post_flush(port);
    n = verbs_ring_poll(port, budget);
    if (n < budget)
        n += verbs_drain(port, budget - n);
    if (n < budget)
        n += verbs_conn_turn(port);
    n += verbs_flow_turn(port) + verbs_move_turn(port);
    verbs_windows_turn(port);
    return n < budget ? n : budget;
}

/* -- sleeping -- */

/* Takes what the channel tells. An armed queue that has told nothing stays armed. */
static void take_events(verbs_rail *rail)
{
    struct ibv_cq *cq;
    void *context;
    while (rail->is_armed && ibv_get_cq_event(rail->channel, &cq, &context) == 0) {
        ibv_ack_cq_events(cq, 1);
        rail->is_armed = false;
    }
}

static int verbs_arm(weft_port *base, weft_bell *bell)
{
    verbs_port *port = (verbs_port *)base;
    uint64_t within_ns = verbs_conn_within(port);
    int rc = verbs_ring_rest(port, &within_ns);
    verbs_post_flush(port);
    if (rc)
        return rc;
    verbs_flow_hush(port);
    for (uint8_t i = 0; i < port->rail_count; i++) {
        verbs_rail *rail = &port->rails[i];
        take_events(rail);
        if (!rail->is_armed && !rail->is_dead)
            rail->is_armed = ibv_req_notify_cq(rail->cq, 0) == 0;
    }
    port->is_armed = true;
    *bell = (weft_bell){.fd = port->epoll, .within_ns = within_ns};
    return 0;
}

static void verbs_disarm(weft_port *base)
{
    verbs_port *port = (verbs_port *)base;
    struct epoll_event events[2 * VERBS_RAILS + 2];
    int n = epoll_wait(port->epoll, events, (int)weft_count(events), 0);
    for (int k = 0; k < n; k++)
        for (uint8_t i = 0; i < port->rail_count; i++)
            if (events[k].data.fd == port->rails[i].channel->fd)
                take_events(&port->rails[i]);
    port->is_armed = false;
}

/* -- opening -- */

static uint32_t mbyte_per_s(const verbs_rail *rail)
{
    static const struct { uint8_t code; uint32_t mbit; } speeds[] = {{1, 2000}, {2, 4000}, {4, 8000}, {8, 10000}, {16, 13640}, {32, 25000},
                                                                      {64, 50000}, {128, 100000}};
    struct ibv_port_attr attr;
    uint32_t lanes, mbit = 2000;
    if (ibv_query_port(rail->context, rail->port_num, &attr))
        return 0;
    lanes = attr.active_width == 2 ? 4 : attr.active_width == 4 ? 8 : attr.active_width == 8 ? 12 : attr.active_width == 16 ? 2 : 1;
    for (size_t i = 0; i < weft_count(speeds); i++)
        if (attr.active_speed == speeds[i].code)
            mbit = speeds[i].mbit;
    return lanes * mbit / 8;
}

/* Atomics of several devices are not atomic with each other: they all go by the target's first rail (move.c). */
static void promise(verbs_port *port)
{
    weft_caps *caps = &port->port.caps;
    uint32_t inline_most = UINT32_MAX;
    bool has_atomics = true;
    *caps = (weft_caps){.frame_max = verbs_frame_max(port), .chunk = verbs_frame_max(port), .move_max = 1ull << 40, .latency_ns = 1500,
                        .pages_on_demand = true, .key_bytes = (uint8_t)(4 * port->rail_count), .rails = port->rail_count, .pins = true, .local_keys = true,
                        .ordered = true, .get = !port->is_small, .put = !port->is_small, .notify = !port->is_small};
    for (uint8_t i = 0; i < port->rail_count; i++) {
        const verbs_rail *rail = &port->rails[i];
        if (rail->max_inline < inline_most)
            inline_most = rail->max_inline;
        if (!caps->pin_regions || (uint32_t)rail->attr.max_mr < caps->pin_regions)
            caps->pin_regions = (uint32_t)rail->attr.max_mr;
        has_atomics = has_atomics && rail->attr.atomic_cap != IBV_ATOMIC_NONE && !rail->is_iwarp;
        caps->get = caps->get && rail->max_rd_atomic > 0;
        caps->put = caps->put && (rail->max_rd_atomic > 0 || !rail->tells_early); /* a read tells when it is there */
        caps->pages_on_demand = caps->pages_on_demand && rail->is_odp;
        caps->mbyte_per_s += mbyte_per_s(rail);
    }
    caps->inline_max = inline_most > sizeof(verbs_wire) ? inline_most - (uint32_t)sizeof(verbs_wire) : 0;
    if (has_atomics && caps->get && caps->put)
        caps->amo = WEFT_AMO_NIC;
}

static void verbs_close(weft_port *base)
{
    verbs_port *port = (verbs_port *)base;
    while (!weft_list_is_empty(&port->paths)) { /* not left: the job ends in haste */
        verbs_path *path = weft_container(port->paths.next, verbs_path, by_port);
        verbs_move_drop(path);
        verbs_flow_give_up(path);
        verbs_conn_forget(path);
    }
    verbs_conn_close(port);
    verbs_moves_close(port);
    verbs_proof_close(port);
    verbs_flow_close(port);
    verbs_windows_close(port);
    verbs_rails_close(port);
    if (port->epoll >= 0)
        close(port->epoll);
    free(port);
}

/* Tells this life of the port from earlier ones of the same name. The simulator's runs must not depend on chance. */
static uint32_t make_nonce(const verbs_port *port, const weft_port_env *env)
{
    uint32_t nonce = 0;
    if (env->now_ns || getrandom(&nonce, sizeof nonce, GRND_NONBLOCK) != sizeof nonce)
        nonce = (uint32_t)(((port->now_ns() + port->self.rank + 1) * 0x9e3779b97f4a7c15u) >> 32);
    return nonce ? nonce : 1;
}

static int verbs_open(const weft_port_env *env, weft_port **out)
{
    verbs_port *port = calloc(1, sizeof *port);
    int rc = 0;
    if (!port)
        return weft_fail(WEFT_E_NOMEM, "no memory for a verbs port");
    port->port = (weft_port){.ops = &weft_verbs_ops, .owner = env->owner, .up = env->up};
    port->self = env->self;
    port->now_ns = env->now_ns ? env->now_ns : weft_clock_ns;
    port->nonce = make_nonce(port, env);
    weft_list_init(&port->paths);
    weft_list_init(&port->tells);
    weft_list_init(&port->rings);
    weft_list_init(&port->loans_owed);
    weft_list_init(&port->loans_dead);
    weft_list_init(&port->loans_spare);
    port->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (port->epoll < 0)
        rc = weft_fail(WEFT_E_SYSTEM, "no descriptor to sleep on: %s", strerror(errno));
    if (!rc)
        rc = verbs_rails_open(port);
    if (!rc)
        rc = verbs_flow_open(port);
    if (!rc)
        rc = verbs_moves_open(port);
    if (!rc)
        rc = verbs_proof_open(port);
    if (!rc)
        rc = verbs_conn_open(port);
    if (rc) {
        verbs_close(&port->port);
        return rc;
    }
    promise(port);
    rc = verbs_windows_open(port);
    if (rc) {
        verbs_close(&port->port);
        return rc;
    }
    verbs_tally_begin(port);
    *out = &port->port;
    return 0;
}

static int verbs_card_of(weft_port *base, void *room, size_t *bytes)
{
    verbs_port *port = (verbs_port *)base;
    verbs_card card = {.version = 2, .rails = port->rail_count, .frame_max_kib = (uint16_t)(verbs_frame_max(port) >> 10), .nonce = port->nonce};
    if (*bytes < sizeof card)
        return weft_fail(WEFT_E_ARG, "a card needs %zu bytes, there is room for %zu", sizeof card, *bytes);
    for (uint8_t i = 0; i < port->rail_count; i++)
        verbs_rail_address(&port->rails[i], &card.address[i]);
    memcpy(room, &card, sizeof card);
    *bytes = sizeof card;
    return 0;
}

/* -- what there is not -- */

static int verbs_share(weft_port *port, uint64_t bytes, weft_shared *shared)
{
    (void)port, (void)bytes, (void)shared;
    return weft_fail(WEFT_E_UNSUPPORTED, "a network shares no memory");
}

static int verbs_unshare(weft_port *port, weft_shared *shared)
{
    (void)port, (void)shared;
    return weft_fail(WEFT_E_UNSUPPORTED, "a network shares no memory");
}

const weft_port_ops weft_verbs_ops = {
    .name = "verbs", .absent = verbs_absent, .tell = verbs_tell, .open = verbs_open, .close = verbs_close, .card = verbs_card_of,
    .reach = verbs_reach, .leave = verbs_leave, .map = verbs_map, .unmap = verbs_unmap, .share = verbs_share, .unshare = verbs_unshare,
    .send = verbs_send, .can_move = verbs_can_move, .get = verbs_get, .put = verbs_put, .amo = verbs_amo, .flush = verbs_flush,
    .lend = verbs_lend_part, .unlend = verbs_unlend, .poll = verbs_poll, .arm = verbs_arm, .disarm = verbs_disarm, .count = verbs_tally,
};
