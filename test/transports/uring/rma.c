/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rma: gets and puts between two HCAs, a chunk at a time. The requester owns the connection: a socket and a staging file of a few chunks.
 * put: requester copies pinned pages to staging, sends ASK; owner copies staging to pinned pages, sends ANSWER. get: requester sends ASK;
 * owner copies pinned pages to staging, sends ANSWER; requester copies staging to pinned pages.
 * The side that received the last message owns a slot of the staging file, so each slot has at most one message on the socket: it is never
 * full. A closed socket ends every op with WEFT_E_PEER, after the kernel has released the memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/transports/uring/uring.h"

enum word_kind { WORD_HELLO, WORD_ASK, WORD_ANSWER };
typedef struct word {
    uint32_t kind, slot;
    uint32_t writes, bytes;        /* ASK: a put? how many */
    uint64_t at, whole, whole_bytes;
    weft_rkey rkey;
    int32_t rc;                    /* ANSWER */
    char text[160];
} word;

void uring_rma_init(uring_rma *rma, uring_iface *iface, bool serves)
{
    rma->source = (uring_source){URING_RMA, -1};
    rma->iface = iface;
    rma->file = -1;
    rma->serves = serves;
    weft_list_init(&rma->link);
    weft_list_init(&rma->ops);
    for (uint32_t i = 0; i < URING_SLOTS; i++)
        rma->slots[i].rma = rma;
}

static uint32_t number_of(const uring_slot *slot) { return (uint32_t)(slot - slot->rma->slots); }

static bool say(uring_rma *rma, const word *what, int file)
{
    struct iovec part = {(void *)what, sizeof *what};
    _Alignas(struct cmsghdr) char extra[CMSG_SPACE(sizeof file)] = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        message.msg_control = extra;
        message.msg_controllen = sizeof extra;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        *head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof file), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(head), &file, sizeof file);
    }
    return sendmsg(rma->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof *what;
}

/* -- requester -- */

static void fail_op(uring_op *op, int rc)
{
    if (op->rc)
        return; /* the first cause counts */
    op->rc = rc;
    snprintf(op->text, sizeof op->text, "%s", weft_fail_text(rc));
}

static int lost(const uring_rma *rma)
{
    (void)rma;
    return weft_fail(WEFT_E_PEER, "the peer's software HCA hung up: its process ended");
}

/* Ends completed ops, and flushes without earlier ops. */
static void settle(uring_rma *rma)
{
    weft_list_link *link = rma->ops.next;
    while (link != &rma->ops) {
        uring_op *op = weft_container(link, uring_op, link);
        bool is_over = op->kind == URING_FLUSH ? link == rma->ops.next : !op->in_slots && (op->is_issued || op->rc);
        link = link->next;
        if (is_over) {
            weft_list_remove(&op->link);
            uring_hca_end(rma->iface, op);
        }
    }
}

static void free_slot(uring_slot *slot)
{
    slot->op->in_slots--;
    slot->op = NULL;
    slot->is_busy = false;
}

/* Starts the kernel's copy of the rest of the slot's chunk. */
static int move(uring_slot *slot, const weft_rkey *rkey, uint32_t rights)
{
    uring_rma *rma = slot->rma;
    uring_span span = {.rkey = rkey, .whole = slot->whole, .whole_bytes = slot->whole_bytes, .at = slot->at + slot->moved,
                       .bytes = slot->bytes - slot->moved, .rights = rights, .into_file = slot->into_file, .file = rma->file,
                       .file_at = (uint64_t)number_of(slot) * URING_CHUNK + slot->moved, .tag = slot};
    int rc = uring_fixed_bufs_copy(rma->iface, &span, &slot->index);
    if (rc == 0 && span.bytes) {
        slot->in_kernel = true;
        rma->in_kernel++;
    }
    return rc;
}

static int ask(uring_slot *slot)
{
    const uring_op *op = slot->op;
    word what = {.kind = WORD_ASK, .slot = number_of(slot), .writes = slot->writes, .bytes = slot->bytes,
                 .at = op->remote + (slot->at - op->local), .whole = op->remote, .whole_bytes = op->bytes, .rkey = op->key};
    return say(slot->rma, &what, -1) ? 0 : lost(slot->rma);
}

/* Gives an operation's next chunk to a free slot. */
static void issue_chunk(uring_slot *slot, uring_op *op)
{
    uint64_t left = op->bytes - op->issued;
    int rc;
    slot->op = op;
    slot->is_busy = true;
    slot->writes = slot->into_file = op->kind == URING_PUT;
    slot->at = op->local + op->issued;
    slot->whole = op->local;
    slot->whole_bytes = op->bytes;
    slot->bytes = left < URING_CHUNK ? (uint32_t)left : URING_CHUNK;
    slot->moved = 0;
    op->issued += slot->bytes;
    op->in_slots++;
    op->is_issued = op->issued == op->bytes;
    rc = slot->writes && slot->bytes ? move(slot, &op->local_key, 0) : ask(slot);
    if (rc) {
        fail_op(op, rc);
        free_slot(slot);
    }
}

static void issue(uring_rma *rma)
{
    weft_list_link *link = rma->ops.next;
    for (uint32_t i = 0; i < URING_SLOTS && link != &rma->ops && !rma->is_dead; i++) {
        if (rma->slots[i].is_busy)
            continue;
        while (link != &rma->ops) {
            uring_op *op = weft_container(link, uring_op, link);
            if (op->kind != URING_FLUSH && !op->is_issued && !op->rc) {
                issue_chunk(&rma->slots[i], op);
                break;
            }
            link = link->next;
        }
    }
    settle(rma);
}

static int begin(uring_ep *ep)
{
    uring_rma *rma = &ep->rma;
    word hello = {.kind = WORD_HELLO};
    if (rma->is_dead)
        return lost(rma);
    if (rma->source.fd >= 0)
        return 0;
    if (rma->file < 0)
        rma->file = memfd_create("weft-uring-staging", MFD_CLOEXEC);
    if (rma->file < 0 || ftruncate(rma->file, (off_t)URING_SLOTS * URING_CHUNK))
        return weft_fail(WEFT_E_SYSTEM, "cannot create a staging file of %u bytes: %s", URING_SLOTS * URING_CHUNK,
                         strerror(errno));
    rma->source.fd = uring_socket_connect(&ep->remote, 'm');
    if (rma->source.fd < 0 || !say(rma, &hello, rma->file)) {
        rma->is_dead = true;
        return lost(rma);
    }
    return uring_watch(rma->iface->hca.epoll, &rma->source, EPOLLIN);
}

/* Checks an op as a whole: nothing moves for one that its own side does not allow. */
static int look_at(uring_ep *ep, const uring_op *op)
{
    uring_span none = {.rkey = &op->local_key, .whole = op->local, .whole_bytes = op->bytes};
    uint32_t index;
    int rc = begin(ep);
    return rc ? rc : uring_fixed_bufs_copy(ep->rma.iface, &none, &index);
}

void uring_rma_post(uring_ep *ep, uring_op *op)
{
    uring_rma *rma = &ep->rma;
    if (op->kind == URING_CLOSE) {
        uring_rma_close(rma);
        uring_hca_end(rma->iface, op);
        return;
    }
    int rc = op->kind == URING_FLUSH ? 0 : look_at(ep, op);
    if (rc)
        fail_op(op, rc);
    weft_list_append(&rma->ops, &op->link);
    issue(rma);
}

static void answered(uring_rma *rma, const word *what)
{
    uring_slot *slot = &rma->slots[what->slot];
    int rc = what->rc;
    if (!slot->op || slot->in_kernel)
        return; /* not requested */
    if (rc == 0 && !slot->writes && slot->bytes) {
        rc = move(slot, &slot->op->local_key, 0);
        if (rc == 0)
            return;
        fail_op(slot->op, rc);
    } else if (rc) {
        fail_op(slot->op, weft_fail(rc, "%s", what->text));
    }
    free_slot(slot);
    issue(rma);
}

/* -- owner -- */

static void answer(uring_slot *slot, int rc)
{
    word what = {.kind = WORD_ANSWER, .slot = number_of(slot), .rc = rc};
    slot->is_busy = false;
    if (rc)
        snprintf(what.text, sizeof what.text, "%s", weft_fail_text(rc));
    if (!slot->rma->is_dead)
        say(slot->rma, &what, -1); /* send failed: the peer has closed; the next read reports it */
}

static void asked(uring_rma *rma, const word *what)
{
    uring_slot *slot = &rma->slots[what->slot];
    int rc = 0;
    if (slot->is_busy)
        return;
    slot->is_busy = true;
    slot->writes = what->writes;
    slot->into_file = !what->writes;
    slot->rkey = what->rkey;
    slot->at = what->at;
    slot->whole = what->whole;
    slot->whole_bytes = what->whole_bytes;
    slot->bytes = what->bytes;
    slot->moved = 0;
    if (slot->bytes > URING_CHUNK || slot->at < slot->whole || slot->at - slot->whole + slot->bytes > slot->whole_bytes)
        rc = weft_fail(WEFT_E_KEY, "%u bytes at 0x%" PRIx64 " are no part of their operation", slot->bytes, slot->at);
    if (rc == 0)
        rc = move(slot, &slot->rkey, slot->writes ? WEFT_ACCESS_WRITE : WEFT_ACCESS_READ);
    if (rc || !slot->bytes)
        answer(slot, rc);
}

/* -- both -- */

static void moved_all(uring_slot *slot, int rc)
{
    uring_rma *rma = slot->rma;
    if (rma->serves) {
        answer(slot, rc);
        return;
    }
    if (rc == 0 && rma->is_dead)
        rc = lost(rma);
    if (rc == 0 && slot->into_file)
        rc = ask(slot);
    else if (rc == 0) {
        free_slot(slot);
        issue(rma);
        return;
    }
    if (rc) {
        fail_op(slot->op, rc);
        free_slot(slot);
        issue(rma);
    }
}

static void free_if_over(uring_rma *rma)
{
    if (!rma->is_dead || rma->in_kernel)
        return;
    if (rma->file >= 0)
        close(rma->file);
    rma->file = -1;
    if (rma->serves) {
        weft_list_remove(&rma->link);
        free(rma);
    }
}

void uring_rma_moved(uring_slot *slot, int res)
{
    uring_rma *rma = slot->rma;
    int rc = 0;
    slot->in_kernel = false;
    rma->in_kernel--;
    uring_fixed_bufs_copied(rma->iface, slot->index);
    if (res > 0)
        slot->moved += (uint32_t)res;
    if (res == 0 || (res < 0 && res != -EINTR && res != -EAGAIN))
        rc = weft_fail(WEFT_E_SYSTEM, "io_uring moved %u of %u bytes of pinned memory at 0x%" PRIx64 ": %s", slot->moved,
                       slot->bytes,
                       slot->at, res ? strerror(-res) : "end of the staging file");
    if (rc == 0 && slot->moved < slot->bytes) {
        const weft_rkey *rkey = rma->serves ? &slot->rkey : &slot->op->local_key;
        rc = move(slot, rkey, !rma->serves ? 0 : slot->writes ? WEFT_ACCESS_WRITE : WEFT_ACCESS_READ);
        if (rc == 0)
            return;
    }
    moved_all(slot, rc);
    free_if_over(rma);
}

static void hang_up(uring_rma *rma)
{
    uring_unwatch(rma->iface->hca.epoll, &rma->source);
    rma->is_dead = true;
    for (uint32_t i = 0; i < URING_SLOTS && !rma->serves; i++)
        if (rma->slots[i].op && !rma->slots[i].in_kernel)
            free_slot(&rma->slots[i]);
    for (weft_list_link *link = rma->ops.next; link != &rma->ops; link = link->next)
        fail_op(weft_container(link, uring_op, link), lost(rma));
    settle(rma);
    free_if_over(rma);
}

void uring_rma_close(uring_rma *rma)
{
    if (rma->serves || rma->source.fd >= 0)
        hang_up(rma);
    else if (rma->file >= 0)
        close(rma->file);
}

/* Receives a message, and the staging file that comes with HELLO. Returns the bytes, as recvmsg. */
static ssize_t hear(uring_rma *rma, word *what, int *file)
{
    struct iovec part = {what, sizeof *what};
    _Alignas(struct cmsghdr) char extra[CMSG_SPACE(sizeof *file)];
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = extra, .msg_controllen = sizeof extra};
    ssize_t bytes = recvmsg(rma->source.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *head = bytes > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *file = -1;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof *file))
        memcpy(file, CMSG_DATA(head), sizeof *file);
    return bytes;
}

void uring_rma_ready(uring_rma *rma)
{
    word what;
    int file;
    ssize_t bytes = hear(rma, &what, &file);
    bool is_whole = bytes == (ssize_t)sizeof what && what.slot < URING_SLOTS;
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (file >= 0 && is_whole && rma->serves && rma->file < 0 && what.kind == WORD_HELLO)
        rma->file = file;
    else if (file >= 0)
        close(file);
    if (is_whole && what.kind == WORD_ASK && rma->serves && rma->file >= 0)
        asked(rma, &what);
    else if (is_whole && what.kind == WORD_ANSWER && !rma->serves)
        answered(rma, &what);
    else if (!is_whole || what.kind != WORD_HELLO)
        hang_up(rma);
}
