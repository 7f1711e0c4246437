/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma: the contract's memory: mr_reg, rkeys, get, put, notification, flush; and WEFT_E_UNSUPPORTED for what an iface lacks.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/contract/yard.h"

static bool has(const yard *yard, bool is_get)
{
    weft_iface *a = yard->rig->a->iface;
    return (is_get ? a->caps.get : a->caps.put) && a->ops->can_rma(a, yard->rig->a->ep);
}

static weft_rma move_of(const yard *yard, uint64_t here, uint64_t there, uint64_t bytes)
{
    return (weft_rma){.local = yard->local + here, .mr = &yard->local_mr, .remote = (uintptr_t)yard->remote + there,
                       .rkey = &yard->rkey, .bytes = bytes};
}

static void missing_reports_unsupported(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    rig_side *a = yard.rig->a;
    rig_done done = {0, 0};
    weft_rma rma = move_of(&yard, 0, 0, 8);
    rma.done = &done;
    if (!has(&yard, true))
        CHECK(rig_move(a, &rma, true) == WEFT_E_UNSUPPORTED);
    if (!has(&yard, false))
        CHECK(rig_move(a, &rma, false) == WEFT_E_UNSUPPORTED);
    if (has(&yard, false) && !a->iface->caps.notify) {
        rma.notify = 5;
        CHECK(rig_move(a, &rma, false) == WEFT_E_UNSUPPORTED);
    }
    if (a->iface->caps.amo == WEFT_AMO_NONE) {
        weft_atomic atomic = {.op = WEFT_AMO_ADD, .remote = (uintptr_t)yard.remote, .rkey = &yard.rkey, .done = &done};
        CHECK(rig_amo(a, &atomic) == WEFT_E_UNSUPPORTED);
    }
    weft_mr mr;
    CHECK(a->iface->ops->mr_reg(a->iface, yard.local, 8, 0, WEFT_MEMORY_DEVICE, &mr) == WEFT_E_UNSUPPORTED);
    rig_settle(yard.rig);
    CHECK(done.times == 0);
    yard_close(&yard);
}

/* caps.prompt: the data are in place when the call returns, also if callbacks.done is not called. */
static void prompt_means_done(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    for (int is_get = 0; is_get < 2; is_get++) {
        weft_rma rma = move_of(&yard, 0, 64, 300);
        if (!yard.rig->a->iface->caps.prompt || !has(&yard, is_get))
            continue;
        memset(yard.local, 7 + is_get, 300);
        memset(yard.remote + 64, 9 + is_get, 300);
        CHECK(rig_move(yard.rig->a, &rma, is_get) == 0);
        CHECK(memcmp(yard.local, yard.remote + 64, 300) == 0 && yard.local[0] == (is_get ? 10 : 7));
    }
    yard_close(&yard);
}

static void transfers_bytes(const rig_row *row)
{
    static const uint32_t sizes[] = {1, 2, 7, 8, 63, 64, 65, 511, 1000, 1001, 4095, 4096, 10000};
    yard yard;
    if (!yard_open(&yard, row))
        return;
    uint64_t max = yard.rig->a->iface->caps.rma_max;
    for (uint32_t i = 0; i < 2 * weft_count(sizes); i++) {
        bool is_get = i & 1;
        uint32_t bytes = sizes[i / 2] < max ? sizes[i / 2] : (uint32_t)max;
        uint32_t here = (uint32_t)(rig_random(yard.rig) % (YARD_BYTES - bytes - 1)) + 1, there = YARD_BYTES - bytes - here % 7;
        uint8_t *from = is_get ? yard.remote + there : yard.local + here, *to = is_get ? yard.local + here : yard.remote + there;
        if (!has(&yard, is_get))
            continue;
        memset(yard.local, 0x11, YARD_BYTES);
        memset(yard.remote, 0x22, YARD_BYTES);
        rig_pattern(from, i, bytes);
        CHECK(rig_move_wait(yard.rig->a, move_of(&yard, here, there, bytes), is_get) == 0);
        CHECK(rig_is_pattern(to, i, bytes));
        CHECK(to[-1] == (is_get ? 0x11 : 0x22));
        CHECK(to + bytes == (is_get ? yard.local : yard.remote) + YARD_BYTES || to[bytes] == (is_get ? 0x11 : 0x22));
    }
    yard_close(&yard);
}

/* At done of a get its bytes are here. */
static void data_before_done(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    uint64_t max = yard.rig->a->iface->caps.rma_max, bytes = max < 6000 ? max : 6000;
    for (uint32_t i = 0; has(&yard, true) && i < 30; i++) {
        rig_done done = {0, 0};
        weft_rma rma = move_of(&yard, 0, 0, bytes);
        rma.done = &done;
        memset(yard.local, 0x11, YARD_BYTES);
        rig_pattern(yard.remote, i, bytes);
        CHECK(rig_move(yard.rig->a, &rma, true) == 0);
        CHECK(rig_until(yard.rig, &done.times, 1));
        CHECK(done.rc == 0 && rig_is_pattern(yard.local, i, bytes));
        rig_settle(yard.rig);
    }
    yard_close(&yard);
}

/* Many in flight, done once for each, frames in between. */
static void many_at_once(const rig_row *row)
{
    enum { COUNT = 100, BYTES = 100 };
    static rig_done dones[COUNT];
    yard yard;
    if (!yard_open(&yard, row))
        return;
    memset(dones, 0, sizeof dones);
    bool is_get = !has(&yard, false);
    for (uint32_t i = 0; has(&yard, is_get) && i < COUNT; i++) {
        weft_rma rma = move_of(&yard, i * BYTES, i * BYTES, BYTES);
        weft_frame frame = {.hdr = {.seq = i}};
        rig_pattern((is_get ? yard.remote : yard.local) + i * BYTES, i, BYTES);
        rma.done = &dones[i];
        CHECK(rig_move(yard.rig->a, &rma, is_get) == 0);
        CHECK(rig_send(yard.rig->a, &frame) == 0);
    }
    for (uint32_t i = 0; has(&yard, is_get) && i < COUNT; i++)
        CHECK(rig_until(yard.rig, &dones[i].times, 1));
    rig_settle(yard.rig);
    for (uint32_t i = 0; has(&yard, is_get) && i < COUNT; i++) {
        CHECK(dones[i].times == 1 && dones[i].rc == 0);
        CHECK(rig_is_pattern((is_get ? yard.local : yard.remote) + i * BYTES, i, BYTES));
    }
    yard_close(&yard);
}

/* Wrong use of an rkey fails, changes no memory, and the iface still works. */
static void refuse(yard *yard, weft_rma rma, bool is_get)
{
    CHECK(rig_move_wait(yard->rig->a, rma, is_get) == WEFT_E_KEY);
    for (uint32_t i = 0; i < YARD_BYTES; i++)
        if (yard->remote[i] != 0x22 || yard->local[i] != 0x11) {
            CHECK(!"memory changed although the key was refused");
            return;
        }
}

static void refuses_bad_keys(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    bool is_get = !has(&yard, false);
    if (!yard.rig->a->iface->caps.key_bytes || !has(&yard, is_get)) {
        yard_close(&yard);
        return;
    }
    memset(yard.local, 0x11, YARD_BYTES);
    memset(yard.remote, 0x22, YARD_BYTES);
    refuse(&yard, move_of(&yard, 0, YARD_BYTES - 7, 8), is_get);
    refuse(&yard, move_of(&yard, 0, (uint64_t)-1, 8), is_get);
    weft_rkey good = yard.rkey;
    for (uint32_t i = 0; i < good.length; i += 4)
        yard.rkey.bytes[i] ^= 1; /* for each rail: the iface may choose any */
    refuse(&yard, move_of(&yard, 0, 0, 8), is_get);
    yard.rkey = (weft_rkey){.length = 0};
    refuse(&yard, move_of(&yard, 0, 0, 8), is_get);
    weft_mr limited;
    rig_side *b = yard.rig->b;
    CHECK(rig_map(b, yard.remote, 100, is_get ? WEFT_ACCESS_WRITE : WEFT_ACCESS_READ, &limited) == 0);
    yard.rkey = limited.rkey;
    refuse(&yard, move_of(&yard, 0, 0, 8), is_get);
    CHECK(b->iface->ops->mr_dereg(b->iface, &limited) == 0);
    yard.rkey = good;
    CHECK(rig_move_wait(yard.rig->a, move_of(&yard, 0, 0, 8), is_get) == 0);
    memset(yard.local, 0x11, YARD_BYTES);
    memset(yard.remote, 0x22, YARD_BYTES);
    CHECK(b->iface->ops->mr_dereg(b->iface, &yard.remote_mr) == 0);
    yard.remote_mr.bytes = 0;
    refuse(&yard, move_of(&yard, 0, 0, 8), is_get);
    weft_mr again; /* the same memory registered again: the old rkey stays stale */
    CHECK(rig_map(b, yard.remote, YARD_BYTES, YARD_RIGHTS, &again) == 0);
    refuse(&yard, move_of(&yard, 0, 0, 8), is_get);
    CHECK(b->iface->ops->mr_dereg(b->iface, &again) == 0);
    if (yard.rig->a->iface->caps.mr_local) {
        weft_rma rma = move_of(&yard, 0, 0, 8);
        rma.mr = NULL;
        CHECK(rig_move_wait(yard.rig->a, rma, is_get) == WEFT_E_KEY);
    }
    yard_close(&yard);
}

/* If local memory needs an mr, the mr must cover it: else no byte changes on either side. */
static void local_region_covers(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    rig_side *a = yard.rig->a;
    bool is_get = !has(&yard, false);
    weft_mr small;
    if (a->iface->caps.mr_local && has(&yard, is_get)) {
        memset(yard.local, 0x11, YARD_BYTES);
        memset(yard.remote, 0x22, YARD_BYTES);
        CHECK(rig_map(a, yard.local, 100, 0, &small) == 0);
        weft_rma rma = move_of(&yard, 93, 0, 8);
        rma.mr = &small;
        refuse(&yard, rma, is_get);
        rma = move_of(&yard, 4000, 0, 8);
        rma.mr = &small;
        refuse(&yard, rma, is_get);
        rma = move_of(&yard, 92, 0, 8);
        rma.mr = &small;
        CHECK(rig_move_wait(a, rma, is_get) == 0); /* up to its last byte */
        CHECK(a->iface->ops->mr_dereg(a->iface, &small) == 0);
    }
    yard_close(&yard);
}

typedef struct mapper {
    weft_iface *iface;
    uint8_t *memory;
    uint32_t mapped, wrong;
    uint32_t stop;
} mapper;

static void *map_on_and_on(void *arg)
{
    mapper *self = arg;
    for (uint32_t i = 0; !__atomic_load_n(&self->stop, __ATOMIC_RELAXED); i++) {
        weft_mr mr;
        int rc = self->iface->ops->mr_reg(self->iface, self->memory + i % 64, 1000, WEFT_ACCESS_READ, WEFT_MEMORY_HOST, &mr);
        if (rc == 0) {
            __atomic_fetch_add(&self->mapped, 1, __ATOMIC_RELAXED);
            self->wrong += self->iface->ops->mr_dereg(self->iface, &mr) != 0;
        } else if (rc != WEFT_E_NOMEM && rc != WEFT_E_NOSPACE) {
            self->wrong++;
        }
        usleep(50); /* sched_yield alone may starve the other thread of a device's lock for minutes */
    }
    return NULL;
}

/* mr_reg and mr_dereg from any thread at any time do not disturb RMA under other rkeys. */
static void registers_from_a_thread(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    pthread_t thread;
    mapper helper = {.iface = yard.rig->b->iface, .memory = malloc(2000)};
    bool is_get = !has(&yard, false);
    CHECK(pthread_create(&thread, NULL, map_on_and_on, &helper) == 0);
    for (uint32_t i = 0; i < 30 || (__atomic_load_n(&helper.mapped, __ATOMIC_RELAXED) < 20 && i < 10000); i++) {
        weft_frame frame = {.hdr = {.seq = i}};
        CHECK(rig_send(yard.rig->a, &frame) == 0);
        if (i > 30)
            usleep(100); /* the helper thread has not run yet */
        if (!has(&yard, is_get))
            continue;
        rig_pattern((is_get ? yard.remote : yard.local) + 64, i, 500);
        CHECK(rig_move_wait(yard.rig->a, move_of(&yard, 64, 64, 500), is_get) == 0);
        CHECK(rig_is_pattern((is_get ? yard.local : yard.remote) + 64, i, 500));
    }
    __atomic_store_n(&helper.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    CHECK(helper.mapped > 0 && helper.wrong == 0);
    free(helper.memory);
    yard_close(&yard);
}

/* done of a flush comes after every earlier put is visible there. */
static void flush_waits(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    for (uint32_t round = 0; round < 20; round++) {
        rig_done done = {0, 0};
        uint32_t puts = has(&yard, false) ? round % 5 : 0;
        memset(yard.remote, 0, YARD_BYTES);
        for (uint32_t i = 0; i < puts; i++) {
            rig_pattern(yard.local + i * 800, round + i, 800);
            weft_rma rma = move_of(&yard, i * 800, i * 800, 800);
            CHECK(rig_move(yard.rig->a, &rma, false) == 0);
        }
        CHECK(rig_flush(yard.rig->a, round & 1, &done) == 0);
        CHECK(rig_until(yard.rig, &done.times, 1));
        for (uint32_t i = 0; i < puts; i++)
            CHECK(rig_is_pattern(yard.remote + i * 800, round + i, 800));
        rig_settle(yard.rig);
        CHECK(done.times == 1 && done.rc == 0);
    }
    yard_close(&yard);
}

static void look_at_put(rig_side *side)
{
    yard *yard = side->extra;
    CHECK(rig_is_pattern(yard->remote, side->last_notify, 900));
}

static void notifies_after_data(const rig_row *row)
{
    yard yard;
    if (!yard_open(&yard, row))
        return;
    rig_side *b = yard.rig->b;
    b->extra = &yard;
    b->on_notify = look_at_put;
    for (uint32_t i = 1; yard.rig->a->iface->caps.notify && i < 40; i++) {
        weft_rma rma = move_of(&yard, 0, 0, 900);
        rig_pattern(yard.local, i * 3, 900);
        rma.notify = i * 3;
        CHECK(rig_move_wait(yard.rig->a, rma, false) == 0);
        CHECK(rig_until(yard.rig, &b->notifies, i));
        CHECK(b->last_notify == i * 3 && b->last_notify_peer == yard.rig->a);
    }
    yard_close(&yard);
}

enum { NOTICES = 60, NOTICE_BYTES = 190 };

typedef struct notices {
    yard *yard;
    uint32_t times[NOTICES + 1], early;
} notices;

static void count_notice(rig_side *side)
{
    notices *all = side->extra;
    uint32_t i = side->last_notify % (NOTICES + 1);
    all->times[i]++;
    all->early += !rig_is_pattern(all->yard->remote + (i - 1) * NOTICE_BYTES, i, NOTICE_BYTES);
}

/* Many puts in flight with frames both ways between them: one notification each, with its bytes visible, and frames stay in order. More
 * than there are credits, so some wait. */
static void notifications_among_frames(const rig_row *row)
{
    static rig_done dones[NOTICES + 1];
    yard yard;
    notices all = {.yard = &yard};
    if (!yard_open(&yard, row))
        return;
    rig_side *a = yard.rig->a, *b = yard.rig->b;
    b->extra = &all;
    b->on_notify = count_notice;
    memset(dones, 0, sizeof dones);
    for (uint32_t i = 1; has(&yard, false) && a->iface->caps.notify && i <= NOTICES; i++) {
        weft_rma rma = move_of(&yard, (i - 1) * NOTICE_BYTES, (i - 1) * NOTICE_BYTES, NOTICE_BYTES);
        weft_frame frame = {.hdr = {.seq = i}}, back = {.hdr = {.seq = i}};
        rig_pattern(yard.local + (i - 1) * NOTICE_BYTES, i, NOTICE_BYTES);
        rma.notify = i;
        rma.done = &dones[i];
        CHECK(rig_move(a, &rma, false) == 0);
        for (uint32_t k = 0; k < i % 3; k++)
            CHECK(rig_send(a, &frame) == 0);
        if (i % 4 == 0)
            CHECK(rig_send(b, &back) == 0);
    }
    for (uint32_t i = 1; has(&yard, false) && a->iface->caps.notify && i <= NOTICES; i++)
        CHECK(rig_until(yard.rig, &all.times[i], 1) && rig_until(yard.rig, &dones[i].times, 1));
    rig_settle(yard.rig);
    for (uint32_t i = 1; has(&yard, false) && a->iface->caps.notify && i <= NOTICES; i++)
        CHECK(all.times[i] == 1 && dones[i].times == 1 && dones[i].rc == 0);
    CHECK(all.early == 0);
    for (uint32_t i = 1; b->iface->caps.ordered && a != b && i < b->arrival_count; i++)
        CHECK(b->arrivals[i].hdr.seq >= b->arrivals[i - 1].hdr.seq);
    yard_close(&yard);
}

enum { RUNS = 12, RUN_PUTS = 6, PUT_BYTES = 160 };

typedef struct runs {
    yard *yard;
    uint32_t times[RUNS + 1], early;
} runs;

static uint8_t *put_at(const runs *all, uint32_t run, uint32_t put)
{
    return all->yard->remote + ((run - 1) * RUN_PUTS + put) * PUT_BYTES;
}

/* The notification of a run: all runs up to it are there. Their memory belongs to this side now. */
static void take_runs(rig_side *side)
{
    runs *all = side->extra;
    uint32_t last = side->last_notify;
    all->times[last]++;
    for (uint32_t put = 0; put < RUN_PUTS && all->times[last] == 1; put++)
        for (uint32_t run = 1; run <= last; run++) {
            uint8_t *at = put_at(all, run, put);
            all->early += !rig_is_pattern(at, run * 10 + put, PUT_BYTES) && at[0] != 0xee;
            memset(at, 0xee, PUT_BYTES);
        }
}

/* Runs of puts, whose last, some without bytes, notifies after all: it comes once, after the puts of its run and of those before, and none
 * of these writes again. */
static void notifies_after_all(const rig_row *row)
{
    static rig_done dones[RUNS + 1];
    yard yard;
    runs all = {.yard = &yard};
    if (!yard_open(&yard, row))
        return;
    rig_side *a = yard.rig->a, *b = yard.rig->b;
    bool may = has(&yard, false) && a->iface->caps.notify_after_all;
    uint8_t *here = yard.local;
    b->extra = &all;
    b->on_notify = take_runs;
    memset(dones, 0, sizeof dones);
    memset(yard.remote, 0, YARD_BYTES);
    for (uint32_t run = 1; may && run <= RUNS; run++)
        for (uint32_t put = 0; put <= RUN_PUTS; put++, here += PUT_BYTES) {
            bool is_empty = put == RUN_PUTS;
            weft_rma rma = move_of(&yard, (uint64_t)(here - yard.local), (uint64_t)(here - yard.local), PUT_BYTES);
            weft_frame frame = {.hdr = {.seq = run}};
            if (is_empty ? run % 3 == 0 : put + 1 == RUN_PUTS && run % 3) {
                rma.notify = run;
                rma.notify_after_all = true;
                rma.done = &dones[run];
            } else if (is_empty) {
                here -= PUT_BYTES;
                continue;
            }
            if (is_empty) {
                here -= PUT_BYTES;
                rma.bytes = 0;
                rma.local = NULL;
                rma.mr = NULL;
            } else {
                rig_pattern(here, run * 10 + put, PUT_BYTES);
            }
            CHECK(rig_move(a, &rma, false) == 0);
            if (run % 4 == 0 && put == 3)
                CHECK(rig_send(a, &frame) == 0);
        }
    for (uint32_t run = 1; may && run <= RUNS; run++)
        CHECK(rig_until(yard.rig, &all.times[run], 1) && rig_until(yard.rig, &dones[run].times, 1));
    rig_settle(yard.rig);
    for (uint32_t run = 1; may && run <= RUNS; run++) {
        CHECK(all.times[run] == 1 && dones[run].times == 1 && dones[run].rc == 0);
        for (uint32_t put = 0; put < RUN_PUTS; put++)
            for (uint32_t i = 0; i < PUT_BYTES; i++)
                all.early += put_at(&all, run, put)[i] != 0xee;
    }
    CHECK(all.early == 0);
    yard_close(&yard);
}

const rig_test move_tests[] = {
    {"missing-reports-unsupported", missing_reports_unsupported}, {"transfers-bytes", transfers_bytes},
    {"data-before-done", data_before_done},
    {"many-at-once", many_at_once},
    {"refuses-bad-keys", refuses_bad_keys}, {"local-region-covers", local_region_covers},
    {"registers-from-a-thread", registers_from_a_thread}, {"flush-waits", flush_waits}, {"notifies-after-data", notifies_after_data},
    {"notifications-among-frames", notifications_among_frames}, {"notifies-after-all", notifies_after_all},
    {"prompt-means-done", prompt_means_done}, {NULL, NULL},
};
