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
    self->queued_bytes += body_bytes(what);
    return 0;
}

static void first_remove(pmix_channel *self)
{
    struct pmix_channel_item *item = self->first;

    self->first = item->next;
    if (!self->first)
        self->last = NULL;
    self->queued_bytes -= body_bytes(&item->what);
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
    const ctrl_conn *conn = ctrl_conn_carrier(to);

    while (self->first && self->in_flight < PMIX_CHANNEL_WINDOW && conn->fd >= 0 && !conn->error && !conn->has_send_failed) {
        struct pmix_channel_item *item = self->first;
        size_t left = body_bytes(&item->what) - self->sent, count = left < PMIX_FRAGMENT_MAX ? left : PMIX_FRAGMENT_MAX;
        pack fragment = {0};
        if (!item->is_begun)
            numbers_pack(&item->what, &fragment);
        item->is_begun = true;
        if (count)
            pack_bytes(&fragment, item->what.body->data + self->sent, count);
        self->sent += count;
        self->in_flight += fragment.bytes.used;
        pack_send(&fragment, to, CTRL_FRAGMENT);
        if (count == left)
            first_remove(self);
    }
}

static int pmix_msg_begin(pmix_channel *self, unpack *from)
{
    pmix_msg *what = &self->incoming;

    *what = (pmix_msg){.kind = unpack_u32(from)};
    what->status = (int32_t)unpack_u32(from);
    what->ticket = unpack_u64(from);
    what->rank = unpack_u32(from);
    what->seconds = unpack_u32(from);
    uint64_t bytes = unpack_u64(from);
    if (from->has_failed || bytes > REFBUF_MAX)
        return -1;
    self->received = 0;
    what->body = bytes ? refbuf_alloc(bytes) : NULL; /* pages not written yet take no memory */
    return bytes && !what->body ? -1 : 0;
}

int pmix_channel_recv(pmix_channel *self, ctrl_conn *from, const ctrl_frame *frame, pmix_msg *whole)
{
    unpack fragment = {.at = frame->body, .left = frame->bytes};

    self->unacked += frame->bytes;
    if (self->unacked >= PMIX_CHANNEL_WINDOW / 4 || !self->is_receiving) {
        pack body = {0};
        pack_u32(&body, (uint32_t)self->unacked);
        self->unacked = 0;
        pack_send(&body, from, CTRL_FRAGMENT_ACK);
    }
    if ((!self->is_receiving && pmix_msg_begin(self, &fragment)) || fragment.left > body_bytes(&self->incoming) - self->received) {
        refbuf_release(self->incoming.body);
        self->incoming.body = NULL;
        ctrl_conn_carrier(from)->error = "a message between PMIx servers is malformed, or out of memory";
        return -1;
    }
    self->is_receiving = true;
    if (fragment.left)
        memcpy(self->incoming.body->data + self->received, fragment.at, fragment.left);
    self->received += fragment.left;
    if (self->received < body_bytes(&self->incoming))
        return 0;
    *whole = self->incoming;
    self->incoming.body = NULL;
    self->is_receiving = false;
    return 1;
}

void pmix_channel_acked(pmix_channel *self, size_t bytes)
{
    self->in_flight -= bytes < self->in_flight ? bytes : self->in_flight;
}

void pmix_channel_close(pmix_channel *self)
{
    while (self->first)
        first_remove(self);
    refbuf_release(self->incoming.body);
    *self = (pmix_channel){0};
}
