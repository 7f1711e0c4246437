/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_object: object pools and slot tables: stale handles are recognized, numbers name one object only, lookups run beside changes.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/object.h"

#define MAGIC WEFT_OBJECT_MAGIC('T', 'E', 'S', 'T')

typedef struct thing {
    weft_object object;
    uint64_t value;
} thing;

static void numbers_name_one_object(void)
{
    static weft_object_pool pool = WEFT_OBJECT_POOL(thing, MAGIC);
    thing *things[1000];
    for (int i = 0; i < 1000; i++) {
        things[i] = weft_object_new(&pool);
        CU_ASSERT_FATAL(things[i] != NULL);
        CU_ASSERT(things[i]->value == 0 && things[i]->object.refs == 1 && things[i]->object.number >= WEFT_OBJECT_CONSTANTS);
        things[i]->value = (uint64_t)i;
    }
    for (int i = 0; i < 1000; i++)
        CU_ASSERT(weft_object_by_number(&pool, things[i]->object.number) == things[i] && things[i]->value == (uint64_t)i);
    CU_ASSERT(!weft_object_by_number(&pool, 0) && !weft_object_by_number(&pool, -1) && !weft_object_by_number(&pool, 4095));
    CU_ASSERT(!weft_object_by_number(&pool, things[999]->object.number + 1) && !weft_object_by_number(&pool, INT32_MAX));
}

static void freed_objects_are_recognized(void)
{
    static weft_object_pool pool = WEFT_OBJECT_POOL(thing, MAGIC);
    thing *first = weft_object_new(&pool), *later;
    int number = first->object.number;
    CU_ASSERT(weft_object_retire(&first->object) && !weft_object_retire(&first->object)); /* one thread frees */
    CU_ASSERT(first->object.number != number && !weft_object_by_number(&pool, number) &&
              !weft_object_by_number(&pool, first->object.number));
    CU_ASSERT(weft_object_drop(&first->object));
    first->value = 7;
    weft_object_free(&pool, first);
    for (int i = 0; i < 64; i++) { /* its memory rests while 64 others are freed */
        later = weft_object_new(&pool);
        CU_ASSERT(later != first && first->object.magic == 0);
        weft_object_free(&pool, later);
    }
    later = weft_object_new(&pool);
    CU_ASSERT(later == first && later->value == 0 && later->object.refs == 1);
    CU_ASSERT(later->object.number != number && !weft_object_by_number(&pool, number));
    CU_ASSERT(weft_object_by_number(&pool, later->object.number) == later);
}

/* A predefined object has its constant until it is freed; its memory goes on with the numbers of the pool. */
static void constants_name_one_object(void)
{
    static weft_object_pool pool = WEFT_OBJECT_POOL(thing, MAGIC);
    thing *predefined = weft_object_new(&pool), *later = NULL;
    int number = predefined->object.number;
    weft_object_set_constant(&predefined->object, 0x101);
    CU_ASSERT(predefined->object.number == 0x101 && !weft_object_by_number(&pool, 0x101) && !weft_object_by_number(&pool, number));
    weft_object_free(&pool, predefined);
    CU_ASSERT(predefined->object.number != 0x101);
    for (int i = 0; i < 65; i++) {
        later = weft_object_new(&pool);
        CU_ASSERT(weft_object_by_number(&pool, later->object.number) == later);
        if (later != predefined)
            weft_object_free(&pool, later);
    }
    CU_ASSERT(later == predefined && later->object.number != number);
}

/* One block of memory has 127 different positive numbers in 127 successive uses. */
static void generations_wrap(void)
{
    static weft_object_pool pool = WEFT_OBJECT_POOL(thing, MAGIC);
    int numbers[130], uses = 0;
    const thing *first = NULL;
    for (int guard = 0; uses < 130 && guard < 100000; guard++) {
        thing *next = weft_object_new(&pool);
        if (!first)
            first = next;
        if (next == first)
            numbers[uses++] = next->object.number;
        weft_object_free(&pool, next);
    }
    CU_ASSERT_FATAL(uses == 130);
    for (int i = 0; i < 127; i++) {
        CU_ASSERT(numbers[i] >= WEFT_OBJECT_CONSTANTS);
        for (int j = 0; j < i; j++)
            CU_ASSERT(numbers[i] != numbers[j]);
    }
    CU_ASSERT(numbers[127] == numbers[0]);
}

static void slots_keep_their_place(void)
{
    static weft_slot_table table;
    static int places[100000];
    bool same = true;
    for (uint32_t i = 0; i < weft_count(places); i++)
        same &= weft_slot_add(&table, &places[i]) == i;
    for (uint32_t i = 0; i < weft_count(places); i++)
        same &= weft_slot_get(&table, i) == &places[i];
    CU_ASSERT(same);
    CU_ASSERT(!weft_slot_get(&table, weft_count(places)) && !weft_slot_get(&table, WEFT_SLOT_MAX) && !weft_slot_get(&table, UINT32_MAX));
    weft_slot_set(&table, 5, NULL);
    CU_ASSERT(!weft_slot_get(&table, 5) && weft_slot_get(&table, 4) == &places[4]);
}

static weft_object_pool shared = WEFT_OBJECT_POOL(thing, MAGIC);

/* Each thread makes, looks up and frees objects of its own; a number never names another thread's object. */
static void *churn(void *argument)
{
    uintptr_t wrong = 0;
    thing *own[50];
    for (int round = 0; round < 200; round++) {
        for (unsigned i = 0; i < weft_count(own); i++) {
            own[i] = weft_object_new(&shared);
            own[i]->value = (uint64_t)(uintptr_t)argument;
        }
        for (unsigned i = 0; i < weft_count(own); i++) {
            thing *found = weft_object_by_number(&shared, own[i]->object.number);
            wrong += found != own[i] || found->value != (uint64_t)(uintptr_t)argument;
            weft_object_hold(&own[i]->object);
            wrong += weft_object_drop(&own[i]->object) || !weft_object_drop(&own[i]->object);
            weft_object_free(&shared, own[i]);
        }
    }
    return (void *)wrong;
}

static void threads_share_a_pool(void)
{
    pthread_t threads[4];
    void *wrong;
    for (uintptr_t i = 0; i < 4; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        CU_ASSERT(wrong == NULL);
    }
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    suite = CU_add_suite("object", NULL, NULL);
    CU_add_test(suite, "numbers-name-one-object", numbers_name_one_object);
    CU_add_test(suite, "constants-name-one-object", constants_name_one_object);
    CU_add_test(suite, "freed-objects-are-recognized", freed_objects_are_recognized);
    CU_add_test(suite, "generations-wrap", generations_wrap);
    CU_add_test(suite, "slots-keep-their-place", slots_keep_their_place);
    CU_add_test(suite, "threads-share-a-pool", threads_share_a_pool);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
