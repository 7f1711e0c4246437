/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ladder: choice by measurement. See ladder.h.
 */
#include "p2p/ladder.h"

#include <stdio.h>

#include "base/knob.h"

#define EAGER_DEFAULT 16384
#define TRIALS 3         /* of each rung at first use of a size class */
#define AGAIN_EVERY 1024 /* transfers after which the rungs are compared anew */

static const char *const names[] = {"copy", "get", "halves"};

const char *weft_rung_name(enum weft_rung rung) { return names[rung]; }

static uint32_t class_of(uint64_t bytes)
{
    int top = bytes >> 12 ? 63 - __builtin_clzll(bytes >> 12) : 0;
    return top < WEFT_LADDER_CLASSES ? (uint32_t)top : WEFT_LADDER_CLASSES - 1;
}

uint32_t weft_ladder_eager_max(const weft_peer *peer)
{
    uint64_t most = peer->path->port->caps.frame_max, want = weft_knob.eager_max ? weft_knob.eager_max : EAGER_DEFAULT;
    return (uint32_t)(want < most ? want : most);
}

static bool is_offered(const weft_peer *peer, enum weft_rung rung)
{
    const weft_caps *caps = &peer->path->port->caps;
    if (caps->key_bytes || caps->local_keys)
        return rung == WEFT_RUNG_COPY; /* registration comes with the registration cache */
    return rung == WEFT_RUNG_COPY || (rung == WEFT_RUNG_GET ? caps->get : caps->get && caps->put);
}

static enum weft_rung forced(const weft_peer *peer)
{
    enum weft_rung rung = weft_knob.large_by == WEFT_LARGE_GET ? WEFT_RUNG_GET : WEFT_RUNG_HALVES;
    return weft_knob.large_by != WEFT_LARGE_COPY && is_offered(peer, rung) ? rung : WEFT_RUNG_COPY;
}

static enum weft_rung fastest(const weft_rung_record *record)
{
    enum weft_rung best = WEFT_RUNG_COPY;
    for (enum weft_rung rung = WEFT_RUNG_GET; rung < WEFT_RUNG_LAST; rung++)
        if (record[rung].best_ns_per_byte > 0 && record[rung].best_ns_per_byte < record[best].best_ns_per_byte)
            best = rung;
    return best;
}

enum weft_rung weft_ladder_choose(weft_ladder *ladder, const weft_peer *peer, uint64_t bytes, bool can_move)
{
    uint32_t class = class_of(bytes);
    weft_rung_record *record = ladder->record[class];
    if (!can_move || peer->no_move)
        return WEFT_RUNG_COPY;
    if (weft_knob.large_by != WEFT_LARGE_AUTO)
        return forced(peer);
    if (++ladder->transfers[class] % AGAIN_EVERY == 0)
        for (enum weft_rung rung = WEFT_RUNG_COPY; rung < WEFT_RUNG_LAST; rung++)
            record[rung] = (weft_rung_record){0};
    for (enum weft_rung rung = WEFT_RUNG_COPY; rung < WEFT_RUNG_LAST; rung++)
        if (is_offered(peer, rung) && record[rung].tries < TRIALS) {
            record[rung].tries++;
            return rung;
        }
    return fastest(record);
}

void weft_ladder_learn(weft_ladder *ladder, enum weft_rung rung, uint64_t bytes, uint64_t took_ns)
{
    weft_rung_record *record = &ladder->record[class_of(bytes)][rung];
    float per_byte = bytes ? (float)took_ns / (float)bytes : 0;
    if (!bytes) /* nothing was moved, nothing is learned */
        return;
    if (record->best_ns_per_byte == 0 || per_byte < record->best_ns_per_byte)
        record->best_ns_per_byte = per_byte;
}

static size_t show_class(const weft_ladder *ladder, uint32_t class, char *text, size_t room)
{
    const weft_rung_record *record = ladder->record[class];
    enum weft_rung best = fastest(record);
    int n;
    if (record[best].best_ns_per_byte == 0)
        return 0;
    n = snprintf(text, room, "%12llu  %-6s because", (unsigned long long)(8192ull << class) - 1, names[best]);
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
    for (uint32_t class = 0; class < WEFT_LADDER_CLASSES && n + 1 < room; class++)
        n += show_class(ladder, class, text + n, room - n);
}
