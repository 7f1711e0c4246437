/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn_rails: see conn_parts.h. Two rails, of which one goes down, recovers, or never answers.
 */
#include <stdio.h>
#include <string.h>

#include "base/knob.h"
#include "test/verbs/conn_parts.h"
#include "transports/verbs/conn.h"

static uint32_t links_up(const verbs_ep *ep)
{
    uint32_t count = 0;
    for (uint8_t i = 0; i < ep->qp_count; i++)
        count += ep->qps[i].ibv_qp != NULL;
    return ep->state == VERBS_UP ? count : 0;
}

static void wait_for_links(crowd *c, uint32_t want)
{
    uint64_t begin = crowd_now(c);
    while ((links_up(crowd_path(c, 0, 1)) != want || links_up(crowd_path(c, 1, 0)) != want) &&
           crowd_now(c) - begin < 40000000000ull)
        crowd_turn(c);
}

/* Two ifaces that have exchanged frames; false, and nothing is open, if they share one rail only. */
static bool open_rails(crowd *c)
{
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    crowd_talk(c, 0, 1, 5);
    crowd_until_quiet(c);
    if (crowd_path(c, 0, 1)->qp_count > 1)
        return true;
    printf("    (one rail only: skipped)\n");
    crowd_close(c);
    return false;
}

void conn_loses_a_rail(crowd *c)
{
    if (!open_rails(c))
        return;
    EXPECT(c, links_up(crowd_path(c, 0, 1)) == 2, "two links");
    for (uint32_t round = 0; round < 2; round++) {
        crowd_link(c, round, false);
        crowd_talk(c, 0, 1, 50);
        crowd_talk(c, 1, 0, 50);
        crowd_until_quiet(c);
        wait_for_links(c, 1);
        EXPECT(c, crowd_has(c, 0, 1, 5 + 50 + 100 * round) && crowd_has(c, 1, 0, 50 + 100 * round),
               "frames go by the other rail");
        EXPECT(c, links_up(crowd_path(c, 0, 1)) == 1 && links_up(crowd_path(c, 1, 0)) == 1, "one link is left");
        crowd_link(c, round, true);
        wait_for_links(c, 2);
        EXPECT(c, links_up(crowd_path(c, 0, 1)) == 2 && links_up(crowd_path(c, 1, 0)) == 2, "a rail that came back is used");
        for (uint32_t i = 0; i < 2; i++)
            EXPECT(c, !((verbs_iface *)c->nodes[i].iface)->conn->deferred, "nothing is kept silent that may speak");
        crowd_talk(c, 0, 1, 50);
        crowd_talk(c, 1, 0, 50);
        crowd_until_quiet(c);
    }
    EXPECT(c, c->nodes[0].losts + c->nodes[1].losts == 0, "nobody was lost");
    crowd_close(c);
}

/* An idle ep ends its epoch with each rail that goes down or recovers, without proof that frames get through. */
void conn_idles_while_rails_flap(crowd *c)
{
    weft_knob.peer_timeout_s = 2;
    if (!open_rails(c))
        return;
    for (uint32_t round = 0; round < (c->is_real ? 5 : 20); round++) {
        crowd_link(c, 1, false);
        wait_for_links(c, 1);
        crowd_link(c, 1, true);
        wait_for_links(c, 2);
    }
    EXPECT(c, c->nodes[0].losts + c->nodes[1].losts == 0, "nobody is lost for silence");
    crowd_talk(c, 0, 1, 5);
    crowd_talk(c, 1, 0, 5);
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 0, 1, 10) && crowd_has(c, 1, 0, 5), "and frames pass");
    crowd_close(c);
    weft_knob.peer_timeout_s = 20;
}

/* Frames are lost without any event or error. */
void conn_leaves_out_silent_pair(crowd *c)
{
    if (!open_rails(c))
        return;
    crowd_silence(c, true);
    crowd_talk(c, 0, 1, 50);
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 0, 1, 55), "frames go by the other rail");
    EXPECT(c, !crowd_path(c, 0, 1)->qps[0].ibv_qp && !crowd_path(c, 1, 0)->qps[0].ibv_qp, "the silent one is left out");
    EXPECT(c, strstr(crowd_path(c, 0, 1)->last_error, "retry") || crowd_path(c, 0, 1)->hs->by_cm, "and it is known why");
    crowd_silence(c, false);
    wait_for_links(c, 2);
    EXPECT(c, links_up(crowd_path(c, 0, 1)) == 2 && links_up(crowd_path(c, 1, 0)) == 2, "when it speaks again it is used");
    crowd_close(c);
}

void conn_outlives_a_device(crowd *c)
{
    if (!open_rails(c))
        return;
    crowd_talk(c, 1, 0, 5);
    crowd_until_quiet(c);
    crowd_talk(c, 0, 1, 50);
    crowd_talk(c, 1, 0, 50);
    crowd_fatal(c);
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 0, 1, 55) && crowd_has(c, 1, 0, 55), "frames go by the device that is left");
    EXPECT(c, c->nodes[0].losts + c->nodes[1].losts == 0, "nobody was lost");
    EXPECT(c, ((verbs_iface *)c->nodes[0].iface)->rails[0].is_dead, "the port knows");
    crowd_close(c);
}

static void pass_a_second(crowd *c)
{
    for (uint64_t begin = crowd_now(c); crowd_now(c) - begin < VERBS_SECOND;)
        crowd_turn(c);
}

/* A rail that rdma_cm cannot connect is left out; each attempt delays frames, so attempts must become rare. */
void conn_leaves_out_unreachable_rail(crowd *c)
{
    uint64_t before;
    if (!open_rails(c))
        return;
    crowd_link(c, 0, false);
    wait_for_links(c, 1);
    crowd_deafen(c, true);
    crowd_link(c, 0, true);
    before = crowd_count(c, 0, VERBS_COUNT_BREAKS);
    for (uint32_t i = 1; i <= 300; i++) {
        crowd_talk(c, 0, 1, 1);
        crowd_talk(c, 1, 0, 1);
        crowd_until_quiet(c);
        EXPECT(c, crowd_has(c, 0, 1, 5 + i) && crowd_has(c, 1, 0, i), "frames go by the other rail");
        pass_a_second(c);
    }
    EXPECT(c, crowd_count(c, 0, VERBS_COUNT_BREAKS) - before < 20, "it is rarely tried");
    EXPECT(c, crowd_count(c, 0, VERBS_COUNT_BREAKS) - before > 2, "it is tried again, though");
    EXPECT(c, c->nodes[0].losts + c->nodes[1].losts == 0, "nobody was lost");
    crowd_deafen(c, false);
    crowd_link(c, 0, false);
    pass_a_second(c); /* else it is not noticed */
    crowd_link(c, 0, true);
    wait_for_links(c, 2);
    EXPECT(c, links_up(crowd_path(c, 0, 1)) == 2 && links_up(crowd_path(c, 1, 0)) == 2, "when it hears again and comes back it is used");
    crowd_close(c);
}

void conn_fails_unreachable_peer(crowd *c)
{
    uint64_t begin;
    weft_knob.peer_timeout_s = 2;
    crowd_open(c, 2);
    crowd_reach(c, 1, 0);
    crowd_talk(c, 1, 0, 5);
    crowd_until_quiet(c);
    crowd_deafen(c, true);
    crowd_break(c, 1);
    crowd_talk(c, 1, 0, 1);
    crowd_talk(c, 0, 1, 1); /* an idle ep does not notice the loss */
    begin = crowd_now(c);
    while (c->nodes[0].losts + c->nodes[1].losts < 2 && crowd_now(c) - begin < 60 * VERBS_SECOND)
        crowd_turn(c);
    EXPECT(c, c->nodes[0].losts == 1 && c->nodes[1].losts == 1, "where there is no other rail both are told");
    EXPECT(c, strstr(c->nodes[1].why, "rank 0 is lost") && strstr(c->nodes[1].why, "connect"), "in words");
    crowd_close(c);
    weft_knob.peer_timeout_s = 20;
}
