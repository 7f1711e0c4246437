/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn_talk: part of conn: which side sends first after a break.
 */
#include "test/verbs/conn_parts.h"
#include "transports/verbs/verbs.h"

void conn_one_sends(crowd *c)
{
    crowd_open(c, 2);
    crowd_reach(c, 0, 1);
    crowd_reach(c, 1, 0);
    crowd_talk(c, 0, 1, 1);
    for (uint32_t i = 0; i < (c->is_real ? 12 : 40); i++) {
        crowd_until_quiet(c);
        crowd_break(c, i % 2);
        crowd_talk(c, 1, 0, 1);
    }
    crowd_until_quiet(c);
    EXPECT(c, crowd_has(c, 1, 0, c->is_real ? 12 : 40), "all that one side says arrives");
    EXPECT(c, c->nodes[0].losts + c->nodes[1].losts == 0, "and nobody is lost");
    crowd_close(c);
}
