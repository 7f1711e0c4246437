/* SPDX-License-Identifier: BSD-3-Clause
 *
 * endpoint: opens libfabric: provider, endpoint, queue, buffers; limits and capabilities that follow from the provider. It is opened with
 * the iface, or, where that may wait (knock.c), at the first contact with another host.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

static void close_endpoint(ofi_iface *iface)
{
    if (iface->ep)
        fi_close(&iface->ep->fid);
    if (iface->arena_mr)
        fi_close(&iface->arena_mr->fid);
    if (iface->cq)
        fi_close(&iface->cq->fid);
    if (iface->av)
        fi_close(&iface->av->fid);
    if (iface->domain)
        fi_close(&iface->domain->fid);
    if (iface->fabric)
        fi_close(&iface->fabric->fid);
    if (iface->info)
        fi_freeinfo(iface->info);
    iface->ep = NULL;
    iface->arena_mr = NULL;
    iface->cq = NULL;
    iface->av = NULL;
    iface->domain = NULL;
    iface->fabric = NULL;
    iface->info = NULL;
}

int ofi_sleep_on(ofi_iface *iface, int fd, uint32_t how)
{
    struct epoll_event event = {.events = EPOLLIN | how, .data.fd = fd};
    if (epoll_ctl(iface->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    return weft_fail(WEFT_E_SYSTEM, "epoll_ctl failed: %s", strerror(errno));
}

/* The only epoll set within another; -1: none, several, or unknown. */
static int set_within(int set)
{
    char path[64], line[256], kind[32];
    int fd, found = -1, count = 0;
    FILE *info;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", set);
    info = fopen(path, "re");
    while (info && fgets(line, sizeof line, info)) {
        if (sscanf(line, "tfd: %d", &fd) != 1)
            continue;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, kind, sizeof kind) >= 22 && memcmp(kind, "anon_inode:[eventpoll]", 22) == 0) {
            found = fd;
            count++;
        }
    }
    if (info)
        fclose(info);
    return count == 1 ? found : -1;
}

static int watch_queue(ofi_iface *iface)
{
    int inner = iface->is_edged ? set_within(iface->cq_fd) : -1;
    iface->sockets = inner;
    if (inner < 0)
        return ofi_sleep_on(iface, iface->cq_fd, iface->is_edged ? EPOLLET : 0);
    iface->is_edged = false;
    return ofi_sleep_on(iface, inner, 0);
}

static int open_queue(ofi_iface *iface)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD, .size = 2048};
    int rc = fi_cq_open(iface->domain, &attr, &iface->cq, NULL);
    iface->cq_fd = -1;
    if (rc == 0 && fi_control(&iface->cq->fid, FI_GETWAIT, &iface->cq_fd))
        iface->cq_fd = -1;
    if (iface->cq_fd >= 0)
        return watch_queue(iface);
    if (rc) {
        attr.wait_obj = FI_WAIT_NONE;
        rc = fi_cq_open(iface->domain, &attr, &iface->cq, NULL);
    }
    return rc ? weft_fail(WEFT_E_SYSTEM, "%s opens no completion queue: %s", iface->info->fabric_attr->prov_name, ofi_error_text(rc)) : 0;
}

static int open_endpoint(ofi_iface *iface)
{
    struct fi_av_attr addresses = {.type = FI_AV_TABLE};
    size_t min = iface->message_max;
    const char *what = "fi_fabric";
    int rc = fi_fabric(iface->info->fabric_attr, &iface->fabric, NULL);
    if (rc == 0 && (what = "fi_domain"))
        rc = fi_domain(iface->fabric, iface->info, &iface->domain, NULL);
    if (rc == 0 && (what = "fi_av_open"))
        rc = fi_av_open(iface->domain, &addresses, &iface->av, NULL);
    if (rc == 0 && (what = "fi_endpoint")) {
        int later = open_queue(iface);
        if (later)
            return later;
        rc = fi_endpoint(iface->domain, iface->info, &iface->ep, NULL);
    }
    if (rc == 0 && (what = "fi_ep_bind"))
        rc = fi_ep_bind(iface->ep, &iface->av->fid, 0);
    if (rc == 0)
        rc = fi_ep_bind(iface->ep, &iface->cq->fid, FI_TRANSMIT | FI_RECV);
    if (rc == 0 && (what = "fi_enable"))
        rc = fi_enable(iface->ep);
    if (rc == 0 && iface->has_multi_recv) /* some providers allocate its storage in fi_enable */
        fi_setopt(&iface->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof min);
    return rc ? weft_fail(WEFT_E_SYSTEM, "%s of %s failed: %s", what, iface->info->fabric_attr->prov_name, ofi_error_text(rc)) : 0;
}

/* An offered provider may fail to open (verbs;ofi_rxm on soft-RoCE does): then the next one is tried, unless the user named it. All ranks
 * of a host select the same. */
static int open_provider(ofi_iface *iface)
{
    char text[512];
    int rc, first = 0;
    for (iface->passed = 0; (rc = ofi_provider_select(iface)) == 0; iface->passed++) {
        iface->has_multi_recv = (iface->info->caps & FI_MULTI_RECV) != 0 && !ofi_is_plain_tcp(iface->info); /* see OFI_TCP_RECVS */
        iface->sorts = !(iface->info->tx_attr->msg_order & iface->info->rx_attr->msg_order & FI_ORDER_SAS);
        iface->needs_desc = (iface->info->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
        iface->is_edged = iface->keeps = ofi_is_plain_tcp(iface->info);
        iface->message_max = ofi_is_plain_tcp(iface->info) ? OFI_LONG_MESSAGE : OFI_MESSAGE;
        iface->inject_max = (uint32_t)(iface->info->tx_attr->inject_size < 512 ? iface->info->tx_attr->inject_size : 512);
        rc = open_endpoint(iface);
        if (rc == 0 || (weft_knob.ofi_provider && *weft_knob.ofi_provider))
            return rc;
        weft_log(WEFT_LOG_INFO, "trying libfabric's next provider: %s", weft_fail_text(rc));
        if (!first)
            snprintf(text, sizeof text, "%s", weft_fail_text(rc));
        first = first ? first : rc;
        close_endpoint(iface);
    }
    return first ? weft_fail(first, "%s", text) : rc;
}

/* On a host where ranks may defer their opening, all ranks take plain TCP: the addresses of deferred ranks promise it. A rank that is not
 * deferred takes another provider where plain TCP does not open. */
static int open_suitable(ofi_iface *iface)
{
    int rc;
    if (iface->providers || (!iface->is_deferred && !ofi_may_defer()))
        return open_provider(iface);
    iface->providers = OFI_PLAIN_TCP;
    rc = open_provider(iface);
    iface->providers = NULL;
    if (rc == 0 || iface->is_deferred)
        return rc;
    close_endpoint(iface);
    return open_provider(iface);
}

/* Opens with signals blocked: libfabric's threads inherit the mask and handle no signal of the program. */
static int open_quietly(ofi_iface *iface)
{
    sigset_t all, before;
    int rc;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = open_suitable(iface);
    if (rc == 0)
        rc = ofi_flow_open(iface);
    if (rc == 0)
        rc = ofi_addr_make(iface);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* Limits depend on whether the kernel carries the messages. */
static void suit(ofi_iface *iface)
{
    bool is_socket = ofi_is_socket(iface->info);
    uint64_t max = iface->info->ep_attr->max_msg_size;
    iface->coalesces = is_socket;
    iface->ep_bytes = is_socket ? OFI_TCP_BYTES : OFI_EP_BYTES;
    iface->frag_bytes = is_socket ? OFI_FRAG / 2 : OFI_FRAG;
    if (iface->frag_bytes > max)
        iface->frag_bytes = (uint32_t)max;
}

/* Capabilities of plain TCP do not depend on the library's version, so a deferred iface has them before it knows. */
static weft_caps caps_of_tcp(void)
{
    return (weft_caps){.frame_max = (OFI_LONG_MESSAGE - (uint32_t)sizeof(ofi_framed)) / 8 * 8, .chunk = OFI_CHUNK, .eager = OFI_CHUNK,
                       .latency_ns = 15000, .pages_on_demand = true, .zcopy_min = OFI_ZCOPY_MIN, .inline_max = OFI_TCP_INLINE};
}

static bool pins(const ofi_iface *iface) { return (uint64_t)iface->info->domain_attr->mr_mode & (FI_MR_LOCAL | FI_MR_ALLOCATED); }

static weft_caps caps_of(ofi_iface *iface)
{
    uint64_t speed = iface->info->nic && iface->info->nic->link_attr ? iface->info->nic->link_attr->speed : 0; /* bits per second */
    uint32_t max = (iface->message_max - (uint32_t)sizeof(ofi_framed)) / 8 * 8;
    weft_caps caps = {.frame_max = max,
                      .chunk = max < OFI_CHUNK ? max : OFI_CHUNK,
                      .latency_ns = ofi_is_socket(iface->info) ? 15000 : 2000,
                      .mbyte_per_s = (uint32_t)(speed / 8000000),
                      .wants_regcache = pins(iface),
                      .pages_on_demand = !pins(iface),
                      .mr_local = iface->needs_desc,
                      .amo = ofi_amo_domain(iface)};
    if (iface->inject_max > sizeof(ofi_framed))
        caps.inline_max = (iface->inject_max - (uint32_t)sizeof(ofi_framed)) / 8 * 8;
    return caps;
}

/* Plain TCP that needs registered memory, of which there is none, is treated as any other provider. */
static bool is_usual_tcp(const ofi_iface *iface) { return ofi_is_plain_tcp(iface->info) && !pins(iface); }

/* Plain TCP is not read from: before libfabric 1.17.1 (its pull request 8660) a read whose connection ends amid the answer completes twice
 * and its memory is freed twice; operations that get this memory later are lost. A put serves as well there. */
void ofi_caps_set(ofi_iface *iface)
{
    weft_caps caps = iface->is_deferred || is_usual_tcp(iface) ? caps_of_tcp() : caps_of(iface);
    caps.rma_max = 1ull << 40;
    caps.key_bytes = ofi_key_bytes();
    caps.get = !iface->is_deferred && !ofi_is_plain_tcp(iface->info);
    caps.put = caps.notify = caps.notify_after_all = caps.ordered = caps.may_rest = true;
    iface->iface.caps = caps;
}

int ofi_endpoint_open(ofi_iface *iface)
{
    int rc = ofi_library_load();
    if (rc == 0)
        rc = open_quietly(iface);
    if (rc == 0 && iface->is_deferred && !is_usual_tcp(iface))
        rc = weft_fail(WEFT_E_UNSUPPORTED, "libfabric's %s is not as expected: it needs registered memory", iface->addr.provider);
    if (rc)
        return rc;
    suit(iface);
    return 0;
}

void ofi_endpoint_close(ofi_iface *iface)
{
    close_endpoint(iface);
    ofi_keep_close(iface);
    if (iface->arena)
        munmap(iface->arena, iface->arena_bytes);
    free(iface->bounce);
    iface->arena = NULL;
    iface->bounce = NULL;
}

int ofi_contact(ofi_iface *iface)
{
    char text[400];
    int rc;
    if (!iface->is_deferred)
        return 0;
    weft_log_info("libfabric is opened: first contact with another host");
    rc = ofi_endpoint_open(iface);
    if (rc) {
        snprintf(text, sizeof text, "%s", weft_fail_text(rc));
        ofi_endpoint_close(iface);
        return weft_fail(WEFT_E_SYSTEM, "libfabric cannot be opened at the first contact with another host (with WEFT_OFI_PROVIDER=net "
                         "or tcp it is opened in MPI_Init): %s", text);
    }
    iface->is_deferred = false;
    return 0;
}
