/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn_rails: see conn_parts.h. Two rails, of which one goes, comes back, or never answers.
 */
#include <stdio.h>
#include <string.h>

#include "base/knob.h"
#include "test/verbs/conn_parts.h"
#include "transports/verbs/conn.h"

static uint32_t links_up(const verbs_path *path)
{
    uint32_t count = 0;
    for (uint8_t i = 0; i < path->link_count; i++)
        count += path->links[i].qp != NULL;
    return path->state == VERBS_UP ? count : 0;
}

static void wait_for_links(crowd *c, uint32_t want)
{
    uint64_t begin = crowd_now(c);
    while ((links_up(crowd_path(c, 0, 1)) != want || links_up(crowd_path(c, 1, 0)) != want) &&
           crowd_now(c) - begin < 40000000000ull)
        crowd_turn(c);
}

/* Nothing to be tried then: closes. */
/* Two ports that have talked; false, and nothing is open, when one rail is all they share. */
static bool open_rails(crowd *c)
{
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    crowd_talk(c, 0, 1, 5);
    crowd_until_quiet(c);
    if (crowd_path(c, 0, 1)->link_count > 1)
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
        crowd_talk(c, 0, 1, 50);
        crowd_talk(c, 1, 0, 50);
        crowd_until_quiet(c);
    }
    EXPECT(c, c->nodes[0].losts + c->nodes[1].losts == 0, "nobody was lost");
    crowd_close(c);
}

/* A path that has nothing to say ends its epoch with each rail that goes or comes, and has no proof that anything gets through. */
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

/* Nobody says that anything is wrong: it just does not arrive. */
void conn_leaves_out_the_silent(crowd *c)
{
    if (!open_rails(c))
        return;
    crowd_silence(c, true);
    crowd_talk(c, 0, 1, 50);
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 0, 1, 55), "frames go by the other rail");
    EXPECT(c, !crowd_path(c, 0, 1)->links[0].qp && !crowd_path(c, 1, 0)->links[0].qp, "the silent one is left out");
    EXPECT(c, strstr(crowd_path(c, 0, 1)->last_error, "retry") || crowd_path(c, 0, 1)->meet->by_cm, "and it is known why");
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
    EXPECT(c, ((verbs_port *)c->nodes[0].port)->rails[0].is_dead, "the port knows");
    crowd_close(c);
}
