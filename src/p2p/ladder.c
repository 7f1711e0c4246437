/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ladder: choice by measurement. See ladder.h.
 */
#include "p2p/ladder.h"

#include <stdio.h>

#include "base/knob.h"

#define EAGER_DEFAULT 16384
#define TRIALS 3         /* stints of each rung at first use of a size class ... */
#define MOST_TRIES 64    /* ... in so many transfers at most ... */
#define MOST_AT_ONCE 256 /* ... or those that begin while others of them are under way: a window of many is to be of one rung */
#define STINT 8          /* transfers after which a stint has lasted long enough, when they are ... */
#define STINT_TURNS 4    /* ... so many times those under way: what these will bring is not counted */
#define AGAIN_EVERY 8192 /* transfers after which the rungs are compared anew */

static const char *const names[] = {"copy", "get", "halves", "put"};

const char *weft_rung_name(enum weft_rung rung) { return names[rung]; }

static uint32_t class_of(uint64_t bytes)
{
    int top = bytes >> 12 ? 63 - __builtin_clzll(bytes >> 12) : 0;
    return top < WEFT_LADDER_CLASSES ? (uint32_t)top : WEFT_LADDER_CLASSES - 1;
}

uint32_t weft_ladder_eager_max(const weft_peer *peer)
{
    const weft_caps *caps = &peer->path->port->caps;
    uint64_t most = caps->frame_max, want = weft_knob.eager_max ? weft_knob.eager_max : caps->eager ? caps->eager : EAGER_DEFAULT;
    return (uint32_t)(want < most ? want : most);
}

static bool is_offered(const weft_peer *peer, enum weft_rung rung, const weft_offer *offer)
{
    const weft_caps *caps = &peer->path->port->caps;
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
    enum weft_rung rung = by_knob[weft_knob.large_by];
    if (offer->is_cold && weft_knob.pin == WEFT_PIN_BEHIND)
        return WEFT_RUNG_COPY;
    if (rung != WEFT_RUNG_LAST)
        return is_offered(peer, rung, offer) ? rung : is_offered(peer, WEFT_RUNG_PUT, offer) && rung == WEFT_RUNG_GET ? WEFT_RUNG_PUT : WEFT_RUNG_COPY;
    if (offer->is_cold && (weft_knob.pin == WEFT_PIN_PIPELINE || weft_knob.pin == WEFT_PIN_NOW))
        return is_offered(peer, WEFT_RUNG_GET, offer) ? WEFT_RUNG_GET : is_offered(peer, WEFT_RUNG_PUT, offer) ? WEFT_RUNG_PUT : WEFT_RUNG_COPY;
    return WEFT_RUNG_LAST;
}

/* Is the rung still to be tried? */
static bool is_on_trial(const weft_rung_record *record)
{
    return record->stints < TRIALS && record->tries < (record->flying ? MOST_AT_ONCE : MOST_TRIES);
}

/* Of those that are offered to this peer now. */
static enum weft_rung fastest(const weft_rung_record *record, const weft_peer *peer, const weft_offer *offer)
{
    enum weft_rung best = WEFT_RUNG_COPY;
    for (enum weft_rung rung = WEFT_RUNG_GET; rung < WEFT_RUNG_LAST; rung++)
        if (is_offered(peer, rung, offer) && record[rung].best_ns_per_byte > 0 &&
            (record[best].best_ns_per_byte == 0 || record[rung].best_ns_per_byte < record[best].best_ns_per_byte))
            best = rung;
    return best;
}

enum weft_rung weft_ladder_choose(weft_ladder *ladder, const weft_peer *peer, uint64_t bytes, const weft_offer *offer)
{
    uint32_t class = class_of(bytes);
    weft_rung_record *record = ladder->record[offer->is_cold][class];
    enum weft_rung rung;
    if (!offer->can_move || peer->no_move)
        return WEFT_RUNG_COPY;
    rung = forced(peer, offer);
    if (rung != WEFT_RUNG_LAST)
        return rung;
    if (++ladder->transfers[offer->is_cold][class] % AGAIN_EVERY == 0)
        for (rung = WEFT_RUNG_COPY; rung < WEFT_RUNG_LAST; rung++)
            record[rung] = (weft_rung_record){.flying = record[rung].flying};
    for (rung = WEFT_RUNG_COPY; rung < WEFT_RUNG_LAST; rung++)
        if (is_offered(peer, rung, offer) && is_on_trial(&record[rung])) {
            record[rung].tries++;
            return rung;
        }
    return fastest(record, peer, offer);
}

/* -- what transfers teach -- */

static weft_rung_record *record_of(weft_ladder *ladder, const weft_climb *climb)
{
    return &ladder->record[climb->is_cold][class_of(climb->bytes)][climb->rung];
}

static void learn(weft_rung_record *record, uint64_t bytes, uint64_t took_ns)
{
    float per_byte = bytes ? (float)took_ns / (float)bytes : 0;
    if (bytes && (record->best_ns_per_byte == 0 || per_byte < record->best_ns_per_byte))
        record->best_ns_per_byte = per_byte;
}

void weft_ladder_begin(weft_ladder *ladder, const weft_climb *climb, uint64_t now)
{
    weft_rung_record *record = record_of(ladder, climb);
    if (ladder->flying == 0)
        ladder->stint = (weft_stint){.of = record, .since = now};
    else if (ladder->stint.of != record)
        ladder->stint = (weft_stint){.of = record}; /* until those before it are over */
    ladder->flying++;
    record->flying++;
}

/* Those that began before the stint may have been all but over: they do not count. */
static void count(weft_stint *stint, uint64_t bytes, uint64_t began, uint64_t now)
{
    weft_rung_record *record = stint->of;
    if (began >= stint->since) {
        stint->bytes += bytes;
        stint->ended++;
    }
    if (record->flying && (stint->ended < STINT || stint->ended < STINT_TURNS * record->flying))
        return;
    learn(record, stint->bytes, now - stint->since);
    record->stints += stint->bytes > 0;
    *stint = (weft_stint){.of = record, .since = now};
}

/* One that overlapped with others took longer than it cost: its own time counts until a stint says better. */
void weft_ladder_end(weft_ladder *ladder, const weft_climb *climb, bool has_failed, uint64_t began, uint64_t now)
{
    weft_rung_record *record = record_of(ladder, climb);
    weft_stint *stint = &ladder->stint;
    ladder->flying--;
    record->flying--;
    if (!has_failed)
        learn(record, climb->bytes, now - began);
    if (stint->since && stint->of == record)
        count(stint, has_failed ? 0 : climb->bytes, began, now);
    else if (stint->of->flying == ladder->flying)
        stint->since = now;
}

static size_t show_class(const weft_ladder *ladder, const weft_peer *peer, bool is_cold, uint32_t class, char *text, size_t room)
{
    static const weft_offer all = {.can_move = true, .has_key = true};
    const weft_rung_record *record = ladder->record[is_cold][class];
    enum weft_rung best = fastest(record, peer, &all);
    int n;
    if (record[best].best_ns_per_byte == 0)
        return 0;
    n = snprintf(text, room, "%12llu  %-6s because%s", (unsigned long long)(8192ull << class) - 1, names[best], is_cold ? ", not registered before," : "");
    for (enum weft_rung rung = WEFT_RUNG_COPY; rung < WEFT_RUNG_LAST && n > 0 && (size_t)n < room; rung++)
        if (record[rung].best_ns_per_byte > 0)
            n += snprintf(text + n, room - (size_t)n, " %s %.1f GB/s", names[rung], 1.0 / (double)record[rung].best_ns_per_byte);
    if (n > 0 && (size_t)n + 1 < room) {
        text[n++] = '\n';
        text[n] = 0;
    }
    return n > 0 ? (size_t)n : 0;
}

void weft_ladder_show(const weft_ladder *ladder, const weft_peer *peer, char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "%12u  eager  because it fits a frame of %s%s\n", peer->eager_max, peer->path->port->ops->name,
                                weft_knob.eager_max ? " and WEFT_EAGER_MAX says so" : "");
    for (uint32_t i = 0; i < 2 * WEFT_LADDER_CLASSES && n + 1 < room; i++)
        n += show_class(ladder, peer, i & 1, i / 2, text + n, room - n);
}
