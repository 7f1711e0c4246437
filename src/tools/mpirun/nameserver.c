/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nameserver: see nameserver.h. Items are in a list: programs publish few names.
 */
#include "tools/mpirun/nameserver.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/mpirun/ctrl_pack.h"

typedef struct nameserver_item {
    struct nameserver_item *next;
    uint32_t rank, range, persist;
    refbuf *value;
    char key[];
} nameserver_item;

/* A lookup that waits until all of its keys are published. */
typedef struct nameserver_wait {
    struct nameserver_wait *next;
    uint32_t node, rank;
    uint64_t ticket, deadline_ns;
    refbuf *request;
} nameserver_wait;

void nameserver_open(nameserver *self, const map *map, const pmix_msg_sender *up)
{
    *self = (nameserver){.map = map, .up = *up};
}

static void reply(nameserver *self, uint32_t node, uint64_t ticket, int32_t status, refbuf *body)
{
    pmix_msg done = {.kind = PMIX_MSG_DONE, .status = status, .ticket = ticket, .body = body};

    self->up.send(self->up.owner, node, &done);
}

static unpack unpack_of(const refbuf *body)
{
    return (unpack){.at = body ? body->data : NULL, .left = body ? body->bytes : 0};
}

static bool is_visible_to(const nameserver *self, const nameserver_item *item, uint32_t rank)
{
    return item->range == NAMESERVER_RANGE_JOB || item->rank == rank ||
           (item->range == NAMESERVER_RANGE_NODE && self->map->node_of[item->rank] == self->map->node_of[rank]);
}

static nameserver_item *item_find(const nameserver *self, const char *key, uint32_t rank)
{
    nameserver_item *item = self->items;

    while (item && (strcmp(item->key, key) || !is_visible_to(self, item, rank)))
        item = item->next;
    return item;
}

static void item_remove(nameserver *self, nameserver_item *item)
{
    nameserver_item **at = &self->items;

    while (*at != item)
        at = &(*at)->next;
    *at = item->next;
    self->bytes -= sizeof(*item) + strlen(item->key) + item->value->bytes;
    refbuf_release(item->value);
    free(item);
}

static int item_add(nameserver *self, uint32_t rank, uint32_t range, uint32_t persist, const char *key, const char *value, size_t bytes)
{
    size_t whole = sizeof(nameserver_item) + strlen(key) + bytes;
    nameserver_item *item = whole <= NAMESERVER_MAX - self->bytes ? malloc(sizeof(*item) + strlen(key) + 1) : NULL;

    if (item && !(item->value = refbuf_copy(value, bytes))) {
        free(item);
        item = NULL;
    }
    if (!item)
        return PMIX_MSG_NO_MEMORY;
    item->rank = rank;
    item->range = range;
    item->persist = persist;
    strcpy(item->key, key);
    item->next = self->items;
    self->items = item;
    self->bytes += whole;
    return PMIX_MSG_OK;
}

/* Publishes the items; is_trial: only checks them. */
static int on_publish(nameserver *self, const pmix_msg *what, bool is_trial)
{
    unpack from = unpack_of(what->body);
    uint32_t range = unpack_u32(&from), persist = unpack_u32(&from), count = unpack_u32(&from);
    size_t bytes = self->bytes;

    for (uint32_t i = 0; i < count; i++) {
        const char *key = unpack_text(&from);
        uint32_t size = unpack_u32(&from);
        if (from.has_failed || !key || size > from.left)
            return PMIX_MSG_INVALID;
        bytes += sizeof(nameserver_item) + strlen(key) + size;
        if (is_trial && (item_find(self, key, what->rank) || bytes > NAMESERVER_MAX))
            return bytes > NAMESERVER_MAX ? PMIX_MSG_NO_MEMORY : PMIX_MSG_DUPLICATE;
        int rc = is_trial ? PMIX_MSG_OK : item_add(self, what->rank, range, persist, key, from.at, size);
        if (rc)
            return rc;
        from.at += size;
        from.left -= size;
    }
    return from.has_failed ? PMIX_MSG_INVALID : PMIX_MSG_OK;
}

/* Packs the items found, up to what one body holds: a request may name a long item many times. Returns how many keys are missing;
 * UINT32_MAX: malformed request. */
static uint32_t found_pack(const nameserver *self, const refbuf *request, uint32_t rank, uint32_t *found, pack *to)
{
    unpack from = unpack_of(request);
    uint32_t missing = 0, count;

    unpack_u32(&from);
    count = unpack_u32(&from);
    *found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *key = unpack_text(&from);
        if (from.has_failed || !key)
            return UINT32_MAX;
        to->has_failed |= to->bytes.used > REFBUF_MAX;
        if (to->has_failed)
            break;
        const nameserver_item *item = item_find(self, key, rank);
        if (!item) {
            missing++;
            continue;
        }
        ++*found;
        pack_u32(to, item->rank);
        pack_text(to, key);
        pack_u32(to, (uint32_t)item->value->bytes);
        pack_bytes(to, item->value->data, item->value->bytes);
    }
    return missing;
}

static void read_once_remove(nameserver *self, const refbuf *request, uint32_t rank)
{
    unpack from = unpack_of(request);

    unpack_u32(&from);
    for (uint32_t i = 0, count = unpack_u32(&from); i < count; i++) {
        const char *key = unpack_text(&from);
        nameserver_item *item = key ? item_find(self, key, rank) : NULL;
        if (item && item->persist == NAMESERVER_PERSIST_FIRST_READ)
            item_remove(self, item);
    }
}

/* Replies to a lookup unless it must wait. True if it has replied. */
static bool lookup_try(nameserver *self, uint32_t node, uint32_t rank, uint64_t ticket, const refbuf *request)
{
    pack items = {0}, whole = {0};
    uint32_t found, missing = found_pack(self, request, rank, &found, &items);
    unpack from = unpack_of(request);
    bool waits = unpack_u32(&from);

    if (missing == UINT32_MAX) {
        reply(self, node, ticket, PMIX_MSG_INVALID, NULL);
    } else if (waits && missing) {
        buffer_free(&items.bytes);
        return false;
    } else if (!found) {
        reply(self, node, ticket, PMIX_MSG_NOT_FOUND, NULL);
    } else {
        pack_u32(&whole, found);
        pack_bytes(&whole, items.bytes.bytes, items.bytes.used);
        refbuf *body = whole.has_failed || items.has_failed ? NULL : refbuf_copy(whole.bytes.bytes, whole.bytes.used);
        reply(self, node, ticket, body ? PMIX_MSG_OK : PMIX_MSG_NO_MEMORY, body);
        read_once_remove(self, request, rank);
    }
    buffer_free(&items.bytes);
    buffer_free(&whole.bytes);
    return true;
}

static void wait_remove(nameserver_wait **at)
{
    nameserver_wait *one = *at;

    *at = one->next;
    refbuf_release(one->request);
    free(one);
}

static void waits_retry(nameserver *self)
{
    for (nameserver_wait **at = &self->waits; *at;)
        if (lookup_try(self, (*at)->node, (*at)->rank, (*at)->ticket, (*at)->request))
            wait_remove(at);
        else
            at = &(*at)->next;
}

static void on_lookup(nameserver *self, uint32_t node, const pmix_msg *what)
{
    if (lookup_try(self, node, what->rank, what->ticket, what->body))
        return;
    nameserver_wait *one = malloc(sizeof(*one));
    if (!one) {
        reply(self, node, what->ticket, PMIX_MSG_NO_MEMORY, NULL);
        return;
    }
    *one = (nameserver_wait){.next = self->waits, .node = node, .rank = what->rank, .ticket = what->ticket,
                              .request = refbuf_acquire(what->body)};
    if (what->seconds)
        one->deadline_ns = weft_clock_ns() + what->seconds * 1000000000ull;
    self->waits = one;
}

static int on_unpublish(nameserver *self, const pmix_msg *what)
{
    unpack from = unpack_of(what->body);
    uint32_t count = unpack_u32(&from);

    for (uint32_t i = 0; i < count; i++) {
        const char *key = unpack_text(&from);
        if (from.has_failed || !key)
            return PMIX_MSG_INVALID;
        for (nameserver_item *item = self->items, *next; item; item = next) {
            next = item->next;
            if (item->rank == what->rank && !strcmp(item->key, key))
                item_remove(self, item);
        }
    }
    for (nameserver_item *item = self->items, *next; !count && item; item = next) {
        next = item->next;
        if (item->rank == what->rank)
            item_remove(self, item);
    }
    return from.has_failed ? PMIX_MSG_INVALID : PMIX_MSG_OK;
}

void nameserver_handle(nameserver *self, uint32_t node, const pmix_msg *what)
{
    int rc;

    if (what->rank >= self->map->ranks) {
        reply(self, node, what->ticket, PMIX_MSG_INVALID, NULL);
    } else if (what->kind == PMIX_MSG_LOOKUP) {
        on_lookup(self, node, what);
    } else if (what->kind == PMIX_MSG_UNPUBLISH) {
        reply(self, node, what->ticket, on_unpublish(self, what), NULL);
    } else {
        rc = on_publish(self, what, true);
        reply(self, node, what->ticket, rc ? rc : on_publish(self, what, false), NULL);
        waits_retry(self);
    }
}

void nameserver_rank_ended(nameserver *self, uint32_t rank)
{
    for (nameserver_item *item = self->items, *next; item; item = next) {
        next = item->next;
        if (item->rank == rank && item->persist == NAMESERVER_PERSIST_RANK)
            item_remove(self, item);
    }
    for (nameserver_wait **at = &self->waits; *at;)
        if ((*at)->rank == rank)
            wait_remove(at);
        else
            at = &(*at)->next;
}

uint64_t nameserver_deadlines(nameserver *self, uint64_t now)
{
    uint64_t next = 0;

    for (nameserver_wait **at = &self->waits; *at;) {
        uint64_t deadline = (*at)->deadline_ns;
        if (deadline && now >= deadline) {
            reply(self, (*at)->node, (*at)->ticket, PMIX_MSG_TIMEOUT, NULL);
            wait_remove(at);
            continue;
        }
        if (deadline && (!next || deadline < next))
            next = deadline;
        at = &(*at)->next;
    }
    return next;
}

void nameserver_close(nameserver *self)
{
    while (self->items)
        item_remove(self, self->items);
    while (self->waits)
        wait_remove(&self->waits);
}
