/* SPDX-License-Identifier: BSD-3-Clause
 *
 * faults: breaks queue pairs, links, devices and processes, at random or on command.
 */
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

/* -- queue pairs -- */

static hca_qp *far_of(hca_qp *qp)
{
    hca_device *device = hca_remote_device(qp);
    hca_qp *far = device ? hca_qp_find(device, qp->attr.dest_qp_num) : NULL;
    return far && far->base.qp_type == IBV_QPT_RC && far->attr.dest_qp_num == qp->base.qp_num ? far : NULL;
}

/* False: do not send this message. */
static bool break_now(hca_qp *qp, enum simhca_break_kind kind)
{
    hca_qp *far = far_of(qp);
    hca.counts[SIMHCA_BREAKS]++;
    switch (kind) {
    case SIMHCA_BREAK_LOST:
        qp->is_mute = true;
        return true;
    case SIMHCA_BREAK_ACK:
        qp->ack_mute = true;
        return true;
    case SIMHCA_BREAK_LOCAL:
        hca_requester_fail(qp, IBV_WC_LOC_QP_OP_ERR);
        return false;
    case SIMHCA_BREAK_REMOTE:
        if (far)
            hca_qp_error(far, IBV_EVENT_QP_FATAL);
        return true;
    case SIMHCA_BREAK_BOTH:
        if (far)
            hca_qp_error(far, IBV_EVENT_QP_FATAL);
        hca_requester_fail(qp, IBV_WC_FATAL_ERR);
        return false;
    default:
        hca_qp_error(qp, IBV_EVENT_QP_FATAL);
        return false;
    }
}

bool hca_faults_at(hca_qp *qp)
{
    hca_faults_watch(qp->device);
    if (qp->is_mute || qp->ack_mute)
        return true;
    if (qp->pending_break) {
        enum simhca_break_kind kind = (enum simhca_break_kind)(qp->pending_break - 1);
        qp->pending_break = 0;
        return break_now(qp, kind);
    }
    if (!hca_chance(hca.profile.break_per_100k, 100000))
        return true;
    return break_now(qp, (enum simhca_break_kind)(hca_random() % SIMHCA_BREAK_LAST));
}

void simhca_break(struct ibv_qp *base, enum simhca_break_kind kind)
{
    hca_qp *qp = (hca_qp *)base;
    hca_lock();
    if (kind == SIMHCA_BREAK_LOST || kind == SIMHCA_BREAK_ACK)
        qp->pending_break = kind + 1;
    else if (qp->attr.qp_state != IBV_QPS_RESET)
        break_now(qp, kind);
    hca_unlock();
}

struct ibv_qp *simhca_any_qp(void)
{
    hca_qp *chosen = NULL;
    uint32_t count = 0;
    hca_lock();
    for (uint32_t i = 0; i < hca.device_count; i++)
        for (uint32_t q = 0; hca.devices[i] && q < hca.devices[i]->qp_capacity; q++) {
            hca_qp *qp = hca.devices[i]->qps[q];
            if (qp && qp->base.qp_type == IBV_QPT_RC && qp->attr.qp_state == IBV_QPS_RTS && hca_random() % ++count == 0)
                chosen = qp;
        }
    hca_unlock();
    return chosen ? &chosen->base : NULL;
}

/* -- links -- */

static void set_link(hca_device *device, bool is_up)
{
    if (device->port.is_up == is_up)
        return;
    device->port.is_up = is_up;
    hca.counts[SIMHCA_FLAPS] += !is_up;
    for (weft_list_link *link = device->contexts.next; link != &device->contexts; link = link->next)
        hca_report_event(weft_container(link, hca_context, link), is_up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, NULL, 1);
}

static void post_flap(hca_device *device, uint64_t after)
{
    hca_event *event = hca_event_new(HCA_FLAP);
    event->to.device = device;
    device->port.flap_posted = true;
    hca_event_post(event, hca.now + after);
}

void hca_faults_watch(hca_device *device)
{
    if (!device->port.flap_posted && hca_chance(hca.profile.flap_per_100k, 100000))
        post_flap(device, 1 + hca_random() % hca.profile.delay_ns);
}

/* Some last so long that connections break. */
void hca_faults_flap(hca_event *event)
{
    hca_device *device = event->to.device;
    uint64_t max = hca.profile.flap_ns * (hca_chance(1, 8) ? 100 : 1);
    device->port.flap_posted = false;
    set_link(device, !device->port.is_up);
    if (!device->port.is_up)
        post_flap(device, 1 + hca_random() % max);
}

void simhca_link(uint32_t host, uint32_t device, uint8_t port, bool is_up)
{
    (void)port;
    hca_lock();
    set_link(hca_device_at(host, device), is_up);
    hca_unlock();
}

/* -- devices and processes -- */

void simhca_device_fatal(uint32_t host, uint32_t index)
{
    hca_lock();
    hca_device *device = hca_device_at(host, index);
    for (uint32_t i = 0; i < device->qp_capacity; i++)
        if (device->qps[i])
            hca_qp_error(device->qps[i], -1);
    device->is_dead = true;
    for (weft_list_link *link = device->contexts.next; link != &device->contexts; link = link->next)
        hca_report_event(weft_container(link, hca_context, link), IBV_EVENT_DEVICE_FATAL, NULL, 1);
    hca_unlock();
}

void simhca_kill(uint32_t process)
{
    hca_lock();
    for (uint32_t i = 0; i < hca.device_count; i++) {
        hca_device *device = hca.devices[i];
        for (weft_list_link *link = device ? device->contexts.next : NULL, *next; device && link != &device->contexts; link = next) {
            hca_context *context = weft_container(link, hca_context, link);
            next = link->next;
            if (context->process == process)
                hca_context_drop(context);
        }
    }
    hca_cm_kill(process);
    hca.counts[SIMHCA_KILLED]++;
    hca_unlock();
}
