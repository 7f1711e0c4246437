/* SPDX-License-Identifier: BSD-3-Clause
 *
 * visibility: bytes become visible in memory at once, or cache line by cache line over some time, in the order of addresses or not. No
 * completion or acknowledgement precedes the last line, but for writes into regions for relaxed ordering: these are acknowledged at once.
 * Before a receive of their queue pair completes, and before that queue pair reads these bytes or is destroyed, they are visible
 * (rdma-core, ibv_reg_mr.3, "ORDERING SEMANTICS"); what other queue pairs do says nothing.
 */
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

#define STEPS 8u             /* most steps in which a message becomes visible */
#define ACKED_DELAYS_MIN 64u /* most delays of a packet until an acknowledged write is visible: this, or 64 or 4,096 times as many */

#define WORD_DELAYS 16u      /* most delays of a packet until an atomic's new value is visible: long, so that a CPU's atomics meet it */

/* Copies bytes [at, at + bytes) of the message. */
static void scatter(const uint8_t *data, uint32_t at, uint32_t bytes, const struct ibv_sge *sges, uint32_t count)
{
    for (uint32_t i = 0, begin = 0; i < count && bytes; begin += sges[i++].length) {
        uint32_t end = begin + sges[i].length;
        if (at >= end)
            continue;
        uint32_t part = end - at < bytes ? end - at : bytes;
        memcpy((char *)(uintptr_t)sges[i].addr + (at - begin), data + at, part);
        at += part;
        bytes -= part;
    }
}

void hca_visibility_now(const uint8_t *data, uint32_t bytes, const struct ibv_sge *sges, uint32_t count)
{
    scatter(data, 0, bytes, sges, count);
}

static void post(hca_qp *qp, const hca_visibility *place)
{
    hca_event *event = hca_event_new(HCA_VISIBILITY);
    event->to = (hca_address){qp->device, qp->base.qp_num, 0};
    event->id = qp->id;
    event->value = place->id;
    hca_event_post(event, hca.now + 1 + hca_random() % (place->step_ns + 1));
}

/* One random number for any length. */
static uint32_t *shuffled(uint32_t lines)
{
    uint32_t *order = malloc(lines * sizeof *order);
    uint64_t state = hca_random() | 1;
    for (uint32_t i = 0; i < lines; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint32_t j = (uint32_t)((state >> 33) % (i + 1));
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

void hca_visibility_free(hca_visibility *place)
{
    if (!place)
        return;
    free(place->data);
    free(place->sges);
    free(place->order);
    free(place);
}

static void show_until(hca_visibility *place, uint64_t end_line)
{
    for (; place->at < end_line; place->at++) {
        uint32_t line = place->order ? place->order[place->at] : place->at;
        uint32_t begin = line ? place->head + (line - 1) * WEFT_LINE : 0, end = place->head + line * WEFT_LINE;
        scatter(place->data, begin, (end < place->bytes ? end : place->bytes) - begin, place->sges, place->count);
    }
}

static hca_visibility *begin(const uint8_t *data, uint32_t bytes, const struct ibv_sge *sges, uint32_t count, hca_qp *qp, bool in_order,
                             uint64_t most_ns)
{
    hca_visibility *place = calloc(1, sizeof *place);
    uint32_t head = WEFT_LINE - sges[0].addr % WEFT_LINE;
    place->id = ++hca.next_id;
    place->data = malloc(bytes);
    memcpy(place->data, data, bytes);
    place->sges = malloc(count * sizeof *place->sges);
    memcpy(place->sges, sges, count * sizeof *place->sges);
    place->count = count;
    place->bytes = bytes;
    place->lines = bytes > head ? 1 + (bytes - head + WEFT_LINE - 1) / WEFT_LINE : 1;
    place->head = head;
    place->steps = 2 + (uint32_t)(hca_random() % (STEPS - 1));
    place->step_ns = most_ns / STEPS;
    place->order = in_order ? NULL : shuffled(place->lines);
    post(qp, place);
    return place;
}

hca_visibility *hca_visibility_begin(const uint8_t *data, uint32_t bytes, const struct ibv_sge *sges, uint32_t count, hca_qp *qp,
                           bool is_relaxed)
{
    bool is_torn = hca.profile.torn || is_relaxed;
    if (!is_torn || bytes <= WEFT_LINE) { /* by length only: alignment must not change later events */
        if (bytes)
            scatter(data, 0, bytes, sges, count);
        return NULL;
    }
    hca.counts[SIMHCA_TORN]++;
    return begin(data, bytes, sges, count, qp, hca.profile.in_order && !is_relaxed, hca.profile.delay_ns);
}

hca_visibility *hca_visibility_begin_word(uint64_t value, uint64_t addr, hca_qp *qp)
{
    struct ibv_sge there = {.addr = addr, .length = sizeof value};
    return begin((const uint8_t *)&value, sizeof value, &there, 1, qp, true, WORD_DELAYS * (uint64_t)hca.profile.delay_ns);
}

/* -- acknowledged writes -- */

void hca_visibility_begin_acked(const uint8_t *data, uint32_t bytes, const struct ibv_sge *there, hca_qp *qp)
{
    uint32_t delays = ACKED_DELAYS_MIN << 6 * (hca_random() % 3);
    hca_visibility *place = begin(data, bytes, there, 1, qp, false, delays * (uint64_t)hca.profile.delay_ns);
    weft_list_append(&qp->acked, &place->link);
    hca.counts[SIMHCA_RELAXED_WRITES]++;
}

static void end_acked(hca_visibility *place)
{
    weft_list_remove(&place->link);
    hca_visibility_free(place);
}

void hca_visibility_settle(hca_qp *qp, uint64_t start, uint64_t end)
{
    for (weft_list_link *link = qp->acked.next, *next; link != &qp->acked; link = next) {
        hca_visibility *place = weft_container(link, hca_visibility, link);
        next = link->next;
        if (place->sges[0].addr >= end || place->sges[0].addr + place->bytes <= start)
            continue;
        show_until(place, place->lines);
        end_acked(place);
    }
}

void hca_visibility_drop_acked(hca_qp *qp)
{
    while (!weft_list_is_empty(&qp->acked))
        end_acked(weft_container(qp->acked.next, hca_visibility, link));
}

/* -- events -- */

void hca_visibility_end(hca_device *device, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < device->qp_capacity; i++) {
        hca_visibility *place = device->qps[i] ? device->qps[i]->writing : NULL;
        for (uint32_t k = 0; place && k < place->count; k++)
            if (place->sges[k].addr < end && place->sges[k].addr + place->sges[k].length > start)
                show_until(place, place->lines);
        if (device->qps[i])
            hca_visibility_settle(device->qps[i], start, end);
    }
}

/* NULL: it has ended. A queue pair in error completes nothing, but what it has acknowledged will be visible. */
static hca_visibility *find(const hca_qp *qp, uint64_t id)
{
    for (const weft_list_link *link = qp->acked.next; link != &qp->acked; link = link->next)
        if (weft_container(link, hca_visibility, link)->id == id)
            return weft_container(link, hca_visibility, link);
    if (qp->attr.qp_state == IBV_QPS_ERR)
        return NULL;
    return qp->reading && qp->reading->id == id ? qp->reading : qp->writing && qp->writing->id == id ? qp->writing : NULL;
}

void hca_visibility_step(hca_event *event)
{
    hca_qp *qp = hca_qp_by_id(event->to.device, event->to.qpn, event->id);
    hca_visibility *place = qp ? find(qp, event->value) : NULL;
    if (!place)
        return;
    place->step++;
    show_until(place, ((uint64_t)place->lines * place->step + place->steps - 1) / place->steps);
    if (place->step < place->steps)
        post(qp, place);
    else if (place == qp->reading)
        hca_requester_placed(qp);
    else if (place == qp->writing)
        hca_responder_placed(qp);
    else
        end_acked(place);
}
