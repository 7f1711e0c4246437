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
    struct ibv_context *context; /* one per device, shared by its ports; rail.c opens its own */
    uint8_t port_num;
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    struct ibv_gid_entry gid;
    uint32_t distance;           /* NUMA distance from the calling CPU; 10: local or unknown */
    uint32_t wanted;             /* position in WEFT_DEVICES, from 1; 0: not listed */
    char name[64];
    char why_not[96];            /* why it is not used; empty: it is used */
} verbs_found;

typedef struct verbs_finding {
    struct ibv_device **devices;
    struct ibv_context *contexts[VERBS_FOUND_MAX];
    int device_count;
    verbs_found found[VERBS_FOUND_MAX];
    int count;
    char missing[160];           /* names in WEFT_DEVICES without a port, comma separated */
} verbs_finding;

/* Examines all devices; sorts those to be used first, nearest first. `rank` selects a list of WEFT_DEVICES. The caller must block signals.
 * 0, or WEFT_E_UNSUPPORTED if devices cannot be listed. */
int verbs_device_select(uint32_t rank, verbs_finding *finding);
void verbs_device_select_end(verbs_finding *finding);
/* Writes why none is used, all reasons in one line. */
void verbs_device_select_reasons(const verbs_finding *finding, char *text, size_t capacity);

#endif
