/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_segment: the node's shared memory: layout, sealing, invalid descriptors, claims, areas, waking a sleeper.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/status.h"
#include "mem/segment.h"

static void test_layout(void)
{
    static const uint32_t sizes[] = {1, 2, 3, 64, 256, 4096};

    for (size_t i = 0; i < weft_count(sizes); i++) {
        weft_segment s;
        struct stat stat;
        uint64_t n = sizes[i];
        CU_ASSERT_EQUAL_FATAL(weft_segment_make(sizes[i], 77, 0, &s), WEFT_OK);
        weft_segment_hdr *h = s.hdr;
        CU_ASSERT_EQUAL(h->ranks, sizes[i]);
        CU_ASSERT_EQUAL(h->job, 77);
        CU_ASSERT(h->rank_pages >= sizeof(*h) && h->areas >= h->rank_pages + n * WEFT_PAGE);
        CU_ASSERT(h->inboxes >= h->areas + h->area_count * h->area_bytes);
        CU_ASSERT(h->pools >= h->inboxes + n * n * h->ring_bytes);
        CU_ASSERT_EQUAL(h->calls, h->pools + n * h->pool_bytes);
        CU_ASSERT(h->heap >= h->calls + n * WEFT_CALL_BYTES && h->heap_bytes > 0);
        CU_ASSERT_EQUAL(h->total_bytes, h->heap + h->heap_bytes);
        CU_ASSERT_EQUAL((h->areas | h->inboxes | h->pools | h->calls) % WEFT_PAGE, 0);
        CU_ASSERT_EQUAL(fstat(s.fd, &stat), 0);
        CU_ASSERT_EQUAL((uint64_t)stat.st_size, h->total_bytes);
        /* sparse: only header and rank pages are allocated */
        CU_ASSERT((uint64_t)stat.st_blocks * 512 <= h->areas + 65536);
        weft_segment_close(&s);
        CU_ASSERT_EQUAL(s.fd, -1);
    }
    weft_segment s;
    CU_ASSERT_EQUAL(weft_segment_make(0, 1, 0, &s), WEFT_E_ARG);
    CU_ASSERT_EQUAL(weft_segment_make(4097, 1, 0, &s), WEFT_E_ARG);
}

static void test_sealed(void)
{
    weft_segment s;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &s), WEFT_OK);
    CU_ASSERT_EQUAL(fcntl(s.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    CU_ASSERT_EQUAL(ftruncate(s.fd, 4096), -1);
    CU_ASSERT_EQUAL(ftruncate(s.fd, (off_t)s.hdr->total_bytes + 4096), -1);
    weft_segment_close(&s);
    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 1, &s), WEFT_OK);
    CU_ASSERT_EQUAL(fcntl(s.fd, F_GETFD) & FD_CLOEXEC, 0);
    weft_segment_close(&s);
}

static void test_two_views(void)
{
    weft_segment a, b;
    void *view;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(3, 5, 0, &a), WEFT_OK);
    CU_ASSERT_EQUAL_FATAL(weft_segment_open(dup(a.fd), &b), WEFT_OK);
    CU_ASSERT_PTR_NOT_EQUAL(a.hdr, b.hdr);
    atomic_store(&weft_segment_rank(&a, 2)->probe_word, 1234);
    CU_ASSERT_EQUAL(atomic_load(&weft_segment_rank(&b, 2)->probe_word), 1234);
    CU_ASSERT_EQUAL(atomic_load(&weft_segment_rank(&b, 1)->probe_word), 0);
    CU_ASSERT_EQUAL(weft_segment_claim(&b, b.hdr->pools + 100, 5000), WEFT_OK);
    CU_ASSERT_EQUAL(weft_segment_claim(&b, b.hdr->total_bytes - 1, 2), WEFT_E_INTERN);
    CU_ASSERT_EQUAL_FATAL(weft_segment_view(&b, b.hdr->pools, 8192, &view), WEFT_OK);
    ((char *)view)[100] = 'x';
    weft_segment_drop(view, 8192);
    CU_ASSERT_EQUAL_FATAL(weft_segment_view(&a, a.hdr->pools, 8192, &view), WEFT_OK);
    CU_ASSERT_EQUAL(((char *)view)[100], 'x');
    weft_segment_drop(view, 8192);
    CU_ASSERT_EQUAL(weft_segment_view(&a, 1, 4096, &view), WEFT_E_INTERN);
    CU_ASSERT_EQUAL(weft_segment_view(&a, a.hdr->total_bytes, 4096, &view), WEFT_E_INTERN);
    CU_ASSERT_PTR_NULL(view);
    weft_segment_close(&b);
    weft_segment_close(&a);
}

/* A descriptor that is no segment, or one of another version or layout, is rejected and closed; never mapped. */
static void test_wrong_hdrs(void)
{
    weft_segment s, opened;
    weft_segment_hdr good;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &s), WEFT_OK);
    memcpy(&good, s.hdr, sizeof(good));
    for (int way = 0; way < 6; way++) {
        memcpy(s.hdr, &good, sizeof(good));
        s.hdr->magic ^= way == 0;
        s.hdr->version += way == 1;
        s.hdr->ranks = way == 2 ? 0 : way == 3 ? 4000 : 2;
        s.hdr->pools += way == 4 ? 4096 : 0;
        s.hdr->total_bytes *= way == 5 ? 1000 : 1;
        int fd = dup(s.fd);
        CU_ASSERT_EQUAL(weft_segment_open(fd, &opened), WEFT_E_INTERN);
        CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), -1);
        CU_ASSERT_EQUAL(opened.fd, -1);
    }
    weft_segment_close(&s);
    CU_ASSERT_EQUAL(weft_segment_open(open("/dev/null", O_RDWR), &opened), WEFT_E_SYSTEM);
    CU_ASSERT_EQUAL(weft_segment_open(-1, &opened), WEFT_E_SYSTEM);
}

static void test_areas(void)
{
    weft_segment s;
    uint32_t index[WEFT_SEGMENT_AREA_COUNT], more;
    static bool is_seen[WEFT_SEGMENT_AREA_COUNT];
    unsigned char *view;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(2, 1, 0, &s), WEFT_OK);
    for (int i = 0; i < WEFT_SEGMENT_AREA_COUNT; i++) {
        CU_ASSERT_EQUAL_FATAL(weft_segment_alloc_area(&s, &index[i]), WEFT_OK);
        CU_ASSERT_FATAL(index[i] < WEFT_SEGMENT_AREA_COUNT && !is_seen[index[i]]);
        is_seen[index[i]] = true;
    }
    CU_ASSERT_EQUAL(weft_segment_alloc_area(&s, &more), WEFT_E_NOSPACE);
    uint64_t at = s.hdr->areas + index[7] * s.hdr->area_bytes;
    CU_ASSERT_EQUAL_FATAL(weft_segment_view(&s, at, s.hdr->area_bytes, (void **)&view), WEFT_OK);
    memset(view, 0xee, s.hdr->area_bytes);
    weft_segment_free_area(&s, index[7]);
    CU_ASSERT_EQUAL(weft_segment_alloc_area(&s, &more), WEFT_OK);
    CU_ASSERT_EQUAL(more, index[7]);
    CU_ASSERT(view[0] == 0 && view[s.hdr->area_bytes - 1] == 0 && view[s.hdr->area_bytes / 2] == 0);
    weft_segment_drop(view, s.hdr->area_bytes);
    weft_segment_close(&s);
}

static void *sleeper(void *argument)
{
    weft_rank_page *page = argument;

    atomic_store(&page->asleep, 1);
    while (atomic_load(&page->asleep))
        syscall(SYS_futex, &page->asleep, FUTEX_WAIT, 1, NULL, NULL, 0);
    return NULL;
}

/* The waker maps the segment a second time: a private futex would not find the sleeper. */
static void test_wake(void)
{
    weft_segment a, b;
    pthread_t thread;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(1, 1, 0, &a), WEFT_OK);
    CU_ASSERT_EQUAL_FATAL(weft_segment_open(dup(a.fd), &b), WEFT_OK);
    weft_page_wake(weft_segment_rank(&b, 0)); /* no sleeper: no effect */
    CU_ASSERT_EQUAL(atomic_load(&weft_segment_rank(&a, 0)->asleep), 0);
    pthread_create(&thread, NULL, sleeper, weft_segment_rank(&a, 0));
    while (!atomic_load(&weft_segment_rank(&b, 0)->asleep))
        usleep(1000);
    usleep(20000);
    weft_page_wake(weft_segment_rank(&b, 0));
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(atomic_load(&weft_segment_rank(&b, 0)->asleep), 0);
    weft_segment_close(&b);
    weft_segment_close(&a);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("segment", NULL, NULL);
    CU_add_test(suite, "layout, sparse", test_layout);
    CU_add_test(suite, "sealed", test_sealed);
    CU_add_test(suite, "two views, claim", test_two_views);
    CU_add_test(suite, "invalid headers", test_wrong_hdrs);
    CU_add_test(suite, "areas", test_areas);
    CU_add_test(suite, "wake", test_wake);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
