/* SPDX-License-Identifier: BSD-3-Clause
 *
 * uring: the contract suite over the software HCA, and what only it can show: registrations pin pages, so one of unmapped memory transfers
 * the old pages; limits on locked memory; peers in other processes, served while they sleep, and their death. A separate program since the
 * HCA is a thread: an empty poll lets it run. Skipped (77) if io_uring is refused.
 *     uring [-v] [test]; uring --why: only says whether it can run here, for test/stress
 */
#include <CUnit/Basic.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/contract/rig.h"
#include "test/transports/uring/uring.h"

#define AREA (3u << 20) /* several chunks */
#define LOCKED_MIN (4 * URING_REGIONS * 4096)
#define HANG_S 800
#define SLEEP_MS 30000 /* a sleep this long with a frame waiting is a lost wake-up */

static const rig_row row = {.name = "uring", .ops = &weft_uring_ops, .seed = 21};

static int poll_patiently(weft_iface *iface, int budget)
{
    int events = weft_uring_ops.poll(iface, budget);
    if (!events)
        usleep(2);
    return events;
}

static void make_patient(weft_iface *iface)
{
    static weft_iface_ops patient;
    patient = *iface->ops;
    patient.poll = poll_patiently;
    iface->ops = &patient;
}

/* CU_ASSERT of equal integers, which shows them. */
#define SAME(value, must) expect_same((int64_t)(value), (int64_t)(must), #value " == " #must, __LINE__)
static void expect_same(int64_t value, int64_t must, const char *text, unsigned line)
{
    if (value != must)
        printf("\n    %s:%u: not so: %s: it is %lld\n", __FILE__, line, text, (long long)value);
    CU_assertImplementation(value == must, line, text, __FILE__, "", CU_FALSE);
}

static void run_named(void)
{
    rig_run_named(&row);
}

static uint8_t *pages(uint64_t bytes, void *at)
{
    return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}

static int transfer(weft_rig *rig, void *local, const weft_mr *mr, const void *remote, const weft_rkey *rkey,
                    uint64_t bytes, bool is_get)
{
    return rig_move_wait(rig->a, (weft_rma){.local = local, .mr = mr, .remote = (uintptr_t)remote, .rkey = rkey,
                                             .bytes = bytes}, is_get);
}

/* Memory that is unmapped and mapped again at the same address is other memory. */
static void stale_registrations_are_detected(void)
{
    weft_rig *rig = rig_open(&row, false);
    uint8_t *local = pages(AREA, NULL), *remote = pages(AREA, NULL);
    weft_mr local_mr, remote_mr;
    rig_pattern(remote, 1, AREA);
    CHECK(rig_map(rig->a, local, AREA, 0, &local_mr) == 0);
    CHECK(rig_map(rig->b, remote, AREA, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE, &remote_mr) == 0);
    CHECK(transfer(rig, local, &local_mr, remote, &remote_mr.rkey, AREA, true) == 0 && rig_is_pattern(local, 1, AREA));
    CHECK(pages(AREA, remote) == remote);
    rig_pattern(remote, 2, AREA);
    CHECK(transfer(rig, local, &local_mr, remote, &remote_mr.rkey, AREA, true) == 0);
    CHECK(rig_is_pattern(local, 1, AREA)); /* the old page's bytes */
    rig_pattern(local, 3, AREA);
    CHECK(transfer(rig, local, &local_mr, remote, &remote_mr.rkey, AREA, false) == 0);
    CHECK(rig_is_pattern(remote, 2, AREA)); /* nor does a put change it */
    CHECK(weft_uring_ops.mr_dereg(rig->b->iface, &remote_mr) == 0);
    CHECK(rig_map(rig->b, remote, AREA, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE, &remote_mr) == 0); /* registered again: it works */
    CHECK(transfer(rig, local, &local_mr, remote, &remote_mr.rkey, AREA, true) == 0 && rig_is_pattern(local, 2, AREA));
    CHECK(madvise(remote, AREA, MADV_DONTNEED) == 0);
    CHECK(transfer(rig, local, &local_mr, remote, &remote_mr.rkey, AREA, true) == 0 && rig_is_pattern(local, 2, AREA) && remote[0] == 0);
    CHECK(weft_uring_ops.mr_dereg(rig->b->iface, &remote_mr) == 0 && weft_uring_ops.mr_dereg(rig->a->iface, &local_mr) == 0);
    rig_close(rig);
    munmap(local, AREA);
    munmap(remote, AREA);
}

/* Long RMA crosses the staging file by chunks, several at a time, at unaligned offsets. */
static void long_rmas(void)
{
    weft_rig *rig = rig_open(&row, false);
    uint8_t *local = pages(AREA, NULL), *remote = pages(AREA, NULL);
    weft_mr local_mr, remote_mr;
    CHECK(rig_map(rig->a, local, AREA, 0, &local_mr) == 0);
    CHECK(rig_map(rig->b, remote, AREA, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE, &remote_mr) == 0);
    for (uint32_t i = 0; i < 12; i++) {
        uint64_t from = rig_random(rig) % 5000, to = rig_random(rig) % 5000;
        uint64_t bytes = AREA - 5000 - rig_random(rig) % (i < 6 ? 100 : AREA - 5000);
        memset(local, 0, AREA);
        rig_pattern(remote, i, AREA);
        CHECK(transfer(rig, local + to, &local_mr, remote + from, &remote_mr.rkey, bytes, true) == 0);
        CHECK(memcmp(local + to, remote + from, bytes) == 0 && local[to + bytes] == 0);
        rig_pattern(local, 100 + i, AREA);
        CHECK(transfer(rig, local + to, &local_mr, remote + from, &remote_mr.rkey, bytes, false) == 0);
        CHECK(memcmp(local + to, remote + from, bytes) == 0 && remote[from + bytes] == rig_byte(i, from + bytes));
    }
    CHECK(weft_uring_ops.mr_dereg(rig->b->iface, &remote_mr) == 0 && weft_uring_ops.mr_dereg(rig->a->iface, &local_mr) == 0);
    rig_close(rig);
    munmap(local, AREA);
    munmap(remote, AREA);
}

/* done of a flush comes after that of long puts before it. */
static void flush_waits_long(void)
{
    weft_rig *rig = rig_open(&row, false);
    uint8_t *local = pages(AREA, NULL), *remote = pages(AREA, NULL);
    weft_mr local_mr, remote_mr;
    CHECK(rig_map(rig->a, local, AREA, 0, &local_mr) == 0 && rig_map(rig->b, remote, AREA, WEFT_ACCESS_WRITE, &remote_mr) == 0);
    for (uint32_t i = 0; i < 10; i++) {
        rig_done put = {0, 0}, flush = {0, 0};
        weft_rma rma = {.local = local, .mr = &local_mr, .remote = (uintptr_t)remote, .rkey = &remote_mr.rkey, .bytes = AREA,
                          .done = &put};
        rig_pattern(local, i, AREA);
        CHECK(rig_move(rig->a, &rma, false) == 0 && rig_flush(rig->a, i & 1, &flush) == 0);
        CHECK(rig_until(rig, &flush.times, 1));
        CHECK(put.times == 1 && put.rc == 0 && flush.rc == 0 && rig_is_pattern(remote, i, AREA));
    }
    CHECK(weft_uring_ops.mr_dereg(rig->b->iface, &remote_mr) == 0 && weft_uring_ops.mr_dereg(rig->a->iface, &local_mr) == 0);
    rig_close(rig);
    munmap(local, AREA);
    munmap(remote, AREA);
}

/* Memory that cannot be pinned fails without side effects. */
static void refuses_to_register(void)
{
    weft_rig *rig = rig_open(&row, false);
    weft_iface *iface = rig->a->iface;
    uint8_t *fixed = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    weft_mr mr;
    CHECK(weft_uring_ops.mr_reg(iface, fixed, 4096, 0, WEFT_MEMORY_HOST, &mr) == WEFT_E_UNSUPPORTED);
    munmap(fixed, 4096);
    CHECK(weft_uring_ops.mr_reg(iface, fixed, 4096, 0, WEFT_MEMORY_HOST, &mr) == WEFT_E_UNSUPPORTED);
    CHECK(weft_uring_ops.mr_reg(iface, fixed, URING_REGION_MAX + 1, 0, WEFT_MEMORY_HOST, &mr) == WEFT_E_UNSUPPORTED);
    CHECK(((uring_iface *)iface)->bufs.keys.live == 0);
    uint8_t *page = pages(4096, NULL);
    uint32_t count = 0;
    weft_mr *regions = calloc(URING_REGIONS + 1, sizeof *regions);
    while (count <= URING_REGIONS && weft_uring_ops.mr_reg(iface, page, 64, 0, WEFT_MEMORY_HOST, &regions[count]) == 0)
        count++;
    CHECK(count == URING_REGIONS);
    CHECK(weft_uring_ops.mr_reg(iface, page, 64, 0, WEFT_MEMORY_HOST, &mr) == WEFT_E_NOSPACE);
    while (count)
        CHECK(weft_uring_ops.mr_dereg(iface, &regions[--count]) == 0);
    free(regions);
    munmap(page, 4096);
    rig_close(rig);
}

/* In a child without the right to lock memory beyond the limit. 0: passed. */
static int register_unprivileged(void)
{
    static const weft_iface_callbacks callbacks;
    const weft_iface_params params = {.callbacks = &callbacks, .self = {1, 2, 0}, .local_rank = -1};
    struct rlimit limit = {1 << 20, 1 << 20};
    weft_iface *iface;
    weft_mr mr[3];
    uint8_t *area = pages(4 << 20, NULL);
    madvise(area, 4 << 20, MADV_NOHUGEPAGE); /* a huge page counts whole: nothing would be registered */
    if (setrlimit(RLIMIT_MEMLOCK, &limit) || (geteuid() == 0 && setresuid(64999, 64999, 64999)))
        return 77;
    if (weft_uring_ops.open(&params, &iface))
        return 77;
    if (iface->caps.mr_bytes_max != 1 << 20)
        return 1;
    if (weft_uring_ops.mr_reg(iface, area, 2 << 20, 0, WEFT_MEMORY_HOST, &mr[0]) != WEFT_E_NOSPACE)
        return 2;
    if (weft_uring_ops.mr_reg(iface, area, 3 << 18, 0, WEFT_MEMORY_HOST, &mr[0]))
        return 77; /* others of this user pin memory at the moment */
    if (weft_uring_ops.mr_reg(iface, area + (2 << 20), 1 << 19, 0, WEFT_MEMORY_HOST, &mr[1]) != WEFT_E_NOSPACE)
        return 3;
    if (weft_uring_ops.mr_dereg(iface, &mr[0]))
        return 4;
    for (int tries = 0; weft_uring_ops.mr_reg(iface, area + (2 << 20), 1 << 19, 0, WEFT_MEMORY_HOST, &mr[1]); tries++) {
        if (tries == 6000)
            return 5;
        usleep(10000); /* older kernels release pins a moment later */
    }
    return weft_uring_ops.mr_dereg(iface, &mr[1]) ? 6 : 0;
}

static void locked_memory_is_limited(void)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(register_unprivileged());
    waitpid(child, &status, 0);
    if (status >> 8 == 77)
        printf(" code 77 ");
    else
        SAME(status, 0); /* wait's: 256 times the code, or the signal */
}

/* -- two processes -- */

typedef struct offer { /* through a pipe */
    uring_iface_addr iface_addr;
    weft_rkey rkey;
    uint64_t addr;
} offer;

typedef struct remote_side {
    weft_iface *iface;
    weft_ep *ep;
    weft_proc_id other;
    uint32_t arrived, wrong, losts;
    bool has_bye;
} remote_side;

static void remote_arrive(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    remote_side *me = owner;
    me->wrong += peer != me || hdr->seq != me->arrived++ || !rig_is_pattern(body, hdr->seq, hdr->bytes);
    me->has_bye |= hdr->kind == WEFT_FRAME_BYE;
}

static void remote_done(void *owner, void *done, int rc)
{
    (void)owner;
    *(int *)done = rc ? rc : 1;
}

static void remote_notified(void *owner, void *peer, uint32_t notify)
{
    (void)owner;
    (void)peer;
    (void)notify;
}

static void remote_lost(void *owner, void *peer, int rc)
{
    remote_side *me = owner;
    me->losts++;
    me->wrong += peer != me || rc >= 0;
}

static void *remote_greet(void *owner, const weft_proc_id *proc_id)
{
    (void)owner;
    (void)proc_id;
    return NULL; /* both open their eps before they send */
}

static bool remote_open(remote_side *me, uint32_t rank)
{
    static const weft_iface_callbacks callbacks = {.recv_frame = remote_arrive, .done = remote_done, .notify = remote_notified,
                                                   .peer_failed = remote_lost, .accept_peer = remote_greet};
    const weft_iface_params params = {.owner = me, .callbacks = &callbacks, .self = {78, rank, 0}, .local_rank = -1};
    *me = (remote_side){.other = {78, 1 - rank, 0}};
    return weft_uring_ops.open(&params, &me->iface) == 0;
}

/* Polls, and sleeps on the wakeup when there is nothing. */
static void remote_wait(remote_side *me)
{
    weft_wakeup wakeup = {.fd = -1};
    if (weft_uring_ops.poll(me->iface, 16))
        return;
    weft_uring_ops.arm(me->iface, &wakeup);
    uint32_t losts = me->losts; /* peer_failed does not count as an event */
    if (weft_uring_ops.poll(me->iface, 16) == 0 && losts == me->losts) {
        struct pollfd fd = {.fd = wakeup.fd, .events = POLLIN};
        me->wrong += poll(&fd, 1, wakeup.within_ns ? 1 : SLEEP_MS) == 0 && !wakeup.within_ns && weft_uring_ops.poll(me->iface, 16) > 0;
    }
    weft_uring_ops.disarm(me->iface);
}

static int remote_send(remote_side *me, uint32_t seq, enum weft_frame_kind kind)
{
    uint8_t body[512];
    weft_frame frame = {.hdr = {.seq = seq, .kind = kind, .bytes = seq % 500}, .body = body};
    int rc;
    rig_pattern(body, seq, frame.hdr.bytes);
    while ((rc = weft_uring_ops.send(me->iface, me->ep, &frame)) == WEFT_AGAIN)
        remote_wait(me);
    return rc;
}

enum { SERVES_WELL, SENDS_AND_DIES, DIES_WHEN_SPOKEN_TO, KEEPS_SILENT };
#define LAST_FRAMES 40

/* The child exposes an area, does not poll, sends, and waits for the end; or a part of this. */
static int remote_serve(int in, int out, int manner)
{
    static remote_side me;
    offer own = {.addr = 0}, remote;
    uint8_t *area = pages(AREA, NULL);
    weft_mr mr;
    size_t bytes = sizeof own.iface_addr;
    alarm(HANG_S);
    rig_pattern(area, 5, AREA);
    if (!remote_open(&me, 1) || me.iface->ops->get_addr(me.iface, &own.iface_addr, &bytes) ||
        me.iface->ops->mr_reg(me.iface, area, AREA, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE, WEFT_MEMORY_HOST, &mr))
        return 2;
    own.rkey = mr.rkey;
    own.addr = (uintptr_t)area;
    if (write(out, &own, sizeof own) != sizeof own || read(in, &remote, sizeof remote) != sizeof remote)
        return 3;
    if (me.iface->ops->ep_open(me.iface, &me.other, &remote.iface_addr, sizeof remote.iface_addr, &me, &me.ep))
        return 4;
    for (uint32_t i = 0; manner != KEEPS_SILENT && i < (manner == SERVES_WELL ? 3000 : LAST_FRAMES); i++)
        if (remote_send(&me, i, WEFT_FRAME_EAGER))
            return 5;
    while (manner == DIES_WHEN_SPOKEN_TO && !me.arrived)
        remote_wait(&me);
    if (manner == SENDS_AND_DIES || manner == DIES_WHEN_SPOKEN_TO)
        return 0;
    sleep(1); /* in the meantime the HCA works */
    while (!me.has_bye)
        remote_wait(&me);
    while (me.iface->ops->ep_close(me.iface, me.ep) == WEFT_AGAIN)
        remote_wait(&me);
    me.iface->ops->mr_dereg(me.iface, &mr);
    me.iface->ops->close(me.iface);
    return me.wrong ? 6 : me.losts ? 7 : !rig_is_pattern(area, 6, AREA);
}

static pid_t remote_meet(remote_side *me, offer *remote, int manner)
{
    int there[2], back[2];
    offer own = {.addr = 0};
    size_t bytes = sizeof own.iface_addr;
    CU_ASSERT_FATAL(pipe(there) == 0 && pipe(back) == 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(remote_serve(there[0], back[1], manner));
    CU_ASSERT_FATAL(remote_open(me, 0) && me->iface->ops->get_addr(me->iface, &own.iface_addr, &bytes) == 0);
    CU_ASSERT_FATAL(read(back[0], remote, sizeof *remote) == sizeof *remote);
    CU_ASSERT_FATAL(write(there[1], &own, sizeof own) == sizeof own);
    CU_ASSERT_FATAL(me->iface->ops->ep_open(me->iface, &me->other, &remote->iface_addr, sizeof remote->iface_addr, me, &me->ep) == 0);
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(back[i]);
    }
    return child;
}

static int remote_move(remote_side *me, uint8_t *local, const weft_mr *mr, const offer *remote, bool is_get)
{
    int told = 0;
    weft_rma rma = {.local = local, .mr = mr, .remote = remote->addr, .rkey = &remote->rkey, .bytes = AREA,
                      .done = &told};
    int rc = is_get ? me->iface->ops->get(me->iface, me->ep, &rma) : me->iface->ops->put(me->iface, me->ep, &rma);
    while (rc == 0 && !told)
        remote_wait(me);
    return rc ? rc : told == 1 ? 0 : told;
}

static void two_processes(void)
{
    static remote_side me;
    offer remote;
    int status;
    uint8_t *area = pages(AREA, NULL);
    weft_mr mr;
    pid_t child = remote_meet(&me, &remote, SERVES_WELL);
    SAME(me.iface->ops->mr_reg(me.iface, area, AREA, 0, WEFT_MEMORY_HOST, &mr), 0);
    while (me.arrived < 3000)
        remote_wait(&me);
    SAME(remote_move(&me, area, &mr, &remote, true), 0);
    CU_ASSERT(rig_is_pattern(area, 5, AREA));
    rig_pattern(area, 6, AREA);
    SAME(remote_move(&me, area, &mr, &remote, false), 0);
    SAME(remote_send(&me, 0, WEFT_FRAME_BYE), 0);
    waitpid(child, &status, 0);
    SAME(status, 0);
    SAME(me.wrong, 0);
    SAME(me.losts, 0);
    SAME(me.iface->ops->mr_dereg(me.iface, &mr), 0);
    while (me.iface->ops->ep_close(me.iface, me.ep) == WEFT_AGAIN)
        remote_wait(&me);
    SAME(me.losts, 0);
    me.iface->ops->close(me.iface);
    munmap(area, AREA);
}

/* Killed at random times: rma ops end with or without an error, frames arrive in order without a gap, peer_failed is called once. */
static void killed_at(unsigned moment_us, int manner)
{
    static remote_side me;
    offer remote;
    int rc = 0;
    uint8_t *area = pages(AREA, NULL);
    weft_mr mr;
    pid_t child = remote_meet(&me, &remote, manner);
    time_t end = time(NULL) + 200;
    SAME(me.iface->ops->mr_reg(me.iface, area, AREA, 0, WEFT_MEMORY_HOST, &mr), 0);
    pid_t killer = fork();
    if (killer == 0) {
        usleep(moment_us);
        kill(child, SIGKILL);
        _exit(0);
    }
    while (rc == 0 && time(NULL) < end)
        rc = remote_move(&me, area, &mr, &remote, true);
    SAME(rc, WEFT_E_PEER);
    while (!me.losts && time(NULL) < end)
        remote_wait(&me);
    waitpid(child, NULL, 0);
    waitpid(killer, NULL, 0);
    for (int i = 0; i < 100; i++)
        weft_uring_ops.poll(me.iface, 16);
    SAME(me.losts, 1);
    SAME(me.wrong, 0);
    weft_frame frame = {.hdr = {.bytes = 0}};
    SAME(me.iface->ops->send(me.iface, me.ep, &frame), WEFT_E_PEER);
    SAME(me.iface->ops->mr_dereg(me.iface, &mr), 0);
    me.iface->ops->close(me.iface); /* a failed ep is not closed */
    munmap(area, AREA);
}

static void killed(void)
{
    for (unsigned i = 0; i < 8; i++)
        killed_at(i * 1300, SERVES_WELL);
    killed_at(20000, KEEPS_SILENT); /* no frame was ever sent: only rma can detect it */
}

/* The child's frames are received although it has ended before its socket was accepted: all of them, then peer_failed. */
static void expect_last_frames(remote_side *me)
{
    weft_frame frame = {.hdr = {.bytes = 0}};
    time_t end = time(NULL) + 200;
    while (!me->losts && time(NULL) < end)
        weft_uring_ops.poll(me->iface, 1);
    SAME(me->losts, 1);
    SAME(me->arrived, LAST_FRAMES);
    SAME(me->wrong, 0);
    SAME(me->iface->ops->send(me->iface, me->ep, &frame), WEFT_E_PEER);
    me->iface->ops->close(me->iface);
}

/* A socket to a killed peer ends at once; frames that the peer had sent can still be accepted and received. */
static void last_frames_come_first(void)
{
    static remote_side me;
    offer remote;
    int status;
    weft_frame frame = {.hdr = {.bytes = 0}};
    pid_t child = remote_meet(&me, &remote, DIES_WHEN_SPOKEN_TO);
    SAME(me.iface->ops->send(me.iface, me.ep, &frame), 0);
    waitpid(child, &status, 0);
    SAME(status, 0);
    expect_last_frames(&me);
}

/* The same when the peer has ended before the first frame to it: no socket can be connected. */
static void first_frame_is_too_late(void)
{
    static remote_side me;
    offer remote;
    int status;
    weft_frame frame = {.hdr = {.bytes = 0}};
    pid_t child = remote_meet(&me, &remote, SENDS_AND_DIES);
    waitpid(child, &status, 0);
    SAME(status, 0);
    SAME(me.iface->ops->send(me.iface, me.ep, &frame), WEFT_AGAIN); /* poll reports the failure, after the frames */
    expect_last_frames(&me);
}

static const struct { const char *name; void (*run)(void); } own_tests[] = {
    {"stale-registrations-are-detected", stale_registrations_are_detected}, {"long-rmas", long_rmas},
    {"flush-waits-long", flush_waits_long}, {"refuses-to-register", refuses_to_register},
    {"locked-memory-is-limited", locked_memory_is_limited}, {"two-processes", two_processes}, {"killed", killed},
    {"last-frames-come-first", last_frames_come_first}, {"first-frame-is-too-late", first_frame_is_too_late},
};

static void add_own_tests(CU_pSuite suite, const char *only)
{
    for (size_t i = 0; suite && i < weft_count(own_tests); i++)
        if (!only || strcmp(only, own_tests[i].name) == 0)
            CU_add_test(suite, own_tests[i].name, own_tests[i].run);
}

/* Bytes that this process may pin if that is too little for these tests: one fills the table with pages, several programs run at once, and
 * the kernel releases the pins of an ended process a moment later. 0: enough. */
static uint64_t limit_too_low(void)
{
    static const weft_iface_callbacks callbacks;
    const weft_iface_params params = {.callbacks = &callbacks, .self = {1, 2, 0}, .local_rank = -1};
    weft_iface *iface;
    if (weft_uring_ops.open(&params, &iface))
        return 0;
    uint64_t most = iface->caps.mr_bytes_max;
    weft_uring_ops.close(iface);
    return most < LOCKED_MIN ? most : 0;
}

int main(int argc, char **argv)
{
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    const char *only = argc > 1 + is_verbose ? argv[1 + is_verbose] : NULL, *why = weft_uring_ops.unavailable();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    if (only && strcmp(only, "--why") == 0)
        return 0;
    uint64_t limit = limit_too_low();
    if (limit) {
        printf("skipped: %llu bytes may be locked (ulimit -l) without CAP_IPC_LOCK, %u needed\n", (unsigned long long)limit, LOCKED_MIN);
        return 77;
    }
    prctl(PR_SET_TIMERSLACK, 1000);
    alarm(HANG_S);
    rig_patch = make_patient;
    rig_patience = 50;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("uring", NULL, NULL);
    rig_add_rooms(suite, only, run_named);
    add_own_tests(suite, only);
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
