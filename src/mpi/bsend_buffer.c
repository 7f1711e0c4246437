/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bsend_buffer: see bsend_buffer.h. A message takes exactly its bytes and MPI_BSEND_OVERHEAD, as in the model. Only messages lie in the
 * program's memory; their entries are allocated, so that a program which reuses that memory too early spoils messages and nothing else. A
 * message of an automatic buffer lies behind its entry. A completion marks an entry as sent inside a poll; the next call of the program
 * frees it.
 */
#include "mpi/bsend_buffer.h"

#include <mpi.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/status.h"
#include "type/pack.h"

#define ALIGN 8u

typedef struct entry {
    weft_list_link link; /* in buffer->entries, by address */
    weft_completion completion;
    weft_bsend_buffer *buffer;
    weft_req *req;
    weft_bsend_owner owner;
    uint64_t order;   /* number of the message */
    char *from, *end; /* its space in the program's memory; NULL: automatic */
    char *message;    /* at the first aligned address of its space, or behind the entry */
    bool is_sent;
} entry;
_Static_assert(ALIGN <= MPI_BSEND_OVERHEAD, "the alignment is part of the overhead that the program adds");

struct weft_bsend_buffer {
    char *base, *end; /* the program's memory; NULL: automatic */
    weft_list_link entries; /* not freed yet */
    weft_list_link *before; /* the latest message's entry, or the one before its place if it was freed; may be &entries */
    char *cursor;           /* end of the latest message */
    weft_list_link flushes; /* not done, oldest first */
    uint64_t order;         /* messages so far */
    uint32_t in_flight, sent; /* entries whose message is not sent; that wait to be freed */
    bool is_reaping, is_closed; /* is_closed: the buffer is freed when reaping ends */
    int rc;                 /* error of a message since the last flush */
};

/* Behind a request of kind FLUSH (req->extra). */
typedef struct flush {
    weft_req_ext ext;
    weft_list_link link;
    weft_req *req;
    uint64_t before; /* messages with lower numbers count */
    uint32_t left;
} flush;

weft_bsend_buffer *weft_bsend_buffer_open(void *base, uint64_t size)
{
    weft_bsend_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return NULL;
    buffer->base = base;
    buffer->end = base ? (char *)base + size : NULL;
    weft_list_init(&buffer->entries);
    weft_list_init(&buffer->flushes);
    buffer->before = &buffer->entries;
    buffer->cursor = buffer->base;
    return buffer;
}

void weft_bsend_buffer_close(weft_bsend_buffer *buffer)
{
    if (!buffer)
        return;
    buffer->is_closed = true;
    weft_bsend_buffer_reap(buffer);
}

uint64_t weft_bsend_buffer_size(const weft_bsend_buffer *buffer) { return (uint64_t)(buffer->end - buffer->base); }

void *weft_bsend_buffer_base(const weft_bsend_buffer *buffer) { return buffer->base; }

/* -- space -- */

static entry *entry_at(weft_list_link *link) { return weft_container(link, entry, link); }

/* First byte that is not free at or after the entry behind `link`. */
static char *limit_after(const weft_bsend_buffer *buffer, const weft_list_link *link)
{
    return link->next == &buffer->entries ? buffer->end : entry_at(link->next)->from;
}

static bool fits(const char *from, const char *to, uint64_t need) { return (uint64_t)(to - from) >= need; }

/* The place of the model, which becomes the latest message's. False: it has none. */
static bool advance(weft_bsend_buffer *buffer, uint64_t need)
{
    if (!fits(buffer->cursor, limit_after(buffer, buffer->before), need)) {
        if (!fits(buffer->base, limit_after(buffer, &buffer->entries), need))
            return false;
        buffer->before = &buffer->entries;
        buffer->cursor = buffer->base;
    }
    buffer->cursor += need;
    return true;
}

/* Any gap, where the model has none. */
static bool find_gap(weft_bsend_buffer *buffer, uint64_t need)
{
    for (weft_list_link *link = buffer->entries.next; link != &buffer->entries; link = link->next)
        if (fits(entry_at(link)->end, limit_after(buffer, link), need)) {
            buffer->before = link;
            buffer->cursor = entry_at(link)->end + need;
            return true;
        }
    return false;
}

/* NULL: no space, or no memory for the entry (*rc). */
static entry *place(weft_bsend_buffer *buffer, uint64_t need, int *rc)
{
    weft_list_link *before;
    entry *made = malloc(sizeof *made + (buffer->base ? 0 : need));
    *rc = made ? WEFT_E_BUFFER : WEFT_E_NOMEM;
    if (made && buffer->base && !advance(buffer, need) && !find_gap(buffer, need)) {
        free(made);
        return NULL;
    }
    if (!made)
        return NULL;
    made->from = buffer->base ? buffer->cursor - need : NULL;
    made->end = buffer->cursor;
    made->message = buffer->base ? (char *)weft_round_up((uintptr_t)made->from, ALIGN) : (char *)(made + 1);
    made->is_sent = false;
    made->buffer = buffer;
    before = buffer->before;
    made->link.prev = before;
    made->link.next = before->next;
    before->next->prev = &made->link;
    before->next = &made->link;
    buffer->before = &made->link;
    return made;
}

static void remove_entry(entry *self)
{
    weft_bsend_buffer *buffer = self->buffer;
    if (buffer->before == &self->link)
        buffer->before = self->link.prev;
    weft_list_remove(&self->link);
    free(self);
}

void weft_bsend_buffer_reap(weft_bsend_buffer *buffer)
{
    if (buffer->is_reaping) /* a dropped owner closes the buffer */
        return;
    buffer->is_reaping = true;
    for (weft_list_link *link = buffer->entries.next, *next; buffer->sent && link != &buffer->entries; link = next) {
        entry *self = entry_at(link);
        weft_bsend_owner owner = self->owner;
        next = link->next;
        if (!self->is_sent)
            continue;
        buffer->sent--;
        weft_req_free(self->req);
        remove_entry(self);
        owner.drop(owner.object);
    }
    buffer->is_reaping = false;
    if (buffer->is_closed)
        free(buffer);
}

static int no_space(const weft_bsend_buffer *buffer, uint64_t bytes, int rc)
{
    uint64_t used = 0, size = weft_bsend_buffer_size(buffer);
    for (weft_list_link *link = buffer->entries.next; link != &buffer->entries; link = link->next)
        used += (uint64_t)(entry_at(link)->end - entry_at(link)->from);
    if (rc == WEFT_E_NOMEM)
        return weft_fail(rc, "no memory to buffer a message of %llu bytes", (unsigned long long)bytes);
    return weft_fail(WEFT_E_BUFFER,
                     "the message needs %llu bytes in the attached buffer (%llu and MPI_BSEND_OVERHEAD, %d); of its %llu bytes %llu are "
                     "free (%u messages are not sent yet). Attach a larger buffer, or flush it",
                     (unsigned long long)(bytes + MPI_BSEND_OVERHEAD), (unsigned long long)bytes, MPI_BSEND_OVERHEAD,
                     (unsigned long long)size, (unsigned long long)(size - used), buffer->in_flight);
}

/* -- messages -- */

static void end_flush(weft_bsend_buffer *buffer, flush *self)
{
    int rc = buffer->rc;
    buffer->rc = 0;
    weft_list_remove(&self->link);
    weft_req_end(self->req, rc);
}

/* Runs inside a poll. */
static void on_sent(weft_completion *completion)
{
    entry *self = weft_container(completion, entry, completion);
    weft_bsend_buffer *buffer = self->buffer;
    self->is_sent = true;
    buffer->in_flight--;
    buffer->sent++;
    buffer->rc = weft_status_worse(buffer->rc, completion->rc);
    for (weft_list_link *link = buffer->flushes.next, *next; link != &buffer->flushes; link = next) {
        flush *one = weft_container(link, flush, link);
        next = link->next;
        if (self->order < one->before && --one->left == 0)
            end_flush(buffer, one);
    }
}

static entry *place_or_poll(weft_bsend_buffer *buffer, weft_worker *worker, uint64_t need, int *rc)
{
    entry *self;
    weft_bsend_buffer_reap(buffer);
    self = place(buffer, need, rc);
    if (!self && buffer->in_flight) {
        weft_worker_poll(worker);
        weft_bsend_buffer_reap(buffer);
        self = place(buffer, need, rc);
    }
    return self;
}

int weft_bsend_buffer_send(weft_bsend_buffer *buffer, weft_chan *chan, int dst, int tag, const void *buf, uint64_t count,
                           const weft_type *type, weft_bsend_owner owner, bool *is_kept)
{
    uint64_t bytes = count * (uint64_t)type->size, need = bytes + MPI_BSEND_OVERHEAD;
    entry *self;
    int rc;
    *is_kept = false;
    if (buffer->base && need > weft_bsend_buffer_size(buffer))
        return no_space(buffer, bytes, WEFT_E_BUFFER);
    rc = weft_send_try(buf, count, type, dst, tag, chan, false);
    if (rc <= 0) {
        if (buffer->base) { /* its place is that of a message sent at once, so that later ones find the model's */
            weft_bsend_buffer_reap(buffer);
            advance(buffer, need);
        }
        return rc;
    }
    self = place_or_poll(buffer, chan->worker, need, &rc);
    if (!self)
        return no_space(buffer, bytes, rc);
    weft_pack(type, buf, count, 0, bytes, self->message);
    rc = weft_isend(chan, dst, tag, self->message, bytes, weft_type_of(MPI_BYTE), WEFT_SEND_STANDARD, &self->req);
    if (rc || self->req->is_done) {
        if (!rc) {
            rc = self->req->rc;
            weft_req_free(self->req);
        }
        remove_entry(self);
        return rc;
    }
    self->completion = (weft_completion){.left = 1, .open = on_sent};
    self->req->completion = &self->completion;
    self->owner = owner;
    self->order = buffer->order++;
    buffer->in_flight++;
    *is_kept = true;
    return 0;
}

static void free_flush(weft_req *req) { free(req->extra); }

int weft_bsend_buffer_flush(weft_bsend_buffer *buffer, weft_worker *worker, weft_req **out)
{
    flush *self = malloc(sizeof *self);
    weft_req *req = self ? weft_req_new(worker, WEFT_REQ_FLUSH) : NULL;
    if (!req) {
        free(self);
        return weft_fail(WEFT_E_NOMEM, "no memory for a request");
    }
    req->extra = self;
    *self = (flush){.ext = {.free = free_flush}, .req = req, .before = buffer->order, .left = buffer->in_flight};
    weft_list_append(&buffer->flushes, &self->link);
    if (!self->left)
        end_flush(buffer, self);
    *out = req;
    return 0;
}
