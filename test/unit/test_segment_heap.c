/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_segment_heap: blocks of the node's shared memory: apart, zero, given back, found again; by many processes at once; where the limit
 * of file sizes leaves no heap, or a small one.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "mem/segment_heap.h"

static uint64_t pages_used(const weft_segment *segment, uint64_t offset, uint64_t bytes)
{
    void *view;
    uint64_t used = 0;
    if (weft_segment_view(segment, offset, bytes, &view))
        return UINT64_MAX;
    for (uint64_t i = 0; i < bytes; i += WEFT_PAGE)
        used += memcmp((char *)view + i, (char[WEFT_PAGE]){0}, WEFT_PAGE) != 0;
    weft_segment_drop(view, bytes);
    return used;
}

static void fill(const weft_segment *segment, uint64_t offset, uint64_t bytes, int byte)
{
    void *view;
    CU_ASSERT_EQUAL_FATAL(weft_segment_view(segment, offset, bytes, &view), WEFT_OK);
    memset(view, byte, bytes);
    weft_segment_drop(view, bytes);
}

static void test_blocks(void)
{
    static const uint64_t sizes[] = {1, 4096, 65536, 3 << 20, 100000, 20 << 20};
    uint64_t offsets[weft_count(sizes)], again;
    weft_segment s;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &s), WEFT_OK);
    for (size_t i = 0; i < weft_count(sizes); i++) {
        CU_ASSERT_EQUAL_FATAL(weft_segment_heap_take(&s, sizes[i], &offsets[i]), WEFT_OK);
        CU_ASSERT_EQUAL(offsets[i] % WEFT_PAGE, 0);
        CU_ASSERT(offsets[i] >= s.hdr->heap && offsets[i] + sizes[i] <= s.hdr->total_bytes);
        for (size_t j = 0; j < i; j++)
            CU_ASSERT(offsets[j] + sizes[j] <= offsets[i] || offsets[i] + sizes[i] <= offsets[j]);
        CU_ASSERT_EQUAL(pages_used(&s, offsets[i], weft_round_up(sizes[i], WEFT_PAGE)), 0);
        fill(&s, offsets[i], sizes[i], 0xff);
    }
    weft_segment_heap_return(&s, offsets[3], sizes[3]);
    CU_ASSERT_EQUAL(weft_segment_heap_take(&s, sizes[3], &again), WEFT_OK);
    CU_ASSERT_EQUAL(again, offsets[3]); /* first fit */
    CU_ASSERT_EQUAL(pages_used(&s, again, sizes[3]), 0);
    CU_ASSERT_EQUAL(pages_used(&s, offsets[5], sizes[5]), sizes[5] / WEFT_PAGE); /* neighbours are untouched */
    CU_ASSERT_EQUAL(pages_used(&s, offsets[2], sizes[2]), sizes[2] / WEFT_PAGE);
    CU_ASSERT_EQUAL(weft_segment_heap_take(&s, s.hdr->heap_bytes, &again), WEFT_E_NOSPACE);
    CU_ASSERT_EQUAL(weft_segment_heap_take(&s, s.hdr->heap_bytes + 1, &again), WEFT_E_NOSPACE);
    CU_ASSERT(strstr(weft_fail_text(WEFT_E_NOSPACE), "exceed") != NULL);
    weft_segment_close(&s);
}

/* A heap of few units is filled, runs of units across words of the bitmap included. */
static void test_full(void)
{
    weft_segment s;
    uint64_t offset, unit, count = 0, first = 0;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(1, 1, 0, &s), WEFT_OK);
    unit = s.hdr->heap_unit;
    s.hdr->heap_bytes = 200 * unit;
    while (count <= 200 && weft_segment_heap_take(&s, 3 * unit, &offset) == WEFT_OK)
        first = count++ ? first : offset;
    CU_ASSERT_EQUAL(count, 66);
    CU_ASSERT_EQUAL(weft_segment_heap_take(&s, 2 * unit, &offset), WEFT_OK);
    CU_ASSERT_EQUAL(weft_segment_heap_take(&s, 1, &offset), WEFT_E_NOSPACE);
    weft_segment_heap_return(&s, first + 60 * unit, 66 * unit); /* units 60 to 125 */
    CU_ASSERT_EQUAL(weft_segment_heap_take(&s, 66 * unit, &offset), WEFT_OK);
    CU_ASSERT_EQUAL(offset, first + 60 * unit);
    CU_ASSERT_EQUAL(weft_segment_heap_take(&s, 1, &offset), WEFT_E_NOSPACE);
    weft_segment_close(&s);
}

#define WORKERS 4
static weft_segment shared;
static _Atomic uint32_t errors;

/* Takes blocks, marks them as its own, looks whether they stay so, and gives them back. */
static void *work(void *arg)
{
    uint32_t self = (uint32_t)(uintptr_t)arg, seed = self;
    for (int turn = 0; turn < 100; turn++) {
        uint64_t bytes = (uint64_t)(rand_r(&seed) % 9 + 1) * shared.hdr->heap_unit, offset;
        void *view;
        if (weft_segment_heap_take(&shared, bytes, &offset))
            continue; /* others have most of the 64 units */
        if (weft_segment_view(&shared, offset, bytes, &view)) {
            errors++;
            continue;
        }
        uint32_t *words = view;
        for (uint64_t i = 0; i < bytes / 4; i += 1024) {
            errors += words[i] != 0;
            words[i] = self;
        }
        sched_yield();
        for (uint64_t i = 0; i < bytes / 4; i += 1024)
            errors += words[i] != self;
        weft_segment_drop(view, bytes);
        weft_segment_heap_return(&shared, offset, bytes);
    }
    return NULL;
}

static void test_concurrent(void)
{
    pthread_t threads[WORKERS];
    uint64_t offset;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(1, 1, 0, &shared), WEFT_OK);
    shared.hdr->heap_bytes = 24 * shared.hdr->heap_unit;
    for (uintptr_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    CU_ASSERT_EQUAL(errors, 0);
    CU_ASSERT_EQUAL(weft_segment_heap_take(&shared, shared.hdr->heap_bytes, &offset), WEFT_OK); /* all units are back */
    weft_segment_close(&shared);
}

/* In a process of its own, as the limit is the process's. Exit code: the heap's units, 255 if there are more, 254: no segment. */
static int units_within(uint64_t limit)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        weft_segment s;
        uint64_t offset, units;
        if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit}) || weft_segment_make(2, 1, 0, &s))
            _exit(254);
        units = s.hdr->heap_bytes / s.hdr->heap_unit;
        if (s.hdr->total_bytes > limit || (weft_segment_heap_take(&s, 1, &offset) == WEFT_OK) != (units > 0))
            _exit(253);
        _exit(units > 200 ? 255 : (int)units);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void test_limits(void)
{
    weft_segment s;
    uint64_t without;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &s), WEFT_OK);
    without = s.hdr->extra + s.hdr->extra_bytes;
    weft_segment_close(&s);
    CU_ASSERT_EQUAL(units_within(without), 0);
    CU_ASSERT_EQUAL(units_within(without + (1u << 30)), 255);
    CU_ASSERT_EQUAL(units_within(without / 2), 0); /* with few node areas */
    CU_ASSERT_EQUAL(units_within(without / 64), 254); /* the text names ulimit; no SIGXFSZ */
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("heap of the segment", NULL, NULL);
    CU_add_test(suite, "blocks", test_blocks);
    CU_add_test(suite, "full", test_full);
    CU_add_test(suite, "concurrent", test_concurrent);
    CU_add_test(suite, "limits", test_limits);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
