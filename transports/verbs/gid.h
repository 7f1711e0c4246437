/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gid: GID selection and text for a port. Called by device_select.c, rail.c, rail_pair.c and the files of conn.
 */
#ifndef WEFT_TRANSPORTS_VERBS_GID_H
#define WEFT_TRANSPORTS_VERBS_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERBS_GID_TEXT 64

/* Selects the best entry of a port's GID table. False: none is usable. */
bool verbs_gid_choose(struct ibv_context *context, uint8_t port_num, const struct ibv_port_attr *attr,
                      struct ibv_gid_entry *best);
/* Calls `each` for every entry that is not empty; returns their number. */
int verbs_gid_each(struct ibv_context *context, uint8_t port_num, const struct ibv_port_attr *attr,
                   void (*each)(void *arg, const struct ibv_gid_entry *entry), void *arg);
bool verbs_gid_is_ipv4(const union ibv_gid *gid);
/* Prefix length of the local interface with this IPv4-mapped address; 0: not IPv4, or unknown. */
uint8_t verbs_gid_prefix_bits(const union ibv_gid *gid);
/* Address of the network interface below an iWARP port (its own GID is a hardware address), IPv4-mapped or IPv6. `interface`: its index, 0:
 * unknown. False: none. */
bool verbs_gid_of_interface(const char *device, uint8_t port_num, uint32_t interface, union ibv_gid *gid);
/* "10.0.0.1" or "fe80::1". */
const char *verbs_gid_text(const union ibv_gid *gid, char text[VERBS_GID_TEXT]);
const char *verbs_gid_type_text(uint32_t type);

#endif
