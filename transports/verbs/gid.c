/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gid: see gid.h. RoCE ports have several GIDs. v2 is routable, so it precedes v1. IPv4-mapped precedes IPv6, as administrators configure
 * it on both ends; link-local is the last of v2.
 */
#include "transports/verbs/gid.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/knob.h"

static bool is_empty(const union ibv_gid *gid)
{
    static const union ibv_gid none;
    return memcmp(gid, &none, sizeof none) == 0;
}

static bool is_link_local(const union ibv_gid *gid) { return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80; }

bool verbs_gid_is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid->raw, mapped, sizeof mapped) == 0;
}

int verbs_gid_each(struct ibv_context *context, uint8_t port_num, const struct ibv_port_attr *attr,
                   void (*each)(void *arg, const struct ibv_gid_entry *entry), void *arg)
{
    int count = 0;
    for (int i = 0; i < attr->gid_tbl_len; i++) {
        struct ibv_gid_entry entry;
        if (ibv_query_gid_ex(context, port_num, (uint32_t)i, &entry, 0) != 0 || is_empty(&entry.gid))
            continue;
        count++;
        each(arg, &entry);
    }
    return count;
}

static int rank_of(const struct ibv_gid_entry *entry)
{
    if (entry->gid_type == IBV_GID_TYPE_IB)
        return 10;
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
        return verbs_gid_is_ipv4(&entry->gid) ? 2 : 1;
    return verbs_gid_is_ipv4(&entry->gid) ? 5 : is_link_local(&entry->gid) ? 3 : 4;
}

static bool is_address_here(const union ibv_gid *gid)
{
    struct ifaddrs *all, *one;
    bool is_here = false;
    if (getifaddrs(&all) != 0)
        return true;
    for (one = all; one && !is_here; one = one->ifa_next) {
        int family = one->ifa_addr ? one->ifa_addr->sa_family : 0;
        if (family == AF_INET && verbs_gid_is_ipv4(gid))
            is_here = memcmp(&((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr, gid->raw + 12, 4) == 0;
        else if (family == AF_INET6)
            is_here = memcmp(&((const struct sockaddr_in6 *)(const void *)one->ifa_addr)->sin6_addr, gid->raw, 16) == 0;
    }
    freeifaddrs(all);
    return is_here;
}

/* True if a RoCE GID belongs to an interface of another network namespace (a container's): it is listed, but the kernel refuses it here.
 * Interface indices of namespaces overlap, so the address decides; every port has a link-local GID, with or without such an address.
 * Kernels before 5.12 report no interface: then all GIDs count as this namespace's. */
static bool is_foreign(const struct ibv_gid_entry *entry)
{
    char name[IF_NAMESIZE];
    if (entry->gid_type == IBV_GID_TYPE_IB || !entry->ndev_ifindex)
        return false;
    return !if_indextoname(entry->ndev_ifindex, name) || (!is_link_local(&entry->gid) && !is_address_here(&entry->gid));
}

typedef struct chosen {
    struct ibv_gid_entry *best;
    int rank;
} chosen;

static void compare(void *arg, const struct ibv_gid_entry *entry)
{
    chosen *so_far = arg;
    bool is_asked = weft_knob.gid_index >= 0 && entry->gid_type != IBV_GID_TYPE_IB;
    if (is_asked ? (int)entry->gid_index == weft_knob.gid_index : rank_of(entry) > so_far->rank && !is_foreign(entry)) {
        so_far->rank = rank_of(entry);
        *so_far->best = *entry;
    }
}

bool verbs_gid_choose(struct ibv_context *context, uint8_t port_num, const struct ibv_port_attr *attr, struct ibv_gid_entry *best)
{
    chosen so_far = {best, 0};
    verbs_gid_each(context, port_num, attr, compare, &so_far);
    return so_far.rank > 0;
}

uint8_t verbs_gid_prefix_bits(const union ibv_gid *gid)
{
    struct ifaddrs *all, *one;
    uint8_t bits = 0;
    if (!verbs_gid_is_ipv4(gid) || getifaddrs(&all) != 0)
        return 0;
    for (one = all; one && !bits; one = one->ifa_next) {
        const struct sockaddr_in *addr = (const void *)one->ifa_addr, *mask = (const void *)one->ifa_netmask;
        if (addr && mask && addr->sin_family == AF_INET && memcmp(&addr->sin_addr, gid->raw + 12, 4) == 0)
            bits = (uint8_t)__builtin_popcount(mask->sin_addr.s_addr);
    }
    freeifaddrs(all);
    return bits;
}

/* Kernels before 5.12 do not report the interface; sysfs does. */
static uint32_t find_interface(const char *device, uint8_t port_num)
{
    char path[256], name[IF_NAMESIZE + 1] = "";
    FILE *file;
    snprintf(path, sizeof path, "/sys/class/infiniband/%.64s/ports/%u/gid_attrs/ndevs/0", device, port_num);
    file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = 0;
    if (file)
        fclose(file);
    return name[0] ? if_nametoindex(name) : 0;
}

/* Else: the interface whose hardware address is the prefix of the port's GID. */
static uint32_t interface_by_address(const struct ifaddrs *all, const union ibv_gid *gid)
{
    for (; all; all = all->ifa_next) {
        const struct sockaddr_ll *hardware = (const void *)all->ifa_addr;
        if (hardware && hardware->sll_family == AF_PACKET && hardware->sll_halen == 6 &&
            memcmp(hardware->sll_addr, gid->raw, 6) == 0)
            return (uint32_t)hardware->sll_ifindex;
    }
    return 0;
}

bool verbs_gid_of_interface(const char *device, uint8_t port_num, uint32_t interface, union ibv_gid *gid)
{
    struct ifaddrs *all, *one;
    int found = 0;
    if (getifaddrs(&all) != 0)
        return false;
    interface = interface ? interface : find_interface(device, port_num);
    interface = interface ? interface : interface_by_address(all, gid);
    for (one = all; one; one = one->ifa_next) {
        int family = one->ifa_addr ? one->ifa_addr->sa_family : 0, worth = family == AF_INET ? 2 : family == AF_INET6 ? 1 : 0;
        if (worth <= found || !interface || if_nametoindex(one->ifa_name) != interface)
            continue;
        found = worth;
        memset(gid, 0, sizeof *gid);
        gid->raw[10] = gid->raw[11] = 0xff;
        if (family == AF_INET)
            memcpy(gid->raw + 12, &((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr, 4);
        else
            memcpy(gid->raw, &((const struct sockaddr_in6 *)(const void *)one->ifa_addr)->sin6_addr, 16);
    }
    freeifaddrs(all);
    return found > 0;
}

const char *verbs_gid_text(const union ibv_gid *gid, char text[VERBS_GID_TEXT])
{
    bool is_ipv4 = verbs_gid_is_ipv4(gid);
    if (!inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? gid->raw + 12 : gid->raw, text, VERBS_GID_TEXT))
        snprintf(text, VERBS_GID_TEXT, "?");
    return text;
}

const char *verbs_gid_type_text(uint32_t type)
{
    return type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1" : "IB/iWARP";
}
