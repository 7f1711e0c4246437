/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device: the devices of simulated hosts, their contexts and asynchronous events.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

/* 10.<network>.<host>.<device>, as a GID, and the link-local address of the same port. */
static void fill_gids(hca_device *device)
{
    hca_port *port = &device->port;
    uint32_t host = device->host + 1;
    uint8_t local[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, (uint8_t)device->index, 0xff, 0xfe, (uint8_t)(host >> 8),
                         (uint8_t)host, 1};
    uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, (uint8_t)port->network, (uint8_t)(host * 4 >> 8),
                          (uint8_t)(host * 4 + device->index)};
    memcpy(port->gids[0].raw, local, 16);
    memcpy(port->gids[1].raw, local, 16);
    memcpy(port->gids[2].raw, mapped, 16);
    memcpy(port->gids[3].raw, mapped, 16);
    for (int i = 0; i < HCA_GIDS; i++)
        port->gid_types[i] = i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
    port->gid_count = 4;
    if (hca.profile.foreign_gid) { /* a container's address: the entry is listed everywhere, and usable there only */
        memcpy(port->gids[4].raw, mapped, 16);
        memcpy(port->gids[5].raw, mapped, 16);
        port->gids[2].raw[12] = port->gids[3].raw[12] = 172;
        port->gid_ndevs[2] = port->gid_ndevs[3] = HCA_NDEV_FOREIGN;
        port->gid_count = 6;
    }
    if (hca.profile.is_ib) {
        port->gid_types[0] = IBV_GID_TYPE_IB;
        port->gid_count = 1;
        port->lid = (uint16_t)(host * 4 + device->index);
    }
}

static hca_device *make(uint32_t host, uint32_t index)
{
    hca_device *device = calloc(1, sizeof *device);
    if (!device)
        return NULL;
    device->host = host;
    device->index = index;
    device->base.node_type = IBV_NODE_CA;
    device->base.transport_type = IBV_TRANSPORT_IB;
    snprintf(device->base.name, sizeof device->base.name, "simhca%u", index);
    snprintf(device->base.dev_name, sizeof device->base.dev_name, "simverbs%u", index);
    snprintf(device->base.dev_path, sizeof device->base.dev_path, "/nonexistent/infiniband_verbs/simverbs%u", index);
    snprintf(device->base.ibdev_path, sizeof device->base.ibdev_path, "/nonexistent/infiniband/simhca%u", index);
    device->port.is_up = true;
    device->port.network = hca.profile.separate ? index : 0;
    weft_list_init(&device->contexts);
    fill_gids(device);
    return device;
}

hca_device *hca_device_at(uint32_t host, uint32_t index)
{
    uint32_t at = host * hca.profile.devices + index;
    if (at >= hca.device_capacity) {
        uint32_t room = weft_round_up(at + 1, 32);
        hca.devices = realloc(hca.devices, room * sizeof *hca.devices);
        memset(hca.devices + hca.device_capacity, 0, (room - hca.device_capacity) * sizeof *hca.devices);
        hca.device_capacity = room;
    }
    if (at >= hca.device_count)
        hca.device_count = at + 1;
    if (!hca.devices[at])
        hca.devices[at] = make(host, index);
    return hca.devices[at];
}

void hca_device_free(hca_device *device)
{
    weft_list_link *link;
    while ((link = weft_list_first(&device->contexts))) {
        hca_context *context = weft_container(link, hca_context, link);
        hca.left[HCA_OBJECTS]++;
        for (int i = 0; i < HCA_OBJECTS; i++)
            hca.left[i] += context->objects[i];
        hca_context_drop(context);
    }
    free(device->qps);
    free(device->mrs);
    free(device->mr_tags);
    free(device->mws);
    free(device);
}

/* -- the list -- */

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *count)
{
    hca_open_default();
    hca_lock();
    uint32_t host = hca.process / hca.per_host, devices = hca.profile.devices;
    struct ibv_device **list = calloc(devices + 1, sizeof *list);
    for (uint32_t i = 0; list && i < devices; i++)
        list[i] = &hca_device_at(host, i)->base;
    if (count)
        *count = list ? (int)devices : 0;
    hca_unlock();
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
    return (int)((hca_device *)device)->index;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    const hca_device *hca = (const hca_device *)device;
    return __builtin_bswap64(0x0200000000000000u | (uint64_t)hca->host << 8 | hca->index);
}

/* -- contexts -- */

struct ibv_context *ibv_open_device(struct ibv_device *base)
{
    hca_device *device = (hca_device *)base;
    hca_context *context = calloc(1, sizeof *context);
    int fd = context ? eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC) : -1;
    if (fd < 0 || device->is_dead) {
        errno = device->is_dead ? EIO : errno;
        if (fd >= 0)
            close(fd);
        free(context);
        return NULL;
    }
    context->device = device;
    context->process = hca.process;
    weft_list_link *lists[] = {&context->events, &context->pds, &context->mrs, &context->cqs, &context->channels, &context->srqs,
                          &context->qps, &context->ahs, &context->mws};
    for (uint32_t i = 0; i < weft_count(lists); i++)
        weft_list_init(lists[i]);
    context->verbs.sz = sizeof context->verbs;
    context->verbs.context.device = base;
    context->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    context->verbs.context.cmd_fd = -1;
    context->verbs.context.async_fd = fd;
    context->verbs.context.num_comp_vectors = 1;
    pthread_mutex_init(&context->verbs.context.mutex, NULL);
    hca_verbs_fill(context);
    hca_lock();
    weft_list_append(&device->contexts, &context->link);
    hca_unlock();
    return &context->verbs.context;
}

void hca_context_drop(hca_context *context)
{
    weft_list_link *link;
    while ((link = weft_list_first(&context->qps)))
        hca_qp_free(weft_container(link, hca_qp, link));
    while ((link = weft_list_first(&context->srqs)))
        hca_srq_free(weft_container(link, hca_srq, link));
    while ((link = weft_list_first(&context->cqs)))
        hca_cq_free(weft_container(link, hca_cq, link));
    while ((link = weft_list_first(&context->channels)))
        hca_channel_free(weft_container(link, hca_channel, link));
    while ((link = weft_list_first(&context->mws)))
        hca_mw_free(weft_container(link, hca_mw, link));
    while ((link = weft_list_first(&context->mrs)))
        hca_mr_free(weft_container(link, hca_mr, link));
    while ((link = weft_list_take(&context->ahs)))
        free(weft_container(link, hca_ah, link));
    while ((link = weft_list_take(&context->pds)))
        free(weft_container(link, hca_pd, link));
    while ((link = weft_list_take(&context->events)))
        free(weft_container(link, hca_async, link));
    weft_list_remove(&context->link);
    close(context->verbs.context.async_fd);
    free(context);
}

/* Frees leaked objects, as the kernel does, and counts them. */
int ibv_close_device(struct ibv_context *base)
{
    hca_context *context = hca_context_of(base);
    hca_lock();
    for (int i = 0; i < HCA_OBJECTS; i++)
        hca.left[i] += context->objects[i];
    hca_context_drop(context);
    hca_unlock();
    return 0;
}

/* -- asynchronous events -- */

void hca_report_event(hca_context *context, enum ibv_event_type type, void *element, int port)
{
    hca_async *one = calloc(1, sizeof *one);
    if (!one)
        return;
    one->event.event_type = type;
    if (element)
        one->event.element.qp = element;
    else
        one->event.element.port_num = port;
    weft_list_append(&context->events, &one->link);
    hca.counts[SIMHCA_EVENTS]++;
    hca_ring(context->verbs.context.async_fd);
}

static uint32_t *taken_of(const struct ibv_async_event *event, uint32_t **acked)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        *acked = &event->element.cq->async_events_completed;
        return &event->element.cq->handle;
    case IBV_EVENT_QP_FATAL: case IBV_EVENT_QP_REQ_ERR: case IBV_EVENT_QP_ACCESS_ERR: case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED: case IBV_EVENT_QP_LAST_WQE_REACHED:
        *acked = &event->element.qp->events_completed;
        return &event->element.qp->handle;
    case IBV_EVENT_SRQ_ERR: case IBV_EVENT_SRQ_LIMIT_REACHED:
        *acked = &event->element.srq->events_completed;
        return &event->element.srq->handle;
    default:
        *acked = NULL;
        return NULL;
    }
}

/* Handles count the events that were read; nothing else needs them. */
int ibv_get_async_event(struct ibv_context *base, struct ibv_async_event *event)
{
    hca_context *context = hca_context_of(base);
    uint64_t one;
    uint32_t *acked;
    context->never_blocks = context->never_blocks || (fcntl(base->async_fd, F_GETFL) & O_NONBLOCK);
    while (weft_list_is_empty(&context->events) && !context->never_blocks) {
        if (simhca_next_due() == UINT64_MAX)
            hca_misuse("ibv_get_async_event would block for ever: the descriptor blocks and nothing is under way");
        simhca_pass(simhca_next_due() - hca.now);
    }
    hca_lock();
    weft_list_link *link = weft_list_take(&context->events);
    if (!link || read(base->async_fd, &one, sizeof one) != sizeof one) {
        hca_unlock();
        errno = EAGAIN;
        return -1;
    }
    hca_async *first = weft_container(link, hca_async, link);
    *event = first->event;
    free(first);
    uint32_t *taken = taken_of(event, &acked);
    if (taken)
        ++*taken;
    hca_unlock();
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    uint32_t *acked, *taken;
    hca_lock();
    taken = taken_of(event, &acked);
    if (taken && ++*acked > *taken)
        hca_misuse("more asynchronous events acknowledged than taken");
    hca_unlock();
}

void hca_async_forget(hca_context *context, const void *element)
{
    for (weft_list_link *link = context->events.next, *next; link != &context->events; link = next) {
        hca_async *one = weft_container(link, hca_async, link);
        uint32_t *acked;
        uint64_t count;
        next = link->next;
        if (!taken_of(&one->event, &acked) || one->event.element.qp != element)
            continue;
        weft_list_remove(link);
        free(one);
        if (read(context->verbs.context.async_fd, &count, sizeof count) != sizeof count)
            hca_misuse("an asynchronous event's descriptor was read by somebody else");
    }
}
