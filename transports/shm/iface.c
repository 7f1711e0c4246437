/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface: opening, closing, eps, memory and the operations table of the shared-memory transport. The fast path is in send.c and recv.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "mem/membarrier.h"
#include "mem/segment_heap.h"
#include "mem/wakeup_sock.h"
#include "transports/shm/cma.h"
#include "transports/shm/shm.h"

static const char *shm_unavailable(void) { return NULL; }

static void shm_close(weft_iface *iface);

static int shm_iface_open(const weft_iface_params *params, weft_iface **out)
{
    const weft_segment *segment = params->segment;
    shm_iface *shm = calloc(1, sizeof *shm);
    int rc = WEFT_E_NOMEM;
    if (!shm)
        return weft_fail(rc, "no memory for the shared-memory iface");
    shm->iface = (weft_iface){.ops = &weft_shm_ops, .owner = params->owner, .callbacks = params->callbacks,
                            .caps = {.frame_max = WEFT_BULK_CHUNK, .chunk = WEFT_BULK_CHUNK, .chunk_alone = WEFT_RING_BODY_MAX,
                                     .frag = WEFT_SHM_FRAG, .frags_max = WEFT_SHM_FRAGS_MAX,
                                     .inline_max = WEFT_RING_INLINE,
                                     .rma_max = UINT64_MAX / 2, .rma_fragment = 256u << 10, .latency_ns = 100, .mbyte_per_s = 10000,
                                     .get = true,
                                     .put = true,
                                     .prompt = true, .ordered = true, .share = true, .outlives_sender = true, .may_rest = true}};
    shm->store[WEFT_HOT].worth = WEFT_SHM_WORTH_HOT;
    shm->store[WEFT_COLD].worth = WEFT_SHM_WORTH_COLD;
    shm->store[WEFT_COLD].trial = WEFT_SHM_TRIAL_COLD;
    shm->wants_fd = params->wants_fd;
    shm->wakeup_fd = -1;
    shm->segment = segment;
    shm->local = (uint32_t)params->local_rank;
    shm->ranks = segment->hdr->ranks;
    shm->page = weft_segment_rank(segment, shm->local);
    shm->hot = calloc(shm->ranks, sizeof *shm->hot);
    shm->eps = calloc(shm->ranks, sizeof *shm->eps);
    shm->has_left = calloc(shm->ranks, sizeof *shm->has_left);
    shm->deferred = calloc((shm->ranks + 63) / 64, sizeof *shm->deferred);
    shm->now_ns = params->now_ns ? params->now_ns : weft_clock_ns;
    if (shm->hot && shm->eps && shm->has_left && shm->deferred)
        rc = weft_bulk_open(segment, shm->local, params->shares_cpus, &shm->bulk);
    if (rc) {
        shm_close(&shm->iface);
        return weft_fail(rc, "no memory for the shared-memory iface of %u ranks", segment->hdr->ranks);
    }
    shm->ring_flags = WEFT_RING_OPEN;
    if (!weft_membarrier_register())
        shm->ring_flags |= WEFT_RING_FENCE;
    atomic_store_explicit(&shm->page->membarrier_ok, !(shm->ring_flags & WEFT_RING_FENCE), memory_order_relaxed);
    atomic_store_explicit(&shm->page->job_rank, params->self.rank, memory_order_relaxed);
    weft_cma_show(shm->page);
    if (shm->wants_fd && (shm->wakeup_fd = weft_wakeup_sock_open(&shm->page->sock)) < 0)
        weft_log_info("no wakeup socket (%s): waits beside a network sleep 2 ms at a time", strerror(errno));
    *out = &shm->iface;
    return 0;
}

static void free_ep(shm_iface *shm, shm_ep *ep)
{
    if (ep->out.ring)
        weft_segment_drop(ep->out.ring, WEFT_RING_BYTES);
    if (ep->in.ring)
        weft_segment_drop(ep->in.ring, WEFT_RING_BYTES);
    if (ep->bulk)
        weft_segment_drop(ep->bulk, sizeof *ep->bulk);
    free(ep->out.bodies);
    weft_bulk_leave(&shm->bulk, &ep->share);
    shm->eps[ep->local] = NULL;
    free(ep);
}

static void shm_close(weft_iface *iface)
{
    shm_iface *shm = (shm_iface *)iface;
    for (uint32_t i = 0; shm->eps && i < shm->ranks; i++)
        if (shm->eps[i])
            free_ep(shm, shm->eps[i]);
    weft_bulk_close(&shm->bulk);
    if (shm->wakeup_fd >= 0)
        weft_wakeup_sock_close(&shm->page->sock, shm->wakeup_fd);
    free(shm->scratch);
    free(shm->eps);
    free(shm->has_left);
    free(shm->deferred);
    free(shm->hot);
    free(shm);
}

static int shm_get_addr(weft_iface *iface, void *addr, size_t *bytes)
{
    if (*bytes < sizeof(uint32_t))
        return WEFT_E_NOSPACE;
    *bytes = sizeof(uint32_t);
    memcpy(addr, &((shm_iface *)iface)->local, sizeof(uint32_t));
    return 0;
}

/* The address is the peer's node-local rank. Sends of a rank to itself use the self iface. */
static int shm_ep_open(weft_iface *iface, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **out)
{
    shm_iface *shm = (shm_iface *)iface;
    shm_ep *ep;
    uint32_t local;
    (void)proc_id;
    if (bytes != sizeof local)
        return WEFT_E_UNSUPPORTED;
    memcpy(&local, addr, sizeof local);
    if (local >= shm->ranks)
        return WEFT_E_UNSUPPORTED;
    ep = shm->eps[local];
    if (ep) { /* opened again: its rings continue */
        ep->ep.peer = peer;
        *out = &ep->ep;
        return 0;
    }
    ep = aligned_alloc(WEFT_LINE, weft_round_up(sizeof *ep, WEFT_LINE));
    if (!ep)
        return weft_fail(WEFT_E_NOMEM, "no memory for an ep to local rank %u", local);
    memset(ep, 0, sizeof *ep);
    ep->ep = (weft_ep){.iface = iface, .peer = peer};
    ep->local = local;
    ep->page = weft_segment_rank(shm->segment, local);
    ep->announce_flags = weft_ring_announce_flags(!(shm->ring_flags & WEFT_RING_FENCE));
    shm->eps[local] = ep;
    shm->has_left[local] = false;
    *out = &ep->ep;
    return 0;
}

/* Sent frames stay in the segment, which outlives the sender, so none is lost. Only chunks in use show that a frame was not read. */
static int shm_ep_close(weft_iface *iface, weft_ep *generic)
{
    shm_iface *shm = (shm_iface *)iface;
    shm_ep *ep = (shm_ep *)generic;
    for (uint32_t i = 0; ep->is_hot && i < shm->hot_count; i++)
        if (shm->hot[i] == ep) {
            shm->hot[i] = shm->hot[--shm->hot_count];
            break;
        }
    shm->has_left[ep->local] = true;
    free_ep(shm, ep);
    return 0;
}

/* -- memory -- */

static int shm_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr)
{
    (void)iface;
    if (kind != WEFT_MEMORY_HOST)
        return weft_fail(WEFT_E_UNSUPPORTED, "shared memory supports host memory only");
    *mr = (weft_mr){.addr = addr, .bytes = bytes, .rights = rights}; /* CMA needs no key */
    return 0;
}

static int shm_mr_dereg(weft_iface *iface, weft_mr *mr)
{
    (void)iface;
    (void)mr;
    return 0;
}

/* Shared memory: a block of the segment's heap, this page first. Its handle is its offset in the segment. */
typedef struct shared_head {
    uint64_t magic;         /* SHARED_MAGIC while the block is in use */
    uint64_t bytes;         /* of the block, this page included */
    _Atomic uint32_t users; /* processes that have it mapped; the last one returns the block */
} shared_head;

#define SHARED_MAGIC 0x5765667453686172u

static int shared_make(const weft_segment *segment, uint64_t bytes, weft_shared *shared)
{
    uint64_t all, offset;
    void *view;
    int rc;

    if (bytes == 0 || __builtin_add_overflow(weft_round_up(bytes, WEFT_PAGE), WEFT_PAGE, &all) || all < bytes)
        return weft_fail(WEFT_E_ARG, "%llu bytes cannot be shared", (unsigned long long)bytes);
    rc = weft_segment_heap_take(segment, all, &offset);
    if (rc)
        return rc;
    rc = weft_segment_view(segment, offset, all, &view);
    if (rc) {
        weft_segment_heap_return(segment, offset, all);
        return rc;
    }
    *(shared_head *)view = (shared_head){.magic = SHARED_MAGIC, .bytes = all, .users = 1};
    *shared = (weft_shared){.addr = (char *)view + WEFT_PAGE, .bytes = all - WEFT_PAGE, .handle = offset};
    return 0;
}

/* Counts this process as a user, unless the last one has left. */
static bool shared_join(shared_head *head)
{
    uint32_t users = atomic_load_explicit(&head->users, memory_order_relaxed);

    while (users && !atomic_compare_exchange_weak_explicit(&head->users, &users, users + 1, memory_order_acquire, memory_order_relaxed))
        ;
    return users > 0;
}

static int shared_attach(const weft_segment *segment, uint64_t handle, weft_shared *shared)
{
    const weft_segment_hdr *hdr = segment->hdr;
    bool is_inside = hdr->heap_bytes && handle >= hdr->heap && (handle - hdr->heap) % hdr->heap_unit == 0 &&
                     handle - hdr->heap < hdr->heap_bytes;
    shared_head *head;
    void *view;
    uint64_t bytes = 0;
    int rc = is_inside ? weft_segment_view(segment, handle, WEFT_PAGE, &view) : WEFT_OK;

    if (rc)
        return rc;
    if (is_inside) {
        head = view;
        bytes = head->magic == SHARED_MAGIC ? head->bytes : 0;
        weft_segment_drop(head, WEFT_PAGE);
    }
    if (!bytes)
        return weft_fail(WEFT_E_KEY, "no shared memory has the handle %llu", (unsigned long long)handle);
    rc = weft_segment_view(segment, handle, bytes, &view);
    if (rc)
        return rc;
    if (!shared_join(view)) {
        weft_segment_drop(view, bytes);
        return weft_fail(WEFT_E_KEY, "the shared memory with the handle %llu was given back", (unsigned long long)handle);
    }
    *shared = (weft_shared){.addr = (char *)view + WEFT_PAGE, .bytes = bytes - WEFT_PAGE, .handle = handle};
    return 0;
}

static int shm_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    const weft_segment *segment = ((shm_iface *)iface)->segment;

    return shared->handle ? shared_attach(segment, shared->handle, shared) : shared_make(segment, bytes, shared);
}

static int shm_unshare(weft_iface *iface, weft_shared *shared)
{
    const weft_segment *segment = ((shm_iface *)iface)->segment;
    shared_head *head = (shared_head *)((char *)shared->addr - WEFT_PAGE);
    uint64_t bytes = shared->bytes + WEFT_PAGE;
    bool is_last = atomic_fetch_sub_explicit(&head->users, 1, memory_order_acq_rel) == 1;

    weft_segment_drop(head, bytes);
    if (is_last)
        weft_segment_heap_return(segment, shared->handle, bytes);
    *shared = (weft_shared){0};
    return 0;
}

/* -- single copies -- */

static bool shm_can_rma(weft_iface *iface, weft_ep *generic)
{
    shm_ep *ep = (shm_ep *)generic;
    (void)iface;
    if (ep->cma == WEFT_CMA_UNKNOWN)
        ep->cma = weft_cma_works(ep->page) ? WEFT_CMA_WORKS : WEFT_CMA_REFUSED;
    return ep->cma == WEFT_CMA_WORKS;
}

static int shm_get(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    int rc;
    if (!shm_can_rma(iface, ep))
        return weft_fail(WEFT_E_UNSUPPORTED, "the kernel denies reading the memory of this local rank");
    rc = weft_cma_get(atomic_load_explicit(&((shm_ep *)ep)->page->pid, memory_order_relaxed), rma->local, rma->remote, rma->bytes);
    if (rc == 0 && rma->done)
        iface->callbacks->done(iface->owner, rma->done, 0);
    return rc;
}

static int shm_put(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    int rc;
    if (!shm_can_rma(iface, ep) || rma->notify)
        return weft_fail(WEFT_E_UNSUPPORTED, "the kernel denies writing the memory of this local rank");
    rc = weft_cma_put(atomic_load_explicit(&((shm_ep *)ep)->page->pid, memory_order_relaxed), rma->local, rma->remote, rma->bytes);
    if (rc == 0 && rma->done)
        iface->callbacks->done(iface->owner, rma->done, 0);
    return rc;
}

static int shm_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic)
{
    (void)iface;
    (void)ep;
    (void)atomic;
    return weft_fail(WEFT_E_UNSUPPORTED, "the kernel has no atomics on another process's memory");
}

/* get and put complete before they return. */
static int shm_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done)
{
    (void)ep;
    (void)remotely;
    if (done)
        iface->callbacks->done(iface->owner, done, 0);
    return 0;
}

const weft_iface_ops weft_shm_ops = {
    .name = "shm", .unavailable = shm_unavailable, .describe = weft_describe_nothing, .open = shm_iface_open, .close = shm_close,
    .get_addr = shm_get_addr,
    .ep_open = shm_ep_open,
    .ep_close = shm_ep_close, .mr_reg = shm_mr_reg, .mr_dereg = shm_mr_dereg, .share = shm_share, .unshare = shm_unshare,
    .send = weft_shm_send,
    .can_rma = shm_can_rma, .get = shm_get, .put = shm_put, .amo = shm_amo, .flush = shm_flush, .poll = weft_shm_poll,
    .arm = weft_shm_arm, .disarm = weft_shm_disarm,
};
