/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface: the op table of uring; open, poll, arm, sockets. See uring.h. One level-triggered epoll set has all descriptors of the owner's
 * worker; poll queries it and a sleeper waits on it, so arm costs nothing and no event is missed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/transports/uring/uring.h"

#define BACKLOG 1024
#define SEND_BUFFER (512 << 10) /* the kernel doubles it and counts its own overhead: some 16 of the largest frames */
#define AGAIN_NS 1000000u

/* -- sockets: abstract names, which end with their owner -- */

static socklen_t address_of(const uring_iface_addr *addr, char suffix, struct sockaddr_un *address)
{
    char *at = address->sun_path + 1;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    at += snprintf(at, 16, "weft-uring-%c-", suffix);
    for (int i = 0; i < URING_ID_BYTES; i++)
        at += snprintf(at, 3, "%02x", addr->id[i]);
    return (socklen_t)(at - (char *)address);
}

int uring_socket_listen(const uring_iface_addr *addr, char suffix)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(addr, suffix, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, bytes) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    weft_fail(WEFT_E_SYSTEM, "cannot open a listening Unix socket: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

int uring_socket_connect(const uring_iface_addr *addr, char suffix)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(addr, suffix, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), size = SEND_BUFFER, why;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (connect(fd, (struct sockaddr *)&address, bytes) == 0)
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return -1;
}

int uring_socket_accept(int listen)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    int fd = accept4(listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid())
        return fd;
    close(fd); /* names of abstract sockets are visible to all users */
    return -1;
}

int uring_watch(int epoll, uring_source *source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, source->fd, &event) == 0)
        return 0;
    return weft_fail(WEFT_E_SYSTEM, "epoll_ctl failed: %s", strerror(errno));
}

void uring_unwatch(int epoll, uring_source *source)
{
    if (source->fd < 0)
        return;
    /* a forked child may hold the description open: close alone is not enough */
    epoll_ctl(epoll, EPOLL_CTL_DEL, source->fd, NULL);
    close(source->fd);
    source->fd = -1;
}

/* -- open and close -- */

static const char *uring_unavailable(void) { return uring_fixed_bufs_unavailable(); }

static void uring_describe(void (*line)(void *arg, const char *text), void *arg)
{
    const char *why = uring_fixed_bufs_unavailable();
    char text[320];
    snprintf(text, sizeof text, "a software HCA over io_uring's fixed buffers, for trials: %s", why ? why : "works here");
    line(arg, text);
}

/* Most bytes that may be pinned: the limit on locked memory, if it applies. */
static uint64_t mr_bytes_max(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}, {0}};
    struct rlimit limit;
    if (syscall(SYS_capget, &head, data) == 0 && data[0].effective & 1u << CAP_IPC_LOCK)
        return 0;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    return limit.rlim_cur ? limit.rlim_cur : 1;
}

static uint64_t boot_number(void)
{
    char text[64] = "";
    uint64_t number = 14695981039346656037u;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < bytes; i++)
        number = (number ^ (uint8_t)text[i]) * 1099511628211u;
    return number;
}

static int make_addr(uring_iface_addr *addr)
{
    struct stat netns = {.st_ino = 0};
    if (stat("/proc/self/ns/net", &netns))
        netns.st_ino = 0;
    *addr = (uring_iface_addr){.magic = 0x676e697275746677u, .boot = boot_number(), .netns = netns.st_ino};
    if (getrandom(addr->id, sizeof addr->id, 0) == sizeof addr->id)
        return 0;
    return weft_fail(WEFT_E_SYSTEM, "getrandom failed: %s", strerror(errno));
}

/* Closes everything, from any state of open. */
static void release(uring_iface *iface)
{
    uring_unwatch(iface->epoll, &iface->listen);
    uring_unwatch(iface->epoll, &iface->wakeup);
    if (iface->epoll >= 0)
        close(iface->epoll);
    free(iface->frame_in);
    free(iface->frame_out);
    pthread_mutex_destroy(&iface->lock);
    free(iface);
}

static int open_lines(uring_iface *iface)
{
    int rc;
    iface->epoll = epoll_create1(EPOLL_CLOEXEC);
    iface->wakeup = (uring_source){URING_WAKEUP, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    iface->frame_in = malloc(URING_FRAME_MAX + 64);
    iface->frame_out = malloc(URING_FRAME_MAX);
    if (!iface->frame_in || !iface->frame_out)
        return weft_fail(WEFT_E_NOMEM, "no memory for two frames of %u bytes", URING_FRAME_MAX);
    if (iface->epoll < 0 || iface->wakeup.fd < 0)
        return weft_fail(WEFT_E_SYSTEM, "descriptors for a port: %s (ulimit -n?)", strerror(errno));
    iface->listen = (uring_source){URING_LISTEN, uring_socket_listen(&iface->addr, 'f')};
    rc = iface->listen.fd < 0 ? WEFT_E_SYSTEM : uring_watch(iface->epoll, &iface->listen, EPOLLIN);
    return rc ? rc : uring_watch(iface->epoll, &iface->wakeup, EPOLLIN);
}

static int uring_open(const weft_iface_params *params, weft_iface **out)
{
    uring_iface *iface = calloc(1, sizeof *iface);
    uint64_t salt;
    int rc;
    if (!iface)
        return weft_fail(WEFT_E_NOMEM, "no memory for an iface of %zu bytes", sizeof *iface);
    iface->iface = (weft_iface){
        .ops = &weft_uring_ops, .owner = params->owner, .callbacks = params->callbacks,
        .caps = {.frame_max = URING_FRAME_MAX, .chunk = URING_FRAME_MAX, .inline_max = 64, .rma_max = URING_REGION_MAX,
                 .latency_ns = 20000,
                 .mbyte_per_s = 2000, .key_bytes = WEFT_KEYRING_KEY_BYTES, .mr_bytes_max = mr_bytes_max(), .mr_count_max = URING_REGIONS,
                 .wants_regcache = true, .get = true, .put = true, .revokes = true, .ordered = true, .mr_local = true,
                 .amo = WEFT_AMO_NONE},
    };
    iface->self = params->self;
    iface->listen.fd = iface->wakeup.fd = iface->epoll = -1;
    weft_list_init(&iface->eps);
    weft_list_init(&iface->ins);
    weft_list_init(&iface->posted);
    weft_list_init(&iface->ended);
    pthread_mutex_init(&iface->lock, NULL);
    rc = make_addr(&iface->addr);
    if (rc == 0)
        rc = open_lines(iface);
    memcpy(&salt, iface->addr.id, sizeof salt);
    if (rc == 0 && (rc = uring_fixed_bufs_open(&iface->bufs, salt)) == 0 && (rc = uring_hca_open(iface)))
        uring_fixed_bufs_close(&iface->bufs);
    if (rc)
        release(iface);
    else
        *out = &iface->iface;
    return rc;
}

static void uring_close(weft_iface *base)
{
    uring_iface *iface = (uring_iface *)base;
    weft_list_link *link;
    uring_hca_close(iface);
    uring_frame_sock_close(iface);
    while ((link = weft_list_take(&iface->ended)) || (link = weft_list_take(&iface->posted)))
        free(weft_container(link, uring_op, link));
    uring_fixed_bufs_close(&iface->bufs);
    release(iface);
}

static int uring_get_addr(weft_iface *base, void *addr, size_t *bytes)
{
    uring_iface *iface = (uring_iface *)base;
    if (*bytes < sizeof iface->addr)
        return weft_fail(WEFT_E_ARG, "an address has %zu bytes, the buffer %zu", sizeof iface->addr, *bytes);
    memcpy(addr, &iface->addr, sizeof iface->addr);
    *bytes = sizeof iface->addr;
    return 0;
}

/* -- rma -- */

static bool uring_can_rma(weft_iface *base, weft_ep *ep)
{
    (void)base;
    (void)ep;
    return true; /* fixed buffers were tested by `unavailable`; sockets carry the frames */
}

static int post(uring_iface *iface, uring_ep *ep, enum uring_op_kind kind, const weft_rma *rma, void *done)
{
    uring_op *op = calloc(1, sizeof *op);
    if (!op)
        return weft_fail(WEFT_E_NOMEM, "no memory for a transfer with rank %u", ep->proc_id.rank);
    op->kind = kind;
    op->ep = ep;
    op->done = done;
    if (rma) {
        op->local = (uintptr_t)rma->local;
        op->remote = rma->remote;
        op->bytes = rma->bytes;
        op->key = *rma->rkey;
        op->local_key = rma->mr->rkey;
    }
    ep->ops_open++;
    uring_hca_post(iface, op);
    return 0;
}

static int begin_rma(weft_iface *base, weft_ep *base_ep, const weft_rma *rma, enum uring_op_kind kind)
{
    uring_ep *ep = (uring_ep *)base_ep;
    if (ep->is_failed)
        return weft_fail(WEFT_E_PEER, "rank %u has ended", ep->proc_id.rank);
    if (rma->notify)
        return weft_fail(WEFT_E_UNSUPPORTED, "uring cannot notify of puts");
    if (!rma->mr)
        return weft_fail(WEFT_E_KEY, "uring moves registered memory only, and %p was not registered", rma->local);
    if (rma->bytes > URING_REGION_MAX)
        return weft_fail(WEFT_E_ARG, "%" PRIu64 " bytes are more than move_max", rma->bytes);
    return post((uring_iface *)base, ep, kind, rma, rma->done);
}

static int uring_get(weft_iface *iface, weft_ep *ep, const weft_rma *what) { return begin_rma(iface, ep, what, URING_GET); }
static int uring_put(weft_iface *iface, weft_ep *ep, const weft_rma *what) { return begin_rma(iface, ep, what, URING_PUT); }

/* A put completes when the owner's HCA has written: local and remote completion are the same. */
static int uring_flush(weft_iface *base, weft_ep *ep, bool remotely, void *done)
{
    (void)remotely;
    return post((uring_iface *)base, (uring_ep *)ep, URING_FLUSH, NULL, done);
}

static int uring_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic)
{
    (void)iface;
    (void)ep;
    (void)atomic;
    return weft_fail(WEFT_E_UNSUPPORTED, "uring has no atomics");
}

static int uring_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    (void)iface;
    (void)bytes;
    (void)shared;
    return weft_fail(WEFT_E_UNSUPPORTED, "uring shares no memory");
}

static int uring_unshare(weft_iface *iface, weft_shared *shared) { return uring_share(iface, 0, shared); }

/* -- progress -- */

/* Reports one ended op. The wakeup is cleared only when the list is empty. */
static int take_ended(uring_iface *iface)
{
    weft_list_link *link;
    uint64_t count;
    uring_op *op;
    pthread_mutex_lock(&iface->lock);
    link = weft_list_take(&iface->ended);
    if (weft_list_is_empty(&iface->ended))
        (void)!read(iface->wakeup.fd, &count, sizeof count);
    pthread_mutex_unlock(&iface->lock);
    if (!link)
        return 0;
    op = weft_container(link, uring_op, link);
    op->ep->ops_open--;
    if (op->rc == WEFT_E_PEER)
        uring_frame_sock_break(iface, op->ep); /* perhaps no frame was ever sent: only the HCA knows the peer */
    if (op->done)
        iface->iface.callbacks->done(iface->iface.owner, op->done, op->rc ? weft_fail(op->rc, "%s", op->text) : 0);
    free(op);
    return 1;
}

static int uring_poll(weft_iface *base, int budget)
{
    uring_iface *iface = (uring_iface *)base;
    int events = 0, idle = 0;
    iface->tries_again = false;
    while (events < budget && idle < 2) {
        struct epoll_event event;
        int count = epoll_wait(iface->epoll, &event, 1, 0), n = 0;
        uring_source *source = event.data.ptr;
        if (count == 1)
            n = source->kind == URING_WAKEUP ? take_ended(iface) : uring_frame_sock_event(iface, source, event.events);
        events += n;
        idle += n == 0 ? count == 1 ? 1 : 2 : 0;
    }
    if (iface->broken && events < budget)
        events += uring_frame_sock_deaths(iface);
    return events;
}

static int uring_arm(weft_iface *base, weft_wakeup *wakeup)
{
    uring_iface *iface = (uring_iface *)base;
    *wakeup = (weft_wakeup){.fd = iface->epoll, .within_ns = iface->tries_again || iface->broken ? AGAIN_NS : 0};
    return 0;
}

static void uring_disarm(weft_iface *iface) { (void)iface; }

const weft_iface_ops weft_uring_ops = {
    .name = "uring",
    .unavailable = uring_unavailable,
    .describe = uring_describe,
    .open = uring_open,
    .close = uring_close,
    .get_addr = uring_get_addr,
    .ep_open = uring_ep_open,
    .ep_close = uring_ep_close,
    .mr_reg = uring_mr_reg,
    .mr_dereg = uring_mr_dereg,
    .share = uring_share,
    .unshare = uring_unshare,
    .send = uring_send,
    .can_rma = uring_can_rma,
    .get = uring_get,
    .put = uring_put,
    .amo = uring_amo,
    .flush = uring_flush,
    .poll = uring_poll,
    .arm = uring_arm,
    .disarm = uring_disarm,
};
