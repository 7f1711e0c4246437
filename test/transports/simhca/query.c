/* SPDX-License-Identifier: BSD-3-Clause
 *
 * query: attributes of simulated devices; the op table of a context; names of enum values.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

uint32_t hca_limit(uint32_t of_profile, uint32_t plenty)
{
    return of_profile ? of_profile : plenty;
}

hca_port *hca_port_of(struct ibv_context *context, uint32_t number)
{
    return number == 1 ? &hca_context_of(context)->device->port : NULL;
}

#undef ibv_query_device
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    const simhca_profile *profile = &hca.profile;
    hca_device *device = hca_context_of(context)->device;
    if (device->is_dead)
        return EIO;
    memset(attr, 0, sizeof *attr);
    strcpy(attr->fw_ver, "sim.1");
    attr->node_guid = attr->sys_image_guid = ibv_get_device_guid(&device->base);
    attr->max_mr_size = UINT64_MAX;
    attr->page_size_cap = 4096;
    attr->vendor_id = 0x5e6;
    attr->max_qp = (int)hca_limit(profile->max_qp, 4096);
    attr->max_qp_wr = (int)hca_limit(profile->max_qp_wr, 1024);
    attr->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_CURR_QP_STATE_MOD |
                             (profile->no_windows ? 0 : IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B);
    attr->max_mw = profile->no_windows ? 0 : (int)hca_limit(profile->max_mw, 4096);
    attr->max_sge = attr->max_sge_rd = (int)hca_limit(profile->max_sge, 16);
    attr->max_cq = 4096;
    attr->max_cqe = (int)hca_limit(profile->max_cqe, 32767);
    attr->max_mr = (int)hca_limit(profile->max_mr, 65536);
    attr->max_pd = 1024;
    attr->max_qp_rd_atom = (int)hca_limit(profile->max_rd_atomic, 16);
    attr->max_qp_init_rd_atom = (int)hca_limit(profile->max_init_rd_atomic, (uint32_t)attr->max_qp_rd_atom);
    attr->max_res_rd_atom = 65536;
    attr->atomic_cap = profile->no_atomics ? IBV_ATOMIC_NONE : profile->glob_atomics ? IBV_ATOMIC_GLOB : IBV_ATOMIC_HCA;
    attr->max_ah = (int)hca_limit(profile->max_ah, 4096);
    attr->max_srq = profile->no_srq ? 0 : 256;
    attr->max_srq_wr = profile->no_srq ? 0 : (int)hca_limit(profile->max_srq_wr, 4096);
    attr->max_srq_sge = profile->no_srq ? 0 : attr->max_sge;
    attr->max_pkeys = (uint16_t)(profile->pkey_index + 1);
    attr->local_ca_ack_delay = 10;
    attr->phys_port_cnt = 1;
    return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t bytes)
{
    struct ibv_device_attr_ex full = {.completion_timestamp_mask = 0};
    if (input && input->comp_mask)
        return EINVAL;
    int rc = ibv_query_device(context, &full.orig_attr);
    full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
    if (!rc)
        memcpy(attr, &full, bytes < sizeof full ? bytes : sizeof full);
    return rc;
}

static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t bytes)
{
    const hca_port *port = hca_port_of(context, number);
    struct ibv_port_attr full = {.state = IBV_PORT_DOWN};
    if (!port || hca_context_of(context)->device->is_dead)
        return port ? EIO : EINVAL;
    full.state = port->is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    full.phys_state = port->is_up ? 5 : 3;
    full.max_mtu = IBV_MTU_4096;
    full.active_mtu = hca.profile.is_ib ? IBV_MTU_2048 : IBV_MTU_1024;
    full.gid_tbl_len = HCA_GIDS + 4;
    full.flags = hca.profile.needs_grh ? IBV_QPF_GRH_REQUIRED : 0;
    full.port_cap_flags = IBV_PORT_CM_SUP | (hca.profile.is_ib ? 0 : IBV_PORT_IP_BASED_GIDS);
    full.max_msg_sz = hca_limit(hca.profile.max_msg_bytes, 1u << 30);
    full.pkey_tbl_len = (uint16_t)(hca.profile.pkey_index + 1);
    full.lid = port->lid;
    full.active_width = 2;
    full.active_speed = 32;
    full.link_layer = hca.profile.is_ib ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    memcpy(attr, &full, bytes < sizeof full ? bytes : sizeof full);
    return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *attr)
{
    return query_port(context, number, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(struct ibv_context *context, uint8_t number, int index, union ibv_gid *gid)
{
    const hca_port *port = hca_port_of(context, number);
    if (!port || index < 0 || index >= HCA_GIDS + 4) {
        errno = EINVAL;
        return -1;
    }
    *gid = index < port->gid_count ? port->gids[index] : (union ibv_gid){.raw = {0}};
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t number, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags,
                      size_t bytes)
{
    const hca_port *port = hca_port_of(context, number);
    if (flags || !port || index >= HCA_GIDS + 4)
        return EINVAL;
    if (index >= port->gid_count)
        return ENODATA;
    struct ibv_gid_entry full = {.gid = port->gids[index], .gid_index = index, .port_num = number,
                                 .gid_type = port->gid_types[index], .ndev_ifindex = port->gid_ndevs[index]};
    memcpy(entry, &full, bytes < sizeof full ? bytes : sizeof full);
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
                             size_t bytes)
{
    const hca_port *port = hca_port_of(context, 1);
    if (flags || max < port->gid_count)
        return -EINVAL;
    for (uint32_t i = 0; i < port->gid_count; i++)
        _ibv_query_gid_ex(context, 1, i, (struct ibv_gid_entry *)((char *)entries + i * bytes), 0, bytes);
    return port->gid_count;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t number, int index, __be16 *pkey)
{
    if (!hca_port_of(context, number) || index < 0 || (uint32_t)index > hca.profile.pkey_index)
        return -1;
    *pkey = htobe16((uint32_t)index < hca.profile.pkey_index ? 0 : index ? 0x8001 : 0xffff);
    return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t number, __be16 pkey)
{
    return hca_port_of(context, number) && pkey == 0xffff ? 0 : -1;
}

void hca_verbs_fill(hca_context *context)
{
    struct ibv_context_ops *ops = &context->verbs.context.ops;
    context->verbs.query_port = query_port;
    context->verbs.query_device_ex = query_device_ex;
    ops->poll_cq = hca_poll_cq;
    ops->req_notify_cq = hca_req_notify_cq;
    ops->post_srq_recv = hca_post_srq_recv;
    ops->post_send = hca_post_send;
    ops->post_recv = hca_post_recv;
    hca_mw_fill(ops);
}

/* -- without a device -- */

int ibv_fork_init(void)
{
    return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static const char *const words[] = {
        "success", "local length error", "local QP operation error", "local EE context operation error", "local protection error",
        "Work Request Flushed Error", "memory management operation error", "bad response error", "local access error",
        "remote invalid request error", "remote access error", "remote operation error", "transport retry counter exceeded",
        "RNR retry counter exceeded", "local RDD violation error", "remote invalid RD request", "aborted error",
        "invalid EE context number", "invalid EE context state", "fatal error", "response timeout error", "general error",
    };
    return (unsigned)status < weft_count(words) ? words[status] : "unknown";
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
    static const char *const words[] = {
        "CQ error", "local work queue catastrophic error", "invalid request local work queue error",
        "local access violation work queue error", "communication established", "send queue drained", "path migrated",
        "path migration request error", "local catastrophic error", "port active", "port error", "LID change", "P_Key change",
        "SM change", "SRQ catastrophic error", "SRQ limit reached",
        "last WQE reached", "client reregistration", "GID table change",
    };
    return (unsigned)type < weft_count(words) ? words[type] : "unknown";
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
    return type == IBV_NODE_CA ? "InfiniBand channel adapter" : "unknown";
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    static const char *const words[] = {"invalid state", "PORT_DOWN", "PORT_INIT", "PORT_ARMED", "PORT_ACTIVE",
                                        "PORT_ACTIVE_DEFER"};
    return (unsigned)state < weft_count(words) ? words[state] : "invalid state";
}
