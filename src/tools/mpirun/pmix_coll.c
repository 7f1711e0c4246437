/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_coll: see pmix_coll.h.
 */
#include "tools/mpirun/pmix_coll.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum at { AT_NOBODY, AT_AWAITED, AT_COME, AT_ANSWERED };

typedef struct gather {
    struct gather *next;
    uint32_t kind, count;   /* count 0: all ranks */
    uint32_t *ranks;        /* as the nodes sent them; rising */
    unsigned char *at;      /* [nodes] */
    uint64_t *tickets;      /* [nodes] */
    uint32_t awaited;
    uint64_t deadline_ns;
    int32_t status;         /* not PMIX_MSG_OK: has failed; kept for nodes that have not contributed */
    buffer data;
} gather;

int pmix_colls_open(pmix_colls *self, const map *map, const pmix_head_callbacks *up)
{
    *self = (pmix_colls){.map = map, .up = *up};
    self->end = &self->first;
    self->is_gone = calloc(map->ranks, 1);
    return self->is_gone ? 0 : -1;
}

static void gather_free(gather *one)
{
    free(one->ranks);
    free(one->at);
    free(one->tickets);
    buffer_free(&one->data);
    free(one);
}

static void gather_unlink(pmix_colls *self, gather *one)
{
    gather **at = &self->first;

    while (*at != one)
        at = &(*at)->next;
    *at = one->next;
    if (self->end == &one->next)
        self->end = at;
    gather_free(one);
}

static void done_send(pmix_colls *self, uint32_t node, uint64_t ticket, int32_t status, refbuf *body)
{
    pmix_msg done = {.kind = PMIX_MSG_DONE, .status = status, .ticket = ticket, .body = body};

    self->up.send(self->up.owner, node, &done);
}

/* Replies to all contributors; frees the operation if no node is missing. */
static void gather_end(pmix_colls *self, gather *one, int32_t status)
{
    refbuf *body = NULL;

    if (status == PMIX_MSG_OK && one->data.used) {
        body = refbuf_copy(one->data.bytes + one->data.start, one->data.used);
        status = body ? PMIX_MSG_OK : PMIX_MSG_LARGE;
    }
    buffer_free(&one->data);
    one->status = status;
    one->deadline_ns = 0;
    for (uint32_t i = 0; i < self->map->node_count; i++) {
        if (one->at[i] != AT_COME)
            continue;
        one->at[i] = AT_ANSWERED;
        done_send(self, i, one->tickets[i], status, refbuf_acquire(body));
    }
    refbuf_release(body);
    if (!one->awaited)
        gather_unlink(self, one);
}

static uint32_t member_count(const pmix_colls *self, const gather *one)
{
    return one->count ? one->count : self->map->ranks;
}

static uint32_t member_of(const gather *one, uint32_t index)
{
    return one->count ? one->ranks[index] : index;
}

/* Marks the nodes with living members as awaited. */
static void nodes_await(pmix_colls *self, gather *one)
{
    for (uint32_t i = 0, n = member_count(self, one); i < n; i++) {
        uint32_t rank = member_of(one, i), node = self->map->node_of[rank];
        if (self->is_gone[rank] || one->at[node] != AT_NOBODY)
            continue;
        one->at[node] = AT_AWAITED;
        one->awaited++;
    }
}

static gather *gather_new(pmix_colls *self, uint32_t kind, uint32_t count, const uint32_t *ranks)
{
    gather *one = calloc(1, sizeof(*one));

    if (!one)
        return NULL;
    *one = (gather){.kind = kind, .count = count};
    one->ranks = malloc(count * sizeof(*ranks) + 1);
    one->at = calloc(self->map->node_count, 1);
    one->tickets = calloc(self->map->node_count, sizeof(*one->tickets));
    if (!one->ranks || !one->at || !one->tickets) {
        gather_free(one);
        return NULL;
    }
    memcpy(one->ranks, ranks, count * sizeof(*ranks));
    nodes_await(self, one);
    *self->end = one;
    self->end = &one->next;
    return one;
}

/* Returns the oldest operation of this kind and members that awaits the node. */
static gather *gather_find(const pmix_colls *self, uint32_t node, uint32_t kind, uint32_t count, const uint32_t *ranks)
{
    for (gather *one = self->first; one; one = one->next)
        if (one->kind == kind && one->count == count && one->at[node] == AT_AWAITED &&
            !memcmp(one->ranks, ranks, count * sizeof(*ranks)))
            return one;
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

static void gather_refuse(pmix_colls *self, gather *one)
{
    complain(0, "a fence of PMIx is refused: what its ranks put is more than %zu MiB, or than this machine has memory for",
             REFBUF_MAX >> 20);
    gather_end(self, one, PMIX_MSG_LARGE);
}

static void gather_add(pmix_colls *self, gather *one, uint32_t node, const pmix_msg *what, const unpack *data)
{
    uint64_t deadline = what->seconds ? weft_clock_ns() + what->seconds * 1000000000ull : 0;

    one->at[node] = AT_COME;
    one->tickets[node] = what->ticket;
    one->awaited--;
    if (one->status) {
        gather_end(self, one, one->status);
        return;
    }
    if (deadline && (!one->deadline_ns || deadline < one->deadline_ns))
        one->deadline_ns = deadline;
    if (deadline && (!self->soonest_ns || deadline < self->soonest_ns))
        self->soonest_ns = deadline;
    if (data->left > REFBUF_MAX - one->data.used || buffer_add(&one->data, data->at, data->left))
        gather_refuse(self, one);
    else if (!one->awaited)
        gather_end(self, one, PMIX_MSG_OK);
}

void pmix_colls_come(pmix_colls *self, uint32_t node, const pmix_msg *what)
{
    unpack from = {.at = what->body ? what->body->data : NULL, .left = what->body ? what->body->bytes : 0};
    uint32_t count, *ranks;

    int rc = members_read(self, &from, &count, &ranks);
    gather *one = rc ? NULL : gather_find(self, node, what->rank, count, ranks);
    if (!rc && !one)
        one = gather_new(self, what->rank, count, ranks);
    free(ranks);
    if (!one) {
        done_send(self, node, what->ticket, PMIX_MSG_UNABLE, NULL);
        return;
    }
    if (one->at[node] != AT_AWAITED) { /* its members have ended, or it has none, yet it contributes */
        one->at[node] = AT_AWAITED;
        one->awaited++;
    }
    gather_add(self, one, node, what, &from);
}

static bool has_members_at(const pmix_colls *self, const gather *one, uint32_t node)
{
    for (uint32_t i = 0, n = member_count(self, one); i < n; i++) {
        uint32_t rank = member_of(one, i);
        if (self->map->node_of[rank] == node && !self->is_gone[rank])
            return true;
    }
    return false;
}

void pmix_colls_gone(pmix_colls *self, uint32_t rank)
{
    uint32_t node = self->map->node_of[rank];

    self->is_gone[rank] = 1;
    for (gather *one = self->first, *next; one; one = next) {
        next = one->next;
        if (one->at[node] != AT_AWAITED || has_members_at(self, one, node))
            continue;
        one->at[node] = AT_NOBODY;
        if (!--one->awaited)
            gather_end(self, one, one->status);
    }
}

uint64_t pmix_colls_deadlines(pmix_colls *self, uint64_t now)
{
    if (!self->soonest_ns || now < self->soonest_ns)
        return self->soonest_ns;
    self->soonest_ns = 0;
    for (gather *one = self->first, *next; one; one = next) {
        next = one->next;
        if (one->deadline_ns && now >= one->deadline_ns)
            gather_end(self, one, PMIX_MSG_LATE);
        else if (one->deadline_ns && (!self->soonest_ns || one->deadline_ns < self->soonest_ns))
            self->soonest_ns = one->deadline_ns;
    }
    return self->soonest_ns;
}

void pmix_colls_close(pmix_colls *self)
{
    while (self->first)
        gather_unlink(self, self->first);
    free(self->is_gone);
    *self = (pmix_colls){0};
}
