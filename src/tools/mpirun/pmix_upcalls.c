/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_upcalls: libpmix's upcalls: requests of local clients that need other nodes become messages to the head. Runs on libpmix's thread.
 * Data packed by libpmix are opaque here; those of a fence are concatenated, as PMIx specifies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/mpirun/nameserver.h"
#include "tools/mpirun/pmix_srv_internal.h"

#define EVENTS_MAX ((size_t)16 << 20) /* most bytes of queued events */

static bool is_of_job(const pmix_proc_t *proc)
{
    return !strncmp(proc->nspace, pmix_srv_current->job, sizeof(proc->nspace));
}

static uint32_t timeout_of(const pmix_info_t *info, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strncmp(info[i].key, PMIX_TIMEOUT, sizeof(info[i].key)) && info[i].value.data.integer > 0)
            return (uint32_t)info[i].value.data.integer;
    return 0;
}

static bool is_key(const pmix_info_t *info, const char *key)
{
    return !strncmp(info->key, key, sizeof(info->key));
}

/* Sends a message that gets a reply; takes over the body. */
static pmix_status_t request_send(const pmix_request *how, pmix_msg *what)
{
    pmix_srv *self = pmix_srv_current;
    pmix_request *one = malloc(sizeof(*one));

    if (one) {
        *one = *how;
        pthread_mutex_lock(&self->lock);
        what->ticket = id_table_add(&self->requests, one);
        pthread_mutex_unlock(&self->lock);
    }
    if (!one || !what->ticket) {
        free(one);
        refbuf_release(what->body);
        return PMIX_ERR_NOMEM;
    }
    if (pmix_srv_send(self, what) == 0)
        return PMIX_SUCCESS;
    pthread_mutex_lock(&self->lock);
    id_table_remove(&self->requests, what->ticket);
    pthread_mutex_unlock(&self->lock);
    free(one);
    return PMIX_ERR_NOMEM;
}

/* Returns the packed bytes as a body. */
static refbuf *refbuf_from_pack(pack *from)
{
    refbuf *body = from->has_failed ? NULL : refbuf_copy(from->bytes.bytes + from->bytes.start, from->bytes.used);

    buffer_free(&from->bytes);
    return body;
}

static int rank_compare(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return left < right ? -1 : left > right;
}

/* Packs the members; all ranks, by wildcard or no list, are 0 ranks. PMIX_SUCCESS, or an error. */
static pmix_status_t members_pack(const pmix_proc_t *procs, size_t count, pack *to)
{
    uint32_t *ranks = malloc(count * sizeof(*ranks) + 1), used = 0;
    bool is_all = count == 0;

    if (!ranks)
        return PMIX_ERR_NOMEM;
    for (size_t i = 0; i < count; i++) {
        if (!is_of_job(&procs[i]) || (procs[i].rank != PMIX_RANK_WILDCARD && procs[i].rank >= pmix_srv_current->ranks)) {
            free(ranks);
            return PMIX_ERR_NOT_SUPPORTED; /* another job: not supported */
        }
        is_all |= procs[i].rank == PMIX_RANK_WILDCARD;
        ranks[i] = procs[i].rank;
    }
    qsort(ranks, count, sizeof(*ranks), rank_compare);
    for (size_t i = 0; i < count; i++)
        if (!used || ranks[used - 1] != ranks[i])
            ranks[used++] = ranks[i];
    if (is_all || used == pmix_srv_current->ranks)
        used = 0;
    pack_u32(to, used);
    for (uint32_t i = 0; i < used; i++)
        pack_u32(to, ranks[i]);
    free(ranks);
    return PMIX_SUCCESS;
}

static pmix_status_t coll_start(enum pmix_coll_kind kind, const pmix_proc_t *procs, size_t count, const pmix_info_t *info,
                                size_t info_count, const char *bytes, size_t size, const pmix_request *how)
{
    pmix_msg what = {.kind = PMIX_MSG_COLL, .rank = kind, .seconds = timeout_of(info, info_count)};
    pack body = {0};

    pmix_status_t status = members_pack(procs, count, &body);
    if (status != PMIX_SUCCESS) {
        buffer_free(&body.bytes);
        return status;
    }
    if (size > REFBUF_MAX - body.bytes.used) {
        buffer_free(&body.bytes);
        pmix_srv_message(pmix_srv_current,
                         "a PMIx fence has failed: its ranks on one host have put %zu bytes, the limit of a job is %zu",
                         size, REFBUF_MAX);
        return PMIX_ERR_OUT_OF_RESOURCE;
    }
    pack_bytes(&body, bytes, size);
    what.body = refbuf_from_pack(&body);
    return what.body ? request_send(how, &what) : PMIX_ERR_NOMEM;
}

static pmix_status_t upcall_fence(const pmix_proc_t *procs, size_t count, const pmix_info_t *info, size_t info_count, char *bytes,
                                  size_t size, pmix_modex_cbfunc_t ended, void *data)
{
    pmix_request how = {.kind = PMIX_REQUEST_MODEX, .ended.modex = ended, .data = data};
    pmix_status_t status = coll_start(PMIX_COLL_FENCE, procs, count, info, info_count, bytes, size, &how);

    if (status == PMIX_SUCCESS)
        free(bytes); /* on failure they stay libpmix's */
    return status;
}

static pmix_status_t upcall_connect(const pmix_proc_t *procs, size_t count, const pmix_info_t *info, size_t info_count,
                                    pmix_op_cbfunc_t ended, void *data)
{
    pmix_request how = {.kind = PMIX_REQUEST_OP, .ended.op = ended, .data = data};

    return coll_start(PMIX_COLL_CONNECT, procs, count, info, info_count, NULL, 0, &how);
}

static pmix_status_t upcall_disconnect(const pmix_proc_t *procs, size_t count, const pmix_info_t *info, size_t info_count,
                                       pmix_op_cbfunc_t ended, void *data)
{
    pmix_request how = {.kind = PMIX_REQUEST_OP, .ended.op = ended, .data = data};

    return coll_start(PMIX_COLL_DISCONNECT, procs, count, info, info_count, NULL, 0, &how);
}

static pmix_status_t upcall_fetch(const pmix_proc_t *proc, const pmix_info_t *info, size_t info_count, pmix_modex_cbfunc_t ended,
                                  void *data)
{
    pmix_msg what = {.kind = PMIX_MSG_FETCH, .rank = proc->rank, .seconds = timeout_of(info, info_count)};
    pmix_request how = {.kind = PMIX_REQUEST_MODEX, .ended.modex = ended, .data = data};

    if (!is_of_job(proc) || proc->rank >= pmix_srv_current->ranks)
        return PMIX_ERR_NOT_FOUND;
    return request_send(&how, &what);
}

static pmix_status_t value_pack(const pmix_value_t *value, pack *to)
{
    pmix_data_buffer_t packed = {0};
    pmix_status_t status = pmix_srv_current->pmix.data_pack(NULL, &packed, (void *)value, 1, PMIX_VALUE);

    if (status == PMIX_SUCCESS) {
        pack_u32(to, (uint32_t)packed.bytes_used);
        pack_bytes(to, packed.base_ptr, packed.bytes_used);
    }
    free(packed.base_ptr);
    return status;
}

static enum nameserver_range range_of(const pmix_info_t *info)
{
    switch (info->value.data.range) {
    case PMIX_RANGE_LOCAL:
        return NAMESERVER_RANGE_NODE;
    case PMIX_RANGE_PROC_LOCAL:
        return NAMESERVER_RANGE_RANK;
    default: /* wider ranges are the job */
        return NAMESERVER_RANGE_JOB;
    }
}

static enum nameserver_persist persist_of(const pmix_info_t *info)
{
    switch (info->value.data.persist) {
    case PMIX_PERSIST_FIRST_READ:
        return NAMESERVER_PERSIST_FIRST_READ;
    case PMIX_PERSIST_PROC:
        return NAMESERVER_PERSIST_RANK;
    default:
        return NAMESERVER_PERSIST_JOB;
    }
}

/* True if info is a value to publish, not a directive. libpmix adds PMIX_USERID and PMIX_GRPID itself. */
static bool is_value(const pmix_info_t *info)
{
    return !is_key(info, PMIX_RANGE) && !is_key(info, PMIX_PERSISTENCE) && !is_key(info, PMIX_USERID) && !is_key(info, PMIX_GRPID) &&
           !is_key(info, PMIX_TIMEOUT);
}

static pmix_status_t upcall_publish(const pmix_proc_t *proc, const pmix_info_t *info, size_t count, pmix_op_cbfunc_t ended, void *data)
{
    pmix_msg what = {.kind = PMIX_MSG_PUBLISH, .rank = proc->rank};
    pmix_request how = {.kind = PMIX_REQUEST_OP, .ended.op = ended, .data = data};
    uint32_t range = NAMESERVER_RANGE_JOB, persist = NAMESERVER_PERSIST_JOB, values = 0;
    pmix_status_t status = PMIX_SUCCESS;
    pack body = {0};

    for (size_t i = 0; i < count; i++) {
        range = is_key(&info[i], PMIX_RANGE) ? range_of(&info[i]) : range;
        persist = is_key(&info[i], PMIX_PERSISTENCE) ? persist_of(&info[i]) : persist;
        values += is_value(&info[i]);
    }
    pack_u32(&body, range);
    pack_u32(&body, persist);
    pack_u32(&body, values);
    for (size_t i = 0; i < count && status == PMIX_SUCCESS; i++) {
        if (!is_value(&info[i]))
            continue;
        pack_text(&body, info[i].key);
        status = value_pack(&info[i].value, &body);
    }
    what.body = refbuf_from_pack(&body);
    if (status == PMIX_SUCCESS && what.body)
        return request_send(&how, &what);
    refbuf_release(what.body);
    return status == PMIX_SUCCESS ? PMIX_ERR_NOMEM : status;
}

static void keys_pack(char **keys, pack *to)
{
    uint32_t count = 0;

    while (keys && keys[count])
        count++;
    pack_u32(to, count);
    for (uint32_t i = 0; i < count; i++)
        pack_text(to, keys[i]);
}

static pmix_status_t upcall_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t *info, size_t count,
                                   pmix_lookup_cbfunc_t ended, void *data)
{
    pmix_msg what = {.kind = PMIX_MSG_LOOKUP, .rank = proc->rank, .seconds = timeout_of(info, count)};
    pmix_request how = {.kind = PMIX_REQUEST_LOOKUP, .ended.lookup = ended, .data = data};
    pack body = {0};
    uint32_t waits = 0;

    for (size_t i = 0; i < count; i++)
        waits |= is_key(&info[i], PMIX_WAIT);
    pack_u32(&body, waits);
    keys_pack(keys, &body);
    what.body = refbuf_from_pack(&body);
    return what.body ? request_send(&how, &what) : PMIX_ERR_NOMEM;
}

static pmix_status_t upcall_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t *info, size_t count,
                                      pmix_op_cbfunc_t ended, void *data)
{
    pmix_msg what = {.kind = PMIX_MSG_UNPUBLISH, .rank = proc->rank};
    pmix_request how = {.kind = PMIX_REQUEST_OP, .ended.op = ended, .data = data};
    pack body = {0};

    (void)info, (void)count;
    keys_pack(keys, &body);
    what.body = refbuf_from_pack(&body);
    return what.body ? request_send(&how, &what) : PMIX_ERR_NOMEM;
}

/* An event of a local client. libpmix notifies its own clients; events from other nodes or made by libpmix are not forwarded. */
static pmix_status_t upcall_event(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range, pmix_info_t info[],
                                  size_t count, pmix_op_cbfunc_t ended, void *data)
{
    pmix_srv *self = pmix_srv_current;
    pmix_msg what = {.kind = PMIX_MSG_EVENT, .status = code, .rank = source->rank};
    pmix_data_buffer_t packed = {0};
    pack body = {0};

    (void)ended, (void)data;
    for (size_t i = 0; i < count; i++)
        if (is_key(&info[i], PMIX_RELAYED))
            return PMIX_OPERATION_SUCCEEDED;
    bool is_on_node = range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_PROC_LOCAL || range == PMIX_RANGE_RM;
    if (is_on_node || !is_of_job(source) || source->rank >= self->ranks)
        return PMIX_OPERATION_SUCCEEDED;
    pmix_status_t status = count ? self->pmix.data_pack(NULL, &packed, info, (int32_t)count, PMIX_INFO) : PMIX_SUCCESS;
    pack_u32(&body, range);
    pack_u32(&body, (uint32_t)count);
    pack_bytes(&body, packed.base_ptr, packed.bytes_used);
    free(packed.base_ptr);
    what.body = refbuf_from_pack(&body);
    pthread_mutex_lock(&self->lock);
    bool is_full = what.body && self->out_events + what.body->bytes > EVENTS_MAX;
    pthread_mutex_unlock(&self->lock);
    if (status == PMIX_SUCCESS && what.body && !is_full)
        return pmix_srv_send(self, &what) ? PMIX_ERR_NOMEM : PMIX_OPERATION_SUCCEEDED;
    refbuf_release(what.body);
    return is_full ? PMIX_ERR_OUT_OF_RESOURCE : status == PMIX_SUCCESS ? PMIX_ERR_NOMEM : status;
}

static pmix_status_t upcall_events_register(pmix_status_t *codes, size_t count, const pmix_info_t info[], size_t info_count,
                                          pmix_op_cbfunc_t ended, void *data)
{
    (void)codes, (void)count, (void)info, (void)info_count, (void)ended, (void)data;
    return PMIX_OPERATION_SUCCEEDED; /* all events are sent to all nodes */
}

static pmix_status_t upcall_events_deregister(pmix_status_t *codes, size_t count, pmix_op_cbfunc_t ended, void *data)
{
    (void)codes, (void)count, (void)ended, (void)data;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t upcall_abort(const pmix_proc_t *proc, void *object, int code, const char text[], pmix_proc_t *procs,
                                  size_t n, pmix_op_cbfunc_t ended, void *data)
{
    pmix_srv *self = pmix_srv_current;

    (void)object, (void)procs, (void)n, (void)ended, (void)data;
    pthread_mutex_lock(&self->lock);
    self->has_aborted = true;
    self->abort_rank = (int)proc->rank;
    self->abort_code = code;
    snprintf(self->abort_text, sizeof(self->abort_text), "%s", text ? text : "");
    pthread_mutex_unlock(&self->lock);
    if (write(self->wake[1], "a", 1) < 0) { /* full: it is awake */
    }
    return PMIX_OPERATION_SUCCEEDED;
}

static void rank_mark(const pmix_proc_t *proc, bool is_in)
{
    pmix_srv *self = pmix_srv_current;

    if (!is_of_job(proc) || proc->rank >= self->ranks)
        return;
    pthread_mutex_lock(&self->lock);
    unsigned char bits = self->rank_bits[proc->rank] & (unsigned char)~PMIX_RANK_IS_CONNECTED;
    self->rank_bits[proc->rank] = (unsigned char)(bits | (is_in ? PMIX_RANK_IS_CONNECTED : 0));
    pthread_mutex_unlock(&self->lock);
}

static pmix_status_t upcall_connected(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t ended, void *data)
{
    (void)object, (void)ended, (void)data;
    rank_mark(proc, true);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t upcall_finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t ended, void *data)
{
    (void)object, (void)ended, (void)data;
    rank_mark(proc, false);
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t upcall_spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t info_count, const pmix_app_t apps[],
                                  size_t count, pmix_spawn_cbfunc_t ended, void *data)
{
    (void)info, (void)info_count, (void)ended, (void)data;
    if (!pmix_srv_current->has_reported_spawn)
        pmix_srv_message(pmix_srv_current,
                         "rank %u has called PMIx_Spawn (%s): this mpirun cannot start processes in a running job", proc->rank,
                         count && apps[0].cmd ? apps[0].cmd : "?");
    pmix_srv_current->has_reported_spawn = true;
    return PMIX_ERR_NOT_SUPPORTED;
}

pmix_server_module_t pmix_module = {
    .client_connected = upcall_connected,
    .client_finalized = upcall_finalized,
    .abort = upcall_abort,
    .fence_nb = upcall_fence,
    .direct_modex = upcall_fetch,
    .publish = upcall_publish,
    .lookup = upcall_lookup,
    .unpublish = upcall_unpublish,
    .spawn = upcall_spawn,
    .connect = upcall_connect,
    .disconnect = upcall_disconnect,
    .register_events = upcall_events_register,
    .deregister_events = upcall_events_deregister,
    .notify_event = upcall_event,
};
