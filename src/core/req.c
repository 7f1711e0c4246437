/* SPDX-License-Identifier: BSD-3-Clause
 *
 * req: pool of requests. See req.h. Invariant: a slab stays one for the life of the process, also after its worker has closed, so the magic
 * of a freed handle can be read and is detected as invalid.
 */
#include "core/req.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/object.h"
#include "base/slot_table.h"
#include "base/status.h"
#include "core/world_type.h"

#define SLAB_REQS 64

/* Each request is a pair of lines, which the hardware prefetches together. */
typedef struct req_cell {
    _Alignas(WEFT_REQ_BYTES) weft_req req;
} req_cell;
_Static_assert(WEFT_REQ_BYTES == 2 * WEFT_LINE, "a request is two lines");

typedef struct slab {
    struct slab *next; /* in worker->slabs, or in spare_slabs */
    uint32_t index;    /* in slabs */
    req_cell cells[SLAB_REQS];
} slab;

/* Of the process: all slabs, by the numbers of their requests, and those that no worker uses. */
static pthread_mutex_t slabs_lock = PTHREAD_MUTEX_INITIALIZER;
static weft_slot_table slabs;
static slab *spare_slabs;

/* Requires slabs_lock. */
static slab *slab_make(void)
{
    bool is_full = slabs.used >= (INT32_MAX - WEFT_REQ_NUMBER_MIN) / SLAB_REQS;
    slab *made = is_full ? NULL : aligned_alloc(_Alignof(slab), sizeof *made);
    if (!made)
        return NULL;
    memset(made, 0, sizeof *made);
    made->index = weft_slot_add(&slabs, made);
    if (made->index != UINT32_MAX)
        return made;
    free(made);
    return NULL;
}

static slab *slab_acquire(void)
{
    slab *got;
    pthread_mutex_lock(&slabs_lock);
    got = spare_slabs;
    if (got)
        spare_slabs = got->next;
    else
        got = slab_make();
    pthread_mutex_unlock(&slabs_lock);
    return got;
}

static int grow(weft_worker *worker)
{
    slab *more = slab_acquire();
    if (!more)
        return WEFT_E_NOMEM;
    memset(more->cells, 0, sizeof more->cells);
    more->next = worker->slabs;
    worker->slabs = more;
    for (int i = 0; i < SLAB_REQS; i++) {
        more->cells[i].req.number = WEFT_REQ_NUMBER_MIN + (int32_t)more->index * SLAB_REQS + i;
        weft_list_append(&worker->free_reqs, &more->cells[i].req.link);
    }
    return 0;
}

void weft_req_close(weft_worker *worker)
{
    slab *one;
    pthread_mutex_lock(&slabs_lock);
    while ((one = worker->slabs)) {
        worker->slabs = one->next;
        for (int i = 0; i < SLAB_REQS; i++)
            one->cells[i].req.magic = 0;
        one->next = spare_slabs;
        spare_slabs = one;
    }
    pthread_mutex_unlock(&slabs_lock);
}

weft_req *weft_req_by_number(int number)
{
    uint32_t index = (uint32_t)(number - WEFT_REQ_NUMBER_MIN);
    slab *in = number < WEFT_REQ_NUMBER_MIN ? NULL : weft_slot_get(&slabs, index / SLAB_REQS);
    weft_req *req = in ? &in->cells[index % SLAB_REQS].req : NULL;
    return req && req->magic == WEFT_REQ_MAGIC ? req : NULL;
}

weft_req *weft_req_new(weft_worker *worker, enum weft_req_kind kind)
{
    weft_list_link *link = worker->free_reqs.next;
    weft_req *req;
    if (weft_unlikely(link == &worker->free_reqs)) {
        if (grow(worker))
            return NULL;
        link = worker->free_reqs.next;
    }
    worker->free_reqs.next = link->next; /* LIFO: the latest freed is in the cache */
    link->next->prev = &worker->free_reqs;
    req = weft_container(link, weft_req, link);
    req->magic = WEFT_REQ_MAGIC;
    req->kind = (uint8_t)kind;
    req->is_done = req->is_persistent = req->is_active = req->is_static = req->is_posted = false;
    req->rc = 0;
    req->completion = NULL;
    req->worker = worker;
    req->chan = NULL;
    req->type = NULL;
    req->recv_info = (weft_recv_info){0};
    return req; /* extra and has_rndv are zero: set by grow and weft_req_free */
}

void weft_req_free(weft_req *req)
{
    weft_worker *worker = req->worker;
    if (req->is_static)
        return;
    if (weft_unlikely(req->extra != NULL)) {
        weft_language_copy *copies = ((weft_req_ext *)req->extra)->copies;
        ((weft_req_ext *)req->extra)->free(req);
        weft_language_copies_free(copies);
        req->extra = NULL;
    }
    req->magic = 0;
    req->link.prev = &worker->free_reqs;
    req->link.next = worker->free_reqs.next;
    worker->free_reqs.next->prev = &req->link;
    worker->free_reqs.next = &req->link;
}

void weft_req_each(weft_worker *worker, void (*each)(weft_req *req))
{
    for (slab *one = worker->slabs; one; one = one->next)
        for (int i = 0; i < SLAB_REQS; i++)
            if (one->cells[i].req.magic == WEFT_REQ_MAGIC)
                each(&one->cells[i].req);
}

void weft_req_notify(weft_req *req)
{
    weft_completion *completion = req->completion;
    weft_worker *worker = req->worker;
    if (completion) {
        if (weft_unlikely(req->rc))
            completion->rc = weft_status_worse(completion->rc, req->rc);
        if (--completion->left == 0)
            completion->open(completion);
    }
    if (weft_unlikely(worker->is_asleep))
        worker->world->sleep_ops->wake(worker);
}
