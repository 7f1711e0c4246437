/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amo: the contract's atomics: on a peer's memory, beside the peer's CPU, and on own memory (amo_self).
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/contract/yard.h"

static uint64_t amo(yard *yard, enum weft_amo_op op, uint64_t operand, uint64_t compare)
{
    rig_done done = {0, 0};
    uint64_t before = 0xdead;
    weft_atomic atomic = {op, (uintptr_t)yard->remote + 64, &yard->rkey, operand, compare, &before, &done};
    CHECK(rig_amo(yard->rig->a, &atomic) == 0);
    CHECK(rig_until(yard->rig, &done.times, 1));
    CHECK(done.rc == 0);
    return before;
}

static void atomics_are_correct(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    uint64_t *word = (uint64_t *)(yard.remote + 64);
    if (yard.rig->a->iface->caps.amo != WEFT_AMO_NONE) {
        *word = 1ull << 40;
        CHECK(amo(&yard, WEFT_AMO_ADD, 5, 0) == 1ull << 40 && *word == (1ull << 40) + 5);
        CHECK(amo(&yard, WEFT_AMO_SWAP, 12, 0) == (1ull << 40) + 5 && *word == 12);
        CHECK(amo(&yard, WEFT_AMO_CAS, 99, 11) == 12 && *word == 12);
        CHECK(amo(&yard, WEFT_AMO_CAS, 99, 12) == 12 && *word == 99);
        CHECK(amo(&yard, WEFT_AMO_AND, 0xf, 0) == 99 && *word == (99 & 0xf));
        CHECK(amo(&yard, WEFT_AMO_OR, 0x30, 0) == (99 & 0xf) && *word == ((99 & 0xf) | 0x30));
        CHECK(amo(&yard, WEFT_AMO_XOR, 0xff, 0) == ((99 & 0xf) | 0x30) && *word == (((99 & 0xf) | 0x30) ^ 0xff));
        rig_done done = {0, 0};
        weft_atomic atomic = {.op = WEFT_AMO_ADD, .remote = (uintptr_t)yard.remote + YARD_BYTES - 4, .rkey = &yard.rkey, .done = &done};
        CHECK(rig_amo(yard.rig->a, &atomic) < 0); /* not a multiple of 8 */
        atomic.remote = (uintptr_t)yard.remote + YARD_BYTES;
        int rc = rig_amo(yard.rig->a, &atomic);
        CHECK(rc == WEFT_E_KEY || (rig_until(yard.rig, &done.times, 1) && done.rc == WEFT_E_KEY));
    }
    yard_close(&yard);
}

typedef struct counter {
    uint64_t *word, added;
    uint32_t stop;
} counter;

static void *count_up(void *arg)
{
    counter *self = arg;
    for (; !__atomic_load_n(&self->stop, __ATOMIC_RELAXED); self->added++)
        __atomic_fetch_add(self->word, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* The CPU domain: atomic with a CPU's own instructions. */
static void atomics_with_cpu(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    uint64_t *word = (uint64_t *)(yard.remote + 64);
    if (yard.rig->a->iface->caps.amo == WEFT_AMO_CPU) {
        const uint64_t one = 1ull << 40;
        uint64_t amos = 0, changes = 0, last = 0; /* changes: by the thread, which may have no CPU for long */
        pthread_t thread;
        counter cpu = {.word = word};
        *word = 0;
        CHECK(pthread_create(&thread, NULL, count_up, &cpu) == 0);
        while (!__atomic_load_n(word, __ATOMIC_RELAXED))
            sched_yield();
        for (; amos < 200 || (changes < 20 && amos < 100000); amos++) {
            uint64_t now = amo(&yard, WEFT_AMO_ADD, one, 0) % one;
            changes += now != last;
            last = now;
        }
        __atomic_store_n(&cpu.stop, 1, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
        CHECK(*word == (amos << 40) + cpu.added);
    }
    yard_close(&yard);
}

/* Adds, swaps where it fits and where not, refuses what is not registered, and works after that. */
static void use_own(weft_iface *b, const yard *yard)
{
    uint64_t *words = (uint64_t *)yard->remote, before[3];
    weft_atomic three[3] = {{.op = WEFT_AMO_ADD, .remote = (uintptr_t)&words[0], .rkey = &yard->rkey, .operand = 7, .before = &before[0]},
                            {.op = WEFT_AMO_CAS, .remote = (uintptr_t)&words[1], .rkey = &yard->rkey, .operand = 9, .compare = 5,
                             .before = &before[1]},
                            {.op = WEFT_AMO_CAS, .remote = (uintptr_t)&words[2], .rkey = &yard->rkey, .operand = 9, .compare = 5,
                             .before = &before[2]}};
    weft_atomic wrong = three[0];
    words[0] = 1ull << 40, words[1] = 5, words[2] = 6;
    CHECK(b->ops->amo_self(b, three, 3) == 0);
    CHECK(before[0] == 1ull << 40 && before[1] == 5 && before[2] == 6);
    CHECK(words[0] == (1ull << 40) + 7 && words[1] == 9 && words[2] == 6);
    wrong.remote += 4;
    CHECK(b->ops->amo_self(b, &wrong, 1) < 0);
    wrong.remote = (uintptr_t)yard->remote + weft_round_up(YARD_BYTES, 8);
    CHECK(b->ops->amo_self(b, &wrong, 1) == WEFT_E_KEY);
    CHECK(b->ops->amo_self(b, three, 1) == 0 && words[0] == (1ull << 40) + 14);
}

/* Own atomics and a peer's, on one word, at one time: none is lost. Many in one call. */
static void own_atomics(const rig_row *row)
{
    enum { ROUNDS = 40, MANY = 70 };
    static rig_done dones[ROUNDS];
    yard yard;
    if (!yard_open(&yard, row))
        return;
    weft_iface *b = yard.rig->b->iface;
    uint64_t *word = (uint64_t *)(yard.remote + 64), sum = 0;
    weft_atomic own[MANY];
    if (b->caps.amo == WEFT_AMO_NONE || !b->ops->amo_self || b->ops->amo_self(b, NULL, 0)) {
        yard_close(&yard);
        return;
    }
    use_own(b, &yard);
    memset(dones, 0, sizeof dones);
    for (int i = 0; i < MANY; i++)
        own[i] = (weft_atomic){.op = WEFT_AMO_ADD, .remote = (uintptr_t)word, .rkey = &yard.rkey, .operand = 1};
    *word = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        weft_atomic atomic = {.op = i % 2 ? WEFT_AMO_ADD : WEFT_AMO_XOR, .remote = (uintptr_t)word, .rkey = &yard.rkey,
                              .operand = 1ull << 40, .done = &dones[i]};
        CHECK(rig_amo(yard.rig->a, &atomic) == 0);
        sum += i % 4 ? 1 : MANY;
        CHECK(b->ops->amo_self(b, own, i % 4 ? 1 : MANY) == 0);
    }
    for (uint32_t i = 0; i < ROUNDS; i++)
        CHECK(rig_until(yard.rig, &dones[i].times, 1) && dones[i].rc == 0);
    CHECK(*word % (1ull << 40) == sum);
    yard_close(&yard);
}

const rig_test amo_tests[] = {
    {"atomics-are-correct", atomics_are_correct}, {"atomics-with-cpu", atomics_with_cpu}, {"own-atomics", own_atomics}, {NULL, NULL},
};
