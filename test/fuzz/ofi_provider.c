/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi_provider: see ofi_provider.h. Completions and receives are in arrays; nothing is allocated per message. An injected message, or one
 * that a send or RMA has taken, is read whole, as a device would.
 */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/fuzz/ofi_provider.h"
#include "transports/ofi/ofi.h"

enum { FLIGHTS = 1024, RECVS = 64, ENTRIES = 4096 };

void __asan_poison_memory_region(void const volatile *, size_t) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *, size_t) __attribute__((weak));

bool provider_is_tcp, provider_refuses, provider_is_dead;

typedef struct posted {
    void *context, *memory;
    size_t bytes, used;
} posted;

static struct {
    struct fid_fabric fabric;
    struct fid_domain domain;
    struct fid_av av;
    struct fid_cq cq;
    struct fid_ep ep;
    posted recvs[RECVS];
    uint32_t recv_count;
    void *flights[FLIGHTS];
    uint32_t flight_count, addresses;
    struct fi_cq_data_entry entries[ENTRIES];
    bool is_error[ENTRIES];
    uint32_t first, last; /* counts: entries added and read */
    ofi_handshake handshake;
    bool has_handshake;
} provider;

static volatile uint8_t seen;

static void look(const void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        seen = ((const uint8_t *)memory)[i];
}

/* -- completions -- */

static void complete(struct fi_cq_data_entry entry, bool is_error)
{
    uint32_t at = provider.last++ % ENTRIES;
    if (provider.last - provider.first > ENTRIES)
        abort();
    provider.entries[at] = entry;
    provider.is_error[at] = is_error;
}

static bool can_complete(void) { return provider.last - provider.first < ENTRIES; }

static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count)
{
    struct fi_cq_data_entry *to = buf;
    ssize_t n = 0;
    (void)cq;
    while ((size_t)n < count && provider.first != provider.last && !provider.is_error[provider.first % ENTRIES])
        to[n++] = provider.entries[provider.first++ % ENTRIES];
    return n ? n : provider.first == provider.last ? -FI_EAGAIN : -FI_EAVAIL;
}

static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *error, uint64_t flags)
{
    (void)cq, (void)flags;
    if (provider.first == provider.last || !provider.is_error[provider.first % ENTRIES])
        return -FI_EAGAIN;
    *error = (struct fi_cq_err_entry){.op_context = provider.entries[provider.first++ % ENTRIES].op_context, .err = FI_ECONNRESET};
    return 1;
}

static const char *cq_strerror(struct fid_cq *cq, int code, const void *data, char *text, size_t bytes)
{
    (void)cq, (void)code, (void)data, (void)text, (void)bytes;
    return "made up";
}

void provider_complete(uint32_t count, bool fails)
{
    count = count < provider.flight_count ? count : provider.flight_count;
    for (uint32_t i = 0; i < count && can_complete(); i++) {
        complete((struct fi_cq_data_entry){.op_context = provider.flights[0]}, fails);
        memmove(&provider.flights[0], &provider.flights[1], --provider.flight_count * sizeof provider.flights[0]);
    }
}

/* -- messages -- */

static ssize_t take(void *context, const struct iovec *parts, size_t count)
{
    if (provider_refuses || provider.flight_count == FLIGHTS)
        return -FI_EAGAIN;
    for (size_t i = 0; i < count; i++)
        look(parts[i].iov_base, parts[i].iov_len);
    if (parts[0].iov_len >= sizeof(ofi_wire) && ((const ofi_wire *)parts[0].iov_base)->kind == OFI_HANDSHAKE && count == 1 &&
        parts[0].iov_len == sizeof provider.handshake) {
        memcpy(&provider.handshake, parts[0].iov_base, sizeof provider.handshake);
        provider.has_handshake = true;
    }
    if (context)
        provider.flights[provider.flight_count++] = context;
    return 0;
}

static ssize_t msg_send(struct fid_ep *ep, const void *memory, size_t bytes, void *desc, fi_addr_t to, void *context)
{
    struct iovec part = {(void *)(uintptr_t)memory, bytes};
    (void)ep, (void)desc, (void)to;
    return take(context, &part, 1);
}

static ssize_t msg_sendmsg(struct fid_ep *ep, const struct fi_msg *message, uint64_t flags)
{
    (void)ep, (void)flags;
    return take(message->context, message->msg_iov, message->iov_count);
}

static ssize_t msg_inject(struct fid_ep *ep, const void *memory, size_t bytes, fi_addr_t to)
{
    return msg_send(ep, memory, bytes, NULL, to, NULL);
}

static ssize_t msg_recvmsg(struct fid_ep *ep, const struct fi_msg *message, uint64_t flags)
{
    const struct iovec *part = message->msg_iov;
    (void)ep, (void)flags;
    if (provider.recv_count == RECVS)
        return -FI_EAGAIN;
    provider.recvs[provider.recv_count++] = (posted){.context = message->context, .memory = part->iov_base, .bytes = part->iov_len};
    if (__asan_poison_memory_region)
        __asan_poison_memory_region(part->iov_base, part->iov_len);
    return 0;
}

/* A receive of many messages is used up when the rest is shorter than the longest one. */
bool provider_deliver(const void *message, size_t bytes)
{
    posted *recv = &provider.recvs[0];
    uint64_t flags = FI_RECV;
    uint8_t *place;
    if (!provider.recv_count || !can_complete() || bytes > recv->bytes - recv->used)
        return false;
    place = (uint8_t *)recv->memory + recv->used;
    if (__asan_unpoison_memory_region)
        __asan_unpoison_memory_region(place, bytes);
    memcpy(place, message, bytes);
    recv->used += bytes;
    if (provider_is_tcp || recv->bytes - recv->used < OFI_MESSAGE)
        flags |= FI_MULTI_RECV;
    complete((struct fi_cq_data_entry){.op_context = recv->context, .flags = flags, .len = bytes, .buf = provider_is_tcp ? NULL : place},
             false);
    if (flags & FI_MULTI_RECV)
        memmove(recv, recv + 1, --provider.recv_count * sizeof *recv);
    return true;
}

const void *provider_last_handshake(void) { return provider.has_handshake ? &provider.handshake : NULL; }

/* -- RMA -- */

static ssize_t move(struct fid_ep *ep, const struct fi_msg_rma *message, uint64_t flags)
{
    (void)ep, (void)flags;
    return take(message->context, message->msg_iov, message->iov_count);
}

/* -- objects -- */

static int close_it(struct fid *fid)
{
    if (fid == &provider.ep.fid && __asan_unpoison_memory_region)
        for (uint32_t i = 0; i < provider.recv_count; i++)
            __asan_unpoison_memory_region(provider.recvs[i].memory, provider.recvs[i].bytes);
    return 0;
}

static int bind_it(struct fid *fid, struct fid *other, uint64_t flags)
{
    (void)fid, (void)other, (void)flags;
    return 0;
}

static int control(struct fid *fid, int command, void *arg)
{
    (void)fid, (void)arg;
    return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops fid_ops = {.size = sizeof fid_ops, .close = close_it, .bind = bind_it, .control = control};

/* Refuses what no address is: the kernel would. */
static int av_insert(struct fid_av *av, const void *address, size_t count, fi_addr_t *to, uint64_t flags, void *context)
{
    (void)av, (void)count, (void)flags, (void)context;
    if (provider_is_tcp) {
        look(address, sizeof(struct sockaddr_in));
        if (((const struct sockaddr *)address)->sa_family != AF_INET)
            abort(); /* libfabric 1.17 asserts, or takes it for an address of its own format */
    }
    *to = provider.addresses++;
    return 1;
}

static int mr_reg(struct fid *fid, const void *memory, size_t bytes, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
                  struct fid_mr **out, void *context)
{
    static struct fid_mr mr;
    (void)fid, (void)memory, (void)bytes, (void)access, (void)offset, (void)flags, (void)context;
    mr = (struct fid_mr){.fid = {.fclass = FI_CLASS_MR, .ops = &fid_ops}, .key = key};
    *out = &mr;
    return 0;
}

static int getname(fid_t fid, void *address, size_t *bytes)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = 1, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    (void)fid;
    memcpy(address, &own, sizeof own);
    *bytes = sizeof own;
    return 0;
}

static int setopt(fid_t fid, int level, int name, const void *value, size_t bytes)
{
    (void)fid, (void)level, (void)name, (void)value, (void)bytes;
    return 0;
}

static int endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
    static struct fi_ops_ep ops = {.size = sizeof ops, .setopt = setopt};
    static struct fi_ops_cm cm = {.size = sizeof cm, .getname = getname};
    static struct fi_ops_msg msg = {.size = sizeof msg, .recvmsg = msg_recvmsg, .send = msg_send, .sendmsg = msg_sendmsg,
                                    .inject = msg_inject};
    static struct fi_ops_rma rma = {.size = sizeof rma, .readmsg = move, .writemsg = move};
    (void)domain, (void)info, (void)context;
    provider.ep = (struct fid_ep){.fid = {.fclass = FI_CLASS_EP, .ops = &fid_ops}, .ops = &ops, .cm = &cm, .msg = &msg, .rma = &rma};
    *out = &provider.ep;
    return 0;
}

static int av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
    static struct fi_ops_av ops = {.size = sizeof ops, .insert = av_insert};
    (void)domain, (void)attr, (void)context;
    provider.av = (struct fid_av){.fid = {.fclass = FI_CLASS_AV, .ops = &fid_ops}, .ops = &ops};
    *out = &provider.av;
    return 0;
}

static int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
    static struct fi_ops_cq ops = {.size = sizeof ops, .read = cq_read, .readerr = cq_readerr, .strerror = cq_strerror};
    (void)domain, (void)attr, (void)context;
    provider.cq = (struct fid_cq){.fid = {.fclass = FI_CLASS_CQ, .ops = &fid_ops}, .ops = &ops};
    *out = &provider.cq;
    return 0;
}

static int domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out, void *context)
{
    static struct fi_ops_domain ops = {.size = sizeof ops, .av_open = av_open, .cq_open = cq_open, .endpoint = endpoint};
    static struct fi_ops_mr mr = {.size = sizeof mr, .reg = mr_reg};
    (void)fabric, (void)info, (void)context;
    provider.domain = (struct fid_domain){.fid = {.fclass = FI_CLASS_DOMAIN, .ops = &fid_ops}, .ops = &ops, .mr = &mr};
    *out = &provider.domain;
    return 0;
}

/* -- libfabric's own functions: the library itself, whose constructors install signal handlers, is not linked -- */

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
    static struct fi_ops_fabric ops = {.size = sizeof ops, .domain = domain};
    (void)attr, (void)context;
    memset(&provider, 0, sizeof provider);
    provider.fabric = (struct fid_fabric){.fid = {.fclass = FI_CLASS_FABRIC, .ops = &fid_ops}, .ops = &ops};
    *out = &provider.fabric;
    return 0;
}

uint32_t fi_version(void) { return FI_VERSION(1, 17); }
const char *fi_strerror(int code) { return code ? "made up" : "success"; }

/* Of fi_allocinfo only. */
struct fi_info *fi_dupinfo(const struct fi_info *of)
{
    struct fi_info *info = of ? NULL : calloc(1, sizeof *info);
    if (!info)
        return NULL;
    info->tx_attr = calloc(1, sizeof *info->tx_attr);
    info->rx_attr = calloc(1, sizeof *info->rx_attr);
    info->ep_attr = calloc(1, sizeof *info->ep_attr);
    info->domain_attr = calloc(1, sizeof *info->domain_attr);
    info->fabric_attr = calloc(1, sizeof *info->fabric_attr);
    if (!info->tx_attr || !info->rx_attr || !info->ep_attr || !info->domain_attr || !info->fabric_attr)
        abort();
    return info;
}

void fi_freeinfo(struct fi_info *info)
{
    if (!info)
        return;
    free(info->src_addr);
    free(info->fabric_attr->prov_name);
    free(info->domain_attr->name);
    free(info->tx_attr);
    free(info->rx_attr);
    free(info->ep_attr);
    free(info->domain_attr);
    free(info->fabric_attr);
    free(info);
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **out)
{
    struct fi_info *info = fi_allocinfo();
    (void)version, (void)node, (void)service, (void)flags;
    if (!info)
        return -FI_ENOMEM;
    if (hints->caps & FI_ATOMIC || (provider_is_tcp && hints->caps & FI_MULTI_RECV)) {
        fi_freeinfo(info);
        return -FI_ENODATA;
    }
    info->caps = hints->caps;
    info->fabric_attr->prov_name = strdup(provider_is_tcp ? "tcp" : "made up");
    info->domain_attr->name = strdup("made up");
    info->domain_attr->mr_key_size = 8;
    info->ep_attr->max_msg_size = 1u << 30;
    info->ep_attr->protocol = 1;
    info->tx_attr->inject_size = 64;
    if (provider_is_tcp)
        info->tx_attr->msg_order = info->rx_attr->msg_order = FI_ORDER_SAS;
    *out = info;
    return 0;
}

/* -- in place of library_load.c, knock.c, tcp_probe.c and tcp_sockets.c -- */

int ofi_library_load(void) { return 0; }
int ofi_knock_listen(ofi_iface *iface) { return iface ? WEFT_E_UNSUPPORTED : 0; }
void ofi_knock_close(ofi_iface *iface) { (void)iface; }
int ofi_knock_answer(ofi_iface *iface) { return iface ? 0 : 1; }

int ofi_knock_turn(ofi_iface *iface, ofi_ep *ep, uint64_t now)
{
    (void)iface, (void)ep, (void)now;
    return 0;
}

void ofi_knock_learn(const ofi_iface *iface, ofi_ep *ep, uint16_t port)
{
    (void)iface;
    ep->addr.port = port;
    ep->addr.knocks = 0;
}

bool ofi_can_probe(const ofi_iface *iface) { return ofi_is_socket(iface->info); }

void ofi_tcp_probe_begin(ofi_candidate *candidate, uint64_t now)
{
    candidate->probed_ns = now;
    candidate->state = OFI_CANDIDATE_PROBED;
}

void ofi_tcp_probe_poll(ofi_candidate *candidate, uint64_t now)
{
    (void)now;
    if (candidate->state != OFI_CANDIDATE_PROBED)
        return;
    candidate->state = provider_is_dead ? OFI_CANDIDATE_FAILED : OFI_CANDIDATE_LISTENS;
    if (provider_is_dead)
        memcpy(candidate->why, "refused", sizeof "refused");
}

void ofi_tcp_probe_end(ofi_candidate *candidate) { (void)candidate; }
void ofi_tcp_sockets_check(ofi_iface *iface) { (void)iface; }
