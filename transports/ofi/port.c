/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port: the table of the transport ofi; opening and closing in order, polling, sleeping. See ofi.h.
 * Sleeping: the completion queue's descriptor and a timer stand in one epoll set. fi_trywait is asked before; a provider without a
 * descriptor, or one that refuses something without telling when to try again, is looked at every millisecond. libfabric's tcp (`net`)
 * signals its own descriptor at a completion and takes that back in waits of its own only, so it stays readable for ever. What counts is
 * the set of its sockets inside, which is watched in its place. Where /proc does not tell which one that is, the descriptor is watched for
 * edges, which arm takes before the caller looks once more; libfabric may leave a message in a socket that made one, so he also
 * looks by himself now and then.
 * A poll costs libfabric's tcp a system call or two: one that has found nothing for a while looks only each few times.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

#define IDLE_POLLS 256u   /* without anything: the next ones look ... */
#define IDLE_EVERY 8u     /* ... each so many */
#define BARREN_POLLS 256u /* that found nothing, asleep in between or not: one more receive is posted */
#define CLOCK_EVERY 512u  /* polls between two looks at the clock when no call is under way */
#define LOOK_NS 1000000u
#define EDGED_LOOK_NS 20000000u

/* -- completions -- */

static void failed(ofi_port *port)
{
    struct fi_cq_err_entry error = {0};
    ofi_work *work;
    char words[128] = "", text[192];
    const char *more;
    if (fi_cq_readerr(port->cq, &error, 0) <= 0)
        return;
    work = error.op_context;
    more = fi_cq_strerror(port->cq, error.prov_errno, error.err_data, words, sizeof words);
    snprintf(text, sizeof text, "%s (%s)", ofi_words(error.err), more ? more : "no more words");
    if (!work)
        return; /* of something that we gave no name: an inject; numbers and calls find what is missing */
    if (work->kind == OFI_WORK_PIECE) {
        ofi_piece_ended(port, weft_container(work, ofi_piece, work), &error);
    } else if (work->kind == OFI_WORK_RECV) {
        if (!port->has_multi_recv || error.flags & FI_MULTI_RECV)
            ofi_recv_ended(port, weft_container(work, ofi_recv, work));
    } else {
        ofi_slot *slot = weft_container(work, ofi_slot, work);
        ofi_path *path = work->path, *called = slot->about < port->index_room ? port->by_index[slot->about] : NULL;
        ofi_slot_ended(port, slot);
        if (path)
            ofi_break(port, path, text);
        else if (called)
            called->called_ns = 0; /* the call did not get there */
    }
}

/* The next of the entries that were read. */
static int hand_over(ofi_port *port, int budget)
{
    const struct fi_cq_data_entry *entry = &port->entries[port->entry];
    ofi_work *work = entry->op_context;
    int n = 1;
    if (work && work->kind == OFI_WORK_RECV) {
        n = ofi_arrived(port, entry, &port->entry_at, budget);
        if (port->entry_at < entry->len)
            return n;
    } else if (work && work->kind == OFI_WORK_PIECE) {
        ofi_piece_ended(port, weft_container(work, ofi_piece, work), NULL);
    } else if (work) {
        ofi_slot_ended(port, weft_container(work, ofi_slot, work));
    }
    port->entry++;
    port->entry_at = 0;
    return work ? n : 0;
}

static int drain(ofi_port *port, int budget)
{
    int total = 0;
    bool has_more = true;
    while (total < budget) {
        ssize_t n;
        if (port->entry < port->entry_count) {
            total += hand_over(port, budget - total);
            continue;
        }
        if (!has_more)
            break;
        n = fi_cq_read(port->cq, port->entries, OFI_BATCH);
        has_more = n == OFI_BATCH;
        port->entry = 0;
        port->entry_count = n > 0 ? (uint32_t)n : 0;
        if (n != -FI_EAVAIL)
            continue;
        failed(port);
        total++;
    }
    return total;
}

/* Moves that waited for room in the provider, receives that it did not take. */
static int retry(ofi_port *port)
{
    int n = 0;
    port->is_full = false;
    for (weft_link *link = port->moving.next; link != &port->moving && !n;) {
        ofi_path *path = weft_container(link, ofi_path, moving);
        link = link->next;
        n += ofi_moves_turn(port, path); /* who was told may have changed the list */
    }
    ofi_post_recvs(port);
    return n;
}

static int chores(ofi_port *port)
{
    int n = 0;
    if (port->is_full || !weft_list_is_empty(&port->moving))
        n += retry(port);
    if (!weft_list_is_empty(&port->calling) || port->polls % CLOCK_EVERY == 0 || port->is_armed)
        n += ofi_call_turn(port);
    return n;
}

/* Each receive may hold a message of a peer that computes in the midst of sending it, while others' wait behind it. */
static void offer_more(ofi_port *port)
{
    port->recv_most++;
    ofi_post_recvs(port);
}

static int ofi_poll(weft_port *base, int budget)
{
    ofi_port *port = (ofi_port *)base;
    int n;
    port->polls++;
    ofi_bundles_out(port);
    if (port->idle_polls > IDLE_POLLS && !port->is_armed && !port->ops_open && weft_list_is_empty(&port->calling) && !port->is_full &&
        port->polls % IDLE_EVERY)
        return 0;
    port->counts[OFI_COUNT_POLLS]++;
    port->is_polling = true;
    n = drain(port, budget);
    if (n < budget)
        n += chores(port);
    port->is_polling = false;
    ofi_bundles_out(port);
    port->idle_polls = n ? 0 : port->idle_polls + 1;
    if (n)
        port->barren_polls = 0;
    else if (++port->barren_polls % BARREN_POLLS == 0 && port->recv_most < port->recv_count)
        offer_more(port);
    return n < budget ? n : budget;
}

/* -- sleeping -- */

static void set_timer(ofi_port *port, uint64_t ns)
{
    struct itimerspec when = {.it_value = {.tv_nsec = (long)ns}};
    if (ns || port->is_timed)
        timerfd_settime(port->timer, 0, &when, NULL);
    port->is_timed = ns != 0;
}

void ofi_ring_soon(ofi_port *port)
{
    port->is_full = true;
    if (port->is_armed)
        set_timer(port, LOOK_NS);
}

static void take_edges(const ofi_port *port)
{
    struct epoll_event events[2];
    epoll_wait(port->epoll, events, 2, 0);
}

static int ofi_arm(weft_port *base, weft_bell *bell)
{
    ofi_port *port = (ofi_port *)base;
    struct fid *fid = &port->cq->fid;
    bool looks = port->cq_fd < 0 || port->is_full || !weft_list_is_empty(&port->calling);
    for (weft_link *link = port->paths.next; link != &port->paths; link = link->next)
        ofi_acknowledge(port, weft_container(link, ofi_path, link), OFI_WINDOW / 64); /* whom we keep waiting while we sleep */
    if (port->entry < port->entry_count)
        return WEFT_AGAIN;
    if (port->is_edged)
        take_edges(port);
    if (port->cq_fd >= 0 && fi_trywait(port->fabric, &fid, 1)) {
        if (++port->arm_refusals < 4)
            return WEFT_AGAIN;
        looks = true; /* it finds something, and we do not */
    }
    port->arm_refusals = 0;
    port->is_armed = true;
    if (looks)
        set_timer(port, LOOK_NS);
    *bell = (weft_bell){.fd = port->epoll, .within_ns = looks ? LOOK_NS : port->is_edged ? EDGED_LOOK_NS : 0};
    return 0;
}

static void ofi_disarm(weft_port *base)
{
    ofi_port *port = (ofi_port *)base;
    port->is_armed = false;
    port->idle_polls = 0;
    set_timer(port, 0);
}

/* -- opening -- */

static void close_endpoint(ofi_port *port)
{
    if (port->ep)
        fi_close(&port->ep->fid);
    if (port->arena_mr)
        fi_close(&port->arena_mr->fid);
    if (port->cq)
        fi_close(&port->cq->fid);
    if (port->av)
        fi_close(&port->av->fid);
    if (port->domain)
        fi_close(&port->domain->fid);
    if (port->fabric)
        fi_close(&port->fabric->fid);
    fi_freeinfo(port->info);
    port->ep = NULL;
    port->arena_mr = NULL;
    port->cq = NULL;
    port->av = NULL;
    port->domain = NULL;
    port->fabric = NULL;
    port->info = NULL;
}

static void ofi_close(weft_port *base)
{
    ofi_port *port = (ofi_port *)base;
    while (!weft_list_is_empty(&port->paths)) /* not left: the job ends in haste */
        ofi_path_free(port, weft_container(port->paths.next, ofi_path, link));
    ofi_bundles_close(port);
    close_endpoint(port);
    if (port->arena)
        munmap(port->arena, port->arena_bytes);
    if (port->timer >= 0)
        close(port->timer);
    if (port->epoll >= 0)
        close(port->epoll);
    free(port->by_index);
    free(port->bounce);
    free(port);
}

static int watch(ofi_port *port, int fd, uint32_t how)
{
    struct epoll_event event = {.events = EPOLLIN | how, .data.fd = fd};
    if (epoll_ctl(port->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    return weft_fail(WEFT_E_SYSTEM, "epoll_ctl failed: %s", strerror(errno));
}

/* The one epoll set inside of another; -1: there is none, or more than one, or /proc does not tell. */
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

static int watch_queue(ofi_port *port)
{
    int inner = port->is_edged ? set_within(port->cq_fd) : -1;
    if (inner < 0)
        return watch(port, port->cq_fd, port->is_edged ? EPOLLET : 0);
    port->is_edged = false;
    return watch(port, inner, 0);
}

static int open_queue(ofi_port *port)
{
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD, .size = 2048};
    int rc = fi_cq_open(port->domain, &attr, &port->cq, NULL);
    port->cq_fd = -1;
    if (rc == 0 && fi_control(&port->cq->fid, FI_GETWAIT, &port->cq_fd))
        port->cq_fd = -1;
    if (port->cq_fd >= 0)
        return watch_queue(port);
    if (rc) {
        attr.wait_obj = FI_WAIT_NONE;
        rc = fi_cq_open(port->domain, &attr, &port->cq, NULL);
    }
    return rc ? weft_fail(WEFT_E_SYSTEM, "%s opens no completion queue: %s", port->info->fabric_attr->prov_name, ofi_words(rc)) : 0;
}

static int open_endpoint(ofi_port *port)
{
    struct fi_av_attr addresses = {.type = FI_AV_TABLE};
    size_t least = port->message_max;
    const char *what = "fi_fabric";
    int rc = fi_fabric(port->info->fabric_attr, &port->fabric, NULL);
    if (rc == 0 && (what = "fi_domain"))
        rc = fi_domain(port->fabric, port->info, &port->domain, NULL);
    if (rc == 0 && (what = "fi_av_open"))
        rc = fi_av_open(port->domain, &addresses, &port->av, NULL);
    if (rc == 0 && (what = "fi_endpoint")) {
        int later = open_queue(port);
        if (later)
            return later;
        rc = fi_endpoint(port->domain, port->info, &port->ep, NULL);
    }
    if (rc == 0 && (what = "fi_ep_bind"))
        rc = fi_ep_bind(port->ep, &port->av->fid, 0);
    if (rc == 0)
        rc = fi_ep_bind(port->ep, &port->cq->fid, FI_TRANSMIT | FI_RECV);
    if (rc == 0 && (what = "fi_enable"))
        rc = fi_enable(port->ep);
    if (rc == 0 && port->has_multi_recv) /* some keep it where only enable makes room for it */
        fi_setopt(&port->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least);
    return rc ? weft_fail(WEFT_E_SYSTEM, "%s of %s failed: %s", what, port->info->fabric_attr->prov_name, ofi_words(rc)) : 0;
}

/* What libfabric offers may yet refuse to work (verbs;ofi_rxm on soft-RoCE does): the next one is tried then, unless the user named it. All
 * ranks of a host come to the same one. */
static int open_provider(ofi_port *port)
{
    char text[512];
    int rc, first = 0;
    for (; (rc = ofi_find(port)) == 0; port->passed++) {
        port->has_multi_recv = (port->info->caps & FI_MULTI_RECV) != 0 && !ofi_is_plain_tcp(port->info); /* see OFI_TCP_RECVS */
        port->sorts = !(port->info->tx_attr->msg_order & port->info->rx_attr->msg_order & FI_ORDER_SAS);
        port->needs_desc = (port->info->domain_attr->mr_mode & FI_MR_LOCAL) != 0;
        port->is_edged = ofi_is_plain_tcp(port->info);
        port->message_max = ofi_is_plain_tcp(port->info) ? OFI_LONG_MESSAGE : OFI_MESSAGE;
        port->inject_max = (uint32_t)(port->info->tx_attr->inject_size < 512 ? port->info->tx_attr->inject_size : 512);
        rc = open_endpoint(port);
        if (rc == 0 || (weft_knob.ofi_provider && *weft_knob.ofi_provider))
            return rc;
        weft_log(WEFT_LOG_NOTE, "libfabric's next provider is tried: %s", weft_fail_text(rc));
        if (!first)
            snprintf(text, sizeof text, "%s", weft_fail_text(rc));
        first = first ? first : rc;
        close_endpoint(port);
    }
    return first ? weft_fail(first, "%s", text) : rc;
}

/* Threads that libfabric starts inherit a mask in which no signal of the program's reaches them. */
static int open_quietly(ofi_port *port)
{
    sigset_t all, before;
    int rc;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = open_provider(port);
    if (rc == 0)
        rc = ofi_flow_open(port);
    if (rc == 0)
        rc = ofi_card_make(port);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* What a message costs, and where bytes wait, is another matter where the kernel carries them. */
static void suit(ofi_port *port)
{
    bool is_socket = ofi_is_socket(port->info);
    uint64_t most = port->info->ep_attr->max_msg_size;
    port->gathers = is_socket;
    port->path_bytes = is_socket ? OFI_TCP_BYTES : OFI_PATH_BYTES;
    port->piece_bytes = is_socket ? OFI_PIECE / 2 : OFI_PIECE;
    if (port->piece_bytes > most)
        port->piece_bytes = (uint32_t)most;
}

static void promise(ofi_port *port)
{
    uint64_t mode = (uint64_t)port->info->domain_attr->mr_mode;
    bool pins = mode & (FI_MR_LOCAL | FI_MR_ALLOCATED);
    uint64_t speed = port->info->nic && port->info->nic->link_attr ? port->info->nic->link_attr->speed : 0; /* bits per second */
    uint32_t most = (port->message_max - (uint32_t)sizeof(ofi_framed)) / 8 * 8;
    port->port.caps = (weft_caps){.frame_max = most, .chunk = most < OFI_CHUNK ? most : OFI_CHUNK,
                                  .eager = ofi_is_plain_tcp(port->info) ? OFI_CHUNK : 0, .move_max = 1ull << 40,
                                  .latency_ns = ofi_is_socket(port->info) ? 15000 : 2000, .mbyte_per_s = (uint32_t)(speed / 8000000),
                                  .key_bytes = ofi_key_bytes(), .pins = pins, .pages_on_demand = !pins, .get = true, .put = true, .notify = true,
                                  .ordered = true, .local_keys = port->needs_desc,
                                  .held_min = ofi_is_plain_tcp(port->info) && !port->needs_desc ? OFI_HELD_MIN : 0};
    if (port->inject_max > sizeof(ofi_framed))
        port->port.caps.inline_max = (port->inject_max - (uint32_t)sizeof(ofi_framed)) / 8 * 8;
    port->port.caps.amo = ofi_amo_domain(port);
}

static int ofi_open(const weft_port_env *env, weft_port **out)
{
    ofi_port *port = calloc(1, sizeof *port);
    int rc = 0;
    if (!port)
        return weft_fail(WEFT_E_NOMEM, "no memory for a port of %zu bytes", sizeof *port);
    port->port = (weft_port){.ops = &weft_ofi_ops, .owner = env->owner, .up = env->up};
    port->self = env->self;
    port->is_far = env->is_far;
    port->now_ns = env->now_ns ? env->now_ns : weft_clock_ns;
    port->key_next = 1;
    port->cq_fd = -1;
    weft_list_init(&port->paths);
    weft_list_init(&port->calling);
    weft_list_init(&port->moving);
    weft_list_init(&port->free_big);
    weft_list_init(&port->free_small);
    weft_list_init(&port->free_pieces);
    ofi_bundles_open(port);
    port->epoll = epoll_create1(EPOLL_CLOEXEC);
    port->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (port->epoll < 0 || port->timer < 0)
        rc = weft_fail(WEFT_E_SYSTEM, "no descriptor to sleep on: %s", strerror(errno));
    if (rc == 0)
        rc = watch(port, port->timer, 0);
    if (rc == 0)
        rc = open_quietly(port);
    if (rc) {
        ofi_close(&port->port);
        return rc;
    }
    suit(port);
    promise(port);
    *out = &port->port;
    return 0;
}

static int ofi_card_of(weft_port *base, void *card, size_t *bytes)
{
    ofi_port *port = (ofi_port *)base;
    if (*bytes < sizeof port->card)
        return weft_fail(WEFT_E_ARG, "a card needs %zu bytes, there is room for %zu", sizeof port->card, *bytes);
    memcpy(card, &port->card, sizeof port->card);
    *bytes = sizeof port->card;
    return 0;
}

static void ofi_count(weft_port *base, void (*line)(void *arg, const char *text), void *arg)
{
    static const char *const names[] = {"frames_sent", "inline", "frames_arrived", "refused", "pieces", "calls", "polls", "breaks", "bundles", "gathered"};
    const ofi_port *port = (const ofi_port *)base;
    char text[512];
    int n = snprintf(text, sizeof text, "ofi: %s", port->card.provider);
    for (size_t i = 0; i < weft_count(names); i++)
        if (port->counts[i] && n >= 0 && (size_t)n < sizeof text)
            n += snprintf(text + n, sizeof text - (size_t)n, ", %s %" PRIu64, names[i], port->counts[i]);
    line(arg, text);
}

/* -- what there is not -- */

static int ofi_share(weft_port *port, uint64_t bytes, weft_shared *shared)
{
    (void)port, (void)bytes, (void)shared;
    return weft_fail(WEFT_E_UNSUPPORTED, "a network shares no memory");
}

static int ofi_unshare(weft_port *port, weft_shared *shared) { return ofi_share(port, 0, shared); }

const weft_port_ops weft_ofi_ops = {
    .name = "ofi", .absent = ofi_absent, .tell = ofi_tell, .open = ofi_open, .close = ofi_close, .card = ofi_card_of, .reach = ofi_reach,
    .leave = ofi_leave, .map = ofi_map, .unmap = ofi_unmap, .share = ofi_share, .unshare = ofi_unshare, .send = ofi_send,
    .can_move = ofi_can_move, .get = ofi_get, .put = ofi_put, .amo = ofi_amo, .flush = ofi_flush, .poll = ofi_poll, .arm = ofi_arm,
    .disarm = ofi_disarm, .count = ofi_count,
};
