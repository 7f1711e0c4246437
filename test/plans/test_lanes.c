/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_lanes: persistent calls through lanes of a node area, with threads as members (node_rig.h): lanes are opened, started in another
 * order on each member, beside nonblocking and blocking calls of the area, closed, and their memory is taken again. Where an allocation of
 * one member fails, no member gets a lane. `test_lanes SEED` repeats one seed.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "collectives/calls.h"
#include "collectives/shmcoll_lane.h"
#include "node_rig.h"

enum { LANES = 6, PHASES = 120, OPENED_MAX = 2 * PHASES, MAIN_BYTES = 128 << 10 };

static uint64_t first_seed = 1;
static _Atomic uint64_t opened, refused, taken_again, without_memory;
/* By number of the call that opens a lane: 1 + its place, equal on all members. 0: not known yet. */
static _Atomic uint64_t places[OPENED_MAX];

typedef struct persistent {
    weft_shmcoll *lane; /* NULL: closed, or refused */
    rig_request request;
    cases_side side;
    cases_call call;
} persistent;

static void check_place(member *self, const weft_shmcoll *lane, uint32_t number)
{
    uint64_t place = lane ? (uint64_t)((char *)lane->hdr - self->area->lanes) + 1 : UINT64_MAX, first = 0;

    if (!atomic_compare_exchange_strong(&places[number], &first, place) && first != place)
        rig_complain("members disagree on a lane", self->rank, number);
    if (self->rank)
        return;
    atomic_fetch_add(lane ? &opened : &refused, 1);
    for (uint32_t i = 0; lane && i < number; i++)
        if (atomic_load(&places[i]) == place) {
            atomic_fetch_add(&taken_again, 1);
            break;
        }
}

/* ---- allocations of this thread ---- */

static _Thread_local int left = -1; /* until the one that fails; < 0: none fails */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_FAIL 0
#else
#define CAN_FAIL 1
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t);

static bool fails(void)
{
    if (left < 0 || left--)
        return false;
    atomic_fetch_add(&without_memory, 1);
    return true;
}

void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return fails() ? NULL : __libc_calloc(count, bytes); }
#endif

/* Whether one member, the same for all, has no memory for this lane. Of its allocations in the call, one fails: the lane, its exchange, or
 * at member 0 the place. */
static bool inject(const member *self, uint32_t number)
{
    uint64_t random = rig.seed * 97 + number;
    uint32_t victim = (uint32_t)(rig_draw(&random) % rig.ranks);

    if (!CAN_FAIL || rig_draw(&random) % 6)
        return false;
    if (self->rank == victim)
        left = (int)(rig_draw(&random) % (victim ? 2 : 3));
    return true;
}

static void open_one(member *self, persistent *one, uint32_t number)
{
    bool is_injected;
    uint64_t bytes;
    weft_call call;

    one->call = rig_call(number * 18 + number);
    cases_begin(&one->call, self->rank, &one->side);
    bytes = weft_coll_bytes(one->call.kind, &one->side.args, one->call.root == (int)self->rank);
    call = weft_call_of(one->call.kind, WEFT_CALL_PERSISTENT, &one->side.args, bytes);
    weft_shmcoll_drain(self->area);
    if (!weft_shmcoll_can_hold(self->area, one->call.kind, &one->side.args))
        rig_complain("the area cannot hold the call", self->rank, number);
    is_injected = inject(self, number);
    if (weft_shmcoll_open_lane(self->area, one->call.kind, &one->side.args, call, &one->lane))
        rig_complain("no agreement", self->rank, number);
    if (is_injected && one->lane)
        rig_complain("a lane, though a member has no memory", self->rank, number);
    left = -1;
    check_place(self, one->lane, number);
    if (!one->lane)
        cases_end(&one->side);
}

static void close_one(persistent *one)
{
    weft_shmcoll_close(one->lane);
    one->lane = NULL;
    cases_end(&one->side);
}

/* Other data in the same buffers. */
static void renew(persistent *one, uint32_t rank, uint32_t phase)
{
    cases_call call = one->call;
    cases_side next;

    call.round += 8 * (phase + 1);
    cases_begin(&call, rank, &next);
    cases_renew(&one->side, &next);
    cases_end(&next);
}

static void shuffle(uint32_t *order, uint64_t *random)
{
    for (uint32_t i = 0; i < LANES; i++)
        order[i] = i;
    for (uint32_t i = LANES - 1; i; i--) {
        uint32_t j = (uint32_t)(rig_draw(random) % (i + 1)), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static void poll_some(member *self, uint64_t *random)
{
    for (uint64_t polls = rig_draw(random) % 4; polls; polls--)
        weft_shmcoll_progress(&self->worker);
}

static void start_all(member *self, persistent *all, uint32_t phase, uint64_t *random)
{
    uint32_t order[LANES];

    shuffle(order, random);
    for (uint32_t i = 0; i < LANES; i++) {
        persistent *one = &all[order[i]];
        if (!one->lane)
            continue;
        renew(one, self->rank, phase);
        rig_begin(one->lane, one->call.kind, &one->side.args, &one->request);
        poll_some(self, random);
    }
}

static void wait_all(member *self, persistent *all, uint32_t phase, uint64_t *random)
{
    uint32_t order[LANES];

    shuffle(order, random);
    for (uint32_t i = 0; i < LANES; i++) {
        persistent *one = &all[order[i]];
        if (one->lane && rig_wait(one->lane, &one->request))
            rig_complain("a start failed", self->rank, phase);
        if (one->lane && cases_compare(&one->side))
            rig_complain(weft_coll_name(one->call.kind), self->rank, phase);
        poll_some(self, random);
    }
}

/* A call of the area itself, while lanes are under way. */
static void use_area(member *self, uint32_t phase, bool is_blocking)
{
    cases_call call = rig_call(phase);
    cases_side side;
    rig_request request;
    int rc;

    cases_begin(&call, self->rank, &side);
    if (is_blocking) {
        rc = weft_shmcoll_run(self->area, call.kind, &side.args);
    } else {
        rig_begin(self->area, call.kind, &side.args, &request);
        rc = rig_wait(self->area, &request);
    }
    if (rc || cases_compare(&side))
        rig_complain("a call of the area", self->rank, phase);
    cases_end(&side);
}

/* What is opened, closed and called in the area is equal on all members; the order of starts and waits is not. */
static void *main_of(void *argument)
{
    member *self = argument;
    uint64_t random = rig.seed * 31 + self->rank, common = rig.seed * 17;
    persistent all[LANES] = {{.lane = NULL}};
    uint32_t number = 0;

    self->area = weft_shmcoll_attach(&self->worker, rig.memory, MAIN_BYTES, self->rank, rig.ranks, rig.pages, rig_flags());
    self->area->lanes = (char *)rig.memory + MAIN_BYTES;
    self->area->lanes_bytes = rig.bytes - MAIN_BYTES;
    for (uint32_t phase = 0; phase < PHASES && !atomic_load(&rig.failures); phase++) {
        for (uint64_t changes = rig_draw(&common) % 3; changes; changes--) {
            persistent *one = &all[rig_draw(&common) % LANES];
            if (one->lane)
                close_one(one);
            open_one(self, one, number++);
        }
        start_all(self, all, phase, &random);
        if (rig_draw(&common) % 2)
            use_area(self, phase, rig_draw(&common) % 2);
        wait_all(self, all, phase, &random);
    }
    if (atomic_load(&rig.failures))
        _exit(1); /* other members may wait for this one */
    for (uint32_t i = 0; i < LANES; i++)
        if (all[i].lane)
            close_one(&all[i]);
    weft_shmcoll_close(self->area);
    return NULL;
}

static void test_lanes(void)
{
    for (uint32_t ranks = 2; ranks <= RANKS_MAX; ranks += ranks < 5 ? 1 : 2)
        for (uint64_t seed = first_seed; seed < first_seed + 4; seed++) {
            rig_open(ranks, seed % 2, true, (seed / 2 % 2 ? 3 : 6) * MAIN_BYTES);
            rig.seed = seed * 1000 + ranks;
            rig.has_csum = rig.seed % 3 == 1;
            for (uint32_t i = 0; i < OPENED_MAX; i++)
                atomic_store(&places[i], 0);
            rig_run(main_of);
            CU_ASSERT_EQUAL(rig.failures, 0);
        }
    CU_ASSERT(opened > 0 && refused > 0 && taken_again > 0);
    CU_ASSERT(!CAN_FAIL || without_memory > 50);
}

int main(int argc, char **argv)
{
    CU_pSuite suite;
    unsigned failed;

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 0);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    cases_open();
    suite = CU_add_suite("lanes", NULL, NULL);
    CU_add_test(suite, "persistent calls started in any order, opened and closed, beside calls of the area", test_lanes);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    cases_close();
    CU_cleanup_registry();
    return failed != 0;
}
