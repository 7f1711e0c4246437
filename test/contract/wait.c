/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait: arm and disarm: no lost wakeup, for any order of send, arm and poll.
 */
#include <poll.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/contract/rig.h"

/* Would a sleeper on this wakeup have been woken? */
static bool has_rung(const weft_wakeup *wakeup)
{
    if (wakeup->futex)
        return __atomic_load_n(wakeup->futex, __ATOMIC_ACQUIRE) != wakeup->value;
    struct pollfd fd = {.fd = wakeup->fd, .events = POLLIN};
    return wakeup->fd >= 0 && poll(&fd, 1, 0) == 1;
}

static weft_wakeup arm(rig_side *side)
{
    weft_wakeup wakeup = {.futex = NULL, .fd = -1};
    int rc = WEFT_AGAIN;
    for (int i = 0; i < 10000 && (rc = side->iface->ops->arm(side->iface, &wakeup)) == WEFT_AGAIN; i++)
        rig_turn(side->rig); /* AGAIN while it reclaims memory */
    CHECK(rc == 0);
    side->rig->gave_up |= rc != 0;
    CHECK(!wakeup.futex || wakeup.fd < 0); /* at most one of both */
    CHECK(!wakeup.futex || !side->rig->row->wants_fd);
    return wakeup;
}

static void wakeup_is_silent(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    for (int i = 0; i < 20 && !rig->gave_up; i++) {
        weft_wakeup wakeup = arm(rig->b);
        CHECK(row->is_self || wakeup.futex || wakeup.fd >= 0);
        CHECK(rig_poll(rig->b, 16) == 0);
        CHECK(!has_rung(&wakeup)); /* no frame was sent */
        rig->b->iface->ops->disarm(rig->b->iface);
    }
    rig_close(rig);
}

/* Sends one frame without a poll of the other side. */
static void send_unseen(weft_rig *rig, uint32_t n)
{
    weft_frame frame = {.hdr = {.seq = n}};
    int rc = WEFT_AGAIN;
    for (int i = 0; i < 10000 && rc == WEFT_AGAIN; i++) {
        rc = rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame);
        if (rc == WEFT_AGAIN)
            rig_poll(rig->a, 1);
    }
    CHECK(rc == 0);
}

/* The first frame may need polls of both sides: a network connects then. */
static void send_seen(weft_rig *rig)
{
    weft_frame frame = {.hdr = {.seq = 0}};
    CHECK(rig_send(rig->a, &frame) == 0);
    CHECK(rig_until(rig, &rig->b->arrival_count, 1));
}

/* The receiver acts as a sleeper: arm, poll once more, then wait for the wakeup only. */
static void one_wake(weft_rig *rig, uint32_t n)
{
    rig_side *b = rig->b;
    uint32_t before = b->arrival_count, moment = (uint32_t)(rig_random(rig) % 3);
    if (moment == 0) {
        send_unseen(rig, n);
        for (uint64_t i = rig_random(rig) % 4; i > 0; i--)
            rig_poll(rig->a, 1); /* in sim time passes */
    }
    weft_wakeup wakeup = arm(b);
    if (moment == 1)
        send_unseen(rig, n);
    rig_poll(b, 16);
    if (b->arrival_count == before) {
        if (moment == 2)
            send_unseen(rig, n);
        for (int i = 0; i < 20000 && !has_rung(&wakeup); i++)
            rig_poll(rig->a, 1);
        CHECK(has_rung(&wakeup) || wakeup.within_ns); /* arrivals without wakeup are found within the timer */
        rig->gave_up |= !has_rung(&wakeup) && !wakeup.within_ns;
    }
    b->iface->ops->disarm(b->iface);
    CHECK(rig_until(rig, &b->arrival_count, before + 1));
}

static void no_lost_wakeup(const rig_row *row)
{
    weft_rig *rig = row->is_self ? NULL : rig_open(row, false);
    if (!rig)
        return;
    send_seen(rig);
    for (uint32_t n = 0; n < 300 && !rig->gave_up; n++)
        one_wake(rig, n);
    rig_close(rig);
}

/* One thread sleeps on the wakeup while another one polls and receives: later arrivals raise it as well. */
static void poll_does_not_disarm(const rig_row *row)
{
    weft_rig *rig = row->is_self ? NULL : rig_open(row, false);
    if (!rig)
        return;
    send_seen(rig);
    for (uint32_t n = 0; n < 100 && !rig->gave_up; n += 2) {
        uint32_t before = rig->b->arrival_count;
        weft_wakeup wakeup = arm(rig->b);
        rig_poll(rig->b, 16);
        send_unseen(rig, n);
        CHECK(rig_until(rig, &rig->b->arrival_count, before + 1));
        send_unseen(rig, n + 1);
        for (int i = 0; i < 20000 && !has_rung(&wakeup); i++)
            rig_poll(rig->a, 1);
        CHECK(has_rung(&wakeup) || wakeup.within_ns);
        rig->gave_up |= !has_rung(&wakeup) && !wakeup.within_ns;
        rig->b->iface->ops->disarm(rig->b->iface);
        CHECK(rig_until(rig, &rig->b->arrival_count, before + 2));
    }
    rig_close(rig);
}

/* Send refused, armed, polled once more, asleep: free space must raise the wakeup, or the sender sleeps on a full queue. */
static void free_space_wakes(const rig_row *row)
{
    weft_rig *rig = row->is_self ? NULL : rig_open(row, false);
    if (!rig)
        return;
    weft_iface *iface = rig->a->iface;
    uint32_t sent = 0;
    for (int round = 0; round < 20 && !rig->gave_up; round++) {
        weft_frame frame = {.hdr = {.seq = sent}};
        int rc = 0;
        for (int i = 0; i < 100000 && rc == 0; i++)
            sent += (rc = iface->ops->send(iface, rig->a->ep, &frame)) == 0;
        CHECK(rc == WEFT_AGAIN);
        weft_wakeup wakeup = arm(rig->a);
        bool found = rig_poll(rig->a, 16) > 0;
        rc = iface->ops->send(iface, rig->a->ep, &frame); /* the last poll before the sleep */
        sent += rc == 0;
        for (int i = 0; i < 20000 && rc == WEFT_AGAIN && !found && !has_rung(&wakeup); i++)
            rig_poll(rig->b, 16);
        CHECK(rc == 0 || found || has_rung(&wakeup));
        iface->ops->disarm(iface);
    }
    CHECK(rig_until(rig, &rig->b->arrival_count, sent));
    rig_close(rig);
}

const rig_test wait_tests[] = {
    {"wakeup-is-silent", wakeup_is_silent}, {"no-lost-wakeup", no_lost_wakeup},
    {"poll-does-not-disarm", poll_does_not_disarm}, {"free-space-wakes", free_space_wakes}, {NULL, NULL},
};
