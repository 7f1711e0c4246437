/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lifecycle: the contract's first part: open, get_addr, ep_open, accept_peer, ep_close, close,
 * peer_failed, share; and that no entry of the table is NULL.
 */
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/contract/rig.h"

static weft_frame frame_of(uint32_t n, const void *body, uint32_t bytes)
{
    return (weft_frame){.hdr = {.seq = n, .kind = WEFT_FRAME_EAGER, .tag = (int32_t)n, .bytes = bytes}, .body = body};
}

/* Checks the table as an array of pointers. Entries from mw_bind on may be NULL. */
static void table_is_full(const rig_row *row)
{
    const void *const *entries = (const void *const *)row->ops;
    for (size_t i = 0; i < offsetof(weft_iface_ops, mw_bind) / sizeof *entries; i++)
        CHECK(entries[i] != NULL);
    CHECK(row->ops->unavailable() == NULL);
}

static void caps_are_consistent(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    const weft_caps *caps = &rig->a->iface->caps;
    CHECK(rig->a->iface->owner == rig->a);
    CHECK(caps->frame_max >= 128 && caps->inline_max <= caps->frame_max);
    CHECK(caps->key_bytes <= WEFT_RKEY_BYTES);
    CHECK((!caps->get && !caps->put) || caps->rma_max > 0);
    CHECK(!caps->notify || caps->put);
    CHECK(rig->a->ep->iface == rig->a->iface && rig->a->ep->peer == rig->a->other);
    rig_close(rig);
}

static void addr_fits(const rig_row *row)
{
    char addr[WEFT_ADDR_MAX];
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    size_t bytes = sizeof addr;
    CHECK(rig->a->iface->ops->get_addr(rig->a->iface, addr, &bytes) == 0);
    CHECK(bytes <= WEFT_ADDR_MAX);
    if (bytes > 0) {
        size_t none = bytes - 1;
        CHECK(rig->a->iface->ops->get_addr(rig->a->iface, addr, &none) < 0);
    }
    rig_close(rig);
}

static void accepted_once(const rig_row *row)
{
    weft_rig *rig = row->is_self ? NULL : rig_open(row, true);
    if (!rig)
        return;
    for (uint32_t i = 0; i < 20; i++) {
        weft_frame frame = frame_of(i, &i, sizeof i);
        CHECK(rig_send(rig->a, &frame) == 0);
    }
    CHECK(rig_until(rig, &rig->b->arrival_count, 20));
    CHECK(rig->b->greets == 1 && rig->a->greets == 0);
    for (uint32_t i = 0; i < rig->b->arrival_count; i++)
        CHECK(rig->b->arrivals[i].peer == rig->a);
    CHECK(rig->b->ep != NULL);
    if (rig->b->ep) {
        weft_frame frame = frame_of(1, "answer", 7);
        CHECK(rig_send(rig->b, &frame) == 0);
        CHECK(rig_until(rig, &rig->a->arrival_count, 1));
        CHECK(rig->a->arrival_count == 1 && strcmp((char *)rig->a->arrivals[0].body, "answer") == 0);
    }
    rig_close(rig);
}

/* Frames sent before ep_close arrive; ep_close returns AGAIN while they are in flight; a close is no peer_failed. */
static void closes_without_failure(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    for (uint32_t i = 0; i < 30; i++) {
        weft_frame frame = frame_of(i, &i, sizeof i);
        frame.hdr.kind = i == 29 ? WEFT_FRAME_BYE : WEFT_FRAME_EAGER;
        CHECK(rig_send(rig->a, &frame) == 0);
    }
    rig_side *b = rig->b;
    CHECK(rig_leave(rig->a));
    CHECK(rig_until(rig, &b->arrival_count, 30));
    rig_settle(rig);
    CHECK(b->arrival_count == 30);
    if (!row->is_self)
        CHECK(rig_leave(b));
    rig_settle(rig);
    CHECK(rig->a->losts == 0 && b->losts == 0 && b->greets == 0);
    rig_close(rig);
}

/* outlives_sender: one side may close first. The other's BYE then comes to a closed ep and causes no event, no accept_peer and no error. */
static void late_bye(const rig_row *row)
{
    weft_rig *rig = row->is_self ? NULL : rig_open(row, false);
    if (!rig)
        return;
    if (rig->a->iface->caps.outlives_sender) {
        weft_frame hello = frame_of(0, NULL, 0), bye = frame_of(1, NULL, 0);
        bye.hdr.kind = WEFT_FRAME_BYE;
        CHECK(rig_send(rig->a, &hello) == 0);
        CHECK(rig_until(rig, &rig->b->arrival_count, 1));
        CHECK(rig_leave(rig->a));
        CHECK(rig_send(rig->b, &bye) == 0);
        int worst = 0;
        for (int i = 0; i < 100; i++) {
            int rc = rig->a->iface->ops->poll(rig->a->iface, 16);
            worst = rc < worst ? rc : worst;
        }
        CHECK(worst == 0);
        CHECK(rig->a->greets == 0 && rig->a->losts == 0 && rig->a->arrival_count == 0);
        CHECK(rig_leave(rig->b));
    }
    rig_close(rig);
}

static void take_line(void *arg, const char *text)
{
    uint32_t *lines = arg;
    const char *digit = strpbrk(text, "123456789");
    CHECK(*text && !strchr(text, '\n') && strlen(text) < 1024);
    CHECK(digit != NULL); /* a counter that is not 0 */
    ++*lines;
}

/* print_counters reports something after the first frame. */
static void prints_counters(const rig_row *row)
{
    weft_rig *rig = row->ops->print_counters ? rig_open(row, false) : NULL;
    uint32_t lines = 0;
    if (!rig)
        return;
    weft_frame frame = frame_of(0, NULL, 0);
    CHECK(rig_send(rig->a, &frame) == 0);
    CHECK(rig_until(rig, &rig->b->arrival_count, 1));
    row->ops->print_counters(rig->a->iface, take_line, &lines);
    CHECK(lines > 0);
    rig_close(rig);
}

static void shares_memory(const rig_row *row)
{
    weft_rig *rig = rig_open(row, false);
    if (!rig)
        return;
    weft_iface *a = rig->a->iface, *b = rig->b->iface;
    weft_shared local = {0};
    int rc = a->ops->share(a, 10000, &local);
    if (!a->caps.share) {
        CHECK(rc == WEFT_E_UNSUPPORTED);
    } else {
        CHECK(rc == 0);
        uint8_t *here = local.addr, zero = 0;
        for (int i = 0; rc == 0 && i < 10000; i++)
            zero |= here[i];
        CHECK(zero == 0);
        weft_shared remote = {.handle = local.handle}, wrong = {.handle = local.handle + 12345};
        CHECK(rc != 0 || b->ops->share(b, 10000, &remote) == 0);
        CHECK(b->ops->share(b, 10000, &wrong) < 0);
        if (rc == 0 && remote.addr) {
            CHECK(remote.bytes >= 10000);
            here[9999] = 42;
            CHECK(((uint8_t *)remote.addr)[9999] == 42);
            ((uint8_t *)remote.addr)[0] = 24;
            CHECK(here[0] == 24);
            CHECK(a->ops->unshare(a, &local) == 0);
            CHECK(((uint8_t *)remote.addr)[9999] == 42); /* the peer's mapping stays */
            CHECK(b->ops->unshare(b, &remote) == 0);
        }
    }
    rig_close(rig);
}

/* Frames sent before the death arrive in order, without a gap; then peer_failed is called once. */
static void peer_fails(const rig_row *row)
{
    weft_rig *rig = row->profile ? rig_open(row, false) : NULL;
    if (!rig)
        return;
    for (uint32_t i = 0; i < 40; i++) {
        weft_frame frame = frame_of(i, &i, sizeof i);
        CHECK(rig_send(rig->b, &frame) == 0);
    }
    weft_sim_kill(rig->sim, rig->b->proc_id.rank);
    for (uint32_t i = 0; i < 20000 && !rig->a->losts; i++)
        rig_poll(rig->a, 16);
    CHECK(rig->a->losts == 1 && rig->a->lost_rc_bad == 0);
    uint32_t count = rig->a->arrival_count;
    for (uint32_t i = 0; rig->a->iface->caps.ordered && i < count; i++)
        CHECK(rig->a->arrivals[i].hdr.seq == i);
    for (uint32_t i = 0; i < 2000; i++)
        rig_poll(rig->a, 16);
    CHECK(rig->a->losts == 1 && rig->a->arrival_count == count);
    weft_frame frame = frame_of(0, NULL, 0);
    CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == WEFT_E_PEER);
    rig->b->ep = NULL; /* a killed process closes no ep */
    rig->b->iface = NULL; /* the fabric frees it */
    rig_close(rig);
}

const rig_test life_tests[] = {
    {"table-is-full", table_is_full}, {"caps-are-consistent", caps_are_consistent}, {"addr-fits", addr_fits},
    {"accepted-once", accepted_once}, {"closes-without-failure", closes_without_failure}, {"late-bye", late_bye},
    {"shares-memory", shares_memory}, {"prints-counters", prints_counters}, {"peer-fails", peer_fails},
    {NULL, NULL},
};
