/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_head: see pmix_head.h. Data of a rank are requested from its node's server each time; servers cache them.
 */
#include "tools/mpirun/pmix_head.h"

#include <stdlib.h>

#include "base/clock.h"
#include "tools/mpirun/id_table.h"
#include "tools/mpirun/nameserver.h"
#include "tools/mpirun/pmix_coll.h"

/* A node's open request for data of another node's rank. */
typedef struct fetch {
    uint32_t node;
    uint64_t ticket, deadline_ns;
} fetch;

struct pmix_head {
    const map *map;
    pmix_msg_sender up;
    pmix_colls pmix_colls;
    nameserver nameserver;
    id_table fetches;
    uint64_t deadline_min_ns; /* lower bound of the fetches' deadlines; 0: none */
};

pmix_head *pmix_head_open(const map *map, const pmix_msg_sender *up)
{
    pmix_head *self = calloc(1, sizeof(*self));

    if (!self)
        return NULL;
    self->map = map;
    self->up = *up;
    nameserver_open(&self->nameserver, map, up);
    if (pmix_colls_open(&self->pmix_colls, map, up)) {
        free(self);
        return NULL;
    }
    return self;
}

static void done_send(pmix_head *self, uint32_t node, uint64_t ticket, int32_t status, refbuf *body)
{
    pmix_msg done = {.kind = PMIX_MSG_DONE, .status = status, .ticket = ticket, .body = body};

    self->up.send(self->up.owner, node, &done);
}

static void fetch_start(pmix_head *self, uint32_t node, const pmix_msg *what)
{
    bool is_known = what->rank < self->map->ranks;
    fetch *one = is_known ? malloc(sizeof(*one)) : NULL;
    uint64_t id = one ? id_table_add(&self->fetches, one) : 0;

    if (!id) {
        free(one);
        done_send(self, node, what->ticket, is_known ? PMIX_MSG_NO_MEMORY : PMIX_MSG_INVALID, NULL);
        return;
    }
    *one = (fetch){.node = node, .ticket = what->ticket};
    if (what->seconds) {
        one->deadline_ns = weft_clock_ns() + what->seconds * 1000000000ull;
        if (!self->deadline_min_ns || one->deadline_ns < self->deadline_min_ns)
            self->deadline_min_ns = one->deadline_ns;
    }
    pmix_msg dmodex = {.kind = PMIX_MSG_DMODEX_REQ, .ticket = id, .rank = what->rank};
    self->up.send(self->up.owner, self->map->node_of[what->rank], &dmodex);
}

static void fetch_complete(pmix_head *self, uint64_t id, int32_t status, refbuf *body)
{
    fetch *one = id_table_remove(&self->fetches, id);

    if (!one) { /* the requester has timed out */
        refbuf_release(body);
        return;
    }
    done_send(self, one->node, one->ticket, status, body);
    free(one);
}

static void event_broadcast(pmix_head *self, uint32_t node, const pmix_msg *what)
{
    for (uint32_t i = 0; i < self->map->node_count; i++) {
        pmix_msg copy = *what;
        if (i == node)
            continue;
        copy.body = refbuf_acquire(what->body);
        self->up.send(self->up.owner, i, &copy);
    }
}

void pmix_head_handle(pmix_head *self, uint32_t node, const pmix_msg *what)
{
    switch (what->kind) {
    case PMIX_MSG_COLL:
        pmix_colls_contribute(&self->pmix_colls, node, what);
        break;
    case PMIX_MSG_FETCH:
        fetch_start(self, node, what);
        break;
    case PMIX_MSG_DMODEX_RESP:
        fetch_complete(self, what->ticket, what->status, refbuf_acquire(what->body));
        break;
    case PMIX_MSG_PUBLISH:
    case PMIX_MSG_LOOKUP:
    case PMIX_MSG_UNPUBLISH:
        nameserver_handle(&self->nameserver, node, what);
        break;
    case PMIX_MSG_EVENT:
        event_broadcast(self, node, what);
        break;
    case PMIX_MSG_RANK_ENDED:
        if (what->rank < self->map->ranks && self->map->node_of[what->rank] == node) {
            pmix_colls_rank_ended(&self->pmix_colls, what->rank);
            nameserver_rank_ended(&self->nameserver, what->rank);
        }
        break;
    default:
        break;
    }
    refbuf_release(what->body);
}

static uint64_t fetches_deadlines(pmix_head *self, uint64_t now)
{
    if (!self->deadline_min_ns || now < self->deadline_min_ns)
        return self->deadline_min_ns;
    self->deadline_min_ns = 0;
    for (uint32_t i = 0; i < self->fetches.count; i++) {
        uint64_t id = id_table_at(&self->fetches, i);
        const fetch *one = id_table_lookup(&self->fetches, id);
        if (!one || !one->deadline_ns)
            continue;
        if (now >= one->deadline_ns)
            fetch_complete(self, id, PMIX_MSG_TIMEOUT, NULL);
        else if (!self->deadline_min_ns || one->deadline_ns < self->deadline_min_ns)
            self->deadline_min_ns = one->deadline_ns;
    }
    return self->deadline_min_ns;
}

uint64_t pmix_head_deadlines(pmix_head *self)
{
    uint64_t now = weft_clock_ns(), next = 0;
    uint64_t all[] = {pmix_colls_deadlines(&self->pmix_colls, now), nameserver_deadlines(&self->nameserver, now),
                      fetches_deadlines(self, now)};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (all[i] && (!next || all[i] < next))
            next = all[i];
    return next;
}

void pmix_head_close(pmix_head *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; i < self->fetches.count; i++)
        free(id_table_remove(&self->fetches, id_table_at(&self->fetches, i)));
    id_table_close(&self->fetches);
    pmix_colls_close(&self->pmix_colls);
    nameserver_close(&self->nameserver);
    free(self);
}
