/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_regcache: the tree against a list; hits, neighbours, references, invalidations and a child after fork, with a device that only
 * counts. Limits: test_regcache_limits; async helper: test_regcache_async; real memory: test_regcache_real.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "mem/regcache_tree.h"
#include "regcache_device.h"

/* -- the tree -- */

#define NODES 600

static bool accepts(const weft_regnode *node) { return node->chained != (const weft_regnode *)1; }

static void check_tree(weft_regnode *root, weft_regnode *nodes, const bool *is_in, uint64_t start, uint64_t end, uint32_t rights)
{
    long overlaps = 0, chained = 0;
    bool is_there = false;

    for (int i = 0; i < NODES; i++) {
        overlaps += is_in[i] && nodes[i].start < end && nodes[i].end > start;
        is_there |= is_in[i] && nodes[i].start <= start && nodes[i].end >= end && (nodes[i].rights & rights) == rights;
    }
    weft_regnode *found = weft_regtree_find(root, start, end, rights, accepts);
    CU_ASSERT_EQUAL(found != NULL, is_there);
    if (found)
        CU_ASSERT(is_in[found - nodes] && found->start <= start && found->end >= end && (found->rights & rights) == rights);
    for (weft_regnode *n = weft_regtree_chain(root, start, end); n; n = n->chained) {
        chained++;
        CU_ASSERT(is_in[n - nodes] && n->start < end && n->end > start);
    }
    CU_ASSERT_EQUAL(chained, overlaps);
}

static void test_tree(void)
{
    static weft_regnode nodes[NODES];
    static bool is_in[NODES];
    weft_regnode *root = NULL;
    long count = 0;

    srandom(7);
    for (int step = 0; step < 20000; step++) {
        int i = (int)(random() % NODES);
        if (is_in[i]) {
            weft_regtree_remove(&root, &nodes[i]);
        } else {
            uint64_t start = (uint64_t)random() % 400;
            uint64_t end = start + 1 + (uint64_t)random() % (step % 7 ? 8 : 300);
            nodes[i] = (weft_regnode){.start = start, .end = end, .rights = (uint32_t)random() % 4};
            weft_regtree_add(&root, &nodes[i]);
        }
        is_in[i] = !is_in[i];
        count += is_in[i] ? 1 : -1;
        uint64_t start = (uint64_t)random() % 420;
        if (step % 5 == 0) {
            CU_ASSERT_EQUAL_FATAL(weft_regtree_check(root), count);
            check_tree(root, nodes, is_in, start, start + 1 + (uint64_t)random() % 40, (uint32_t)random() % 4);
        }
    }
}

static void test_hits(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, &blind, 1 << 30, 100);
    weft_reg *pin, *other;

    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(0), 1, 0));
    pin = hold(cache, 0, 4, 1);
    CU_ASSERT_PTR_EQUAL(weft_regcache_lookup(cache, at(1), PAGE, 1), pin);
    CU_ASSERT_PTR_EQUAL(weft_regcache_lookup(cache, (char *)at(0) + 5, 4 * PAGE - 5, 0), pin);
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(3), PAGE + 1, 1)); /* one byte too many */
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(1), PAGE, 3));     /* one right too many */
    other = hold(cache, 1, 1, 3);
    CU_ASSERT_PTR_NOT_EQUAL(other, pin);
    CU_ASSERT_EQUAL(d.maps, 2);
    CU_ASSERT_PTR_EQUAL(hold(cache, 1, 1, 2), other);
    for (int i = 0; i < 3; i++)
        weft_regcache_release(cache, pin);
    weft_regcache_release(cache, other);
    weft_regcache_release(cache, other);
    weft_regcache_counts c = weft_regcache_stats(cache);
    CU_ASSERT(c.hits == 3 && c.misses == 2 && c.pinned_regions == 2 && c.pinned_bytes == 5 * PAGE && d.bytes == 5 * PAGE);
    CU_ASSERT(hold(cache, 100, 0, 0) != NULL); /* length 0: registers a page */
    weft_regcache_release(cache, weft_regcache_lookup(cache, at(100), 0, 0));
    weft_reg *pin2 = weft_regcache_lookup(cache, at(100), 0, 0);
    weft_regcache_release(cache, pin2);
    weft_regcache_release(cache, pin2);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, (void *)(uintptr_t)(UINT64_MAX - 100), 50, 0, &pin), WEFT_E_ARG);
    close_cache(cache, &d);
}

static bool is_range(const weft_reg *pin, uint64_t page, uint64_t pages)
{
    return pin && pin->start == (uint64_t)(uintptr_t)at(page) && pin->end == (uint64_t)(uintptr_t)at(page + pages);
}

/* An owner's registration serves no look-up and covers exactly its pages; its release unregisters it, whatever else covers them; changed
 * memory makes it old but not unregistered. Half of the bounds, and no more. */
static void test_own(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, &blind, 16 * PAGE, 8);
    weft_reg *shared = hold(cache, 0, 4, 3), *own = NULL, *others[4];
    CU_ASSERT(weft_regcache_acquire_own(cache, at(1), PAGE, 2, &own) == 0 && is_range(own, 1, 1) && d.maps == 2);
    weft_regcache_release(cache, shared);
    CU_ASSERT_PTR_EQUAL(weft_regcache_lookup(cache, at(1), PAGE, 2), shared);
    weft_regcache_release(cache, shared);
    tell(0, 1);
    CU_ASSERT(weft_regcache_is_current(cache, own));
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(1), PAGE, 0)); /* the shared one was told of a change, the own one is not found */
    shared = hold(cache, 0, 3, 3); /* contains it, and does not replace it */
    CU_ASSERT(shared != own && weft_regcache_is_current(cache, own));
    tell(1, 1);
    CU_ASSERT(!weft_regcache_is_current(cache, own));
    uint64_t unmaps = d.unmaps;
    weft_regcache_release(cache, own);
    CU_ASSERT(d.unmaps == unmaps + 1);
    weft_regcache_release(cache, shared);
    for (int i = 0; i < 4; i++)
        CU_ASSERT(weft_regcache_acquire_own(cache, at(20 + (uint64_t)i), PAGE, 2, &others[i]) == 0);
    CU_ASSERT(weft_regcache_acquire_own(cache, at(30), PAGE, 2, &own) == WEFT_E_NOSPACE);
    weft_regcache_release(cache, others[0]);
    CU_ASSERT(weft_regcache_acquire_own(cache, at(40), 6 * PAGE, 2, &own) == WEFT_E_NOSPACE); /* more than half of the bytes */
    CU_ASSERT(weft_regcache_acquire_own(cache, at(40), 5 * PAGE, 2, &own) == 0);
    weft_regcache_release(cache, own);
    for (int i = 1; i < 4; i++)
        weft_regcache_release(cache, others[i]);
    close_cache(cache, &d);
}

/* Registered pages are not registered again because of requests for their neighbours. */
static void test_neighbours(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, &blind, 1 << 30, 100000);
    weft_reg *old, *next, *all;

    old = hold(cache, 10, 2, 1);
    next = hold(cache, 12, 2, 1); /* adjacent */
    CU_ASSERT(is_range(old, 10, 2) && is_range(next, 12, 2) && d.regions == 2);
    weft_regcache_release(cache, next);
    all = hold(cache, 11, 3, 1); /* spans both, replaces the second, which has no reference */
    CU_ASSERT(is_range(all, 11, 3) && d.regions == 2 && d.bytes == 5 * PAGE);
    CU_ASSERT_PTR_EQUAL(hold(cache, 10, 2, 1), old); /* still found */
    weft_regcache_release(cache, old);
    weft_regcache_release(cache, all);
    all = hold(cache, 10, 4, 1); /* covers both; the referenced one lives on but is not found any more */
    CU_ASSERT(is_range(all, 10, 4) && d.regions == 2);
    weft_regcache_release(cache, old);
    CU_ASSERT(d.regions == 1 && d.bytes == 4 * PAGE);
    weft_regcache_release(cache, all);
    touch(cache, 14, 4, 2); /* other rights: another registration */
    CU_ASSERT_EQUAL(d.regions, 2);
    touch(cache, 8, 20, 2); /* does not get the rights of the first */
    CU_ASSERT_EQUAL(d.regions, 2);
    touch(cache, 8, 20, 3); /* covers all, with all rights */
    CU_ASSERT(d.regions == 1 && d.bytes == 20 * PAGE);
    /* Fragments of a large array that are not page-aligned: the page between two fragments is in both, no more. */
    weft_regcache_flush(cache);
    unsigned maps = d.maps;
    for (uint64_t i = 0; i < 64; i++) {
        weft_reg *pin = NULL;
        CU_ASSERT_EQUAL(weft_regcache_acquire(cache, (char *)at(2000 + 8 * i) + 100, 8 * PAGE, 1, &pin), WEFT_OK);
        weft_regcache_release(cache, pin);
    }
    CU_ASSERT_EQUAL(d.maps - maps, 64);
    CU_ASSERT_EQUAL(d.bytes, 64 * 9 * PAGE);
    close_cache(cache, &d);
}

static void test_invalidation(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, &blind, 1 << 30, 100);
    weft_reg *pin, *again;

    touch(cache, 0, 4, 0);
    touch(cache, 10, 4, 0);
    tell(3, 1);
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(0), 1, 0));
    CU_ASSERT_EQUAL(d.regions, 1);
    tell(14, 100); /* adjacent only */
    pin = weft_regcache_lookup(cache, at(10), 1, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pin);
    tell(0, 11); /* while referenced: removed from the tree, registered until its last release */
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(10), 1, 0));
    CU_ASSERT_EQUAL(d.regions, 1);
    again = hold(cache, 10, 4, 0);
    CU_ASSERT(again != pin && d.regions == 2);
    weft_regcache_release(cache, pin);
    CU_ASSERT_EQUAL(d.regions, 1);
    weft_regcache_release(cache, again);
    for (int i = 0; i < WEFT_INVAL_LOG_CAPACITY + 5; i++) /* more than the log's capacity: everything is invalidated */
        tell(100000, 1);
    CU_ASSERT_PTR_NULL(weft_regcache_lookup(cache, at(10), 1, 0));
    CU_ASSERT_EQUAL(d.regions, 0);
    touch(cache, 10, 4, 0);
    tell(0, 1000);
    weft_regcache_reclaim(cache);
    CU_ASSERT_EQUAL(d.regions, 0);
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).invalidations, 4);
    close_cache(cache, &d);
}

/* A memmon that tracks nothing: every registration is for one use. */
static void test_uncached(void)
{
    static weft_memmon none = {.log = &silent_log, .lock = PTHREAD_MUTEX_INITIALIZER, .maps = -1, .uffd = {.fd = -1}};
    device d;
    weft_regcache *cache = open_cache(&d, &none, 8 * PAGE, 100);

    CU_ASSERT_FALSE(weft_regcache_may_keep(cache, at(0), PAGE));
    for (int i = 0; i < 5; i++) {
        weft_reg *a = hold(cache, 0, 4, 0), *b = hold(cache, 0, 4, 0), *c = NULL;
        CU_ASSERT(a && b && a != b && d.regions == 2);
        CU_ASSERT_EQUAL(weft_regcache_acquire(cache, at(50), PAGE, 0, &c), WEFT_E_NOSPACE); /* the limits apply to these too */
        weft_regcache_acquire_async(cache, at(0), PAGE, 0);
        weft_regcache_release(cache, a);
        weft_regcache_release(cache, b);
        CU_ASSERT_EQUAL(d.regions, 0);
    }
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).uncached, 10);
    CU_ASSERT_EQUAL(weft_regcache_stats(cache).async, 0);
    close_cache(cache, &d);
}

/* A child deregisters nothing of its parent; closing has no effect. */
static void test_fork(void)
{
    device d;
    weft_regcache *cache = open_cache(&d, weft_memmon_get(), 1 << 30, 100);
    char *buffer = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    weft_reg *pin = NULL, *held = NULL;
    int status = 1;

    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, buffer, PAGE, 0, &pin), WEFT_OK);
    CU_ASSERT_EQUAL(weft_regcache_acquire(cache, buffer + 4 * PAGE, PAGE, 0, &held), WEFT_OK);
    weft_regcache_release(cache, pin);
    uint64_t before = d.unmaps; /* without a memmon that was one */
    pid_t child = fork();
    if (!child) {
        bool is_right = weft_regcache_lookup(cache, buffer, PAGE, 0) == NULL || !weft_memmon_get()->is_forgotten;
        weft_regcache_release(cache, held);
        weft_regcache_reclaim(cache);
        weft_regcache_flush(cache);
        weft_regcache_close(cache);
        _exit(is_right && d.unmaps == before ? 0 : 1);
    }
    CU_ASSERT(child > 0 && waitpid(child, &status, 0) == child && !status);
    weft_regcache_release(cache, held);
    close_cache(cache, &d);
    munmap(buffer, 8 * PAGE);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("regcache", NULL, NULL);
    CU_add_test(suite, "tree", test_tree);
    CU_add_test(suite, "hits", test_hits);
    CU_add_test(suite, "neighbours", test_neighbours);
    CU_add_test(suite, "own", test_own);
    CU_add_test(suite, "invalidation", test_invalidation);
    CU_add_test(suite, "uncached", test_uncached);
    CU_add_test(suite, "fork", test_fork);
    return run_tests();
}
