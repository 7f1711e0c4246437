/* SPDX-License-Identifier: BSD-3-Clause
 *
 * yard: see yard.h.
 */
#include "test/contract/yard.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

bool yard_open(yard *yard, const rig_row *row)
{
    *yard = (struct yard){.rig = rig_open(row, false)};
    if (!yard->rig)
        return false;
    yard->local = aligned_alloc(64, weft_round_up(YARD_BYTES, 64));
    yard->remote = aligned_alloc(64, weft_round_up(YARD_BYTES, 64));
    memset(yard->local, 0, YARD_BYTES);
    memset(yard->remote, 0, YARD_BYTES);
    CHECK(rig_map(yard->rig->a, yard->local, YARD_BYTES, 0, &yard->local_mr) == 0);
    CHECK(rig_map(yard->rig->b, yard->remote, YARD_BYTES, YARD_RIGHTS, &yard->remote_mr) == 0);
    CHECK(yard->local_mr.addr == yard->local && yard->remote_mr.bytes == YARD_BYTES);
    CHECK(yard->remote_mr.rkey.length <= yard->rig->b->iface->caps.key_bytes);
    yard->rkey = yard->remote_mr.rkey;
    return true;
}

void yard_close(yard *yard)
{
    weft_iface *a = yard->rig->a->iface, *b = yard->rig->b->iface;
    CHECK(a->ops->mr_dereg(a, &yard->local_mr) == 0);
    if (yard->remote_mr.bytes)
        CHECK(b->ops->mr_dereg(b, &yard->remote_mr) == 0);
    rig_close(yard->rig);
    free(yard->local);
    free(yard->remote);
}
