/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gid: a port's addresses: which one we use, and how a person reads it. Called by device_select.c and wc_error.c.
 */
#ifndef WEFT_TRANSPORTS_VERBS_GID_H
#define WEFT_TRANSPORTS_VERBS_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERBS_GID_TEXT 64

/* The best entry of a port's table. False: the port has none that reaches anybody. */
bool verbs_gid_choose(struct ibv_context *context, uint8_t port_num, const struct ibv_port_attr *attr,
                      struct ibv_gid_entry *best);
/* Entry by entry, for weft-info. Returns how many entries are not empty. */
int verbs_gid_each(struct ibv_context *context, uint8_t port_num, const struct ibv_port_attr *attr,
                   void (*each)(void *arg, const struct ibv_gid_entry *entry), void *arg);
bool verbs_gid_is_ipv4(const union ibv_gid *gid);
/* Length of the IPv4 network that an interface of ours with this address stands in; 0: not IPv4, or not known. */
uint8_t verbs_gid_prefix_bits(const union ibv_gid *gid);
/* The address of the network interface below an iWARP port, whose own GID is a hardware address: IPv4-mapped, or IPv6. */
bool verbs_gid_of_interface(const char *device, uint8_t port_num, uint32_t interface, union ibv_gid *gid);
/* "10.0.0.1" or "fe80::1". */
const char *verbs_gid_text(const union ibv_gid *gid, char text[VERBS_GID_TEXT]);
const char *verbs_gid_type_text(uint32_t type);

#endif
