/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rail: an active port of a device: its queues, their limits, the table of local QPs, asynchronous events. Called by iface.c (open,
 * close) and conn.c (events). Calls that may start a provider's threads run with all signals blocked, so that no signal of the program is
 * handled there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/capability.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "transports/verbs/conn.h"
#include "transports/verbs/device_select.h"
#include "transports/verbs/gid.h"
#include "transports/verbs/slots.h"

#define SMALL_BYTES (4u << 20) /* a lower limit on locked memory gives shallow queues and few short slots */
#define CQ_DEPTH 16384        /* at least; more for many peers */
#define CQ_DEPTH_SMALL 192
#define CQ_DEPTH_SHALLOW 1024 /* a CQ of at most this depth makes the other queues shallow, too */
#define SRQ_DEPTH 2048        /* at least; more for many peers */
#define SRQ_DEPTH_SHALLOW 32
#define RQ_DEPTH 72           /* where there is no SRQ: the most credits of a peer, and some more */
#define RQ_DEPTH_SHALLOW 8
#define SQ_DEPTH 128
#define MARKS 64              /* QPs that may be drained at one time */
#define MARKS_SHALLOW 8
#define SQ_DEPTH_SHALLOW 16

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t max(uint32_t a, uint32_t b) { return a > b ? a : b; }

uint64_t verbs_lockable_bytes(void)
{
    struct rlimit limit;
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct caps[2] = {{0, 0, 0}, {0, 0, 0}};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    if (syscall(SYS_capget, &head, caps) == 0 && caps[CAP_IPC_LOCK / 32].effective & 1u << CAP_IPC_LOCK % 32)
        return UINT64_MAX;
    return limit.rlim_cur;
}

static int cannot(const verbs_rail *rail, const char *what)
{
    int error = errno;
    return weft_fail(error == ENOMEM ? WEFT_E_NOSPACE : WEFT_E_SYSTEM, "RDMA device %s cannot %s: %s%s", rail->name, what,
                     strerror(error),
                     error == ENOMEM ? " (too little memory may be locked: see ulimit -l; or its queues are used up)" : "");
}

/* -- limits that only a QP shows -- */

/* Tries inline sizes with this queue depth, largest first. */
static int try_queue_pair(verbs_rail *rail)
{
    static const uint32_t inlines[] = {220, 128, 64, 0};
    struct ibv_qp *qp = NULL;
    for (size_t i = 0; !qp && i < sizeof inlines / sizeof inlines[0]; i++) {
        struct ibv_qp_init_attr init = {.send_cq = rail->cq, .recv_cq = rail->cq, .srq = rail->srq, .qp_type = IBV_QPT_RC,
                                        .cap = {.max_send_wr = rail->sq_capacity + 1, .max_send_sge = 2,
                                                .max_recv_wr = rail->rq_capacity, .max_recv_sge = rail->srq ? 0 : 1,
                                                .max_inline_data = inlines[i]}};
        qp = ibv_create_qp(rail->pd, &init);
        if (qp)
            rail->max_inline = min(init.cap.max_inline_data, 1024);
    }
    if (!qp && errno == EOPNOTSUPP)
        return weft_fail(WEFT_E_UNSUPPORTED, "RDMA device %s has no connected queue pairs (EFA: libfabric's provider efa uses it)",
                         rail->name);
    if (!qp)
        return cannot(rail, "create a connected queue pair");
    ibv_destroy_qp(qp);
    return 0;
}

static bool has_paging(struct ibv_context *context)
{
    struct ibv_device_attr_ex attr;
    uint32_t wanted = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
    memset(&attr, 0, sizeof attr);
    return ibv_query_device_ex(context, NULL, &attr) == 0 && (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
           (attr.odp_caps.per_transport_caps.rc_odp_caps & wanted) == wanted;
}

/* iWARP leaves to its devices what relaxed ordering means there. */
static bool may_relax(const verbs_rail *rail)
{
    return weft_knob.verbs_relaxed_ordering != WEFT_VERBS_RELAXED_ORDERING_NEVER && !rail->is_iwarp && !rail->iface->is_small;
}

/* -- opening -- */

static int watch_descriptor(verbs_iface *iface, const verbs_rail *rail, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || epoll_ctl(iface->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return cannot(rail, "open a descriptor to sleep on");
    return 0;
}

static int open_queues(verbs_iface *iface, verbs_rail *rail)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_sge = 1}};
    uint32_t wanted = iface->is_small ? CQ_DEPTH_SMALL : max(CQ_DEPTH, 4 * verbs_receives_of_peers(iface)); /* half is for sends */
    uint32_t aside, depth = min(wanted, (uint32_t)rail->attr.max_cqe);
    rail->is_shallow = depth <= CQ_DEPTH_SHALLOW;
    rail->marks_capacity = rail->is_shallow ? MARKS_SHALLOW : MARKS;
    aside = verbs_ud_depth(rail) + rail->marks_capacity;
    rail->channel = ibv_create_comp_channel(rail->context);
    if (!rail->channel)
        return cannot(rail, "create a completion channel");
    rail->pd = ibv_alloc_pd(rail->context);
    if (!rail->pd)
        return cannot(rail, "create a protection domain");
    rail->cq = ibv_create_cq(rail->context, (int)depth, NULL, rail->channel, 0);
    if (!rail->cq)
        return cannot(rail, "create a completion queue");
    if ((uint32_t)rail->cq->cqe < 2 * aside)
        return weft_fail(WEFT_E_UNSUPPORTED, "RDMA device %s: its completion queues are too short (%d)", rail->name,
                         rail->cq->cqe);
    rail->cq_capacity = (uint32_t)rail->cq->cqe - aside;
    rail->sq_capacity = min(rail->is_shallow ? SQ_DEPTH_SHALLOW : SQ_DEPTH, (uint32_t)rail->attr.max_qp_wr - 1);
    if (rail->attr.max_srq < 1) {
        rail->rq_capacity = min(rail->is_shallow ? RQ_DEPTH_SHALLOW : RQ_DEPTH, (uint32_t)rail->attr.max_qp_wr);
        return 0;
    }
    srq.attr.max_wr = rail->is_shallow ? SRQ_DEPTH_SHALLOW : max(SRQ_DEPTH, verbs_receives_of_peers(iface));
    srq.attr.max_wr = min(srq.attr.max_wr, (uint32_t)rail->attr.max_srq_wr);
    srq.attr.max_wr = min(srq.attr.max_wr, rail->cq_capacity / 2);
    rail->srq = ibv_create_srq(rail->pd, &srq);
    if (!rail->srq)
        return cannot(rail, "create a shared receive queue");
    rail->srq_capacity = srq.attr.max_wr;
    return 0;
}

static void read_port(verbs_rail *rail, const struct ibv_port_attr *attr)
{
    rail->is_up = attr->state == IBV_PORT_ACTIVE;
    rail->lid = attr->lid;
    rail->mtu = attr->active_mtu;
    rail->is_ib = attr->link_layer == IBV_LINK_LAYER_INFINIBAND;
    rail->needs_grh = attr->flags & IBV_QPF_GRH_REQUIRED;
}

/* The knob's partition, or the first of which the port is a full member, or entry 0. Bit 15 is the membership, not part of the key. */
static int choose_pkey(verbs_rail *rail, int entries)
{
    __be16 raw;
    rail->pkey_index = 0;
    for (int i = 0; i < entries; i++) {
        uint16_t pkey = ibv_query_pkey(rail->context, rail->port_num, i, &raw) == 0 ? ntohs(raw) : 0;
        if (weft_knob.pkey ? pkey && !((pkey ^ weft_knob.pkey) & 0x7fff) : pkey & 0x8000) {
            rail->pkey_index = (uint16_t)i;
            return 0;
        }
    }
    if (weft_knob.pkey && rail->is_ib)
        return weft_fail(WEFT_E_UNSUPPORTED, "RDMA port %s is not in partition 0x%x (WEFT_PKEY): its keys are in "
                         "/sys/class/infiniband/*/ports/*/pkeys", rail->name, weft_knob.pkey);
    return 0;
}

static int open_rail(verbs_iface *iface, verbs_rail *rail, const verbs_found *found)
{
    int rc;
    *rail = (verbs_rail){.iface = iface, .index = (uint8_t)(rail - iface->rails), .attr = found->attr, .port_num = found->port_num,
                         .gid = found->gid.gid, .gid_index = (uint8_t)found->gid.gid_index, .numa_distance = found->distance};
    weft_list_init(&rail->emptied);
    weft_list_init(&rail->free_mws);
    memcpy(rail->name, found->name, sizeof rail->name);
    rail->is_iwarp = rail->completes_early = found->device->transport_type == IBV_TRANSPORT_IWARP;
    rail->is_v1 = found->gid.gid_type == IBV_GID_TYPE_ROCE_V1;
    read_port(rail, &found->port);
    if (rail->is_iwarp && !verbs_gid_of_interface(ibv_get_device_name(found->device), found->port_num,
                                                  found->gid.ndev_ifindex, &rail->gid))
        return weft_fail(WEFT_E_UNSUPPORTED, "RDMA device %s: the network interface below it has no address", rail->name);
    rail->prefix_bits = verbs_gid_prefix_bits(&rail->gid);
    rail->max_rd_atomic = (uint32_t)(found->attr.max_qp_init_rd_atom > 0 ? found->attr.max_qp_init_rd_atom : 0);
    rail->context = ibv_open_device(found->device);
    if (!rail->context)
        return cannot(rail, "be opened");
    rc = choose_pkey(rail, found->port.pkey_tbl_len);
    if (rc)
        return rc;
    rail->is_odp = weft_knob.regcache_monitor == WEFT_REGCACHE_MONITOR_ODP && has_paging(rail->context);
    rc = open_queues(iface, rail);
    if (rc)
        return rc;
    rail->takes_relaxed = may_relax(rail) && verbs_memory_try_relaxed(rail);
    weft_log_debug("RDMA port %s: buffers of messages are registered %s relaxed ordering", rail->name,
                   rail->takes_relaxed ? "for" : "without");
    rc = try_queue_pair(rail);
    if (rc == 0)
        rc = watch_descriptor(iface, rail, rail->channel->fd);
    return rc ? rc : watch_descriptor(iface, rail, rail->context->async_fd);
}

static void close_rail(verbs_rail *rail)
{
    if (rail->srq)
        ibv_destroy_srq(rail->srq);
    if (rail->cq)
        ibv_destroy_cq(rail->cq);
    if (rail->pd)
        ibv_dealloc_pd(rail->pd);
    if (rail->channel)
        ibv_destroy_comp_channel(rail->channel);
    if (rail->context)
        ibv_close_device(rail->context);
    free(rail->by_qpn);
    memset(rail, 0, sizeof *rail);
}

/* A port that cannot be opened is skipped, with a log message, if another one can. */
static int open_found(verbs_iface *iface, const verbs_finding *finding)
{
    char reasons[400];
    int rc = 0;
    if (finding->missing[0])
        weft_log_info("WEFT_DEVICES names %s, which this machine does not have", finding->missing);
    for (int i = 0; i < finding->count && iface->rail_count < VERBS_RAILS; i++) {
        verbs_rail *rail = &iface->rails[iface->rail_count];
        int one;
        if (finding->found[i].why_not[0]) {
            weft_log_info("RDMA port %s is not used: %s", finding->found[i].name, finding->found[i].why_not);
            continue;
        }
        one = open_rail(iface, rail, &finding->found[i]);
        if (one == 0) {
            iface->rail_count++;
            continue;
        }
        weft_log_info("RDMA port %s is not used: %s", finding->found[i].name, weft_fail_text(one));
        close_rail(rail);
        rc = one;
    }
    if (iface->rail_count)
        return 0;
    if (rc)
        return rc;
    verbs_device_select_reasons(finding, reasons, sizeof reasons);
    if (finding->missing[0])
        return weft_fail(WEFT_E_UNSUPPORTED, "no RDMA port can be used: WEFT_DEVICES names %s, which this machine does "
                         "not have. It has %s", finding->missing, reasons);
    return weft_fail(WEFT_E_UNSUPPORTED, "no RDMA port can be used (%s)", reasons);
}

int verbs_rails_open(verbs_iface *iface)
{
    sigset_t all, before;
    verbs_finding *finding = malloc(sizeof *finding);
    int rc;
    if (!finding)
        return weft_fail(WEFT_E_NOMEM, "no memory to look for RDMA devices");
    iface->is_small = verbs_lockable_bytes() < SMALL_BYTES;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (ibv_is_fork_initialized() == IBV_FORK_DISABLED) /* kernels that copy pinned pages at fork need no call */
        ibv_fork_init();
    rc = verbs_device_select(iface->self.rank, finding);
    if (rc == 0) {
        rc = open_found(iface, finding);
        verbs_device_select_end(finding);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(finding);
    if (rc)
        verbs_rails_close(iface);
    return rc;
}

void verbs_rails_close(verbs_iface *iface)
{
    while (iface->rail_count)
        close_rail(&iface->rails[--iface->rail_count]);
}

void verbs_rail_address(const verbs_rail *rail, verbs_address *address)
{
    *address = (verbs_address){.gid = rail->gid, .ud_qpn = rail->ud ? rail->ud->qp_num : 0, .lid = rail->lid,
                               .mtu = (uint8_t)rail->mtu,
                               .flags = (uint8_t)(rail->is_ib * VERBS_ADDRESS_IB | rail->is_iwarp * VERBS_ADDRESS_IWARP |
                                                  rail->is_v1 * VERBS_ADDRESS_V1),
                               .prefix_bits = rail->prefix_bits, .cm_port = rail->cm_port};
    verbs_read_fence_get_addr(rail, address);
}

/* -- table of QP numbers -- */

static void place(verbs_rail *rail, verbs_rc_qp *qp)
{
    uint32_t i = qp->ibv_qp->qp_num;
    while (rail->by_qpn[i & (rail->qpn_capacity - 1)])
        i++;
    rail->by_qpn[i & (rail->qpn_capacity - 1)] = qp;
}

int verbs_rail_enter(verbs_rail *rail, verbs_rc_qp *qp)
{
    if (2 * (rail->qpn_count + 1) > rail->qpn_capacity) {
        uint32_t capacity = rail->qpn_capacity ? 2 * rail->qpn_capacity : 64, before = rail->qpn_capacity;
        verbs_rc_qp **old = rail->by_qpn, **table = calloc(capacity, sizeof(verbs_rc_qp *));
        if (!table)
            return weft_fail(WEFT_E_NOMEM, "no memory for more connections");
        rail->by_qpn = table;
        rail->qpn_capacity = capacity;
        for (uint32_t i = 0; i < before; i++)
            if (old[i])
                place(rail, old[i]);
        free(old);
    }
    place(rail, qp);
    rail->qpn_count++;
    return 0;
}

void verbs_rail_remove(verbs_rail *rail, verbs_rc_qp *qp)
{
    uint32_t mask = rail->qpn_capacity - 1, i = qp->ibv_qp->qp_num;
    while (rail->by_qpn[i & mask] != qp)
        i++;
    rail->by_qpn[i & mask] = NULL;
    rail->qpn_count--;
    for (i++; rail->by_qpn[i & mask]; i++) { /* entries behind the gap would not be found: place them again */
        verbs_rc_qp *moved = rail->by_qpn[i & mask];
        rail->by_qpn[i & mask] = NULL;
        place(rail, moved);
    }
}

/* -- asynchronous events -- */

static void refresh_port(verbs_rail *rail, const char *what)
{
    bool was_up = rail->is_up;
    struct ibv_port_attr attr;
    struct ibv_gid_entry gid;
    if (ibv_query_port(rail->context, rail->port_num, &attr) != 0)
        return;
    read_port(rail, &attr);
    choose_pkey(rail, attr.pkey_tbl_len); /* its place may change with the table */
    if (!rail->is_iwarp && verbs_gid_choose(rail->context, rail->port_num, &attr, &gid)) {
        rail->gid = gid.gid;
        rail->gid_index = (uint8_t)gid.gid_index;
        rail->prefix_bits = verbs_gid_prefix_bits(&rail->gid);
    }
    rail->is_up = rail->is_up && !rail->is_dead;
    if (was_up == rail->is_up)
        return;
    weft_log_info("RDMA port %s is %s (%s)", rail->name, rail->is_up ? "up again" : "down", what);
    verbs_conn_on_rail_change(rail);
}

static void fail_device(verbs_rail *rail, const char *what)
{
    if (rail->is_dead)
        return;
    rail->is_dead = true;
    rail->is_up = false;
    weft_log_warn("RDMA device %s failed (%s) and is not used any more. See the kernel's log (dmesg)", rail->name, what);
    verbs_conn_on_rail_change(rail);
}

static void handle(verbs_rail *rail, const struct ibv_async_event *event)
{
    const char *what = ibv_event_type_str(event->event_type);
    char words[160];
    switch (event->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        snprintf(words, sizeof words, "%s reported for its queue pair: %s", rail->name, what);
        if (event->element.qp->qp_context)
            verbs_conn_break(event->element.qp->qp_context, NULL, words);
        break;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        rail->reports_last_wqe = true;
        if (event->element.qp->qp_context)
            verbs_conn_on_last_wqe(event->element.qp->qp_context);
        break;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
        fail_device(rail, what);
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_PKEY_CHANGE:
        refresh_port(rail, what);
        break;
    default: /* communication established, path migrated, SRQ limit: nothing to do */
        break;
    }
}

int verbs_rail_events(verbs_rail *rail)
{
    struct ibv_async_event event;
    int n = 0;
    while (ibv_get_async_event(rail->context, &event) == 0) {
        /* An event may be for another port of the device; a query too many does no harm. */
        handle(rail, &event);
        ibv_ack_async_event(&event);
        rail->iface->counts[VERBS_COUNT_EVENTS]++;
        n++;
    }
    return n;
}
