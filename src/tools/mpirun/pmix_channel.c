/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_channel: see pmix_channel.h. The first fragment of a message starts with its fields and body length; a fragment holds data of one
 * message.
 */
#include "tools/mpirun/pmix_channel.h"

#include <stdlib.h>
#include <string.h>

struct pmix_channel_item {
    struct pmix_channel_item *next;
    pmix_msg what;
    bool is_begun;
};

static size_t body_bytes(const pmix_msg *what)
{
    return what->body ? what->body->bytes : 0;
}

int pmix_channel_queue(pmix_channel *self, const pmix_msg *what)
{
    struct pmix_channel_item *item = calloc(1, sizeof(*item));

    if (!item) {
        refbuf_release(what->body);
        return -1;
    }
    item->what = *what;
    if (self->last)
        self->last->next = item;
    else
        self->first = item;
    self->last = item;
    self->waiting += body_bytes(what);
    return 0;
}

static void first_drop(pmix_channel *self)
{
    struct pmix_channel_item *item = self->first;

    self->first = item->next;
    if (!self->first)
        self->last = NULL;
    self->waiting -= body_bytes(&item->what);
    self->sent = 0;
    refbuf_release(item->what.body);
    free(item);
}

static void numbers_pack(const pmix_msg *what, pack *to)
{
    pack_u32(to, what->kind);
    pack_u32(to, (uint32_t)what->status);
    pack_u64(to, what->ticket);
    pack_u32(to, what->rank);
    pack_u32(to, what->seconds);
    pack_u64(to, body_bytes(what));
}

void pmix_channel_flush(pmix_channel *self, ctrl_conn *to)
{
    const ctrl_conn *way = ctrl_conn_carrier(to);

    while (self->first && self->lent < PMIX_CHANNEL_WINDOW && way->fd >= 0 && !way->trouble && !way->is_deaf) {
        struct pmix_channel_item *item = self->first;
        size_t left = body_bytes(&item->what) - self->sent, count = left < PMIX_FRAGMENT_MAX ? left : PMIX_FRAGMENT_MAX;
        pack piece = {0};
        if (!item->is_begun)
            numbers_pack(&item->what, &piece);
        item->is_begun = true;
        if (count)
            pack_bytes(&piece, item->what.body->data + self->sent, count);
        self->sent += count;
        self->lent += piece.bytes.used;
        pack_send(&piece, to, CTRL_FRAGMENT);
        if (count == left)
            first_drop(self);
    }
}

static int pmix_msg_begin(pmix_channel *self, unpack *from)
{
    pmix_msg *what = &self->coming;

    *what = (pmix_msg){.kind = unpack_u32(from)};
    what->status = (int32_t)unpack_u32(from);
    what->ticket = unpack_u64(from);
    what->rank = unpack_u32(from);
    what->seconds = unpack_u32(from);
    uint64_t bytes = unpack_u64(from);
    if (from->has_failed || bytes > REFBUF_MAX)
        return -1;
    self->came = 0;
    what->body = bytes ? refbuf_alloc(bytes) : NULL; /* pages not written yet take no memory */
    return bytes && !what->body ? -1 : 0;
}

int pmix_channel_recv(pmix_channel *self, ctrl_conn *from, const ctrl_frame *frame, pmix_msg *whole)
{
    unpack piece = {.at = frame->body, .left = frame->bytes};

    self->owed += frame->bytes;
    if (self->owed >= PMIX_CHANNEL_WINDOW / 4 || !self->is_coming) {
        pack body = {0};
        pack_u32(&body, (uint32_t)self->owed);
        self->owed = 0;
        pack_send(&body, from, CTRL_FRAGMENT_ACK);
    }
    if ((!self->is_coming && pmix_msg_begin(self, &piece)) || piece.left > body_bytes(&self->coming) - self->came) {
        refbuf_release(self->coming.body);
        self->coming.body = NULL;
        ctrl_conn_carrier(from)->trouble = "what PMIx servers exchange does not fit this machine's memory, or is not understood";
        return -1;
    }
    self->is_coming = true;
    if (piece.left)
        memcpy(self->coming.body->data + self->came, piece.at, piece.left);
    self->came += piece.left;
    if (self->came < body_bytes(&self->coming))
        return 0;
    *whole = self->coming;
    self->coming.body = NULL;
    self->is_coming = false;
    return 1;
}

void pmix_channel_acked(pmix_channel *self, size_t bytes)
{
    self->lent -= bytes < self->lent ? bytes : self->lent;
}

void pmix_channel_close(pmix_channel *self)
{
    while (self->first)
        first_drop(self);
    refbuf_release(self->coming.body);
    *self = (pmix_channel){0};
}
