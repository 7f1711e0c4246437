/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_abort_text: the reason of an abort is printed once: by the first of many threads, or by the next one if that was killed while it
 * printed.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "launch/boot_internal.h"

enum { THREADS = 8 };

static weft_segment segment;

static void *print_text(void *arg)
{
    char text[40];
    snprintf(text, sizeof text, "printed by thread %d", (int)(intptr_t)arg);
    weft_abort_text_print(&segment, (uint32_t)(intptr_t)arg, text);
    return NULL;
}

/* Combined output of all `count` threads. */
static size_t run_threads(int count, char *output, size_t capacity)
{
    pthread_t threads[THREADS];
    int kept = dup(STDERR_FILENO), ends[2];

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, print_text, (void *)(intptr_t)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    dup2(kept, STDERR_FILENO);
    close(kept);
    ssize_t length = read(ends[0], output, capacity - 1);
    close(ends[0]);
    output[length > 0 ? length : 0] = '\0';
    return strlen(output);
}

static void test_printed_once(void)
{
    char output[4096], *first;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(THREADS, 5, 0, &segment), WEFT_OK);
    CU_ASSERT(run_threads(THREADS, output, sizeof output) > 0);
    first = strstr(output, "printed by thread");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_PTR_NULL(strstr(first + 1, "printed by thread"));
    CU_ASSERT_EQUAL(run_threads(2, output, sizeof output), 0);
    weft_segment_close(&segment);
}

static void test_first_is_killed(void)
{
    char output[4096], *first;

    CU_ASSERT_EQUAL_FATAL(weft_segment_make(THREADS, 5, 0, &segment), WEFT_OK);
    atomic_store(&segment.hdr->spoken, 7 + 1); /* claimed the right to print and never finishes */
    uint64_t begin = weft_clock_ns();
    CU_ASSERT(run_threads(3, output, sizeof output) > 0);
    CU_ASSERT(weft_clock_ns() - begin > 1000000000u); /* waited for the first one */
    first = strstr(output, "printed by thread");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_PTR_NULL(strstr(first + 1, "printed by thread"));
    weft_segment_close(&segment);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("abort text", NULL, NULL);
    CU_add_test(suite, "printed once", test_printed_once);
    CU_add_test(suite, "printed by the next thread if the first was killed", test_first_is_killed);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
