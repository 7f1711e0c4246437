/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface: the operations table of ofi; opening and closing in order, polling, sleeping. See ofi.h.
 * Sleeping: one epoll set has the CQ's descriptor and a timer. fi_trywait is called before. A provider without descriptor, or one that
 * refused a call, is polled every millisecond. libfabric's tcp (`net`) signals its own descriptor at a completion and clears it in its
 * own waits only, so it stays readable. So the epoll set of its sockets within is watched instead. If /proc does not show which that is,
 * the descriptor is watched for edges, which arm consumes before the caller polls once more; as libfabric may leave a message in a
 * socket, sleeps are limited, too.
 * A poll costs libfabric's tcp a system call or two: after IDLE_POLLS without events only each IDLE_EVERY'th reads the CQ.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define LAST_WRITES_NS 10000000
#define IDLE_POLLS 256u   /* polls without events, after which only ... */
#define IDLE_EVERY 8u     /* ... each IDLE_EVERY'th poll reads the CQ */
#define BARREN_POLLS 256u /* polls without events, with sleeps or not, after which one more receive is posted */
#define CLOCK_EVERY 512u  /* polls between two reads of the clock while no handshake is pending */
#define LOOK_NS 1000000u
#define EDGED_CHECK_NS 20000000u

/* -- completions -- */

static void failed(ofi_iface *iface)
{
    struct fi_cq_err_entry error = {0};
    ofi_work *work;
    char words[128] = "", text[192];
    const char *more;
    if (fi_cq_readerr(iface->cq, &error, 0) <= 0)
        return;
    work = error.op_context;
    more = fi_cq_strerror(iface->cq, error.prov_errno, error.err_data, words, sizeof words);
    snprintf(text, sizeof text, "%s (%s)", ofi_error_text(error.err), more ? more : "no more words");
    if (!work)
        return; /* an inject has no context; numbers and handshakes find what is missing */
    if (work->kind == OFI_WORK_FRAG) {
        ofi_frag_done(iface, weft_container(work, ofi_frag, work), &error);
    } else if (work->kind == OFI_WORK_RECV) {
        if (!iface->has_multi_recv || error.flags & FI_MULTI_RECV)
            ofi_recv_done(iface, weft_container(work, ofi_recv, work));
    } else {
        ofi_slot *slot = weft_container(work, ofi_slot, work);
        ofi_ep *ep = work->ep, *called = slot->about < iface->index_capacity ? iface->by_index[slot->about] : NULL;
        ofi_slot_done(iface, slot);
        if (ep)
            ofi_break(iface, ep, text);
        else if (called)
            called->called_ns = 0; /* the handshake was not delivered: repeats it */
    }
}

/* Dispatches the next completion that was read. */
static int hand_over(ofi_iface *iface, int budget)
{
    const struct fi_cq_data_entry *entry = &iface->entries[iface->entry];
    ofi_work *work = entry->op_context;
    int n = 1;
    if (work && work->kind == OFI_WORK_RECV) {
        n = ofi_recv_message(iface, entry, &iface->entry_at, budget);
        if (iface->entry_at < entry->len)
            return n;
    } else if (work && work->kind == OFI_WORK_FRAG) {
        ofi_frag_done(iface, weft_container(work, ofi_frag, work), NULL);
    } else if (work) {
        ofi_slot_done(iface, weft_container(work, ofi_slot, work));
    }
    iface->entry++;
    iface->entry_at = 0;
    return work ? n : 0;
}

static int drain(ofi_iface *iface, int budget)
{
    int total = 0;
    bool has_more = true;
    while (total < budget) {
        ssize_t n;
        if (iface->entry < iface->entry_count) {
            total += hand_over(iface, budget - total);
            continue;
        }
        if (!has_more)
            break;
        n = fi_cq_read(iface->cq, iface->entries, OFI_BATCH);
        has_more = n == OFI_BATCH;
        iface->entry = 0;
        iface->entry_count = n > 0 ? (uint32_t)n : 0;
        if (n != -FI_EAVAIL)
            continue;
        failed(iface);
        total++;
    }
    return total;
}

/* Retries fragments and receives that the provider refused. */
static int retry(ofi_iface *iface)
{
    int n = 0;
    iface->is_full = false;
    for (weft_list_link *link = iface->rma_active.next; link != &iface->rma_active && !n;) {
        ofi_ep *ep = weft_container(link, ofi_ep, by_rma);
        link = link->next;
        n += ofi_rma_progress(iface, ep); /* a callback may have changed the list */
    }
    ofi_post_recvs(iface);
    return n;
}

static int chores(ofi_iface *iface)
{
    int n = 0;
    if (iface->is_full || !weft_list_is_empty(&iface->rma_active))
        n += retry(iface);
    if (!weft_list_is_empty(&iface->handshaking) || iface->polls % CLOCK_EVERY == 0 || iface->is_armed)
        n += ofi_handshake_turn(iface);
    return n;
}

/* A receive may be occupied by a peer that computes while it sends a message, and other peers' messages wait. */
static void offer_more(ofi_iface *iface)
{
    iface->recv_max++;
    ofi_post_recvs(iface);
}

static int ofi_poll(weft_iface *base, int budget)
{
    ofi_iface *iface = (ofi_iface *)base;
    int n;
    iface->polls++;
    ofi_coalesce_flush(iface);
    if (!weft_list_is_empty(&iface->held)) {
        n = ofi_keep_copy(iface);
        if (n)
            return n < budget ? n : budget;
    }
    if (iface->idle_polls > IDLE_POLLS && !iface->is_armed && !iface->ops_open && weft_list_is_empty(&iface->handshaking) &&
        !iface->is_full &&
        iface->polls % IDLE_EVERY)
        return 0;
    iface->counts[OFI_COUNT_POLLS]++;
    iface->is_polling = true;
    n = drain(iface, budget);
    if (n < budget)
        n += chores(iface);
    iface->is_polling = false;
    ofi_coalesce_flush(iface);
    iface->idle_polls = n ? 0 : iface->idle_polls + 1;
    if (n)
        iface->barren_polls = 0;
    else if (++iface->barren_polls % BARREN_POLLS == 0 && iface->recv_max < iface->recv_count)
        offer_more(iface);
    return n < budget ? n : budget;
}

/* -- sleeping -- */

static void set_timer(ofi_iface *iface, uint64_t ns)
{
    struct itimerspec when = {.it_value = {.tv_nsec = (long)ns}};
    if (ns || iface->is_timed)
        timerfd_settime(iface->timer, 0, &when, NULL);
    iface->is_timed = ns != 0;
}

void ofi_wake_soon(ofi_iface *iface)
{
    iface->is_full = true;
    if (iface->is_armed)
        set_timer(iface, LOOK_NS);
}

static void take_edges(const ofi_iface *iface)
{
    struct epoll_event events[2];
    epoll_wait(iface->epoll, events, 2, 0);
}

static int ofi_arm(weft_iface *base, weft_wakeup *wakeup)
{
    ofi_iface *iface = (ofi_iface *)base;
    struct fid *fid = &iface->cq->fid;
    bool looks = iface->cq_fd < 0 || iface->is_full || !weft_list_is_empty(&iface->handshaking);
    uint64_t within;
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next)
        ofi_acknowledge(iface, weft_container(link, ofi_ep, link), OFI_WINDOW / 64); /* peers may wait for this during the sleep */
    iface->wants_sleep = !weft_list_is_empty(&iface->held);
    if (iface->entry < iface->entry_count || iface->wants_sleep)
        return WEFT_AGAIN;
    if (iface->is_edged)
        take_edges(iface);
    if (iface->cq_fd >= 0 && fi_trywait(iface->fabric, &fid, 1)) {
        if (++iface->arm_refusals < 4)
            return WEFT_AGAIN;
        looks = true; /* fi_trywait reports work that poll does not find */
    }
    iface->arm_refusals = 0;
    iface->is_armed = true;
    within = looks ? LOOK_NS : ofi_watch_within(iface);
    if (within)
        set_timer(iface, within);
    *wakeup = (weft_wakeup){.fd = iface->epoll, .within_ns = !looks && iface->is_edged ? EDGED_CHECK_NS : within};
    return 0;
}

static void ofi_disarm(weft_iface *base)
{
    ofi_iface *iface = (ofi_iface *)base;
    iface->is_armed = false;
    iface->idle_polls = 0;
    set_timer(iface, 0);
}

/* -- opening -- */

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
    fi_freeinfo(iface->info);
    iface->ep = NULL;
    iface->arena_mr = NULL;
    iface->cq = NULL;
    iface->av = NULL;
    iface->domain = NULL;
    iface->fabric = NULL;
    iface->info = NULL;
}

static void ofi_close(weft_iface *base)
{
    ofi_iface *iface = (ofi_iface *)base;
    if (!weft_list_is_empty(&iface->eps) && iface->info && strcmp(iface->addr.provider, "sockets") == 0)
        nanosleep(&(struct timespec){.tv_nsec = LAST_WRITES_NS}, NULL); /* a thread of the provider writes what was sent last */
    while (!weft_list_is_empty(&iface->eps)) /* not closed: the process rested, or the job aborts */
        ofi_ep_free(iface, weft_container(iface->eps.next, ofi_ep, link));
    ofi_coalesce_close(iface);
    close_endpoint(iface);
    ofi_keep_close(iface);
    if (iface->arena)
        munmap(iface->arena, iface->arena_bytes);
    if (iface->timer >= 0)
        close(iface->timer);
    if (iface->epoll >= 0)
        close(iface->epoll);
    free(iface->by_index);
    free(iface->bounce);
    free(iface);
}

static int watch(ofi_iface *iface, int fd, uint32_t how)
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
        return watch(iface, iface->cq_fd, iface->is_edged ? EPOLLET : 0);
    iface->is_edged = false;
    return watch(iface, inner, 0);
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
    for (; (rc = ofi_provider_select(iface)) == 0; iface->passed++) {
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

/* Opens with signals blocked: libfabric's threads inherit the mask and handle no signal of the program. */
static int open_quietly(ofi_iface *iface)
{
    sigset_t all, before;
    int rc;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = open_provider(iface);
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

static void set_caps(ofi_iface *iface)
{
    uint64_t mode = (uint64_t)iface->info->domain_attr->mr_mode;
    bool pins = mode & (FI_MR_LOCAL | FI_MR_ALLOCATED);
    uint64_t speed = iface->info->nic && iface->info->nic->link_attr ? iface->info->nic->link_attr->speed : 0; /* bits per second */
    uint32_t max = (iface->message_max - (uint32_t)sizeof(ofi_framed)) / 8 * 8;
    iface->iface.caps = (weft_caps){.frame_max = max,
                                    .chunk = max < OFI_CHUNK ? max : OFI_CHUNK,
                                    .eager = ofi_is_plain_tcp(iface->info) ? OFI_CHUNK : 0,
                                    .rma_max = 1ull << 40,
                                    .latency_ns = ofi_is_socket(iface->info) ? 15000 : 2000,
                                    .mbyte_per_s = (uint32_t)(speed / 8000000),
                                    .key_bytes = ofi_key_bytes(),
                                    .wants_regcache = pins,
                                    .pages_on_demand = !pins,
                                    .get = true,
                                    .put = true,
                                    .notify = true,
                                    .notify_after_all = true,
                                    .ordered = true,
                                    .may_rest = true,
                                    .mr_local = iface->needs_desc,
                                    .zcopy_min = ofi_is_plain_tcp(iface->info) && !iface->needs_desc ? OFI_ZCOPY_MIN : 0};
    if (iface->inject_max > sizeof(ofi_framed))
        iface->iface.caps.inline_max = (iface->inject_max - (uint32_t)sizeof(ofi_framed)) / 8 * 8;
    iface->iface.caps.amo = ofi_amo_domain(iface);
}

static int ofi_open(const weft_iface_params *params, weft_iface **out)
{
    ofi_iface *iface = calloc(1, sizeof *iface);
    int rc = 0;
    if (!iface)
        return weft_fail(WEFT_E_NOMEM, "no memory for an iface of %zu bytes", sizeof *iface);
    iface->iface = (weft_iface){.ops = &weft_ofi_ops, .owner = params->owner, .callbacks = params->callbacks};
    iface->self = params->self;
    iface->has_remote = params->is_far;
    iface->providers = params->providers;
    iface->now_ns = params->now_ns ? params->now_ns : weft_clock_ns;
    iface->cq_fd = iface->sockets = -1;
    weft_list_init(&iface->eps);
    weft_list_init(&iface->orphans);
    weft_list_init(&iface->held);
    weft_list_init(&iface->handshaking);
    weft_list_init(&iface->rma_active);
    weft_list_init(&iface->free_big);
    weft_list_init(&iface->free_small);
    weft_list_init(&iface->free_frags);
    ofi_coalesce_open(iface);
    iface->epoll = epoll_create1(EPOLL_CLOEXEC);
    iface->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (iface->epoll < 0 || iface->timer < 0)
        rc = weft_fail(WEFT_E_SYSTEM, "no descriptor to sleep on: %s", strerror(errno));
    if (rc == 0)
        rc = watch(iface, iface->timer, 0);
    if (rc == 0)
        rc = open_quietly(iface);
    if (rc) {
        ofi_close(&iface->iface);
        return rc;
    }
    suit(iface);
    set_caps(iface);
    *out = &iface->iface;
    return 0;
}

static int ofi_get_addr(weft_iface *base, void *addr, size_t *bytes)
{
    ofi_iface *iface = (ofi_iface *)base;
    if (*bytes < sizeof iface->addr)
        return weft_fail(WEFT_E_ARG, "an address has %zu bytes, the buffer %zu", sizeof iface->addr, *bytes);
    memcpy(addr, &iface->addr, sizeof iface->addr);
    *bytes = sizeof iface->addr;
    return 0;
}

static void ofi_print_counters(weft_iface *base, void (*line)(void *arg, const char *text), void *arg)
{
    static const char *const names[] = {"frames_sent", "inline", "frames_arrived",     "refused",         "fragments", "handshakes",
                                        "polls",       "breaks", "coalesced_messages", "coalesced_frames", "resent",     "copied_late"};
    const ofi_iface *iface = (const ofi_iface *)base;
    char text[512];
    int n = snprintf(text, sizeof text, "ofi: %s", iface->addr.provider);
    for (size_t i = 0; i < weft_count(names); i++)
        if (iface->counts[i] && n >= 0 && (size_t)n < sizeof text)
            n += snprintf(text + n, sizeof text - (size_t)n, ", %s %" PRIu64, names[i], iface->counts[i]);
    line(arg, text);
}

/* -- unsupported -- */

static int ofi_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    (void)iface, (void)bytes, (void)shared;
    return weft_fail(WEFT_E_UNSUPPORTED, "a network does not share memory");
}

static int ofi_unshare(weft_iface *iface, weft_shared *shared) { return ofi_share(iface, 0, shared); }

const weft_iface_ops weft_ofi_ops = {
    .name = "ofi",
    .unavailable = ofi_unavailable,
    .describe = ofi_describe,
    .open = ofi_open,
    .close = ofi_close,
    .get_addr = ofi_get_addr,
    .ep_open = ofi_ep_open,
    .ep_close = ofi_ep_close,
    .mr_reg = ofi_mr_reg,
    .mr_dereg = ofi_mr_dereg,
    .share = ofi_share,
    .unshare = ofi_unshare,
    .send = ofi_send,
    .can_rma = ofi_can_rma,
    .get = ofi_get,
    .put = ofi_put,
    .amo = ofi_amo,
    .flush = ofi_flush,
    .poll = ofi_poll,
    .arm = ofi_arm,
    .disarm = ofi_disarm,
    .print_counters = ofi_print_counters,
};
