/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rndv_select: selection by measurement. See rndv_select.h.
 */
#include "p2p/rndv_select.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/kernel_copy.h"
#include "base/knob.h"
#include "core/world.h"

#define EAGER_DEFAULT 16384
#define TRIALS 4         /* consecutive samples per protocol at first use; the best counts, since the first runs on cold caches */
#define HOPELESS 2.0f    /* a protocol that is slower by this factor gets TRIALS / 2 samples */
#define MAX_TRIES 64     /* transfers per trial, at most */
#define MAX_AT_ONCE 256  /* the same while its transfers or sends are in flight: a window should use one protocol */
#define SAMPLE_MIN 8          /* transfers per sample, at least, while others are in flight */
#define SAMPLE_FACTOR 4    /* the same, times the number in flight: progress of unfinished transfers is not counted */
#define SURE_NS 1000000  /* a longer sample counts twice, or as a whole trial with SAMPLE_MIN transfers: cold caches matter little */
#define AGAIN_SHARE 64   /* measuring a protocol again may cost 1/AGAIN_SHARE of the time spent since the last such measurement */
#define AGAIN_MIN 64     /* samples between two such measurements, at least */
#define COLD 2           /* samples after a change of protocol that are ignored outside of trials */
#define BETTER 0.95f     /* another protocol replaces the current one if it takes at most this share of its time */

enum { NODE, REMOTE, KINDS }; /* kinds of peers: on this node, on another */

static const char *const names[] = {"copy", "get", "split", "put"};

const char *weft_rndv_proto_name(enum weft_rndv_proto proto) { return names[proto]; }

static uint32_t class_of(uint64_t bytes)
{
    int top = bytes >> 12 ? 63 - __builtin_clzll(bytes >> 12) : 0;
    return top < WEFT_RNDV_SIZE_CLASSES ? (uint32_t)top : WEFT_RNDV_SIZE_CLASSES - 1;
}

uint32_t weft_rndv_eager_max(const weft_peer *peer)
{
    const weft_caps *caps = &peer->ep->iface->caps;
    uint64_t max = caps->frame_max, want = weft_knob.eager_max ? weft_knob.eager_max : caps->eager ? caps->eager : EAGER_DEFAULT;
    return (uint32_t)(want < max ? want : max);
}

static bool is_offered(const weft_peer *peer, enum weft_rndv_proto proto, const weft_rndv_caps *rndv_caps)
{
    const weft_caps *caps = &peer->ep->iface->caps;
    bool is_keyed = caps->key_bytes || caps->mr_local;
    switch (proto) {
    case WEFT_RNDV_GET:
        return caps->get && (!is_keyed || rndv_caps->has_key);
    case WEFT_RNDV_SPLIT:
        return caps->get && caps->put && !is_keyed;
    case WEFT_RNDV_PUT: /* without keys SPLIT is never slower */
        return caps->put && is_keyed;
    default:
        return true;
    }
}

/* The protocol that the knobs dictate; WEFT_RNDV_LAST: none. */
static enum weft_rndv_proto forced(const weft_peer *peer, const weft_rndv_caps *rndv_caps)
{
    static const enum weft_rndv_proto by_knob[] = {WEFT_RNDV_LAST, WEFT_RNDV_COPY, WEFT_RNDV_GET, WEFT_RNDV_SPLIT, WEFT_RNDV_PUT};
    enum weft_rndv_proto proto = by_knob[weft_knob.rndv_scheme];
    if (rndv_caps->is_cold && weft_knob.reg_mode == WEFT_REG_MODE_ASYNC)
        return WEFT_RNDV_COPY;
    if (proto != WEFT_RNDV_LAST)
        return is_offered(peer, proto, rndv_caps) ? proto
             : is_offered(peer, WEFT_RNDV_PUT, rndv_caps) && proto == WEFT_RNDV_GET ? WEFT_RNDV_PUT : WEFT_RNDV_COPY;
    if (rndv_caps->is_cold && (weft_knob.reg_mode == WEFT_REG_MODE_PIPELINE || weft_knob.reg_mode == WEFT_REG_MODE_SYNC))
        return is_offered(peer, WEFT_RNDV_GET, rndv_caps) ? WEFT_RNDV_GET
             : is_offered(peer, WEFT_RNDV_PUT, rndv_caps) ? WEFT_RNDV_PUT : WEFT_RNDV_COPY;
    return WEFT_RNDV_LAST;
}

bool weft_rndv_is_shared(const weft_iface *iface) { return iface->caps.get && !iface->caps.key_bytes && !iface->caps.mr_local; }

bool weft_rndv_allows(const weft_peer *peer, enum weft_rndv_proto proto, const weft_rndv_caps *rndv_caps)
{
    return proto < WEFT_RNDV_LAST && rndv_caps->can_move && !peer->no_rma && is_offered(peer, proto, rndv_caps) &&
           forced(peer, rndv_caps) == WEFT_RNDV_LAST;
}

/* Fastest protocol offered for this peer. The current one stays unless another is better by BETTER. */
static enum weft_rndv_proto fastest(const weft_rndv_stats_row *row, const weft_peer *peer, const weft_rndv_caps *rndv_caps)
{
    const weft_rndv_record *record = row->record;
    enum weft_rndv_proto best = WEFT_RNDV_COPY;
    for (enum weft_rndv_proto proto = WEFT_RNDV_GET; proto < WEFT_RNDV_LAST; proto++)
        if (is_offered(peer, proto, rndv_caps) && record[proto].ns_per_byte > 0 &&
            (record[best].ns_per_byte == 0 || record[proto].ns_per_byte < record[best].ns_per_byte))
            best = proto;
    if (is_offered(peer, row->used, rndv_caps) && record[row->used].ns_per_byte > 0 &&
        record[best].ns_per_byte > BETTER * record[row->used].ns_per_byte)
        best = row->used;
    return best;
}

/* Does the protocol need more samples? sends: sends in flight, whose hints are tries too. */
static bool is_on_trial(const weft_rndv_record *record, const weft_rndv_record *best, uint32_t sends)
{
    uint32_t wanted = best->ns_per_byte > 0 && record->ns_per_byte > HOPELESS * best->ns_per_byte ? TRIALS / 2 : TRIALS;
    return record->samples < wanted && record->tries < (record->in_flight || sends ? MAX_AT_ONCE : MAX_TRIES);
}

/* The protocol to try now; a trial that has begun continues. WEFT_RNDV_LAST: none. */
static enum weft_rndv_proto on_trial(const weft_rndv_stats_row *row, const weft_peer *peer, const weft_rndv_caps *rndv_caps,
                                     enum weft_rndv_proto best, uint32_t sends)
{
    enum weft_rndv_proto trial = WEFT_RNDV_LAST;
    for (enum weft_rndv_proto proto = WEFT_RNDV_COPY; proto < WEFT_RNDV_LAST; proto++)
        if (is_offered(peer, proto, rndv_caps) && is_on_trial(&row->record[proto], &row->record[best], sends) &&
            (trial == WEFT_RNDV_LAST || row->record[proto].tries > row->record[trial].tries))
            trial = proto;
    return trial;
}

/* Restarts the trial of one protocol, round robin, if its extra cost over the best one is small against the time spent since the last
 * restart: slow protocols are measured rarely, fast ones often. */
static void try_again(weft_rndv_stats_row *row, enum weft_rndv_proto best, uint32_t in_flight, uint64_t bytes)
{
    weft_rndv_record *record = &row->record[row->next];
    uint64_t transfers = in_flight ? (uint64_t)SAMPLE_FACTOR * (in_flight + SAMPLE_MIN) : TRIALS;
    float more = record->ns_per_byte - row->record[best].ns_per_byte;
    if (row->next == best || record->ns_per_byte == 0) {
        row->next = (uint8_t)((row->next + 1) % WEFT_RNDV_LAST);
    } else if ((float)row->spent_ns >= AGAIN_SHARE * more * (float)(bytes * transfers)) {
        record->tries = 0;
        record->samples = 0;
        row->next = (uint8_t)((row->next + 1) % WEFT_RNDV_LAST);
        row->spent_ns = 0;
        row->samples = 0;
    }
}

static weft_rndv_stats_row *row_of(weft_rndv_stats *stats, uint64_t bytes, bool is_cold, bool is_both_ways)
{
    return &stats->rows[is_cold][is_both_ways][class_of(bytes)];
}

/* Where ranks share CPUs the least CPU time counts: one copy by the kernel, unless that takes longer than two by the ranks. Elapsed times
 * do not show it: they contain other ranks' turns, and a collective makes all ranks equally fast. */
static bool saves_cpu_time(const weft_peer *peer)
{
    const weft_world *world = peer->worker->world;
    return world->is_oversubscribed && weft_rndv_is_shared(peer->ep->iface) && weft_kernel_copy_ns() <= WEFT_KERNEL_COPY_MAX_NS;
}

enum weft_rndv_proto weft_rndv_select(weft_rndv_stats *stats, const weft_peer *peer, uint64_t bytes, const weft_rndv_caps *rndv_caps,
                                      bool is_both_ways)
{
    weft_rndv_stats_row *row = row_of(stats, bytes, rndv_caps->is_cold, is_both_ways);
    enum weft_rndv_proto proto, best, trial;
    if (!rndv_caps->can_move || peer->no_rma)
        return WEFT_RNDV_COPY;
    proto = forced(peer, rndv_caps);
    if (proto != WEFT_RNDV_LAST)
        return proto;
    if (saves_cpu_time(peer))
        return WEFT_RNDV_GET;
    best = fastest(row, peer, rndv_caps);
    if (row->samples >= AGAIN_MIN)
        try_again(row, best, row->record[best].in_flight, bytes);
    trial = on_trial(row, peer, rndv_caps, best, stats->sends);
    if (trial == WEFT_RNDV_LAST) {
        row->used = (uint8_t)best;
        return best;
    }
    row->record[trial].tries++;
    return trial;
}

weft_rndv_stats *weft_rndv_stats_open(const weft_worker *worker)
{
    return calloc((size_t)worker->iface_count * KINDS, sizeof(weft_rndv_stats));
}

weft_rndv_stats *weft_rndv_stats_of(const weft_worker *worker, const weft_peer *peer)
{
    const weft_boot *boot = worker->world->boot;
    bool is_remote = peer->proc_id.job != boot->job || (boot->node_of && boot->node_of[peer->proc_id.rank] != boot->node);
    uint32_t port = 0;
    while (port + 1 < worker->iface_count && worker->ifaces[port] != peer->ep->iface)
        port++;
    return &worker->rndv_stats[port * KINDS + (is_remote ? REMOTE : NODE)];
}

/* -- measurement -- */

/* Updates ns_per_byte. In a trial the best sample counts, older values are discarded. Later it falls halfway to a faster sample and
 * rises by a quarter of the difference at most, since an interrupt may have lengthened the sample. */
static void update(weft_rndv_record *record, uint64_t bytes, uint64_t took_ns)
{
    float seen = (float)(took_ns ? took_ns : 1) / (float)bytes, *known = &record->ns_per_byte;
    if (*known == 0 || 2 * seen < *known || record->samples == 0)
        *known = seen;
    else if (record->samples < TRIALS)
        *known = seen < *known ? seen : *known;
    else if (seen < *known)
        *known = (*known + seen) / 2;
    else
        *known += (seen - *known < *known ? seen - *known : *known) / 4;
}

/* Records a completed sample of one or more transfers. */
static void record_sample(weft_rndv_sample *sample, uint64_t took_ns)
{
    weft_rndv_stats_row *row = sample->row;
    weft_rndv_record *record = sample->of;
    row->streak = row->latest == record ? row->streak + (row->streak < COLD) : 0;
    row->latest = record;
    if (record->samples < TRIALS || row->streak == COLD)
        update(record, sample->bytes, took_ns);
    record->samples += took_ns < SURE_NS ? 1 : sample->ended < SAMPLE_MIN ? 2 : TRIALS;
    row->samples++;
    row->spent_ns += took_ns;
}

/* May a sample begin? A sample of one direction is disturbed by sends in flight. */
static bool is_undisturbed(const weft_rndv_stats *stats, bool is_both_ways) { return is_both_ways || !stats->sends; }

void weft_rndv_xfer_begin(weft_rndv_stats *stats, const weft_rndv_xfer *xfer, uint64_t now)
{
    weft_rndv_stats_row *row = row_of(stats, xfer->bytes, xfer->is_cold, xfer->is_both_ways);
    weft_rndv_record *record = &row->record[xfer->proto];
    weft_rndv_sample *sample = &stats->sample;
    if (sample->of != record) /* since is 0: measuring waits until transfers of other records have ended */
        *sample = (weft_rndv_sample){.row = row, .of = record, .is_both_ways = xfer->is_both_ways};
    if (!sample->since && record->in_flight == stats->in_flight && is_undisturbed(stats, xfer->is_both_ways))
        sample->since = now, sample->stale = 0;
    stats->in_flight++;
    record->in_flight++;
}

/* Adds a transfer to the sample; ends a sample that is long enough and begins the next. */
static void count(weft_rndv_stats *stats, uint64_t bytes, uint64_t now)
{
    weft_rndv_sample *sample = &stats->sample;
    uint32_t in_flight = sample->of->in_flight + stats->sends;
    sample->bytes += bytes;
    sample->ended += bytes > 0;
    if (in_flight && (sample->ended < SAMPLE_MIN || sample->ended < SAMPLE_FACTOR * in_flight))
        return;
    if (sample->bytes)
        record_sample(sample, now - sample->since);
    sample->since = in_flight ? now : 0;
    sample->bytes = 0;
    sample->ended = 0;
    sample->stale = stats->sends;
}

/* Transfers begun before the sample do not count: they may have been nearly done. The own time of a transfer, lengthened by overlap,
 * is used only while there is no sample. */
void weft_rndv_xfer_end(weft_rndv_stats *stats, const weft_rndv_xfer *xfer, bool has_failed, uint64_t began, uint64_t now)
{
    weft_rndv_record *record = &row_of(stats, xfer->bytes, xfer->is_cold, xfer->is_both_ways)->record[xfer->proto];
    weft_rndv_sample *sample = &stats->sample;
    stats->in_flight--;
    record->in_flight--;
    if (!has_failed && xfer->bytes && record->ns_per_byte == 0)
        update(record, xfer->bytes, now - began);
    if (sample->since && sample->of == record)
        count(stats, has_failed || began < sample->since ? 0 : xfer->bytes, now);
    else if (stats->in_flight && sample->of->in_flight == stats->in_flight && is_undisturbed(stats, sample->is_both_ways))
        *sample = (weft_rndv_sample){.row = sample->row, .of = sample->of, .is_both_ways = sample->is_both_ways, .since = now,
                                     .stale = stats->sends};
}

void weft_rndv_send_begin(weft_rndv_stats *stats)
{
    stats->sends++;
    if (!stats->sample.is_both_ways)
        stats->sample.since = 0;
}

void weft_rndv_send_end(weft_rndv_stats *stats, uint64_t bytes, uint64_t now)
{
    weft_rndv_sample *sample = &stats->sample;
    bool is_stale = sample->stale > 0;
    stats->sends--;
    sample->stale -= is_stale;
    if (sample->since && sample->is_both_ways)
        count(stats, is_stale ? 0 : bytes, now);
}

/* -- for weft-info -- */

static size_t show_row(const weft_rndv_stats_row *row, const weft_peer *peer, uint32_t class, const char *sort, char *text, size_t capacity)
{
    static const weft_rndv_caps all = {.can_move = true, .has_key = true};
    const weft_rndv_record *record = row->record;
    enum weft_rndv_proto best = fastest(row, peer, &all);
    int n;
    if (record[best].ns_per_byte == 0)
        return 0;
    n = snprintf(text, capacity, "%12llu  %-8s%s", (unsigned long long)(8192ull << class) - 1, names[best], sort);
    for (enum weft_rndv_proto proto = WEFT_RNDV_COPY; proto < WEFT_RNDV_LAST && n > 0 && (size_t)n < capacity; proto++)
        if (record[proto].ns_per_byte > 0)
            n += snprintf(text + n, capacity - (size_t)n, " %s %.1f GB/s", names[proto], 1.0 / (double)record[proto].ns_per_byte);
    if (n > 0 && (size_t)n + 1 < capacity) {
        text[n++] = '\n';
        text[n] = 0;
    }
    return n > 0 ? (size_t)n : 0;
}

void weft_rndv_stats_show(const weft_rndv_stats *stats, const weft_peer *peer, char *text, size_t capacity)
{
    static const char *const sorts[2][2] = {{"", " bidirectional:"}, {" not registered before:", " not registered before, bidirectional:"}};
    size_t n = (size_t)snprintf(text, capacity, "%12u  eager    the longest frame of %s%s\n", peer->eager_max, peer->ep->iface->ops->name,
                                weft_knob.eager_max ? ", set by WEFT_EAGER_MAX" : "");
    for (uint32_t i = 0; i < 4 * WEFT_RNDV_SIZE_CLASSES && n + 1 < capacity; i++)
        n += show_row(&stats->rows[i & 1][i >> 1 & 1][i / 4], peer, i / 4, sorts[i & 1][i >> 1 & 1], text + n, capacity - n);
}
