/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm_listen: see cm_listen.h. Opens and closes what rdmacm.c works with. librdmacm may start threads, so all signals are blocked then.
 */
#include "transports/verbs/cm_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/gid.h"

#define BACKLOG 256

void verbs_cm_address(const union ibv_gid *gid, uint16_t port, struct sockaddr_storage *to)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)to;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)to;
    memset(to, 0, sizeof *to);
    if (verbs_gid_is_ipv4(gid)) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        memcpy(&v4->sin_addr, gid->raw + 12, 4);
    } else {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        memcpy(&v6->sin6_addr, gid->raw, 16);
    }
}

static int listen_on(struct verbs_rdmacm *cm, verbs_rail *rail)
{
    struct rdma_cm_id *id;
    struct sockaddr_storage at;
    if (rdma_create_id(cm->channel, &id, rail, RDMA_PS_TCP))
        return weft_fail(WEFT_E_SYSTEM, "rdma_cm cannot listen on %s: %s", rail->name, strerror(errno));
    cm->listeners[rail->index] = id;
    verbs_cm_address(&rail->gid, 0, &at);
    if (rdma_bind_addr(id, (struct sockaddr *)&at) || rdma_listen(id, BACKLOG))
        return weft_fail(WEFT_E_SYSTEM, "rdma_cm cannot listen on %s: %s (is rdma_ucm loaded, has its interface an address?)",
                         rail->name,
                         strerror(errno));
    rail->cm_port = ntohs(rdma_get_src_port(id));
    return 0;
}

static int open_all(verbs_iface *iface)
{
    struct verbs_rdmacm *cm = iface->conn->cm = calloc(1, sizeof *cm);
    struct epoll_event event = {.events = EPOLLIN};
    int rc = 0, flags;
    if (!cm)
        return weft_fail(WEFT_E_NOMEM, "no memory for rdma_cm");
    cm->channel = rdma_create_event_channel();
    if (!cm->channel)
        return weft_fail(WEFT_E_SYSTEM, "rdma_cm cannot be used: %s (may this user open /dev/infiniband/rdma_cm?)",
                         strerror(errno));
    event.data.fd = cm->channel->fd;
    flags = fcntl(cm->channel->fd, F_GETFL);
    if (flags < 0 || fcntl(cm->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        epoll_ctl(iface->epoll, EPOLL_CTL_ADD, cm->channel->fd, &event) < 0)
        return weft_fail(WEFT_E_SYSTEM, "rdma_cm's descriptor cannot be slept on: %s", strerror(errno));
    for (uint8_t i = 0; rc == 0 && i < iface->rail_count; i++)
        rc = listen_on(cm, &iface->rails[i]);
    return rc;
}

int verbs_rdmacm_open(verbs_iface *iface)
{
    sigset_t all, before;
    bool is_needed = false;
    int rc;
    for (uint8_t i = 0; i < iface->rail_count; i++)
        is_needed |= iface->rails[i].is_iwarp;
    if (weft_knob.verbs_connect != WEFT_VERBS_CONNECT_RDMACM && (!is_needed || weft_knob.verbs_connect == WEFT_VERBS_CONNECT_UD))
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = open_all(iface);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0 || is_needed)
        return rc;
    weft_log_warn("WEFT_VERBS_CONNECT=rdmacm is not possible: %s. Connecting by datagrams", weft_fail_text(rc));
    verbs_rdmacm_close(iface);
    return 0;
}

void verbs_rdmacm_close(verbs_iface *iface)
{
    struct verbs_rdmacm *cm = iface->conn->cm;
    verbs_cm_deferred_flush(iface, NULL);
    for (uint8_t i = 0; cm && i < VERBS_RAILS; i++) {
        if (cm->listeners[i])
            rdma_destroy_id(cm->listeners[i]);
        iface->rails[i].cm_port = 0;
    }
    if (cm && cm->channel)
        rdma_destroy_event_channel(cm->channel);
    free(cm);
    iface->conn->cm = NULL;
}
