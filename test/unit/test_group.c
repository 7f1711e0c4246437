/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_group: groups against a model that uses arrays of processes only: constructors, look-ups, set operations, selections by ranks and
 * ranges, comparison, on random groups of runs, lists and several jobs; and groups of 2^31 - 1 members.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/group.h"

#define UNIVERSE 300 /* ranks of each job */
#define JOBS 2
#define MEMBERS (UNIVERSE * JOBS)
#define ROUNDS 4000

typedef struct model {
    int size;
    int members[MEMBERS]; /* job * UNIVERSE + rank */
} model;

static unsigned long long state = 1;

static int below(int limit)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((state >> 33) % (unsigned)limit);
}

static weft_process process_of(int member) { return (weft_process){(uint64_t)(member / UNIVERSE) + 7, (uint32_t)(member % UNIVERSE)}; }

static int find(const model *m, int member)
{
    for (int i = 0; i < m->size; i++)
        if (m->members[i] == member)
            return i;
    return -1;
}

static void add(model *m, int member)
{
    if (find(m, member) < 0)
        m->members[m->size++] = member;
}

/* A few ranges, or members at random, of one job or both. */
static void draw(model *m)
{
    int jobs = below(4) ? 1 : JOBS, ranges = below(5), singles = below(3) ? 0 : below(100);
    m->size = 0;
    for (int i = 0; i < ranges; i++) {
        int job = below(jobs), first = below(UNIVERSE), stride = below(9) - 4, count = below(60);
        for (int k = 0; k < count && first + k * stride >= 0 && first + k * stride < UNIVERSE; k++)
            add(m, job * UNIVERSE + first + k * stride);
    }
    for (int i = 0; i < singles; i++)
        add(m, below(jobs * UNIVERSE));
}

static weft_group *make(const model *m)
{
    weft_process processes[MEMBERS];
    weft_group *group = NULL;
    for (int i = 0; i < m->size; i++)
        processes[i] = process_of(m->members[i]);
    CU_ASSERT_FATAL(weft_group_processes(processes, (uint32_t)m->size, &group) == 0);
    return group;
}

/* Compares and drops. */
static void matches(weft_group *group, const model *m)
{
    CU_ASSERT_FATAL(group->size == (uint32_t)m->size && (m->size > 0 || group == &weft_group_empty));
    for (int i = 0; i < m->size; i++) {
        weft_process want = process_of(m->members[i]), got = weft_group_process(group, (uint32_t)i);
        CU_ASSERT_FATAL(got.job == want.job && got.rank == want.rank);
    }
    for (int i = 0; i < 50; i++) {
        int member = below(MEMBERS);
        CU_ASSERT_FATAL(weft_group_rank_of(group, process_of(member)) == find(m, member));
    }
    weft_group_drop(group);
}

static void groups_are_what_they_were_made_of(void)
{
    model m;
    for (int i = 0; i < ROUNDS; i++) {
        draw(&m);
        matches(make(&m), &m);
    }
}

static void sets_match_the_model(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        model a, b, both = {0}, common = {0}, rest = {0};
        weft_group *x, *y, *group = NULL;
        draw(&a);
        draw(&b);
        x = make(&a);
        y = make(&b);
        both = a;
        for (int k = 0; k < b.size; k++)
            add(&both, b.members[k]);
        for (int k = 0; k < a.size; k++)
            add(find(&b, a.members[k]) < 0 ? &rest : &common, a.members[k]);
        CU_ASSERT_FATAL(weft_group_union(x, y, &group) == 0);
        matches(group, &both);
        CU_ASSERT_FATAL(weft_group_intersection(x, y, &group) == 0);
        matches(group, &common);
        CU_ASSERT_FATAL(weft_group_difference(x, y, &group) == 0);
        matches(group, &rest);
        weft_group_drop(x);
        weft_group_drop(y);
    }
}

static void shuffle(model *m, int swaps)
{
    for (int i = 0; i < swaps && m->size; i++) {
        int a = below(m->size), b = below(m->size), member = m->members[a];
        m->members[a] = m->members[b];
        m->members[b] = member;
    }
}

static void comparisons_match_the_model(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        model a, b;
        weft_group *x, *y;
        bool same = true;
        enum weft_group_relation want = WEFT_GROUP_IDENT;
        draw(&a);
        b = a;
        if (below(2))
            shuffle(&b, below(200));
        if (b.size && !below(3))
            b.members[below(b.size)] = below(MEMBERS);
        for (int k = 0; k < b.size; k++)
            for (int l = 0; l < k; l++)
                same &= b.members[k] != b.members[l];
        if (!same)
            continue; /* the new member was one already */
        for (int k = 0; k < a.size; k++)
            if (a.members[k] != b.members[k] && want == WEFT_GROUP_IDENT)
                want = WEFT_GROUP_SIMILAR;
        for (int k = 0; k < a.size; k++)
            if (find(&b, a.members[k]) < 0)
                want = WEFT_GROUP_UNEQUAL;
        x = make(&a);
        y = make(&b);
        CU_ASSERT_FATAL(weft_group_compare(x, y) == want && weft_group_compare(y, x) == want);
        weft_group_drop(x);
        weft_group_drop(y);
    }
}

/* Draws distinct ranks 0..size - 1 as ranges and as an array. Returns the number of ranges. */
static int draw_ranges(int size, int (*ranges)[3], int *ranks, int *n)
{
    bool used[MEMBERS] = {0};
    int count = 0;
    *n = 0;
    for (int i = 0; i < 40 && size; i++) {
        int first = below(size), stride = below(3) ? below(9) - 4 : 1, length = below(2) ? 1 : 1 + below(30), k = 0;
        stride = stride ? stride : 1;
        while (k < length && first + k * stride >= 0 && first + k * stride < size && !used[first + k * stride])
            used[first + k++ * stride] = true;
        if (!k)
            continue;
        for (int l = 0; l < k; l++)
            ranks[(*n)++] = first + l * stride;
        ranges[count][0] = first;
        ranges[count][1] = first + (k - 1) * stride + (stride > 0 ? below(stride) : -below(-stride)); /* need not be one of the ranks */
        ranges[count++][2] = stride;
        if (!below(8))
            break;
    }
    return count;
}

static void selections_match_the_model(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        model a, kept = {0}, rest = {0};
        int ranges[40][3], ranks[MEMBERS], n, count;
        weft_group *x, *group = NULL;
        draw(&a);
        x = make(&a);
        count = draw_ranges(a.size, ranges, ranks, &n);
        for (int k = 0; k < n; k++)
            add(&kept, a.members[ranks[k]]);
        for (int k = 0; k < a.size; k++)
            if (find(&kept, a.members[k]) < 0)
                add(&rest, a.members[k]);
        CU_ASSERT_FATAL(weft_group_incl(x, (uint32_t)n, ranks, &group) == 0);
        matches(group, &kept);
        CU_ASSERT_FATAL(weft_group_excl(x, (uint32_t)n, ranks, &group) == 0);
        matches(group, &rest);
        CU_ASSERT_FATAL(weft_group_range_incl(x, (uint32_t)count, ranges, &group) == 0);
        matches(group, &kept);
        CU_ASSERT_FATAL(weft_group_range_excl(x, (uint32_t)count, ranges, &group) == 0);
        matches(group, &rest);
        if (n) { /* one rank a second time */
            ranks[n] = ranks[below(n)];
            ranges[count][0] = ranges[count][1] = ranks[n];
            ranges[count][2] = -1;
            CU_ASSERT_FATAL(weft_group_incl(x, (uint32_t)n + 1, ranks, &group) == WEFT_E_RANK);
            CU_ASSERT_FATAL(count == 40 || weft_group_range_excl(x, (uint32_t)count + 1, ranges, &group) == WEFT_E_RANK);
        }
        weft_group_drop(x);
    }
}

static void errors_name_argument_and_value(void)
{
    weft_group *group, *made;
    int ranks[] = {3, 0, 10, 3}, ranges[][3] = {{0, 6, 3}, {9, 3, 2}, {1, 2, 0}, {5, 12, 3}, {9, 3, -3}, {7, -2, -4}};
    CU_ASSERT_FATAL(weft_group_range(7, 100, 1, 10, &group) == 0);
    CU_ASSERT(weft_group_incl(group, 4, ranks, &made) == WEFT_E_RANK);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_RANK), "argument ranks[2] is 10: rank 10 is not in the group (0..9)");
    ranks[2] = -1;
    CU_ASSERT(weft_group_excl(group, 4, ranks, &made) == WEFT_E_RANK);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_RANK), "argument ranks[2] is -1: rank -1 is not in the group (0..9)");
    ranks[2] = 9;
    CU_ASSERT(weft_group_excl(group, 4, ranks, &made) == WEFT_E_RANK);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_RANK), "argument ranks[3] is 3, as ranks[0] is: each rank may be given once");
    CU_ASSERT(weft_group_incl(&weft_group_empty, 1, ranks, &made) == WEFT_E_RANK);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_RANK), "argument ranks[0] is 3: rank 3 is not in the group, which is empty");
    CU_ASSERT(weft_group_range_incl(group, 2, ranges, &made) == WEFT_E_ARG);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_ARG), "argument ranges[1] is (9, 3, 2): the stride leads away from the last rank");
    CU_ASSERT(weft_group_range_excl(group, 1, ranges + 2, &made) == WEFT_E_ARG);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_ARG), "argument ranges[0] is (1, 2, 0): the stride cannot be 0");
    CU_ASSERT(weft_group_range_incl(group, 1, ranges + 3, &made) == WEFT_E_RANK);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_RANK), "argument ranges[0] is (5, 12, 3): rank 11 is not in the group (0..9)");
    CU_ASSERT(weft_group_range_incl(group, 1, ranges + 5, &made) == WEFT_E_RANK);
    ranges[1][2] = -6;
    CU_ASSERT(weft_group_range_incl(group, 2, ranges, &made) == WEFT_E_RANK);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_RANK),
                           "argument ranges[1] is (9, 3, -6): it has rank 3, as ranges[0] has: each rank may be given once");
    CU_ASSERT(weft_group_incl(group, 0, NULL, &made) == 0 && made == &weft_group_empty);
    CU_ASSERT(weft_group_excl(group, 0, NULL, &made) == 0 && weft_group_compare(group, made) == WEFT_GROUP_IDENT);
    weft_group_drop(made);
    weft_group_drop(group);
}

/* All of a group's memory is its struct; runs beside the first are a few bytes. */
static void huge_ranges_cost_nothing(void)
{
    weft_group *all, *few, *odd, *other, *list, *made;
    int ranges[][3] = {{INT32_MAX - 1, 0, -1}}, holes[][3] = {{5, 5, 1}, {1000, 2000, 1}, {INT32_MAX - 9, INT32_MAX - 2, 7}};
    uint32_t ranks[40];
    CU_ASSERT_FATAL(weft_group_range(7, 0, 1, INT32_MAX, &all) == 0 && weft_group_bytes(all) == 0 && all->size == INT32_MAX);
    CU_ASSERT_FATAL(weft_group_range(7, 1, 2, INT32_MAX / 2, &odd) == 0 && weft_group_bytes(odd) == 0);
    CU_ASSERT_FATAL(weft_group_range(7, 10, 3, 5, &few) == 0);
    CU_ASSERT_FATAL(weft_group_range(8, 0, 1, 5, &other) == 0);
    for (uint32_t i = 0; i < 40; i++)
        ranks[i] = (i * 77) % 1000 * (i + 1);
    CU_ASSERT_FATAL(weft_group_list(7, ranks, 40, &list) == 0 && list->run_count == 0);
    CU_ASSERT(weft_group_union(all, few, &made) == 0 && made->size == INT32_MAX && weft_group_bytes(made) == 0);
    weft_group_drop(made);
    CU_ASSERT(weft_group_union(all, other, &made) == WEFT_E_TOOLARGE);
    CU_ASSERT(weft_group_intersection(all, list, &made) == 0 && made->size == 40);
    weft_group_drop(made);
    CU_ASSERT(weft_group_intersection(all, odd, &made) == 0 && weft_group_compare(made, odd) == WEFT_GROUP_IDENT);
    weft_group_drop(made);
    CU_ASSERT(weft_group_difference(all, odd, &made) == 0 && made->size == INT32_MAX / 2 + 1 && made->one.stride == 2);
    CU_ASSERT(weft_group_compare(made, odd) == WEFT_GROUP_UNEQUAL && weft_group_bytes(made) == 0);
    weft_group_drop(made);
    CU_ASSERT(weft_group_difference(all, few, &made) == 0 && made->size == INT32_MAX - 5);
    CU_ASSERT(weft_group_process(made, 10).rank == 11 && weft_group_bytes(made) < 200);
    weft_group_drop(made);
    CU_ASSERT(weft_group_range_incl(all, 1, ranges, &made) == 0 && made->size == INT32_MAX && weft_group_bytes(made) == 0);
    CU_ASSERT(weft_group_compare(made, all) == WEFT_GROUP_SIMILAR && weft_group_process(made, 3).rank == INT32_MAX - 4);
    weft_group_drop(made);
    CU_ASSERT(weft_group_range_excl(all, 3, holes, &made) == 0 && made->size == INT32_MAX - 1004 && weft_group_bytes(made) < 200);
    CU_ASSERT(weft_group_rank_of(made, (weft_process){7, 1500}) == -1 && weft_group_rank_of(made, (weft_process){7, 2001}) == 999);
    weft_group_drop(made);
    weft_group_drop(all);
    weft_group_drop(odd);
    weft_group_drop(few);
    weft_group_drop(other);
    weft_group_drop(list);
}

static void lists_that_are_ranges_become_ranges(void)
{
    uint32_t ranks[1000];
    weft_group *group;
    for (uint32_t i = 0; i < 1000; i++)
        ranks[i] = 5000 - 5 * i;
    CU_ASSERT(weft_group_list(3, ranks, 1000, &group) == 0 && group->run_count == 1 && group->one.stride == -5);
    CU_ASSERT(weft_group_bytes(group) == 0 && weft_group_rank_of(group, (weft_process){3, 5000}) == 0);
    CU_ASSERT(!weft_group_is_identity(group, 3));
    weft_group_drop(group);
    for (uint32_t i = 0; i < 1000; i++)
        ranks[i] = i;
    CU_ASSERT(weft_group_list(3, ranks, 1000, &group) == 0 && weft_group_is_identity(group, 3) && !weft_group_is_identity(group, 4));
    weft_group_drop(group);
}

static void *looks_up(void *given)
{
    weft_group *group = given;
    for (uint32_t i = 0; i < group->size; i++)
        if (weft_group_rank_of(group, weft_group_process(group, i)) != (int)i)
            return "wrong rank";
    return NULL;
}

static void threads_build_one_index(void)
{
    for (int round = 0; round < 200; round++) {
        uint32_t ranks[300];
        pthread_t threads[4];
        weft_group *group;
        for (uint32_t i = 0; i < 300; i++)
            ranks[i] = i * i % 100000 + i;
        CU_ASSERT_FATAL(weft_group_list(3, ranks, 300, &group) == 0 && group->run_count == 0);
        for (int i = 0; i < 4; i++)
            CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, looks_up, group) == 0);
        for (int i = 0; i < 4; i++) {
            void *error;
            pthread_join(threads[i], &error);
            CU_ASSERT(error == NULL);
        }
        weft_group_drop(group);
    }
}

static void handles_and_references(void)
{
    weft_group *group;
    CU_ASSERT_FATAL(weft_group_range(3, 0, 1, 4, &group) == 0);
    CU_ASSERT(weft_group_of(group) == NULL); /* no handle was given out */
    group->handles = 1;
    CU_ASSERT(weft_group_of(group) == group && weft_group_of((void *)0x109) == &weft_group_empty && !weft_group_of((void *)0x108));
    weft_group_hold(group);
    weft_group_drop(group);
    CU_ASSERT(group->size == 4);
    weft_group_drop(group);
    CU_ASSERT(weft_group_of(group) == NULL);
    weft_group_drop(&weft_group_empty);
    weft_group_drop(NULL);
    CU_ASSERT(weft_group_of((void *)0x109) == &weft_group_empty);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    suite = CU_add_suite("group", NULL, NULL);
    CU_add_test(suite, "groups-are-what-they-were-made-of", groups_are_what_they_were_made_of);
    CU_add_test(suite, "sets-match-the-model", sets_match_the_model);
    CU_add_test(suite, "comparisons-match-the-model", comparisons_match_the_model);
    CU_add_test(suite, "selections-match-the-model", selections_match_the_model);
    CU_add_test(suite, "errors-name-argument-and-value", errors_name_argument_and_value);
    CU_add_test(suite, "huge-ranges-cost-nothing", huge_ranges_cost_nothing);
    CU_add_test(suite, "lists-that-are-ranges-become-ranges", lists_that_are_ranges_become_ranges);
    CU_add_test(suite, "threads-build-one-index", threads_build_one_index);
    CU_add_test(suite, "handles-and-references", handles_and_references);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
