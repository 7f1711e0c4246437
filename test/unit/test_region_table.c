/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_region_table: the table of a dynamic window's regions, and look-ups in it by gets that are torn: the owner attaches and detaches
 * while a get is under way, and each word of it is from some state in between. A region that stays attached is always found; what is found
 * was attached at some time of the look-up, with that key; a region that was detached meanwhile is not current.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/sched.h"
#include "core/worker.h"
#include "rma/device_state.h"
#include "rma/region_table.h"
#include "test/unit/draw.h"

enum { PLACES = 300, PLACE = 4096, ORIGIN = 1 << 20, STATES = 4, STABLE = 7 };
#define STILL UINT64_MAX

/* A region of a place; every STABLE-th is never detached. */
typedef struct place {
    uint64_t base, bytes; /* bytes 0: detached */
    weft_rkey rkey;
} place;

static struct fixture {
    weft_iface iface;
    weft_ep ep;
    weft_peer peer;
    weft_worker *worker;
    weft_window window;
    weft_window_device device;
    weft_window_control control;
    weft_region_table table;
    weft_device_target target;
    place places[PLACES], found_at[PLACES]; /* found_at: attached at some time of the look-up */
    uint32_t generation, count, max, gets, guessed; /* guessed: regions known without a look-up for them */
    uint64_t change_every; /* mean number of gets without changes */
    uint32_t noisy;        /* changes come in each third get, from this one on, from 1; 0: in all */
    bool is_later;         /* a get ends at the next turn */
} all;

/* -- the owner -- */

static void attach(uint64_t i)
{
    place *at = &all.places[i];
    at->base = ORIGIN + i * PLACE + draw(100);
    at->bytes = PLACE / 2 + 200 + draw(1000);
    at->rkey = (weft_rkey){.length = 8};
    memcpy(at->rkey.bytes, &all.generation, sizeof all.generation);
    memcpy(at->rkey.bytes + 4, &at->bytes, 4);
    all.generation++;
    CU_ASSERT(weft_region_table_add(&all.window, &all.table, at->base, at->bytes, &at->rkey));
    all.count++;
    all.found_at[i] = *at;
}

static void detach(uint64_t i)
{
    weft_region_table_remove(&all.table, all.places[i].base);
    all.places[i].bytes = 0;
    all.count--;
    atomic_fetch_add(weft_window_detaches(&all.control, all.places[i].base), 1);
}

static void change(void)
{
    uint64_t i = draw(PLACES);
    if (i % STABLE == 0)
        return;
    if (all.places[i].bytes)
        detach(i);
    else if (all.count < all.max)
        attach(i);
}

/* -- the device -- */

/* Changes happen between states; each word is of one of them. */
static int get(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    static uint64_t states[STATES][WEFT_BOUNCE_BYTES / 8];
    uint64_t words = rma->bytes / 8, *to = rma->local, one = draw(2) ? draw(20) : 2; /* 2: the version of a root */
    bool mixes_all = draw(2);
    bool is_quiet = draw(all.change_every) || (all.noisy && all.gets % 3 != all.noisy - 1);
    uint32_t count = is_quiet ? 1 : 1 + (uint32_t)draw(STATES);
    (void)iface, (void)ep;
    CU_ASSERT_FATAL(rma->bytes <= iface->caps.rma_max && rma->bytes % 8 == 0);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(states[i], (const void *)(uintptr_t)rma->remote, rma->bytes);
        for (uint64_t changes = draw(3); changes && i + 1 < count; changes--)
            change();
    }
    memcpy(to, states[draw(count)], rma->bytes);
    for (uint64_t i = 0; i < words; i++) /* of all states, or one word of another */
        if (mixes_all || i == one)
            to[i] = states[draw(count)][i];
    all.gets++;
    if (!all.is_later)
        ((weft_done *)rma->done)->call(rma->done, 0);
    return 0;
}

static const weft_iface_ops ops = {.name = "torn", .get = get};

/* -- the origin -- */

static void fixture_open(uint64_t rma_max, uint64_t change_every)
{
    memset(&all, 0, sizeof all);
    all.worker = aligned_alloc(_Alignof(weft_worker), sizeof *all.worker);
    memset(all.worker, 0, sizeof *all.worker);
    all.iface = (weft_iface){.ops = &ops, .caps = {.get = true, .rma_max = rma_max}};
    all.ep.iface = &all.iface;
    all.peer.ep = &all.ep;
    all.window.worker = all.worker;
    all.window.device = &all.device;
    all.device.window = &all.window;
    all.target = (weft_device_target){.device = &all.device, .peer = &all.peer, .iface = &all.iface};
    all.max = PLACES;
    all.change_every = change_every;
    CU_ASSERT_FATAL(weft_region_table_open(&all.table) == 0);
    weft_known_open(&all.target.known, 2, &all.control);
    all.target.lookup = weft_device_lookup_new((uintptr_t)all.table.root);
}

static void fixture_close(void)
{
    weft_known_close(&all.target.known);
    free(all.target.lookup);
    weft_bounce_close(&all.device.bounce);
    weft_region_table_close(&all.table);
    free(all.worker);
}

/* 0: found, *region: held. */
static int look_up(uint64_t address, weft_known_region **region)
{
    weft_device_op op = {.target = &all.target, .what = {.kind = WEFT_RMA_PUT, .offset = address, .target_count = 1,
                                                         .target_type = weft_sched_bytes()}};
    int rc;
    memcpy(all.found_at, all.places, sizeof all.places);
    all.gets = 0;
    all.noisy = (uint32_t)draw(4);
    while ((rc = weft_device_look_up(&op)) == WEFT_AGAIN && all.target.lookup->is_repeated)
        ;
    *region = rc ? NULL : weft_known_acquire(&all.target.known, &op.what);
    return rc;
}

static void check_one(uint64_t i)
{
    bool is_stable = i % STABLE == 0;
    uint64_t address = ORIGIN + i * PLACE + (is_stable ? 100 + draw(PLACE / 2) : draw(PLACE));
    weft_known_region *region;
    int rc = look_up(address, &region);
    const place *at = &all.found_at[i];
    CU_ASSERT(rc == 0 || rc == WEFT_E_UNSUPPORTED);
    CU_ASSERT(!is_stable || region);
    CU_ASSERT(rc || region); /* what was detached during the look-up is looked for again */
    if (region) {
        CU_ASSERT(region->base == at->base && region->bytes == at->bytes && !memcmp(&region->rkey, &at->rkey, sizeof at->rkey));
        CU_ASSERT(all.places[i].bytes && address - region->base < region->bytes);
        weft_known_forget(&all.target.known, region);
    }
    weft_known_release(region);
}

/* What is known from the block of another region is attached now. */
static void check_known(uint64_t i)
{
    weft_rma_op op = {.kind = WEFT_RMA_PUT, .offset = ORIGIN + i * PLACE + draw(PLACE), .target_count = 1,
                      .target_type = weft_sched_bytes()};
    weft_known_region *region = weft_known_acquire(&all.target.known, &op);
    const place *at = &all.places[i];
    if (!region)
        return;
    all.guessed++;
    CU_ASSERT(region->base == at->base && region->bytes == at->bytes && !memcmp(&region->rkey, &at->rkey, sizeof at->rkey));
    weft_known_release(region);
}

static void test_torn(void)
{
    static const struct { uint64_t part, change_every; } cases[] = {{4096, 1}, {1000, 2}, {64, 20}};
    for (uint32_t k = 0; k < 3; k++) {
        fixture_open(cases[k].part, cases[k].change_every);
        for (uint64_t i = 0; i < PLACES; i += STABLE)
            attach(i);
        for (int turn = 0; turn < 100000; turn++) {
            check_known(draw(PLACES));
            check_one(draw(2) ? draw(PLACES) : draw(PLACES / STABLE) * STABLE);
            if (draw(100) == 0) /* few, and many */
                all.max = draw(2) ? PLACES : PLACES / STABLE + 2 + (uint32_t)draw(60);
        }
        CU_ASSERT(all.table.root->count == all.count && all.table.arrays_count == 2 && all.guessed > 1000);
        fixture_close();
    }
}

/* A table that does not change is read twice for what is there, three times for what is not, and once for what is below all or empty. */
static void test_still(void)
{
    weft_known_region *region;
    fixture_open(4096, STILL);
    CU_ASSERT(look_up(ORIGIN, &region) == WEFT_E_UNSUPPORTED && all.gets == 1);
    for (uint64_t i = 0; i < PLACES; i++)
        attach(i);
    for (uint64_t i = 0; i < PLACES; i++) {
        CU_ASSERT(look_up(all.places[i].base, &region) == 0 && all.gets == 2);
        weft_known_release(region);
        CU_ASSERT(look_up(all.places[i].base + all.places[i].bytes, &region) == WEFT_E_UNSUPPORTED && all.gets == 3);
    }
    CU_ASSERT(look_up(ORIGIN - 1, &region) == WEFT_E_UNSUPPORTED && all.gets == 1);
    CU_ASSERT_EQUAL(all.device.bounce.free, UINT32_MAX);
    fixture_close();
}

/* The table is bounded; a place that becomes free serves again. Regions come in any order. */
static void test_bounded(void)
{
    static uint32_t order[WEFT_TABLE_MAX];
    weft_rkey none = {.length = 0};
    weft_known_region *region;
    fixture_open(4096, STILL);
    for (uint32_t i = 0; i < WEFT_TABLE_MAX; i++) {
        uint32_t k = (uint32_t)draw(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < WEFT_TABLE_MAX; i++)
        CU_ASSERT(weft_region_table_add(&all.window, &all.table, ORIGIN + order[i] * 16, 8, &none));
    CU_ASSERT(!weft_region_table_add(&all.window, &all.table, 16, 8, &none));
    weft_region_table_remove(&all.table, 16);
    for (uint32_t i = 0; i < WEFT_TABLE_MAX; i += 2)
        weft_region_table_remove(&all.table, ORIGIN + order[i] * 16);
    for (uint32_t i = 0; i < WEFT_TABLE_MAX; i++) {
        CU_ASSERT((look_up(ORIGIN + order[i] * 16 + 7, &region) == 0) == (i % 2 == 1));
        weft_known_release(region);
    }
    CU_ASSERT(weft_region_table_add(&all.window, &all.table, 16, 8, &none));
    CU_ASSERT(look_up(16, &region) == 0);
    weft_known_release(region);
    fixture_close();
}

/* While a get is under way nothing else is read; one that fails ends the look-up. */
static void test_later(void)
{
    weft_device_op op = {.target = &all.target, .what = {.kind = WEFT_RMA_PUT, .target_count = 1}};
    fixture_open(4096, STILL);
    all.is_later = true;
    attach(0);
    op.what.offset = all.places[0].base;
    op.what.target_type = weft_sched_bytes();
    for (int i = 0; i < 3; i++)
        CU_ASSERT(weft_device_look_up(&op) == WEFT_AGAIN && all.gets == 1);
    all.target.lookup->done.call(&all.target.lookup->done, 0);
    for (int i = 0; i < 3; i++)
        CU_ASSERT(weft_device_look_up(&op) == WEFT_AGAIN && all.gets == 2);
    all.target.lookup->done.call(&all.target.lookup->done, WEFT_E_PEER);
    CU_ASSERT(weft_device_look_up(&op) == WEFT_E_UNSUPPORTED && all.gets == 2);
    CU_ASSERT_EQUAL(all.device.bounce.free, UINT32_MAX);
    fixture_close();
}

int main(void)
{
    CU_pSuite suite;
    unsigned failures;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    suite = CU_add_suite("region table", NULL, NULL);
    CU_add_test(suite, "torn", test_torn);
    CU_add_test(suite, "still", test_still);
    CU_add_test(suite, "bounded", test_bounded);
    CU_add_test(suite, "later", test_later);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
