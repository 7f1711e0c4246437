/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi: the contract suite over libfabric: the selected provider and rxm over tcp, each in a process of its own as libfabric selects a
 * provider once per process, or the named provider (sockets passes as well). An empty poll lets the kernel and the providers' threads run.
 * Skipped (77) where libfabric offers no provider. Then addresses: unreachable, of another process, of a killed peer; and bursts.
 *     ofi [-v] [provider [test]]
 */
#include <CUnit/Basic.h>
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "test/contract/ofi_breaks.h"
#include "test/contract/ofi_contact.h"
#include "test/contract/rig.h"
#include "transports/ofi/ofi.h"

/* For the leak checker: libfabric 1.17's net provider leaks a record per connection; its stack frames have no names. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfabric.so\n"; }

static const rig_row row = {.name = "ofi", .ops = &weft_ofi_ops, .seed = 41, .wants_fd = true};

/* The kernel carries the bytes: an empty poll yields the CPU, and sleeps some microseconds after many. */
static int poll_kindly(weft_iface *iface, int budget)
{
    static uint32_t idle;
    int events = weft_ofi_ops.poll(iface, budget);
    idle = events ? 0 : idle + 1;
    if (idle > 20 && idle % 16 == 0)
        usleep(2);
    else if (idle)
        sched_yield();
    return events;
}

/* How the current test changes the addresses that are published. */
static void (*edit)(ofi_iface_addr *addr);

static int addr_edited(weft_iface *iface, void *room, size_t *bytes)
{
    int rc = weft_ofi_ops.get_addr(iface, room, bytes);
    if (rc == 0 && edit)
        edit(room);
    return rc;
}

static void make_kind(weft_iface *iface)
{
    static weft_iface_ops kind;
    kind = *iface->ops;
    kind.poll = poll_kindly;
    kind.get_addr = addr_edited;
    iface->ops = &kind;
}

static void run_named(void) { rig_run_named(&row); }

/* -- addresses -- */

static void put_address(ofi_iface_addr *addr, uint32_t i, const char *text)
{
    struct in_addr address;
    inet_pton(AF_INET, text, &address);
    memcpy(addr->addresses + 5 * i, &address, 4);
    addr->addresses[5 * i + 4] = 0; /* any value */
}

static void dead_first(ofi_iface_addr *addr)
{
    put_address(addr, 0, "240.0.0.1"); /* unroutable */
    put_address(addr, 1, "127.0.0.1");
    addr->count = 2;
}

static bool is_ip(const weft_rig *rig) { return ((const ofi_iface *)rig->a->iface)->addr.form == OFI_FORM_IN; }

/* The first address is unreachable: the next one is used, and frames of both sides cross. */
static void tries_the_next(void)
{
    weft_rig *rig;
    edit = dead_first;
    rig = rig_open(&row, true);
    edit = NULL;
    for (int i = 0; rig && is_ip(rig) && i < 2; i++) {
        rig_side *from = i ? rig->b : rig->a, *to = from->other;
        weft_frame frame = {.hdr = {.seq = 1}};
        int rc = WEFT_AGAIN;
        for (int k = 0; k < 100000 && rc == WEFT_AGAIN; k++, usleep(50)) { /* the kernel reports it after a while */
            rc = from->ep ? from->iface->ops->send(from->iface, from->ep, &frame) : WEFT_AGAIN;
            rig_turn(rig);
        }
        CHECK(rc == 0);
        CHECK(rig_until(rig, &to->arrival_count, 1));
        CHECK(from->losts == 0);
    }
    if (rig)
        rig_close(rig);
}

/* Time does not advance: nothing is repeated. */
static uint64_t frozen_ns(void) { return 1000000000; }

static int try_send(rig_side *side)
{
    weft_frame frame = {.hdr = {.seq = 1}};
    ((ofi_iface *)side->iface)->progress_ns = 0; /* the next poll runs the handshakes, though no time has passed */
    return side->iface->ops->send(side->iface, side->ep, &frame);
}

/* Both sides send at once. Crossing connections would end each other, so the side of higher rank delays its own; no message is repeated. */
static void crossing_handshakes(void)
{
    weft_rig *rig = rig_open(&row, false);
    int rcs[2] = {WEFT_AGAIN, WEFT_AGAIN}, junior;
    if (!rig)
        return;
    for (int i = 0; i < 2; i++)
        ((ofi_iface *)rig->sides[i].iface)->now_ns = frozen_ns;
    junior = ((ofi_iface *)rig->sides[0].iface)->addr.nonce > ((ofi_iface *)rig->sides[1].iface)->addr.nonce;
    for (int k = 0; k < 20; k++) {
        CHECK(try_send(&rig->sides[junior]) == WEFT_AGAIN);
        rig_poll(&rig->sides[junior], 16);
    }
    CHECK(((ofi_ep *)rig->sides[junior].ep)->attempt == 0);
    for (int k = 0; k < 40000 && (rcs[0] || rcs[1] || !rig->a->arrival_count || !rig->b->arrival_count); k++, usleep(50)) {
        for (int i = 0; i < 2; i++)
            if (rcs[i] == WEFT_AGAIN)
                rcs[i] = try_send(&rig->sides[i]);
        rig_turn(rig);
    }
    CHECK(rcs[0] == 0 && rcs[1] == 0);
    CHECK(rig->a->arrival_count == 1 && rig->b->arrival_count == 1);
    for (int i = 0; i < 2; i++)
        ((ofi_iface *)rig->sides[i].iface)->now_ns = weft_clock_ns;
    rig_close(rig);
}

/* Sends to a changed address of b until peer_failed; returns the error text. */
static void lose_by(void (*change)(ofi_iface_addr *addr), const char *word)
{
    weft_rig *rig = rig_open(&row, true);
    weft_proc_id absent = {77, 9, 0};
    weft_frame frame = {.hdr = {.seq = 1}};
    ofi_iface_addr addr;
    size_t bytes = sizeof addr;
    weft_ep *ep = NULL;
    weft_iface *a;
    if (!rig)
        return;
    a = rig->a->iface;
    CHECK(weft_ofi_ops.get_addr(rig->b->iface, &addr, &bytes) == 0);
    change(&addr);
    CHECK(a->ops->ep_open(a, &absent, &addr, bytes, rig->a->other, &ep) == 0);
    for (int k = 0; ep && k < 400000 && !rig->a->losts; k++, usleep(50)) {
        if (a->ops->send(a, ep, &frame) != WEFT_AGAIN)
            break;
        rig_turn(rig);
    }
    CHECK(rig->a->losts == 1);
    CHECK(strstr(weft_fail_text(WEFT_E_PEER), word) != NULL && strstr(weft_fail_text(WEFT_E_PEER), "127.0.0.1:") != NULL);
    CHECK(ep && a->ops->send(a, ep, &frame) == WEFT_E_PEER && rig->b->greets == 0);
    CHECK(ep && a->ops->ep_close(a, ep) == 0);
    rig_close(rig);
}

static void gone(ofi_iface_addr *addr)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    close(fd); /* no listener */
    addr->port = address.sin_port;
}

static void error_lists_addresses(void) { lose_by(gone, "Connection refused"); }

/* A peer in its own process replies and is then killed: a side that only receives gets peer_failed. */
static void child_lives(int in, int out)
{
    weft_rig *rig = rig_open(&row, true); /* b is the peer; a is unused */
    ofi_iface_addr addr;
    size_t bytes = sizeof addr;
    weft_proc_id parent = {77, 8, 0};
    weft_ep *ep;
    weft_frame frame = {.hdr = {.seq = 1}};
    if (!rig || weft_ofi_ops.get_addr(rig->b->iface, &addr, &bytes) || write(out, &addr, bytes) != (ssize_t)bytes ||
        read(in, &addr, bytes) != (ssize_t)bytes ||
        rig->b->iface->ops->ep_open(rig->b->iface, &parent, &addr, bytes, rig->a, &ep))
        _exit(1);
    while (rig->b->iface->ops->send(rig->b->iface, ep, &frame) == WEFT_AGAIN)
        rig_poll(rig->b, 16);
    for (;;)
        rig_poll(rig->b, 16);
}

static void reports_killed_peer(void)
{
    int up[2], down[2];
    pid_t child;
    weft_rig *rig;
    ofi_iface_addr addr;
    size_t bytes = sizeof addr;
    weft_proc_id remote = {77, 1, 0};
    weft_ep *ep = NULL;
    CHECK(pipe(up) == 0 && pipe(down) == 0);
    child = fork(); /* before this process opens an iface */
    if (child == 0)
        child_lives(down[0], up[1]);
    rig = rig_open(&row, true);
    if (rig) {
        weft_iface *a = rig->a->iface;
        ((ofi_iface *)a)->self.rank = 8;
        CHECK(a->ops->ep_close(a, rig->a->ep) == 0); /* the ep to this process's b is not used */
        CHECK(weft_ofi_ops.get_addr(a, &addr, &bytes) == 0 && write(down[1], &addr, bytes) == (ssize_t)bytes);
        CHECK(read(up[0], &addr, bytes) == (ssize_t)bytes);
        CHECK(a->ops->ep_open(a, &remote, &addr, bytes, rig->a->other, &ep) == 0);
        rig->a->ep = ep;
        for (int k = 0; k < 200000 && !rig->a->arrival_count; k++, usleep(50))
            rig_poll(rig->a, 16);
        CHECK(rig->a->arrival_count == 1);
        kill(child, SIGKILL);
        for (int k = 0; k < 600000 && !rig->a->losts; k++, usleep(50))
            rig_poll(rig->a, 16);
        CHECK(rig->a->losts == 1 && rig->a->lost_rc_bad == 0);
        CHECK(strstr(weft_fail_text(WEFT_E_PEER), "refused") != NULL);
        rig_close(rig);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (int i = 0; i < 2; i++) {
        close(up[i]);
        close(down[i]);
    }
}

/* Both close at once; the first to receive the other's close has closed its listener before the other polls: neither waits for a reply. */
static void crossing_closes(void)
{
    weft_rig *rig = rig_open(&row, false);
    weft_frame frame = {.hdr = {.seq = 1}};
    rig_side *side;
    int rc = WEFT_AGAIN;
    if (!rig)
        return;
    CHECK(rig_send(rig->a, &frame) == 0 && rig_send(rig->b, &frame) == 0);
    CHECK(rig_until(rig, &rig->a->arrival_count, 1) && rig_until(rig, &rig->b->arrival_count, 1));
    rig_settle(rig);
    for (int i = 0; i < 2; i++) {
        side = &rig->sides[i];
        CHECK(side->iface->ops->ep_close(side->iface, side->ep) == WEFT_AGAIN);
        ((ofi_iface *)side->iface)->progress_ns = 0;
        ofi_handshake_turn((ofi_iface *)side->iface); /* sends, receives nothing */
        CHECK(((ofi_ep *)side->ep)->called_ns != 0);
    }
    for (int i = 1; i >= 0; i--) { /* each one alone */
        side = &rig->sides[i];
        for (int k = 0; k < 1000000 && (rc = side->iface->ops->ep_close(side->iface, side->ep)) == WEFT_AGAIN; k++, usleep(50))
            rig_poll(side, 16);
        CHECK(rc == 0);
        side->iface->ops->close(side->iface);
        side->iface = NULL;
        side->ep = NULL;
    }
    CHECK(rig->a->losts == 0 && rig->b->losts == 0);
    rig_close(rig);
}

static weft_rig *open_met(void)
{
    weft_rig *rig = rig_open(&row, true);
    weft_frame frame = {.hdr = {.seq = 1}};
    if (!rig)
        return NULL;
    CHECK(rig_send(rig->a, &frame) == 0);
    CHECK(rig_until(rig, &rig->b->arrival_count, 1));
    return rig;
}

/* -- processes outside the job, which can reach the port but do not know its nonce -- */

/* A handshake or a frame whose nonce differs in one bit has no effect and gets no answer. */
static void ignores_strangers(void)
{
    weft_rig *rig = rig_open(&row, true);
    weft_frame frame = {.hdr = {.seq = 1}};
    ofi_ep *ep;
    ofi_iface *b;
    if (!rig)
        return;
    ep = (ofi_ep *)rig->a->ep;
    b = (ofi_iface *)rig->b->iface;
    ep->addr.nonce ^= 1ull << 40;
    CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == WEFT_AGAIN); /* begins the handshake */
    rig_settle(rig);
    CHECK(rig->b->greets == 0 && b->counts[OFI_COUNT_HANDSHAKES] == 0 && weft_list_is_empty(&b->eps));
    ep->addr.nonce ^= 1ull << 40;
    CHECK(rig_send(rig->a, &frame) == 0);
    CHECK(rig_until(rig, &rig->b->arrival_count, 1));
    ep->addr.nonce ^= 1ull << 40;
    CHECK(rig_send(rig->a, &frame) == 0);
    rig_settle(rig);
    CHECK(rig->b->arrival_count == 1 && rig->b->losts == 0);
    ep->addr.nonce ^= 1ull << 40;
    rig_close(rig);
}

enum { KEY_CHECK = 24 }; /* where a remote key has its checksum; it begins with the provider's key */

/* A valid remote key, but for the provider's key, which is `key`. */
static weft_rkey forged(const weft_mr *mr, uint64_t key)
{
    weft_rkey rkey = mr->rkey;
    uint32_t sum = 2166136261u;
    memcpy(rkey.bytes, &key, sizeof key);
    memset(rkey.bytes + KEY_CHECK, 0, sizeof sum);
    for (size_t i = 0; i < rkey.length; i++)
        sum = (sum ^ rkey.bytes[i]) * 16777619u;
    memcpy(rkey.bytes + KEY_CHECK, &sum, sizeof sum);
    return rkey;
}

/* The key gives access to the memory. Small numbers and neighbours of the key do not. */
static void keys_are_not_guessed(void)
{
    weft_rig *rig = open_met();
    uint64_t target = 1, source = 3, key;
    weft_mr mr, mine;
    if (!rig)
        return;
    CHECK(rig_map(rig->b, &target, sizeof target, WEFT_ACCESS_WRITE, &mr) == 0);
    CHECK(rig_map(rig->a, &source, sizeof source, 0, &mine) == 0);
    memcpy(&key, mr.rkey.bytes, sizeof key);
    for (int i = 0; i < 5; i++) {
        weft_rkey rkey = forged(&mr, i < 3 ? (uint64_t)i + 1 : key - 1 + 2 * (uint64_t)(i - 3));
        weft_rma rma = {.local = &source, .mr = &mine, .remote = (uintptr_t)&target, .rkey = &rkey, .bytes = sizeof source};
        CHECK(rig_move_wait(rig->a, rma, false) == WEFT_E_KEY && target == 1);
    }
    weft_rkey right = forged(&mr, key);
    weft_rma rma = {.local = &source, .mr = &mine, .remote = (uintptr_t)&target, .rkey = &right, .bytes = sizeof source};
    CHECK(rig_move_wait(rig->a, rma, false) == 0 && target == 3);
    CHECK(rig->a->iface->ops->mr_dereg(rig->a->iface, &mine) == 0 && rig->b->iface->ops->mr_dereg(rig->b->iface, &mr) == 0);
    rig_close(rig);
}

/* -- bursts -- */

/* Sends frames 2 and on of lengths bytes(n) without a poll between; they arrive in order, unchanged. */
static void send_burst(weft_rig *rig, uint32_t count, uint32_t (*bytes)(uint32_t i), uint8_t *body)
{
    for (uint32_t i = 2; i < count + 2; i++) {
        weft_frame frame = {.hdr = {.seq = i, .bytes = bytes(i)}, .body = body};
        rig_pattern(body, i, frame.hdr.bytes);
        CHECK(rig->a->iface->ops->send(rig->a->iface, rig->a->ep, &frame) == 0);
    }
}

static void check_burst(const weft_rig *rig, uint32_t count, uint32_t (*bytes)(uint32_t i))
{
    CHECK(rig->b->arrival_count == count + 1);
    for (uint32_t i = 1; i < rig->b->arrival_count; i++) {
        const rig_arrival *one = &rig->b->arrivals[i];
        CHECK(one->hdr.seq == i + 1 && one->hdr.bytes == bytes(i + 1) && one->is_aligned &&
              rig_is_pattern(one->body, i + 1, one->hdr.bytes));
    }
}

static uint32_t short_ones(uint32_t i) { return i % 50; }

/* Coalesced into few messages; the last ones are flushed although the sender never polls again. */
static void gathers_a_burst(void)
{
    enum { COUNT = 300 };
    weft_rig *rig = open_met();
    uint8_t body[64];
    const ofi_iface *a;
    if (!rig)
        return;
    a = (const ofi_iface *)rig->a->iface;
    send_burst(rig, COUNT, short_ones, body);
    CHECK(a->counts[OFI_COUNT_COALESCED_FRAMES] > COUNT * 9 / 10 && a->counts[OFI_COUNT_COALESCED_MESSAGES] < COUNT / 10);
    for (int k = 0; k < 600000 && rig->b->arrival_count < COUNT + 1; k++, usleep(50))
        rig_poll(rig->b, 64);
    check_burst(rig, COUNT, short_ones);
    CHECK(a->flusher.direct_max == 2);
    rig_turn(rig);
    CHECK(a->flusher.direct_max == 8); /* the flusher had to send: direct_max grows */
    rig_close(rig);
}

static uint32_t all_lengths(uint32_t i) { return i % 7 == 3 ? 33000 + i : i % 5 == 1 ? 20000 + i : i * 37 % 3000; }

/* Long frames between short ones, and a notification, keep their order. */
static void keeps_order_in_a_burst(void)
{
    enum { COUNT = 40 };
    weft_rig *rig = open_met();
    static uint8_t body[65536];
    if (!rig)
        return;
    if (rig->a->iface->caps.frame_max > 33100) { /* TCP without rxm */
        send_burst(rig, COUNT, all_lengths, body);
        CHECK(ofi_notify((ofi_iface *)rig->a->iface, (ofi_ep *)rig->a->ep, 7) == 0);
        CHECK(rig_until(rig, &rig->b->notifies, 1));
        check_burst(rig, COUNT, all_lengths);
    }
    rig_close(rig);
}

/* Frames coalesced for a peer that is closed are dropped and freed. */
static void drops_a_burst(void)
{
    weft_rig *rig = open_met();
    uint8_t body[64];
    if (!rig)
        return;
    send_burst(rig, 30, short_ones, body);
    ofi_peer_failed((ofi_iface *)rig->a->iface, (ofi_ep *)rig->a->ep, "the test says so");
    CHECK(rig->a->losts == 1 && weft_list_is_empty(&((ofi_iface *)rig->a->iface)->coalescing));
    rig_close(rig);
}

/* -- resets; by plain TCP only -- */

static bool keeps(void)
{
    weft_rig *rig = rig_open(&row, true);
    bool does = rig && ((const ofi_iface *)rig->a->iface)->keeps;
    if (rig)
        rig_close(rig);
    return does;
}

static void survives_resets(void)
{
    const char *seed = getenv("WEFT_TEST_SEED");
    uint64_t resent = 0;
    if (!keeps())
        return;
    for (uint64_t i = 1; i <= 4; i++)
        resent += breaks_random(&row, seed ? strtoull(seed, NULL, 0) + i - 1 : i);
    CHECK(resent > 0);
}

static void puts_over_a_bad_line(void)
{
    if (keeps())
        breaks_long_fragments(&row);
}

static void resends_the_last_frame(void)
{
    if (keeps())
        breaks_last_frame(&row);
}

static void resends_before_a_close(void)
{
    if (keeps())
        breaks_before_close(&row);
}

static void gives_bodies_back(void)
{
    if (keeps())
        breaks_late_copy(&row);
}

static const struct { const char *name; void (*run)(void); } reach_tests[] = {
    {"survives-resets", survives_resets}, {"puts-over-a-bad-line", puts_over_a_bad_line},
    {"resends-the-last-frame", resends_the_last_frame},
    {"resends-before-a-close", resends_before_a_close}, {"gives-bodies-back", gives_bodies_back},
    {"gathers-a-burst", gathers_a_burst}, {"keeps-order-in-a-burst", keeps_order_in_a_burst}, {"drops-a-burst", drops_a_burst},
    {"reports-killed-peer", reports_killed_peer}, {"tries-the-next", tries_the_next}, {"crossing-handshakes", crossing_handshakes},
    {"ignores-strangers", ignores_strangers}, {"keys-are-not-guessed", keys_are_not_guessed},
    {"error-lists-addresses", error_lists_addresses}, {"crossing-closes", crossing_closes},
};

static void add_reach_tests(CU_pSuite suite, const char *only)
{
    for (size_t i = 0; suite && i < weft_count(reach_tests); i++)
        if (!only || strcmp(only, reach_tests[i].name) == 0)
            CU_add_test(suite, reach_tests[i].name, reach_tests[i].run);
    for (const contact_test *one = contact_tests; suite && one->name && !strchr(weft_knob.ofi_provider, ';'); one++)
        if (!only || strcmp(only, one->name) == 0)
            CU_add_test(suite, one->name, one->run);
}

static int run(const char *provider, const char *only, bool is_verbose)
{
    const char *why;
    unsigned failed;
    setenv("WEFT_OFI_PROVIDER", provider, 1);
    weft_knobs_load(true);
    why = weft_ofi_ops.unavailable();
    if (why) {
        printf("skipped: %s\n", why);
        return 77;
    }
    rig_patch = make_kind;
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    if (strncmp(provider, "tcp", 3) == 0 || strncmp(provider, "net", 3) == 0 || (only && strcmp(provider, "sockets") == 0))
        add_reach_tests(CU_add_suite("addresses", NULL, NULL), only);
    rig_add_rooms(CU_add_suite(provider, NULL, NULL), only, run_named);
    CU_basic_set_mode(is_verbose ? CU_BRM_VERBOSE : CU_BRM_NORMAL);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

/* The provider that a job would use. */
static const char *chosen(void)
{
    static const char *const names[] = {"net", "tcp"};
    for (size_t i = 0; i < weft_count(names); i++) {
        setenv("WEFT_OFI_PROVIDER", names[i], 1);
        weft_knobs_load(true);
        if (!weft_ofi_ops.unavailable())
            return names[i];
    }
    return "tcp;ofi_rxm";
}

/* In a child, so that libfabric's settings and loaded providers end with it. */
static int run_apart(const char *provider, const char *only, bool is_verbose)
{
    int status = 0;
    pid_t child;
    fflush(NULL);
    child = fork();
    if (child == 0)
        exit(run(provider ? provider : chosen(), only, is_verbose));
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    bool is_verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    int first = 1 + is_verbose, rc, layered, trial;
#ifdef __SANITIZE_THREAD__
    printf("skipped: libfabric's threads are not seen by this sanitizer\n");
    return 77;
#endif
    if (argc > first)
        return run(argv[first], argc > first + 1 ? argv[first + 1] : NULL, is_verbose);
    rc = run_apart(NULL, NULL, is_verbose);
    layered = run_apart("tcp;ofi_rxm", NULL, is_verbose);
    trial = run_apart("sockets", "crossing-closes", is_verbose); /* a late reply finds its connection closed */
    return layered && layered != 77 ? layered : trial && trial != 77 ? trial : rc;
}
