/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fabric: see fabric.h. Endpoints, flows, the event queue, and death.
 */
#include "transports/sim/fabric.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "base/status.h"

const char *const weft_sim_count_names[WEFT_SIM_COUNT_LAST] = {
    "frames", "moves", "refused", "delayed", "reordered", "blind", "torn", "flipped", "keys-refused", "maps-refused", "killed",
    "dropped", "switches", "late-wakes",
};

const weft_sim_profile weft_sim_profiles[] = {
    {.name = "calm", .delay_ns = 50, .amo = WEFT_AMO_CPU},
    {.name = "slow", .delay_ns = 20000, .blind_permille = 200, .amo = WEFT_AMO_CPU},
    {.name = "storm", .delay_ns = 500, .again_permille = 300, .storm_max = 40, .blind_permille = 100, .amo = WEFT_AMO_CPU},
    {.name = "narrow", .delay_ns = 2000, .flow_frames = 2, .flow_moves = 1, .frame_max = 512, .local_keys = true,
     .amo = WEFT_AMO_NIC},
    {.name = "shuffled", .delay_ns = 5000, .unordered = true, .blind_permille = 50, .amo = WEFT_AMO_NIC},
    {.name = "torn", .delay_ns = 3000, .torn = true, .prompt_permille = 300, .move_max = 1000, .amo = WEFT_AMO_CPU},
    {.name = "copyonly", .delay_ns = 1000, .frame_max = 1024, .no_get = true, .no_put = true, .no_notify = true,
     .no_share = true},
    {.name = "pinched", .delay_ns = 1000, .pin_bytes = 32768, .map_refuse_permille = 300, .local_keys = true, .no_get = true,
     .amo = WEFT_AMO_CPU},
    {.name = "tiny", .delay_ns = 300, .frame_max = 192, .inline_max = 32, .flow_frames = 4, .again_permille = 100, .storm_max = 5,
     .no_put = true},
    {.name = "wild", .delay_ns = 8000, .again_permille = 150, .storm_max = 20, .flow_frames = 6, .flow_moves = 3,
     .blind_permille = 250, .prompt_permille = 250, .map_refuse_permille = 100, .torn = true, .local_keys = true,
     .frame_max = 2048, .move_max = 5000, .amo = WEFT_AMO_CPU},
    {.name = "kernel", .delay_ns = 1500, .blind_permille = 100, .prompt_permille = 400, .keyless = true, .no_notify = true},
    {.name = "grudging", .delay_ns = 1500, .again_permille = 250, .storm_max = 10, .flow_moves = 1, .prompt_permille = 200,
     .keyless = true, .no_notify = true},
    {.name = "lopsided", .delay_ns = 1500, .prompt_permille = 400, .keyless = true, .no_notify = true, .one_way = true},
    {.name = "flipped", .delay_ns = 500, .flip_permille = 20, .amo = WEFT_AMO_CPU},
    {.name = "lossy", .delay_ns = 500, .lose_permille = 10, .amo = WEFT_AMO_CPU},
    {.name = "doubled", .delay_ns = 500, .twice_permille = 10, .amo = WEFT_AMO_CPU},
    {.name = "deaf", .delay_ns = 5000, .deaf_permille = 300, .amo = WEFT_AMO_CPU},
    {.name = NULL},
};

const weft_sim_profile *weft_sim_profile_find(const char *name)
{
    for (const weft_sim_profile *profile = weft_sim_profiles; profile->name; profile++)
        if (strcmp(profile->name, name) == 0)
            return profile;
    return NULL;
}

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

weft_sim *weft_sim_open(const weft_sim_profile *profile, uint64_t seed)
{
    weft_sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return NULL;
    uint64_t state = seed;
    sim->profile = *profile;
    if (!sim->profile.flow_frames)
        sim->profile.flow_frames = 1024;
    if (!sim->profile.flow_moves)
        sim->profile.flow_moves = 256;
    if (!sim->profile.frame_max)
        sim->profile.frame_max = 4096;
    if (!sim->profile.move_max)
        sim->profile.move_max = 1u << 30;
    sim->seed = seed;
    sim->random[0] = split(&state);
    sim->random[1] = split(&state) | 1;
    weft_list_init(&sim->blocks);
    return sim;
}

static void endpoint_free(sim_endpoint *endpoint)
{
    weft_link *link;
    while ((link = weft_list_take(&endpoint->ready)))
        sim_event_free(weft_container(link, sim_event, link));
    for (uint32_t i = 0; i < endpoint->flow_room; i++)
        free(endpoint->flows[i]);
    free(endpoint->flows);
    weft_keyring_close(&endpoint->keys);
    free(endpoint->port);
    free(endpoint);
}

void weft_sim_close(weft_sim *sim)
{
    weft_link *link;
    for (uint32_t i = 0; i < sim->heap_count; i++)
        sim_event_free(sim->heap[i]);
    for (uint32_t i = 0; i < sim->endpoint_count; i++)
        endpoint_free(sim->endpoints[i]);
    while ((link = weft_list_take(&sim->blocks))) {
        sim_block *block = weft_container(link, sim_block, link);
        munmap(block->addr, block->bytes);
        free(block);
    }
    free(sim->endpoints);
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

/* -- endpoints and flows -- */

sim_endpoint *sim_endpoint_of(weft_sim *sim, const weft_name *name)
{
    for (uint32_t i = 0; i < sim->endpoint_count; i++) {
        weft_name *known = &sim->endpoints[i]->name;
        if (known->job == name->job && known->rank == name->rank && known->lane == name->lane)
            return sim->endpoints[i];
    }
    if (sim->endpoint_count == sim->endpoint_room) {
        uint32_t room = sim->endpoint_room ? 2 * sim->endpoint_room : 16;
        sim_endpoint **more = realloc(sim->endpoints, room * sizeof *more);
        if (!more)
            return NULL;
        sim->endpoints = more;
        sim->endpoint_room = room;
    }
    sim_endpoint *endpoint = calloc(1, sizeof *endpoint);
    if (!endpoint)
        return NULL;
    endpoint->sim = sim;
    endpoint->name = *name;
    endpoint->index = sim->endpoint_count;
    weft_list_init(&endpoint->ready);
    weft_keyring_open(&endpoint->keys, ((uint64_t)endpoint->index << 32) ^ 0x73696d00u ^ sim->seed);
    sim->endpoints[sim->endpoint_count++] = endpoint;
    return endpoint;
}

sim_flow *sim_flow_of(sim_endpoint *from, sim_endpoint *to)
{
    if (to->index >= from->flow_room) {
        uint32_t room = weft_round_up(to->index + 1, 16);
        sim_flow **more = realloc(from->flows, room * sizeof *more);
        if (!more)
            return NULL;
        memset(more + from->flow_room, 0, (room - from->flow_room) * sizeof *more);
        from->flows = more;
        from->flow_room = room;
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
    event->kind = kind;
    event->flow = flow;
    event->seq = ++flow->from->sim->next_seq;
    return event;
}

void sim_event_free(sim_event *event)
{
    weft_list_remove(&event->link);
    weft_list_remove(&event->pending);
    free(event->bounce);
    free(event);
}

static bool earlier(const sim_event *a, const sim_event *b)
{
    return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static int heap_push(weft_sim *sim, sim_event *event)
{
    if (sim->heap_count == sim->heap_room) {
        uint32_t room = sim->heap_room ? 2 * sim->heap_room : 256;
        sim_event **more = realloc(sim->heap, room * sizeof *more);
        if (!more)
            return weft_fail(WEFT_E_NOMEM, "no memory for %u simulated events", room);
        sim->heap = more;
        sim->heap_room = room;
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
    uint64_t most = sim->profile.delay_ns ? sim->profile.delay_ns : 1;
    /* most events are quick and a few take the whole time: that overtakes more than an even spread */
    uint64_t span = sim_chance(sim, 250) ? most : most / 8 + 1;
    return 1 + sim_random(sim) % span;
}

int sim_event_post(weft_sim *sim, sim_event *event)
{
    uint64_t took = delay(sim);
    if (took > 1000)
        sim->counts[WEFT_SIM_DELAYED]++;
    event->due = sim->now + took;
    if (event->kind == SIM_FRAME) {
        if (event->due < event->flow->last_frame_due && !sim->profile.unordered)
            event->due = event->flow->last_frame_due;
        if (event->due > event->flow->last_frame_due)
            event->flow->last_frame_due = event->due;
    }
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

/* Hands an event to whom it is for: its poll will find it. */
static void make_ready(sim_endpoint *endpoint, sim_event *event)
{
    if (event->seq < endpoint->newest)
        endpoint->sim->counts[WEFT_SIM_REORDERED]++;
    else
        endpoint->newest = event->seq;
    weft_list_append(&endpoint->ready, &event->link);
    if (endpoint->armed && !sim_chance(endpoint->sim, endpoint->sim->profile.deaf_permille))
        endpoint->bell++;
}

void sim_stir(sim_endpoint *endpoint)
{
    if (!endpoint->wants || !endpoint->armed)
        return;
    endpoint->wants = false;
    endpoint->bell++;
}

void sim_retry_post(weft_sim *sim, sim_endpoint *endpoint)
{
    sim_flow *own = endpoint->retry_posted ? NULL : sim_flow_of(endpoint, endpoint);
    sim_event *event = own ? sim_event_new(own, SIM_RETRY, 0) : NULL;
    uint64_t activity = sim->activity;
    if (event)
        endpoint->retry_posted = sim_event_post(sim, event) == 0;
    sim->activity = activity; /* being refused is no progress */
}

static uint64_t amo_now(const weft_atomic *atomic)
{
    uint64_t *word = (uint64_t *)(uintptr_t)atomic->remote, before = atomic->compare;
    switch (atomic->op) {
    case WEFT_AMO_ADD: return __atomic_fetch_add(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_SWAP: return __atomic_exchange_n(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_AND: return __atomic_fetch_and(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_OR: return __atomic_fetch_or(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_XOR: return __atomic_fetch_xor(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_CAS:
        __atomic_compare_exchange_n(word, &before, atomic->operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        break;
    }
    return before;
}

int sim_perform(sim_event *event)
{
    static const uint32_t needs[] = {[SIM_GET] = WEFT_RIGHT_READ, [SIM_PUT] = WEFT_RIGHT_WRITE, [SIM_AMO] = WEFT_RIGHT_ATOMIC};
    sim_endpoint *to = event->flow->to;
    weft_sim *sim = to->sim;
    weft_move *move = &event->move;
    if (to->is_dead)
        return weft_fail(WEFT_E_PEER, "rank %u died before the transfer was over", to->name.rank);
    if (event->kind == SIM_FLUSH)
        return 0;
    uint64_t remote = event->kind == SIM_AMO ? event->atomic.remote : move->remote;
    uint64_t bytes = event->kind == SIM_AMO ? sizeof(uint64_t) : move->bytes;
    int rc = sim->profile.keyless ? 0 : weft_keyring_check(&to->keys, &event->key, remote, bytes, needs[event->kind]);
    if (!rc && event->has_region)
        rc = weft_keyring_check(&event->flow->from->keys, &event->local_key, (uintptr_t)move->local, bytes, 0);
    if (rc) {
        sim->counts[WEFT_SIM_KEYS_REFUSED]++;
        return rc;
    }
    if (event->kind == SIM_AMO) {
        event->atomic.operand = amo_now(&event->atomic);
    } else if (event->kind == SIM_GET && bytes) {
        if (!(event->bounce = malloc(bytes)))
            return weft_fail(WEFT_E_NOMEM, "no memory to simulate a get of %" PRIu64 " bytes", bytes);
        memcpy(event->bounce, (void *)(uintptr_t)remote, bytes);
    } else if (bytes) {
        uint64_t half = sim->profile.torn ? bytes / 2 : 0;
        uint64_t first = event->is_half ? 0 : half, count = event->is_half ? half : bytes - half;
        memcpy((char *)(uintptr_t)remote + first, (char *)move->local + first, count);
    }
    return 0;
}

/* A get, put, amo or flush reached the other side. */
static void reach_memory(weft_sim *sim, sim_event *event)
{
    sim_flow *flow = event->flow;
    if (flow->from->is_dead || !flow->from->port) {
        sim_event_free(event); /* nobody is left to whom its end could be told */
        return;
    }
    if (event->kind == SIM_FLUSH) {
        weft_link *oldest = weft_list_first(&flow->pending);
        if (oldest && weft_container(oldest, sim_event, pending)->seq < event->seq) {
            sim_event_post(sim, event);
            return;
        }
    }
    event->rc = sim_perform(event);
    if (event->kind == SIM_PUT && !event->rc && sim->profile.torn && !event->is_half && event->move.bytes > 1) {
        sim->counts[WEFT_SIM_TORN]++;
        event->is_half = true;
        sim_event_post(sim, event);
        return;
    }
    if (event->kind == SIM_PUT && !event->rc && event->move.notify && flow->to->port) {
        sim_event *notify = sim_event_new(flow, SIM_NOTIFY, 0);
        if (notify) {
            notify->move.notify = event->move.notify;
            make_ready(flow->to, notify);
        }
    }
    sim->counts[WEFT_SIM_MOVES]++;
    event->was = event->kind;
    event->kind = SIM_DONE;
    sim_event_post(sim, event);
}

static void happen(weft_sim *sim, sim_event *event)
{
    sim_flow *flow = event->flow;
    switch (event->kind) {
    case SIM_FRAME:
        flow->frames_flying--;
        sim_stir(flow->from);
        if (flow->to->is_dead) {
            flow->frames--;
            sim->counts[WEFT_SIM_DROPPED]++;
            sim_event_free(event);
        } else {
            make_ready(flow->to, event); /* also before the port is open: it waits there */
        }
        break;
    case SIM_GET: case SIM_PUT: case SIM_AMO: case SIM_FLUSH:
        reach_memory(sim, event);
        break;
    case SIM_DONE:
        weft_list_remove(&event->pending);
        if (flow->from->is_dead || !flow->from->port)
            sim_event_free(event);
        else
            make_ready(flow->from, event);
        break;
    case SIM_RETRY:
        flow->from->retry_posted = false;
        sim_stir(flow->from);
        sim_event_free(event);
        break;
    case SIM_NOTIFY: case SIM_LOST:
        if (flow->to->is_dead || !flow->to->port)
            sim_event_free(event);
        else
            make_ready(flow->to, event);
        break;
    }
}

void sim_advance(weft_sim *sim, uint64_t by_ns)
{
    sim->now += by_ns;
    while (sim->heap_count && sim->heap[0]->due <= sim->now)
        happen(sim, heap_pop(sim));
}

/* -- death -- */

void sim_lost_post(weft_sim *sim, sim_flow *told)
{
    sim_flow *back = sim_flow_of(told->to, told->from);
    if (!back || told->lost_posted)
        return;
    sim_event *event = sim_event_new(back, SIM_LOST, 0);
    if (!event)
        return;
    told->lost_posted = true;
    event->due = (back->last_frame_due > sim->now ? back->last_frame_due : sim->now) + delay(sim);
    if (heap_push(sim, event))
        sim_event_free(event);
}

/* Of what the dead one has under way to each peer a beginning arrives: cut every flow at a random frame. */
static void cut_flows(weft_sim *sim, sim_endpoint *dead)
{
    uint32_t kept = 0;
    uint64_t *cut = calloc(sim->endpoint_count, sizeof *cut);
    for (uint32_t i = 0; cut && i < sim->endpoint_count; i++)
        cut[i] = sim_random(sim) % (sim->next_seq + 1);
    for (uint32_t i = 0; i < sim->heap_count; i++) {
        sim_event *event = sim->heap[i];
        if (event->kind == SIM_FRAME && event->flow->from == dead && cut && event->seq > cut[event->flow->to->index]) {
            event->flow->frames--;
            event->flow->frames_flying--;
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

void weft_sim_kill(weft_sim *sim, uint32_t rank)
{
    for (uint32_t i = 0; i < sim->endpoint_count; i++) {
        sim_endpoint *dead = sim->endpoints[i];
        if (dead->name.rank != rank || dead->is_dead)
            continue;
        dead->is_dead = true;
        sim->counts[WEFT_SIM_KILLED]++;
        cut_flows(sim, dead);
        for (uint32_t j = 0; j < sim->endpoint_count; j++) {
            sim_flow *told = sim_flow_of(sim->endpoints[j], dead);
            if (told && told->is_open && !sim->endpoints[j]->is_dead)
                sim_lost_post(sim, told);
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
