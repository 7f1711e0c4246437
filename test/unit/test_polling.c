/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_polling: 64 ranks on one segment, all ports in one process. A receiver's polls do not grow with neighbours that spoke once and
 * fell silent: their rings are closed, and one that speaks again is heard at once. Memory is that of the pairs that talk.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "transports/shm/shm.h"

#define RANKS 64

static weft_segment segment;
static weft_port *ports[RANKS];
static weft_path *to_first[RANKS];
static int arrived[RANKS];

static void arrive(void *owner, void *peer, const weft_head *head, const void *body)
{
    (void)owner, (void)peer, (void)body;
    arrived[head->src]++;
}

static void *greet(void *owner, const weft_name *who)
{
    static char cookies[RANKS];
    weft_path *path;
    weft_port *port = ports[(intptr_t)owner];
    return port->ops->reach(port, who, &who->rank, sizeof who->rank, &cookies[who->rank], &path) ? NULL : &cookies[who->rank];
}

static const weft_up up = {.arrive = arrive, .greet = greet};

static int open_all(void)
{
    uint32_t first = 0;
    if (weft_segment_make(RANKS, 1, 0, &segment))
        return 1;
    for (intptr_t i = 0; i < RANKS; i++) {
        weft_port_env env = {.owner = (void *)i, .up = &up, .self = {.job = 1, .rank = (uint32_t)i}, .segment = &segment, .local_rank = (int)i};
        weft_name who = {.job = 1, .rank = 0};
        if (weft_shm_ops.open(&env, &ports[i]))
            return 1;
        if (i && weft_shm_ops.reach(ports[i], &who, &first, sizeof first, NULL, &to_first[i]))
            return 1;
    }
    return 0;
}

static int close_all(void)
{
    for (int i = 0; i < RANKS; i++)
        weft_shm_ops.close(ports[i]);
    weft_segment_close(&segment);
    return 0;
}

static void speak(int i)
{
    weft_frame frame = {.head = {.kind = WEFT_FRAME_EAGER, .src = i, .bytes = 8}, .body = "8 bytes"};
    CU_ASSERT_EQUAL(weft_port_send(to_first[i], &frame), 0);
}

static double poll_ns(void)
{
    enum { POLLS = 20000 };
    uint64_t start = weft_clock_ns();
    for (int i = 0; i < POLLS; i++)
        weft_shm_poll(ports[0], 32);
    return (double)(weft_clock_ns() - start) / POLLS;
}

static void silent_neighbours_cost_nothing(void)
{
    shm_port *first = (shm_port *)ports[0];
    double alone, among;
    speak(1);
    CU_ASSERT_EQUAL(weft_shm_poll(ports[0], 32), 1);
    alone = poll_ns();
    for (int i = 2; i < RANKS; i++)
        speak(i);
    for (int i = 0; i < 10; i++)
        weft_shm_poll(ports[0], 32);
    for (int i = 1; i < RANKS; i++)
        CU_ASSERT_EQUAL(arrived[i], 1);
    CU_ASSERT_EQUAL(first->hot_count, RANKS - 1);
    poll_ns();
    CU_ASSERT(first->hot_count <= WEFT_SHM_HOT_FEW);
    among = poll_ns();
    printf("(an empty poll: %.1f ns with one neighbour, %.1f ns among %d silent ones) ", alone, among, RANKS - 1);
}

static void who_speaks_again_is_heard(void)
{
    for (int round = 2; round < 50; round++) {
        for (int i = 1; i < RANKS; i++)
            speak(i);
        for (int i = 0; i < 4; i++)
            weft_shm_poll(ports[0], 32);
        for (int i = 1; i < RANKS; i++)
            CU_ASSERT_EQUAL(arrived[i], round);
        poll_ns();
    }
}

static void memory_is_that_of_talking_pairs(void)
{
    struct stat before, after;
    CU_ASSERT_EQUAL(fstat(segment.fd, &before), 0);
    /* pages of the head and the ranks, and 8 KiB for each of the 63 pairs that spoke */
    CU_ASSERT(before.st_blocks * 512 <= (RANKS + 2) * 4096 + (RANKS - 1) * 8192);
    for (int i = 1; i < RANKS; i++)
        speak(i);
    CU_ASSERT_EQUAL(fstat(segment.fd, &after), 0);
    CU_ASSERT_EQUAL(before.st_blocks, after.st_blocks);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("polling", open_all, close_all);
    CU_add_test(suite, "silent neighbours cost nothing", silent_neighbours_cost_nothing);
    CU_add_test(suite, "who speaks again is heard", who_speaks_again_is_heard);
    CU_add_test(suite, "memory is that of talking pairs", memory_is_that_of_talking_pairs);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}
