/* SPDX-License-Identifier: BSD-3-Clause
 *
 * traffic: random messages between simulated ranks. Each rank draws the same messages of a round from the seed, so the expected ones are
 * known; bytes, source, tag, length and MPI's order of messages are verified.
 */
#include "test/sim/traffic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/status.h"
#include "p2p/rndv_pool.h"
#include "test/sim/rig.h"

#define MESSAGES 24 /* per round */
#define TAGS 3

/* How the receives of a round specify their messages. In each way every message has a receive that it may match. */
enum asking { EXACT, ANY_SOURCE, ANY_TAG, ANYTHING, PROBED, ASKINGS };

typedef struct message {
    int src, dst, tag;
    uint64_t bytes, name;
    bool is_strided, is_got;
    enum weft_send_mode mode;
    uint8_t *buf;
    const weft_type *type;
    weft_req *req;
} message;

typedef struct receive {
    int src, tag;
    uint64_t capacity;
    bool is_strided;
    uint8_t *buf;
    weft_req *req;
    weft_recv_info recv_info;
    bool is_done;
} receive;

typedef struct round_plan {
    message messages[MESSAGES];
    enum asking asking[64]; /* per destination */
    bool is_late[64];       /* receives are posted after the sends: messages are unexpected */
} round_plan;

static uint64_t draw_bytes(uint64_t *state)
{
    switch (rig_random(state) % 8) {
    case 0: return 0;
    case 1: case 2: return rig_random(state) % 9;
    case 3: case 4: return rig_random(state) % 200;
    case 5: return rig_random(state) % 5000;
    case 6: return rig_random(state) % 40000;
    default: return rig_random(state) % 9000;
    }
}

static void draw_round(round_plan *sched, int size, uint64_t seed, uint32_t round, bool has_probes)
{
    uint64_t state = seed * 7919 + round;
    for (int i = 0; i < size; i++) {
        sched->asking[i] = (enum asking)(rig_random(&state) % (has_probes ? ASKINGS : PROBED));
        sched->is_late[i] = sched->asking[i] == PROBED || rig_random(&state) % 2;
    }
    for (int i = 0; i < MESSAGES; i++) {
        message *one = &sched->messages[i];
        *one = (message){.src = (int)(rig_random(&state) % (uint64_t)size), .dst = (int)(rig_random(&state) % (uint64_t)size),
                         .tag = (int)(rig_random(&state) % TAGS), .bytes = draw_bytes(&state),
                         .name = seed << 20 | round * 64 | (uint32_t)i, .is_strided = rig_random(&state) % 4 == 0};
        if (rig_random(&state) % 3 == 0) /* more messages between some pairs, to test order */
            one->src = one->dst = (int)(seed % (uint64_t)size), one->dst = (one->src + 1) % size;
        one->mode = rig_random(&state) % 5 == 0 ? WEFT_SEND_SYNC : WEFT_SEND_STANDARD;
    }
    if (seed % 9 == 4) /* sometimes one that is registered in several fragments */
        sched->messages[rig_random(&state) % MESSAGES].bytes = 200000 + rig_random(&state) % 1000000;
}

/* Datatypes created and not yet freed by each rank. Types are storage of the process, which is reused by later runs: those of a rank
 * that died must be freed. */
static struct {
    const weft_type *types[2 * MESSAGES];
    uint32_t count;
} held[64];

/* Strided: single bytes at distance three. Freed by drop_type. */
static int byte_type(const rig *rig, bool is_strided, uint64_t bytes, const weft_type **type, uint64_t *count)
{
    weft_type *made;
    *type = rig_type(RIG_BYTE);
    *count = bytes;
    if (!is_strided || !bytes)
        return 0;
    int rc = weft_type_vector((int64_t)bytes, 1, 3, *type, &made);
    if (rc)
        return rc;
    held[rig->rank].types[held[rig->rank].count++] = *type = made;
    *count = 1;
    return weft_type_commit(made);
}

static void drop_type(const rig *rig, const weft_type *type)
{
    uint32_t i = 0;
    if (type == rig_type(RIG_BYTE))
        return;
    while (held[rig->rank].types[i] != type)
        i++;
    held[rig->rank].types[i] = held[rig->rank].types[--held[rig->rank].count];
    weft_type_drop(type);
}

void traffic_clear(void)
{
    for (int rank = 0; rank < 64; rank++)
        while (held[rank].count)
            weft_type_drop(held[rank].types[--held[rank].count]);
}

static uint64_t span(bool is_strided, uint64_t bytes)
{
    return is_strided ? 3 * bytes + 1 : bytes + 1;
}

static void spread(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        to[3 * i] = from[i];
}

static void gather(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        to[i] = from[3 * i];
}

static int start_send(rig *rig, message *one)
{
    const weft_type *type;
    uint64_t count;
    uint8_t *plain = malloc(one->bytes + 1);
    int rc = byte_type(rig, one->is_strided, one->bytes, &type, &count);
    if (rc)
        return rc;
    one->buf = malloc(span(one->is_strided, one->bytes));
    rig_fill(plain, one->name, one->bytes);
    if (one->is_strided)
        spread(one->buf, plain, one->bytes);
    else
        memcpy(one->buf, plain, one->bytes);
    free(plain);
    one->type = type;
    rc = one->mode == WEFT_SEND_STANDARD && one->name % 2
             ? weft_isend_standard(one->buf, count, type, one->dst, one->tag, rig->chan, &one->req)
             : weft_isend(rig->chan, one->dst, one->tag, one->buf, count, type, one->mode, &one->req);
    if (one->req && one->req->is_done)
        memset(one->buf, 0xee, span(one->is_strided, one->bytes)); /* completed: the buffer may be reused */
    return rc;
}

static int start_receive(rig *rig, receive *one)
{
    const weft_type *type;
    uint64_t count;
    int rc = byte_type(rig, one->is_strided, one->capacity, &type, &count);
    if (rc)
        return rc;
    one->buf = malloc(span(one->is_strided, one->capacity));
    memset(one->buf, 0x77, span(one->is_strided, one->capacity));
    return weft_irecv(rig->chan, one->src, one->tag, one->buf, count, type, &one->req);
}

/* Some ranks wait as MPI_Wait does, some poll as MPI_Test does. */
static int finish(rig *rig, weft_req *req)
{
    if (rig_random(&rig->random) % 4 == 0)
        while (!req->is_done)
            weft_worker_poll(rig->world->workers[0]);
    return weft_req_wait(req);
}

/* The message of this receive: by its contents if long enough, else any matching one not received yet. */
static message *identify(rig *rig, round_plan *sched, const receive *got, const uint8_t *plain)
{
    for (int i = 0; i < MESSAGES; i++) {
        message *one = &sched->messages[i];
        if (one->dst == rig->rank && !one->is_got && one->src == got->recv_info.source && one->tag == got->recv_info.tag &&
            one->bytes == got->recv_info.bytes && rig_wrong(plain, one->name, one->bytes) == one->bytes)
            return one;
    }
    return NULL;
}

static int check_receive(rig *rig, round_plan *sched, receive *got)
{
    uint8_t *plain = malloc(got->recv_info.bytes + 1);
    int rc = 0;
    if (got->is_strided)
        gather(plain, got->buf, got->recv_info.bytes);
    else
        memcpy(plain, got->buf, got->recv_info.bytes);
    message *one = identify(rig, sched, got, plain);
    if (!one) {
        rc = rig_fail_wrong(rig,
                       "a message from %d, tag %d, %llu bytes is none that was sent, or its bytes are wrong (asked for %d, %d)",
                       got->recv_info.source, got->recv_info.tag, (unsigned long long)got->recv_info.bytes, got->src, got->tag);
    } else {
        one->is_got = true;
        /* MPI 5.0, 3.5: of messages with the same envelope the earlier one matches the earlier receive */
        for (message *before = sched->messages; before < one && !rc; before++)
            if (before->dst == one->dst && before->src == one->src && before->tag == one->tag && !before->is_got &&
                (before->bytes != one->bytes || one->bytes > 8))
                rc = rig_fail_wrong(rig, "message %d from %d, tag %d overtook message %d", (int)(one - sched->messages),
                                     one->src, one->tag, (int)(before - sched->messages));
    }
    uint64_t end = span(got->is_strided, got->capacity) - 1;
    if (!rc && got->buf[end] != 0x77)
        rc = rig_fail_wrong(rig, "a receive wrote behind its buffer");
    free(plain);
    return rc;
}

/* One receive for each message to this rank. Its buffer fits the longest message that it may match. */
static uint32_t plan_receives(rig *rig, round_plan *sched, receive *receives)
{
    uint64_t max = 0;
    uint32_t n = 0;
    enum asking asking = sched->asking[rig->rank];
    for (int i = 0; i < MESSAGES; i++)
        if (sched->messages[i].dst == rig->rank && sched->messages[i].bytes > max)
            max = sched->messages[i].bytes;
    for (int i = 0; i < MESSAGES; i++) {
        const message *one = &sched->messages[i];
        if (one->dst != rig->rank)
            continue;
        receives[n++] = (receive){.src = asking == EXACT || asking == ANY_TAG ? one->src : WEFT_ANY,
                                  .tag = asking == EXACT || asking == ANY_SOURCE ? one->tag : WEFT_ANY_TAG,
                                  .capacity = max, .is_strided = max && one->is_strided};
    }
    /* in any order: matching decides which receive gets which message */
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)(rig_random(&rig->random) % i);
        receive swap = receives[i - 1];
        receives[i - 1] = receives[j];
        receives[j] = swap;
    }
    return n;
}

static int receive_probed(rig *rig, receive *one)
{
    bool is_there = false, do_wait = rig_random(&rig->random) % 2;
    int rc = 0;
    while (!is_there && !rc)
        rc = weft_probe(rig->chan, WEFT_ANY, WEFT_ANY_TAG, do_wait, &is_there, &one->recv_info);
    if (rc)
        return rc;
    weft_recv_info probed = one->recv_info;
    one->src = probed.source;
    one->tag = probed.tag;
    one->capacity = probed.bytes;
    one->is_strided = false;
    one->buf = malloc(one->capacity + 1);
    one->buf[one->capacity] = 0x77;
    rc = weft_recv(rig->chan, one->src, one->tag, one->buf, one->capacity, rig_type(RIG_BYTE), &one->recv_info);
    if (!rc && (probed.source != one->recv_info.source || probed.tag != one->recv_info.tag || probed.bytes != one->recv_info.bytes))
        rc = rig_fail(rig, "the probe reported another message than the receive");
    return rc;
}

static int post_receives(rig *rig, round_plan *sched, receive *receives, uint32_t n)
{
    int rc = 0;
    for (uint32_t i = 0; i < n && !rc && sched->asking[rig->rank] != PROBED; i++)
        rc = start_receive(rig, &receives[i]);
    return rc;
}

static int send_all(rig *rig, round_plan *sched)
{
    int rc = 0;
    for (int i = 0; i < MESSAGES && !rc; i++) {
        message *one = &sched->messages[i];
        if (one->src == rig->rank)
            rc = start_send(rig, one);
        if (rig_random(&rig->random) % 6 == 0)
            weft_worker_poll(rig->world->workers[0]);
    }
    return rc;
}

static int finish_receives(rig *rig, round_plan *sched, receive *receives, uint32_t n)
{
    int rc = 0;
    for (uint32_t i = 0; i < n && !rc; i++) {
        receive *one = &receives[i];
        if (sched->asking[rig->rank] == PROBED) {
            rc = receive_probed(rig, one);
        } else if (!(rc = finish(rig, one->req))) {
            one->recv_info = one->req->recv_info;
            drop_type(rig, one->req->type);
            weft_req_free(one->req);
        }
        if (rc < 0)
            rc = rig_fail(rig, "a receive failed: %s", weft_fail_text(rc));
        if (!rc)
            rc = check_receive(rig, sched, one);
        free(one->buf);
    }
    return rc;
}

static int finish_sends(rig *rig, round_plan *sched)
{
    int rc = 0;
    for (int i = MESSAGES - 1; i >= 0 && !rc; i--) {
        message *one = &sched->messages[i];
        if (one->src != rig->rank)
            continue;
        rc = finish(rig, one->req);
        if (rc < 0)
            rc = rig_fail(rig, "a send failed: %s", weft_fail_text(rc));
        memset(one->buf, 0xee, span(one->is_strided, one->bytes));
        drop_type(rig, one->type);
        if (one->req->kind != WEFT_REQ_BATCH || --one->req->handles == 0)
            weft_req_free(one->req);
        free(one->buf);
    }
    return rc;
}

/* Cancels a receive that nothing matches, and only that. */
static int cancel_one(rig *rig)
{
    uint8_t buf[8];
    weft_req *req;
    int rc = weft_irecv(rig->chan, WEFT_ANY, 1000, buf, sizeof buf, rig_type(RIG_BYTE), &req);
    if (rc || (rc = weft_cancel(req)) || (rc = weft_req_wait(req)))
        return rc;
    if (!req->recv_info.cancelled)
        rc = rig_fail(rig, "a receive that nobody sends to was not cancelled");
    weft_req_free(req);
    return rc;
}

int traffic_program(int rank, void *arg)
{
    const traffic *what = arg;
    rig rig;
    receive receives[MESSAGES];
    static round_plan scheds[64]; /* too large for the stacks; one for each rank */
    round_plan *sched = &scheds[rank];
    int rc = rig_open(&rig, what->seed);
    if (!rc && what->has_few_states) {
        rig.world->workers[0]->rndv_pool->reserve = 1;
        rig.world->workers[0]->rndv_pool->max = 2 + (uint32_t)(what->seed / 9 % 4);
    }
    for (uint32_t round = 0; round < what->rounds && !rc; round++) {
        draw_round(sched, rig.size, what->seed, round, !what->has_few_states);
        uint32_t n = plan_receives(&rig, sched, receives);
        if (!sched->is_late[rank])
            rc = post_receives(&rig, sched, receives, n);
        rc = rc ? rc : send_all(&rig, sched);
        if (!rc && sched->is_late[rank])
            rc = post_receives(&rig, sched, receives, n);
        rc = rc ? rc : finish_receives(&rig, sched, receives, n);
        rc = rc ? rc : finish_sends(&rig, sched);
        rc = rc ? rc : cancel_one(&rig);
        rc = rc ? rc : rig_barrier(&rig); /* a wildcard must not match messages of the next round */
    }
    return rc ? rc : rig_close(&rig);
}
