/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi_contact: see ofi_contact.h. Both sides of a rig are ranks that may defer; a rig's `a` makes its ep when the rig opens, so b is the
 * one that is called. This program is linked to libfabric, so nothing is loaded.
 */
#include "test/contract/ofi_contact.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

int ofi_library_load(void) { return 0; }

static int open_deferred(const weft_iface_params *params, weft_iface **iface)
{
    weft_iface_params mine = *params;
    mine.local_rank = 3;
    return weft_ofi_ops.open(&mine, iface);
}

static weft_iface_ops deferring;
static rig_row row = {.name = "ofi", .ops = &deferring, .seed = 43, .wants_fd = true};
static const char *named; /* the knob's value outside of these tests */

static ofi_iface *ofi_of(const rig_side *side) { return (ofi_iface *)side->iface; }

/* NULL: not on this host. */
static weft_rig *open_rig(bool skip_b_reach)
{
    weft_rig *rig;
    named = weft_knob.ofi_provider;
    weft_knob.ofi_provider = NULL;
    deferring = weft_ofi_ops;
    deferring.open = open_deferred;
    if (!ofi_may_defer()) {
        printf("another network is here: nothing is deferred\n");
        weft_knob.ofi_provider = named;
        return NULL;
    }
    rig = rig_open(&row, skip_b_reach);
    if (rig)
        CHECK(!ofi_of(rig->a)->is_deferred && ofi_of(rig->b)->is_deferred == skip_b_reach);
    return rig;
}

static void close_rig(weft_rig *rig)
{
    rig_close(rig);
    weft_knob.ofi_provider = named;
}

/* Of those that a deferred iface could get wrong. */
static bool has_same_caps(const weft_rig *rig)
{
    const weft_caps *a = &rig->a->iface->caps, *b = &rig->b->iface->caps;
    return a->frame_max == b->frame_max && a->chunk == b->chunk && a->eager == b->eager && a->zcopy_min == b->zcopy_min &&
           a->inline_max == b->inline_max && a->mr_local == b->mr_local && a->wants_regcache == b->wants_regcache && a->amo == b->amo &&
           a->pages_on_demand == b->pages_on_demand && a->latency_ns == b->latency_ns && a->mbyte_per_s == b->mbyte_per_s;
}

/* b does not poll: a waits, and has not failed. Then b answers, and is the one that is opened by it. */
static void opens_when_called(void)
{
    weft_rig *rig = open_rig(true);
    weft_frame frame = {.hdr = {.seq = 1}};
    if (!rig)
        return;
    CHECK(has_same_caps(rig));
    for (int i = 0; i < 400; i++, usleep(1000)) {
        CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == WEFT_AGAIN);
        rig_poll(rig->a, 16);
    }
    CHECK(rig->a->losts == 0 && ofi_of(rig->b)->is_deferred);
    CHECK(rig_send(rig->a, &frame) == 0 && rig_until(rig, &rig->b->arrival_count, 1));
    CHECK(!ofi_of(rig->b)->is_deferred && rig->b->greets == 1);
    CHECK(has_same_caps(rig));
    CHECK(rig_send(rig->b, &frame) == 0 && rig_until(rig, &rig->a->arrival_count, 1));
    close_rig(rig);
}

/* b sleeps on its descriptor, without a limit of time. */
static void wakes_who_sleeps(void)
{
    weft_rig *rig = open_rig(true);
    weft_frame frame = {.hdr = {.seq = 1}};
    weft_wakeup wakeup = {.fd = -1};
    struct pollfd fd = {.events = POLLIN};
    bool is_awake = false;
    if (!rig)
        return;
    CHECK(rig->b->iface->ops->arm(rig->b->iface, &wakeup) == 0 && wakeup.fd >= 0 && !wakeup.within_ns);
    CHECK(rig_poll(rig->b, 16) == 0);
    fd.fd = wakeup.fd;
    CHECK(poll(&fd, 1, 0) == 0);
    for (int i = 0; i < 5000 && !is_awake; i++) {
        rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame);
        rig_poll(rig->a, 16);
        is_awake = poll(&fd, 1, 1) == 1;
    }
    CHECK(is_awake && rig_poll(rig->b, 16) > 0 && !ofi_of(rig->b)->is_deferred);
    rig->b->iface->ops->disarm(rig->b->iface);
    CHECK(rig_send(rig->a, &frame) == 0 && rig_until(rig, &rig->b->arrival_count, 1));
    close_rig(rig);
}

/* One run of both_at_once: each step one of the two sides sends or polls. */
static void contact_random(uint64_t seed)
{
    weft_rig *rig;
    bool is_sent[2] = {false, false};
    row.seed = seed;
    rig = open_rig(seed & 1);
    if (!rig)
        return;
    for (int i = 0; i < 4000000 && (rig->a->arrival_count < 1 || rig->b->arrival_count < 1) && !rig->a->losts && !rig->b->losts; i++) {
        uint64_t random = rig_random(rig);
        rig_side *side = &rig->sides[random & 1];
        weft_frame frame = {.hdr = {.seq = 1}};
        uint32_t polls = 1 + (uint32_t)(random >> 8) % 64;
        if (side->ep && !is_sent[random & 1] && random & 2)
            is_sent[random & 1] = side->iface->ops->send(side->iface, side->ep, &frame) == 0;
        else
            for (uint32_t k = 0; k < polls; k++)
                rig_poll(side, 16);
        if (!(random >> 32 & 1023))
            usleep(1000);
    }
    CHECK(rig->a->arrival_count == 1 && rig->b->arrival_count == 1 && !rig->a->losts && !rig->b->losts);
    close_rig(rig);
}

static void both_at_once(void)
{
    const char *seed = getenv("WEFT_TEST_SEED");
    uint64_t first = seed ? strtoull(seed, NULL, 0) : 1;
    for (uint64_t i = first; i < first + 12; i++)
        contact_random(i);
}

/* Connects to the knock socket as anybody may, and sends `bytes`. Returns the socket. */
static int stranger(const rig_side *side, const void *memory, size_t bytes)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = ofi_of(side)->addr.port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && (!bytes || write(fd, memory, bytes) == (ssize_t)bytes));
    return fd;
}

/* A connection that does not send the nonce opens nothing and gets no answer. */
static void knocks_need_the_nonce(void)
{
    weft_rig *rig = open_rig(true);
    weft_frame frame = {.hdr = {.seq = 1}};
    uint64_t words[4] = {0x6b636f6e6b746677u, 0, 77, 0};
    int fds[4];
    char answer[256];
    if (!rig)
        return;
    if (ofi_of(rig->b)->addr.form == OFI_FORM_IN) {
        words[1] = ofi_of(rig->b)->addr.nonce ^ 1ull << 40;
        fds[0] = stranger(rig->b, words, sizeof words);
        words[1] ^= 1ull << 40;
        fds[1] = stranger(rig->b, words, sizeof words - 1);
        words[0]++;
        fds[2] = stranger(rig->b, words, sizeof words);
        fds[3] = stranger(rig->b, NULL, 0);
        for (int i = 0; i < 300; i++, usleep(1000))
            rig_poll(rig->b, 16);
        CHECK(ofi_of(rig->b)->is_deferred);
        for (int i = 0; i < 4; i++) {
            CHECK(recv(fds[i], answer, sizeof answer, MSG_DONTWAIT) <= 0);
            close(fds[i]);
        }
    }
    CHECK(rig_send(rig->a, &frame) == 0 && rig_until(rig, &rig->b->arrival_count, 1));
    close_rig(rig);
}

/* b cannot open libfabric: a learns it, with the reason, and does not wait. b may try again. */
static void tells_why_not(void)
{
    weft_rig *rig = open_rig(true);
    weft_frame frame = {.hdr = {.seq = 1}};
    uint8_t form;
    if (!rig)
        return;
    form = ofi_of(rig->b)->addr.form;
    ofi_of(rig->b)->addr.form = form == OFI_FORM_IN ? OFI_FORM_IN6 : OFI_FORM_IN; /* as if the host's addresses had changed */
    for (int i = 0; i < 100000 && !rig->a->losts; i++) {
        rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame);
        rig_turn(rig);
    }
    CHECK(rig->a->losts == 1 && strstr(weft_fail_text(WEFT_E_PEER), "it has no network: ") &&
          strstr(weft_fail_text(WEFT_E_PEER), "WEFT_OFI_PROVIDER"));
    CHECK(ofi_of(rig->b)->is_deferred);
    ofi_of(rig->b)->addr.form = form;
    CHECK(ofi_contact(ofi_of(rig->b)) == 0 && !ofi_of(rig->b)->is_deferred);
    close_rig(rig);
}

/* Side b ends before a knock, or while its kernel holds one. Side a reports that no process listens. */
static void ends_uncalled(bool has_knocked)
{
    weft_rig *rig = open_rig(true);
    weft_frame frame = {.hdr = {.seq = 1}};
    if (!rig)
        return;
    for (int i = 0; i < 400 && has_knocked; i++, usleep(100)) {
        rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame);
        rig_poll(rig->a, 16);
    }
    rig->b->iface->ops->close(rig->b->iface);
    rig->b->iface = NULL;
    for (int i = 0; i < 100000 && !rig->a->losts; i++, usleep(50)) {
        rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame);
        rig_poll(rig->a, 16);
    }
    CHECK(rig->a->losts == 1 && strstr(weft_fail_text(WEFT_E_PEER), "refused"));
    close_rig(rig);
}

static void ends_before_contact(void)
{
    ends_uncalled(false);
    ends_uncalled(true);
}

/* No descriptor is free: the knock waits, and goes on when there is one. */
static void waits_for_a_socket(void)
{
    weft_rig *rig = open_rig(true);
    weft_frame frame = {.hdr = {.seq = 1}};
    struct rlimit limit, less;
    int spare[64], count = 0;
    if (!rig)
        return;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    less = limit;
    less.rlim_cur = (rlim_t)dup(0) + 16;
    close((int)less.rlim_cur - 16);
    CHECK(setrlimit(RLIMIT_NOFILE, &less) == 0);
    while (count < 64 && (spare[count] = dup(0)) >= 0)
        count++;
    for (int i = 0; i < 300; i++, usleep(1000)) {
        CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == WEFT_AGAIN);
        rig_turn(rig);
    }
    CHECK(count < 64 && !rig->a->losts && ofi_of(rig->b)->is_deferred);
    while (count > 0)
        close(spare[--count]);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(rig_send(rig->a, &frame) == 0 && rig_until(rig, &rig->b->arrival_count, 1));
    close_rig(rig);
}

/* -- processes that compute -- */

enum { BUSY = 12, SHARE = 6 };
#define SECOND_NS 1000000000ull

static int make_busy(const ofi_iface *like, uint16_t *port)
{
    bool is_v4 = like->addr.form == OFI_FORM_IN;
    ofi_address at = {.any.sa_family = is_v4 ? AF_INET : AF_INET6};
    socklen_t bytes = is_v4 ? sizeof at.in : sizeof at.in6;
    int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, &at.any, bytes) == 0 && listen(fd, 64) == 0 && getsockname(fd, &at.any, &bytes) == 0);
    *port = is_v4 ? at.in.sin_port : at.in6.sin6_port;
    return fd;
}

/* An ep of side a to a rank that accepts no connection, which only its kernel does. Returns its socket. */
static int call_busy(weft_rig *rig, uint32_t rank)
{
    ofi_iface_addr addr = ofi_of(rig->b)->addr;
    weft_frame frame = {.hdr = {.seq = 1}};
    weft_proc_id other = {.job = rig->a->proc_id.job, .rank = rank};
    weft_ep *ep;
    int fd = make_busy(ofi_of(rig->b), &addr.port);
    addr.nonce += rank;
    CHECK(rig->a->iface->ops->ep_open(rig->a->iface, &other, &addr, sizeof addr, rig->b, &ep) == 0);
    CHECK(rig->a->iface->ops->send(rig->a->iface, ep, &frame) == WEFT_AGAIN);
    return fd;
}

static int count_descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    int n = 0;
    while (readdir(all))
        n++;
    closedir(all);
    return n;
}

/* More peers compute than the process has sockets for knocks. Each is called in turn, and a peer that answers is reached. */
static void busy_peers_share_sockets(void)
{
    weft_rig *rig = open_rig(true);
    weft_frame frame = {.hdr = {.seq = 1}};
    struct pollfd fds[BUSY];
    uint64_t end = weft_clock_ns() + 30 * SECOND_NS;
    int before, now, most = 0, called = 0;
    if (!rig)
        return;
    ofi_of(rig->a)->knocks_max = SHARE;
    for (uint32_t i = 0; i < BUSY; i++)
        fds[i] = (struct pollfd){.fd = call_busy(rig, 100 + i), .events = POLLIN};
    before = count_descriptors();
    for (; called < BUSY && weft_clock_ns() < end; called = poll(fds, BUSY, 1)) {
        rig_poll(rig->a, 16);
        now = count_descriptors() - before;
        most = now > most ? now : most;
    }
    CHECK(called == BUSY && most <= SHARE && rig->a->losts == 0);
    CHECK(rig_send(rig->a, &frame) == 0 && rig_until(rig, &rig->b->arrival_count, 1));
    close_rig(rig);
    for (uint32_t i = 0; i < BUSY; i++)
        close(fds[i].fd);
}

/* A knock was given up for another one: its peer connects when it polls. */
static void knocks_are_called_back(void)
{
    weft_rig *rig = open_rig(true);
    weft_frame frame = {.hdr = {.seq = 1}};
    struct pollfd fd = {.events = POLLIN};
    uint64_t begin = weft_clock_ns();
    if (!rig)
        return;
    ofi_of(rig->a)->knocks_max = 1;
    CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == WEFT_AGAIN);
    for (int i = 0; i < 100; i++, usleep(100))
        rig_poll(rig->a, 16);
    fd.fd = call_busy(rig, 100);
    while (poll(&fd, 1, 1) != 1 && weft_clock_ns() - begin < 20 * SECOND_NS)
        rig_poll(rig->a, 16);
    begin = weft_clock_ns();
    CHECK(rig_send(rig->a, &frame) == 0 && rig_until(rig, &rig->b->arrival_count, 1));
    CHECK(weft_clock_ns() - begin < 5 * SECOND_NS && rig->b->greets == 1); /* side a repeats its knock after ten seconds */
    close_rig(rig);
    close(fd.fd);
}

/* Side b polls often, then rarely: it answers at its next poll. */
static void rare_polls_answer(void)
{
    weft_rig *rig = open_rig(true);
    weft_frame frame = {.hdr = {.seq = 1}};
    if (!rig)
        return;
    for (int i = 0; i < 10000; i++)
        rig_poll(rig->b, 16);
    for (int i = 0; i < 32; i++, usleep(2000))
        rig_poll(rig->b, 16);
    for (int i = 0; i < 300; i++, usleep(100)) {
        rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame);
        rig_poll(rig->a, 16);
    }
    rig_poll(rig->b, 16);
    CHECK(!ofi_of(rig->b)->is_deferred);
    CHECK(rig_send(rig->a, &frame) == 0 && rig_until(rig, &rig->b->arrival_count, 1));
    close_rig(rig);
}

/* A window's memory gets its key by opening libfabric. */
static void opens_for_a_key(void)
{
    weft_rig *rig = open_rig(true);
    uint64_t word;
    weft_mr mr;
    if (!rig)
        return;
    CHECK(rig_map(rig->b, &word, sizeof word, WEFT_ACCESS_WRITE, &mr) == 0 && !ofi_of(rig->b)->is_deferred);
    CHECK(rig->b->iface->ops->mr_dereg(rig->b->iface, &mr) == 0);
    close_rig(rig);
}

const contact_test contact_tests[] = {{"opens-when-called", opens_when_called},
                                      {"wakes-who-sleeps", wakes_who_sleeps},
                                      {"both-at-once", both_at_once},
                                      {"knocks-need-the-nonce", knocks_need_the_nonce},
                                      {"tells-why-not", tells_why_not},
                                      {"ends-before-contact", ends_before_contact},
                                      {"waits-for-a-socket", waits_for_a_socket},
                                      {"busy-peers-share-sockets", busy_peers_share_sockets},
                                      {"knocks-are-called-back", knocks_are_called_back},
                                      {"rare-polls-answer", rare_polls_answer},
                                      {"opens-for-a-key", opens_for_a_key},
                                      {NULL, NULL}};
