/* SPDX-License-Identifier: BSD-3-Clause
 *
 * flips: messages over networks that flip bits, with and without end-to-end checksums. With checksums every corrupted message, and no
 * other, is an error that names source, tag and byte. Without them the same corruption arrives unnoticed.
 *    flips PROFILE WAY CHECKED SEED    replays one run (WAY: copy, get, split, put; CHECKED: 0 or 1)
 */
#include <CUnit/Basic.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "test/sim/rig.h"

#define MESSAGES 120

/* Observations of a run; both ranks are fibres of one thread. */
typedef struct tally {
    uint64_t seed;
    uint32_t damaged, cut, reported, reported_cut, reported_csum, located, misplaced, missed, untrue;
    bool is_checked, is_strided;
} tally;

static uint64_t bytes_of(uint64_t *state)
{
    static const uint64_t below[] = {1, 4, 60, 200, 3000, 20000, 60000};
    return rig_random(state) % below[rig_random(state) % 7];
}

/* Counts differing bits; sets the first differing byte. */
static uint32_t compare(const uint8_t *got, const uint8_t *sent, uint64_t bytes, uint64_t *first)
{
    uint32_t bits = 0;
    *first = bytes;
    for (uint64_t i = 0; i < bytes; i++) {
        bits += (uint32_t)__builtin_popcount(got[i] ^ sent[i]);
        if (got[i] != sent[i] && *first == bytes)
            *first = i;
    }
    return bits;
}

/* The csum of an eager message covers all of it, truncated or not. */
static bool is_behind(const char *text, uint64_t capacity)
{
    const char *at = strstr(text, "of its byte ");
    return at && strtoull(at + 12, NULL, 10) >= capacity;
}

/* The error text must name the message, and the byte if a single bit is wrong. */
static void judge_text(tally *tally, int tag, uint64_t bytes, uint64_t capacity, uint32_t bits, uint64_t first)
{
    char message[80], byte[40];
    const char *text = weft_fail_text(WEFT_E_CORRUPT);
    bool is_csum = strstr(text, "the checksum itself") || is_behind(text, capacity);
    snprintf(message, sizeof message, "from rank 0 with tag %d, %llu bytes", tag, (unsigned long long)bytes);
    snprintf(byte, sizeof byte, "of its byte %llu is wrong", (unsigned long long)first);
    tally->reported_csum += bits == 0;
    if (!strstr(text, message) || (bits == 0 && !is_csum) || (bits == 1 && !strstr(text, byte))) {
        fprintf(stderr, "    the text does not fit (%s, byte %llu, %u bits): %s\n", message, (unsigned long long)first, bits,
                text);
        tally->misplaced++;
    }
    tally->located += bits == 1;
}

/* A receive of `capacity` bytes. A truncated message reports corruption of its received part, or else the truncation. */
static void judge(tally *tally, int rc, int tag, const uint8_t *got, const uint8_t *sent, uint64_t bytes, uint64_t capacity)
{
    uint64_t first;
    uint32_t bits = compare(got, sent, bytes < capacity ? bytes : capacity, &first);
    tally->damaged += bits > 0;
    tally->cut += bytes > capacity;
    if (rc == WEFT_E_CORRUPT) {
        tally->reported++;
        tally->reported_cut += bytes > capacity && bits;
        judge_text(tally, tag, bytes, capacity, bits, first);
    } else if (rc != (bytes > capacity ? WEFT_E_TRUNCATE : 0)) {
        tally->untrue++; /* no other error is expected */
    }
    tally->missed += bits > 0 && rc != WEFT_E_CORRUPT;
}

/* Strided on one side or both, by the seed: gaps of one byte. */
static int type_of(tally *tally, uint64_t *state, uint64_t bytes, const weft_type **type, weft_type **made)
{
    *made = NULL;
    *type = rig_type(RIG_BYTE);
    if (rig_random(state) % 3 || !bytes)
        return 0;
    tally->is_strided = true;
    int rc = weft_type_vector((int64_t)bytes, 1, 2, *type, made);
    *type = *made;
    return rc ? rc : weft_type_commit(*made);
}

static int one_message(rig *rig, tally *tally, uint64_t *state, uint64_t number)
{
    uint64_t bytes = bytes_of(state), own_state = *state + (uint64_t)rig->rank;
    uint64_t capacity = rig_random(state) % 4 ? bytes : rig_random(state) % (bytes + 1);
    int tag = (int)(rig_random(state) % 1000), rc;
    uint8_t *plain = malloc(bytes + 1), *buf = calloc(1, 2 * bytes + 1);
    const weft_type *type;
    weft_type *made;
    bool is_late = rig_random(state) % 2;
    uint64_t here = rig->rank == 0 ? bytes : capacity;
    rc = type_of(tally, &own_state, here, &type, &made);
    uint64_t step = made ? 2 : 1, count = made ? 1 : here;
    rig_fill(plain, number, bytes);
    if (!rc && rig->rank == 0) {
        for (uint64_t i = 0; i < bytes; i++)
            buf[step * i] = plain[i];
        rc = weft_send(rig->chan, 1, tag, buf, count, type, rig_random(&own_state) % 4 ? WEFT_SEND_STANDARD : WEFT_SEND_SYNC);
    } else if (!rc) {
        for (int i = 0; is_late && i < 40; i++)
            weft_worker_poll(rig->world->workers[0]);
        rc = weft_recv(rig->chan, 0, tag, buf, count, type, NULL);
        for (uint64_t i = 0; i < capacity; i++)
            buf[i] = buf[step * i];
        judge(tally, rc, tag, buf, plain, bytes, capacity);
        rc = 0;
    }
    if (made)
        weft_type_drop(made);
    free(plain);
    free(buf);
    return rc;
}

static int program(int rank, void *arg)
{
    tally *tally = arg;
    rig rig;
    uint64_t state = tally->seed * 31; /* the same draws on both ranks */
    int rc = rig_open(&rig, tally->seed);
    (void)rank;
    for (uint64_t i = 0; i < MESSAGES && !rc; i++)
        rc = one_message(&rig, tally, &state, tally->seed << 20 | i);
    return rc ? rig_fail(&rig, "a message failed: %s", weft_fail_text(rc)) : rig_close(&rig);
}

static int run(const char *profile, int scheme, bool is_checked, uint64_t seed, tally *tally, weft_sim_report *report)
{
    weft_sim_config config = {.ranks = 2, .seed = seed, .is_quiet = true, .profile = weft_sim_profile_find(profile), .report = report};
    *tally = (struct tally){.seed = seed, .is_checked = is_checked};
    weft_knobs_load(false);
    weft_knob.rndv_scheme = scheme;
    weft_knob.checksum = is_checked;
    weft_knob.credit_kib = seed % 3 ? 1024 : 16;
    int rc = weft_sim_run(&config, program, tally);
    weft_knob.checksum = false;
    return rc;
}

static const struct {
    const char *name;
    int scheme;
} schemes[] = {{"copy", WEFT_RNDV_SCHEME_COPY}, {"get", WEFT_RNDV_SCHEME_GET}, {"split", WEFT_RNDV_SCHEME_SPLIT},
          {"put", WEFT_RNDV_SCHEME_PUT}};

/* By every protocol, each flipped bit of a frame or rma is detected and located; nothing else is reported. */
static void all_are_detected(void)
{
    static const char *const profiles[] = {"flipped", "spoiled", "tainted"};
    uint32_t cut = 0; /* truncated messages that were reported: some of these runs have none */
    for (int p = 0; p < 3; p++)
        for (int w = 0; w < 4; w++) {
            uint64_t flips = 0;
            tally sum = {0}, one;
            for (uint64_t seed = 1; seed <= 12; seed++) {
                weft_sim_report report;
                CU_ASSERT(run(profiles[p], schemes[w].scheme, true, seed, &one, &report) == 0);
                flips += report.counts[WEFT_SIM_FLIPPED] + report.counts[WEFT_SIM_RMA_FLIPPED];
                if (one.missed || one.misplaced || one.untrue)
                    fprintf(stderr, "    replay by: flips %s %s 1 %" PRIu64 "\n", profiles[p], schemes[w].name, seed);
                sum.damaged += one.damaged;
                sum.reported += one.reported;
                sum.cut += one.cut;
                sum.reported_cut += one.reported_cut;
                sum.reported_csum += one.reported_csum;
                sum.located += one.located;
                sum.missed += one.missed;
                sum.misplaced += one.misplaced;
                sum.untrue += one.untrue;
            }
            printf("\n    %s by %s: %" PRIu64 " bits flipped, %u messages corrupted and %u csums, %u reported, %u located to the byte; "
                   "of %u truncated ones %u", profiles[p], schemes[w].name, flips, sum.damaged, sum.reported_csum, sum.reported,
                   sum.located,
                   sum.cut, sum.reported_cut);
            CU_ASSERT(sum.missed == 0 && sum.misplaced == 0 && sum.untrue == 0);
            CU_ASSERT(sum.reported == sum.damaged + sum.reported_csum && sum.reported <= flips);
            if (p != 1 || w == 1 || w == 2) /* in these profiles only rma is corrupted, and copy, or put without rkeys, uses none */
                CU_ASSERT(sum.damaged > 5 && sum.located > 5 && 2 * sum.reported > flips);
            cut += sum.reported_cut;
        }
    CU_ASSERT(cut > 10);
}

/* A corrupted header, or a corrupted word in a control frame, ends the job before the frame is handled, with a text that names the
 * place. A frame that is never received is not missed. */
static void headers_are_detected(void)
{
    uint32_t flipped = 0, found = 0, placed = 0, unread = 0;
    for (int w = 0; w < 4; w++)
        for (uint64_t seed = 1; seed <= 60; seed++) {
            weft_sim_report report;
            tally one;
            int kept = rig_mute(), rc = run("scrawled", schemes[w].scheme, true, seed, &one, &report); /* an abort leaves all as it is */
            rig_unmute(kept);
            bool is_reported = report.aborted && strstr(report.text, "a frame from rank ") &&
                           strstr(report.text, "damaged in transit");
            bool is_damaged = report.counts[WEFT_SIM_HDRS_FLIPPED];
            flipped += is_damaged;
            found += is_reported;
            placed += is_reported && strstr(report.text, "bit ") && strstr(report.text, "of byte");
            unread += is_damaged && rc == 0;
            if (is_reported > is_damaged || (!is_reported && rc) || one.reported || one.damaged || one.untrue)
                fprintf(stderr, "    replay by: flips scrawled %s 1 %" PRIu64 " (%s)\n", schemes[w].name, seed, report.text);
            CU_ASSERT(is_reported <= is_damaged && (is_reported || rc == 0));
            CU_ASSERT(!one.reported && !one.damaged && !one.untrue);
        }
    printf("\n    %u runs with a corrupted header: %u reported, %u of them with the bit, %u never read ", flipped, found, placed,
           unread);
    CU_ASSERT(found + unread == flipped && found > 100 && unread < 20 && placed > found / 2);
}

/* The same networks without checksums: corruption arrives without an error. */
static void undetected_without_checksums(void)
{
    static const struct {
        const char *profile;
        int scheme;
    } nets[] = {{"flipped", WEFT_RNDV_SCHEME_COPY}, {"spoiled", WEFT_RNDV_SCHEME_GET}};
    for (int n = 0; n < 2; n++) {
        uint32_t damaged = 0;
        for (uint64_t seed = 1; seed <= 12; seed++) {
            weft_sim_report report;
            tally one;
            CU_ASSERT(run(nets[n].profile, nets[n].scheme, false, seed, &one, &report) == 0);
            CU_ASSERT(one.reported == 0 && one.missed == one.damaged);
            damaged += one.damaged;
        }
        CU_ASSERT(damaged > 5);
    }
}

/* Reliable networks: no false alarm. */
static void no_false_alarms(void)
{
    static const char *const profiles[] = {"calm", "storm", "narrow", "torn", "copyonly", "tiny", "wild", "kernel", "lopsided",
                                           "rails", "hca"};
    for (size_t p = 0; p < sizeof profiles / sizeof *profiles; p++)
        for (uint64_t seed = 1; seed <= 6; seed++) {
            weft_sim_report report;
            tally one;
            CU_ASSERT(run(profiles[p], schemes[seed % 4].scheme, true, seed, &one, &report) == 0);
            CU_ASSERT(one.reported == 0 && one.damaged == 0 && one.untrue == 0);
        }
}

static int replay(char **argv)
{
    weft_sim_report report;
    tally one;
    int w = 0;
    while (w < 3 && strcmp(argv[1], schemes[w].name) != 0)
        w++;
    if (!weft_sim_profile_find(argv[0]))
        return 2;
    int rc = run(argv[0], schemes[w].scheme, atoi(argv[2]), strtoull(argv[3], NULL, 10), &one, &report);
    printf("%d: %u damaged, %u reported, %u missed, %u misplaced, %u untrue\n", rc, one.damaged, one.reported, one.missed, one.misplaced,
           one.untrue);
    return rc || one.missed || one.misplaced || one.untrue;
}

int main(int argc, char **argv)
{
    if (argc == 5)
        return replay(argv + 1);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("flipped bits", NULL, NULL);
    CU_add_test(suite, "all are detected", all_are_detected);
    CU_add_test(suite, "headers are detected", headers_are_detected);
    CU_add_test(suite, "undetected without checksums", undetected_without_checksums);
    CU_add_test(suite, "no false alarms", no_false_alarms);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
