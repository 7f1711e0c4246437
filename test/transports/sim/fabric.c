/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fabric: see fabric.h. Nics, flows, the event queue, and death.
 */
#include "test/transports/sim/fabric.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "base/status.h"

/* xorshift128+, seeded by splitmix64. */
uint64_t sim_random(weft_sim *sim)
{
    uint64_t a = sim->random[0], b = sim->random[1];
    sim->random[0] = b;
    a ^= a << 23;
    sim->random[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
    return sim->random[1] + b;
}

static uint64_t split(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

bool sim_chance(weft_sim *sim, uint32_t permille)
{
    return permille && (sim_random(sim) >> 11) % 1000 < permille;
}

bool sim_flips(weft_sim *sim, uint32_t permille)
{
    return sim_chance(sim, permille) && !sim->is_sound;
}

weft_sim *weft_sim_open(const weft_sim_profile *profile, uint64_t seed)
{
    weft_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return NULL;
    uint64_t state = seed;
    sim->profile = *profile;
    if (!sim->profile.flow_frames)
        sim->profile.flow_frames = 1024;
    if (!sim->profile.flow_rma)
        sim->profile.flow_rma = 256;
    if (!sim->profile.frame_max)
        sim->profile.frame_max = 4096;
    if (!sim->profile.rma_max)
        sim->profile.rma_max = 1u << 30;
    if (sim->profile.rails > SIM_RAILS_MAX)
        sim->profile.rails = SIM_RAILS_MAX;
    sim->thread = pthread_self();
    sim->seed = seed;
    sim->random[0] = split(&state);
    sim->random[1] = split(&state) | 1;
    weft_inproc_shmem_init(&sim->blocks);
    weft_list_init(&sim->changing);
    return sim;
}

static void nic_free(sim_nic *nic)
{
    weft_list_link *link;
    while ((link = weft_list_take(&nic->ready)))
        sim_event_free(weft_container(link, sim_event, link));
    for (uint32_t i = 0; i < nic->flow_capacity; i++)
        free(nic->flows[i]);
    free(nic->flows);
    weft_rkey_table_close(&nic->keys);
    pthread_mutex_destroy(&nic->pin_lock);
    free(nic->iface);
    free(nic);
}

void weft_sim_close(weft_sim *sim)
{
    for (uint32_t i = 0; i < sim->heap_count; i++)
        sim_event_free(sim->heap[i]);
    for (uint32_t i = 0; i < sim->nic_count; i++)
        nic_free(sim->nics[i]);
    weft_inproc_shmem_clear(&sim->blocks);
    free(sim->nics);
    free(sim->heap);
    free(sim);
}

uint64_t weft_sim_now_ns(const weft_sim *sim)
{
    return sim->now;
}

uint64_t weft_sim_counter(const weft_sim *sim, enum weft_sim_count which)
{
    return sim->counts[which];
}

void weft_sim_print(const weft_sim *sim, FILE *out)
{
    fprintf(out, "sim: %s seed %" PRIu64 ":", sim->profile.name ? sim->profile.name : "own profile", sim->seed);
    for (int i = 0; i < WEFT_SIM_COUNT_LAST; i++)
        if (sim->counts[i])
            fprintf(out, " %s %" PRIu64, weft_sim_count_names[i], sim->counts[i]);
    fprintf(out, "; %" PRIu64 " us\n", sim->now / 1000);
}

/* -- nics and flows -- */

sim_nic *sim_nic_of(weft_sim *sim, const weft_proc_id *proc_id)
{
    for (uint32_t i = 0; i < sim->nic_count; i++) {
        weft_proc_id *known = &sim->nics[i]->proc_id;
        if (known->job == proc_id->job && known->rank == proc_id->rank && known->worker == proc_id->worker)
            return sim->nics[i];
    }
    if (sim->nic_count == sim->nic_capacity) {
        uint32_t room = sim->nic_capacity ? 2 * sim->nic_capacity : 16;
        sim_nic **more = realloc(sim->nics, room * sizeof *more);
        if (!more)
            return NULL;
        sim->nics = more;
        sim->nic_capacity = room;
    }
    sim_nic *nic = calloc(1, sizeof *nic);
    if (!nic)
        return NULL;
    nic->sim = sim;
    nic->proc_id = *proc_id;
    nic->index = sim->nic_count;
    weft_list_init(&nic->ready);
    pthread_mutex_init(&nic->pin_lock, NULL);
    weft_rkey_table_open(&nic->keys, ((uint64_t)nic->index << 32) ^ 0x73696d00u ^ sim->seed);
    sim->nics[sim->nic_count++] = nic;
    return nic;
}

sim_flow *sim_flow_of(sim_nic *from, sim_nic *to)
{
    if (to->index >= from->flow_capacity) {
        uint32_t room = weft_round_up(to->index + 1, 16);
        sim_flow **more = realloc(from->flows, room * sizeof *more);
        if (!more)
            return NULL;
        memset(more + from->flow_capacity, 0, (room - from->flow_capacity) * sizeof *more);
        from->flows = more;
        from->flow_capacity = room;
    }
    sim_flow *flow = from->flows[to->index];
    if (!flow) {
        flow = calloc(1, sizeof *flow);
        if (!flow)
            return NULL;
        flow->from = from;
        flow->to = to;
        weft_list_init(&flow->pending);
        from->flows[to->index] = flow;
    }
    return flow;
}

/* -- events -- */

sim_event *sim_event_new(sim_flow *flow, enum sim_event_kind kind, uint32_t body_bytes)
{
    sim_event *event = malloc(sizeof *event + body_bytes);
    if (!event)
        return NULL;
    memset(event, 0, sizeof *event);
    weft_list_init(&event->link);
    weft_list_init(&event->pending);
    weft_list_init(&event->changing);
    event->kind = kind;
    event->flow = flow;
    event->seq = ++flow->from->sim->next_seq;
    return event;
}

void sim_event_free(sim_event *event)
{
    weft_list_remove(&event->link);
    weft_list_remove(&event->pending);
    weft_list_remove(&event->changing);
    free(event->bounce);
    free(event);
}

static bool earlier(const sim_event *a, const sim_event *b)
{
    return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static int heap_push(weft_sim *sim, sim_event *event)
{
    if (sim->heap_count == sim->heap_capacity) {
        uint32_t room = sim->heap_capacity ? 2 * sim->heap_capacity : 256;
        sim_event **more = realloc(sim->heap, room * sizeof *more);
        if (!more)
            return weft_fail(WEFT_E_NOMEM, "no memory for %u simulated events", room);
        sim->heap = more;
        sim->heap_capacity = room;
    }
    uint32_t i = sim->heap_count++;
    for (; i && earlier(event, sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
        sim->heap[i] = sim->heap[(i - 1) / 2];
    sim->heap[i] = event;
    return 0;
}

static void heap_sink(weft_sim *sim, uint32_t i)
{
    sim_event *event = sim->heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= sim->heap_count)
            break;
        if (child + 1 < sim->heap_count && earlier(sim->heap[child + 1], sim->heap[child]))
            child++;
        if (!earlier(sim->heap[child], event))
            break;
        sim->heap[i] = sim->heap[child];
        i = child;
    }
    sim->heap[i] = event;
}

static sim_event *heap_pop(weft_sim *sim)
{
    sim_event *event = sim->heap[0];
    sim->heap[0] = sim->heap[--sim->heap_count];
    if (sim->heap_count)
        heap_sink(sim, 0);
    return event;
}

static uint64_t delay(weft_sim *sim)
{
    uint64_t max = sim->profile.delay_ns ? sim->profile.delay_ns : 1;
    /* most events are fast and a few take the full delay: more overtaking than with a uniform distribution */
    uint64_t span = sim_chance(sim, 250) ? max : max / 8 + 1;
    return 1 + sim_random(sim) % span;
}

/* A link stalls at the end of each of its periods; transfers of that time arrive afterwards. */
static uint64_t after_flap(weft_sim *sim, uint32_t rail, uint64_t due)
{
    uint64_t every = sim->profile.flap_every_ns, links = sim->profile.rails ? sim->profile.rails : 1;
    if (!every)
        return due;
    uint64_t phase = (due + rail * every / links) % every;
    if (phase < every - sim->profile.flap_ns)
        return due;
    sim->counts[WEFT_SIM_FLAPPED]++;
    return due + every - phase;
}

static void keep_order(sim_event *event, uint64_t *last_due)
{
    if (event->due < *last_due)
        event->due = *last_due;
    *last_due = event->due;
}

/* Time when the last byte has left its sender; for a get that is the other side. */
static uint64_t sent_by(weft_sim *sim, const sim_event *event)
{
    sim_flow *flow = event->flow;
    uint64_t *free_at = &(event->kind == SIM_GET ? flow->to : flow->from)->link_free[event->rail], bytes = 0;
    if (event->kind == SIM_FRAME)
        bytes = event->hdr.bytes;
    else if ((event->kind == SIM_GET || event->kind == SIM_PUT) && (event->step == 0 || event->step == SIM_WHOLE))
        bytes = event->rma.bytes;
    if (!sim->profile.link_mbyte_per_s || !bytes)
        return sim->now;
    *free_at = (*free_at > sim->now ? *free_at : sim->now) + bytes * 1000 / sim->profile.link_mbyte_per_s;
    return *free_at;
}

int sim_event_post(weft_sim *sim, sim_event *event)
{
    bool is_move = event->kind == SIM_GET || event->kind == SIM_PUT || event->kind == SIM_AMO;
    uint64_t took = delay(sim);
    if (took > 1000)
        sim->counts[WEFT_SIM_DELAYED]++;
    event->due = after_flap(sim, event->rail, sent_by(sim, event) + took);
    if (event->kind == SIM_FRAME && !sim->profile.unordered)
        keep_order(event, &event->flow->last_frame_due);
    else if (event->kind == SIM_FRAME && event->due > event->flow->last_frame_due)
        event->flow->last_frame_due = event->due;
    else if (sim->profile.rails && is_move && (event->step == 0 || event->step == SIM_WHOLE))
        keep_order(event, &event->flow->last_rail_due[event->rail]);
    sim->activity++;
    int rc = heap_push(sim, event);
    if (rc)
        sim_event_free(event);
    return rc;
}

uint64_t sim_next_due(const weft_sim *sim)
{
    return sim->heap_count ? sim->heap[0]->due : UINT64_MAX;
}

/* Some wakeups are not raised; in valid profiles only those that a timer covers. */
static void ring(sim_nic *nic)
{
    weft_sim *sim = nic->sim;
    if (!nic->armed || sim_chance(sim, sim->profile.deaf_permille))
        return;
    if (sim_chance(sim, sim->profile.unrung_permille))
        sim->counts[WEFT_SIM_UNRAISED]++;
    else
        nic->wakeup++;
}

void sim_make_ready(sim_nic *nic, sim_event *event)
{
    if (event->seq < nic->newest)
        nic->sim->counts[WEFT_SIM_REORDERED]++;
    else
        nic->newest = event->seq;
    weft_list_append(&nic->ready, &event->link);
    ring(nic);
}

void sim_wake_blocked(sim_nic *nic)
{
    if (!nic->wants || !nic->armed)
        return;
    nic->wants = false;
    nic->wakeup++;
}

void sim_retry_post(weft_sim *sim, sim_nic *nic)
{
    sim_flow *own = nic->retry_posted ? NULL : sim_flow_of(nic, nic);
    sim_event *event = own ? sim_event_new(own, SIM_RETRY, 0) : NULL;
    uint64_t activity = sim->activity;
    if (event)
        nic->retry_posted = sim_event_post(sim, event) == 0;
    sim->activity = activity; /* a refused call is no progress */
}

/* The frame that broke the connection is missing, so no later one arrives. */
static bool breaks_here(weft_sim *sim, const sim_event *frame)
{
    sim_flow *flow = frame->flow;
    if (flow->is_cut || flow->from == flow->to || !sim_chance(sim, sim->profile.cut_permille))
        return false;
    flow->missing_seq = frame->seq;
    sim_cut(sim, flow);
    return true;
}

static void happen(weft_sim *sim, sim_event *event)
{
    sim_flow *flow = event->flow;
    switch (event->kind) {
    case SIM_FRAME:
        flow->frames_in_flight--;
        sim_wake_blocked(flow->from);
        if (flow->to->is_dead || breaks_here(sim, event)) {
            flow->frames--;
            sim->counts[WEFT_SIM_DROPPED]++;
            sim_event_free(event);
        } else {
            sim_make_ready(flow->to, event); /* also before the iface is open: it is kept until then */
        }
        break;
    case SIM_GET: case SIM_PUT: case SIM_AMO: case SIM_FLUSH:
        sim_access_memory(sim, event);
        break;
    case SIM_DONE:
        weft_list_remove(&event->pending);
        if (flow->from->is_dead || !flow->from->iface)
            sim_event_free(event);
        else
            sim_make_ready(flow->from, event);
        break;
    case SIM_RETRY:
        flow->from->retry_posted = false;
        sim_wake_blocked(flow->from);
        sim_event_free(event);
        break;
    case SIM_NOTIFY: case SIM_PEER_FAILED:
        if (flow->to->is_dead || !flow->to->iface)
            sim_event_free(event);
        else
            sim_make_ready(flow->to, event);
        break;
    }
}

void sim_advance(weft_sim *sim, uint64_t by_ns)
{
    sim->now += by_ns;
    while (sim->heap_count && sim->heap[0]->due <= sim->now)
        happen(sim, heap_pop(sim));
}

void sim_spend(weft_sim *sim, uint64_t ns)
{
    if (sim->busy)
        sim->busy(sim->hook_arg, ns);
    else
        sim_advance(sim, ns);
}

/* -- begin of an iface op -- */

weft_sim *sim_enter(sim_nic *nic)
{
    weft_sim *sim = nic->sim;
    nic->calls++;
    if (weft_unlikely(sim->kill_armed) && nic->proc_id.rank == sim->kill_rank && nic->calls >= sim->kill_step) {
        sim->kill_armed = false;
        weft_sim_kill(sim, nic->proc_id.rank);
        if (sim->died)
            sim->died(sim->hook_arg, nic->proc_id.rank);
    }
    return sim;
}

int sim_again(weft_sim *sim, sim_nic *nic)
{
    nic->wants = true;
    sim->counts[WEFT_SIM_REFUSED]++;
    return WEFT_AGAIN;
}

bool sim_is_refused(weft_sim *sim, sim_nic *nic)
{
    if (!nic->storm_left && sim_chance(sim, sim->profile.again_permille))
        nic->storm_left = 1 + (uint32_t)(sim_random(sim) % (sim->profile.storm_max + 1));
    if (!nic->storm_left)
        return false;
    nic->storm_left--;
    sim_again(sim, nic);
    sim_retry_post(sim, nic);
    return true;
}

int sim_may_post(weft_sim *sim, sim_flow *flow)
{
    if (flow->is_failed)
        return weft_fail(WEFT_E_PEER, "rank %u is lost", flow->to->proc_id.rank);
    return sim_is_refused(sim, flow->from) ? WEFT_AGAIN : 0;
}

/* -- death -- */

void sim_failed_post(weft_sim *sim, sim_flow *told)
{
    sim_flow *back = sim_flow_of(told->to, told->from);
    if (!back || told->failed_posted)
        return;
    sim_event *event = sim_event_new(back, SIM_PEER_FAILED, 0);
    if (!event)
        return;
    told->failed_posted = true;
    event->due = (back->last_frame_due > sim->now ? back->last_frame_due : sim->now) + delay(sim);
    if (heap_push(sim, event))
        sim_event_free(event);
}

/* Of the frames in flight selected by is_hit some arrive: each flow is cut at a random one. */
static void drop_frames(weft_sim *sim, bool (*is_hit)(const sim_flow *flow, const void *arg), const void *arg)
{
    uint32_t kept = 0;
    uint64_t *cut = calloc(sim->nic_count, sizeof *cut);
    for (uint32_t i = 0; cut && i < sim->nic_count; i++)
        cut[i] = sim_random(sim) % (sim->next_seq + 1);
    for (uint32_t i = 0; i < sim->heap_count; i++) {
        sim_event *event = sim->heap[i];
        uint64_t missing = event->flow->missing_seq, last = cut ? cut[event->flow->to->index] : 0;
        if (missing && missing < last)
            last = missing;
        if (event->kind == SIM_FRAME && is_hit(event->flow, arg) && cut && event->seq > last) {
            event->flow->frames--;
            event->flow->frames_in_flight--;
            sim->counts[WEFT_SIM_DROPPED]++;
            sim_event_free(event);
        } else {
            sim->heap[kept++] = event;
        }
    }
    sim->heap_count = kept;
    for (uint32_t i = kept / 2; i-- > 0;)
        heap_sink(sim, i);
    free(cut);
}

static bool is_from(const sim_flow *flow, const void *dead)
{
    return flow->from == dead;
}

static bool is_cut(const sim_flow *flow, const void *unused)
{
    (void)unused;
    return flow->is_cut;
}

void sim_cut(weft_sim *sim, sim_flow *flow)
{
    sim_flow *back = sim_flow_of(flow->to, flow->from);
    if (!back)
        return;
    flow->is_cut = back->is_cut = true;
    sim->counts[WEFT_SIM_CUT]++;
    drop_frames(sim, is_cut, NULL);
    if (flow->is_open)
        sim_failed_post(sim, flow);
    if (back->is_open)
        sim_failed_post(sim, back);
}

void weft_sim_kill(weft_sim *sim, uint32_t rank)
{
    for (uint32_t i = 0; i < sim->nic_count; i++) {
        sim_nic *dead = sim->nics[i];
        if (dead->proc_id.rank != rank || dead->is_dead)
            continue;
        dead->is_dead = true;
        sim->counts[WEFT_SIM_KILLED]++;
        drop_frames(sim, is_from, dead);
        for (uint32_t j = 0; j < sim->nic_count; j++) {
            sim_flow *told = sim_flow_of(sim->nics[j], dead);
            if (told && told->is_open && !sim->nics[j]->is_dead)
                sim_failed_post(sim, told);
        }
    }
    sim->activity++;
}

void weft_sim_kill_at(weft_sim *sim, uint32_t rank, uint64_t step)
{
    sim->kill_armed = true;
    sim->kill_rank = rank;
    sim->kill_step = step;
}
