/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_sleep_order: all interleavings of a sender and a receiver that polls, closes its ring and sleeps (transports/shm/recv.c), with store
 * buffers of a TSO machine; asleep on a futex, and on a socket (mem/wakeup_sock.c). Property: no endless sleep while a frame is unread.
 * Without any one rule of the protocol the search must find such an end, which shows that it can. weft_ring_announce_flags of the transport
 * itself decides which side fences, for processes with and without membarrier.
 */
#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "transports/shm/ring.h"

#define FRAMES 3
#define TABLE (1u << 20)

enum variable { SENT, ASLEEP, OPEN, PMIX_MSG, BYTES, VARIABLES }; /* BYTES: unread ones in the socket */
enum sender { S_STORE, S_FLAGS, S_FENCE, S_FLAGS_AGAIN, S_NOTE, S_ASLEEP, S_WAKE, S_RING, S_END };
enum receiver { R_RING, R_NOTE, R_IDLE, R_CLOSE_ORDER, R_CLOSE_LOOK, R_ARM_ORDER, R_AGAIN_RING, R_AGAIN_NOTE, R_SLEEP, R_BLOCKED,
                R_DISARM, R_DRAIN };
enum rule { NO_BARRIER = 1, NO_SECOND_LOOK = 2, NO_LOOK_AFTER_CLOSE = 4, NO_NOTE = 8, NO_WAKE = 16, LATE_DRAIN = 32,
            TRUST_READER = 64, NO_FENCE = 128 };
/* A process that is not registered neither issues barriers nor receives them. */
enum registered { READER = 1, SENDER = 2, BOTH = 3 };

#define QUEUE 2 /* bytes that the socket holds; more are refused, harmlessly */

typedef struct state {
    uint8_t memory[VARIABLES];
    uint8_t sender, receiver;
    uint8_t frame;               /* of the sender, 1..FRAMES */
    uint8_t got;
    uint8_t sent_buffer;         /* pending store of SENT; 0: none */
    uint8_t own_count;           /* the receiver's pending stores, oldest first */
    uint8_t own_what[3], own_value[3];
    uint8_t closes;
} state;

typedef struct search {
    unsigned broken; /* enum rule */
    bool by_socket;
    unsigned registered; /* enum registered */
    state *table;
    bool *used;
    uint32_t count;
    uint32_t hangs;
} search;

static uint8_t own_load(const state *s, enum variable what)
{
    for (int i = s->own_count; i-- > 0;)
        if (s->own_what[i] == what)
            return s->own_value[i];
    return s->memory[what];
}

static void own_store(state *s, enum variable what, uint8_t value)
{
    s->own_what[s->own_count] = (uint8_t)what;
    s->own_value[s->own_count++] = value;
}

static void own_drain_one(state *s)
{
    s->memory[s->own_what[0]] = s->own_value[0];
    s->own_count--;
    memmove(s->own_what, s->own_what + 1, 2);
    memmove(s->own_value, s->own_value + 1, 2);
    s->own_what[s->own_count] = s->own_value[s->own_count] = 0;
}

static void own_drain(state *s)
{
    while (s->own_count)
        own_drain_one(s);
}

static void sender_drain(state *s)
{
    if (s->sent_buffer)
        s->memory[SENT] = s->sent_buffer;
    s->sent_buffer = 0;
}

static void visit(search *search, const state *s);

static void next_frame(state *s)
{
    s->sender = s->frame == FRAMES ? S_END : S_STORE;
    if (s->sender == S_STORE)
        s->frame++;
}

/* The sender continues by the ring's flags, as in transports/shm/send.c. */
static enum sender by_flags(const search *search, const state *s, bool is_fenced)
{
    uint32_t flags = (s->memory[OPEN] ? WEFT_RING_OPEN : 0) | (search->registered & READER ? 0 : WEFT_RING_FENCE);
    bool is_registered = search->broken & TRUST_READER || search->registered & SENDER;
    if (!(flags & WEFT_RING_OPEN))
        return search->broken & NO_NOTE ? S_ASLEEP : S_NOTE;
    if (is_fenced || flags == weft_ring_announce_flags(is_registered) || search->broken & NO_FENCE)
        return S_ASLEEP;
    return S_FENCE;
}

static void step_sender(search *search, state s)
{
    switch (s.sender) {
    case S_STORE:
        sender_drain(&s); /* a buffer of one: an older store leaves first, as in TSO */
        s.sent_buffer = s.frame;
        s.sender = S_FLAGS;
        break;
    case S_FLAGS:
        s.sender = by_flags(search, &s, false);
        break;
    case S_FENCE:
        sender_drain(&s);
        s.sender = S_FLAGS_AGAIN;
        break;
    case S_FLAGS_AGAIN:
        s.sender = by_flags(search, &s, true);
        break;
    case S_NOTE:
        sender_drain(&s);
        s.memory[PMIX_MSG] = 1;
        s.sender = S_ASLEEP;
        break;
    case S_ASLEEP:
        if (s.memory[ASLEEP] && !(search->broken & NO_WAKE))
            s.sender = S_WAKE;
        else
            next_frame(&s);
        break;
    case S_WAKE:
        sender_drain(&s);
        if (!s.memory[ASLEEP] || !search->by_socket) {
            if (s.memory[ASLEEP] && s.receiver == R_BLOCKED)
                s.receiver = R_RING;
            s.memory[ASLEEP] = 0;
            next_frame(&s);
            break;
        }
        s.memory[ASLEEP] = 0;
        s.sender = S_RING;
        break;
    case S_RING: /* other steps may come before the byte is there */
        s.memory[BYTES] += s.memory[BYTES] < QUEUE;
        if (s.receiver == R_BLOCKED)
            s.receiver = R_DISARM;
        next_frame(&s);
        break;
    default:
        return;
    }
    visit(search, &s);
}

/* Drains the receiver's stores, then a barrier on all CPUs of registered processes: drains the sender's too. */
static void order(const search *search, state *s)
{
    own_drain(s);
    if (!(search->broken & NO_BARRIER) && search->registered == BOTH)
        sender_drain(s);
}

static bool take_frame(state *s)
{
    if (!own_load(s, OPEN) || s->memory[SENT] <= s->got)
        return false;
    s->got++;
    return true;
}

static bool take_note(state *s)
{
    if (!s->memory[PMIX_MSG])
        return false;
    own_drain(s); /* an atomic exchange */
    s->memory[PMIX_MSG] = 0;
    own_store(s, OPEN, 1);
    return true;
}

/* A step of the receiver's sleep; false: it takes none. */
static bool step_sleep(const search *search, state *s)
{
    switch (s->receiver) {
    case R_SLEEP:
        own_drain(s);
        if (search->broken & LATE_DRAIN)
            s->memory[BYTES] = 0;
        if (search->by_socket)
            s->receiver = s->memory[BYTES] ? R_DISARM : R_BLOCKED;
        else
            s->receiver = s->memory[ASLEEP] ? R_BLOCKED : R_RING;
        break;
    case R_BLOCKED: /* a descriptor of another iface may end the sleep at any time, and so does the limit */
        if (!search->by_socket || s->sender == S_END)
            return false;
        s->receiver = R_DISARM;
        break;
    case R_DISARM:
        own_store(s, ASLEEP, 0);
        s->receiver = R_DRAIN;
        break;
    case R_DRAIN:
        s->memory[BYTES] = 0;
        s->receiver = R_RING;
        break;
    default:
        return false;
    }
    return true;
}

static void step_receiver(search *search, state s)
{
    if (s.own_count == 3)
        own_drain_one(&s);
    switch (s.receiver) {
    case R_RING:
        s.receiver = take_frame(&s) ? R_RING : R_NOTE;
        break;
    case R_NOTE:
        s.receiver = take_note(&s) ? R_RING : R_IDLE;
        break;
    case R_IDLE:
        if (own_load(&s, OPEN) && s.closes < 2) {
            state closing = s;
            closing.closes++;
            own_store(&closing, OPEN, 0);
            closing.receiver = R_CLOSE_ORDER;
            visit(search, &closing);
        }
        own_store(&s, ASLEEP, 1);
        s.receiver = R_ARM_ORDER;
        break;
    case R_CLOSE_ORDER:
        order(search, &s);
        s.receiver = R_CLOSE_LOOK;
        break;
    case R_CLOSE_LOOK:
        if (s.memory[SENT] > s.got && !(search->broken & NO_LOOK_AFTER_CLOSE))
            own_store(&s, OPEN, 1);
        s.receiver = R_RING;
        break;
    case R_ARM_ORDER:
        order(search, &s);
        s.receiver = search->broken & NO_SECOND_LOOK ? R_SLEEP : R_AGAIN_RING;
        break;
    case R_AGAIN_RING:
    case R_AGAIN_NOTE:
        if (s.receiver == R_AGAIN_RING ? take_frame(&s) : take_note(&s)) {
            own_store(&s, ASLEEP, 0);
            s.receiver = search->by_socket ? R_DRAIN : R_RING;
        } else {
            s.receiver = s.receiver == R_AGAIN_RING ? R_AGAIN_NOTE : R_SLEEP;
        }
        break;
    default:
        if (!step_sleep(search, &s))
            return;
    }
    visit(search, &s);
}

static bool is_new(search *search, const state *s)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < sizeof *s; i++)
        hash = (hash ^ ((const uint8_t *)s)[i]) * 1099511628211u;
    for (uint32_t at = (uint32_t)(hash >> 20) % TABLE;; at = (at + 1) % TABLE) {
        if (!search->used[at]) {
            search->used[at] = true;
            search->table[at] = *s;
            search->count++;
            return true;
        }
        if (memcmp(&search->table[at], s, sizeof *s) == 0)
            return false;
    }
}

static void visit(search *search, const state *s)
{
    if (search->count > TABLE / 2 || !is_new(search, s))
        return;
    if (s->sender == S_END && s->receiver == R_BLOCKED && !s->sent_buffer && s->got < FRAMES)
        search->hangs++;
    if (s->sent_buffer) {
        state drained = *s;
        sender_drain(&drained);
        visit(search, &drained);
    }
    if (s->own_count) {
        state drained = *s;
        own_drain_one(&drained);
        visit(search, &drained);
    }
    step_sender(search, *s);
    step_receiver(search, *s);
}

static uint32_t hangs_among(unsigned registered, unsigned broken, bool by_socket, uint32_t *states)
{
    search search = {.broken = broken, .by_socket = by_socket, .registered = registered,
                     .table = calloc(TABLE, sizeof(state)), .used = calloc(TABLE, sizeof(bool))};
    state start = {.frame = 1};
    visit(&search, &start);
    CU_ASSERT(search.count < TABLE / 2);
    *states = search.count;
    free(search.table);
    free(search.used);
    return search.hangs;
}

static uint32_t hangs_without(unsigned broken, bool by_socket, uint32_t *states)
{
    return hangs_among(BOTH, broken, by_socket, states);
}

static void no_endless_sleep(void)
{
    uint32_t states;
    for (int by_socket = 0; by_socket < 2; by_socket++)
        for (unsigned registered = 0; registered <= BOTH; registered++) {
            CU_ASSERT_EQUAL(hangs_among(registered, 0, by_socket, &states), 0);
            CU_ASSERT(states > 1000);
            printf("(%u states) ", states);
        }
}

/* A barrier needs two registered processes; otherwise the sender fences. */
static void sender_without_membarrier_fences(void)
{
    uint32_t states;
    for (int by_socket = 0; by_socket < 2; by_socket++) {
        CU_ASSERT(hangs_among(READER, TRUST_READER, by_socket, &states) > 0);
        for (unsigned registered = 0; registered < BOTH; registered++)
            CU_ASSERT(hangs_among(registered, NO_FENCE, by_socket, &states) > 0);
    }
}

static void every_rule_is_needed(void)
{
    static const unsigned rules[] = {NO_BARRIER, NO_SECOND_LOOK, NO_LOOK_AFTER_CLOSE, NO_NOTE, NO_WAKE};
    uint32_t states;
    for (size_t i = 0; i < weft_count(rules); i++) {
        CU_ASSERT(hangs_without(rules[i], false, &states) > 0);
        CU_ASSERT(hangs_without(rules[i], true, &states) > 0);
    }
    CU_ASSERT(hangs_without(LATE_DRAIN, true, &states) > 0); /* a byte meant for this sleep */
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("sleep order", NULL, NULL);
    CU_add_test(suite, "no endless sleep with an unread frame", no_endless_sleep);
    CU_add_test(suite, "without any one rule a schedule hangs", every_rule_is_needed);
    CU_add_test(suite, "a sender without membarrier fences", sender_without_membarrier_fences);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}
