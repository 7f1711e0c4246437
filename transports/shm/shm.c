/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm: sending, polling and sleeping through the node's segment. The inbox of a rank has a ring for each sender, mapped and claimed
 * by whoever uses it first; the receiver polls the few rings that are open and one word that tells of all others.
 * Ordering with a sleeper: a sender stores its cell, then loads `asleep`; the sleeper stores `asleep`, pays for a membarrier on all
 * CPUs, then looks at its rings (Dekker's problem).
 */
#include "transports/shm/shm.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/status.h"
#include "mem/chime.h"

static uint64_t ring_offset(const shm_port *shm, uint32_t receiver, uint32_t sender)
{
    const weft_segment_head *head = shm->segment->head;
    return head->inboxes + ((uint64_t)receiver * head->ranks + sender) * head->ring_bytes;
}

/* -- sending -- */

static __attribute__((noinline)) int open_out(shm_port *shm, shm_path *path)
{
    uint64_t offset = ring_offset(shm, path->local, shm->local);
    void *addr;
    int rc = weft_segment_claim(shm->segment, offset, WEFT_RING_FRONT);
    if (rc == 0)
        rc = weft_segment_view(shm->segment, offset, WEFT_RING_BYTES, &addr);
    if (rc == 0)
        weft_ring_out_open(&path->out, addr);
    return rc;
}

static int lend_chunk(shm_port *shm, shm_path *path, const weft_frame *frame, uint32_t *place, void **body)
{
    uint32_t index;
    int rc;
    if (frame->head.bytes > WEFT_BULK_CHUNK)
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes does not fit a chunk of %d", frame->head.bytes, WEFT_BULK_CHUNK);
    rc = weft_bulk_lend(&shm->bulk, &path->share, &index);
    if (rc)
        return rc;
    *place = WEFT_PLACE_CHUNK | index;
    *body = shm->bulk.bulk->chunks[index];
    return 0;
}

static int claim_lines(shm_port *shm, shm_path *path)
{
    int rc = weft_segment_claim(shm->segment, ring_offset(shm, path->local, shm->local) + WEFT_RING_FRONT, WEFT_RING_BYTES - WEFT_RING_FRONT);
    path->out.has_lines = rc == 0;
    return rc;
}

/* Where a body longer than a cell goes. */
static __attribute__((noinline)) int find_place(shm_port *shm, shm_path *path, const weft_frame *frame, uint32_t *place, void **body)
{
    uint32_t line;
    int rc;
    if (frame->head.bytes > WEFT_RING_BODY_MAX)
        return lend_chunk(shm, path, frame, place, body);
    if (weft_unlikely(!path->out.has_lines) && (rc = claim_lines(shm, path)))
        return rc;
    if (!weft_ring_reserve(&path->out, frame->head.bytes, &line))
        return WEFT_AGAIN;
    *place = line + 1;
    *body = path->out.ring->lines[line];
    return 0;
}

/* The receiver does not poll this ring: leave a note where it looks. */
static __attribute__((noinline)) void ring_bell(shm_port *shm, shm_path *path)
{
    weft_rank_page *page = path->page;
    uint32_t word = shm->local / 64;
    atomic_fetch_or_explicit(&page->active[word], 1ull << (shm->local % 64), memory_order_seq_cst);
    atomic_fetch_or_explicit(&page->active_summary, 1ull << word, memory_order_seq_cst);
    weft_segment_wake(page);
}

/* `wanted` is ours alone to clear, once a frame got through. */
static int refuse(shm_path *path)
{
    path->is_starved = true;
    atomic_store_explicit(&path->out.ring->wanted, 1, memory_order_relaxed);
    return WEFT_AGAIN;
}

static void feed(shm_path *path)
{
    path->is_starved = false;
    atomic_store_explicit(&path->out.ring->wanted, 0, memory_order_relaxed);
}

/* The frame is out: who must hear of it? */
static inline void announce(shm_port *shm, shm_path *path)
{
    uint32_t flags = atomic_load_explicit(&path->out.ring->flags, memory_order_relaxed);
    if (weft_unlikely(flags != WEFT_RING_OPEN)) {
        if (!(flags & WEFT_RING_OPEN)) {
            ring_bell(shm, path);
            return;
        }
        atomic_thread_fence(memory_order_seq_cst);
        if (!(atomic_load_explicit(&path->out.ring->flags, memory_order_relaxed) & WEFT_RING_OPEN)) { /* closed before the fence */
            ring_bell(shm, path);
            return;
        }
    }
    weft_segment_nudge(path->page);
}

void weft_shm_send_short(weft_path *generic, uint64_t head0, uint64_t head1, uint64_t head2, const void *body)
{
    shm_path *path = (shm_path *)generic;
    weft_cell *cell = weft_ring_next(&path->out);
    uint64_t *head = (uint64_t *)&cell->head;
    uint32_t bytes = (uint32_t)(head2 >> 32);
    cell->place = 0;
    memcpy(&head[0], &head0, 8);
    memcpy(&head[1], &head1, 8);
    memcpy(&head[2], &head2, 8);
    if (weft_likely(bytes == 8))
        memcpy(cell->body, body, 8);
    else
        weft_copy_short(cell->body, body, bytes);
    path->path.room--;
    weft_ring_publish(&path->out, cell);
    weft_prefetch_write(cell + WEFT_RING_AHEAD_OUT);
    announce((shm_port *)path->path.port, path);
}

static bool has_scratch(shm_port *shm)
{
    if (!shm->scratch)
        shm->scratch = malloc(WEFT_BULK_CHUNK);
    return shm->scratch;
}

/* Where it is better to store past the caches (or that is to be found out), what is packed is packed at home first. */
static __attribute__((noinline)) void fill(shm_port *shm, const weft_frame *frame, void *body)
{
    if (frame->head.bytes >= WEFT_STORE_LEAST && weft_store_is_asked(&shm->store) && has_scratch(shm)) {
        frame->fill(frame, shm->scratch);
        weft_store_body(&shm->store, body, shm->scratch, frame->head.bytes);
    } else {
        frame->fill(frame, body);
        shm->store.count++;
    }
}

int weft_shm_send(weft_port *port, weft_path *generic, const weft_frame *frame)
{
    shm_port *shm = (shm_port *)port;
    shm_path *path = (shm_path *)generic;
    weft_cell *cell;
    uint32_t place = 0;
    void *body;
    int rc;
    if (weft_unlikely(!path->out.ring) && (rc = open_out(shm, path)))
        return rc;
    path->path.room = weft_ring_room(&path->out);
    if (weft_unlikely(!path->path.room))
        return refuse(path);
    cell = weft_ring_next(&path->out);
    body = cell->body;
    if (frame->head.bytes > WEFT_RING_INLINE && (rc = find_place(shm, path, frame, &place, &body)))
        return rc == WEFT_AGAIN ? refuse(path) : rc;
    cell->place = place;
    cell->head = frame->head;
    if (weft_unlikely(frame->fill != NULL))
        fill(shm, frame, body);
    else if (place)
        weft_store_body(&shm->store, body, frame->body, frame->head.bytes);
    else
        weft_copy_short(body, frame->body, frame->head.bytes);
    path->path.room--;
    weft_ring_publish(&path->out, cell);
    weft_prefetch_write(cell + WEFT_RING_AHEAD_OUT);
    if (weft_unlikely(path->is_starved))
        feed(path);
    announce(shm, path);
    return 0;
}

/* -- receiving -- */

static __attribute__((noinline)) const void *chunk_body(shm_port *shm, shm_path *path, uint32_t index)
{
    const weft_segment_head *head = shm->segment->head;
    void *addr;
    if (weft_unlikely(!path->bulk)) {
        if (weft_segment_view(shm->segment, head->pools + path->local * head->pool_bytes, sizeof(weft_bulk), &addr))
            return NULL;
        path->bulk = addr;
    }
    return path->bulk->chunks[index];
}

/* Something was given back (release): does its owner sleep for want of it? Without a membarrier the sleeper cannot pay for the order. */
static inline void wake_who_wants(shm_path *path, _Atomic uint32_t *wanted)
{
    if (weft_unlikely(!atomic_load_explicit(&path->page->membarrier_ok, memory_order_relaxed)))
        atomic_thread_fence(memory_order_seq_cst);
    if (weft_unlikely(atomic_load_explicit(wanted, memory_order_relaxed)))
        weft_segment_nudge(path->page);
}

/* A frame whose body stands elsewhere. */
static __attribute__((noinline)) int deliver_placed(shm_port *shm, shm_path *path, weft_cell *cell)
{
    uint32_t place = cell->place, index = place & ~WEFT_PLACE_CHUNK;
    bool is_chunk = place & WEFT_PLACE_CHUNK;
    const void *body = is_chunk ? chunk_body(shm, path, index) : path->in.ring->lines[place - 1];
    if (!body)
        return WEFT_E_NOMEM;
    shm->port.up->arrive(shm->port.owner, path->path.peer, &cell->head, body);
    if (is_chunk) {
        weft_bulk_return(path->bulk, index);
        wake_who_wants(path, &path->bulk->wanted);
    }
    return 0;
}

static __attribute__((noinline)) void tell(shm_path *path)
{
    weft_ring_tell(&path->in);
    wake_who_wants(path, &path->in.ring->wanted);
}

static inline int drain(shm_port *shm, shm_path *path, int budget)
{
    weft_cell *cell;
    int n = 0;
    while ((cell = weft_ring_peek(&path->in))) {
        if (n) /* a stream: lines to come travel while this one is looked at */
            __builtin_prefetch(cell + WEFT_RING_AHEAD_IN);
        if (weft_likely(!cell->place))
            shm->port.up->arrive(shm->port.owner, path->path.peer, &cell->head, cell->body);
        else if (deliver_placed(shm, path, cell))
            return WEFT_E_NOMEM;
        weft_ring_take(&path->in, cell);
        if (weft_unlikely(weft_ring_should_tell(&path->in)))
            tell(path);
        if (++n == budget)
            break;
    }
    return n;
}

static void look_for_dead(shm_port *shm)
{
    shm->look_for_dead = false;
    for (uint32_t i = 0; i < shm->ranks; i++) {
        shm_path *path = shm->paths[i];
        if (!path || path->is_lost || atomic_load_explicit(&path->page->state, memory_order_acquire) != WEFT_RANK_DEAD)
            continue;
        if (path->in.ring && weft_ring_peek(&path->in)) /* what came before its death arrives first */
            continue;
        path->is_lost = true;
        shm->port.up->lost(shm->port.owner, path->path.peer,
                           weft_fail(WEFT_E_PEER, "the process (local rank %u, pid %u) is gone", i, atomic_load(&path->page->pid)));
    }
}

/* The budget ended before all rings had their turn: the first one waits longest next time. */
static void rotate(shm_port *shm)
{
    shm_path *first = shm->hot[0];
    memmove(shm->hot, shm->hot + 1, (shm->hot_count - 1) * sizeof *shm->hot);
    shm->hot[shm->hot_count - 1] = first;
}

static __attribute__((noinline)) int poll_many(shm_port *shm, int budget)
{
    int n = 0;
    for (uint32_t i = 0; i < shm->hot_count && n < budget; i++) {
        int rc = drain(shm, shm->hot[i], budget - n);
        if (weft_unlikely(rc < 0))
            return rc;
        n += rc;
    }
    if (n == budget)
        rotate(shm);
    if (shm->hot_count > WEFT_SHM_HOT_FEW && (++shm->polls & 1023) == 0)
        n += weft_shm_cool(shm);
    return n;
}

/* Senders that left a note, and the dead. */
static __attribute__((noinline)) int poll_rest(shm_port *shm, int n, int budget)
{
    int rc = 0;
    if (n < 0)
        return n;
    if (n < budget && atomic_load_explicit(&shm->page->active_summary, memory_order_relaxed))
        rc = weft_shm_greet(shm, budget - n);
    if (shm->look_for_dead)
        look_for_dead(shm);
    return rc < 0 ? rc : n + rc;
}

int weft_shm_poll(weft_port *port, int budget)
{
    shm_port *shm = (shm_port *)port;
    int n = 0;
    if (weft_likely(shm->hot_count == 1))
        n = drain(shm, shm->hot[0], budget);
    else if (shm->hot_count)
        n = poll_many(shm, budget);
    if (weft_unlikely(atomic_load_explicit(&shm->page->active_summary, memory_order_relaxed) | shm->look_for_dead))
        n = poll_rest(shm, n, budget);
    return n;
}

/* -- sleeping -- */

/* Orders our stores before our later loads as seen by every sender, at our cost alone. */
static void order_for_senders(const shm_port *shm)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!(shm->ring_flags & WEFT_RING_FENCE))
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

int weft_shm_arm(weft_port *port, weft_bell *bell)
{
    shm_port *shm = (shm_port *)port;
    uint32_t ticket = weft_segment_doze(shm->page);
    order_for_senders(shm);
    shm->look_for_dead = true;
    *bell = (weft_bell){.futex = shm->wants_fd ? NULL : (uint32_t *)&shm->page->asleep, .value = ticket, .fd = shm->chime};
    if (weft_unlikely(shm->wants_fd) && (shm->chime < 0 || weft_chime_is_deaf(shm->page)))
        bell->within_ns = WEFT_CHIME_NAP_NS;
    return 0;
}

void weft_shm_disarm(weft_port *port)
{
    shm_port *shm = (shm_port *)port;
    atomic_store_explicit(&shm->page->asleep, 0, memory_order_relaxed);
    if (weft_unlikely(shm->chime >= 0))
        weft_chime_drain(shm->chime);
}

/* -- which rings are polled -- */

static int open_in(shm_port *shm, shm_path *path)
{
    uint64_t offset = ring_offset(shm, shm->local, path->local);
    void *addr;
    int rc = weft_segment_view(shm->segment, offset, WEFT_RING_BYTES, &addr);
    if (rc == 0)
        weft_ring_in_open(&path->in, addr);
    return rc;
}

static int greet_sender(shm_port *shm, uint32_t sender, int budget)
{
    weft_rank_page *page = weft_segment_rank(shm->segment, sender);
    weft_name who = {.job = shm->segment->head->job, .rank = atomic_load_explicit(&page->job_rank, memory_order_relaxed)};
    shm_path *path = shm->paths[sender];
    if (!path && shm->has_left[sender])
        return 0; /* whoever still waits for others, on a network, hears goodbyes that nobody waits for */
    if (!path) {
        void *peer = shm->port.up->greet(shm->port.owner, &who);
        path = shm->paths[sender];
        if (!peer || !path)
            return WEFT_E_PEER;
        path->path.peer = peer;
    }
    if (!path->in.ring && open_in(shm, path))
        return WEFT_E_NOMEM;
    if (!path->is_hot) {
        path->is_hot = true;
        path->taken_before = path->in.taken;
        shm->hot[shm->hot_count++] = path;
        atomic_store_explicit(&path->in.ring->flags, shm->ring_flags, memory_order_relaxed);
    }
    return budget > 0 ? drain(shm, path, budget) : 0;
}

int weft_shm_greet(shm_port *shm, int budget)
{
    uint64_t words = atomic_exchange_explicit(&shm->page->active_summary, 0, memory_order_acquire);
    int n = 0;
    while (words) {
        uint32_t word = (uint32_t)__builtin_ctzll(words);
        uint64_t bits = atomic_exchange_explicit(&shm->page->active[word], 0, memory_order_acquire);
        words &= words - 1;
        for (; bits; bits &= bits - 1) {
            uint32_t sender = word * 64 + (uint32_t)__builtin_ctzll(bits);
            int rc = greet_sender(shm, sender, budget - n);
            if (weft_unlikely(rc < 0)) { /* no memory to hear it by: leave its note for a better time */
                atomic_fetch_or_explicit(&shm->page->active[word], 1ull << sender % 64, memory_order_relaxed);
                atomic_fetch_or_explicit(&shm->page->active_summary, 1ull << word, memory_order_relaxed);
                return rc;
            }
            n += rc;
        }
    }
    return n;
}

/* Closes rings that were silent since the last look, so that a poll's cost does not grow with silent neighbours. One barrier for all:
 * a sender that still saw "open" has published before it, and the drain after it finds the frame. */
int weft_shm_cool(shm_port *shm)
{
    uint32_t kept = 0, cold = 0;
    int n = 0;
    for (uint32_t i = 0; i < shm->hot_count; i++) {
        shm_path *path = shm->hot[i];
        bool is_silent = path->in.taken == path->taken_before;
        path->taken_before = path->in.taken;
        if (!is_silent) {
            shm->hot[i] = shm->hot[kept];
            shm->hot[kept++] = path;
        } else {
            atomic_store_explicit(&path->in.ring->flags, shm->ring_flags & ~(uint32_t)WEFT_RING_OPEN, memory_order_relaxed);
            cold++;
        }
    }
    if (!cold)
        return 0;
    order_for_senders(shm);
    for (uint32_t i = kept; i < shm->hot_count; i++)
        shm->hot[i]->is_hot = false;
    cold = shm->hot_count;
    shm->hot_count = kept;
    /* greeting puts a path back at hot_count, which never passes i */
    for (uint32_t i = kept; i < cold; i++)
        if (weft_ring_peek(&shm->hot[i]->in)) {
            greet_sender(shm, shm->hot[i]->local, 0);
            n++; /* a frame is there: who is about to sleep must look again */
        }
    return n;
}
