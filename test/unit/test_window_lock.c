/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_window_lock: rma/lock.c and rma/lock_word.h themselves under every schedule of three members with up to two preemptions, on fibres:
 * member 0 is the target, others of its node use its word, others of another node ask it by messages. Properties: a writer holds the lock
 * alone; no endless sleep; at the end the lock is free and nobody counts as waiting. Waits and wakes are those of core/wait.h in short:
 * a member says that it sleeps, looks again, sleeps; who finds it asleep wakes it.
 */
#include <CUnit/Basic.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "interleave.h"
#include "base/macros.h"
#include "rma/memory.h"
#include "rma/op.h"
#include "rma/sync_state.h"

#define POINT() interleave_point()
#define LOAD_POINT(p) interleave_point()
#define STORE_POINT(p) interleave_point()
#include "atomic_hooks.h"
#include "rma/lock.c" /* the object under test */

enum { MEMBERS = 3, NOTES = 32, TARGET = 0 };

typedef struct member {
    weft_window window;
    weft_window_target targets[MEMBERS];
    weft_window_sync *sync;
    uint64_t sync_memory[32];
    bool is_asleep, is_done;
    uint32_t from[NOTES], sent, taken; /* messages to it */
    weft_sync_note notes[NOTES];
} member;

/* What a member does: letters; upper case: by messages. r, w: reads, writes, twice; n: does nothing; x: has the lock when the others
 * begin, until both are in line; p: reads once, until another reader holds the lock as well. */
static const char *roles;
static uint64_t start; /* of the word's counts */
static member members[MEMBERS];
static weft_window_control control;
static int readers, writers, meeting;

static bool is_far(uint32_t i) { return roles[i] == 'R' || roles[i] == 'W' || roles[i] == 'P'; }

static void wake_member(uint32_t i)
{
    interleave_point();
    if (!members[i].is_asleep)
        return;
    members[i].is_asleep = false;
    interleave_wake(&members[i].is_asleep);
}

void weft_window_memory_wake(const weft_window *window)
{
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (i != window->rank && !is_far(i))
            wake_member(i);
}

bool weft_window_is_gone(weft_window *window, uint32_t member)
{
    return weft_window_target_is_gone(&window->targets[member]);
}

bool weft_window_look_gone(weft_window *window, uint32_t member) { return weft_window_is_gone(window, member); }

const char *weft_window_gone_text(const weft_window *window, uint32_t member)
{
    (void)window;
    (void)member;
    return "is gone";
}

int weft_window_sync_tell(weft_window *window, uint32_t to, enum weft_sync_kind kind, bool is_exclusive)
{
    member *at = &members[to];
    if (at->sent == NOTES) {
        interleave_fail("a member is told too much");
        return 0;
    }
    at->from[at->sent] = window->rank;
    at->notes[at->sent++] = (weft_sync_note){.kind = (uint8_t)kind, .is_exclusive = is_exclusive};
    wake_member(to);
    return 0;
}

int weft_rma_flush(weft_window *window, int target)
{
    (void)window, (void)target;
    return 0;
}

static void poll(member *me)
{
    while (me->taken < me->sent) {
        uint32_t i = me->taken++;
        weft_window_lock_on_note(&me->window, me->from[i], &me->notes[i]);
    }
}

/* Until is_over(argument); handles messages meanwhile. */
static void await(member *me, bool (*is_over)(void *), void *argument)
{
    for (;;) {
        poll(me);
        me->is_asleep = true;
        interleave_point();
        if (is_over(argument) || me->taken < me->sent)
            me->is_asleep = false;
        if (is_over(argument) && me->taken == me->sent)
            break;
        if (me->is_asleep)
            interleave_sleep(&me->is_asleep, 0);
    }
    me->is_asleep = false;
}

static bool is_wait_over(void *argument)
{
    weft_sync_wait *self = argument;
    return self->is_over(self);
}

void weft_window_sync_await(weft_sync_wait *self) { await(&members[self->window->rank], is_wait_over, self); }

static void begin(void)
{
    static weft_worker worker; /* of a job that does not go on after a death */
    memset(members, 0, sizeof members);
    memset(&control, 0, sizeof control);
    control.lock = start | start << WEFT_LOCK_BITS | start << 2 * WEFT_LOCK_BITS;
    readers = writers = meeting = 0;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        member *at = &members[i];
        at->sync = (weft_window_sync *)at->sync_memory;
        at->sync->first = at->sync->last = UINT32_MAX;
        at->targets[TARGET].control = is_far(i) ? NULL : &control;
        at->window = (weft_window){.size = MEMBERS, .rank = i, .targets = at->targets, .sync = at->sync, .worker = &worker};
        if (roles[i] == 'x')
            weft_lock_word_try(&control.lock, true);
    }
}

static bool have_met(void *unused)
{
    (void)unused;
    return meeting == 2;
}

static void meet(uint32_t me)
{
    if (++meeting == 2)
        wake_member(3 - me);
    await(&members[me], have_met, NULL);
}

static void hold(uint32_t me, bool is_exclusive)
{
    is_exclusive ? writers++ : readers++;
    if (writers > 1 || (writers && readers))
        interleave_fail("a writer does not hold the lock alone");
    interleave_point();
    if (roles[me] == 'p' || roles[me] == 'P')
        meet(me);
    for (; roles[me] == 'x' && control.waiting + control.queued < 2; interleave_pause())
        poll(&members[me]);
    is_exclusive ? writers-- : readers--;
}

static bool are_others_done(void *unused)
{
    (void)unused;
    return members[1].is_done && members[2].is_done;
}

static void run(int thread)
{
    member *me = &members[thread];
    const char role = roles[thread];
    bool is_exclusive = role == 'w' || role == 'W' || role == 'x', is_twice = strchr("rRwW", role);
    for (int turn = 0; turn < 1 + is_twice && role != 'n'; turn++) {
        if (role != 'x')
            weft_rma_lock(&me->window, TARGET, is_exclusive, true);
        hold((uint32_t)thread, is_exclusive);
        weft_rma_unlock(&me->window, TARGET, is_exclusive, true);
    }
    me->is_done = true;
    if (thread == TARGET)
        await(me, are_others_done, NULL);
    else
        wake_member(TARGET);
}

static void end(void)
{
    for (uint32_t i = 0; i < MEMBERS; i++) /* an unlock by message may be the last step */
        poll(&members[i]);
    if (control.waiting || control.queued || !weft_lock_word_try(&control.lock, true))
        interleave_fail("the lock is not free at the end");
}

static void every_schedule_ends(void)
{
    static const char *const all[] = {"www", "wwr", "rwr", "nww", "wwW", "wrW", "nWR", "rWw", "wRR", "nWW", "nrW", "rRw", "xpp", "xpP",
                                      "xPp", "xPP"};
    static const interleave test = {.threads = MEMBERS, .preemptions = 2, .begin = begin, .run = run, .end = end};
    uint64_t schedules = 0;
    for (size_t i = 0; i < weft_count(all); i++) {
        roles = all[i];
        start = i % 2 ? WEFT_LOCK_MASK - 1 : 0; /* about to wrap */
        CU_ASSERT(interleave_passes(&test, roles, &schedules));
    }
    printf("(%llu schedules) ", (unsigned long long)schedules);
    CU_ASSERT(schedules > 1000);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("window lock", NULL, NULL);
    CU_add_test(suite, "every schedule ends, and a writer is alone", every_schedule_ends);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
