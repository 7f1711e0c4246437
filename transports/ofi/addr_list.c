/* SPDX-License-Identifier: BSD-3-Clause
 *
 * addr_list: addresses by which this process may be reached, best first. The iface address has all of them, as it is not known which
 * ones a peer can reach. Private addresses precede public ones, fast interfaces precede slow ones. Bridges of containers and virtual
 * machines may have the same address on every host, loopback has: they come last, and handshake.c verifies the process.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/random.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define SLOWEST 15 /* of 4 bits */

enum rank { RANK_GOOD, RANK_PUBLIC, RANK_LINK_LOCAL, RANK_BRIDGE, RANK_LOOPBACK, RANK_DOWN };
static const char *const rank_names[] = {"", "public: private addresses precede it", "link-local",
                                         "a bridge of containers or virtual machines: tried late", "loopback: this host only",
                                         "no carrier: tried last"};

static bool is_bridge(const char *name)
{
    static const char *const names[] = {"docker",  "br-",    "virbr", "lxcbr", "lxdbr", "cni",
                                        "flannel", "podman", "veth",  "cali",  "kube",  "vmnet"};
    char path[IFNAMSIZ + 32];
    for (size_t i = 0; i < weft_count(names); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return strcmp(names[i], "veth") != 0; /* a veth may be a container's only network */
    snprintf(path, sizeof path, "/sys/class/net/%s/bridge", name);
    return access(path, F_OK) == 0;
}

static bool is_link_local(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 16) == 0xa9fe;
    return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* RFC 1918; RFC 6598 (100.64.0.0/10); RFC 4193 (IPv6) */
static bool is_private(const struct sockaddr *address)
{
    uint32_t v4;
    if (address->sa_family != AF_INET)
        return (((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr[0] & 0xfe) == 0xfc;
    v4 = ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
    return v4 >> 24 == 10 || v4 >> 20 == 0xac1 || v4 >> 16 == 0xc0a8 || v4 >> 22 == 0x191;
}

static enum rank rank_of(const struct ifaddrs *one)
{
    if (one->ifa_flags & IFF_LOOPBACK)
        return RANK_LOOPBACK;
    if (!(one->ifa_flags & IFF_UP) || !(one->ifa_flags & IFF_RUNNING))
        return RANK_DOWN;
    if (is_bridge(one->ifa_name) || is_link_local(one->ifa_addr))
        return is_bridge(one->ifa_name) ? RANK_BRIDGE : RANK_LINK_LOCAL;
    return is_private(one->ifa_addr) ? RANK_GOOD : RANK_PUBLIC;
}

/* Speed of an interface: 0 is 1 Tbit/s, each further step is half as fast, SLOWEST is 32 Mbit/s or less. An unknown speed counts as
 * 1 Gbit/s. */
static uint8_t slowness_of(const char *name)
{
    char path[IFNAMSIZ + 32];
    int mbit_per_s = 0;
    FILE *file;
    uint8_t slowness = SLOWEST;
    snprintf(path, sizeof path, "/sys/class/net/%s/speed", name);
    file = fopen(path, "re");
    if (!file || fscanf(file, "%d", &mbit_per_s) != 1 || mbit_per_s <= 0)
        mbit_per_s = 1000;
    if (file)
        fclose(file);
    for (; mbit_per_s > 1 << (20 - SLOWEST) && slowness; mbit_per_s /= 2)
        slowness--;
    return slowness;
}

static bool is_listed(const char *list, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += bytes)
        if ((at == list || at[-1] == ',') && (at[bytes] == 0 || at[bytes] == ','))
            return true;
    return false;
}

/* IPv6 link-local addresses need the receiver's interface index: they are left out. */
static bool is_usable(const struct ifaddrs *one, int family)
{
    const char *only = weft_knob.ofi_iface;
    return one->ifa_addr && one->ifa_addr->sa_family == family && (family == AF_INET || !is_link_local(one->ifa_addr)) &&
           (!only || !*only || is_listed(only, one->ifa_name));
}

bool ofi_host_has(int family)
{
    struct ifaddrs *all;
    bool any = false;
    if (getifaddrs(&all))
        return false;
    for (const struct ifaddrs *one = all; one; one = one->ifa_next)
        any |= is_usable(one, family) && rank_of(one) < RANK_LOOPBACK;
    freeifaddrs(all);
    return any;
}

int ofi_host_family(void) { return ofi_host_has(AF_INET) || !ofi_host_has(AF_INET6) ? AF_INET : AF_INET6; }

/* Identifies a network namespace of one kernel. */
static uint32_t host_number(void)
{
    struct stat netns = {.st_ino = 0};
    char text[64] = "";
    uint64_t number = 14695981039346656037u;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    if (stat("/proc/self/ns/net", &netns) == 0)
        number ^= netns.st_ino;
    for (ssize_t i = 0; i < bytes; i++)
        number = (number ^ (uint8_t)text[i]) * 1099511628211u;
    return (uint32_t)(number ^ number >> 32);
}

static uint32_t entry_bytes(const ofi_iface_addr *addr) { return addr->form == OFI_FORM_IN ? 5 : 17; }

static void add_address(ofi_iface_addr *addr, const struct ifaddrs *one)
{
    uint8_t *place = addr->addresses + addr->count * entry_bytes(addr);
    if (place + entry_bytes(addr) > addr->addresses + sizeof addr->addresses || addr->count == OFI_CANDIDATES)
        return;
    if (addr->form == OFI_FORM_IN)
        memcpy(place, &((const struct sockaddr_in *)one->ifa_addr)->sin_addr, 4);
    else
        memcpy(place, &((const struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, 16);
    place[entry_bytes(addr) - 1] = (uint8_t)(rank_of(one) << 4 | slowness_of(one->ifa_name));
    addr->count++;
}

static int add_all(ofi_iface_addr *addr)
{
    struct ifaddrs *all;
    if (getifaddrs(&all))
        return weft_fail(WEFT_E_SYSTEM, "cannot list the addresses of this host: getifaddrs failed");
    for (int rank = RANK_GOOD; rank <= RANK_DOWN; rank++)
        for (const struct ifaddrs *one = all; one; one = one->ifa_next)
            if (is_usable(one, addr->form == OFI_FORM_IN ? AF_INET : AF_INET6) && (int)rank_of(one) == rank)
                add_address(addr, one);
    freeifaddrs(all);
    if (addr->count)
        return 0;
    return weft_fail(WEFT_E_UNSUPPORTED, "this host has no IP address%s%s", weft_knob.ofi_iface && *weft_knob.ofi_iface
                     ? " on the interfaces that WEFT_OFI_IFACE names: " : "", weft_knob.ofi_iface ? weft_knob.ofi_iface : "");
}

/* An address without those of the host. */
static int begin(ofi_iface_addr *addr)
{
    *addr = (ofi_iface_addr){.version = 5, .host = host_number(), .key_form = ofi_key_bytes()};
    return weft_random(&addr->nonce, sizeof addr->nonce);
}

int ofi_addr_defer(ofi_iface *iface, int family, uint16_t port)
{
    int rc = begin(&iface->addr);
    iface->addr.form = family == AF_INET ? OFI_FORM_IN : OFI_FORM_IN6;
    iface->addr.knocks = 1;
    iface->addr.port = port;
    return rc ? rc : add_all(&iface->addr);
}

int ofi_addr_make(ofi_iface *iface)
{
    ofi_iface_addr *addr = &iface->addr;
    ofi_address name;
    size_t bytes = sizeof name;
    uint8_t form;
    int rc = fi_getname(&iface->ep->fid, &name, &bytes);
    if (rc)
        return weft_fail(WEFT_E_SYSTEM, "fi_getname failed: %s", ofi_error_text(rc));
    rc = iface->is_deferred ? 0 : begin(addr);
    if (rc)
        return rc;
    addr->protocol = iface->info->ep_attr->protocol;
    snprintf(addr->provider, sizeof addr->provider, "%s", iface->info->fabric_attr->prov_name);
    if (!ofi_is_socket(iface->info)) {
        addr->form = OFI_FORM_OPAQUE;
        addr->count = (uint8_t)bytes;
        if (bytes > sizeof name || bytes > sizeof addr->addresses)
            return weft_fail(WEFT_E_UNSUPPORTED, "an address of %s has %zu bytes, the limit is %zu", addr->provider, bytes,
                             sizeof name);
        memcpy(addr->addresses, &name, bytes);
        return 0;
    }
    form = name.any.sa_family == AF_INET ? OFI_FORM_IN : OFI_FORM_IN6;
    iface->port = form == OFI_FORM_IN ? name.in.sin_port : name.in6.sin6_port;
    if (iface->is_deferred)
        return form == addr->form ? 0 : weft_fail(WEFT_E_SYSTEM, "the host's IP addresses changed their family since MPI_Init");
    addr->form = form;
    addr->port = iface->port;
    return add_all(addr);
}

/* True if the address is in a network of a local address. */
static bool is_near(const ofi_address *far, int family)
{
    struct ifaddrs *all;
    bool near = false;
    if (getifaddrs(&all))
        return false;
    for (const struct ifaddrs *one = all; one && !near; one = one->ifa_next) {
        if (!is_usable(one, family) || !one->ifa_netmask || rank_of(one) > RANK_LINK_LOCAL)
            continue;
        if (family == AF_INET) {
            in_addr_t mask = ((struct sockaddr_in *)one->ifa_netmask)->sin_addr.s_addr;
            near = ((((struct sockaddr_in *)one->ifa_addr)->sin_addr.s_addr ^ far->in.sin_addr.s_addr) & mask) == 0;
        } else {
            const uint8_t *mask = ((struct sockaddr_in6 *)one->ifa_netmask)->sin6_addr.s6_addr;
            const uint8_t *local = ((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr.s6_addr;
            near = true;
            for (int i = 0; i < 16; i++)
                near &= ((local[i] ^ far->in6.sin6_addr.s6_addr[i]) & mask[i]) == 0;
        }
    }
    freeifaddrs(all);
    return near;
}

static void fill_candidate(const ofi_iface *iface, const ofi_iface_addr *addr, uint32_t i, ofi_candidate *candidate)
{
    const uint8_t *entry = addr->addresses + i * entry_bytes(addr);
    int family = addr->form == OFI_FORM_IN ? AF_INET : AF_INET6;
    uint8_t order = entry[entry_bytes(addr) - 1], slowness = order & 15;
    enum rank rank = order >> 4;
    *candidate = (ofi_candidate){.probe = -1};
    if (family == AF_INET) {
        candidate->address.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = addr->port};
        memcpy(&candidate->address.in.sin_addr, entry, 4);
        candidate->bytes = sizeof candidate->address.in;
    } else {
        candidate->address.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = addr->port};
        memcpy(&candidate->address.in6.sin6_addr, entry, 16);
        candidate->bytes = sizeof candidate->address.in6;
    }
    if (rank == RANK_LOOPBACK && addr->host != iface->addr.host)
        candidate->bytes = 0; /* loopback would reach this host */
    candidate->score = 32u * rank + (is_near(&candidate->address, family) ? 0 : 16) + slowness;
}

static int by_score(const void *a, const void *b)
{
    const ofi_candidate *x = a, *y = b;
    return x->score < y->score ? -1 : x->score > y->score;
}

int ofi_candidates_make(const ofi_iface *iface, ofi_ep *ep)
{
    const ofi_iface_addr *addr = &ep->addr;
    uint32_t max = addr->form == OFI_FORM_OPAQUE ? 1 : addr->count;
    ep->candidate_max = max + 2; /* and two for hints of handshakes */
    ep->candidates = calloc(ep->candidate_max, sizeof *ep->candidates);
    if (!ep->candidates)
        return weft_fail(WEFT_E_NOMEM, "no memory for %u addresses of rank %u", max, ep->proc_id.rank);
    if (addr->form == OFI_FORM_OPAQUE) {
        ep->candidates[0] = (ofi_candidate){.bytes = addr->count, .probe = -1};
        memcpy(ep->candidates[0].address.opaque, addr->addresses, addr->count < sizeof(ofi_address) ? addr->count : sizeof(ofi_address));
        ep->candidate_count = 1;
        return 0;
    }
    for (uint32_t i = 0; i < max && (i + 1) * entry_bytes(addr) <= sizeof addr->addresses; i++) {
        ofi_candidate *candidate = &ep->candidates[ep->candidate_count];
        fill_candidate(iface, addr, i, candidate);
        ep->candidate_count += candidate->bytes != 0;
    }
    qsort(ep->candidates, ep->candidate_count, sizeof *ep->candidates, by_score);
    if (ep->candidate_count)
        return 0;
    return weft_fail(WEFT_E_UNSUPPORTED, "rank %u has no address that another host can reach", ep->proc_id.rank);
}

const char *ofi_address_text(const ofi_address *address, uint32_t bytes, char *text, size_t capacity)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (bytes == sizeof address->in && address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->in.sin_addr, host, sizeof host);
        snprintf(text, capacity, "%s:%u", host, ntohs(address->in.sin_port));
    } else if (bytes == sizeof address->in6 && address->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->in6.sin6_addr, host, sizeof host);
        snprintf(text, capacity, "[%s]:%u", host, ntohs(address->in6.sin6_port));
    } else {
        snprintf(text, capacity, "its only address");
    }
    return text;
}

/* A connected datagram socket gives the local address by the kernel's routes; nothing is sent. */
uint32_t ofi_hint(const ofi_iface *iface, const ofi_candidate *candidate, uint8_t *hint, size_t capacity)
{
    ofi_address own;
    socklen_t bytes = sizeof own;
    int fd;
    if (iface->addr.form == OFI_FORM_OPAQUE)
        return 0;
    fd = socket(candidate->address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, &candidate->address.any, candidate->bytes) || getsockname(fd, &own.any, &bytes) || bytes > capacity)
        bytes = 0;
    if (fd >= 0)
        close(fd);
    if (!bytes)
        return 0;
    if (own.any.sa_family == AF_INET)
        own.in.sin_port = iface->port;
    else
        own.in6.sin6_port = iface->port;
    memcpy(hint, &own, bytes);
    return bytes;
}

bool ofi_hint_is_address(const ofi_iface *iface, const uint8_t *hint, uint32_t bytes)
{
    bool is_in = iface->addr.form == OFI_FORM_IN;
    sa_family_t family;
    if (iface->addr.form == OFI_FORM_OPAQUE || bytes != (is_in ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)))
        return false;
    memcpy(&family, hint + offsetof(struct sockaddr, sa_family), sizeof family);
    return family == (is_in ? AF_INET : AF_INET6);
}

void ofi_host_describe(void (*line)(void *arg, const char *text), void *arg)
{
    struct ifaddrs *all;
    if (getifaddrs(&all))
        return;
    for (int rank = RANK_GOOD; rank <= RANK_DOWN; rank++)
        for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
            char host[INET6_ADDRSTRLEN] = "", text[192];
            int family = one->ifa_addr ? one->ifa_addr->sa_family : 0;
            if ((family != AF_INET && family != AF_INET6) || !is_usable(one, family) || (int)rank_of(one) != rank)
                continue;
            inet_ntop(family, family == AF_INET ? (void *)&((struct sockaddr_in *)one->ifa_addr)->sin_addr
                                                : (void *)&((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, host, sizeof host);
            snprintf(text, sizeof text, "address %s on %s%s%s", host, one->ifa_name, *rank_names[rank] ? ": " : "", rank_names[rank]);
            line(arg, text);
        }
    freeifaddrs(all);
}
