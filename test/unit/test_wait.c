/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_wait: what counts as a lost wake-up, which the counter late_wakes tells of. The sleep is played here: it ends by its limit with
 * news there, which nobody rang for, or which came with a ring meanwhile, or while this process was kept from running.
 */
#include <CUnit/Basic.h>
#include <unistd.h>

#include "core/lane.h"
#include "core/wait.h"
#include "core/world.h"
#include "launch/boot.h"
#include "mpi/calls.h"
#include "mpi/comm.h"
#include "mpi/init.h"
#include "mpi/request.h"
#include "p2p/arrive.h"
#include "p2p/p2p.h"
#include "type/type.h"

static weft_world *world;
static weft_lane *lane;
static weft_link busy; /* keeps lane->plans from being empty, so that a poll calls play */
static int news;
static int polls;
static enum { RINGS_NOT, RINGS, IS_LATE, BRINGS_NOTHING } manner;

static int play(weft_lane *mine)
{
    int found = news;
    (void)mine;
    news = 0;
    polls++;
    return found;
}

static bool sleep_here(weft_lane *mine, const weft_bell *bells, uint32_t count, uint64_t limit_ns)
{
    (void)mine;
    (void)bells;
    (void)count;
    news = manner != BRINGS_NOTHING;
    if (manner == RINGS)
        weft_segment_wake(world->page);
    if (manner == IS_LATE)
        usleep((useconds_t)(limit_ns / 1000 + 300000));
    return true;
}

static void wake_here(weft_lane *mine) { (void)mine; }

/* How many lost wake-ups one sleep counts. */
static uint64_t late_wakes(int how)
{
    static const weft_rest rest = {.sleep = sleep_here, .wake = wake_here};
    uint64_t before = lane->counters[WEFT_COUNT_LATE_WAKES], slept = lane->counters[WEFT_COUNT_SLEEPS];
    weft_wait wait;

    manner = how;
    world->rest = &rest;
    weft_lane_lock(lane);
    weft_wait_begin(&wait, lane, WEFT_WHY_RECV, 0, 0, 0);
    while (lane->counters[WEFT_COUNT_SLEEPS] == slept)
        weft_wait_turn(&wait);
    weft_wait_end(&wait);
    weft_lane_unlock(lane);
    CU_ASSERT(lane->counters[WEFT_COUNT_SLEEPS] == slept + 1 && lane->sleepers == 0);
    news = 0;
    return lane->counters[WEFT_COUNT_LATE_WAKES] - before;
}

static void lost_wakes_are_counted(void)
{
    CU_ASSERT_EQUAL(late_wakes(RINGS_NOT), 1);
    CU_ASSERT_EQUAL(late_wakes(BRINGS_NOTHING), 0);
}

/* The ring came between the end of the time and our look. */
static void a_ring_that_we_slept_past_is_none(void) { CU_ASSERT_EQUAL(late_wakes(RINGS), 0); }

/* Whoever does not get a CPU finds at last what came meanwhile. */
static void nor_is_what_came_while_we_did_not_run(void) { CU_ASSERT_EQUAL(late_wakes(IS_LATE), 0); }

/* A program that always finds its message among the unexpected ones polls all the same: others that send are received from. */
static void early_messages_do_not_end_polling(void)
{
    enum { MESSAGES = 1000 };
    weft_comm *comm = weft_comm_of(MPI_COMM_SELF);
    weft_req *req;
    const weft_type *type = weft_type_of(MPI_INT);
    MPI_Status status;
    MPI_Request request;
    int value = 0, before;
    CU_ASSERT_PTR_NOT_NULL_FATAL(comm);
    for (int way = 0; way < 2; way++) {
        weft_lane_lock(lane);
        for (int i = 0; i < MESSAGES; i++)
            CU_ASSERT_EQUAL(weft_send(comm->chan, 0, 7, &i, 1, type, 0), 0);
        for (int i = 0; i < MESSAGES; i++) /* until all of them are unexpected */
            weft_lane_poll(lane);
        weft_lane_unlock(lane);
        before = polls;
        for (int i = 0; i < MESSAGES; i++) {
            if (way == 0) {
                weft_lane_lock(lane);
                CU_ASSERT_EQUAL(weft_recv(comm->chan, 0, 7, &value, 1, type, NULL), 0);
                weft_lane_unlock(lane);
            } else {
                weft_lane_lock(lane);
                CU_ASSERT_EQUAL(weft_irecv(comm->chan, 0, 7, &value, 1, type, &req), 0);
                weft_request_keep(comm, comm->chan, req);
                weft_lane_unlock(lane);
                request = (MPI_Request)req;
                CU_ASSERT_EQUAL(weft_mpi_wait(&request, &status), 0);
            }
            CU_ASSERT_EQUAL(value, i);
        }
        CU_ASSERT(polls - before >= MESSAGES / WEFT_UNPOLLED_MAX - 1 && polls - before <= MESSAGES / 8);
    }
}

static int open_world(void)
{
    weft_boot *boot;
    if (weft_boot_start(&boot) || weft_p2p_open(boot, MPI_THREAD_MULTIPLE, &world) || weft_mpi_world_open(world))
        return -1;
    lane = world->lanes[0];
    lane->is_threaded = true;
    lane->play = play;
    weft_list_append(&lane->plans, &busy);
    return 0;
}

static int close_world(void)
{
    weft_list_remove(&busy);
    world->rest = &world->own_rest;
    weft_mpi_world_close(world);
    return weft_world_close(world);
}

int main(void)
{
    CU_pSuite suite;
    if (CU_initialize_registry() || !(suite = CU_add_suite("wait", open_world, close_world)))
        return 1;
    CU_add_test(suite, "lost wakes are counted", lost_wakes_are_counted);
    CU_add_test(suite, "a ring that we slept past is none", a_ring_that_we_slept_past_is_none);
    CU_add_test(suite, "early messages do not end polling", early_messages_do_not_end_polling);
    CU_add_test(suite, "nor is what came while we did not run", nor_is_what_came_while_we_did_not_run);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    return failed != 0;
}
