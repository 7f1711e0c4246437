/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_node: the node area's protocol, with threads as members on one mapping (visible to TSan): operations in random order without a
 * barrier between them, short and long, dedicated and oversubscribed. See node_rig.h. `test_node SEED` repeats one seed.
 */
#include <CUnit/Basic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"
#include "cases.h"
#include "collectives/select.h"
#include "collectives/shmcoll.h"
#include "collectives/shmcoll_area.h"
#include "core/worker.h"
#include "mem/membarrier.h"
#include "node_rig.h"

#ifdef __SANITIZE_THREAD__ /* takes ten times as long */
#define OPERATIONS 100
#else
#define OPERATIONS 400
#endif

static uint64_t first_seed = 1;
static _Atomic uint64_t halves;
static uint64_t alltoallvs, lefts, longs, shorts, begun_shorts; /* of all rigs */

static void count_calls(void)
{
    alltoallvs += rig.alltoallvs;
    lefts += rig.lefts;
    longs += rig.longs;
    shorts += rig.shorts;
    begun_shorts += rig.begun_shorts;
}

/* ---- members ---- */

/* Half of the allreduces that support it run by halves. */
static int run_call(weft_shmcoll *area, uint32_t i, const cases_call *call, const weft_coll *args)
{
    uint64_t random = rig.seed * 977 + i;
    uint32_t parts = 1 + (uint32_t)(rig_draw(&random) % rig.ranks);

    if (call->kind != WEFT_COLL_ALLREDUCE || !args->op->is_commutative || rig_draw(&random) % 2)
        return rig_call_now(area, call->kind, args);
    if (!weft_shmcoll_can_split(area, args->recvtype, parts))
        rig_complain("halves are not supported", 0, i);
    atomic_fetch_add(&halves, 1);
    return rig_run_halves(area, args, parts);
}

static void delay(uint64_t *random)
{
    struct timespec some = {0, (long)(rig_draw(random) % 200000)};

    if (rig_draw(random) % 40 == 0)
        nanosleep(&some, NULL);
}

static void *member_main(void *argument)
{
    member *self = argument;
    uint64_t random = rig.seed * 31 + self->rank;
    weft_shmcoll *area = weft_shmcoll_attach(&self->worker, rig.memory, rig.bytes, self->rank, rig.ranks, rig.pages, rig_flags());

    if (!area) {
        rig_complain("no area", self->rank, 0);
        return NULL;
    }
    for (uint32_t i = 0; i < OPERATIONS && !atomic_load(&rig.failures); i++) {
        cases_call call = rig_call_of(area, i);
        cases_side side;
        const char *wrong;
        cases_begin(&call, self->rank, &side);
        if (rig.is_lagging && self->rank + 1 == rig.ranks && i % 50 == 7)
            nanosleep(&(struct timespec){0, 3000000}, NULL);
        else if (!rig.is_lagging)
            delay(&random);
        if (run_call(area, i, &call, &side.args))
            rig_complain("failed", self->rank, i);
        if (weft_coll_is_alltoallv(call.kind))
            rig_take_left(area, &area->moved, area->left, &side);
        wrong = cases_compare(&side);
        if (wrong)
            rig_complain(weft_coll_name(call.kind), self->rank, i);
        cases_end(&side);
    }
    if (atomic_load(&rig.failures))
        _exit(1); /* other members may wait for this one */
    weft_shmcoll_close(area);
    return NULL;
}

/* ---- blocking and nonblocking calls ---- */

#define UNDER_WAY 6 /* most nonblocking calls at a time */

typedef struct started {
    rig_request request;
    cases_side side;
    cases_call call;
    uint32_t number;
    bool is_used;
} started;

static void complete(member *self, started *one)
{
    if (rig_wait(self->area, &one->request))
        rig_complain("nonblocking failed", self->rank, one->number);
    if (weft_coll_is_alltoallv(one->call.kind))
        rig_take_left(self->area, &one->request.moved, one->request.left, &one->side);
    if (cases_compare(&one->side))
        rig_complain("nonblocking wrong", self->rank, one->number);
    cases_end(&one->side);
    one->is_used = false;
}

static void make_blocking(member *self, const cases_call *call, uint32_t i)
{
    cases_side side;

    cases_begin(call, self->rank, &side);
    weft_shmcoll_drain(self->area);
    if (rig_call_now(self->area, call->kind, &side.args))
        rig_complain("failed", self->rank, i);
    if (weft_coll_is_alltoallv(call->kind))
        rig_take_left(self->area, &self->area->moved, self->area->left, &side);
    if (cases_compare(&side))
        rig_complain(weft_coll_name(call->kind), self->rank, i);
    cases_end(&side);
}

/* Calls in an order that is equal on all members; each waits for them, and makes progress, in an order of its own. */
static void *mixed_main(void *argument)
{
    member *self = argument;
    uint64_t random = rig.seed * 53 + self->rank, common = rig.seed * 17;
    started some[UNDER_WAY] = {{.is_used = false}};

    self->area = weft_shmcoll_attach(&self->worker, rig.memory, rig.bytes, self->rank, rig.ranks, rig.pages, rig_flags());
    for (uint32_t i = 0; i < OPERATIONS && !atomic_load(&rig.failures); i++) {
        cases_call call = rig_call_of(self->area, i);
        started *one = &some[rig_draw(&random) % UNDER_WAY];
        bool is_nonblocking = rig_draw(&common) % 4;
        delay(&random);
        if (one->is_used)
            complete(self, one);
        if (is_nonblocking) {
            *one = (started){.call = call, .number = i, .is_used = true};
            cases_begin(&one->call, self->rank, &one->side);
            rig_begin(self->area, call.kind, &one->side.args, &one->request);
        } else {
            make_blocking(self, &call, i);
        }
        for (uint64_t polls = rig_draw(&random) % 4; polls; polls--)
            weft_shmcoll_progress(&self->worker);
    }
    for (uint32_t i = 0; i < UNDER_WAY; i++)
        if (some[i].is_used)
            complete(self, &some[i]);
    if (atomic_load(&rig.failures))
        _exit(1); /* other members may wait for this one */
    weft_shmcoll_close(self->area);
    return NULL;
}

static void test_mixed(void)
{
    uint64_t sleeps = 0, runs = 0;

    for (uint32_t ranks = 2; ranks <= RANKS_MAX; ranks += ranks < 5 ? 1 : 2)
        for (uint64_t seed = first_seed; seed < first_seed + 4; seed++, runs++) {
            rig_open(ranks, seed % 2, true, seed / 2 % 2 ? 96 << 10 : 256 << 10);
            rig.seed = seed * 1000 + ranks;
            rig.has_csum = rig.seed % 3 == 1;
            rig_run(mixed_main);
            CU_ASSERT_EQUAL(rig.failures, 0);
            count_calls();
            for (uint32_t i = 0; i < ranks; i++)
                sleeps += rig.members[i].sleeps;
        }
    CU_ASSERT(sleeps > runs); /* else wake-ups were not tested */
    CU_ASSERT(begun_shorts > 10 * runs);
}

static uint64_t run_rig(uint32_t ranks, bool is_oversubscribed, bool needs_fence, bool is_lagging, uint64_t bytes, uint64_t seed)
{
    uint64_t sleeps = 0;

    rig_open(ranks, is_oversubscribed, needs_fence, bytes);
    rig.is_lagging = is_lagging;
    rig.seed = seed;
    rig.has_csum = seed % 3 == 1;
    rig_run(member_main);
    CU_ASSERT_EQUAL(rig.failures, 0);
    count_calls();
    for (uint32_t i = 0; i < ranks; i++)
        sleeps += rig.members[i].sleeps;
    return sleeps;
}

/* ---- a bit of a slot is flipped ---- */

/* The reader starts after the damage; then both perform an undamaged operation on the same area. */
static void *flip_main(void *argument)
{
    member *self = argument;
    cases_call sound = {.ranks = 2, .round = 2, .kind = WEFT_COLL_ALLGATHER, .count = 100};
    cases_side side;

    self->area = weft_shmcoll_attach(&self->worker, rig.memory, rig.bytes, self->rank, 2, rig.pages, rig_flags());
    while (self->rank != rig.writer && !rig.is_flipped)
        sched_yield();
    cases_begin(&rig.call, self->rank, &side);
    if (rig.flip_parts)
        self->rc = rig_run_halves(self->area, &side.args, rig.flip_parts);
    else
        self->rc = weft_shmcoll_run(self->area, rig.call.kind, &side.args);
    rig_flip(self);
    self->is_right = !cases_compare(&side);
    snprintf(self->text, sizeof self->text, "%s", weft_fail_text(self->rc));
    cases_end(&side);
    cases_begin(&sound, self->rank, &side);
    if (weft_shmcoll_run(self->area, sound.kind, &side.args) || cases_compare(&side))
        rig_complain("after a flip", self->rank, sound.round);
    cases_end(&side);
    weft_shmcoll_close(self->area);
    return NULL;
}

/* Offset of the data for the reader in the writer's slot; *reported: the offset in the error text (pipeline: in the vector). */
static uint64_t aim(uint64_t slot, uint64_t *reported)
{
    uint64_t all = rig.call.count * 8, reader = 1 - rig.writer, part = slot / 2 / 16 * 16;
    bool is_flat = all <= 2048 || rig.is_oversubscribed;

    rig.flip_bytes = all < slot ? all : slot;
    *reported = rig.flip_at = 5;
    if (rig.call.kind == WEFT_COLL_SCATTER || rig.call.kind == WEFT_COLL_ALLTOALL) {
        rig.flip_bytes = 2 * (all < part ? all : part);
        rig.flip_at += reader * rig.flip_bytes / 2;
    } else if (rig.flip_parts) {
        uint64_t longest = weft_sched_block_start(rig.call.count, 2, 1) * 8;
        rig.flip_bytes = 2 * (longest < part ? longest : part);
        rig.flip_at += reader * rig.flip_bytes / 2;
        *reported += weft_sched_block_start(rig.call.count, 2, (uint32_t)reader) * 8;
    } else if (rig.call.kind == WEFT_COLL_ALLREDUCE && !is_flat) {
        *reported = rig.flip_at += weft_sched_block_start(rig.flip_bytes / 8, 2, (uint32_t)reader) * 8;
    }
    return *reported;
}

static void one_flip(enum weft_coll_kind kind, uint32_t parts, uint64_t count, uint32_t writer, bool is_oversubscribed, bool in_place,
                     bool has_csum, int *handed_on)
{
    uint64_t reported, csum_bytes = has_csum ? 4096 : 0;
    bool is_rooted = kind == WEFT_COLL_REDUCE || kind == WEFT_COLL_GATHER;
    char rank_text[80], byte[60], *text;

    rig_open(2, is_oversubscribed, true, (56 << 10) + csum_bytes); /* equal slot lengths with and without checksums */
    rig.is_flipping = true;
    rig.has_csum = has_csum;
    rig.flip_parts = parts;
    rig.writer = writer;
    rig.call = (cases_call){.ranks = 2, .round = 1, .kind = kind, .count = count, .type = CASES_LONG,
                            .in_place = in_place && kind != WEFT_COLL_BCAST, .root = (int)(is_rooted ? 1 - writer : writer)};
    member *reader = &rig.members[1 - writer], *author = &rig.members[writer];
    weft_shmcoll *probe = weft_shmcoll_attach(NULL, rig.memory, rig.bytes, 0, 2, rig.pages, rig_flags());
    uint64_t slot = weft_shmcoll_slot_bytes(probe);
    free(probe);
    aim(slot, &reported);
    rig_run(flip_main);
    text = reader->text;
    CU_ASSERT_EQUAL(rig.failures, 0);
    CU_ASSERT(rig.is_flipped && !reader->is_right);
    CU_ASSERT_EQUAL(reader->rc, has_csum ? WEFT_E_CORRUPT : WEFT_OK);
    if (!has_csum)
        return;
    snprintf(rank_text, sizeof rank_text, "the data of rank %u in %s, root %d,", writer, weft_coll_name(kind), rig.call.root);
    snprintf(byte, sizeof byte, "bit 3 of its byte %llu is wrong", (unsigned long long)reported);
    if (!strstr(text, rank_text) || !strstr(text, byte)) {
        CU_FAIL("the text does not name the damage");
        fprintf(stderr, "%s %s: %s\n", rank_text, byte, text);
    }
    /* the writer may read the damaged data itself, or the reader's result */
    CU_ASSERT_EQUAL(author->rc, author->is_right ? WEFT_OK : WEFT_E_CORRUPT);
    *handed_on += strstr(author->text, "it was damaged before rank") != NULL;
}

static void test_flips(void)
{
    static const uint64_t counts[] = {2, 100, 1500};
    int handed_on = 0;

    for (int kind = WEFT_COLL_BCAST; kind <= WEFT_COLL_ALLTOALL; kind++)
        for (int i = 0; i < 3 * 16; i++)
            one_flip(kind, 0, counts[i / 16], i & 1, i & 2, i & 4, i & 8, &handed_on);
    CU_ASSERT_EQUAL(handed_on, 4); /* the long, dedicated allreduces: both writers, in place and not */
    handed_on = 0;
    for (int i = 0; i < 3 * 16; i++)
        one_flip(WEFT_COLL_ALLREDUCE, 2, counts[i / 16], i & 1, i & 2, i & 4, i & 8, &handed_on);
    CU_ASSERT_EQUAL(handed_on, 24); /* all with checksums: one reduces damaged data, the other receives the result */
}

/* ---- one member makes another call ---- */

#define LATER 6 /* calls after it; in the last ones each member needs all others */

static bool is_rooted(enum weft_coll_kind kind)
{
    return kind == WEFT_COLL_BCAST || kind == WEFT_COLL_REDUCE || kind == WEFT_COLL_GATHER || kind == WEFT_COLL_SCATTER;
}

static bool is_same(const cases_call *a, const cases_call *b)
{
    return a->kind == b->kind && (a->kind == WEFT_COLL_BARRIER || a->count == b->count) && (!is_rooted(a->kind) || a->root == b->root);
}

static cases_call later_number(uint32_t i)
{
    cases_call call = rig_call(rig.common + 1 + i);

    if (i + 2 >= LATER)
        call.kind = i % 2 ? WEFT_COLL_ALLREDUCE : WEFT_COLL_ALLGATHER;
    if (i + 2 >= LATER && !call.count)
        call.count = 1;
    return call;
}

/* Some calls are nonblocking ones, on all members. */
static int call_either(member *self, const cases_call *call, cases_side *side, uint32_t i)
{
    uint64_t common = rig.seed * 71 + i;
    rig_request request;

    if (rig_draw(&common) % 2) {
        weft_shmcoll_drain(self->area);
        return rig_call_now(self->area, call->kind, &side->args);
    }
    rig_begin(self->area, call->kind, &side->args, &request);
    return rig_wait(self->area, &request);
}

/* One call of this member. Without an error the result is right; after an error every call fails. */
static void call_once(member *self, const cases_call *call, uint32_t i, bool is_wrong)
{
    bool is_odd = is_wrong && self->rank == rig.odd;
    cases_side side;
    int rc;

    cases_begin(call, self->rank, &side);
    if (is_odd && rig.how == ODD_PASSES)
        rc = weft_shmcoll_publish(self->area, weft_call_of(call->kind, WEFT_CALL_BLOCKING, &side.args, UINT64_MAX), 0, true);
    else
        rc = call_either(self, call, &side, i);
    if (self->rc && !rc && (call->count || call->kind == WEFT_COLL_BARRIER))
        rig_complain("no error after an error", self->rank, i);
    if (!is_wrong && !rc && cases_compare(&side))
        rig_complain("wrong without an error", self->rank, i);
    if (rc && !self->rc) {
        snprintf(self->text, sizeof self->text, "%s", weft_fail_text(rc));
        atomic_fetch_add(&rig.reported, 1);
    }
    self->rc = rc;
    cases_end(&side);
    while (is_odd && rig.how == ODD_PASSES && atomic_load(&rig.reported) < rig.ranks - 1) /* as if its messages got no reply */
        sched_yield();
}

static void *odd_main(void *argument)
{
    member *self = argument;
    bool leaves = self->rank == rig.odd && rig.how == ODD_LEAVES;

    self->area = weft_shmcoll_attach(&self->worker, rig.memory, rig.bytes, self->rank, rig.ranks, rig.pages, rig_flags());
    for (uint32_t i = 0; i < rig.common; i++) {
        cases_call call = rig_call(i);
        call_once(self, &call, i, false);
    }
    if (self->rc)
        rig_complain("too early", self->rank, rig.common);
    if (!leaves)
        call_once(self, self->rank == rig.odd ? &rig.odd_call : &rig.call, rig.common, true);
    for (uint32_t i = 0; i < LATER && !leaves; i++) {
        cases_call call = later_number(i);
        call_once(self, &call, rig.common + 1 + i, false);
    }
    weft_shmcoll_close(self->area);
    return NULL;
}

static void one_odd(uint64_t seed)
{
    uint64_t random = seed * 104729;
    uint32_t ranks = 2 + (uint32_t)(rig_draw(&random) % 4);
    char own[40];

    rig_open(ranks, seed % 2, true, 96 << 10);
    rig.seed = seed;
    rig.has_csum = rig_draw(&random) % 4 == 0;
    rig.odd = (uint32_t)(rig_draw(&random) % ranks);
    rig.common = (uint32_t)(rig_draw(&random) % 20);
    rig.how = rig_draw(&random) % 8 ? ODD_CALLS : 1 + rig_draw(&random) % 2;
    rig.call = rig.odd_call = rig_call(rig.common);
    while (is_same(&rig.call, &rig.odd_call)) {
        uint64_t what = rig_draw(&random) % 3;
        if (what == 0)
            rig.odd_call.kind = cases_area_kinds[rig_draw(&random) % CASES_AREA_KINDS];
        else if (what == 1)
            rig.odd_call.count = rig_draw(&random) % 3 ? rig_draw(&random) % 10 : rig_draw(&random) % 6000;
        else
            rig.odd_call.root = (int)(rig_draw(&random) % ranks);
        if (rig.odd_call.kind == WEFT_COLL_BCAST || rig.odd_call.kind == WEFT_COLL_BARRIER)
            rig.odd_call.in_place = false;
    }
    rig_run(odd_main);
    for (uint32_t i = 0; i < ranks; i++) {
        const member *self = &rig.members[i];
        if (rig.how == ODD_LEAVES && i == rig.odd)
            continue;
        snprintf(own, sizeof own, "rank %u called ", i);
        if (self->rc == WEFT_E_NOT_SAME && !strncmp(self->text, own, strlen(own)) && strstr(strchr(self->text, ';') + 1, "rank "))
            continue;
        CU_FAIL("a member got no error that names both calls");
        fprintf(stderr, "seed %llu, %u ranks, odd %u, way %d: rank %u has %d, %s\n", (unsigned long long)seed, ranks, rig.odd,
                (int)rig.how, i, self->rc, self->text);
    }
    CU_ASSERT_EQUAL(rig.failures, 0);
}

static void test_different_calls(void)
{
    for (uint64_t seed = first_seed; seed < first_seed + 160; seed++)
        one_odd(seed);
}

static void test_members(void)
{
    static const uint64_t sizes[] = {256 << 10, 96 << 10};
    uint64_t sleeps = 0, runs = 0;
    int can_membarrier = weft_membarrier_register();

    for (uint32_t ranks = 2; ranks <= RANKS_MAX; ranks += ranks < 5 ? 1 : 2)
        for (uint64_t seed = first_seed; seed < first_seed + 4; seed++, runs++)
            sleeps += run_rig(ranks, seed % 2, seed % 4 > 1 || !can_membarrier, false, sizes[seed / 2 % 2], seed * 100 + ranks);
    CU_ASSERT(sleeps > runs); /* else wake-ups were not tested */
    CU_ASSERT(halves > runs);
    CU_ASSERT(shorts > 20 * runs);
    CU_ASSERT(alltoallvs > runs && 2 * lefts > runs && 2 * longs > runs && alltoallvs > lefts + longs + runs);
    printf("%llu runs of %d operations, %llu sleeps, %llu alltoallv, %llu with blocks for messages, %llu in rounds ", (unsigned long long)runs,
           OPERATIONS, (unsigned long long)sleeps, (unsigned long long)alltoallvs, (unsigned long long)lefts, (unsigned long long)longs);
}

static void test_laggard(void)
{
    for (uint32_t ranks = 3; ranks <= 5; ranks++)
        for (int is_oversubscribed = 0; is_oversubscribed < 2; is_oversubscribed++)
            run_rig(ranks, is_oversubscribed, true, true, 256 << 10, first_seed);
}

/* ---- other threads ---- */

static void *hold_main(void *argument)
{
    member *self = argument;
    cases_side side;

    self->worker.is_threaded = true;
    self->area = weft_shmcoll_attach(&self->worker, rig.memory, rig.bytes, self->rank, rig.ranks, rig.pages, rig_flags());
    cases_begin(&rig.call, self->rank, &side);
    if (rig.flip_parts)
        self->rc = rig_run_halves(self->area, &side.args, rig.flip_parts);
    else
        self->rc = weft_shmcoll_run(self->area, rig.call.kind, &side.args);
    self->is_right = self->rc == WEFT_OK && !cases_compare(&side);
    cases_end(&side);
    weft_shmcoll_close(self->area);
    return NULL;
}

/* A block is much longer than the bytes copied between two offers. */
static void one_hold(enum weft_coll_kind kind, uint32_t parts)
{
    enum { ELEMENTS = 60000 };
    uint64_t min = ELEMENTS * sizeof(long) / WEFT_WORKER_HOLD_BYTES;

    rig_open(4, false, true, 4 << 20);
    rig.call = (cases_call){.ranks = 4, .kind = kind, .count = ELEMENTS};
    rig.flip_parts = parts;
    rig_run(hold_main);
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT(rig.members[i].is_right);
        CU_ASSERT(rig.members[i].offers >= min);
    }
}

static void test_lock_offers(void)
{
    for (int i = 1; i < CASES_AREA_KINDS; i++)
        one_hold(cases_area_kinds[i], 0);
    one_hold(WEFT_COLL_ALLREDUCE, 4);
}

/* Bcasts of these bytes in turn, of which no other member takes part in any: how many end at the root. */
static uint32_t count_ahead_of(uint32_t ranks, uint64_t first, uint64_t later, bool is_oversubscribed, bool has_csum)
{
    static rig_request requests[2 * WEFT_SHMCOLL_DEPTH];
    static char data[64 << 10];
    weft_rank_page *pages[WEFT_SHMCOLL_RANKS];
    uint32_t ahead = 0;

    rig_open(2, is_oversubscribed, true, WEFT_SHMCOLL_BYTES);
    for (uint32_t i = 0; i < ranks; i++)
        pages[i] = rig.pages[i > 0];
    rig.has_csum = has_csum;
    rig.members[0].area = weft_shmcoll_attach(&rig.members[0].worker, rig.memory, rig.bytes, 0, ranks, pages, rig_flags());
    do {
        weft_coll args = {.recvbuf = data, .recvcount = ahead ? later : first, .recvtype = weft_sched_bytes()};
        rig_begin(rig.members[0].area, WEFT_COLL_BCAST, &args, &requests[ahead]);
    } while (requests[ahead].is_done && ++ahead < weft_count(requests));
    weft_shmcoll_close(rig.members[0].area);
    rig.ranks = 0;
    rig_run(NULL);
    return ahead;
}

static uint32_t count_ahead(uint64_t first, uint64_t later, bool is_oversubscribed, bool has_csum)
{
    return count_ahead_of(2, first, later, is_oversubscribed, has_csum);
}

/* As far as the lines of short data go; as the slots where data is long, was long before, or has checksums, or CPUs are dedicated. */
static void test_ahead(void)
{
    const uint32_t far = WEFT_SHMCOLL_DEPTH - 1 - WEFT_SHMCOLL_LAG, near = WEFT_SHMCOLL_SLOTS - 1 - WEFT_SHMCOLL_LAG,
                   shallow = WEFT_SHMCOLL_SHALLOW - 1 - WEFT_SHMCOLL_LAG;

    CU_ASSERT_EQUAL(count_ahead(8, 8, true, false), far);
    CU_ASSERT_EQUAL(count_ahead(1000, 1000, true, false), far);
    CU_ASSERT_EQUAL(count_ahead(1000, 8, true, false), far);
    CU_ASSERT_EQUAL(count_ahead(30000, 8, true, false), far);
    CU_ASSERT_EQUAL(count_ahead(8, 30000, true, false), near);
    CU_ASSERT_EQUAL(count_ahead(30000, 1000, true, false), near);
    CU_ASSERT_EQUAL(count_ahead(8, 8, true, true), near);
    CU_ASSERT_EQUAL(count_ahead(8, 8, false, false), near);
    CU_ASSERT_EQUAL(count_ahead_of(33, 8, 8, true, false), far); /* slots of 33 members have fewer parts, lines of 65 are fewer */
    CU_ASSERT_EQUAL(count_ahead_of(33, 1000, 1000, true, false), shallow);
    CU_ASSERT_EQUAL(count_ahead_of(65, 8, 8, true, false), shallow);
    CU_ASSERT_EQUAL(count_ahead_of(65, 500, 500, true, false), shallow);
}

static void test_limits(void)
{
    weft_rank_page *pages[WEFT_SHMCOLL_RANKS + 1] = {NULL};

    CU_ASSERT_PTR_NULL(weft_shmcoll_attach(NULL, NULL, 8192, 0, 2, pages, 0));
    CU_ASSERT_PTR_NULL(weft_shmcoll_attach(NULL, NULL, 1 << 20, 0, 1, pages, 0));
    CU_ASSERT_PTR_NULL(weft_shmcoll_attach(NULL, NULL, 1 << 30, 0, WEFT_SHMCOLL_RANKS + 1, pages, 0));
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
    suite = CU_add_suite("node", NULL, NULL);
    CU_add_test(suite, "too little memory or too many members: no area", test_limits);
    CU_add_test(suite, "operations in any order, dedicated and oversubscribed, with real sleep", test_members);
    CU_add_test(suite, "blocking and nonblocking calls, waited for in any order", test_mixed);
    CU_add_test(suite, "a flipped bit in a slot is an error that names rank and byte; without checksums it is not detected", test_flips);
    CU_add_test(suite, "a member that makes another call, or leaves, is an error on all members", test_different_calls);
    CU_add_test(suite, "writers do not overrun a late member", test_laggard);
    CU_add_test(suite, "a root of short data runs ahead by more calls than there are slots", test_ahead);
    CU_add_test(suite, "long blocks are copied with offers of the lock", test_lock_offers);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    cases_close();
    CU_cleanup_registry();
    return failed != 0;
}
