/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_downcalls: messages of the head to a node's PMIx server: replies to its clients' requests, requests for data of its ranks
 * (PMIX_MSG_DMODEX_REQ), events of other nodes.
 * Replies are passed on by libpmix's thread (pmix_srv_defer), because libpmix may drop a client only there.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/mpirun/pmix_srv_internal.h"

typedef struct pmix_dmodex {
    struct pmix_dmodex *next;
    pmix_srv *host;
    uint64_t ticket;
    uint32_t rank;
    bool is_answered; /* replied here; a later reply of libpmix is ignored */
} pmix_dmodex;

static pmix_status_t status_of(int32_t status)
{
    switch (status) {
    case PMIX_MSG_OK:
        return PMIX_SUCCESS;
    case PMIX_MSG_NOT_FOUND:
        return PMIX_ERR_NOT_FOUND;
    case PMIX_MSG_TIMEOUT:
        return PMIX_ERR_TIMEOUT;
    case PMIX_MSG_NO_MEMORY:
        return PMIX_ERR_OUT_OF_RESOURCE;
    case PMIX_MSG_DUPLICATE:
        return PMIX_ERR_DUPLICATE_KEY;
    default:
        return PMIX_ERR_NOT_SUPPORTED;
    }
}

/* Unpacks `count` items from bytes packed by another server. */
static pmix_status_t items_unpack(pmix_srv *self, const char *bytes, size_t size, void *to, int32_t count, pmix_data_type_t type)
{
    pmix_byte_object_t object = {.bytes = malloc(size + 1), .size = size};
    pmix_data_buffer_t packed = {0};
    int32_t got = count;

    if (!object.bytes)
        return PMIX_ERR_NOMEM;
    memcpy(object.bytes, bytes, size);
    pmix_status_t status = self->pmix.data_load(&packed, &object); /* takes over the bytes */
    if (status == PMIX_SUCCESS)
        status = self->pmix.data_unpack(NULL, &packed, to, &got, type);
    free(packed.base_ptr ? packed.base_ptr : object.bytes);
    return status != PMIX_SUCCESS || got == count ? status : PMIX_ERR_UNPACK_FAILURE;
}

/* Frees the types usual in publish and notify; nested arrays are left until exit. */
static void value_free(pmix_value_t *value)
{
    if (value->type == PMIX_STRING)
        free(value->data.string);
    else if (value->type == PMIX_BYTE_OBJECT)
        free(value->data.bo.bytes);
    else if (value->type == PMIX_PROC)
        free(value->data.proc);
}

static void lookup_reply(pmix_srv *self, const pmix_request *one)
{
    unpack from = {.at = one->done.body->data, .left = one->done.body->bytes};
    uint32_t count = unpack_u32(&from);
    pmix_pdata_t *found = calloc(count, sizeof(*found));
    pmix_status_t status = found ? PMIX_SUCCESS : PMIX_ERR_NOMEM;

    for (uint32_t i = 0; i < count && status == PMIX_SUCCESS; i++) {
        memcpy(found[i].proc.nspace, self->job, sizeof(found[i].proc.nspace));
        found[i].proc.rank = unpack_u32(&from);
        const char *key = unpack_text(&from);
        uint32_t size = unpack_u32(&from);
        if (from.has_failed || !key || size > from.left) {
            status = PMIX_ERR_UNPACK_FAILURE;
            break;
        }
        snprintf(found[i].key, sizeof(found[i].key), "%s", key);
        status = items_unpack(self, from.at, size, &found[i].value, 1, PMIX_VALUE);
        from.at += size;
        from.left -= size;
    }
    one->ended.lookup(status, found, status == PMIX_SUCCESS ? count : 0, one->data);
    for (uint32_t i = 0; found && i < count; i++)
        value_free(&found[i].value);
    free(found);
}

static void body_release(void *data)
{
    refbuf_release(data);
}

static void request_complete(pmix_status_t ignored, void *data)
{
    pmix_request *one = data;
    pmix_status_t status = status_of(one->done.status);
    refbuf *body = one->done.body;

    (void)ignored;
    if (one->kind == PMIX_REQUEST_OP) {
        if (one->ended.op)
            one->ended.op(status, one->data);
    } else if (one->kind == PMIX_REQUEST_LOOKUP) {
        if (status == PMIX_SUCCESS && body)
            lookup_reply(pmix_srv_current, one);
        else
            one->ended.lookup(status, NULL, 0, one->data);
    } else if (one->ended.modex) {
        one->ended.modex(status, body ? body->data : NULL, body ? body->bytes : 0, one->data, body ? body_release : NULL, body);
        body = NULL; /* libpmix calls body_release */
    }
    refbuf_release(body);
    free(one);
}

static void on_done(pmix_srv *self, const pmix_msg *what)
{
    pthread_mutex_lock(&self->lock);
    pmix_request *one = id_table_remove(&self->requests, what->ticket);
    pthread_mutex_unlock(&self->lock);
    if (!one) {
        refbuf_release(what->body);
        return;
    }
    one->done = *what;
    pmix_srv_defer(self, request_complete, one);
}

static void dmodex_reply(pmix_srv *self, uint64_t ticket, int32_t status, refbuf *body)
{
    pmix_msg found = {.kind = PMIX_MSG_DMODEX_RESP, .ticket = ticket, .status = status, .body = body};

    pmix_srv_send(self, &found);
}

/* Requires self->lock. */
static void dmodex_unlink(pmix_srv *self, pmix_dmodex *one)
{
    pmix_dmodex **at = &self->dmodexes;

    while (*at && *at != one)
        at = &(*at)->next;
    if (*at)
        *at = one->next;
}

static void on_dmodex_data(pmix_status_t status, char *bytes, size_t size, void *data)
{
    pmix_dmodex *one = data;
    pmix_srv *self = one->host;

    pthread_mutex_lock(&self->lock);
    dmodex_unlink(self, one);
    bool is_late = one->is_answered;
    pthread_mutex_unlock(&self->lock);
    if (!is_late) {
        refbuf *body = status == PMIX_SUCCESS ? refbuf_copy(bytes, size) : NULL;
        int32_t reply = status != PMIX_SUCCESS ? PMIX_MSG_NOT_FOUND : body ? PMIX_MSG_OK : PMIX_MSG_NO_MEMORY;
        dmodex_reply(self, one->ticket, reply, body);
    }
    free(one);
}

/* Runs after libpmix has served what ended ranks have put: fails the requests still open for such ranks. */
static void dmodex_fail_ended(pmix_status_t status, void *data)
{
    pmix_srv *self = data;
    pmix_dmodex *one;

    (void)status;
    do {
        uint64_t ticket = 0;
        pthread_mutex_lock(&self->lock);
        for (one = self->dmodexes; one && (one->is_answered || !(self->rank_bits[one->rank] & PMIX_RANK_HAS_ENDED));)
            one = one->next;
        if (one) {
            one->is_answered = true;
            ticket = one->ticket;
        }
        pthread_mutex_unlock(&self->lock);
        if (ticket)
            dmodex_reply(self, ticket, PMIX_MSG_NOT_FOUND, NULL);
    } while (one);
}

static void on_dmodex_req(pmix_srv *self, const pmix_msg *what)
{
    pmix_dmodex *one = what->rank < self->ranks ? calloc(1, sizeof(*one)) : NULL;
    pmix_proc_t proc = {.rank = what->rank};

    if (!one) {
        dmodex_reply(self, what->ticket, PMIX_MSG_NOT_FOUND, NULL);
        return;
    }
    memcpy(proc.nspace, self->job, sizeof(proc.nspace));
    *one = (pmix_dmodex){.host = self, .ticket = what->ticket, .rank = what->rank};
    pthread_mutex_lock(&self->lock);
    one->next = self->dmodexes;
    self->dmodexes = one;
    bool is_gone = self->rank_bits[what->rank] & PMIX_RANK_HAS_ENDED;
    pthread_mutex_unlock(&self->lock);
    pmix_status_t status = self->pmix.dmodex_request(&proc, on_dmodex_data, one);
    if (status != PMIX_SUCCESS)
        on_dmodex_data(status, NULL, 0, one);
    else if (is_gone)
        pmix_srv_defer(self, dmodex_fail_ended, self);
}

void pmix_downcalls_close(pmix_srv *self)
{
    while (self->dmodexes) {
        pmix_dmodex *one = self->dmodexes;
        self->dmodexes = one->next;
        free(one);
    }
}

typedef struct event {
    size_t count;
    pmix_info_t info[];
} event;

static void event_free(pmix_status_t status, void *data)
{
    event *one = data;

    (void)status;
    for (size_t i = 0; i < one->count; i++)
        value_free(&one->info[i].value);
    free(one);
}

static void on_event(pmix_srv *self, const pmix_msg *what)
{
    unpack from = {.at = what->body ? what->body->data : NULL, .left = what->body ? what->body->bytes : 0};
    uint32_t range = unpack_u32(&from), count = unpack_u32(&from);
    pmix_proc_t source = {.rank = what->rank};

    if (from.has_failed || count > from.left)
        return;
    event *one = calloc(1, sizeof(*one) + (count + 1) * sizeof(*one->info));
    if (!one)
        return;
    one->count = count;
    pmix_status_t status = count ? items_unpack(self, from.at, from.left, one->info, (int32_t)count, PMIX_INFO) : PMIX_SUCCESS;
    pmix_info_t *mark = &one->info[count];
    snprintf(mark->key, sizeof(mark->key), "%s", PMIX_RELAYED);
    mark->value.type = PMIX_BOOL;
    mark->value.data.flag = true;
    memcpy(source.nspace, self->job, sizeof(source.nspace));
    if (status == PMIX_SUCCESS)
        status = self->pmix.notify_event(what->status, &source, (pmix_data_range_t)range, one->info, count + 1, event_free, one);
    if (status != PMIX_SUCCESS)
        event_free(status, one);
}

bool pmix_srv_handle(pmix_srv *self, const pmix_msg *what, pmix_msg *answer)
{
    if (!self) {
        refbuf_release(what->body);
        *answer = (pmix_msg){.kind = PMIX_MSG_DMODEX_RESP, .ticket = what->ticket, .status = PMIX_MSG_NOT_FOUND};
        return what->kind == PMIX_MSG_DMODEX_REQ;
    }
    if (what->kind == PMIX_MSG_DONE) {
        on_done(self, what);
        return false;
    }
    if (what->kind == PMIX_MSG_DMODEX_REQ)
        on_dmodex_req(self, what);
    else if (what->kind == PMIX_MSG_EVENT)
        on_event(self, what);
    refbuf_release(what->body);
    return false;
}

bool pmix_srv_rank_ended(pmix_srv *self, uint32_t rank)
{
    pmix_msg gone = {.kind = PMIX_MSG_RANK_ENDED, .rank = rank};

    pthread_mutex_lock(&self->lock);
    bool was_in = self->rank_bits[rank] & PMIX_RANK_IS_CONNECTED, is_awaited = false;
    self->rank_bits[rank] = PMIX_RANK_HAS_ENDED;
    for (pmix_dmodex *one = self->dmodexes; one; one = one->next)
        is_awaited |= one->rank == rank;
    pthread_mutex_unlock(&self->lock);
    if (is_awaited)
        pmix_srv_defer(self, dmodex_fail_ended, self);
    pmix_srv_send(self, &gone);
    return was_in;
}
