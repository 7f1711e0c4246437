/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_select: which ports of which RDMA devices this rank uses. Called by rail.c at open, and by weft-info through verbs_describe.
 */
#ifndef WEFT_TRANSPORTS_VERBS_DEVICE_SELECT_H
#define WEFT_TRANSPORTS_VERBS_DEVICE_SELECT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define VERBS_FOUND_MAX 32

typedef struct verbs_found {
    struct ibv_device *device;
    struct ibv_context *context; /* one per device, shared by its ports: the taker opens its own */
    uint8_t port_num;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct ibv_gid_entry gid;
    uint32_t distance;           /* NUMA distance from where we run; 10 is near */
    uint32_t wanted;             /* its place in the knob's list; 0 without one */
    char name[64];
    char why_not[96];            /* empty: it is used */
} verbs_found;

typedef struct verbs_finding {
    struct ibv_device **devices;
    struct ibv_context *contexts[VERBS_FOUND_MAX];
    int device_count;
    verbs_found found[VERBS_FOUND_MAX];
    int count;
    char missing[160];           /* what the knob names and is not here, comma separated */
} verbs_finding;

/* Looks at all devices; those to be used stand first, nearest first. `rank` picks a list of the knob. Signals are blocked
 * meanwhile by the caller. 0, or an error in words when the devices cannot even be listed. */
int verbs_device_select(uint32_t rank, verbs_finding *finding);
void verbs_device_select_end(verbs_finding *finding);
/* Why none is used, all reasons in one line. */
void verbs_device_select_reasons(const verbs_finding *finding, char *text, size_t room);

#endif
