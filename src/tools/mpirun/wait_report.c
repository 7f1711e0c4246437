/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wait_report: see wait_report.h. A record with the same count in two samples belongs to a thread that neither began nor ended a call
 * between them.
 */
#include "tools/mpirun/wait_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "mem/segment.h"
#include "tools/mpirun/options.h"
#include "tools/mpirun/report.h"

#define SAMPLES 16 /* samples in the job's time limit; at least one a second */
#define SAMPLE_MIN_NS 50000000u
#define SAMPLE_MAX_NS 1000000000u
#define ACTIVE_NS 20000000
#define LINES_MAX 200
#define RANKS_BYTES 400           /* size of a list of ranks */

typedef struct thread_seen {
    uint64_t count, since_ns; /* since_ns: first sample with this count */
    uint32_t thread;
} thread_seen;

typedef struct rank_seen {
    thread_seen *threads;
    uint32_t count;
} rank_seen;

struct wait_report {
    rank_seen *ranks; /* [node->count] */
    uint32_t count;
    uint64_t begin_ns, next_ns, every_ns;
    weft_call_record *records; /* [WEFT_CALL_RECORDS]: copy of one rank's records */
};

/* One line of the report: what a set of ranks does. */
typedef struct line {
    char thread[40], what[400];
    uint64_t since_min_ns, since_max_ns; /* ages; both 0: not printed */
    uint32_t rank, last; /* first rank; last rank added */
    char ranks[RANKS_BYTES];
    uint32_t rank_count;
} line;

typedef struct lines {
    line *at;
    uint32_t count, capacity;
} lines;

static wait_report *wait_report_open(const node *node)
{
    wait_report *self = calloc(1, sizeof(*self));

    if (!self)
        return NULL;
    self->count = node->count;
    self->ranks = calloc(node->count + 1, sizeof(*self->ranks));
    self->records = aligned_alloc(WEFT_LINE, WEFT_CALL_BYTES);
    self->begin_ns = weft_clock_ns();
    self->every_ns = (uint64_t)(node->opts->timeout_s * 1e9 / SAMPLES);
    self->every_ns = self->every_ns < SAMPLE_MIN_NS ? SAMPLE_MIN_NS : self->every_ns > SAMPLE_MAX_NS ? SAMPLE_MAX_NS : self->every_ns;
    if (self->ranks && self->records)
        return self;
    wait_report_close(self);
    return NULL;
}

void wait_report_close(wait_report *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; self->ranks && i < self->count; i++)
        free(self->ranks[i].threads);
    free(self->ranks);
    free(self->records);
    free(self);
}

/* Reads a rank's records with pread: a mapping would fill the file's holes. Returns the number of records. */
static uint32_t records_read(wait_report *self, const node *node, uint32_t i)
{
    const weft_segment *segment = &node->segment;
    uint32_t written = atomic_load_explicit(&weft_segment_rank(segment, i)->call_records, memory_order_acquire);
    uint32_t count = written < WEFT_CALL_RECORDS ? written : WEFT_CALL_RECORDS; /* by the rank, which may be damaged */
    size_t bytes = count * sizeof(*self->records);
    off_t at = (off_t)(segment->hdr->calls + (uint64_t)i * WEFT_CALL_BYTES);

    return bytes && pread(segment->fd, self->records, bytes, at) == (ssize_t)bytes ? count : 0;
}

/* Samples a rank: reads its records and updates those whose count has changed. Returns the number of records. */
static uint32_t rank_sample(wait_report *self, const node *node, uint32_t i, uint64_t now)
{
    uint32_t count = records_read(self, node, i);
    rank_seen *seen = &self->ranks[i];

    if (count > seen->count) {
        thread_seen *more = realloc(seen->threads, count * sizeof(*more));
        if (!more)
            return 0;
        memset(more + seen->count, 0, (count - seen->count) * sizeof(*more));
        seen->threads = more;
        seen->count = count;
    }
    for (uint32_t t = 0; t < count; t++) {
        thread_seen *one = &seen->threads[t];
        const weft_call_record *record = &self->records[t];
        if (one->since_ns && one->count == record->count && one->thread == record->thread)
            continue;
        *one = (thread_seen){.count = record->count, .since_ns = now, .thread = record->thread};
    }
    return count;
}

uint64_t wait_report_sample(wait_report **self, const node *node)
{
    uint64_t now = weft_clock_ns();

    if (!node->count || !(node->opts->timeout_s > 0) || (!*self && !(*self = wait_report_open(node))))
        return 0;
    if (now < (*self)->next_ns)
        return (*self)->next_ns;
    for (uint32_t i = 0; i < node->started; i++)
        if (!node->ranks[i].is_gone)
            rank_sample(*self, node, i, now);
    return (*self)->next_ns = now + (*self)->every_ns;
}

/* Returns the kernel's state of a thread that is not in MPI. */
static const char *thread_state(uint32_t thread)
{
    char path[40], text[300] = "", *end;

    snprintf(path, sizeof(path), "/proc/%u/stat", thread);
    FILE *file = fopen(path, "re");
    if (file && !fgets(text, sizeof(text), file))
        *text = '\0';
    if (file)
        fclose(file);
    end = strrchr(text, ')');
    switch (end ? end[2] : 0) {
    case 'R':
        return " (running)";
    case 'S':
    case 'D':
        return " (sleeping)";
    case 'T':
    case 't':
        return " (stopped)";
    default:
        return "";
    }
}

static const char *call_name(const weft_call_record *record)
{
    const char *name = record->call < weft_call_names_count ? weft_call_names[record->call] : NULL;

    return name ? name : "MPI";
}

static bool is_inside(const weft_call_record *record)
{
    return record->count & ((1u << WEFT_CALL_DEPTH_BITS) - 1);
}

/* Writes ", waits for a message from rank 3, tag 42". */
static void wait_text(const weft_page_status *status, char *text, size_t capacity)
{
    static const char *const whys[] = {
        [WEFT_WAIT_REASON_SEND] = "waits to send to", [WEFT_WAIT_REASON_RECV] = "waits for a message from",
        [WEFT_WAIT_REASON_PROBE] = "waits for a message from",
        [WEFT_WAIT_REASON_REQUESTS] = "waits for requests", [WEFT_WAIT_REASON_COLLECTIVE] = "waits for other ranks",
        [WEFT_WAIT_REASON_FINALIZE] = "waits for other ranks",
        [WEFT_WAIT_REASON_LAUNCH] = "waits for other ranks to start",
        [WEFT_WAIT_REASON_REGISTRATION] = "waits until the network has registered memory",
        [WEFT_WAIT_REASON_WINDOW] = "waits in the synchronization of a window for",
        [WEFT_WAIT_REASON_NOTIFY] = "waits for notifications of window",
    };
    uint32_t why = atomic_load_explicit(&status->why, memory_order_relaxed);
    int32_t peer = atomic_load_explicit(&status->peer, memory_order_relaxed),
            tag = atomic_load_explicit(&status->tag, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&status->bytes, memory_order_relaxed);
    char peer_text[40] = "", what[80] = "";

    if (why == WEFT_WAIT_REASON_NONE || why >= weft_count(whys))
        return;
    if (why == WEFT_WAIT_REASON_SEND || why == WEFT_WAIT_REASON_RECV || why == WEFT_WAIT_REASON_PROBE) {
        snprintf(peer_text, sizeof(peer_text), peer >= 0 ? " rank %d" : " any rank", peer);
        snprintf(what, sizeof(what), tag == WEFT_STATUS_ANY_TAG ? ", any tag" : ", tag %d", tag);
    } else if (why == WEFT_WAIT_REASON_WINDOW) {
        snprintf(peer_text, sizeof(peer_text), peer >= 0 ? " rank %d" : " other ranks", peer);
    } else if (why == WEFT_WAIT_REASON_NOTIFY) {
        snprintf(peer_text, sizeof(peer_text), " %d", peer);
        if (tag < 0)
            snprintf(what, sizeof(what), ", by one of %u counters", 0u - (uint32_t)tag);
        else
            snprintf(what, sizeof(what), ", counter %d: %u of %u have come", tag, (uint32_t)(bytes >> 32), (uint32_t)bytes);
    } else if (why == WEFT_WAIT_REASON_REQUESTS && peer >= 0) {
        snprintf(peer_text, sizeof(peer_text), " with rank %d", peer);
    }
    snprintf(text, capacity, ", %s%s%s", whys[why], peer_text, what);
}

/* Writes ", wants the lock that thread 1 holds in MPI_Allreduce". */
static void lock_text(const wait_report *self, uint32_t count, char *text, size_t capacity)
{
    uint32_t t = 0;

    while (t < count && (self->records[t].lock != WEFT_CALL_HOLDS || !self->records[t].thread))
        t++;
    if (t == count)
        snprintf(text, capacity, ", waits for the library's lock");
    else
        snprintf(text, capacity, ", waits for the lock that thread %u holds%s%s", t, is_inside(&self->records[t]) ? " in " : "",
                 is_inside(&self->records[t]) ? call_name(&self->records[t]) : "");
}

/* Describes thread t of the node's rank i; its age is kept apart. A thread whose record has just changed is "in and out of MPI". */
static void thread_text(const wait_report *self, const weft_page_status *status, uint32_t i, uint32_t t, uint32_t count, uint64_t now,
                        line *to)
{
    const weft_call_record *record = &self->records[t];
    char more[120] = "";

    if (self->ranks[i].threads[t].since_ns == now &&
        !(is_inside(record) && atomic_load_explicit(&status->since_ns, memory_order_relaxed))) {
        snprintf(to->what, sizeof(to->what), "entering and leaving MPI, last call %s", call_name(record));
        return;
    }
    if (!is_inside(record)) {
        snprintf(to->what, sizeof(to->what), "not in MPI%%s%s, last call %s", thread_state(record->thread),
                 record->call ? call_name(record) : "MPI_Init");
        return;
    }
    if (atomic_load_explicit(&status->since_ns, memory_order_acquire))
        wait_text(status, more, sizeof(more));
    else if (record->lock == WEFT_CALL_WANTS)
        lock_text(self, count, more, sizeof(more));
    snprintf(to->what, sizeof(to->what), "in %s%%s%s", call_name(record), more);
}

/* Appends what the rank's network waits for to the line of a thread that waits: "; the connection to rank 3 waits for a queue pair". */
static void iface_text(const weft_rank_page *page, line *to)
{
    char text[WEFT_PAGE_WAIT_BYTES]; /* written by the rank, which may be damaged */
    size_t used = strlen(to->what);

    if (!atomic_load_explicit(&page->iface_waits, memory_order_acquire))
        return;
    memcpy(text, page->iface_wait, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    for (char *at = text; *at; at++)
        *at = (unsigned char)*at < ' ' || *at == '%' ? '?' : *at;
    snprintf(to->what + used, sizeof(to->what) - used, "; %s", text);
}

/* Adds a rank to an equal line, or appends a line. */
static void line_add(lines *all, const line *one)
{
    for (uint32_t i = 0; i < all->count && !*one->thread; i++) {
        line *to = &all->at[i];
        size_t used = strlen(to->ranks);
        if (*to->thread || strcmp(to->what, one->what) || used + 24 > sizeof(to->ranks))
            continue;
        if (to->last + 1 == one->rank) {
            char *dash = strrchr(to->ranks, '-'), *comma = strrchr(to->ranks, ',');
            if (dash && (!comma || dash > comma))
                *dash = '\0';
            used = strlen(to->ranks);
            snprintf(to->ranks + used, sizeof(to->ranks) - used, "-%u", one->rank);
        } else {
            snprintf(to->ranks + used, sizeof(to->ranks) - used, ", %u", one->rank);
        }
        to->last = one->rank;
        to->rank_count++;
        to->since_min_ns = one->since_min_ns < to->since_min_ns ? one->since_min_ns : to->since_min_ns;
        to->since_max_ns = one->since_max_ns > to->since_max_ns ? one->since_max_ns : to->since_max_ns;
        return;
    }
    if (all->count == all->capacity) {
        uint32_t capacity = all->capacity ? 2 * all->capacity : 16;
        line *more = realloc(all->at, capacity * sizeof(*more));
        if (!more)
            return;
        all->at = more;
        all->capacity = capacity;
    }
    line *to = &all->at[all->count++];
    *to = *one;
    snprintf(to->ranks, sizeof(to->ranks), "%u", one->rank);
    to->last = one->rank;
    to->rank_count = 1;
}

static void rank_add(wait_report *self, const node *node, uint32_t i, uint64_t now, lines *all)
{
    const weft_rank_page *page = weft_segment_rank(&node->segment, i);
    uint32_t state = atomic_load_explicit(&page->state, memory_order_relaxed), live = 0;
    line one = {.rank = node->ranks[i].rank};
    uint32_t count = state == WEFT_RANK_INIT ? rank_sample(self, node, i, now) : 0;

    for (uint32_t t = 0; t < count; t++)
        live += self->records[t].thread != 0;
    if (!live) {
        snprintf(one.what, sizeof(one.what), "%s",
                 state == WEFT_RANK_NONE ? "not in MPI, has not called MPI_Init" : state == WEFT_RANK_INIT ?
                 "in MPI_Init, or makes no more MPI calls" : state == WEFT_RANK_REST ?
                 "at rest: has called MPI_Finalize, has finalized its last session" : "not in MPI, has called MPI_Finalize");
        line_add(all, &one);
    }
    for (uint32_t t = 0; t < count; t++) {
        const weft_call_record *record = &self->records[t];
        const weft_page_status *status = atomic_load_explicit(&page->call_is_threaded, memory_order_relaxed)
                                             ? &record->wait : &page->status;
        uint64_t begin = self->ranks[i].threads[t].since_ns, waits = atomic_load_explicit(&status->since_ns, memory_order_acquire);
        if (!record->thread)
            continue;
        if (live > 1)
            snprintf(one.thread, sizeof(one.thread), ", thread %u (%u)", t, record->thread);
        begin = waits && is_inside(record) && waits < now ? waits : begin;
        one.since_min_ns = one.since_max_ns = now > begin ? now - begin : 1;
        thread_text(self, status, i, t, count, now, &one);
        if (waits && is_inside(record))
            iface_text(page, &one);
        line_add(all, &one);
    }
}

static void line_print(const line *one)
{
    char since[64] = "", text[600];

    if (one->since_max_ns - one->since_min_ns > 100000000u)
        snprintf(since, sizeof(since), " since %.1f to %.1f s", (double)one->since_min_ns * 1e-9, (double)one->since_max_ns * 1e-9);
    else if (one->since_max_ns)
        snprintf(since, sizeof(since), " since %.1f s", (double)one->since_max_ns * 1e-9);
    const char *hole = strstr(one->what, "%s");
    if (hole)
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(hole - one->what), one->what, since, hole + 2);
    else
        snprintf(text, sizeof(text), "%s", one->what);
    report(0, "  rank%s %s%s: %s", one->rank_count > 1 ? "s" : "", one->ranks, one->thread, text);
}

void wait_report_print(wait_report **self, const node *node)
{
    lines all = {0};

    if (!node->count || (!*self && !(*self = wait_report_open(node))))
        return;
    for (uint32_t i = 0; i < node->started; i++)
        if (!node->ranks[i].is_gone)
            rank_sample(*self, node, i, weft_clock_ns());
    nanosleep(&(struct timespec){.tv_nsec = ACTIVE_NS}, NULL);
    uint64_t now = weft_clock_ns();
    for (uint32_t i = 0; i < node->started; i++)
        if (node->ranks[i].is_gone)
            line_add(&all, &(line){.rank = node->ranks[i].rank, .what = "has ended"});
        else
            rank_add(*self, node, i, now, &all);
    for (uint32_t i = 0; i < all.count && i < LINES_MAX; i++)
        line_print(&all.at[i]);
    if (all.count > LINES_MAX)
        report(0, "  and %u more lines", all.count - LINES_MAX);
    free(all.at);
}
