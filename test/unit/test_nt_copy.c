/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_nt_copy: the choice between cached and non-temporal stores: trials of the other kind begin, end after some bodies, become
 * rare, and are decided by the report of the reader that has timed them; also if no report comes, if the reader changes, and if bodies
 * that are packed in place come between. First src/base/nt_copy.c alone, then three ranks of shm in one process.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "test/unit/shm_ranks.h"

enum { RANKS = 3, BYTES = 4096, SHORT = 100 };

typedef struct seen {
    uint32_t bodies, past, trials, longest, samples;
} seen;

/* So many bodies; a reader reports these times, if they are not 0. */
static seen copy_many(weft_nt_copy *store, uint32_t count, uint32_t cached_ps, uint32_t past_ps)
{
    static char from[BYTES], to[BYTES];
    seen all = {0};
    uint32_t run = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_trial = store->current != store->used;
        uint32_t how = weft_nt_copy_body(store, to, from, BYTES);
        all.bodies++;
        all.past += (how & WEFT_COPY_PAST) != 0;
        all.samples += (how & WEFT_COPY_TIMED) != 0;
        run = is_trial ? run + 1 : 0;
        all.trials += run == 1;
        all.longest = run > all.longest ? run : all.longest;
        store->write_ps[WEFT_STORE_CACHED] = store->write_ps[WEFT_STORE_PAST] = 100; /* the reader decides */
        if (weft_nt_copy_wants_report(store, how)) {
            CU_ASSERT(!is_trial); /* the reader has not timed the last body of the trial yet */
            weft_nt_copy_report(store, cached_ps, past_ps);
        }
    }
    return all;
}

static void trials_become_rare(void)
{
    weft_nt_copy store = {.worth = 20};
    seen first = copy_many(&store, 64 * WEFT_STORE_SAMPLE, 100, 10000), later;
    CU_ASSERT(first.trials >= 3 && first.longest == WEFT_STORE_SAMPLE && first.past == first.trials * WEFT_STORE_SAMPLE);
    CU_ASSERT_EQUAL(first.samples, 64);
    copy_many(&store, 256 * WEFT_STORE_SAMPLE, 100, 10000);
    later = copy_many(&store, 10 * WEFT_STORE_REST_MAX * WEFT_STORE_SAMPLE, 100, 10000);
    CU_ASSERT(later.trials >= 8 && later.trials <= 10);
    CU_ASSERT_EQUAL(store.used, WEFT_STORE_CACHED);
    /* both sides together, in tenths; the kind in use has an advantage */
    copy_many(&store, 300 * WEFT_STORE_SAMPLE, 2000, 100);
    CU_ASSERT_EQUAL(store.used, WEFT_STORE_PAST);
    copy_many(&store, 300 * WEFT_STORE_SAMPLE, 220, 100); /* 320 : 200, between 1.5 and 2.0 */
    CU_ASSERT_EQUAL(store.used, WEFT_STORE_PAST);
    copy_many(&store, 300 * WEFT_STORE_SAMPLE, 190, 100); /* 290 : 200 */
    CU_ASSERT_EQUAL(store.used, WEFT_STORE_CACHED);
    copy_many(&store, 300 * WEFT_STORE_SAMPLE, 220, 100);
    CU_ASSERT_EQUAL(store.used, WEFT_STORE_CACHED);
}

/* A trial of several samples, where bodies rotate through much memory: as rare in time. */
static void long_trials(void)
{
    weft_nt_copy store = {.worth = 20, .trial = 3};
    seen all = copy_many(&store, 200 * WEFT_STORE_SAMPLE, 100, 10000), later;
    CU_ASSERT(all.trials >= 3 && all.longest == 3 * WEFT_STORE_SAMPLE && all.past == all.trials * 3 * WEFT_STORE_SAMPLE);
    copy_many(&store, 800 * WEFT_STORE_SAMPLE, 100, 10000);
    later = copy_many(&store, 30 * WEFT_STORE_REST_MAX * WEFT_STORE_SAMPLE, 100, 10000);
    CU_ASSERT(later.trials >= 8 && later.trials <= 10);
    copy_many(&store, 900 * WEFT_STORE_SAMPLE, 2000, 100);
    CU_ASSERT_EQUAL(store.used, WEFT_STORE_PAST);
}

static void missing_reports_end_no_trials(void)
{
    weft_nt_copy store = {.worth = 20};
    seen all = copy_many(&store, 1000 * WEFT_STORE_SAMPLE, 100, 0);
    CU_ASSERT_EQUAL(store.used, WEFT_STORE_CACHED);
    CU_ASSERT(all.trials >= 10 && all.trials <= 30);
    copy_many(&store, 2 * (WEFT_STORE_REST_MAX + 10) * WEFT_STORE_SAMPLE, 10000, 100); /* another reader, that reports */
    CU_ASSERT_EQUAL(store.used, WEFT_STORE_PAST);
}

/* The reader lags: its time of the trial comes some samples later. */
static void late_reports_count(void)
{
    static char from[BYTES], to[BYTES];
    for (int lag = 0; lag < 6; lag++) {
        weft_nt_copy store = {.worth = 20};
        for (int asked = 0; asked <= lag;) {
            uint32_t how = weft_nt_copy_body(&store, to, from, BYTES);
            store.write_ps[WEFT_STORE_CACHED] = store.write_ps[WEFT_STORE_PAST] = 100;
            if (weft_nt_copy_wants_report(&store, how))
                weft_nt_copy_report(&store, 2000, asked++ < lag ? 0 : 100);
            CU_ASSERT_FATAL(store.count < 40 * WEFT_STORE_SAMPLE);
        }
        CU_ASSERT_EQUAL(store.used, WEFT_STORE_PAST);
        CU_ASSERT(lag > 4 || store.count == (uint32_t)(lag + 2) * WEFT_STORE_SAMPLE + 1);
    }
}

static void without_reports_the_sender_decides(void)
{
    weft_nt_copy store = {.worth = 0};
    seen all = copy_many(&store, 300 * WEFT_STORE_SAMPLE, 0, 0);
    CU_ASSERT(all.trials >= 5 && all.longest == WEFT_STORE_SAMPLE);
    CU_ASSERT(!store.is_due);
}

static void long_times_do_not_wrap(void)
{
    uint32_t ps = 1000;
    weft_nt_copy_learn(&ps, ((uint64_t)1 << 32) * 1024 / 1000 + 1, 1024); /* a stopped process */
    CU_ASSERT(ps > 1000 && ps < 1200);
    for (int i = 0; i < 1000; i++) {
        uint32_t before = ps;
        weft_nt_copy_learn(&ps, UINT64_MAX / 2000, 1024);
        CU_ASSERT(ps >= before || ps > 1u << 29);
    }
    weft_nt_copy_learn(&ps, 100, 0); /* a damaged length */
    ps = 0;
    weft_nt_copy_learn(&ps, 100, 1000);
    CU_ASSERT_EQUAL(ps, 101);
}

/* -- three ranks -- */

static shm_ranks ranks;
static weft_ep *to[RANKS]; /* of rank 0 */

static void on_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    uint8_t sum = 0;
    (void)owner, (void)peer;
    for (uint32_t i = 0; i < hdr->bytes; i++)
        sum ^= ((const uint8_t *)body)[i];
    CU_ASSERT_EQUAL(sum, 0);
}

static void *on_accept(void *owner, const weft_proc_id *proc_id) { return shm_ranks_accept(&ranks, owner, proc_id); }

static int open_all(void)
{
    static const weft_iface_callbacks callbacks = {.recv_frame = on_frame, .accept_peer = on_accept};
    if (!shm_ranks_open(&ranks, RANKS, &callbacks, NULL))
        return 1;
    for (uint32_t i = 1; i < RANKS; i++)
        if (!(to[i] = shm_ranks_connect(&ranks, 0, i, NULL)))
            return 1;
    return 0;
}

static int close_all(void) { return shm_ranks_close(&ranks); }

static void pack(const weft_frame *frame, void *place) { memset(place, 0, frame->hdr.bytes); }

/* The reader of `rank` receives at once. */
static void send_body(uint32_t rank, uint32_t bytes, bool is_packed)
{
    static char body[BYTES];
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .bytes = bytes}, .body = is_packed ? NULL : body,
                        .pack = is_packed ? pack : NULL};
    CU_ASSERT_EQUAL_FATAL(weft_iface_send(to[rank], &frame), 0);
    CU_ASSERT_EQUAL_FATAL(weft_shm_poll(ranks.ifaces[rank], 32), 1 + WEFT_POLL_EXTRA(bytes));
}

static const _Atomic uint32_t *times_of(uint32_t rank) { return ((shm_ep *)to[rank])->out.ring->read_ps[WEFT_HOT]; }

/* The first trial is with rank 1, to which rank 0 then sends no more. */
static void another_reader_is_tried_as_well(void)
{
    for (int i = 0; i < WEFT_STORE_SAMPLE + 1; i++)
        send_body(1, BYTES, false);
    CU_ASSERT(times_of(1)[WEFT_STORE_CACHED] && times_of(1)[WEFT_STORE_PAST]);
    for (int i = 0; i < 20 * WEFT_STORE_SAMPLE; i++)
        send_body(2, BYTES, false);
    CU_ASSERT(times_of(2)[WEFT_STORE_CACHED] && times_of(2)[WEFT_STORE_PAST]);
}

/* A short body of a vector datatype between two long ones: these are timed as often as without it. */
static void short_packed_bodies_do_not_count(void)
{
    const weft_nt_copy *store = &((shm_iface *)ranks.ifaces[0])->store[WEFT_HOT];
    for (int i = 0; i < 10 * WEFT_STORE_SAMPLE; i++) {
        send_body(1, SHORT, true);
        send_body(1, BYTES, true);
    }
    CU_ASSERT_EQUAL(store->count, 10 * WEFT_STORE_SAMPLE);
    CU_ASSERT(store->write_ps[WEFT_STORE_CACHED] && store->write_ps[WEFT_STORE_PAST]);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("nt_copy", NULL, NULL);
    CU_add_test(suite, "trials become rare", trials_become_rare);
    CU_add_test(suite, "trials of several samples", long_trials);
    CU_add_test(suite, "missing reports do not end trials", missing_reports_end_no_trials);
    CU_add_test(suite, "late reports count", late_reports_count);
    CU_add_test(suite, "without reports the sender decides", without_reports_the_sender_decides);
    CU_add_test(suite, "long times do not wrap", long_times_do_not_wrap);
    suite = CU_add_suite("readers", open_all, close_all);
    CU_add_test(suite, "another reader is tried as well", another_reader_is_tried_as_well);
    suite = CU_add_suite("packed", open_all, close_all);
    CU_add_test(suite, "short packed bodies do not count", short_packed_bodies_do_not_count);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}
