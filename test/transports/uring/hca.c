/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hca: the thread that acts as the HCA of an iface. It sleeps on one epoll set: ops of its owner, sockets of peers' HCAs, the kernel's
 * completions. It serves peers independently of the owner's threads.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "test/transports/uring/uring.h"

#define REAP_MAX 32

static void raise_wakeup(uring_source *wakeup)
{
    uint64_t one = 1;
    while (write(wakeup->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

void uring_hca_post(uring_iface *iface, uring_op *op)
{
    bool is_first;
    pthread_mutex_lock(&iface->lock);
    is_first = weft_list_is_empty(&iface->posted);
    weft_list_append(&iface->posted, &op->link);
    pthread_mutex_unlock(&iface->lock);
    if (is_first)
        raise_wakeup(&iface->hca.wake);
}

void uring_hca_end(uring_iface *iface, uring_op *op)
{
    bool is_first;
    pthread_mutex_lock(&iface->lock);
    is_first = weft_list_is_empty(&iface->ended);
    weft_list_append(&iface->ended, &op->link);
    pthread_mutex_unlock(&iface->lock);
    if (is_first)
        raise_wakeup(&iface->wakeup);
}

/* false: the owner stops the thread */
static bool take_orders(uring_iface *iface)
{
    uint64_t count;
    weft_list_link orders, *link;
    bool stops;
    if (read(iface->hca.wake.fd, &count, sizeof count) < 0 && errno != EAGAIN)
        weft_log_error("the eventfd of uring's HCA cannot be read: %s", strerror(errno));
    weft_list_init(&orders);
    pthread_mutex_lock(&iface->lock);
    weft_list_splice(&orders, &iface->posted);
    stops = iface->hca.stops;
    pthread_mutex_unlock(&iface->lock);
    while ((link = weft_list_take(&orders))) {
        uring_op *op = weft_container(link, uring_op, link);
        uring_rma_post(op->ep, op);
    }
    return !stops;
}

static void reap(uring_iface *iface)
{
    struct io_uring_cqe *found[REAP_MAX];
    unsigned count = io_uring_peek_batch_cqe(&iface->bufs.ring, found, REAP_MAX);
    for (unsigned i = 0; i < count; i++) {
        uring_slot *slot = io_uring_cqe_get_data(found[i]);
        int res = found[i]->res;
        io_uring_cqe_seen(&iface->bufs.ring, found[i]);
        uring_rma_moved(slot, res);
    }
}

static void meet(uring_iface *iface)
{
    int fd = uring_socket_accept(iface->hca.listen.fd);
    uring_rma *rma = fd >= 0 ? calloc(1, sizeof *rma) : NULL;
    if (!rma) {
        if (fd >= 0)
            close(fd);
        return;
    }
    uring_rma_init(rma, iface, true);
    rma->source.fd = fd;
    weft_list_append(&iface->hca.rmas, &rma->link);
    if (uring_watch(iface->hca.epoll, &rma->source, EPOLLIN))
        uring_rma_close(rma);
}

/* The kernel's copies must end before registrations and slots are freed. */
static void drain(uring_iface *iface)
{
    struct io_uring_cqe *next;
    while (iface->bufs.in_kernel && io_uring_wait_cqe(&iface->bufs.ring, &next) == 0)
        reap(iface);
}

static void *run(void *argument)
{
    uring_iface *iface = argument;
    uring_hca *hca = &iface->hca;
    bool goes_on = true;
    while (goes_on) {
        struct epoll_event event;
        int count = epoll_wait(hca->epoll, &event, 1, -1);
        uring_source *source = event.data.ptr;
        if (count < 0 && errno != EINTR)
            break;
        if (count != 1)
            continue;
        if (source->kind == URING_WAKE)
            goes_on = take_orders(iface);
        else if (source->kind == URING_RING)
            reap(iface);
        else if (source->kind == URING_LISTEN)
            meet(iface);
        else
            uring_rma_ready((uring_rma *)source);
    }
    drain(iface);
    return NULL;
}

static int start(uring_iface *iface)
{
    sigset_t all, before;
    int rc;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&iface->hca.thread, NULL, run, iface);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc ? weft_fail(WEFT_E_SYSTEM, "the thread of uring's HCA cannot be started: %s", strerror(rc)) : 0;
}

static void shut(uring_iface *iface)
{
    uring_hca *hca = &iface->hca;
    weft_list_link *link;
    while ((link = weft_list_first(&hca->rmas)))
        uring_rma_close(weft_container(link, uring_rma, link));
    uring_unwatch(hca->epoll, &hca->listen);
    uring_unwatch(hca->epoll, &hca->wake);
    if (hca->epoll >= 0)
        close(hca->epoll);
}

int uring_hca_open(uring_iface *iface)
{
    uring_hca *hca = &iface->hca;
    int rc;
    weft_list_init(&hca->rmas);
    hca->epoll = epoll_create1(EPOLL_CLOEXEC);
    hca->wake = (uring_source){URING_WAKE, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    hca->listen = (uring_source){URING_LISTEN, uring_socket_listen(&iface->addr, 'm')};
    hca->ring = (uring_source){URING_RING, iface->bufs.ring.ring_fd};
    if (hca->epoll < 0 || hca->wake.fd < 0)
        rc = weft_fail(WEFT_E_SYSTEM, "descriptors for uring's HCA: %s (ulimit -n?)", strerror(errno));
    else
        rc = hca->listen.fd < 0 ? WEFT_E_SYSTEM : uring_watch(hca->epoll, &hca->wake, EPOLLIN);
    if (rc == 0)
        rc = uring_watch(hca->epoll, &hca->listen, EPOLLIN);
    if (rc == 0)
        rc = uring_watch(hca->epoll, &hca->ring, EPOLLIN);
    if (rc == 0)
        rc = start(iface);
    if (rc)
        shut(iface);
    return rc;
}

void uring_hca_close(uring_iface *iface)
{
    pthread_mutex_lock(&iface->lock);
    iface->hca.stops = true;
    pthread_mutex_unlock(&iface->lock);
    raise_wakeup(&iface->hca.wake);
    pthread_join(iface->hca.thread, NULL);
    for (weft_list_link *link = iface->eps.next; link != &iface->eps; link = link->next) /* ops that were lost or never started */
        uring_rma_close(&weft_container(link, uring_ep, link)->rma);
    shut(iface);
}
