/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port: the simulator's side of the transport contract. Every call draws its faults from the fabric, then posts an event there.
 * Invariant: nothing is refused for ever: a storm of refusals has an end, a full queue empties when the peer polls.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "base/status.h"
#include "transports/sim/fabric.h"

typedef struct sim_port {
    weft_port port;
    sim_endpoint *endpoint;
} sim_port;

typedef struct sim_card {
    uint64_t fabric; /* a card of another fabric is of no use here */
    weft_name name;
} sim_card;

static sim_endpoint *endpoint_of(weft_port *port)
{
    return ((sim_port *)port)->endpoint;
}

static sim_flow *flow_of(weft_path *path)
{
    return weft_container(path, sim_flow, path);
}

/* Each call of the contract passes here: the place where a rank may die. */
static weft_sim *enter(sim_endpoint *endpoint)
{
    weft_sim *sim = endpoint->sim;
    endpoint->calls++;
    if (weft_unlikely(sim->kill_armed) && endpoint->name.rank == sim->kill_rank && endpoint->calls >= sim->kill_step) {
        sim->kill_armed = false;
        weft_sim_kill(sim, endpoint->name.rank);
        if (sim->died)
            sim->died(sim->hook_arg, endpoint->name.rank);
    }
    return sim;
}

/* AGAIN: from now on whatever may let the call through rings our bell, so that we may sleep on it. */
static int again(weft_sim *sim, sim_endpoint *endpoint)
{
    endpoint->wants = true;
    sim->counts[WEFT_SIM_REFUSED]++;
    return WEFT_AGAIN;
}

/* Storms: the same call is refused a few times in a row. */
static bool is_refused(weft_sim *sim, sim_endpoint *endpoint)
{
    if (!endpoint->storm_left && sim_chance(sim, sim->profile.again_permille))
        endpoint->storm_left = 1 + (uint32_t)(sim_random(sim) % (sim->profile.storm_max + 1));
    if (!endpoint->storm_left)
        return false;
    endpoint->storm_left--;
    again(sim, endpoint);
    sim_retry_post(sim, endpoint);
    return true;
}

static const char *sim_absent(void)
{
    return NULL;
}

static int sim_open(const weft_port_env *env, weft_port **port)
{
    weft_sim *sim = (weft_sim *)env->segment;
    if (!sim)
        return weft_fail(WEFT_E_ARG, "the simulator needs its fabric in env.segment");
    const weft_sim_profile *profile = &sim->profile;
    sim_endpoint *endpoint = sim_endpoint_of(sim, &env->self);
    sim_port *made = calloc(1, sizeof *made);
    if (!endpoint || !made) {
        free(made);
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated port");
    }
    if (endpoint->port) {
        free(made);
        return weft_fail(WEFT_E_ARG, "rank %u has opened lane %u already", env->self.rank, env->self.lane);
    }
    made->port = (weft_port){
        .ops = &weft_sim_ops,
        .owner = env->owner,
        .up = env->up,
        .caps = {.frame_max = profile->frame_max, .chunk = profile->frame_max, .inline_max = profile->inline_max,
                 .move_max = profile->move_max,
                 .latency_ns = profile->delay_ns / 4 + 1, .mbyte_per_s = 1000,
                 .key_bytes = profile->keyless ? 0 : WEFT_KEYRING_KEY_BYTES,
                 .get = !profile->no_get, .put = !profile->no_put, .notify = !profile->no_notify && !profile->no_put,
                 .ordered = !profile->unordered, .local_keys = profile->local_keys, .share = !profile->no_share,
                 .amo = profile->amo},
    };
    made->endpoint = endpoint;
    endpoint->port = &made->port;
    *port = &made->port;
    return 0;
}

/* Events of this port that are still under way find it closed and vanish; what others sent waits for a port of the same name. */
static void sim_close(weft_port *port)
{
    sim_endpoint *endpoint = endpoint_of(port);
    weft_link *link;
    while ((link = weft_list_take(&endpoint->ready))) {
        sim_event *event = weft_container(link, sim_event, link);
        if (event->kind == SIM_FRAME)
            event->flow->frames--;
        sim_event_free(event);
    }
    for (uint32_t i = 0; i < endpoint->flow_room; i++)
        if (endpoint->flows[i])
            endpoint->flows[i]->is_open = false;
    weft_keyring_close(&endpoint->keys);
    endpoint->port = NULL;
    free(port);
}

static int sim_card_of(weft_port *port, void *card, size_t *bytes)
{
    sim_endpoint *endpoint = endpoint_of(port);
    sim_card mine = {endpoint->sim->seed, endpoint->name};
    if (*bytes < sizeof mine)
        return weft_fail(WEFT_E_ARG, "a card needs %zu bytes, there is room for %zu", sizeof mine, *bytes);
    memcpy(card, &mine, sizeof mine);
    *bytes = sizeof mine;
    return 0;
}

static int sim_reach(weft_port *port, const weft_name *who, const void *card, size_t bytes, void *peer, weft_path **path)
{
    sim_endpoint *endpoint = endpoint_of(port);
    weft_sim *sim = enter(endpoint);
    sim_card theirs;
    /* The name is enough, as one fabric is one namespace: a card of ours is only checked, others are passed over. */
    if (card && bytes == sizeof theirs) {
        memcpy(&theirs, card, sizeof theirs);
        if (theirs.fabric != sim->seed || theirs.name.rank != who->rank)
            return weft_fail(WEFT_E_UNSUPPORTED, "the card of rank %u is of another fabric", who->rank);
    }
    sim_endpoint *to = sim_endpoint_of(sim, who);
    sim_flow *flow = to ? sim_flow_of(endpoint, to) : NULL;
    if (!flow)
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated path to rank %u", who->rank);
    if (flow->is_open)
        return weft_fail(WEFT_E_ARG, "rank %u is reached already", who->rank);
    flow->is_open = true;
    flow->is_lost = flow->lost_posted = false;
    flow->path = (weft_path){.port = port, .peer = peer};
    if (to->is_dead)
        sim_lost_post(sim, flow);
    *path = &flow->path;
    return 0;
}

static int sim_leave(weft_port *port, weft_path *path)
{
    sim_flow *flow = flow_of(path);
    sim_endpoint *endpoint = endpoint_of(port);
    weft_sim *sim = enter(endpoint);
    if (!flow->is_lost && (flow->frames_flying || flow->moves))
        return again(sim, endpoint);
    if (!flow->is_lost && is_refused(sim, endpoint))
        return WEFT_AGAIN;
    flow->is_open = false;
    return 0;
}

static int sim_map(weft_port *port, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_region *region)
{
    sim_endpoint *endpoint = endpoint_of(port);
    weft_sim *sim = enter(endpoint);
    if (kind != WEFT_MEMORY_HOST)
        return weft_fail(WEFT_E_UNSUPPORTED, "the simulator maps the host's memory only");
    if (sim->profile.pin_bytes && endpoint->keys.live_bytes + bytes > sim->profile.pin_bytes) {
        sim->counts[WEFT_SIM_MAPS_REFUSED]++;
        return weft_fail(WEFT_E_NOMEM, "%" PRIu64 " bytes more than the %" PRIu64 " mapped pass the pin limit of %" PRIu64, bytes,
                         endpoint->keys.live_bytes, sim->profile.pin_bytes);
    }
    if (sim_chance(sim, sim->profile.map_refuse_permille)) {
        sim->counts[WEFT_SIM_MAPS_REFUSED]++;
        return weft_fail(WEFT_E_NOMEM, "the simulated device is out of regions for now");
    }
    int rc = weft_keyring_add(&endpoint->keys, addr, bytes, rights, region);
    if (!rc && sim->profile.keyless)
        region->key.length = 0;
    return rc;
}

static int sim_unmap(weft_port *port, weft_region *region)
{
    weft_sim *sim = enter(endpoint_of(port));
    if (sim->profile.keyless)
        region->key.length = WEFT_KEYRING_KEY_BYTES; /* it was only hidden */
    return weft_keyring_remove(&endpoint_of(port)->keys, region);
}

static sim_block *block_find(weft_sim *sim, uint64_t handle)
{
    for (weft_link *link = sim->blocks.next; link != &sim->blocks; link = link->next) {
        sim_block *block = weft_container(link, sim_block, link);
        if (block->handle == handle)
            return block;
    }
    return NULL;
}

static int sim_share(weft_port *port, uint64_t bytes, weft_shared *shared)
{
    weft_sim *sim = enter(endpoint_of(port));
    sim_block *block;
    if (sim->profile.no_share)
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated port shares no memory");
    if (shared->handle) {
        block = block_find(sim, shared->handle);
        if (!block)
            return weft_fail(WEFT_E_KEY, "no shared memory has the handle %" PRIu64, shared->handle);
        block->refs++;
    } else {
        if (!bytes)
            return weft_fail(WEFT_E_ARG, "shared memory of 0 bytes cannot be made");
        block = malloc(sizeof *block);
        void *addr = block ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
        if (addr == MAP_FAILED) {
            free(block);
            return weft_fail(WEFT_E_NOMEM, "no memory to share %" PRIu64 " bytes", bytes);
        }
        *block = (sim_block){.addr = addr, .bytes = bytes, .handle = ++sim->next_handle, .refs = 1};
        weft_list_append(&sim->blocks, &block->link);
    }
    *shared = (weft_shared){block->addr, block->bytes, block->handle};
    return 0;
}

static int sim_unshare(weft_port *port, weft_shared *shared)
{
    weft_sim *sim = enter(endpoint_of(port));
    sim_block *block = block_find(sim, shared->handle);
    if (!block)
        return weft_fail(WEFT_E_KEY, "no shared memory has the handle %" PRIu64, shared->handle);
    if (!--block->refs) {
        weft_list_remove(&block->link);
        munmap(block->addr, block->bytes);
        free(block);
    }
    *shared = (weft_shared){0};
    return 0;
}

/* What all calls that move bytes ask first: 0, AGAIN or an error. */
static int may_post(weft_sim *sim, sim_flow *flow)
{
    if (flow->is_lost)
        return weft_fail(WEFT_E_PEER, "rank %u is lost", flow->to->name.rank);
    return is_refused(sim, flow->from) ? WEFT_AGAIN : 0;
}

/* Users' bytes. A wrong address in a control frame is no question of noticing, it is a wild write. */
static bool is_payload(const weft_frame *frame)
{
    return frame->head.kind == WEFT_FRAME_EAGER || frame->head.kind == WEFT_FRAME_DATA;
}

/* Puts a copy of the frame on its way. */
static int launch(weft_sim *sim, sim_flow *flow, const weft_frame *frame)
{
    uint32_t bytes = frame->head.bytes;
    sim_event *event = sim_event_new(flow, SIM_FRAME, bytes);
    if (!event)
        return weft_fail(WEFT_E_NOMEM, "no memory for a frame of %u bytes", bytes);
    event->head = frame->head;
    if (frame->fill)
        frame->fill(frame, event->body);
    else if (bytes)
        memcpy(event->body, frame->body, bytes);
    if (bytes && is_payload(frame) && sim_chance(sim, sim->profile.flip_permille)) {
        uint64_t bit = sim_random(sim) % (8ull * bytes);
        event->body[bit / 8] ^= (uint8_t)(1u << bit % 8);
        sim->counts[WEFT_SIM_FLIPPED]++;
    }
    sim->counts[WEFT_SIM_FRAMES]++;
    flow->frames++;
    flow->frames_flying++;
    int rc = sim_event_post(sim, event);
    if (rc) {
        flow->frames--;
        flow->frames_flying--;
    }
    return rc;
}

static int sim_send(weft_port *port, weft_path *path, const weft_frame *frame)
{
    sim_flow *flow = flow_of(path);
    weft_sim *sim = enter(endpoint_of(port));
    uint32_t bytes = frame->head.bytes;
    if (bytes > port->caps.frame_max)
        return weft_fail(WEFT_E_ARG, "a frame of %u bytes is longer than frame_max, %u", bytes, port->caps.frame_max);
    int rc = may_post(sim, flow);
    if (rc)
        return rc;
    if (flow->frames >= sim->profile.flow_frames)
        return again(sim, flow->from);
    if (sim_chance(sim, sim->profile.lose_permille))
        return 0;
    rc = launch(sim, flow, frame);
    if (!rc && frame->head.kind == WEFT_FRAME_EAGER && sim_chance(sim, sim->profile.twice_permille))
        launch(sim, flow, frame);
    return rc;
}

/* What came back from the other side goes to where it was asked for. */
static void bring_home(const sim_event *event)
{
    if (event->rc)
        return;
    if (event->was == SIM_AMO && event->atomic.before)
        *event->atomic.before = event->atomic.operand;
    if (event->was == SIM_GET && event->bounce)
        memcpy(event->move.local, event->bounce, event->move.bytes);
}

/* Posts a get, put, amo or flush; some end at once, inside the call. */
static int post_move(weft_sim *sim, sim_event *event)
{
    sim_flow *flow = event->flow;
    bool is_plain = event->kind == SIM_GET || (event->kind == SIM_PUT && !event->move.notify && !sim->profile.torn);
    sim->activity++;
    if (is_plain && weft_list_is_empty(&flow->pending) && sim_chance(sim, sim->profile.prompt_permille)) {
        weft_port *port = flow->path.port;
        void *done = event->done;
        event->rc = sim_perform(event);
        int rc = event->rc;
        event->was = event->kind;
        bring_home(event);
        sim->counts[WEFT_SIM_MOVES]++;
        sim_event_free(event);
        if (!rc && done)
            port->up->done(port->owner, done, 0);
        return rc;
    }
    if (event->kind == SIM_PUT || event->kind == SIM_AMO)
        weft_list_append(&flow->pending, &event->pending);
    flow->moves++;
    int rc = sim_event_post(sim, event);
    if (rc)
        flow->moves--;
    return rc;
}

static bool sim_can_move(weft_port *port, weft_path *path)
{
    const sim_endpoint *endpoint = endpoint_of(port);
    (void)path;
    return (port->caps.get || port->caps.put) && !(endpoint->sim->profile.one_way && endpoint->name.rank % 2);
}

static int move(weft_port *port, weft_path *path, const weft_move *what, enum sim_event_kind kind)
{
    sim_flow *flow = flow_of(path);
    weft_sim *sim = enter(endpoint_of(port));
    if (kind == SIM_GET ? sim->profile.no_get : sim->profile.no_put)
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated port has no %s", kind == SIM_GET ? "get" : "put");
    if (!sim_can_move(port, path))
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated rank may not reach other ranks' memory");
    if (what->notify && !port->caps.notify)
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated port cannot notify");
    if (what->bytes > port->caps.move_max)
        return weft_fail(WEFT_E_ARG, "%" PRIu64 " bytes are more than move_max, %" PRIu64, what->bytes, port->caps.move_max);
    if (port->caps.local_keys && !what->region)
        return weft_fail(WEFT_E_KEY, "this simulated port needs the local memory's region");
    int rc = may_post(sim, flow);
    if (rc)
        return rc;
    if (flow->moves >= sim->profile.flow_moves)
        return again(sim, flow->from);
    sim_event *event = sim_event_new(flow, kind, 0);
    if (!event)
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated transfer");
    event->move = *what;
    event->done = what->done;
    event->key = *what->key;
    if (port->caps.local_keys) {
        event->has_region = true;
        event->local_key = what->region->key;
    }
    return post_move(sim, event);
}

static int sim_get(weft_port *port, weft_path *path, const weft_move *what)
{
    return move(port, path, what, SIM_GET);
}

static int sim_put(weft_port *port, weft_path *path, const weft_move *what)
{
    return move(port, path, what, SIM_PUT);
}

static int sim_amo(weft_port *port, weft_path *path, const weft_atomic *atomic)
{
    sim_flow *flow = flow_of(path);
    weft_sim *sim = enter(endpoint_of(port));
    if (sim->profile.amo == WEFT_AMO_NONE)
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated port has no atomics");
    if (atomic->remote % sizeof(uint64_t))
        return weft_fail(WEFT_E_ARG, "an atomic on 0x%" PRIx64 ": the address must be a multiple of 8", atomic->remote);
    int rc = may_post(sim, flow);
    if (rc)
        return rc;
    if (flow->moves >= sim->profile.flow_moves)
        return again(sim, flow->from);
    sim_event *event = sim_event_new(flow, SIM_AMO, 0);
    if (!event)
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated atomic");
    event->atomic = *atomic;
    event->done = atomic->done;
    event->key = *atomic->key;
    return post_move(sim, event);
}

static int sim_flush(weft_port *port, weft_path *path, bool remotely, void *done)
{
    sim_flow *flow = flow_of(path);
    weft_sim *sim = enter(endpoint_of(port));
    (void)remotely; /* both ends are one memory: what is read here stands there */
    int rc = may_post(sim, flow);
    if (rc)
        return rc;
    sim_event *event = sim_event_new(flow, SIM_FLUSH, 0);
    if (!event)
        return weft_fail(WEFT_E_NOMEM, "no memory for a simulated flush");
    event->done = done;
    return post_move(sim, event);
}

/* -- progress -- */

static void hand_up_frame(weft_port *port, sim_event *event)
{
    sim_endpoint *me = endpoint_of(port), *from = event->flow->from;
    sim_flow *back = sim_flow_of(me, from);
    void *peer = NULL;
    event->flow->frames--;
    sim_stir(from);
    if (back && back->is_open)
        peer = back->path.peer;
    else if (!(peer = port->up->greet(port->owner, &from->name))) {
        me->sim->counts[WEFT_SIM_DROPPED]++;
        return;
    }
    port->up->arrive(port->owner, peer, &event->head, event->body);
}

static void hand_up(weft_port *port, sim_event *event)
{
    sim_endpoint *me = endpoint_of(port);
    sim_flow *mine;
    switch (event->kind) {
    case SIM_FRAME:
        hand_up_frame(port, event);
        break;
    case SIM_DONE:
        event->flow->moves--;
        bring_home(event);
        if (event->done)
            port->up->done(port->owner, event->done, event->rc);
        break;
    case SIM_NOTIFY:
        mine = sim_flow_of(me, event->flow->from);
        if (mine && mine->is_open)
            port->up->notified(port->owner, mine->path.peer, event->move.notify);
        break;
    case SIM_LOST:
        mine = sim_flow_of(me, event->flow->from);
        if (mine && mine->is_open && !mine->is_lost) {
            mine->is_lost = true;
            port->up->lost(port->owner, mine->path.peer,
                           weft_fail(WEFT_E_PEER, "rank %u died", event->flow->from->name.rank));
        }
        break;
    default: break;
    }
}

static int sim_poll(weft_port *port, int budget)
{
    sim_endpoint *endpoint = endpoint_of(port);
    weft_sim *sim = enter(endpoint);
    int events = 0;
    weft_link *link;
    sim_advance(sim, 20 + sim_random(sim) % 100);
    if (!endpoint->armed && !weft_list_is_empty(&endpoint->ready) && sim_chance(sim, sim->profile.blind_permille)) {
        sim->counts[WEFT_SIM_BLIND]++;
        return 0;
    }
    while (events < budget && (link = weft_list_take(&endpoint->ready))) {
        sim_event *event = weft_container(link, sim_event, link);
        hand_up(port, event);
        sim_event_free(event);
        sim->activity++;
        events++;
    }
    if (!events && sim->idle)
        sim->idle(sim->hook_arg);
    return events;
}

/* What comes between the caller's last poll and here rings nothing: only its poll after arm finds it. Time passes here, so that
 * just this happens often. */
static int sim_arm(weft_port *port, weft_bell *bell)
{
    sim_endpoint *endpoint = endpoint_of(port);
    weft_sim *sim = enter(endpoint);
    sim_advance(sim, sim_random(sim) % 400);
    endpoint->armed++;
    *bell = (weft_bell){.futex = &endpoint->bell, .value = endpoint->bell, .fd = -1};
    return 0;
}

static void sim_disarm(weft_port *port)
{
    endpoint_of(port)->armed--;
}

const weft_port_ops weft_sim_ops = {
    .name = "sim",
    .absent = sim_absent,
    .open = sim_open,
    .close = sim_close,
    .card = sim_card_of,
    .reach = sim_reach,
    .leave = sim_leave,
    .map = sim_map,
    .unmap = sim_unmap,
    .share = sim_share,
    .unshare = sim_unshare,
    .send = sim_send,
    .can_move = sim_can_move,
    .get = sim_get,
    .put = sim_put,
    .amo = sim_amo,
    .flush = sim_flush,
    .poll = sim_poll,
    .arm = sim_arm,
    .disarm = sim_disarm,
};
