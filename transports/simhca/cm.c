/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cm: rdma_cm is not simulated. Its functions are here so that programs link; each fails, and says so once.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>

static int refuse(void)
{
    static int said;
    if (!said++)
        fprintf(stderr, "simhca: rdma_cm is not simulated: connect by datagrams\n");
    errno = EOPNOTSUPP;
    return -1;
}

#define REFUSES(name, ...)  \
    int name(__VA_ARGS__)   \
    {                       \
        return refuse();    \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"
struct rdma_event_channel *rdma_create_event_channel(void)
{
    errno = EOPNOTSUPP; /* not said: whoever asks takes a no for an answer */
    return NULL;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
}

REFUSES(rdma_create_id, struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
REFUSES(rdma_destroy_id, struct rdma_cm_id *id)
REFUSES(rdma_bind_addr, struct rdma_cm_id *id, struct sockaddr *addr)
REFUSES(rdma_resolve_addr, struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms)
REFUSES(rdma_resolve_route, struct rdma_cm_id *id, int timeout_ms)
REFUSES(rdma_create_qp, struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
REFUSES(rdma_connect, struct rdma_cm_id *id, struct rdma_conn_param *param)
REFUSES(rdma_establish, struct rdma_cm_id *id)
REFUSES(rdma_listen, struct rdma_cm_id *id, int backlog)
REFUSES(rdma_accept, struct rdma_cm_id *id, struct rdma_conn_param *param)
REFUSES(rdma_reject, struct rdma_cm_id *id, const void *data, uint8_t bytes)
REFUSES(rdma_disconnect, struct rdma_cm_id *id)
REFUSES(rdma_get_cm_event, struct rdma_event_channel *channel, struct rdma_cm_event **event)
REFUSES(rdma_ack_cm_event, struct rdma_cm_event *event)
REFUSES(rdma_set_option, struct rdma_cm_id *id, int level, int name, void *value, size_t bytes)
REFUSES(rdma_migrate_id, struct rdma_cm_id *id, struct rdma_event_channel *channel)
REFUSES(rdma_init_qp_attr, struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)

void rdma_destroy_qp(struct rdma_cm_id *id)
{
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return 0;
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
    return "not simulated";
}
