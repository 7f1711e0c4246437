/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hub: see hub.h. What one rank has put is asked of its own node's server each time; servers keep what they were told.
 */
#include "tools/mpirun/hub.h"

#include <stdlib.h>

#include "base/clock.h"
#include "tools/mpirun/board.h"
#include "tools/mpirun/gather.h"
#include "tools/mpirun/slots.h"

/* A node waits for what a rank of another has put. */
typedef struct fetch {
    uint32_t node;
    uint64_t ticket, deadline_ns;
} fetch;

struct hub {
    const map *map;
    hub_up up;
    gathers gathers;
    board board;
    slots fetches;
    uint64_t soonest_ns; /* of the fetches: no deadline is earlier; 0: there is none */
};

hub *hub_open(const map *map, const hub_up *up)
{
    hub *self = calloc(1, sizeof(*self));

    if (!self)
        return NULL;
    self->map = map;
    self->up = *up;
    board_open(&self->board, map, up);
    if (gathers_open(&self->gathers, map, up)) {
        free(self);
        return NULL;
    }
    return self;
}

static void done_send(hub *self, uint32_t node, uint64_t ticket, int32_t status, parcel *body)
{
    note done = {.kind = NOTE_DONE, .status = status, .ticket = ticket, .body = body};

    self->up.send(self->up.owner, node, &done);
}

static void fetch_begin(hub *self, uint32_t node, const note *what)
{
    bool is_known = what->rank < self->map->ranks;
    fetch *one = is_known ? malloc(sizeof(*one)) : NULL;
    uint64_t number = one ? slots_put(&self->fetches, one) : 0;

    if (!number) {
        free(one);
        done_send(self, node, what->ticket, is_known ? NOTE_LARGE : NOTE_UNABLE, NULL);
        return;
    }
    *one = (fetch){.node = node, .ticket = what->ticket};
    if (what->seconds) {
        one->deadline_ns = weft_clock_ns() + what->seconds * 1000000000ull;
        if (!self->soonest_ns || one->deadline_ns < self->soonest_ns)
            self->soonest_ns = one->deadline_ns;
    }
    note owe = {.kind = NOTE_OWE, .ticket = number, .rank = what->rank};
    self->up.send(self->up.owner, self->map->node_of[what->rank], &owe);
}

static void fetch_end(hub *self, uint64_t number, int32_t status, parcel *body)
{
    fetch *one = slots_pull(&self->fetches, number);

    if (!one) { /* it came too late for who asked */
        parcel_drop(body);
        return;
    }
    done_send(self, one->node, one->ticket, status, body);
    free(one);
}

static void event_spread(hub *self, uint32_t node, const note *what)
{
    for (uint32_t i = 0; i < self->map->node_count; i++) {
        note copy = *what;
        if (i == node)
            continue;
        copy.body = parcel_hold(what->body);
        self->up.send(self->up.owner, i, &copy);
    }
}

void hub_take(hub *self, uint32_t node, const note *what)
{
    switch (what->kind) {
    case NOTE_GATHER:
        gathers_come(&self->gathers, node, what);
        break;
    case NOTE_FETCH:
        fetch_begin(self, node, what);
        break;
    case NOTE_FOUND:
        fetch_end(self, what->ticket, what->status, parcel_hold(what->body));
        break;
    case NOTE_PUBLISH:
    case NOTE_LOOKUP:
    case NOTE_UNPUBLISH:
        board_take(&self->board, node, what);
        break;
    case NOTE_EVENT:
        event_spread(self, node, what);
        break;
    case NOTE_GONE:
        if (what->rank < self->map->ranks && self->map->node_of[what->rank] == node) {
            gathers_gone(&self->gathers, what->rank);
            board_gone(&self->board, what->rank);
        }
        break;
    default:
        break;
    }
    parcel_drop(what->body);
}

static uint64_t fetches_deadlines(hub *self, uint64_t now)
{
    if (!self->soonest_ns || now < self->soonest_ns)
        return self->soonest_ns;
    self->soonest_ns = 0;
    for (uint32_t i = 0; i < self->fetches.count; i++) {
        uint64_t number = slots_number(&self->fetches, i);
        const fetch *one = slots_look(&self->fetches, number);
        if (!one || !one->deadline_ns)
            continue;
        if (now >= one->deadline_ns)
            fetch_end(self, number, NOTE_LATE, NULL);
        else if (!self->soonest_ns || one->deadline_ns < self->soonest_ns)
            self->soonest_ns = one->deadline_ns;
    }
    return self->soonest_ns;
}

uint64_t hub_deadlines(hub *self)
{
    uint64_t now = weft_clock_ns(), next = 0;
    uint64_t all[] = {gathers_deadlines(&self->gathers, now), board_deadlines(&self->board, now), fetches_deadlines(self, now)};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i] && (!next || all[i] < next))
            next = all[i];
    return next;
}

void hub_close(hub *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; i < self->fetches.count; i++)
        free(slots_pull(&self->fetches, slots_number(&self->fetches, i)));
    slots_close(&self->fetches);
    gathers_close(&self->gathers);
    board_close(&self->board);
    free(self);
}
