/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn: verbs' connections through weft_iface_ops: a few ifaces in one process that connect, lose datagrams, break, lose rails and
 * each other. Built twice: over simulated HCAs (conn, by seed), and over real devices
 * (conn_real, run in the lab's guest; exit code 77 without a device). Every frame carries a number and a pattern: loss,
 * duplication and disorder are detected.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "test/verbs/conn_parts.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/flow.h"

/* -- connecting -- */

static bool is_iwarp(const crowd *c) { return ((const verbs_iface *)c->nodes[0].iface)->rails[0].is_iwarp; }

static void connects(crowd *c)
{
    crowd_open(c, 2);
    crowd_reach(c, 0, 1); /* accept_peer on b */
    crowd_talk(c, 0, 1, 1);
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 0, 1, 1), "the first frame arrives");
    crowd_talk(c, 0, 1, 300);
    crowd_talk(c, 1, 0, 300);
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 0, 1, 301) && crowd_has(c, 1, 0, 300), "all frames arrive");
    EXPECT(c, crowd_path(c, 0, 1)->hs->by_cm == (weft_knob.verbs_connect == WEFT_VERBS_CONNECT_RDMACM || is_iwarp(c)),
           "connected as the knob or the device asks");
    EXPECT(c, crowd_count(c, 0, VERBS_COUNT_CONNECTS) == 1 + crowd_count(c, 0, VERBS_COUNT_BREAKS), "one connection");
    crowd_close(c);
}

static void connects_crosswise(crowd *c)
{
    crowd_open(c, 4);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 4; k++)
            if (i != k)
                crowd_reach(c, i, k), crowd_talk(c, i, k, 40);
    crowd_until_quiet(c);
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < 4; k++)
            EXPECT(c, i == k || crowd_has(c, i, k, 40), "all to all at once");
    for (uint32_t i = 0; i < 4; i++)
        EXPECT(c, crowd_count(c, i, VERBS_COUNT_CONNECTS) <= 3 + crowd_count(c, i, VERBS_COUNT_BREAKS),
               "no more connections than pairs and breaks");
    crowd_close(c);
}

/* Slots of three peers for eleven: connections evict each other; no frame is lost or duplicated. */
static void serves_many_with_few_slots(crowd *c)
{
    uint64_t rests = 0;
    crowd_open(c, CROWD_MAX);
    for (uint32_t turn = 0; turn < 3; turn++) {
        for (uint32_t i = 0; i < CROWD_MAX; i++)
            for (uint32_t k = 0; k < CROWD_MAX; k++)
                if (i != k && (turn != 1 || crowd_random(c) % 3 == 0))
                    crowd_reach(c, i, k), crowd_talk(c, i, k, 12);
        crowd_until_quiet(c);
    }
    for (uint32_t i = 0; i < CROWD_MAX; i++) {
        rests += crowd_count(c, i, VERBS_COUNT_EVICTIONS);
        EXPECT(c, c->nodes[i].losts == 0, "nobody is given up");
    }
    EXPECT(c, rests > CROWD_MAX, "connections gave way to others");
    crowd_close(c);
}

/* One rank of 8 nodes of 64: it is connected with all 448 ranks of the others at one time, over as many rails as there are. */
static void holds_an_alltoall(crowd *c)
{
    const uint32_t count = c->is_real ? CROWD_MAX : CROWD_ROOM;
    uint32_t connected = 0;
    c->has_hub = true;
    crowd_open(c, count);
    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t i = 1; i < count; i++) {
            crowd_reach(c, 0, i), crowd_talk(c, 0, i, 2);
            crowd_reach(c, i, 0), crowd_talk(c, i, 0, 2);
        }
        crowd_until_quiet(c);
    }
    for (uint32_t i = 1; i < count; i++)
        connected += crowd_path(c, 0, i)->state == VERBS_UP;
    EXPECT(c, connected == count - 1, "all stay connected");
    EXPECT(c, crowd_count(c, 0, VERBS_COUNT_EVICTIONS) == 0, "no connection gave way");
    crowd_close(c);
}

/* -- breaking -- */

static void survives_breaks(crowd *c)
{
    uint32_t sent = 0, rounds = c->is_real ? 100 : 300;
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t few = 1 + (uint32_t)(crowd_random(c) % 5);
        crowd_talk(c, 0, 1, few);
        crowd_talk(c, 1, 0, few);
        sent += few;
        for (uint64_t n = crowd_random(c) % (c->is_real ? 200 : 40); n; n--)
            crowd_turn(c);
        crowd_break(c, (uint32_t)(crowd_random(c) % 2));
        if (crowd_random(c) % 3)
            crowd_until_quiet(c);
    }
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 0, 1, sent) && crowd_has(c, 1, 0, sent), "each frame once, in order");
    EXPECT(c, crowd_count(c, 0, VERBS_COUNT_BREAKS) > rounds / 4, "and there were breaks");
    EXPECT(c, c->nodes[0].losts + c->nodes[1].losts == 0, "nobody was lost");
    crowd_close(c);
}

/* -- credits -- */

/* Caps receives at their present number and takes those that are not granted; returns how many. */
static uint32_t take_receives(verbs_iface *iface)
{
    uint32_t max = 0, taken;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        if (iface->rails[i].receives + iface->rails[i].emptied_count > max)
            max = iface->rails[i].receives + iface->rails[i].emptied_count;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        iface->rails[i].srq_capacity = max;
    taken = max - iface->receives_granted - 1;
    iface->receives_granted += taken;
    return taken;
}

/* Two busy peers hold many receives and the test takes the rest: a third can connect only when those two return some, and they must
 * still work afterwards. */
static void recalls_credits(crowd *c)
{
    verbs_iface *iface;
    verbs_ep *one, *two;
    uint32_t held, taken;
    uint64_t begin;
    crowd_open(c, 4);
    iface = (verbs_iface *)c->nodes[0].iface;
    for (uint32_t i = 1; i <= 2; i++)
        crowd_reach(c, i, 0), crowd_talk(c, i, 0, 2000);
    crowd_until_quiet(c);
    one = crowd_path(c, 0, 1), two = crowd_path(c, 0, 2);
    held = one->granted + two->granted;
    EXPECT(c, held > 8, "the busy hold many");
    taken = take_receives(iface);
    crowd_reach(c, 3, 0);
    crowd_talk(c, 3, 0, 50);
    begin = crowd_now(c);
    while (!crowd_has(c, 3, 0, 50) && crowd_now(c) - begin < 10000000000ull)
        crowd_turn(c);
    EXPECT(c, crowd_has(c, 3, 0, 50), "the third gets through");
    EXPECT(c, one->granted + two->granted < held / 2, "because the others gave back");
    crowd_talk(c, 1, 0, 300), crowd_talk(c, 0, 1, 300), crowd_talk(c, 2, 0, 300);
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 1, 0, 2300) && crowd_has(c, 2, 0, 2300), "and they go on with the few that they have");
    iface->receives_granted -= taken;
    crowd_close(c);
}

/* -- closing -- */

static void leaves_while_it_breaks(crowd *c)
{
    for (uint32_t i = 0; i < (c->is_real ? 3 : 20); i++) {
        crowd_open(c, 2);
        crowd_reach(c, 0, 1);
        crowd_talk(c, 0, 1, 5);
        crowd_talk(c, 1, 0, 5);
        crowd_until_quiet(c);
        crowd_talk(c, 0, 1, 3);
        crowd_talk(c, 1, 0, 2);
        crowd_break(c, i % 2);
        crowd_until_quiet(c);
        EXPECT(c, crowd_has(c, 0, 1, 8) && crowd_has(c, 1, 0, 7), "what was sent before a break arrives");
        crowd_break(c, i % 2);
        crowd_close(c);
        EXPECT(c, c->nodes[0].losts + c->nodes[1].losts == 0, "nobody is lost by leaving");
    }
}

static void reports_closed_peers(crowd *c)
{
    uint64_t begin;
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    crowd_talk(c, 0, 1, 1);
    crowd_talk(c, 1, 0, 1);
    crowd_until_quiet(c);
    crowd_leave(c, 1, 0); /* all frames have arrived; a keeps its ep, as after a late acknowledgement */
    begin = crowd_now(c);
    crowd_break(c, 0);
    crowd_try(c, 0, 1);
    while (crowd_path(c, 0, 1)->state != VERBS_FAILED && crowd_now(c) - begin < 3000000000ull)
        crowd_turn(c);
    EXPECT(c, crowd_path(c, 0, 1)->state == VERBS_FAILED && c->nodes[0].losts == 0, "a break after the peer left is no loss");
    EXPECT(c, crowd_now(c) - begin < 2000000000ull, "and takes no timeout");
    crowd_close(c);
}

/* -- stuck -- */

/* A request that never completes, as happens with soft-RoCE. */
static void ends_stuck_connections(crowd *c)
{
    verbs_rc_qp *qp;
    uint64_t begin;
    uint32_t epoch;
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    crowd_talk(c, 0, 1, 5);
    crowd_until_quiet(c);
    qp = crowd_path(c, 0, 1)->home;
    qp->sq_used++, qp->rail->cq_used++;
    epoch = qp->ep->epoch;
    begin = crowd_now(c);
    while (qp->ep->epoch == epoch && crowd_now(c) - begin < 60000000000ull)
        crowd_turn(c);
    EXPECT(c, qp->ep->epoch != epoch && strstr(qp->ep->last_error, "stuck"), "the connection ends, and it is said why");
    crowd_talk(c, 0, 1, 5);
    crowd_talk(c, 1, 0, 5);
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 0, 1, 10) && crowd_has(c, 1, 0, 5) && c->nodes[0].losts + c->nodes[1].losts == 0, "a new one serves");
    begin = crowd_now(c);
    epoch = qp->ep->epoch;
    while (crowd_now(c) - begin < 40000000000ull && !c->is_real)
        crowd_turn(c);
    EXPECT(c, qp->ep->epoch == epoch, "silence is not taken for that");
    crowd_close(c);
}

/* -- peer failure -- */

/* A killed iface is never closed: its state is lost, as a process's memory is. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static void lose_one(crowd *c);

static void reports_failed_peers(crowd *c)
{
    if (__lsan_disable)
        __lsan_disable();
    lose_one(c);
    if (__lsan_enable)
        __lsan_enable();
}

static void lose_one(crowd *c)
{
    uint64_t begin;
    weft_knob.peer_timeout_s = 2;
    crowd_open(c, 3);
    crowd_reach(c, 0, 1);
    crowd_reach(c, 0, 2);
    crowd_talk(c, 0, 1, 3);
    crowd_talk(c, 0, 2, 3);
    crowd_until_quiet(c);
    crowd_kill(c, 1);
    crowd_talk(c, 0, 1, 1);
    begin = crowd_now(c);
    while (!c->nodes[0].losts && crowd_now(c) - begin < 60000000000ull)
        crowd_turn(c);
    if (!c->nodes[0].losts)
        crowd_show(c);
    EXPECT(c, c->nodes[0].losts == 1, "the dead are told of, once");
    EXPECT(c, strstr(c->nodes[0].why, "rank 1 is lost") && strstr(c->nodes[0].why, "no answer") &&
           (strstr(c->nodes[0].why, "retry") || crowd_path(c, 0, 1)->hs->by_cm), "in words");
    EXPECT(c, crowd_now(c) - begin < 15000000000ull, "in time");
    EXPECT(c, crowd_try(c, 0, 1) == WEFT_E_PEER, "what is sent to them is an error");
    crowd_talk(c, 0, 2, 5);
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 0, 2, 8), "the others hear us still");
    crowd_close(c);
    weft_knob.peer_timeout_s = 20;
}

/* A frame that its sender has freed and its receiver has not delivered cannot be resent: the peer fails, no hang. */
static void replies_gone(crowd *c)
{
    uint64_t begin;
    weft_knob.peer_timeout_s = 2;
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    crowd_talk(c, 0, 1, 20);
    crowd_until_quiet(c);
    crowd_talk(c, 1, 0, 5);
    crowd_until_quiet(c);
    crowd_path(c, 1, 0)->rx_seq -= 2; /* as if two had not been delivered */
    begin = crowd_now(c);
    crowd_break(c, 0);
    crowd_talk(c, 0, 1, 1); /* an empty queue pair in error reports nothing */
    while (!c->nodes[0].losts && crowd_now(c) - begin < 10000000000ull)
        crowd_turn(c);
    EXPECT(c, c->nodes[0].losts == 1, "a gap ends the path");
    EXPECT(c, strstr(c->nodes[0].why, "rank 1 is lost") && strstr(c->nodes[0].why, "acknowledged did not arrive"), "in words");
    crowd_close(c);
    weft_knob.peer_timeout_s = 20;
}

/* No memory to keep a frame received ahead of order: 3 GB are requested under a low limit. */
static void reports_lack_of_memory(crowd *c)
{
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ /* they end the program where malloc would fail */
    uint32_t bytes = 3u << 30;
    verbs_wire wire = {.prefix = {.kind = VERBS_KIND_PLAIN}, .hdr = {.bytes = bytes - (uint32_t)sizeof wire}};
    struct rlimit before, few;
    verbs_ep *ep;
    uint64_t begin;
    weft_knob.peer_timeout_s = 2;
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    crowd_talk(c, 0, 1, 3);
    crowd_until_quiet(c);
    ep = crowd_path(c, 1, 0);
    wire.prefix.seq = (uint16_t)(ep->rx_seq + 2);
    getrlimit(RLIMIT_AS, &before);
    few = (struct rlimit){1u << 30, before.rlim_max};
    setrlimit(RLIMIT_AS, &few);
    verbs_flow_recv(ep, &wire, bytes);
    setrlimit(RLIMIT_AS, &before);
    begin = crowd_now(c);
    while (!c->nodes[1].losts && crowd_now(c) - begin < 10000000000ull)
        crowd_turn(c);
    EXPECT(c, c->nodes[1].losts == 1 && strstr(c->nodes[1].why, "no memory for a frame"), "the ep fails, with a text");
    crowd_close(c);
    weft_knob.peer_timeout_s = 20;
#else
    (void)c;
#endif
}

/* -- foreign messages -- */

static void drops_foreign_messages(crowd *c)
{
    verbs_conn_msg good, bad;
    verbs_ep *ep;
    uint32_t dropped;
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    crowd_talk(c, 0, 1, 1);
    crowd_until_quiet(c);
    ep = crowd_path(c, 1, 0);
    verbs_conn_msg_write(crowd_path(c, 0, 1), VERBS_MSG_CONNECT, &good);
    dropped = ep->iface->conn->dropped;
    for (int i = 0; i < 10; i++) {
        bad = good;
        bad.epoch += 5; /* if accepted, this would end the connection */
        switch (i) {
        case 0: bad.magic++; break;
        case 1: bad.version++; break;
        case 2: bad.to_nonce++; break;
        case 3: bad.nonce++; break;
        case 4: bad.job++; break;
        case 5: bad.to_rank++; break;
        case 6: bad.incarnation++; break;
        case 7: bad.to_incarnation++; break;
        case 8: bad.rails = VERBS_RAILS + 1; break;
        default: bad.epoch = good.epoch - 1; break;
        }
        verbs_conn_msg_recv(&ep->iface->rails[0], &bad, sizeof bad);
    }
    verbs_conn_msg_recv(&ep->iface->rails[0], &good, 7);
    EXPECT(c, ep->iface->conn->dropped == dropped + 11, "all are dropped");
    EXPECT(c, ep->state == VERBS_UP && ep->epoch == good.epoch, "and change nothing");
    crowd_close(c);
}

/* -- memory -- */

static void maps_memory(crowd *c)
{
    static _Alignas(4096) char memory[3 * 4096];
    static _Alignas(4096) const char constant[4096] = "x";
    weft_mr mr;
    weft_iface *iface;
    crowd_open(c, 1);
    iface = c->nodes[0].iface;
    EXPECT(c, iface->ops->mr_reg(iface, memory, sizeof memory, WEFT_ACCESS_READ, WEFT_MEMORY_HOST, &mr) == 0, "memory is mapped");
    EXPECT(c, mr.rkey.length == 4 * ((verbs_iface *)iface)->rail_count && verbs_rkey(&mr.rkey, 0), "a key for every rail");
    EXPECT(c, !verbs_rkey(&mr.rkey, VERBS_RAILS), "and none for a rail that is not there");
    mr.rkey.length = 3;
    EXPECT(c, !verbs_rkey(&mr.rkey, 0), "a key that is cut short is none");
    EXPECT(c, iface->ops->mr_dereg(iface, &mr) == 0, "and unmapped");
    EXPECT(c, iface->ops->mr_reg(iface, memory, sizeof memory, 0, WEFT_MEMORY_DEVICE, &mr) == WEFT_E_UNSUPPORTED,
           "a GPU's is not");
    if (c->is_real) { /* read-only memory can be a source, never a target */
        EXPECT(c, iface->ops->mr_reg(iface, (void *)(uintptr_t)constant, 4096, WEFT_ACCESS_READ, WEFT_MEMORY_HOST, &mr) == 0,
               "memory that is read-only is mapped for reading");
        iface->ops->mr_dereg(iface, &mr);
        EXPECT(c, iface->ops->mr_reg(iface, (void *)(uintptr_t)constant, 4096, WEFT_ACCESS_WRITE, WEFT_MEMORY_HOST, &mr) ==
               WEFT_E_UNSUPPORTED, "but not for writing");
        EXPECT(c, strstr(weft_fail_text(WEFT_E_UNSUPPORTED), "may not be written"), "which is said");
        EXPECT(c, iface->ops->mr_reg(iface, (void *)(uintptr_t)4096, 4096, 0, WEFT_MEMORY_HOST, &mr) == WEFT_E_UNSUPPORTED,
               "what is not there cannot be mapped");
    }
    crowd_close(c);
}

static void meets_limits_of_pinning(crowd *c)
{
    static char memory[1 << 20];
    weft_mr regions[128];
    weft_iface *iface;
    uint32_t mapped = 0;
    int rc = 0;
    crowd_open(c, 1);
    iface = c->nodes[0].iface;
    while (mapped < 128 && !(rc = iface->ops->mr_reg(iface, memory, sizeof memory, 0, WEFT_MEMORY_HOST, &regions[mapped])))
        mapped++;
    EXPECT(c, mapped < 128 && rc == WEFT_E_NOSPACE, "a limit is met as no space");
    EXPECT(c, strstr(weft_fail_text(rc), "cannot pin 1048576 bytes"), "in words");
    while (mapped--)
        iface->ops->mr_dereg(iface, &regions[mapped]);
    crowd_close(c);
}

/* -- error texts -- */

static void explains_errors(crowd *c)
{
    char text[400];
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    for (int status = 1; status <= IBV_WC_GENERAL_ERR; status++) {
        struct ibv_wc wc = {.status = (enum ibv_wc_status)status, .vendor_err = 0x81};
        verbs_wc_error(&crowd_path(c, 0, 1)->qps[0], &wc, "a put", text, sizeof text);
        EXPECT(c, strstr(text, "a put with rank 1 failed on ") && strstr(text, ibv_wc_status_str(wc.status)) &&
               strstr(text, "vendor 0x81"), "rank, rail, status and vendor's code are told");
        EXPECT(c, strlen(strstr(text, "vendor 0x81")) > 40, "and a cause");
    }
    crowd_close(c);
}

static char told[4000];

static void keep_line(void *arg, const char *text)
{
    (void)arg;
    strncat(told, text, sizeof told - strlen(told) - 2);
    strcat(told, "\n");
}

static void chooses_devices(crowd *c)
{
    const char *before = weft_knob.devices;
    weft_iface *iface;
    weft_iface_params params = {.self = {.job = 1, .rank = 1}, .now_ns = crowd_clock()};
    crowd_open(c, 1);
    const char *name = ((verbs_iface *)c->nodes[0].iface)->rails[0].name; /* "simhca0:1" */
    char list[160];
    snprintf(list, sizeof list, "nowhere,void:2;%s,nowhere:2", name);
    weft_knob.devices = list;
    EXPECT(c, weft_verbs_ops.open(&params, &iface) == 0, "rank 1 finds its device in the second list");
    iface->ops->close(iface);
    params.self.rank = 2;
    EXPECT(c, weft_verbs_ops.open(&params, &iface) == WEFT_E_UNSUPPORTED, "rank 2 has the first list, where none is");
    EXPECT(c, strstr(weft_fail_text(WEFT_E_UNSUPPORTED), "WEFT_DEVICES names nowhere,") &&
           strstr(weft_fail_text(WEFT_E_UNSUPPORTED), name), "what is named and not here, and what is here");
    EXPECT(c, strstr(weft_fail_text(WEFT_E_UNSUPPORTED), "excluded by WEFT_DEVICES"), "and why that is not used");
    told[0] = 0;
    weft_verbs_ops.describe(keep_line, NULL);
    EXPECT(c, strstr(told, name) && strstr(told, "not used: excluded by WEFT_DEVICES") && strstr(told, "GID "),
           "tell tells it, too");
    weft_knob.devices = before;
    told[0] = 0;
    weft_verbs_ops.describe(keep_line, NULL);
    EXPECT(c, strstr(told, ": used") && strstr(told, ", used"), "and which port and GID are used");
    crowd_close(c);
}

/* -- running -- */

static const struct {
    const char *name;
    void (*run)(crowd *c);
    const char *profiles; /* of simulated HCAs, comma separated */
    uint32_t seeds;
} tests[] = { /* "... by rdma_cm": for simulated devices; real ones connect as WEFT_VERBS_CONNECT says */
    {"connects", connects, "calm,datagrams,narrow,ib,torn", 10},
    {"connects crosswise", connects_crosswise, "calm,datagrams,narrow,wild", 10},
    {"serves many with few slots", serves_many_with_few_slots, "cramped", 5},
    {"holds an alltoall", holds_an_alltoall, "calm,four", 1},
    {"survives breaks", survives_breaks, "calm,datagrams,breaks,wild,narrow", 5},
    {"only one sends", conn_one_sends, "calm,narrow", 2},
    {"recalls credits", recalls_credits, "calm,datagrams", 5},
    {"leaves while it breaks", leaves_while_it_breaks, "calm,datagrams", 5},
    {"reports closed peers", reports_closed_peers, "calm,datagrams", 10},
    {"ends stuck connections", ends_stuck_connections, "calm,datagrams", 3},
    {"reports failed peers", reports_failed_peers, "calm,datagrams", 3},
    {"replies GONE", replies_gone, "calm,datagrams", 3},
    {"reports lack of memory", reports_lack_of_memory, "calm", 1},
    {"drops foreign messages", drops_foreign_messages, "calm", 1},
    {"loses a rail", conn_loses_a_rail, "two", 5},
    {"idles while rails flap", conn_idles_while_rails_flap, "two", 5},
    {"leaves out a silent pair", conn_leaves_out_silent_pair, "two", 5},
    {"outlives a device", conn_outlives_a_device, "two", 5},
    {"maps memory", maps_memory, "calm,two", 1},
    {"limits of registered memory", meets_limits_of_pinning, "narrow", 1},
    {"pairs agree", conn_pairs_agree, "calm", 3},
    {"explains errors", explains_errors, "calm", 1},
    {"chooses devices", chooses_devices, "calm,two", 1},
    {"connects by rdma_cm", connects, "calm,narrow,torn,two", 10},
    {"connects crosswise by rdma_cm", connects_crosswise, "calm,two,wild", 10},
    {"survives breaks by rdma_cm", survives_breaks, "calm,breaks,two", 5},
    {"only one sends by rdma_cm", conn_one_sends, "calm,two", 2},
    {"leaves while it breaks by rdma_cm", leaves_while_it_breaks, "calm,two", 5},
    {"reports closed peers by rdma_cm", reports_closed_peers, "calm,two", 5},
    {"loses a rail by rdma_cm", conn_loses_a_rail, "two", 10},
    {"idles while rails flap by rdma_cm", conn_idles_while_rails_flap, "two", 5},
    {"leaves out a silent pair by rdma_cm", conn_leaves_out_silent_pair, "two", 5},
    {"fails an unreachable peer by rdma_cm", conn_fails_unreachable_peer, "calm", 5},
    {"leaves out an unreachable rail by rdma_cm", conn_leaves_out_unreachable_rail, "two", 5},
};

static bool is_by_cm(size_t which) { return strstr(tests[which].name, " by rdma_cm") != NULL; }

static bool run_one(size_t which, const char *profile, uint64_t seed)
{
    static crowd c; /* too large for a stack */
    typeof(weft_knob.verbs_connect) before = weft_knob.verbs_connect;
    crowd_init(&c, profile, seed);
    weft_knob.verbs_connect = is_by_cm(which) ? WEFT_VERBS_CONNECT_RDMACM : before;
    tests[which].run(&c);
    weft_knob.verbs_connect = before;
    if (c.failures)
        printf("FAILED: %s, profile %s, seed %llu (%s -t '%s' -p %s -s %llu)\n", tests[which].name, profile,
               (unsigned long long)seed,
               program_invocation_short_name, tests[which].name, profile, (unsigned long long)seed);
    return c.failures == 0;
}

int main(int argc, char **argv)
{
    const char *only = NULL, *profile = NULL;
    uint64_t seed = 0;
    int failures = 0, runs = 0, option;
    while ((option = getopt(argc, argv, "t:p:s:")) >= 0)
        option == 't' ? (void)(only = optarg) : option == 'p' ? (void)(profile = optarg) :
        (void)(seed = strtoull(optarg, NULL, 0));
    setvbuf(stdout, NULL, _IOLBF, 0);
    weft_knobs_load(true);
    if (crowd_is_absent())
        return 77;
    for (size_t i = 0; i < weft_count(tests); i++) {
        char list[128], *save = NULL;
        if (only && strcmp(only, tests[i].name) != 0)
            continue;
        bool has_limits = strcmp(tests[i].profiles, "narrow") == 0 || strcmp(tests[i].profiles, "cramped") == 0;
        if (crowd_is_real && ((!only && has_limits) || is_by_cm(i))) /* limits set by this test */
            continue;
        printf("%s\n", tests[i].name);
        snprintf(list, sizeof list, "%s", profile ? profile : crowd_is_real ? "real" : tests[i].profiles);
        for (char *one = strtok_r(list, ",", &save); one; one = strtok_r(NULL, ",", &save))
            for (uint64_t k = seed ? seed : 1; k <= (seed ? seed : crowd_is_real ? 1 : tests[i].seeds); k++, runs++)
                failures += !run_one(i, one, k);
    }
    printf("%d runs, %d failures\n", runs, failures);
    return failures != 0;
}
