/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_match: matching against a simple model, two lists searched in order: random receives (with wildcards) and arrivals, many colliding
 * keys. The cost of a match does not grow with thousands of non-matching entries.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "core/worker.h"
#include "mem/pool.h"
#include "p2p/match.h"

#define STEPS 60000

typedef struct model_item {
    int source, tag, id;
} model_item;

typedef struct model_list {
    model_item items[STEPS];
    int count;
} model_list;

static bool fits(int asked_source, int asked_tag, int source, int tag)
{
    return (asked_source == WEFT_ANY || asked_source == source) && (asked_tag == WEFT_ANY_TAG || asked_tag == tag);
}

static int take(model_list *list, int at)
{
    int id = list->items[at].id;
    memmove(&list->items[at], &list->items[at + 1], sizeof(model_item) * (size_t)(list->count - at - 1));
    list->count--;
    return id;
}

static int model_recv(model_list *unexpected, int source, int tag)
{
    for (int i = 0; i < unexpected->count; i++)
        if (fits(source, tag, unexpected->items[i].source, unexpected->items[i].tag))
            return take(unexpected, i);
    return -1;
}

static int model_arrive(model_list *posted, int source, int tag)
{
    for (int i = 0; i < posted->count; i++)
        if (fits(posted->items[i].source, posted->items[i].tag, source, tag))
            return take(posted, i);
    return -1;
}

static weft_worker worker;
static weft_match match;
static model_list posted, unexpected;
static weft_req *reqs;

static void step_recv(int id, uint64_t *order)
{
    int source = rand() % 6 ? rand() % 5 : WEFT_ANY, tag = rand() % 6 ? rand() % 7 : WEFT_ANY_TAG;
    weft_unexpected *found = weft_match_find(&match, &worker, source, tag);
    int expected = model_recv(&unexpected, source, tag);
    if (found) {
        CU_ASSERT_EQUAL_FATAL((int)found->hdr.seq, expected);
        weft_unexpected_remove(&match, &worker, found);
        weft_unexpected_free(&worker, found);
        return;
    }
    CU_ASSERT_EQUAL_FATAL(expected, -1);
    reqs[id] = (weft_req){.rank = source, .tag = tag, .order = (*order)++, .rc = id};
    weft_match_post(&match, &reqs[id]);
    posted.items[posted.count++] = (model_item){source, tag, id};
}

static void step_arrive(int id)
{
    int source = rand() % 5, tag = rand() % 7;
    weft_req *req = weft_match_posted(&match, source, tag);
    int expected = model_arrive(&posted, source, tag);
    if (req) {
        CU_ASSERT_EQUAL_FATAL(req->rc, expected);
        return;
    }
    CU_ASSERT_EQUAL_FATAL(expected, -1);
    weft_hdr hdr = {.seq = (uint32_t)id, .src = source, .tag = tag};
    weft_unexpected_add(&match, &worker, weft_unexpected_new(&worker, NULL, &hdr, ""));
    unexpected.items[unexpected.count++] = (model_item){source, tag, id};
}

static void step_cancel(void)
{
    if (posted.count) {
        int at = rand() % posted.count;
        weft_match_unpost(&match, &reqs[take(&posted, at)]);
    }
}

static void equals_the_model(void)
{
    uint64_t order = 0;
    worker.pool = weft_pool_open();
    reqs = calloc(STEPS, sizeof *reqs);
    weft_match_open(&match);
    for (int seed = 1; seed <= 3; seed++) {
        srand((unsigned)seed);
        for (int i = 0; i < STEPS; i++) {
            int bias = (i / 2000) % 3; /* phases with more receives, more arrivals, or as many of both */
            int dice = rand() % 10;
            if (dice == 0)
                step_cancel();
            else if (dice < (bias == 0 ? 4 : bias == 1 ? 7 : 5))
                step_recv(i, &order);
            else
                step_arrive(i);
        }
        while (posted.count)
            weft_match_unpost(&match, &reqs[take(&posted, 0)]);
    }
    for (weft_list_link *link; (link = weft_list_first(&match.unexpected_all));) {
        weft_unexpected *left = weft_container(link, weft_unexpected, all);
        weft_unexpected_remove(&match, &worker, left);
        weft_unexpected_free(&worker, left);
    }
    weft_match_close(&match);
    weft_pool_close(worker.pool);
    free(reqs);
}

/* Among 100,000 posted receives of other keys, and as many of one key, a look-up visits few entries. */
static void chains_stay_short(void)
{
    enum { MANY = 100000 };
    weft_fifomap map;
    weft_fifo_entry *entries = calloc(MANY * 2, sizeof *entries);
    uint32_t longest = 0;
    weft_fifomap_open(&map);
    for (uint32_t i = 0; i < MANY; i++)
        weft_fifomap_insert(&map, &entries[i], weft_match_key((int)(i % 100), (int)(i / 100)));
    for (uint32_t i = 0; i < MANY; i++)
        weft_fifomap_insert(&map, &entries[MANY + i], weft_match_key(1, -5));
    for (uint32_t b = 0; b <= map.mask; b++) {
        uint32_t n = 0;
        for (weft_fifo_entry *e = map.buckets[b]; e; e = e->chain)
            n++;
        longest = n > longest ? n : longest;
    }
    CU_ASSERT(longest < 16);
    CU_ASSERT_EQUAL(map.keys, MANY + 1);
    for (uint32_t i = 0; i < MANY * 2; i++)
        weft_fifomap_remove(&map, &entries[i]);
    CU_ASSERT_EQUAL(map.keys, 0);
    weft_fifomap_close(&map);
    free(entries);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("match", NULL, NULL);
    CU_add_test(suite, "equals a simple model", equals_the_model);
    CU_add_test(suite, "look-ups stay short among thousands", chains_stay_short);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}
