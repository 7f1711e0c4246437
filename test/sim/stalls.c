/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stalls: messages that wait at their senders for credit, by seed, against a model of MPI's order: floods on two channels, received in any
 * order, by tag, wildcard and probe; cancelled sends; floods that are not received while other messages are awaited. The window is 8
 * messages, so nearly all wait.
 *    stalls [TEXT]                        the tests whose name contains TEXT
 *    stalls PROGRAM PROFILE RANKS SEED    replays one run
 */
#include <CUnit/Basic.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "p2p/rndv_pool.h"
#include "p2p/rndv_state.h"
#include "p2p/sendq.h"
#include "test/sim/rig.h"
#include "test/sim/seeds.h"

enum { CHANS = 2, MAX = 40, TAGS = 4, ROOM = 6000, NEVER = 77, WINDOW_KIB = 1 };

typedef struct message {
    int tag;
    uint32_t bytes;
    bool is_got;
} message;

/* Known on every rank: the messages from one rank to another on one channel. */
typedef struct stream {
    message messages[MAX];
    int count, got;
} stream;

typedef struct job {
    rig rig;
    weft_chan *chans[CHANS];
    stream *to, *from;   /* [CHANS * size] */
    weft_req **sends;    /* [CHANS * size * MOST] */
    uint8_t *payload;
    uint64_t order;      /* random state of this rank only */
} job;

static struct {
    uint64_t stalled, overdrawn, asks, cancelled, late, max;
} seen;

typedef struct run_args {
    uint64_t seed;
} run_args;

static uint64_t draw(job *job, uint64_t below) { return rig_random(&job->order) % below; }

static void draw_stream(stream *stream, uint64_t seed, int src, int dst, int chan)
{
    uint64_t state = seed * 7919 + (uint64_t)((src * 64 + dst) * CHANS + chan);
    stream->got = 0;
    stream->count = (int)(rig_random(&state) % (MAX + 1));
    for (int i = 0; i < stream->count; i++) {
        uint64_t kind = rig_random(&state) % 12;
        stream->messages[i] = (message){.tag = (int)(rig_random(&state) % TAGS),
                                        .bytes = kind < 8    ? 8
                                                 : kind < 10 ? 8 + (uint32_t)(rig_random(&state) % 500)
                                                             : (uint32_t)(rig_random(&state) % ROOM)};
    }
}

static uint64_t name_of(int src, int chan, int index) { return ((uint64_t)src << 32) + (uint64_t)(chan * 1000 + index); }

static int open_job(job *job, const run_args *what)
{
    uint32_t ids[64];
    int rc = rig_open(&job->rig, what->seed), size = job->rig.size;
    job->chans[0] = job->rig.chan;
    rc = rc ? rc : weft_chan_open(job->rig.world->workers[0], NULL, (uint32_t)job->rig.rank, 4, &job->chans[1]);
    for (int i = 0; i < size && !rc; i++)
        ids[i] = job->chans[1]->id;
    rc = rc ? rc : weft_chan_connect(job->chans[1], ids);
    job->order = job->rig.random;
    job->to = calloc((size_t)(CHANS * size), sizeof *job->to);
    job->from = calloc((size_t)(CHANS * size), sizeof *job->from);
    job->sends = calloc((size_t)(CHANS * size * MAX), sizeof(weft_req *));
    job->payload = malloc((size_t)(CHANS * size * MAX) * ROOM);
    for (int i = 0; i < size; i++)
        for (int c = 0; c < CHANS; c++) {
            draw_stream(&job->to[i * CHANS + c], what->seed, job->rig.rank, i, c);
            draw_stream(&job->from[i * CHANS + c], what->seed, i, job->rig.rank, c);
        }
    return rc;
}

static int close_job(job *job, int rc)
{
    const uint64_t *counters = job->rig.world->workers[0]->counters;
    rc = rc ? rc : rig_barrier(&job->rig);
    seen.stalled += counters[WEFT_COUNT_STALLED];
    seen.overdrawn += counters[WEFT_COUNT_OVERDRAWN];
    seen.asks += counters[WEFT_COUNT_ASKS];
    if (counters[WEFT_COUNT_UNEXPECTED_MAX] > seen.max)
        seen.max = counters[WEFT_COUNT_UNEXPECTED_MAX];
    weft_chan_close(job->chans[1]);
    free(job->to);
    free(job->from);
    free(job->sends);
    free(job->payload);
    return rc ? rc : rig_close(&job->rig);
}

static void release(weft_req *req)
{
    if (req->kind != WEFT_REQ_BATCH || --req->handles == 0)
        weft_req_free(req);
}

/* Starts a send in one of the ways of programs and collectives. */
static int send_one(job *job, weft_chan *chan, int dst, int tag, const uint8_t *buf, uint64_t bytes, uint64_t how, weft_req **req)
{
    const weft_type *type = rig_type(RIG_BYTE);
    (void)job;
    if (how < 3)
        return weft_isend_standard(buf, bytes, type, dst, tag, chan, req);
    return weft_isend(chan, dst, tag, buf, bytes, type, how == 3 ? WEFT_SEND_STANDARD : WEFT_SEND_SYNC, req);
}

static int start_send(job *job, int dst, int chan, int index)
{
    size_t at = ((size_t)(dst * CHANS + chan)) * MAX + (size_t)index;
    const message *one = &job->to[dst * CHANS + chan].messages[index];
    uint8_t *buf = job->payload + at * ROOM;
    rig_fill(buf, name_of(job->rig.rank, chan, index), one->bytes);
    return send_one(job, job->chans[chan], dst, one->tag, buf, one->bytes, draw(job, 5), &job->sends[at]);
}

/* Sends on all streams at once, each in its order; polls now and then. */
static int start_sends(job *job)
{
    int streams = CHANS * job->rig.size, *next = calloc((size_t)streams, sizeof *next), left = 0, rc = 0;
    for (int s = 0; s < streams; s++)
        left += job->to[s].count;
    for (; left && !rc; left--) {
        int s = (int)draw(job, (uint64_t)streams);
        weft_recv_info found;
        bool is_there;
        while (next[s] == job->to[s].count)
            s = (s + 1) % streams;
        rc = start_send(job, s / CHANS, s % CHANS, next[s]++);
        if (!rc && draw(job, 8) == 0)
            rc = weft_probe(job->chans[draw(job, CHANS)], WEFT_ANY, NEVER, false, &is_there, &found);
    }
    free(next);
    return rc;
}

static int finish_sends(job *job)
{
    int all = CHANS * job->rig.size * MAX, rc = 0;
    for (int i = 0, at = (int)draw(job, (uint64_t)all); i < all && !rc; i++, at = (at + 1) % all) {
        weft_req *req = job->sends[at];
        if (!req)
            continue;
        rc = weft_req_wait(req);
        memset(job->payload + (size_t)at * ROOM, 0xee, ROOM); /* completed: the buffer may be reused */
        release(req);
    }
    return rc;
}

/* Number of the message that a receive of (src, tag) must get next; -1: none. */
static int expected(const stream *stream, int tag)
{
    for (int i = 0; i < stream->count; i++)
        if (!stream->messages[i].is_got && (tag == WEFT_ANY_TAG || tag == stream->messages[i].tag))
            return i;
    return -1;
}

static int check(job *job, int chan, const weft_recv_info *found, int tag, const uint8_t *buf)
{
    stream *stream = &job->from[found->source * CHANS + chan];
    int index = expected(stream, tag);
    message *one = &stream->messages[index];
    if (index < 0 || found->tag != one->tag || found->bytes != one->bytes)
        return rig_fail_wrong(&job->rig, "channel %d: %d bytes, tag %d from %d came, not message %d (asked for tag %d)", chan,
                              (int)found->bytes,
                               found->tag, found->source, index, tag);
    if (buf && rig_wrong(buf, name_of(found->source, chan, index), one->bytes) != one->bytes)
        return rig_fail_wrong(&job->rig, "channel %d: message %d from %d was overtaken, or is wrong", chan, index, found->source);
    one->is_got = buf != NULL;
    stream->got += buf != NULL;
    return 0;
}

/* An outstanding message, received by any envelope that it matches. */
static int receive_one(job *job, int s, int index)
{
    int chan = s % CHANS, src = draw(job, 3) ? s / CHANS : WEFT_ANY;
    int tag = draw(job, 3) ? job->from[s].messages[index].tag : WEFT_ANY_TAG, rc = 0;
    uint64_t how = draw(job, 4);
    const weft_type *type = rig_type(RIG_BYTE);
    uint8_t buf[ROOM];
    weft_recv_info found;
    weft_req *req;
    bool is_there = false;
    while (how == 0 && !is_there && !rc) /* Iprobe */
        rc = weft_probe(job->chans[chan], src, tag, false, &is_there, &found);
    if (how == 1)
        rc = weft_probe(job->chans[chan], src, tag, true, &is_there, &found);
    if (!rc && is_there)
        rc = check(job, chan, &found, tag, NULL), src = found.source;
    if (!rc && how == 2) {
        rc = weft_irecv(job->chans[chan], src, tag, buf, ROOM, type, &req);
        while (!rc && !req->is_done)
            weft_worker_poll(job->rig.world->workers[0]);
        found = req->recv_info;
        weft_req_free(req);
    } else if (!rc) {
        rc = weft_recv(job->chans[chan], src, tag, buf, ROOM, type, &found);
    }
    return rc ? rc : check(job, chan, &found, tag, buf);
}

static int receive_all(job *job)
{
    int streams = CHANS * job->rig.size, rc = 0;
    for (;;) {
        int s = (int)draw(job, (uint64_t)streams), tries = 0, index;
        while (tries++ < streams && job->from[s].got == job->from[s].count)
            s = (s + 1) % streams;
        if (tries > streams || rc)
            return rc;
        do
            index = (int)draw(job, (uint64_t)job->from[s].count);
        while (job->from[s].messages[index].is_got);
        rc = receive_one(job, s, index);
    }
}

/* Some receives are posted before any send: they must be kept while their senders wait. */
static int preposted(job *job, uint8_t *buf, weft_req **req, int *src)
{
    *src = (int)draw(job, (uint64_t)job->rig.size);
    *req = NULL;
    if (expected(&job->from[*src * CHANS], 0) < 0)
        return 0;
    return weft_irecv(job->chans[0], *src, 0, buf, ROOM, rig_type(RIG_BYTE), req);
}

static int floods(int rank, void *arg)
{
    job job = {.to = NULL};
    uint8_t buf[ROOM];
    weft_req *early;
    int src, rc = open_job(&job, arg);
    (void)rank;
    rc = rc ? rc : preposted(&job, buf, &early, &src);
    rc = rc ? rc : start_sends(&job);
    if (!rc && early) {
        rc = weft_req_wait(early);
        rc = rc ? rc : check(&job, 0, &early->recv_info, 0, buf);
        weft_req_free(early);
    }
    rc = rc ? rc : receive_all(&job);
    rc = rc ? rc : finish_sends(&job);
    return close_job(&job, rc);
}

/* Sends are cancelled at random times. A cancelled message never arrives, all others do; the last message lists them. */
static int cancel_to(job *job, int dst)
{
    stream *stream = &job->to[dst * CHANS];
    weft_req **sends = &job->sends[(size_t)dst * CHANS * MAX], *last;
    uint8_t gone[MAX] = {0};
    int rc = 0;
    for (int i = 0; i < stream->count && !rc; i++) {
        rc = start_send(job, dst, 0, i);
        if (!rc && draw(job, 3) == 0)
            rc = weft_cancel(sends[draw(job, (uint64_t)i + 1)]);
        if (draw(job, 4) == 0)
            weft_worker_poll(job->rig.world->workers[0]);
    }
    for (int i = 0; i < stream->count && !rc; i++) {
        if (draw(job, 2) == 0)
            rc = weft_cancel(sends[i]), rc = rc ? rc : weft_req_wait(sends[i]);
        seen.late += sends[i]->is_done && !sends[i]->recv_info.cancelled;
    }
    for (int i = 0; i < stream->count && !rc; i++) {
        if (!sends[i]->is_done && sends[i]->has_rndv && sends[i]->rndv->state == WEFT_RNDV_SEND_CANCELLING)
            rc = weft_req_wait(sends[i]);
        gone[i] = sends[i]->is_done && sends[i]->recv_info.cancelled;
    }
    rc = rc ? rc : weft_isend(job->chans[0], dst, NEVER, gone, MAX, rig_type(RIG_BYTE), WEFT_SEND_STANDARD, &last);
    for (int i = 0; i < stream->count && !rc; i++) {
        rc = weft_req_wait(sends[i]);
        if (!rc && gone[i] != sends[i]->recv_info.cancelled)
            rc = rig_fail(&job->rig, "a send was cancelled after it ended");
        seen.cancelled += gone[i];
        release(sends[i]);
    }
    rc = rc ? rc : weft_req_wait(last);
    if (!rc)
        weft_req_free(last);
    return rc;
}

static int receive_rest(job *job, int src)
{
    stream *stream = &job->from[src * CHANS];
    uint8_t gone[MAX], buf[ROOM];
    weft_recv_info found;
    int rc = weft_recv(job->chans[0], src, NEVER, gone, MAX, rig_type(RIG_BYTE), &found);
    for (int i = 0; i < stream->count && !rc; i++) {
        if (gone[i]) {
            stream->messages[i].is_got = true;
            continue;
        }
        rc = weft_recv(job->chans[0], src, stream->messages[i].tag, buf, ROOM, rig_type(RIG_BYTE), &found);
        rc = rc ? rc : check(job, 0, &found, stream->messages[i].tag, buf);
    }
    return rc;
}

/* Rank 0 receives the rest. The others only send, so they wait for rank 0 only, which waits for each in turn. */
static int cancels(int rank, void *arg)
{
    job job = {.to = NULL};
    int rc = open_job(&job, arg);
    if (rank)
        rc = rc ? rc : cancel_to(&job, 0);
    for (int src = 1; src < job.rig.size && rank == 0 && !rc; src++)
        rc = receive_rest(&job, src);
    return close_job(&job, rc);
}

/* Rank 0 waits for a message that does not come while the others flood it: waiting must not return credit to the flood. */
static int blocked(int rank, void *arg)
{
    job job = {.to = NULL};
    int rc = open_job(&job, arg), value = 0;
    weft_req *never[3];
    weft_recv_info found;
    bool is_there;
    if (rank == 0) {
        uint64_t max;
        for (int i = 0; i < 3 && !rc; i++)
            rc = weft_irecv(job.chans[0], i ? WEFT_ANY : job.rig.size - 1, NEVER + i, &value, sizeof value, rig_type(RIG_BYTE), &never[i]);
        for (int i = 0; i < 2000 && !rc; i++)
            rc = weft_probe(job.chans[i % CHANS], WEFT_ANY, NEVER + 5, false, &is_there, &found);
        max = job.rig.world->workers[0]->counters[WEFT_COUNT_UNEXPECTED_MAX];
        if (!rc && max > (uint64_t)job.rig.size * (WINDOW_KIB * 1024 / WEFT_CREDIT_BYTES) * 400)
            rc = rig_fail(&job.rig, "%" PRIu64 " bytes of unexpected messages", max);
        for (int i = 0; i < 3 && !rc; i++) {
            rc = weft_cancel(never[i]);
            weft_req_free(never[i]);
        }
        job.from[0].count = job.from[1].count = 0; /* from this rank */
        rc = rc ? rc : receive_all(&job);
    }
    for (int c = 0; c < CHANS && rank; c++)
        for (int i = 0; i < job.to[c].count && !rc; i++)
            rc = start_send(&job, 0, c, i);
    rc = rc ? rc : finish_sends(&job);
    return close_job(&job, rc);
}

/* Received in order, whatever other receives wait: never more is stored than the window and single overdrafts, RTS included. */
static int bounded(int rank, void *arg)
{
    enum { FLOOD = 100, KEPT_MAX = WINDOW_KIB * 1024 / WEFT_CREDIT_BYTES + 4, KEPT_BYTES = 256 };
    job job = {.to = NULL};
    int rc = open_job(&job, arg), value = 0, size = job.rig.size;
    bool is_sync = ((const run_args *)arg)->seed % 3 == 0;
    const weft_type *type = rig_type(RIG_BYTE);
    weft_req *reqs[FLOOD];
    weft_recv_info found;
    for (int i = 0; i < FLOOD && rank && !rc; i++)
        rc = send_one(&job, job.chans[0], 0, i % 3, job.payload, 8, is_sync ? 4 : draw(&job, 5), &reqs[i]);
    for (int i = 0; i < FLOOD && rank && !rc; i++) {
        rc = weft_req_wait(reqs[i]);
        release(reqs[i]);
    }
    if (rank == 0) {
        uint64_t *max = &job.rig.world->workers[0]->counters[WEFT_COUNT_UNEXPECTED_MAX];
        rc = rc ? rc : weft_irecv(job.chans[0], WEFT_ANY, NEVER, &value, sizeof value, type, &reqs[0]);
        for (int i = 0; i < FLOOD * (size - 1) && !rc; i++) {
            int src = i / FLOOD + 1, tag = draw(&job, 2) ? WEFT_ANY_TAG : i % FLOOD % 3;
            rc = weft_recv(job.chans[0], src, tag, job.payload, ROOM, type, &found);
        }
        if (!rc && *max > (uint64_t)(size - 1) * KEPT_MAX * KEPT_BYTES)
            rc = rig_fail(&job.rig, "%" PRIu64 " bytes of unexpected messages", *max);
        rc = rc ? rc : weft_cancel(reqs[0]);
        weft_req_free(reqs[0]);
    }
    return close_job(&job, rc);
}

/* Messages that are never received end when sender and receiver finalize. */
static int unreceived(int rank, void *arg)
{
    job job = {.to = NULL};
    int rc = open_job(&job, arg);
    for (int dst = 0; dst < job.rig.size && !rc; dst++)
        for (int i = 0; i < MAX && !rc; i++) {
            weft_req *req;
            rc = weft_isend_standard(job.payload, 8, rig_type(RIG_BYTE), dst, rank, job.chans[1], &req);
            if (!rc && !req->is_done)
                rc = weft_cancel(req); /* a copied one is complete, one deferred by the iface is not yet */
            rc = rc ? rc : weft_req_wait(req);
            if (!rc && req != &job.rig.world->workers[0]->done_req)
                release(req);
        }
    return close_job(&job, rc);
}

/* A message whose communicator was freed at its receiver: the sender's error has its own text, not that of an earlier error. */
static int freed_comm(int rank, void *arg)
{
    job job = {.to = NULL};
    int rc = open_job(&job, arg), code;
    weft_req *req;
    if (rank == 0 && !rc && job.rig.size > 1) {
        rc = weft_isend(job.chans[1], 1, 0, job.payload, 8, rig_type(RIG_BYTE), WEFT_SEND_SYNC, &req);
        weft_fail(WEFT_E_COMM, "what was wrong long ago");
        code = rc ? rc : weft_req_wait(req);
        if (!rc && (code != WEFT_E_COMM || !strstr(weft_fail_text(code), "rank 1")))
            rc = rig_fail(&job.rig, "code %d with the text \"%s\"", code, weft_fail_text(code));
        weft_req_free(req);
    } else if (rank == 1) {
        bool is_there = false;
        weft_recv_info found;
        while (!is_there && !rc)
            rc = weft_probe(job.chans[1], 0, 0, true, &is_there, &found);
        weft_chan_close(job.chans[1]);
        rc = rc ? rc : weft_chan_open(job.rig.world->workers[0], NULL, 1, 4, &job.chans[1]);
    }
    return close_job(&job, rc);
}

static const struct {
    const char *name;
    int (*what)(int rank, void *arg);
} programs[] = {{"floods", floods}, {"cancels", cancels}, {"blocked", blocked}, {"bounded", bounded}, {"unreceived", unreceived},
               {"freed_comm", freed_comm}};
enum { PROGRAMS = sizeof programs / sizeof programs[0] };

static int find(const char *name)
{
    for (int i = 0; i < PROGRAMS; i++)
        if (strncmp(name, programs[i].name, strlen(programs[i].name)) == 0)
            return i;
    return -1;
}

static int run(int which, const char *profile, uint32_t ranks, uint64_t seed, weft_sim_report *report)
{
    static const int ways[] = {WEFT_RNDV_SCHEME_COPY, WEFT_RNDV_SCHEME_GET, WEFT_RNDV_SCHEME_SPLIT, WEFT_RNDV_SCHEME_PUT};
    weft_sim_config config = {.ranks = ranks, .seed = seed, .profile = weft_sim_profile_find(profile), .report = report};
    run_args args = {.seed = seed};
    weft_knobs_load(false);
    weft_knob.rndv_scheme = ways[seed % 4];
    weft_knob.regcache_monitor = WEFT_REGCACHE_MONITOR_NONE;
    weft_knob.credit_kib = WINDOW_KIB;
    weft_knob.checksum = seed % 5 == 0;
    return weft_sim_run(&config, programs[which].what, &args);
}

/* Test names are "program profile". */
static void run_named(void)
{
    static const uint32_t sizes[] = {2, 3, 4, 1};
    const char *name = CU_get_current_test()->pName, *profile = strchr(name, ' ') + 1;
    uint64_t seed;
    seeds range;
    memset(&seen, 0, sizeof seen);
    seeds_begin(&range);
    while ((seed = seeds_next(&range))) {
        weft_sim_report report;
        uint32_t ranks = sizes[seed % 4];
        int rc = run(find(name), profile, ranks, seed, &report);
        CU_ASSERT(rc == 0);
        CU_ASSERT(report.counts[WEFT_SIM_LOST_WAKEUPS] == 0);
        if (rc || report.counts[WEFT_SIM_LOST_WAKEUPS])
            fprintf(stderr, "    %s: code %d, %s: replay by: stalls %s %u %" PRIu64 "\n", name, rc, report.text, name, ranks, seed);
    }
    printf("\n    %s, seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " stalled, %" PRIu64 " overdrawn, %" PRIu64 " asks, %" PRIu64
           " cancelled, %" PRIu64 " bytes unexpected at most", name, range.first, range.next - 1, seen.stalled, seen.overdrawn, seen.asks,
           seen.cancelled, seen.max);
    fflush(stdout);
    CU_ASSERT(seen.stalled > 0 || range.next - range.first < 8 || programs[find(name)].what == freed_comm);
}

static int replay(char **argv)
{
    weft_sim_report report = {.rc = 0};
    if (find(argv[0]) < 0 || !weft_sim_profile_find(argv[1]))
        return 2;
    int rc = run(find(argv[0]), argv[1], (uint32_t)atoi(argv[2]), strtoull(argv[3], NULL, 10), &report);
    printf("%s: %d; %s\n", argv[0], rc, report.text);
    return rc != 0;
}

int main(int argc, char **argv)
{
    static const char *const profiles[] = {"calm", "slow", "storm", "narrow", "wild", "holding", "lopsided"};
    enum { PROFILES = sizeof profiles / sizeof profiles[0] };
    static char names[PROGRAMS * PROFILES][40];
    const char *only = argc == 2 ? argv[1] : NULL;
    if (argc == 5)
        return replay(argv + 1);
    if (only && strcmp(only, "--help") == 0) {
        printf("usage: %s [TEXT] | PROGRAM PROFILE RANKS SEED (replays)\n" SEEDS_HELP, argv[0], argv[0]);
        return 0;
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("stalls", NULL, NULL);
    for (int i = 0; i < PROGRAMS * PROFILES; i++) {
        snprintf(names[i], sizeof names[i], "%s %s", programs[i / PROFILES].name, profiles[i % PROFILES]);
        if (!only || strstr(names[i], only))
            CU_add_test(suite, names[i], run_named);
    }
    seeds_share(suite->uiNumberOfTests);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
