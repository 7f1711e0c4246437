/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mw: the contract's memory windows: an rkey for a range, with given access, for one peer, until it is invalidated or the connection
 * breaks. Skipped on ifaces without has_mw.
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/contract/rig.h"

#define AREA 12000u
#define FROM 1000u  /* first byte of the window */
#define BYTES 5000u
#define TRIES 60    /* each may fail on a fabric that breaks connections */

typedef struct shop {
    weft_rig *rig;
    uint8_t *local, *remote;
    weft_mr local_mr, remote_mr;
    weft_rkey rkey;
    weft_mw *mw;
} shop;

static bool shop_open(shop *shop, const rig_row *row)
{
    *shop = (struct shop){.rig = rig_open(row, false)};
    if (!shop->rig)
        return false;
    if (!shop->rig->b->iface->caps.has_mw) {
        rig_close(shop->rig);
        return false;
    }
    shop->local = aligned_alloc(64, weft_round_up(AREA, 64));
    shop->remote = aligned_alloc(64, weft_round_up(AREA, 64));
    memset(shop->local, 0x11, AREA);
    memset(shop->remote, 0x22, AREA);
    CHECK(rig_map(shop->rig->a, shop->local, AREA, 0, &shop->local_mr) == 0);
    CHECK(rig_map(shop->rig->b, shop->remote, AREA, WEFT_ACCESS_MW | WEFT_ACCESS_ORDERED, &shop->remote_mr) == 0); /* it looks at puts */
    CHECK(shop->remote_mr.rights & WEFT_ACCESS_MW);
    return true;
}

static void take_back(shop *shop)
{
    weft_iface *b = shop->rig->b->iface;
    if (shop->mw)
        b->ops->mw_invalidate(b, shop->mw);
    shop->mw = NULL;
}

static void shop_close(shop *shop)
{
    weft_iface *a = shop->rig->a->iface, *b = shop->rig->b->iface;
    take_back(shop);
    CHECK(a->ops->mr_dereg(a, &shop->local_mr) == 0);
    CHECK(b->ops->mr_dereg(b, &shop->remote_mr) == 0);
    rig_close(shop->rig);
    free(shop->local);
    free(shop->remote);
}

/* A window needs a connection, so the exposing side sends a frame first; the other is connected when it receives the rkey. */
static bool lend(shop *shop, uint32_t rights)
{
    rig_side *b = shop->rig->b;
    int rc = WEFT_AGAIN;
    take_back(shop);
    for (uint32_t i = 0; i < 20000 * rig_patience && rc == WEFT_AGAIN; i++) {
        weft_frame frame = {.hdr = {.bytes = 0}};
        if (i % 1000 == 0)
            CHECK(rig_send(b, &frame) == 0);
        rc = b->iface->ops->mw_bind(b->iface, b->ep, &shop->remote_mr, shop->remote + FROM, BYTES, rights, &shop->rkey, &shop->mw);
        if (rc == WEFT_AGAIN)
            rig_turn(shop->rig);
    }
    rig_settle(shop->rig);
    CHECK(rc == 0);
    CHECK(rc || shop->rkey.length <= b->iface->caps.key_bytes);
    return rc == 0;
}

static weft_rma move_of(const shop *shop, uint64_t there, uint64_t bytes)
{
    return (weft_rma){.local = shop->local, .mr = &shop->local_mr, .remote = (uintptr_t)shop->remote + there, .rkey = &shop->rkey,
                       .bytes = bytes};
}

/* RMA by a window with these rights: its result if the connection holds. */
static int try_by(shop *shop, uint32_t rights, uint64_t there, uint64_t bytes, bool is_get)
{
    int rc = WEFT_E_STALE;
    for (int i = 0; i < TRIES && rc == WEFT_E_STALE; i++)
        if (lend(shop, rights))
            rc = rig_move_wait(shop->rig->a, move_of(shop, there, bytes), is_get);
    return rc;
}

static bool is_untouched(const shop *shop)
{
    for (uint32_t i = 0; i < AREA; i++)
        if (shop->remote[i] != 0x22 || shop->local[i] != 0x11)
            return false;
    return true;
}

static void bound_range_is_accessible(const rig_row *row)
{
    static const uint32_t parts[][2] = {{FROM, BYTES}, {FROM, 1}, {FROM + BYTES - 1, 1}, {FROM + 77, 4096}};
    shop shop;
    if (!shop_open(&shop, row))
        return;
    for (uint32_t i = 0; i < 2 * weft_count(parts); i++) {
        uint32_t at = parts[i / 2][0], bytes = parts[i / 2][1];
        bool is_get = i & 1;
        memset(shop.remote, 0x22, AREA);
        rig_pattern(is_get ? shop.remote + at : shop.local, i, bytes);
        CHECK(try_by(&shop, is_get ? WEFT_ACCESS_READ : WEFT_ACCESS_WRITE, at, bytes, is_get) == 0);
        CHECK(rig_is_pattern(is_get ? shop.local : shop.remote + at, i, bytes));
        CHECK(shop.remote[at - 1] == 0x22 && shop.remote[at + bytes] == 0x22);
    }
    shop_close(&shop);
}

/* An rkey that was never issued. */
static weft_rkey spoilt(const weft_rkey *rkey)
{
    weft_rkey bad = *rkey;
    for (uint32_t at = 0; at + 2 * sizeof(uint32_t) <= rkey->length; at += (uint32_t)sizeof(uint32_t)) {
        uint32_t rkey;
        memcpy(&rkey, bad.bytes + at, sizeof rkey);
        rkey ^= rkey ? 1 : 0; /* 0: no rkey for that rail */
        memcpy(bad.bytes + at, &rkey, sizeof rkey);
    }
    return bad;
}

static void other_access_fails(const rig_row *row)
{
    shop shop;
    if (!shop_open(&shop, row))
        return;
    for (int is_get = 0; is_get < 2; is_get++) {
        uint32_t right = is_get ? WEFT_ACCESS_READ : WEFT_ACCESS_WRITE, wrong = is_get ? WEFT_ACCESS_WRITE : WEFT_ACCESS_READ;
        CHECK(try_by(&shop, wrong, FROM, 8, is_get) == WEFT_E_KEY);
        for (int i = 0; i < 3 && !rig_loose_windows; i++) {
            static const uint32_t beyond[] = {FROM - 8, FROM + BYTES - 7, FROM + BYTES};
            CHECK(try_by(&shop, right, beyond[i], 8, is_get) == WEFT_E_KEY);
        }
        shop.rkey = shop.remote_mr.rkey; /* the registration's own rkey grants no access */
        CHECK(rig_move_wait(shop.rig->a, move_of(&shop, FROM, 8), is_get) == WEFT_E_KEY);
        CHECK(is_untouched(&shop));
    }
    CHECK(try_by(&shop, WEFT_ACCESS_WRITE, FROM, 8, false) == 0); /* the connection still works */
    shop_close(&shop);
}

/* Invalidated: the rkey is stale, also after the same bytes are bound again. */
static void invalidates(const rig_row *row)
{
    shop shop;
    uint32_t refused = 0;
    if (!shop_open(&shop, row))
        return;
    for (int i = 0; i < TRIES && refused < 4; i++) {
        bool is_get = i & 1;
        weft_rma rma = move_of(&shop, FROM, 8);
        weft_rkey old;
        if (!lend(&shop, is_get ? WEFT_ACCESS_READ : WEFT_ACCESS_WRITE))
            break;
        old = shop.rkey;
        take_back(&shop);
        rig_settle(shop.rig);
        if (i & 2)
            lend(&shop, is_get ? WEFT_ACCESS_READ : WEFT_ACCESS_WRITE);
        rma.rkey = &old;
        int rc = rig_move_wait(shop.rig->a, rma, is_get);
        CHECK(rc == WEFT_E_KEY || rc == WEFT_E_STALE);
        refused += rc == WEFT_E_KEY;
    }
    CHECK(refused == 4 && is_untouched(&shop));
    shop_close(&shop);
}

/* Another peer's rkey. A malicious peer replaces the epoch (the rkey's last four bytes) by that of its own connection. */
static int try_stolen(shop *shop, rig_side *thief, weft_rma rma, bool is_get)
{
    int rc = WEFT_E_STALE;
    for (uint32_t epoch = 1; epoch < 100 && rc == WEFT_E_STALE; epoch++) {
        weft_rkey rkey = shop->rkey;
        memcpy(rkey.bytes + rkey.length - sizeof epoch, &epoch, sizeof epoch);
        rma.rkey = &rkey;
        rc = rig_move_wait(thief, rma, is_get);
    }
    return rc;
}

/* Another peer cannot use the rkey. */
static void serves_one_peer(const rig_row *row)
{
    shop shop;
    uint32_t refused = 0;
    if (!shop_open(&shop, row))
        return;
    rig_side *c = rig_third(shop.rig);
    weft_mr mr;
    uint8_t *own = malloc(64);
    if (c && rig_map(c, own, 64, 0, &mr) == 0) {
        for (int i = 0; i < TRIES && refused < 3; i++) {
            weft_frame frame = {.hdr = {.bytes = 0}};
            CHECK(rig_send(c, &frame) == 0); /* it is connected to the exposing side, too */
            rig_settle(shop.rig);
            if (!lend(&shop, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE))
                break;
            weft_rma rma = {.local = own, .mr = &mr, .remote = (uintptr_t)shop.remote + FROM, .bytes = 8};
            int rc = try_stolen(&shop, c, rma, i & 1);
            CHECK(rc == WEFT_E_KEY || rc == WEFT_E_STALE);
            refused += rc == WEFT_E_KEY;
        }
        CHECK(refused == 3 && is_untouched(&shop));
        CHECK(try_by(&shop, WEFT_ACCESS_WRITE, FROM, 8, false) == 0); /* the intended peer can use it */
        CHECK(c->iface->ops->mr_dereg(c->iface, &mr) == 0);
    }
    shop_close(&shop);
    free(own);
}

/* A broken connection invalidates its windows: WEFT_E_STALE, and the old rkey grants no access. */
static void ends_with_the_connection(const rig_row *row)
{
    shop shop;
    if (!shop_open(&shop, row))
        return;
    for (int i = 0; i < 3; i++) {
        weft_rma bad = move_of(&shop, FROM, 8), late = move_of(&shop, FROM, 8);
        if (!lend(&shop, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE))
            break;
        weft_rkey none = spoilt(&shop.rkey);
        bad.rkey = &none;
        int rc = rig_move_wait(shop.rig->a, bad, false); /* ends the connection, unless it has ended by chance */
        CHECK(rc == WEFT_E_KEY || rc == WEFT_E_STALE);
        rig_settle(shop.rig);
        CHECK(rig_move_wait(shop.rig->a, late, i & 1) == WEFT_E_STALE);
        CHECK(is_untouched(&shop));
        CHECK(try_by(&shop, WEFT_ACCESS_READ, FROM, 8, true) == 0); /* bound again, it works */
        memset(shop.local, 0x11, AREA);
    }
    shop_close(&shop);
}

/* More windows than can be bound, invalidated in another order, and the memory deregistered before. */
static void many_windows(const rig_row *row)
{
    enum { MANY = 100 };
    weft_mw *loans[MANY];
    weft_rkey rkey;
    shop shop;
    if (!shop_open(&shop, row))
        return;
    weft_iface *b = shop.rig->b->iface;
    for (int round = 0; round < 3; round++) {
        uint32_t count = 0;
        weft_mr mr;
        CHECK(rig_map(shop.rig->b, shop.remote, AREA, WEFT_ACCESS_MW, &mr) == 0);
        if (!lend(&shop, WEFT_ACCESS_READ))
            break;
        for (uint32_t i = 0; i < 3 * MANY && count < MANY; i++) {
            int rc = b->ops->mw_bind(b, shop.rig->b->ep, &mr, shop.remote + i, 100, WEFT_ACCESS_READ, &rkey, &loans[count]);
            CHECK(rc == 0 || rc == WEFT_AGAIN);
            count += rc == 0;
            if (rc)
                rig_turn(shop.rig);
        }
        CHECK(count > 3);
        for (uint32_t i = 0; i < count; i++)
            b->ops->mw_invalidate(b, loans[count - 1 - i]);
        CHECK(b->ops->mr_dereg(b, &mr) == 0); /* at once: the iface keeps it while a window is bound to it */
        rig_settle(shop.rig);
    }
    CHECK(try_by(&shop, WEFT_ACCESS_WRITE, FROM, 8, false) == 0);
    shop_close(&shop);
}

const rig_test lend_tests[] = {
    {"bound-range-is-accessible", bound_range_is_accessible}, {"other-access-fails", other_access_fails}, {"invalidates", invalidates},
    {"serves-one-peer", serves_one_peer}, {"ends-with-the-connection", ends_with_the_connection}, {"many-windows", many_windows},
    {NULL, NULL},
};
