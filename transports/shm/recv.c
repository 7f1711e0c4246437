/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recv: the receiver's half of shared memory: poll, the choice of rings to poll, arm. Called through transport/iface.h. The inbox of a
 * rank has one ring per sender, mapped and claimed at first use. The receiver polls the few rings that are open, and active_summary, where
 * senders of the other rings set their bit.
 * Ordering with a sleeper (Dekker): a sender stores its cell, then loads `asleep`; the receiver stores `asleep`, issues a membarrier for
 * all CPUs, then polls its rings.
 */
#include "transports/shm/shm.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "mem/membarrier.h"
#include "mem/wakeup_sock.h"

/* -- receiving -- */

/* The body's place does not exist: another process, or this one, has overwritten shared memory. Nothing of this sender can be read any
 * more. */
static __attribute__((noinline, cold)) int report_damage(const shm_iface *shm, shm_ep *ep, const weft_cell *cell)
{
    uint32_t place = cell->place, bytes = cell->hdr.bytes;
    if (!ep->is_lost) {
        ep->is_lost = true;
        shm->iface.callbacks->peer_failed(shm->iface.owner, ep->ep.peer,
                           weft_fail(WEFT_E_CORRUPT, "a frame of local rank %u in shared memory is damaged (%u bytes at place 0x%x): a "
                                     "process of this node wrote to wrong addresses", ep->local, bytes, place));
    }
    return WEFT_E_CORRUPT;
}

static __attribute__((noinline)) int find_chunk(shm_iface *shm, shm_ep *ep, const weft_cell *cell, const void **body)
{
    const weft_segment_hdr *hdr = shm->segment->hdr;
    uint32_t index = cell->place & WEFT_PLACE_INDEX;
    void *addr;
    if (weft_unlikely(index >= WEFT_BULK_COUNT || cell->hdr.bytes > WEFT_BULK_CHUNK))
        return report_damage(shm, ep, cell);
    if (weft_unlikely(!ep->bulk)) {
        if (weft_segment_view(shm->segment, hdr->pools + ep->local * hdr->pool_bytes, sizeof(weft_bulk), &addr))
            return WEFT_E_NOMEM;
        ep->bulk = addr;
    }
    *body = ep->bulk->chunks[index];
    return 0;
}

/* Space was released: wakes its owner if it sleeps for it. The sleeper's membarrier gives the order if both are registered. */
static inline void wake_waiter(const shm_iface *shm, shm_ep *ep, _Atomic uint32_t *wanted)
{
    if (weft_unlikely((shm->ring_flags & WEFT_RING_FENCE) || !atomic_load_explicit(&ep->page->membarrier_ok, memory_order_relaxed)))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
    if (weft_unlikely(atomic_load_explicit(wanted, memory_order_relaxed)))
        weft_page_wake_if_asleep(ep->page);
}

/* Hands over a body that the sender has timed, and reports how long it took. */
static __attribute__((noinline)) void recv_timed(const shm_iface *shm, shm_ep *ep, const weft_cell *cell, const void *body)
{
    enum weft_store kind = cell->place & WEFT_PLACE_PAST ? WEFT_STORE_PAST : WEFT_STORE_CACHED;
    _Atomic uint32_t *shown = &ep->in.ring->read_ps[weft_ring_warmth(cell->place)][kind];
    uint32_t ps = atomic_load_explicit(shown, memory_order_relaxed);
    uint64_t start = weft_clock_ns();
    shm->iface.callbacks->recv_frame(shm->iface.owner, ep->ep.peer, &cell->hdr, body);
    weft_nt_copy_learn(&ps, weft_clock_ns() - start, cell->hdr.bytes);
    atomic_store_explicit(shown, ps, memory_order_relaxed);
}

/* Delivers a frame whose body is in blocks or in a chunk. WEFT_E_NOMEM: it cannot be mapped now; WEFT_E_CORRUPT: it is damaged, also if it
 * says that it is in its cell and is too long for that. */
static __attribute__((noinline)) int deliver_placed(shm_iface *shm, shm_ep *ep, weft_cell *cell)
{
    uint32_t place = cell->place;
    bool is_chunk = place & WEFT_PLACE_CHUNK;
    const void *body;
    int rc;
    if (is_chunk) {
        if (weft_unlikely((rc = find_chunk(shm, ep, cell, &body))))
            return rc;
        weft_prefetch_write(&ep->bulk->flags[place & WEFT_PLACE_INDEX]);
    } else {
        if (weft_unlikely(!weft_ring_is_place(place, cell->hdr.bytes)))
            return report_damage(shm, ep, cell);
        body = weft_ring_body_at(ep->in.ring, place);
    }
    weft_ring_update_consumed(&ep->out, (uint32_t)cell->body[0]);
    if (weft_unlikely(place & WEFT_PLACE_TIMED))
        recv_timed(shm, ep, cell, body);
    else
        shm->iface.callbacks->recv_frame(shm->iface.owner, ep->ep.peer, &cell->hdr, body);
    if (is_chunk) {
        weft_bulk_free(ep->bulk, place & WEFT_PLACE_INDEX);
        wake_waiter(shm, ep, &ep->bulk->wanted);
    }
    return 0;
}

static __attribute__((noinline)) void ack_cells(const shm_iface *shm, shm_ep *ep)
{
    weft_ring_ack(&ep->in);
    wake_waiter(shm, ep, &ep->in.ring->wanted);
}

/* Defers a sender until retry_at_ns. Its frames stay in its ring, and its active bit is kept in deferred. */
static void defer(shm_iface *shm, uint32_t sender)
{
    shm->deferred[sender / 64] |= 1ull << sender % 64;
    if (shm->chores & SHM_RETRY)
        return;
    shm->chores |= SHM_RETRY;
    shm->retry_ns = !shm->is_retrying ? WEFT_SHM_RETRY_MIN_NS : shm->retry_ns < WEFT_SHM_RETRY_MAX_NS ? shm->retry_ns * 2 : shm->retry_ns;
    shm->retry_at_ns = shm->now_ns() + shm->retry_ns;
}

static void report_no_memory(const shm_iface *shm, uint32_t sender)
{
    const weft_rank_page *page = weft_segment_rank(shm->segment, sender);
    weft_log_once(WEFT_LOG_ERROR, "no memory to receive from rank %u on this node: %s\nIts frames wait and are retried. Check free memory, "
                  "ulimit -v and vm.max_map_count.",
                  atomic_load_explicit(&page->job_rank, memory_order_relaxed), weft_fail_text(WEFT_E_NOMEM));
}

/* The next frame of a hot ring cannot be mapped: the ring leaves the hot rings until it can. */
static __attribute__((noinline, cold)) void set_aside_later(shm_iface *shm, shm_ep *ep)
{
    report_no_memory(shm, ep->local);
    defer(shm, ep->local);
    shm->chores |= SHM_SET_ASIDE;
}

static inline __attribute__((always_inline)) int drain(shm_iface *shm, shm_ep *ep, int budget)
{
    weft_cell *cell;
    int n = 0, rc;
    while ((cell = weft_ring_peek(&ep->in))) {
        if (n) /* a stream: later cells are fetched while this one is handled */
            __builtin_prefetch(cell + WEFT_RING_AHEAD_IN);
        if (weft_likely(!cell->place && cell->hdr.bytes <= WEFT_RING_INLINE))
            shm->iface.callbacks->recv_frame(shm->iface.owner, ep->ep.peer, &cell->hdr, cell->body);
        else {
            if (weft_unlikely((rc = deliver_placed(shm, ep, cell)))) {
                if (rc == WEFT_E_NOMEM)
                    set_aside_later(shm, ep);
                break;
            }
            n += WEFT_POLL_EXTRA(cell->hdr.bytes);
        }
        weft_ring_consume(&ep->in, cell);
        if (weft_unlikely(weft_ring_should_ack(&ep->in)))
            ack_cells(shm, ep);
        if (++n >= budget)
            break;
    }
    return n;
}

static void check_dead_peers(shm_iface *shm)
{
    shm->chores &= ~(uint32_t)SHM_CHECK_DEAD;
    for (uint32_t i = 0; i < shm->ranks; i++) {
        shm_ep *ep = shm->eps[i];
        if (!ep || ep->is_lost || atomic_load_explicit(&ep->page->state, memory_order_acquire) != WEFT_RANK_DEAD)
            continue;
        if (ep->in.ring && weft_ring_peek(&ep->in)) /* frames sent before its death are delivered first */
            continue;
        ep->is_lost = true;
        shm->iface.callbacks->peer_failed(shm->iface.owner, ep->ep.peer,
                           weft_fail(WEFT_E_PEER, "the process (local rank %u, pid %u) is gone", i, atomic_load(&ep->page->pid)));
    }
}

/* The budget ended before all rings were polled: the first one becomes the last. */
static void rotate(shm_iface *shm)
{
    shm_ep *first = shm->hot[0];
    memmove(shm->hot, shm->hot + 1, (shm->hot_count - 1) * sizeof *shm->hot);
    shm->hot[shm->hot_count - 1] = first;
}

static __attribute__((noinline)) int poll_many(shm_iface *shm, int budget)
{
    int n = 0;
    for (uint32_t i = 0; i < shm->hot_count && n < budget; i++) {
        if (i + 1 < shm->hot_count) /* the line comes while this ring's frames are handled */
            weft_ring_prefetch(&shm->hot[i + 1]->in);
        n += drain(shm, shm->hot[i], budget - n);
    }
    if (n >= budget)
        rotate(shm);
    if (shm->hot_count > WEFT_SHM_HOT_FEW && (++shm->polls & 1023) == 0)
        n += weft_shm_deactivate_rings(shm, shm->now_ns());
    return n;
}

static void set_aside(shm_iface *shm)
{
    uint32_t kept = 0;
    shm->chores &= ~(uint32_t)SHM_SET_ASIDE;
    for (uint32_t i = 0; i < shm->hot_count; i++) {
        shm_ep *ep = shm->hot[i];
        ep->is_hot = !(shm->deferred[ep->local / 64] >> ep->local % 64 & 1);
        if (ep->is_hot)
            shm->hot[kept++] = ep;
    }
    shm->hot_count = kept;
}

static int retry(shm_iface *shm, int budget);

/* Handles senders with active bits, deferred senders, and dead peers. Active bits are handled also when open rings used the budget up: else
 * a sender that keeps its ring full would starve the others. */
static __attribute__((noinline)) int poll_marked(shm_iface *shm, int n, int budget)
{
    n += weft_shm_activate_rings(shm, budget - n);
    if (shm->chores & SHM_RETRY)
        n += retry(shm, budget - n);
    if (shm->chores & SHM_SET_ASIDE)
        set_aside(shm);
    if (shm->chores & SHM_CHECK_DEAD)
        check_dead_peers(shm);
    return n;
}

int weft_shm_poll(weft_iface *iface, int budget)
{
    shm_iface *shm = (shm_iface *)iface;
    int n = 0;
    if (weft_likely(shm->hot_count == 1))
        n = drain(shm, shm->hot[0], budget);
    else if (shm->hot_count)
        n = poll_many(shm, budget);
    if (weft_unlikely(atomic_load_explicit(&shm->page->active_summary, memory_order_relaxed) | shm->chores))
        n = poll_marked(shm, n, budget);
    return n;
}

/* -- sleeping -- */

/* Orders this process's stores before its later loads as seen by all senders. Without WEFT_RING_FENCE senders need no fence. */
static void order_for_senders(shm_iface *shm)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (shm->ring_flags & WEFT_RING_FENCE)
        return;
    weft_membarrier();
    shm->iface.counts.barriers++;
}

/* The retry time of deferred senders bounds the sleep, as they do not wake again. */
static void arm_retry(const shm_iface *shm, weft_wakeup *wakeup)
{
    uint64_t now = shm->now_ns(), left = shm->retry_at_ns > now ? shm->retry_at_ns - now : 1;
    if (!wakeup->within_ns || left < wakeup->within_ns)
        wakeup->within_ns = left;
}

int weft_shm_arm(weft_iface *iface, weft_wakeup *wakeup)
{
    shm_iface *shm = (shm_iface *)iface;
    uint32_t ticket = weft_page_sleep_begin(shm->page);
    order_for_senders(shm);
    shm->chores |= SHM_CHECK_DEAD;
    *wakeup = (weft_wakeup){.futex = shm->wants_fd ? NULL : (uint32_t *)&shm->page->asleep, .value = ticket, .fd = shm->wakeup_fd};
    if (weft_unlikely(shm->wants_fd) && (shm->wakeup_fd < 0 || weft_wakeup_sock_is_unreachable(&shm->page->sock)))
        wakeup->within_ns = WEFT_WAKEUP_SOCK_NAP_NS;
    if (weft_unlikely(shm->chores & SHM_RETRY))
        arm_retry(shm, wakeup);
    return 0;
}

void weft_shm_disarm(weft_iface *iface)
{
    shm_iface *shm = (shm_iface *)iface;
    atomic_store_explicit(&shm->page->asleep, 0, memory_order_relaxed);
    if (weft_unlikely(shm->wakeup_fd >= 0))
        weft_wakeup_sock_drain(shm->wakeup_fd);
}

/* -- which rings are polled -- */

static int open_in(shm_iface *shm, shm_ep *ep)
{
    uint64_t offset = shm_ring_offset(shm, shm->local, ep->local);
    void *addr;
    int rc = weft_segment_view(shm->segment, offset, WEFT_RING_BYTES, &addr);
    if (rc == 0)
        weft_ring_in_open(&ep->in, addr);
    return rc;
}

/* Adapts patience_ns of a ring that is opened again: doubled if soon after it was closed, else halved. */
static void adapt_patience(const shm_iface *shm, shm_ep *ep)
{
    uint64_t now = shm->now_ns();
    if (!ep->patience_ns)
        ep->patience_ns = WEFT_SHM_PATIENCE_MIN_NS;
    else if (ep->closed_ns && now - ep->closed_ns < ep->patience_ns * WEFT_SHM_REOPEN_SOON)
        ep->patience_ns = ep->patience_ns < WEFT_SHM_PATIENCE_MAX_NS ? ep->patience_ns * 2 : ep->patience_ns;
    else if (ep->closed_ns && ep->patience_ns > WEFT_SHM_PATIENCE_MIN_NS)
        ep->patience_ns /= 2;
    ep->active_ns = now;
    ep->closed_ns = 0;
}

static int activate_sender(shm_iface *shm, uint32_t sender, int budget)
{
    weft_rank_page *page = weft_segment_rank(shm->segment, sender);
    weft_proc_id proc_id = {.job = shm->segment->hdr->job, .rank = atomic_load_explicit(&page->job_rank, memory_order_relaxed)};
    shm_ep *ep = shm->eps[sender];
    if (!ep && shm->has_left[sender])
        return 0; /* the ep was closed: only a BYE can come, which is not needed */
    if (!ep) {
        void *peer = shm->iface.callbacks->accept_peer(shm->iface.owner, &proc_id);
        ep = shm->eps[sender];
        if (!peer || !ep)
            return WEFT_E_PEER;
        ep->ep.peer = peer;
    }
    if (!ep->in.ring && open_in(shm, ep)) {
        report_no_memory(shm, sender);
        return WEFT_E_NOMEM;
    }
    if (!ep->is_hot) {
        ep->is_hot = true;
        ep->consumed_before = ep->in.consumed;
        adapt_patience(shm, ep);
        shm->hot[shm->hot_count++] = ep;
        atomic_store_explicit(&ep->in.ring->flags, shm->ring_flags, memory_order_relaxed);
    }
    return budget > 0 ? drain(shm, ep, budget) : 0;
}

/* Activates all senders whose bits are set, each with at least one frame. A sender that fails is deferred and delays no other. */
static int activate_word(shm_iface *shm, uint32_t word, uint64_t bits, int budget)
{
    int n = 0;
    for (; bits; bits &= bits - 1) {
        uint32_t sender = word * 64 + (uint32_t)__builtin_ctzll(bits);
        int rc = activate_sender(shm, sender, budget > n ? budget - n : 1);
        if (weft_unlikely(rc < 0))
            defer(shm, sender);
        else
            n += rc;
    }
    return n;
}

int weft_shm_activate_rings(shm_iface *shm, int budget)
{
    uint64_t words = 0;
    int n = 0;
    if (atomic_load_explicit(&shm->page->active_summary, memory_order_relaxed))
        words = atomic_exchange_explicit(&shm->page->active_summary, 0, memory_order_acquire);
    for (; words; words &= words - 1) {
        uint32_t word = (uint32_t)__builtin_ctzll(words);
        n += activate_word(shm, word, atomic_exchange_explicit(&shm->page->active[word], 0, memory_order_acquire), budget - n);
    }
    return n;
}

static int retry(shm_iface *shm, int budget)
{
    int n = 0;
    if (shm->now_ns() < shm->retry_at_ns)
        return 0;
    shm->chores &= ~(uint32_t)SHM_RETRY;
    shm->is_retrying = true;
    for (uint32_t word = 0; word * 64 < shm->ranks; word++) {
        uint64_t bits = shm->deferred[word];
        shm->deferred[word] = 0;
        n += activate_word(shm, word, bits, budget - n);
    }
    shm->is_retrying = false;
    return n;
}

static bool is_silent(shm_ep *ep, uint64_t now_ns)
{
    if (ep->in.consumed != ep->consumed_before) {
        ep->consumed_before = ep->in.consumed;
        ep->active_ns = now_ns;
    }
    return now_ns - ep->active_ns >= ep->patience_ns;
}

/* Bounds the cost of a poll. One barrier for all rings, at most one per WEFT_SHM_PATIENCE_MIN_NS. A sender that still saw WEFT_RING_OPEN
 * has published before the barrier, so the check after it finds the frame. */
int weft_shm_deactivate_rings(shm_iface *shm, uint64_t now_ns)
{
    uint32_t kept = 0, end = shm->hot_count;
    int n = 0;
    if (now_ns < shm->check_at_ns)
        return 0;
    for (uint32_t i = 0; i < end; i++) {
        shm_ep *ep = shm->hot[i];
        if (is_silent(ep, now_ns)) {
            atomic_store_explicit(&ep->in.ring->flags, shm->ring_flags & ~(uint32_t)WEFT_RING_OPEN, memory_order_relaxed);
            ep->closed_ns = now_ns;
        } else {
            shm->hot[i] = shm->hot[kept];
            shm->hot[kept++] = ep;
        }
    }
    if (kept == end)
        return 0;
    shm->check_at_ns = now_ns + WEFT_SHM_PATIENCE_MIN_NS;
    order_for_senders(shm);
    shm->iface.counts.rings_closed += end - kept;
    for (uint32_t i = kept; i < end; i++)
        shm->hot[i]->is_hot = false;
    shm->hot_count = kept;
    /* activate_sender() puts an ep back at hot_count, which never passes i */
    for (uint32_t i = kept; i < end; i++)
        if (weft_ring_peek(&shm->hot[i]->in)) {
            activate_sender(shm, shm->hot[i]->local, 0);
            n++; /* a frame was found: the caller must poll before it sleeps */
        }
    return n;
}
