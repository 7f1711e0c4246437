/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_rma: accumulates on addressable memory against weft_op_apply, for each operator and each type that it takes, aligned and unaligned,
 * dense and with gaps, and by several threads at once; regions of a dynamic window against a plain list.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/world.h"
#include "rma/atomic.h"
#include "rma/device_state.h"
#include "rma/message.h"
#include "rma/notice.h"
#include "rma/notify.h"
#include "rma/regions.h"
#include "type/op.h"
#include "type/pack.h"
#include "test/unit/draw.h"

enum { N = 37, THREADS = 4, TURNS = 5000 };

static const weft_type *type_at(int i)
{
    const weft_type *type = weft_type_of((void *)(uintptr_t)(0x200 + i));
    return type && !type->is_absent && type->size > 0 ? type : NULL;
}
static const weft_op *op_at(int i) { return weft_op_of((void *)(uintptr_t)(0x20 + i)); }

/* Small whole numbers in all formats: results are exact and no member is a NaN. */
static void fill(const weft_type *type, char *memory, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        memory[i] = (char)(type->class_ == WEFT_CLASS_INT || type->class_ == WEFT_CLASS_UINT || type->class_ == WEFT_CLASS_BYTE ||
                                   type->class_ == WEFT_CLASS_CHAR ? draw(256) : 0);
    for (uint64_t i = 0; i + (uint64_t)type->extent <= bytes; i += (uint64_t)type->extent) {
        if (type->basic_handle == 0x210 || type->basic_handle == 0x212)
            for (int64_t k = 0; k < type->size / 4; k++)
                memcpy(memory + i + 4 * k, &(float){(float)draw(50)}, 4);
        else if (type->basic_handle == 0x214 || type->basic_handle == 0x216)
            for (int64_t k = 0; k < type->size / 8; k++)
                memcpy(memory + i + 8 * k, &(double){(double)draw(50)}, 8);
        else if (type->class_ == WEFT_CLASS_PAIR || type->class_ == WEFT_CLASS_BOOL)
            memory[i] = (char)draw(2);
    }
}

/* One accumulate on target_type at memory + shift, against pack, apply and unpack. */
static void check_one(const weft_op *op, const weft_type *basic, const weft_type *target_type, uint64_t count, uint64_t shift)
{
    uint64_t bytes = count * (uint64_t)target_type->size, elements = bytes / (uint64_t)basic->size;
    uint64_t span = count * (uint64_t)target_type->extent + 64, spread = elements * (uint64_t)basic->extent;
    char *memory = aligned_alloc(64, (span + 127) / 64 * 64), *want = malloc(span + 64), *operand = malloc(bytes), *result = malloc(bytes);
    char *in = malloc(spread), *inout = malloc(spread), *before = malloc(bytes);
    weft_window_control control;
    weft_rma_update update = {.op = op, .basic = basic, .at = memory + shift, .target_type = target_type, .count = count, .bytes = bytes,
                              .operand = operand, .result = result};
    memset(&control, 0, sizeof control);
    fill(basic, memory, span);
    memcpy(want, memory, span);
    fill(basic, in, spread);
    weft_pack(basic, in, elements, 0, bytes, operand);
    weft_pack(target_type, want + shift, count, 0, bytes, before);
    memset(inout, 0, spread);
    weft_unpack(basic, inout, elements, 0, bytes, before);
    weft_op_apply(op, basic, in, inout, elements);
    weft_pack(basic, inout, elements, 0, bytes, in);
    weft_unpack(target_type, want + shift, count, 0, bytes, in);
    if (draw(2)) { /* in two pieces */
        update.bytes = draw(elements + 1) * (uint64_t)basic->size;
        weft_rma_accumulate(&control, &update);
        update.skip = update.bytes;
        update.operand = operand + update.skip;
        update.result = result + update.skip;
        update.bytes = bytes - update.skip;
    }
    weft_rma_accumulate(&control, &update);
    CU_ASSERT(!memcmp(memory, want, span));
    CU_ASSERT(!memcmp(result, before, bytes));
    CU_ASSERT_EQUAL(atomic_load(&control.accumulate), 0);
    free(memory), free(want), free(operand), free(result), free(in), free(inout), free(before);
}

static void test_every_op_and_type(void)
{
    int pairs = 0;
    for (int i = 0; i < 32; i++)
        for (int k = 1; op_at(i) && k < 256; k++) {
            const weft_type *basic = type_at(k);
            weft_type *apart;
            if (!basic || weft_op_fits(op_at(i), basic))
                continue;
            pairs++;
            check_one(op_at(i), basic, basic, N, 0);
            check_one(op_at(i), basic, basic, N, 1 + draw(15));
            CU_ASSERT_EQUAL_FATAL(weft_type_vector(5, 3, 4 * basic->extent, basic, &apart), 0);
            check_one(op_at(i), basic, apart, 4, 0);
            check_one(op_at(i), basic, apart, 4, 1 + draw(15));
            weft_type_drop(apart);
        }
    CU_ASSERT(pairs > 300);
}

typedef struct shared {
    weft_window_control control;
    _Alignas(64) char memory[256];
    const weft_op *op;
    const weft_type *type;
    uint64_t at;
} shared;

/* Adds one TURNS times; counts the places at which a value was fetched: each once. */
static void *add(void *given)
{
    shared *all = given;
    _Alignas(16) char one[32] = {0}, old[32];
    weft_rma_update update = {.op = all->op, .basic = all->type, .at = all->memory + all->at, .target_type = all->type, .count = 1,
                              .bytes = (uint64_t)all->type->size, .operand = one, .result = old};
    if (all->type->class_ == WEFT_CLASS_FLOAT && all->type->size == 16)
        memcpy(one, &(long double){1}, sizeof(long double));
    else if (all->type->class_ == WEFT_CLASS_FLOAT)
        memcpy(one, &(double){1}, 8);
    else
        one[0] = 1;
    for (int i = 0; i < TURNS; i++)
        weft_rma_accumulate(&all->control, &update);
    return NULL;
}

static void check_threads(int type, uint64_t at)
{
    static shared all;
    pthread_t threads[THREADS];
    double sum = 0;
    long double long_sum = 0;
    int64_t whole = 0;
    memset(&all, 0, sizeof all);
    all.op = weft_op_of((void *)0x21);
    all.type = weft_type_of((void *)(uintptr_t)type);
    all.at = at;
    for (int i = 0; i < THREADS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, add, &all), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    memcpy(&sum, all.memory + at, 8);
    memcpy(&long_sum, all.memory + at, sizeof long_sum);
    memcpy(&whole, all.memory + at, (size_t)(all.type->size < 8 ? all.type->size : 8));
    if (all.type->class_ == WEFT_CLASS_FLOAT)
        CU_ASSERT(all.type->size == 16 ? long_sum == THREADS * TURNS : sum == THREADS * TURNS)
    else
        CU_ASSERT_EQUAL(whole, THREADS * TURNS);
}

static void test_threads(void)
{
    static const int types[] = {0x258, 0x250, 0x248, 0x214, 0x220}; /* int64, int32, int16, double, long double */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        check_threads(types[i], 0);
        check_threads(types[i], 61); /* unaligned, across two lines */
    }
}

static void *swap(void *given)
{
    shared *all = given;
    uint64_t *wins = calloc(1, sizeof *wins);
    for (uint64_t i = 0; i < TURNS; i++) {
        uint64_t next = i + 1, old;
        weft_rma_compare_and_swap(&all->control, all->type, all->memory + all->at, &i, &next, &old);
        *wins += old == i;
    }
    return wins;
}

/* Each step from i to i + 1 is won by one thread at most; the value is the number of wins. */
static void test_compare_and_swap(void)
{
    static shared all;
    for (uint64_t at = 0; at <= 61; at += 61) {
        pthread_t threads[THREADS];
        uint64_t wins = 0, end;
        memset(&all, 0, sizeof all);
        all.type = weft_type_of((void *)0x259);
        all.at = at;
        for (int i = 0; i < THREADS; i++)
            CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, swap, &all), 0);
        for (int i = 0; i < THREADS; i++) {
            void *own;
            pthread_join(threads[i], &own);
            wins += *(uint64_t *)own;
            free(own);
        }
        memcpy(&end, all.memory + at, 8);
        CU_ASSERT_EQUAL(end, wins);
        CU_ASSERT_EQUAL(end, TURNS);
    }
}

/* Random attaches and detaches of regions of units of 8 bytes in a space of 4,096 units. */
static void test_regions(void)
{
    static uint16_t owner[4096], lengths[4096]; /* region's first unit plus 1; 0: none */
    weft_window_target own = {.mapped = NULL};
    weft_window_device device = {.iface = NULL};
    weft_window window = {.flavor = WEFT_WINDOW_DYNAMIC, .size = 1, .targets = &own, .device = &device};
    uint64_t origin = 0x10000;
    int attached = 0;
    memset(owner, 0, sizeof owner);
    memset(lengths, 0, sizeof lengths);
    CU_ASSERT_EQUAL_FATAL(weft_rma_regions_open(&window), 0);
    for (int turn = 0; turn < 20000; turn++) {
        uint64_t first = draw(4000), length = 1 + draw(12), from = draw(4000), bytes = 1 + draw(200);
        bool is_free = true, is_in = true;
        for (uint64_t i = first; i < first + length; i++)
            is_free &= !owner[i];
        if (draw(3)) {
            int rc = weft_rma_attach(&window, (void *)(origin + first * 8), length * 8);
            CU_ASSERT_EQUAL(rc, is_free ? 0 : WEFT_E_RMA_ATTACH);
            attached += !rc;
            lengths[first] = is_free ? (uint16_t)length : lengths[first];
            for (uint64_t i = first; is_free && i < first + length; i++)
                owner[i] = (uint16_t)(first + 1);
        } else {
            uint64_t base = draw(8) && owner[first] ? owner[first] - 1u : first;
            int rc = weft_rma_detach(&window, (void *)(origin + base * 8));
            CU_ASSERT_EQUAL(rc, lengths[base] ? 0 : WEFT_E_BASE);
            for (uint64_t i = base; i < base + lengths[base]; i++)
                owner[i] = 0;
            lengths[base] = 0;
        }
        for (uint64_t i = from * 8; i < from * 8 + bytes; i++)
            is_in &= owner[i / 8] != 0;
        CU_ASSERT_EQUAL(weft_rma_is_attached(&window, origin + from * 8, bytes), is_in);
    }
    CU_ASSERT(attached > 3000);
    weft_rma_regions_close(&window);
}

/* -- heads -- */

enum { INT = 0x209, FLOAT = 0x210, SUM = 0x21, BAND = 0x28 }; /* handles */

static bool is_sound(weft_rma_head head, uint64_t behind)
{
    return weft_rma_head_is_sound(&head, weft_type_of((void *)(uintptr_t)head.type), behind);
}

/* A sound head of each kind, and what one wrong number makes of it. */
static void test_damaged_heads(void)
{
    weft_rma_head put = {.kind = WEFT_RMA_PUT, .type = INT, .count = 10, .bytes = 40};
    weft_rma_head sum = {.kind = WEFT_RMA_ACCUMULATE, .type = INT, .basic = INT, .op = SUM, .count = 10, .skip = 8, .bytes = 32};
    weft_rma_head swap = {.kind = WEFT_RMA_COMPARE_AND_SWAP, .type = INT, .basic = INT, .count = 1, .bytes = 4}, head;
    CU_ASSERT(is_sound(put, 40) && !is_sound(put, 39) && is_sound(sum, 32) && !is_sound(sum, 31) && is_sound(swap, 8) &&
              !is_sound(swap, 7));
#define WRONG(from, field, value) \
    do { \
        head = (from); \
        head.field = (value); \
        CU_ASSERT(!is_sound(head, 1 << 20)); \
    } while (0)
    WRONG(put, bytes, 41);
    WRONG(put, count, UINT64_MAX / 2);
    WRONG(put, skip, UINT64_MAX);
    WRONG(put, kind, WEFT_RMA_COMPARE_AND_SWAP + 1);
    WRONG(sum, skip, 12);
    WRONG(sum, skip, 6);
    WRONG(sum, bytes, 30);
    WRONG(sum, basic, FLOAT);
    WRONG(sum, basic, 0xffff);
    WRONG(sum, op, 0xff);
    WRONG(sum, op, 0x3f);
    WRONG(swap, bytes, 2);
    sum.type = sum.basic = FLOAT;
    CU_ASSERT(is_sound(sum, 32));
    WRONG(sum, op, BAND);
    sum.op = WEFT_RMA_NO_OP;
    sum.kind = WEFT_RMA_GET_ACCUMULATE;
    CU_ASSERT(is_sound(sum, 0));
    sum.count = 1 << 20;
    WRONG(sum, bytes, WEFT_RMA_PIECE + 4);
    put.has_data = true;
    CU_ASSERT(is_sound(put, 0));
}

/* -- the death of a holder -- */

enum { DOUBLE_INT = 0x229, MAXLOC = 0x39 }; /* of the ABI */

/* Rank 1 has died with the lock of pairs: rank 0 gets it where the job goes on. */
static void test_dead_holder(void)
{
    struct { double value; int place; } here = {1, 1}, given = {7, 3};
    weft_boot boot = {.local_rank = 0, .size = 2};
    weft_world world = {.boot = &boot};
    weft_window_control control = {.accumulate = 2};
    const weft_type *pair = weft_type_of((void *)(uintptr_t)DOUBLE_INT);
    char packed[12];
    CU_ASSERT_FATAL(pair && pair->class_ == WEFT_CLASS_PAIR && pair->size == sizeof packed);
    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &boot.segment), 0);
    boot.segment.hdr->recovers = 1;
    atomic_store(&weft_segment_rank(&boot.segment, 1)->state, WEFT_RANK_DEAD);
    weft_world_now = &world;
    weft_pack(pair, &given, 1, 0, sizeof packed, packed);
    weft_rma_accumulate(&control, &(weft_rma_update){.op = weft_op_of((void *)(uintptr_t)MAXLOC), .basic = pair, .at = (char *)&here,
                                                     .target_type = pair, .count = 1, .bytes = sizeof packed, .operand = packed});
    weft_world_now = NULL;
    CU_ASSERT(here.value == 7 && here.place == 3 && !atomic_load(&control.accumulate));
    weft_segment_close(&boot.segment);
}

/* -- notices -- */

/* A get, a put that notifies, and a put, of one origin. The later ones end first: none is counted, nor told to the origin as counted,
 * before the get has ended, so no flush is answered. */
static void test_flush_follows_count(void)
{
    weft_window_notify *own = calloc(1, sizeof *own + sizeof *own->targets);
    weft_notify_counter counter = {0};
    weft_window window = {.size = 1, .notify = own};
    weft_rma_peer peer = {0};
    weft_rma_notice *get, *put;
    own->targets[0] = (weft_notify_target){.counters = &counter, .count = 1};
    weft_list_init(&peer.notices);
    CU_ASSERT_EQUAL(weft_rma_notice_counted(&peer, 7), 7);
    CU_ASSERT(weft_rma_notice_begin(&window, &peer, 0, 0, &get) && weft_rma_notice_begin(&window, &peer, 1, 8, &put));
    CU_ASSERT(weft_rma_notice_now(&window, &peer, 1, 9));
    weft_rma_notice_end(&window, &peer, put, true);
    CU_ASSERT_EQUAL(counter.value, 0);
    CU_ASSERT_EQUAL(weft_rma_notice_counted(&peer, 9), 7);
    CU_ASSERT_EQUAL(weft_rma_notice_counted(&peer, 6), 6);
    weft_rma_notice_end(&window, &peer, get, true);
    CU_ASSERT_EQUAL(counter.value, 2);
    CU_ASSERT_EQUAL(weft_rma_notice_counted(&peer, 9), 9);
    CU_ASSERT(weft_rma_notice_now(&window, &peer, 1, 10) && counter.value == 3 && weft_list_is_empty(&peer.notices));
    free(own);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    if (CU_initialize_registry() || !(suite = CU_add_suite("rma", NULL, NULL)))
        return 2;
    CU_add_test(suite, "every operator on every type", test_every_op_and_type);
    CU_add_test(suite, "threads that add", test_threads);
    CU_add_test(suite, "threads that swap", test_compare_and_swap);
    CU_add_test(suite, "regions", test_regions);
    CU_add_test(suite, "a holder that has died", test_dead_holder);
    CU_add_test(suite, "damaged heads", test_damaged_heads);
    CU_add_test(suite, "flush follows count", test_flush_follows_count);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
