/* SPDX-License-Identifier: BSD-3-Clause
 *
 * board: see board.h. A list: programs publish a handful of names (ports of MPI_Publish_name, a server's address).
 */
#include "tools/mpirun/board.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

typedef struct board_item {
    struct board_item *next;
    uint32_t rank, range, keep;
    parcel *value;
    char key[];
} board_item;

/* A look-up that waits for all of its keys. */
typedef struct board_wait {
    struct board_wait *next;
    uint32_t node, rank;
    uint64_t ticket, deadline_ns;
    parcel *asked;
} board_wait;

void board_open(board *self, const map *map, const hub_up *up)
{
    *self = (board){.map = map, .up = *up};
}

static void answer(board *self, uint32_t node, uint64_t ticket, int32_t status, parcel *body)
{
    note done = {.kind = NOTE_DONE, .status = status, .ticket = ticket, .body = body};

    self->up.send(self->up.owner, node, &done);
}

static unpack reader_of(const parcel *body)
{
    return (unpack){.at = body ? body->data : NULL, .left = body ? body->bytes : 0};
}

static bool is_seen_by(const board *self, const board_item *item, uint32_t rank)
{
    return item->range == BOARD_ALL || item->rank == rank ||
           (item->range == BOARD_NODE && self->map->node_of[item->rank] == self->map->node_of[rank]);
}

static board_item *item_find(const board *self, const char *key, uint32_t rank)
{
    board_item *item = self->items;

    while (item && (strcmp(item->key, key) || !is_seen_by(self, item, rank)))
        item = item->next;
    return item;
}

static void item_drop(board *self, board_item *item)
{
    board_item **at = &self->items;

    while (*at != item)
        at = &(*at)->next;
    *at = item->next;
    self->bytes -= sizeof(*item) + strlen(item->key) + item->value->bytes;
    parcel_drop(item->value);
    free(item);
}

static int item_add(board *self, uint32_t rank, uint32_t range, uint32_t keep, const char *key, const char *value, size_t bytes)
{
    size_t whole = sizeof(board_item) + strlen(key) + bytes;
    board_item *item = whole <= BOARD_MAX - self->bytes ? malloc(sizeof(*item) + strlen(key) + 1) : NULL;

    if (item && !(item->value = parcel_of(value, bytes))) {
        free(item);
        item = NULL;
    }
    if (!item)
        return NOTE_LARGE;
    item->rank = rank;
    item->range = range;
    item->keep = keep;
    strcpy(item->key, key);
    item->next = self->items;
    self->items = item;
    self->bytes += whole;
    return NOTE_OK;
}

/* Goes over what is published; with `is_trial` nothing changes. */
static int publish(board *self, const note *what, bool is_trial)
{
    unpack from = reader_of(what->body);
    uint32_t range = unpack_u32(&from), keep = unpack_u32(&from), count = unpack_u32(&from);
    size_t bytes = self->bytes;

    for (uint32_t i = 0; i < count; i++) {
        const char *key = unpack_text(&from);
        uint32_t size = unpack_u32(&from);
        if (from.has_failed || !key || size > from.left)
            return NOTE_UNABLE;
        bytes += sizeof(board_item) + strlen(key) + size;
        if (is_trial && (item_find(self, key, what->rank) || bytes > BOARD_MAX))
            return bytes > BOARD_MAX ? NOTE_LARGE : NOTE_TWICE;
        int rc = is_trial ? NOTE_OK : item_add(self, what->rank, range, keep, key, from.at, size);
        if (rc)
            return rc;
        from.at += size;
        from.left -= size;
    }
    return from.has_failed ? NOTE_UNABLE : NOTE_OK;
}

/* What is there of the keys that were asked for. How many are not; UINT32_MAX: not understood. */
static uint32_t found_pack(const board *self, const parcel *asked, uint32_t rank, uint32_t *found, pack *to)
{
    unpack from = reader_of(asked);
    uint32_t missing = 0, count;

    unpack_u32(&from);
    count = unpack_u32(&from);
    *found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *key = unpack_text(&from);
        if (from.has_failed || !key)
            return UINT32_MAX;
        const board_item *item = item_find(self, key, rank);
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

static void once_drop(board *self, const parcel *asked, uint32_t rank)
{
    unpack from = reader_of(asked);

    unpack_u32(&from);
    for (uint32_t i = 0, count = unpack_u32(&from); i < count; i++) {
        const char *key = unpack_text(&from);
        board_item *item = key ? item_find(self, key, rank) : NULL;
        if (item && item->keep == BOARD_ONCE)
            item_drop(self, item);
    }
}

/* Answers a look-up if it can be answered. Whether it was. */
static bool look(board *self, uint32_t node, uint32_t rank, uint64_t ticket, const parcel *asked)
{
    pack items = {0}, whole = {0};
    uint32_t found, missing = found_pack(self, asked, rank, &found, &items);
    unpack from = reader_of(asked);
    bool waits = unpack_u32(&from);

    if (missing == UINT32_MAX) {
        answer(self, node, ticket, NOTE_UNABLE, NULL);
    } else if (waits && missing) {
        buffer_free(&items.bytes);
        return false;
    } else if (!found) {
        answer(self, node, ticket, NOTE_NONE, NULL);
    } else {
        pack_u32(&whole, found);
        pack_bytes(&whole, items.bytes.bytes, items.bytes.used);
        parcel *body = whole.has_failed || items.has_failed ? NULL : parcel_of(whole.bytes.bytes, whole.bytes.used);
        answer(self, node, ticket, body ? NOTE_OK : NOTE_LARGE, body);
        once_drop(self, asked, rank);
    }
    buffer_free(&items.bytes);
    buffer_free(&whole.bytes);
    return true;
}

static void wait_drop(board_wait **at)
{
    board_wait *one = *at;

    *at = one->next;
    parcel_drop(one->asked);
    free(one);
}

static void waits_look(board *self)
{
    for (board_wait **at = &self->waits; *at;)
        if (look(self, (*at)->node, (*at)->rank, (*at)->ticket, (*at)->asked))
            wait_drop(at);
        else
            at = &(*at)->next;
}

static void lookup(board *self, uint32_t node, const note *what)
{
    if (look(self, node, what->rank, what->ticket, what->body))
        return;
    board_wait *one = malloc(sizeof(*one));
    if (!one) {
        answer(self, node, what->ticket, NOTE_LARGE, NULL);
        return;
    }
    *one = (board_wait){.next = self->waits, .node = node, .rank = what->rank, .ticket = what->ticket, .asked = parcel_hold(what->body)};
    if (what->seconds)
        one->deadline_ns = weft_clock_ns() + what->seconds * 1000000000ull;
    self->waits = one;
}

static int unpublish(board *self, const note *what)
{
    unpack from = reader_of(what->body);
    uint32_t count = unpack_u32(&from);

    for (uint32_t i = 0; i < count; i++) {
        const char *key = unpack_text(&from);
        if (from.has_failed || !key)
            return NOTE_UNABLE;
        for (board_item *item = self->items, *next; item; item = next) {
            next = item->next;
            if (item->rank == what->rank && !strcmp(item->key, key))
                item_drop(self, item);
        }
    }
    for (board_item *item = self->items, *next; !count && item; item = next) {
        next = item->next;
        if (item->rank == what->rank)
            item_drop(self, item);
    }
    return from.has_failed ? NOTE_UNABLE : NOTE_OK;
}

void board_take(board *self, uint32_t node, const note *what)
{
    int rc;

    if (what->rank >= self->map->ranks) {
        answer(self, node, what->ticket, NOTE_UNABLE, NULL);
    } else if (what->kind == NOTE_LOOKUP) {
        lookup(self, node, what);
    } else if (what->kind == NOTE_UNPUBLISH) {
        answer(self, node, what->ticket, unpublish(self, what), NULL);
    } else {
        rc = publish(self, what, true);
        answer(self, node, what->ticket, rc ? rc : publish(self, what, false), NULL);
        waits_look(self);
    }
}

void board_gone(board *self, uint32_t rank)
{
    for (board_item *item = self->items, *next; item; item = next) {
        next = item->next;
        if (item->rank == rank && item->keep == BOARD_WHILE_ALIVE)
            item_drop(self, item);
    }
    for (board_wait **at = &self->waits; *at;)
        if ((*at)->rank == rank)
            wait_drop(at);
        else
            at = &(*at)->next;
}

uint64_t board_deadlines(board *self, uint64_t now)
{
    uint64_t next = 0;

    for (board_wait **at = &self->waits; *at;) {
        uint64_t deadline = (*at)->deadline_ns;
        if (deadline && now >= deadline) {
            answer(self, (*at)->node, (*at)->ticket, NOTE_LATE, NULL);
            wait_drop(at);
            continue;
        }
        if (deadline && (!next || deadline < next))
            next = deadline;
        at = &(*at)->next;
    }
    return next;
}

void board_close(board *self)
{
    while (self->items)
        item_drop(self, self->items);
    while (self->waits)
        wait_drop(&self->waits);
}
