/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_dims: weft_dims_balance against an exhaustive search for small numbers, and its properties and time for large ones: many divisors,
 * large primes, many dimensions.
 */
#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "mpi/topo.h"

#define DIMS_MAX 8
#define SMALL 2500

typedef struct search {
    int count, now[DIMS_MAX], best[DIMS_MAX];
    bool has_best;
} search;

static bool is_better(const search *s)
{
    int width = s->now[0] - s->now[s->count - 1], best = s->best[0] - s->best[s->count - 1];
    if (!s->has_best || width != best)
        return !s->has_best || width < best;
    for (int i = 0; i < s->count; i++)
        if (s->now[i] != s->best[i])
            return s->now[i] < s->best[i];
    return false;
}

/* All nonincreasing factorizations of n. */
static void visit(search *s, int n, int at)
{
    int limit = at ? s->now[at - 1] : n;
    if (at == s->count - 1) {
        if (n > limit)
            return;
        s->now[at] = n;
        if (is_better(s)) {
            memcpy(s->best, s->now, sizeof s->now);
            s->has_best = true;
        }
        return;
    }
    for (int d = 1; d <= limit && d <= n; d++)
        if (n % d == 0) {
            s->now[at] = d;
            visit(s, n / d, at + 1);
        }
}

static void small_numbers_match_the_search(void)
{
    unsigned wrong = 0;
    for (int n = 1; n <= SMALL; n++)
        for (int count = 1; count <= DIMS_MAX; count++) {
            search s = {.count = count};
            int dims[DIMS_MAX];
            visit(&s, n, 0);
            weft_dims_balance((uint32_t)n, count, dims);
            if (memcmp(dims, s.best, (size_t)count * sizeof *dims)) {
                printf("\n  %d in %d: %d %d %d ..., must be %d %d %d ...", n, count, dims[0], dims[1], dims[2], s.best[0], s.best[1],
                       s.best[2]);
                wrong++;
            }
        }
    CU_ASSERT_EQUAL(wrong, 0);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The product is n and the order is nonincreasing. Returns the time. */
static double check_one(uint32_t n, int count)
{
    int dims[100];
    uint64_t product = 1;
    double begin = seconds(), end;
    bool is_ordered = true;
    weft_dims_balance(n, count, dims);
    end = seconds();
    for (int i = 0; i < count; i++) {
        product *= (uint64_t)dims[i];
        is_ordered &= dims[i] >= 1 && (i == 0 || dims[i - 1] >= dims[i]);
    }
    CU_ASSERT_EQUAL(product, n);
    CU_ASSERT(is_ordered);
    return end - begin;
}

static void large_numbers_are_fast(void)
{
    static const uint32_t hard[] = {2095133040, 1396755360, 735134400, 1102701600, 2147483647, 2147483646, 2147395600, 1073741824,
                                    1162261467,
                                    223092870, 1977326743, 2147117569, 720720u * 2969, 2u * 3 * 5 * 7 * 11 * 13 * 17 * 4201, 510510u * 4201,
                                    30030u * 71503, 46337u * 46337, 46327u * 46337, 9699690u * 220, 2147483632,
                                    1u << 20, 1000000, 2000000000};
    static const int counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 25, 29, 30, 31, 32, 100};
    unsigned long long state = 7;
    double longest = 0, total = 0;
    uint32_t slow = 0;
    int slow_count = 0, calls = 0;
    for (int i = 0; i < 3000; i++) {
        uint32_t n;
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        n = i < (int)(sizeof hard / sizeof *hard) ? hard[i] : (uint32_t)(state >> 33);
        if (i >= 1000) /* numbers with many divisors */
            n = 5040u * (n % 426088u + 1);
        if (!n)
            continue;
        for (unsigned k = 0; k < sizeof counts / sizeof *counts; k++) {
            double time = check_one(n, counts[k]);
            calls++;
            total += time;
            if (time > longest) {
                longest = time;
                slow = n;
                slow_count = counts[k];
            }
        }
    }
    printf("\n  %d calls, mean %.1f us, longest %.0f us (%u in %d dimensions) ", calls, total / calls * 1e6, longest * 1e6, slow,
           slow_count);
    CU_ASSERT(longest < 0.1);
}

static void examples_of_the_standard(void)
{
    int dims[2];
    weft_dims_balance(6, 2, dims);
    CU_ASSERT(dims[0] == 3 && dims[1] == 2);
    weft_dims_balance(7, 2, dims);
    CU_ASSERT(dims[0] == 7 && dims[1] == 1);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    suite = CU_add_suite("dims", NULL, NULL);
    CU_add_test(suite, "examples-of-the-standard", examples_of_the_standard);
    CU_add_test(suite, "small-numbers-match-the-search", small_numbers_match_the_search);
    CU_add_test(suite, "large-numbers-are-fast", large_numbers_are_fast);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
