/* SPDX-License-Identifier: BSD-3-Clause
 *
 * visibility: bytes become visible in memory at once, or cache line by cache line over some time, in the order of addresses or not. No
 * completion or acknowledgement precedes the last line.
 */
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

#define STEPS 8u /* most steps in which a message becomes visible */

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

static void post(hca_qp *qp, bool is_reading)
{
    hca_event *event = hca_event_new(HCA_VISIBILITY);
    event->to = (hca_address){qp->device, qp->base.qp_num, 0};
    event->id = qp->id;
    event->is_reading = is_reading;
    hca_event_post(event, hca.now + 1 + hca_random() % (hca.profile.delay_ns / STEPS + 1));
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

hca_visibility *hca_visibility_begin(const uint8_t *data, uint32_t bytes, const struct ibv_sge *sges, uint32_t count, hca_qp *qp,
                           bool is_reading)
{
    uint32_t head = count ? WEFT_LINE - sges[0].addr % WEFT_LINE : 0;
    uint32_t lines = bytes > head ? 1 + (bytes - head + WEFT_LINE - 1) / WEFT_LINE : 1;
    if (!hca.profile.torn || bytes <= WEFT_LINE) { /* by length only: alignment must not change later events */
        if (bytes)
            scatter(data, 0, bytes, sges, count);
        return NULL;
    }
    hca_visibility *place = calloc(1, sizeof *place);
    place->data = malloc(bytes);
    memcpy(place->data, data, bytes);
    place->sges = malloc(count * sizeof *place->sges);
    memcpy(place->sges, sges, count * sizeof *place->sges);
    place->count = count;
    place->bytes = bytes;
    place->lines = lines;
    place->head = head;
    place->steps = 2 + (uint32_t)(hca_random() % (STEPS - 1));
    place->order = hca.profile.in_order ? NULL : shuffled(lines);
    hca.counts[SIMHCA_TORN]++;
    post(qp, is_reading);
    return place;
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

void hca_visibility_end(hca_device *device, uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < device->qp_capacity; i++) {
        hca_visibility *place = device->qps[i] ? device->qps[i]->writing : NULL;
        for (uint32_t k = 0; place && k < place->count; k++)
            if (place->sges[k].addr < end && place->sges[k].addr + place->sges[k].length > start)
                show_until(place, place->lines);
    }
}

void hca_visibility_step(hca_event *event)
{
    hca_qp *qp = hca_qp_by_id(event->to.device, event->to.qpn, event->id);
    hca_visibility *place = qp ? event->is_reading ? qp->reading : qp->writing : NULL;
    if (!place || qp->attr.qp_state == IBV_QPS_ERR)
        return;
    place->step++;
    show_until(place, ((uint64_t)place->lines * place->step + place->steps - 1) / place->steps);
    if (place->step < place->steps)
        post(qp, event->is_reading);
    else if (event->is_reading)
        hca_requester_placed(qp);
    else
        hca_responder_placed(qp);
}
