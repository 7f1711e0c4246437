/* SPDX-License-Identifier: BSD-3-Clause
 *
 * port: the table of the transport uring; opening, polling, arming; sockets. See uring.h. One epoll set holds everything that may
 * concern the owner's lane, level-triggered: it is what poll asks and what a sleeper sleeps on, so arming costs nothing and no
 * news can fall between.
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

/* -- sockets: names of the abstract kind, which end with their owner -- */

static socklen_t address_of(const uring_card *card, char suffix, struct sockaddr_un *address)
{
    char *at = address->sun_path + 1;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    at += snprintf(at, 16, "weft-uring-%c-", suffix);
    for (int i = 0; i < URING_ID_BYTES; i++)
        at += snprintf(at, 3, "%02x", card->id[i]);
    return (socklen_t)(at - (char *)address);
}

int uring_socket_listen(const uring_card *card, char suffix)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(card, suffix, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, bytes) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    weft_fail(WEFT_E_SYSTEM, "a Unix socket to listen on cannot be made: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

int uring_socket_connect(const uring_card *card, char suffix)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(card, suffix, &address);
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
    struct ucred who;
    socklen_t bytes = sizeof who;
    int fd = accept4(listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 && who.uid == geteuid())
        return fd;
    close(fd); /* names of abstract sockets can be seen by everybody */
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
    /* a forked child may hold the description open: close alone would not do */
    epoll_ctl(epoll, EPOLL_CTL_DEL, source->fd, NULL);
    close(source->fd);
    source->fd = -1;
}

/* -- life -- */

static const char *uring_absent(void) { return uring_pins_absent(); }

static void uring_tell(void (*line)(void *arg, const char *text), void *arg)
{
    const char *why = uring_pins_absent();
    char text[320];
    snprintf(text, sizeof text, "a software HCA over io_uring's fixed buffers, for trials: %s", why ? why : "works here");
    line(arg, text);
}

/* What may be pinned: the limit on locked memory, for those whom it binds. */
static uint64_t pin_bytes(void)
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

static int make_card(uring_card *card)
{
    struct stat netns = {.st_ino = 0};
    if (stat("/proc/self/ns/net", &netns))
        netns.st_ino = 0;
    *card = (uring_card){.magic = 0x676e697275746677u, .boot = boot_number(), .netns = netns.st_ino};
    if (getrandom(card->id, sizeof card->id, 0) == sizeof card->id)
        return 0;
    return weft_fail(WEFT_E_SYSTEM, "getrandom failed: %s", strerror(errno));
}

/* All that can be torn down again in any state. */
static void release(uring_port *port)
{
    uring_unwatch(port->epoll, &port->listen);
    uring_unwatch(port->epoll, &port->bell);
    if (port->epoll >= 0)
        close(port->epoll);
    free(port->frame_in);
    free(port->frame_out);
    pthread_mutex_destroy(&port->lock);
    free(port);
}

static int open_lines(uring_port *port)
{
    int rc;
    port->epoll = epoll_create1(EPOLL_CLOEXEC);
    port->bell = (uring_source){URING_BELL, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    port->frame_in = malloc(URING_FRAME_MAX + 64);
    port->frame_out = malloc(URING_FRAME_MAX);
    if (!port->frame_in || !port->frame_out)
        return weft_fail(WEFT_E_NOMEM, "no memory for two frames of %u bytes", URING_FRAME_MAX);
    if (port->epoll < 0 || port->bell.fd < 0)
        return weft_fail(WEFT_E_SYSTEM, "descriptors for a port: %s (ulimit -n?)", strerror(errno));
    port->listen = (uring_source){URING_LISTEN, uring_socket_listen(&port->card, 'f')};
    rc = port->listen.fd < 0 ? WEFT_E_SYSTEM : uring_watch(port->epoll, &port->listen, EPOLLIN);
    return rc ? rc : uring_watch(port->epoll, &port->bell, EPOLLIN);
}

static int uring_open(const weft_port_env *env, weft_port **out)
{
    uring_port *port = calloc(1, sizeof *port);
    uint64_t salt;
    int rc;
    if (!port)
        return weft_fail(WEFT_E_NOMEM, "no memory for a port of %zu bytes", sizeof *port);
    port->port = (weft_port){
        .ops = &weft_uring_ops, .owner = env->owner, .up = env->up,
        .caps = {.frame_max = URING_FRAME_MAX, .chunk = URING_FRAME_MAX, .inline_max = 64, .move_max = URING_REGION_MAX,
                 .latency_ns = 20000,
                 .mbyte_per_s = 2000, .key_bytes = WEFT_KEYRING_KEY_BYTES, .pin_bytes = pin_bytes(), .pin_regions = URING_REGIONS,
                 .pins = true, .get = true, .put = true, .ordered = true, .local_keys = true, .amo = WEFT_AMO_NONE},
    };
    port->self = env->self;
    port->listen.fd = port->bell.fd = port->epoll = -1;
    weft_list_init(&port->paths);
    weft_list_init(&port->ins);
    weft_list_init(&port->posted);
    weft_list_init(&port->ended);
    pthread_mutex_init(&port->lock, NULL);
    rc = make_card(&port->card);
    if (rc == 0)
        rc = open_lines(port);
    memcpy(&salt, port->card.id, sizeof salt);
    if (rc == 0 && (rc = uring_pins_open(&port->pins, salt)) == 0 && (rc = uring_hca_open(port)))
        uring_pins_close(&port->pins);
    if (rc)
        release(port);
    else
        *out = &port->port;
    return rc;
}

static void uring_close(weft_port *base)
{
    uring_port *port = (uring_port *)base;
    weft_link *link;
    uring_hca_close(port);
    uring_line_close(port);
    while ((link = weft_list_take(&port->ended)) || (link = weft_list_take(&port->posted)))
        free(weft_container(link, uring_op, link));
    uring_pins_close(&port->pins);
    release(port);
}

static int uring_card_of(weft_port *base, void *card, size_t *bytes)
{
    uring_port *port = (uring_port *)base;
    if (*bytes < sizeof port->card)
        return weft_fail(WEFT_E_ARG, "a card needs %zu bytes, there is room for %zu", sizeof port->card, *bytes);
    memcpy(card, &port->card, sizeof port->card);
    *bytes = sizeof port->card;
    return 0;
}

/* -- moves -- */

static bool uring_can_move(weft_port *base, weft_path *path)
{
    (void)base;
    (void)path;
    return true; /* fixed buffers were tried at absent, sockets carry the frames */
}

static int post(uring_port *port, uring_path *path, enum uring_op_kind kind, const weft_move *move, void *done)
{
    uring_op *op = calloc(1, sizeof *op);
    if (!op)
        return weft_fail(WEFT_E_NOMEM, "no memory to note a transfer with rank %u", path->name.rank);
    op->kind = kind;
    op->path = path;
    op->done = done;
    if (move) {
        op->local = (uintptr_t)move->local;
        op->remote = move->remote;
        op->bytes = move->bytes;
        op->key = *move->key;
        op->local_key = move->region->key;
    }
    path->ops_open++;
    uring_hca_post(port, op);
    return 0;
}

static int move(weft_port *base, weft_path *base_path, const weft_move *move, enum uring_op_kind kind)
{
    uring_path *path = (uring_path *)base_path;
    if (path->is_lost)
        return weft_fail(WEFT_E_PEER, "rank %u has ended", path->name.rank);
    if (move->notify)
        return weft_fail(WEFT_E_UNSUPPORTED, "uring cannot notify of puts");
    if (!move->region)
        return weft_fail(WEFT_E_KEY, "uring moves registered memory only, and %p was not registered", move->local);
    if (move->bytes > URING_REGION_MAX)
        return weft_fail(WEFT_E_ARG, "%" PRIu64 " bytes are more than move_max", move->bytes);
    return post((uring_port *)base, path, kind, move, move->done);
}

static int uring_get(weft_port *port, weft_path *path, const weft_move *what) { return move(port, path, what, URING_GET); }
static int uring_put(weft_port *port, weft_path *path, const weft_move *what) { return move(port, path, what, URING_PUT); }

/* A put ends when the owner's HCA has written: locally and remotely complete are one. */
static int uring_flush(weft_port *base, weft_path *path, bool remotely, void *done)
{
    (void)remotely;
    return post((uring_port *)base, (uring_path *)path, URING_FLUSH, NULL, done);
}

static int uring_amo(weft_port *port, weft_path *path, const weft_atomic *atomic)
{
    (void)port;
    (void)path;
    (void)atomic;
    return weft_fail(WEFT_E_UNSUPPORTED, "uring has no atomics");
}

static int uring_share(weft_port *port, uint64_t bytes, weft_shared *shared)
{
    (void)port;
    (void)bytes;
    (void)shared;
    return weft_fail(WEFT_E_UNSUPPORTED, "uring shares no memory");
}

static int uring_unshare(weft_port *port, weft_shared *shared) { return uring_share(port, 0, shared); }

/* -- progress -- */

/* One operation that is over. The bell is silenced only when the list is empty, else it goes on ringing for the rest. */
static int take_ended(uring_port *port)
{
    weft_link *link;
    uint64_t count;
    uring_op *op;
    pthread_mutex_lock(&port->lock);
    link = weft_list_take(&port->ended);
    if (weft_list_is_empty(&port->ended))
        (void)!read(port->bell.fd, &count, sizeof count);
    pthread_mutex_unlock(&port->lock);
    if (!link)
        return 0;
    op = weft_container(link, uring_op, link);
    op->path->ops_open--;
    if (op->rc == WEFT_E_PEER)
        uring_line_break(port, op->path); /* perhaps no frame ever went either way: the HCA alone knows */
    if (op->done)
        port->port.up->done(port->port.owner, op->done, op->rc ? weft_fail(op->rc, "%s", op->text) : 0);
    free(op);
    return 1;
}

static int uring_poll(weft_port *base, int budget)
{
    uring_port *port = (uring_port *)base;
    int events = 0, idle = 0;
    port->tries_again = false;
    while (events < budget && idle < 2) {
        struct epoll_event event;
        int count = epoll_wait(port->epoll, &event, 1, 0), n = 0;
        uring_source *source = event.data.ptr;
        if (count == 1)
            n = source->kind == URING_BELL ? take_ended(port) : uring_line_event(port, source, event.events);
        events += n;
        idle += n == 0 ? count == 1 ? 1 : 2 : 0;
    }
    if (port->broken && events < budget)
        events += uring_line_deaths(port);
    return events;
}

static int uring_arm(weft_port *base, weft_bell *bell)
{
    uring_port *port = (uring_port *)base;
    *bell = (weft_bell){.fd = port->epoll, .within_ns = port->tries_again || port->broken ? AGAIN_NS : 0};
    return 0;
}

static void uring_disarm(weft_port *port) { (void)port; }

const weft_port_ops weft_uring_ops = {
    .name = "uring",
    .absent = uring_absent,
    .tell = uring_tell,
    .open = uring_open,
    .close = uring_close,
    .card = uring_card_of,
    .reach = uring_reach,
    .leave = uring_leave,
    .map = uring_map,
    .unmap = uring_unmap,
    .share = uring_share,
    .unshare = uring_unshare,
    .send = uring_send,
    .can_move = uring_can_move,
    .get = uring_get,
    .put = uring_put,
    .amo = uring_amo,
    .flush = uring_flush,
    .poll = uring_poll,
    .arm = uring_arm,
    .disarm = uring_disarm,
};
