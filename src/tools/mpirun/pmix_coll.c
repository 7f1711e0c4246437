/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_coll: see pmix_coll.h.
 */
#include "tools/mpirun/pmix_coll.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/mpirun/ctrl_pack.h"
#include "tools/mpirun/report.h"

enum node_state { NODE_NOT_AWAITED, NODE_AWAITED, NODE_CONTRIBUTED, NODE_ANSWERED };

typedef struct pmix_coll {
    struct pmix_coll *next;
    uint32_t kind, count; /* count 0: all ranks */
    uint32_t *ranks;      /* as the nodes sent them; rising */
    unsigned char *state; /* [nodes] */
    uint64_t *tickets;    /* [nodes] */
    uint32_t awaited;
    uint64_t deadline_ns;
    int32_t status;         /* not PMIX_MSG_OK: has failed; kept for nodes that have not contributed */
    buffer data;
} pmix_coll;

int pmix_colls_open(pmix_colls *self, const map *map, const pmix_msg_sender *up)
{
    *self = (pmix_colls){.map = map, .up = *up};
    self->end = &self->first;
    self->has_ended = calloc(map->ranks, 1);
    return self->has_ended ? 0 : -1;
}

static void coll_free(pmix_coll *coll)
{
    free(coll->ranks);
    free(coll->state);
    free(coll->tickets);
    buffer_free(&coll->data);
    free(coll);
}

static void coll_remove(pmix_colls *self, pmix_coll *coll)
{
    pmix_coll **at = &self->first;

    while (*at != coll)
        at = &(*at)->next;
    *at = coll->next;
    if (self->end == &coll->next)
        self->end = at;
    coll_free(coll);
}

static void done_send(pmix_colls *self, uint32_t node, uint64_t ticket, int32_t status, refbuf *body)
{
    pmix_msg done = {.kind = PMIX_MSG_DONE, .status = status, .ticket = ticket, .body = body};

    self->up.send(self->up.owner, node, &done);
}

/* Replies to all contributors; frees the operation if no node is missing. */
static void coll_complete(pmix_colls *self, pmix_coll *coll, int32_t status)
{
    refbuf *body = NULL;

    if (status == PMIX_MSG_OK && coll->data.used) {
        body = refbuf_copy(coll->data.bytes + coll->data.start, coll->data.used);
        status = body ? PMIX_MSG_OK : PMIX_MSG_NO_MEMORY;
    }
    buffer_free(&coll->data);
    coll->status = status;
    coll->deadline_ns = 0;
    for (uint32_t i = 0; i < self->map->node_count; i++) {
        if (coll->state[i] != NODE_CONTRIBUTED)
            continue;
        coll->state[i] = NODE_ANSWERED;
        done_send(self, i, coll->tickets[i], status, refbuf_acquire(body));
    }
    refbuf_release(body);
    if (!coll->awaited)
        coll_remove(self, coll);
}

static uint32_t member_count(const pmix_colls *self, const pmix_coll *coll)
{
    return coll->count ? coll->count : self->map->ranks;
}

static uint32_t member_of(const pmix_coll *coll, uint32_t index)
{
    return coll->count ? coll->ranks[index] : index;
}

/* Marks the nodes with living members as awaited. */
static void nodes_await(pmix_colls *self, pmix_coll *coll)
{
    for (uint32_t i = 0, n = member_count(self, coll); i < n; i++) {
        uint32_t rank = member_of(coll, i), node = self->map->node_of[rank];
        if (self->has_ended[rank] || coll->state[node] != NODE_NOT_AWAITED)
            continue;
        coll->state[node] = NODE_AWAITED;
        coll->awaited++;
    }
}

static pmix_coll *coll_alloc(pmix_colls *self, uint32_t kind, uint32_t count, const uint32_t *ranks)
{
    pmix_coll *coll = calloc(1, sizeof(*coll));

    if (!coll)
        return NULL;
    *coll = (pmix_coll){.kind = kind, .count = count};
    coll->ranks = malloc(count * sizeof(*ranks) + 1);
    coll->state = calloc(self->map->node_count, 1);
    coll->tickets = calloc(self->map->node_count, sizeof(*coll->tickets));
    if (!coll->ranks || !coll->state || !coll->tickets) {
        coll_free(coll);
        return NULL;
    }
    memcpy(coll->ranks, ranks, count * sizeof(*ranks));
    nodes_await(self, coll);
    *self->end = coll;
    self->end = &coll->next;
    return coll;
}

/* Returns the oldest operation of this kind and members that awaits the node. */
static pmix_coll *coll_find(const pmix_colls *self, uint32_t node, uint32_t kind, uint32_t count, const uint32_t *ranks)
{
    for (pmix_coll *coll = self->first; coll; coll = coll->next)
        if (coll->kind == kind && coll->count == count && coll->state[node] == NODE_AWAITED &&
            !memcmp(coll->ranks, ranks, count * sizeof(*ranks)))
            return coll;
    return NULL;
}

/* Reads the members; the caller frees `ranks`. -1: malformed, or out of memory. */
static int members_read(const pmix_colls *self, unpack *from, uint32_t *count, uint32_t **ranks)
{
    *count = unpack_u32(from);
    *ranks = NULL;
    if (from->has_failed || *count > from->left / 4 || !(*ranks = malloc(*count * sizeof(**ranks) + 1)))
        return -1;
    for (uint32_t i = 0; i < *count; i++)
        if (((*ranks)[i] = unpack_u32(from)) >= self->map->ranks)
            return -1;
    return 0;
}

static void coll_reject(pmix_colls *self, pmix_coll *coll)
{
    report(0, "a PMIx fence has failed: the data of its ranks exceed %zu MiB or the memory of this machine",
             REFBUF_MAX >> 20);
    coll_complete(self, coll, PMIX_MSG_NO_MEMORY);
}

static void coll_add(pmix_colls *self, pmix_coll *coll, uint32_t node, const pmix_msg *what, const unpack *data)
{
    uint64_t deadline = what->seconds ? weft_clock_ns() + what->seconds * 1000000000ull : 0;

    coll->state[node] = NODE_CONTRIBUTED;
    coll->tickets[node] = what->ticket;
    coll->awaited--;
    if (coll->status) {
        coll_complete(self, coll, coll->status);
        return;
    }
    if (deadline && (!coll->deadline_ns || deadline < coll->deadline_ns))
        coll->deadline_ns = deadline;
    if (deadline && (!self->deadline_min_ns || deadline < self->deadline_min_ns))
        self->deadline_min_ns = deadline;
    if (data->left > REFBUF_MAX - coll->data.used || buffer_add(&coll->data, data->at, data->left))
        coll_reject(self, coll);
    else if (!coll->awaited)
        coll_complete(self, coll, PMIX_MSG_OK);
}

void pmix_colls_contribute(pmix_colls *self, uint32_t node, const pmix_msg *what)
{
    unpack from = {.at = what->body ? what->body->data : NULL, .left = what->body ? what->body->bytes : 0};
    uint32_t count, *ranks;

    int rc = members_read(self, &from, &count, &ranks);
    pmix_coll *coll = rc ? NULL : coll_find(self, node, what->rank, count, ranks);
    if (!rc && !coll)
        coll = coll_alloc(self, what->rank, count, ranks);
    free(ranks);
    if (!coll) {
        done_send(self, node, what->ticket, PMIX_MSG_INVALID, NULL);
        return;
    }
    if (coll->state[node] != NODE_AWAITED) { /* its members have ended, or it has none, yet it contributes */
        coll->state[node] = NODE_AWAITED;
        coll->awaited++;
    }
    coll_add(self, coll, node, what, &from);
}

static bool has_members_at(const pmix_colls *self, const pmix_coll *coll, uint32_t node)
{
    for (uint32_t i = 0, n = member_count(self, coll); i < n; i++) {
        uint32_t rank = member_of(coll, i);
        if (self->map->node_of[rank] == node && !self->has_ended[rank])
            return true;
    }
    return false;
}

void pmix_colls_rank_ended(pmix_colls *self, uint32_t rank)
{
    uint32_t node = self->map->node_of[rank];

    self->has_ended[rank] = 1;
    for (pmix_coll *coll = self->first, *next; coll; coll = next) {
        next = coll->next;
        if (coll->state[node] != NODE_AWAITED || has_members_at(self, coll, node))
            continue;
        coll->state[node] = NODE_NOT_AWAITED;
        if (!--coll->awaited)
            coll_complete(self, coll, coll->status);
    }
}

uint64_t pmix_colls_deadlines(pmix_colls *self, uint64_t now)
{
    if (!self->deadline_min_ns || now < self->deadline_min_ns)
        return self->deadline_min_ns;
    self->deadline_min_ns = 0;
    for (pmix_coll *coll = self->first, *next; coll; coll = next) {
        next = coll->next;
        if (coll->deadline_ns && now >= coll->deadline_ns)
            coll_complete(self, coll, PMIX_MSG_TIMEOUT);
        else if (coll->deadline_ns && (!self->deadline_min_ns || coll->deadline_ns < self->deadline_min_ns))
            self->deadline_min_ns = coll->deadline_ns;
    }
    return self->deadline_min_ns;
}

void pmix_colls_close(pmix_colls *self)
{
    while (self->first)
        coll_remove(self, self->first);
    free(self->has_ended);
    *self = (pmix_colls){0};
}
