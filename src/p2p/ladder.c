/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ladder: choice by measurement. See ladder.h.
 */
#include "p2p/ladder.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/knob.h"
#include "core/world.h"

#define EAGER_DEFAULT 16384
#define TRIALS 4         /* stints of each rung at first use of a size class, one after the other: what the one before left in the caches
                          * slows down the first. The best counts. Half as many of a rung that is so many ... */
#define HOPELESS 2.0f    /* ... times slower than another; ... */
#define MAX_TRIES 64    /* ... in so many transfers at most ... */
#define MAX_AT_ONCE 256 /* ... or those that begin while others of them are under way: a window of many is to be of one rung */
#define STINT 8          /* transfers after which a stint has lasted long enough, when they are ... */
#define STINT_TURNS 4    /* ... so many times those under way: what these will bring is not counted */
#define SURE_NS 1000000  /* a stint that took so long counts twice: caches matter little, an interrupt as it will to others; with STINT
                          * transfers it is a whole trial */
#define AGAIN_SHARE 64   /* a rung is measured again when that costs at most one part in so many of the time spent since ... */
#define AGAIN_MIN 64   /* ... and so many stints have passed */
#define COLD 2           /* so many stints after another rung of the row tell little, but to a trial */
#define BETTER 0.95f     /* another rung is taken when it needs so much of the time of the one in use */

enum { NODE, REMOTE, KINDS }; /* of peers: on our node, on others */

static const char *const names[] = {"copy", "get", "split", "put"};

const char *weft_rung_name(enum weft_rung rung) { return names[rung]; }

static uint32_t class_of(uint64_t bytes)
{
    int top = bytes >> 12 ? 63 - __builtin_clzll(bytes >> 12) : 0;
    return top < WEFT_LADDER_CLASSES ? (uint32_t)top : WEFT_LADDER_CLASSES - 1;
}

uint32_t weft_ladder_eager_max(const weft_peer *peer)
{
    const weft_caps *caps = &peer->ep->iface->caps;
    uint64_t max = caps->frame_max, want = weft_knob.eager_max ? weft_knob.eager_max : caps->eager ? caps->eager : EAGER_DEFAULT;
    return (uint32_t)(want < max ? want : max);
}

static bool is_offered(const weft_peer *peer, enum weft_rung rung, const weft_offer *offer)
{
    const weft_caps *caps = &peer->ep->iface->caps;
    bool is_keyed = caps->key_bytes || caps->local_keys;
    switch (rung) {
    case WEFT_RUNG_GET:
        return caps->get && (!is_keyed || offer->has_key);
    case WEFT_RUNG_HALVES:
        return caps->get && caps->put && !is_keyed;
    case WEFT_RUNG_PUT: /* without keys halves is never worse */
        return caps->put && is_keyed;
    default:
        return true;
    }
}

/* What the knobs leave no choice about; WEFT_RUNG_LAST: they do. */
static enum weft_rung forced(const weft_peer *peer, const weft_offer *offer)
{
    static const enum weft_rung by_knob[] = {WEFT_RUNG_LAST, WEFT_RUNG_COPY, WEFT_RUNG_GET, WEFT_RUNG_HALVES, WEFT_RUNG_PUT};
    enum weft_rung rung = by_knob[weft_knob.rndv_scheme];
    if (offer->is_cold && weft_knob.reg_mode == WEFT_REG_MODE_ASYNC)
        return WEFT_RUNG_COPY;
    if (rung != WEFT_RUNG_LAST)
        return is_offered(peer, rung, offer) ? rung : is_offered(peer, WEFT_RUNG_PUT, offer) && rung == WEFT_RUNG_GET ? WEFT_RUNG_PUT : WEFT_RUNG_COPY;
    if (offer->is_cold && (weft_knob.reg_mode == WEFT_REG_MODE_PIPELINE || weft_knob.reg_mode == WEFT_REG_MODE_SYNC))
        return is_offered(peer, WEFT_RUNG_GET, offer) ? WEFT_RUNG_GET : is_offered(peer, WEFT_RUNG_PUT, offer) ? WEFT_RUNG_PUT : WEFT_RUNG_COPY;
    return WEFT_RUNG_LAST;
}

bool weft_ladder_is_shared(const weft_iface *iface) { return iface->caps.get && !iface->caps.key_bytes && !iface->caps.local_keys; }

bool weft_ladder_allows(const weft_peer *peer, enum weft_rung rung, const weft_offer *offer)
{
    return rung < WEFT_RUNG_LAST && offer->can_move && !peer->no_rma && is_offered(peer, rung, offer) && forced(peer, offer) == WEFT_RUNG_LAST;
}

/* Of those that are offered to this peer now. The one in use stays while no other is clearly better. */
static enum weft_rung fastest(const weft_ladder_row *row, const weft_peer *peer, const weft_offer *offer)
{
    const weft_rung_record *record = row->record;
    enum weft_rung best = WEFT_RUNG_COPY;
    for (enum weft_rung rung = WEFT_RUNG_GET; rung < WEFT_RUNG_LAST; rung++)
        if (is_offered(peer, rung, offer) && record[rung].ns_per_byte > 0 &&
            (record[best].ns_per_byte == 0 || record[rung].ns_per_byte < record[best].ns_per_byte))
            best = rung;
    if (is_offered(peer, row->used, offer) && record[row->used].ns_per_byte > 0 &&
        record[best].ns_per_byte > BETTER * record[row->used].ns_per_byte)
        best = row->used;
    return best;
}

/* Is the rung still to be tried? sends: announced and not over; their hints are tries, too. */
static bool is_on_trial(const weft_rung_record *record, const weft_rung_record *best, uint32_t sends)
{
    uint32_t wanted = best->ns_per_byte > 0 && record->ns_per_byte > HOPELESS * best->ns_per_byte ? TRIALS / 2 : TRIALS;
    return record->stints < wanted && record->tries < (record->in_flight || sends ? MAX_AT_ONCE : MAX_TRIES);
}

/* The rung to be tried now: a trial that has begun goes on. WEFT_RUNG_LAST: none. */
static enum weft_rung on_trial(const weft_ladder_row *row, const weft_peer *peer, const weft_offer *offer, enum weft_rung best, uint32_t sends)
{
    enum weft_rung trial = WEFT_RUNG_LAST;
    for (enum weft_rung rung = WEFT_RUNG_COPY; rung < WEFT_RUNG_LAST; rung++)
        if (is_offered(peer, rung, offer) && is_on_trial(&row->record[rung], &row->record[best], sends) &&
            (trial == WEFT_RUNG_LAST || row->record[rung].tries > row->record[trial].tries))
            trial = rung;
    return trial;
}

/* Puts a rung to the test again, one after the other. What a trial of it will cost more than the best one is compared with what was
 * spent since the last test: a slow rung is tried seldom, one that is nearly as fast often. */
static void try_again(weft_ladder_row *row, enum weft_rung best, uint32_t in_flight, uint64_t bytes)
{
    weft_rung_record *record = &row->record[row->next];
    uint64_t transfers = in_flight ? (uint64_t)STINT_TURNS * (in_flight + STINT) : TRIALS;
    float more = record->ns_per_byte - row->record[best].ns_per_byte;
    if (row->next == best || record->ns_per_byte == 0) {
        row->next = (uint8_t)((row->next + 1) % WEFT_RUNG_LAST);
    } else if ((float)row->spent_ns >= AGAIN_SHARE * more * (float)(bytes * transfers)) {
        record->tries = 0;
        record->stints = 0;
        row->next = (uint8_t)((row->next + 1) % WEFT_RUNG_LAST);
        row->spent_ns = 0;
        row->stints = 0;
    }
}

static weft_ladder_row *row_of(weft_ladder *ladder, uint64_t bytes, bool is_cold, bool is_both_ways)
{
    return &ladder->rows[is_cold][is_both_ways][class_of(bytes)];
}

enum weft_rung weft_ladder_choose(weft_ladder *ladder, const weft_peer *peer, uint64_t bytes, const weft_offer *offer, bool is_both_ways)
{
    weft_ladder_row *row = row_of(ladder, bytes, offer->is_cold, is_both_ways);
    enum weft_rung rung, best, trial;
    if (!offer->can_move || peer->no_rma)
        return WEFT_RUNG_COPY;
    rung = forced(peer, offer);
    if (rung != WEFT_RUNG_LAST)
        return rung;
    best = fastest(row, peer, offer);
    if (row->stints >= AGAIN_MIN)
        try_again(row, best, row->record[best].in_flight, bytes);
    trial = on_trial(row, peer, offer, best, ladder->sends);
    if (trial == WEFT_RUNG_LAST) {
        row->used = (uint8_t)best;
        return best;
    }
    row->record[trial].tries++;
    return trial;
}

weft_ladder *weft_ladder_open(const weft_worker *worker) { return calloc((size_t)worker->iface_count * KINDS, sizeof(weft_ladder)); }

weft_ladder *weft_ladder_of(const weft_worker *worker, const weft_peer *peer)
{
    const weft_boot *boot = worker->world->boot;
    bool is_remote = boot->node_of && boot->node_of[peer->proc_id.rank] != boot->node;
    uint32_t port = 0;
    while (port + 1 < worker->iface_count && worker->ifaces[port] != peer->ep->iface)
        port++;
    return &worker->ladder[port * KINDS + (is_remote ? REMOTE : NODE)];
}

/* -- what transfers teach -- */

/* In a trial the best counts; what was known before may be of another time. Else it falls halfway to what is faster and rises a little
 * only, for a stint may have been interrupted. */
static void learn(weft_rung_record *record, uint64_t bytes, uint64_t took_ns)
{
    float seen = (float)(took_ns ? took_ns : 1) / (float)bytes, *known = &record->ns_per_byte;
    if (*known == 0 || 2 * seen < *known || record->stints == 0)
        *known = seen;
    else if (record->stints < TRIALS)
        *known = seen < *known ? seen : *known;
    else if (seen < *known)
        *known = (*known + seen) / 2;
    else
        *known += (seen - *known < *known ? seen - *known : *known) / 4;
}

/* A stint is over, of one transfer or more. */
static void learn_stint(weft_stint *stint, uint64_t took_ns)
{
    weft_ladder_row *row = stint->row;
    weft_rung_record *record = stint->of;
    row->streak = row->latest == record ? row->streak + (row->streak < COLD) : 0;
    row->latest = record;
    if (record->stints < TRIALS || row->streak == COLD)
        learn(record, stint->bytes, took_ns);
    record->stints += took_ns < SURE_NS ? 1 : stint->ended < STINT ? 2 : TRIALS;
    row->stints++;
    row->spent_ns += took_ns;
}

/* May a stint of this sort begin? One way only, what goes the other disturbs it. */
static bool is_undisturbed(const weft_ladder *ladder, bool is_both_ways) { return is_both_ways || !ladder->sends; }

void weft_ladder_begin(weft_ladder *ladder, const weft_climb *climb, uint64_t now)
{
    weft_ladder_row *row = row_of(ladder, climb->bytes, climb->is_cold, climb->is_both_ways);
    weft_rung_record *record = &row->record[climb->rung];
    weft_stint *stint = &ladder->stint;
    if (stint->of != record) /* it waits until those before it are over */
        *stint = (weft_stint){.row = row, .of = record, .is_both_ways = climb->is_both_ways};
    if (!stint->since && record->in_flight == ladder->in_flight && is_undisturbed(ladder, climb->is_both_ways))
        stint->since = now, stint->stale = 0;
    ladder->in_flight++;
    record->in_flight++;
}

/* Ends a stint that has lasted long enough, and begins the next one. */
static void count(weft_ladder *ladder, uint64_t bytes, uint64_t now)
{
    weft_stint *stint = &ladder->stint;
    uint32_t in_flight = stint->of->in_flight + ladder->sends;
    stint->bytes += bytes;
    stint->ended += bytes > 0;
    if (in_flight && (stint->ended < STINT || stint->ended < STINT_TURNS * in_flight))
        return;
    if (stint->bytes)
        learn_stint(stint, now - stint->since);
    stint->since = in_flight ? now : 0;
    stint->bytes = 0;
    stint->ended = 0;
    stint->stale = ladder->sends;
}

/* Those that began before the stint may have been all but over: they do not count. One that overlapped with others took longer than it
 * cost: its own time counts only until a stint says better. */
void weft_ladder_end(weft_ladder *ladder, const weft_climb *climb, bool has_failed, uint64_t began, uint64_t now)
{
    weft_rung_record *record = &row_of(ladder, climb->bytes, climb->is_cold, climb->is_both_ways)->record[climb->rung];
    weft_stint *stint = &ladder->stint;
    ladder->in_flight--;
    record->in_flight--;
    if (!has_failed && climb->bytes && record->ns_per_byte == 0)
        learn(record, climb->bytes, now - began);
    if (stint->since && stint->of == record)
        count(ladder, has_failed || began < stint->since ? 0 : climb->bytes, now);
    else if (ladder->in_flight && stint->of->in_flight == ladder->in_flight && is_undisturbed(ladder, stint->is_both_ways))
        *stint = (weft_stint){.row = stint->row, .of = stint->of, .is_both_ways = stint->is_both_ways, .since = now, .stale = ladder->sends};
}

void weft_ladder_send_begin(weft_ladder *ladder)
{
    ladder->sends++;
    if (!ladder->stint.is_both_ways)
        ladder->stint.since = 0;
}

void weft_ladder_send_end(weft_ladder *ladder, uint64_t bytes, uint64_t now)
{
    weft_stint *stint = &ladder->stint;
    bool is_stale = stint->stale > 0;
    ladder->sends--;
    stint->stale -= is_stale;
    if (stint->since && stint->is_both_ways)
        count(ladder, is_stale ? 0 : bytes, now);
}

/* -- for weft-info -- */

static size_t show_row(const weft_ladder_row *row, const weft_peer *peer, uint32_t class, const char *sort, char *text, size_t room)
{
    static const weft_offer all = {.can_move = true, .has_key = true};
    const weft_rung_record *record = row->record;
    enum weft_rung best = fastest(row, peer, &all);
    int n;
    if (record[best].ns_per_byte == 0)
        return 0;
    n = snprintf(text, room, "%12llu  %-6s because%s", (unsigned long long)(8192ull << class) - 1, names[best], sort);
    for (enum weft_rung rung = WEFT_RUNG_COPY; rung < WEFT_RUNG_LAST && n > 0 && (size_t)n < room; rung++)
        if (record[rung].ns_per_byte > 0)
            n += snprintf(text + n, room - (size_t)n, " %s %.1f GB/s", names[rung], 1.0 / (double)record[rung].ns_per_byte);
    if (n > 0 && (size_t)n + 1 < room) {
        text[n++] = '\n';
        text[n] = 0;
    }
    return n > 0 ? (size_t)n : 0;
}

void weft_ladder_show(const weft_ladder *ladder, const weft_peer *peer, char *text, size_t room)
{
    static const char *const sorts[2][2] = {{"", " both ways:"}, {" not registered before:", " not registered before, both ways:"}};
    size_t n = (size_t)snprintf(text, room, "%12u  eager  because it fits a frame of %s%s\n", peer->eager_max, peer->ep->iface->ops->name,
                                weft_knob.eager_max ? " and WEFT_EAGER_MAX says so" : "");
    for (uint32_t i = 0; i < 4 * WEFT_LADDER_CLASSES && n + 1 < room; i++)
        n += show_row(&ladder->rows[i & 1][i >> 1 & 1][i / 4], peer, i / 4, sorts[i & 1][i >> 1 & 1], text + n, room - n);
}
