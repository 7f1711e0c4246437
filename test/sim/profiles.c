/* SPDX-License-Identifier: BSD-3-Clause
 *
 * profiles: the simulator does what its profiles say. Ifaces alone, without the library: each fault is observed from both ends, and without
 * the fault the same observation finds nothing. The runs of the whole library over these profiles depend on this.
 */
#include <CUnit/Basic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "test/transports/sim/sim.h"

#define RANKS 3
#define AREA 65536

typedef struct side {
    weft_iface *iface;
    weft_ep *eps[RANKS];
    uint32_t arrived, lost, ended;
    int last_rc;
    uint64_t arrived_ns[64];
} side;

typedef struct net {
    weft_sim *sim;
    side sides[RANKS];
} net;

static net now;
static _Alignas(4096) uint8_t here[AREA], there[AREA];
#define ALL (WEFT_ACCESS_READ | WEFT_ACCESS_WRITE | WEFT_ACCESS_ATOMIC)

static void up_recv_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    side *me = owner;
    (void)peer;
    (void)hdr;
    (void)body;
    if (me->arrived < 64)
        me->arrived_ns[me->arrived] = weft_sim_now_ns(now.sim);
    me->arrived++;
}

static void up_done(void *owner, void *done, int rc)
{
    side *me = owner;
    (void)done;
    me->ended++;
    me->last_rc = rc;
}

static void up_notified(void *owner, void *peer, uint32_t notify)
{
    (void)owner;
    (void)peer;
    (void)notify;
}

static void up_peer_failed(void *owner, void *peer, int rc)
{
    side *me = owner;
    (void)peer;
    (void)rc;
    me->lost++;
}

static void *on_accept(void *owner, const weft_proc_id *proc_id)
{
    (void)owner;
    (void)proc_id;
    return NULL;
}

static void net_open(const weft_sim_profile *profile, uint64_t seed)
{
    static const weft_iface_callbacks callbacks = {.recv_frame = up_recv_frame, .done = up_done, .notify = up_notified,
                                                   .peer_failed = up_peer_failed, .accept_peer = on_accept};
    memset(&now, 0, sizeof now);
    now.sim = weft_sim_open(profile, seed);
    for (uint32_t i = 0; i < RANKS; i++) {
        weft_iface_params params = {.owner = &now.sides[i], .callbacks = &callbacks, .self = {7, i, 0}, .segment = now.sim,
                                    .local_rank = -1};
        CU_ASSERT_FATAL(weft_sim_ops.open(&params, &now.sides[i].iface) == 0);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        for (uint32_t j = 0; j < RANKS; j++) {
            weft_proc_id proc_id = {7, j, 0};
            if (i != j)
                CU_ASSERT_FATAL(weft_sim_ops.ep_open(now.sides[i].iface, &proc_id, NULL, 0, &now.sides[j], &now.sides[i].eps[j]) == 0);
        }
}

static void net_close(void)
{
    for (uint32_t i = 0; i < RANKS; i++)
        weft_sim_ops.close(now.sides[i].iface);
    weft_sim_close(now.sim);
}

static uint64_t counted(enum weft_sim_count which) { return weft_sim_counter(now.sim, which); }

static void turn(void)
{
    for (uint32_t i = 0; i < RANKS; i++)
        weft_sim_ops.poll(now.sides[i].iface, 16);
}

static weft_mr map(uint32_t rank, void *addr, uint64_t bytes, uint32_t rights)
{
    weft_mr mr = {0};
    int rc = -1;
    for (int i = 0; i < 100 && rc; i++)
        rc = weft_sim_ops.mr_reg(now.sides[rank].iface, addr, bytes, rights, WEFT_MEMORY_HOST, &mr);
    CU_ASSERT(rc == 0);
    return mr;
}

static int start(bool is_get, const weft_mr *local, const weft_mr *remote, uint64_t at, uint64_t bytes)
{
    weft_rma rma = {.local = here + at, .mr = local, .remote = (uintptr_t)there + at, .rkey = &remote->rkey, .bytes = bytes,
                      .done = &now};
    weft_ep *ep = now.sides[0].eps[1];
    return is_get ? weft_sim_ops.get(now.sides[0].iface, ep, &rma) : weft_sim_ops.put(now.sides[0].iface, ep, &rma);
}

static int send_one(uint32_t from, uint32_t to)
{
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER}};
    return weft_sim_ops.send(now.sides[from].iface, now.sides[from].eps[to], &frame);
}

/* Observes lines of `to` change from 0 to 1. Counts later lines written before an earlier one, and those of them before the end was
 * notified. */
static uint32_t gaps_seen(const uint8_t *to, uint64_t bytes)
{
    uint32_t gaps = 0;
    for (int i = 0; i < 2000 && !now.sides[0].ended; i++) {
        bool missing = false, gap = false;
        for (uint64_t at = 0; at < bytes; at += 64) {
            gap |= missing && to[at];
            missing |= !to[at];
        }
        gaps += gap;
        turn();
    }
    CU_ASSERT(now.sides[0].ended == 1 && now.sides[0].last_rc == 0);
    for (uint64_t at = 0; at < bytes; at++)
        if (to[at] != 1) {
            CU_FAIL("a line never came");
            break;
        }
    return gaps;
}

static void lines_in_any_order(void)
{
    for (int torn = 0; torn < 2; torn++)
        for (int is_get = 0; is_get < 2; is_get++) {
            weft_sim_profile profile = {.name = "own", .delay_ns = 30000, .torn = torn, .mr_local = true};
            net_open(&profile, 5);
            weft_mr local = map(0, here, AREA, 0), remote = map(1, there, AREA, ALL);
            memset(here, !is_get, AREA);
            memset(there, is_get, AREA);
            CU_ASSERT(start(is_get, &local, &remote, 0, 8192) == 0);
            uint32_t gaps = gaps_seen(is_get ? here : there, 8192);
            CU_ASSERT(torn ? gaps > 3 && counted(WEFT_SIM_TORN) == 1 : gaps == 0 && counted(WEFT_SIM_TORN) == 0);
            net_close();
        }
}

static void pins_cost_time(void)
{
    weft_sim_profile profile = {.name = "own", .delay_ns = 10, .wants_regcache = true, .pin_ns = 5000, .pin_page_ns = 100};
    weft_mr mr;
    net_open(&profile, 1);
    CU_ASSERT(now.sides[0].iface->caps.wants_regcache);
    uint64_t before = weft_sim_now_ns(now.sim);
    CU_ASSERT(weft_sim_ops.mr_reg(now.sides[0].iface, here, 8 * 4096, 0, WEFT_MEMORY_HOST, &mr) == 0);
    CU_ASSERT(weft_sim_now_ns(now.sim) - before == 5000 + 8 * 100);
    CU_ASSERT(weft_sim_ops.mr_reg(now.sides[0].iface, here + 4095, 2, 0, WEFT_MEMORY_HOST, &mr) == 0);
    CU_ASSERT(weft_sim_now_ns(now.sim) - before == 2 * 5000 + 10 * 100); /* two bytes on two pages */
    CU_ASSERT(counted(WEFT_SIM_PIN_NS) == 2 * 5000 + 10 * 100 && counted(WEFT_SIM_REGS) == 2);
    net_close();
}

static void limits_hold(void)
{
    for (int told = 0; told < 2; told++) {
        weft_sim_profile profile = {.name = "own", .delay_ns = 10, .wants_regcache = true, .mr_bytes_max = 20000, .mr_count_max = 3,
                                    .limits_in_caps = told};
        weft_mr regions[4];
        net_open(&profile, 1);
        weft_iface *iface = now.sides[0].iface;
        CU_ASSERT(iface->caps.mr_bytes_max == (told ? 20000 : 0) && iface->caps.mr_count_max == (told ? 3 : 0));
        for (int i = 0; i < 3; i++)
            CU_ASSERT(weft_sim_ops.mr_reg(iface, here, 4096, 0, WEFT_MEMORY_HOST, &regions[i]) == 0);
        CU_ASSERT(weft_sim_ops.mr_reg(iface, here, 4096, 0, WEFT_MEMORY_HOST, &regions[3]) == WEFT_E_NOSPACE);
        CU_ASSERT(weft_sim_ops.mr_dereg(iface, &regions[1]) == 0);
        CU_ASSERT(weft_sim_ops.mr_reg(iface, here, 12000, 0, WEFT_MEMORY_HOST, &regions[3]) == WEFT_E_NOMEM);
        CU_ASSERT(weft_sim_ops.mr_reg(iface, here, 11000, 0, WEFT_MEMORY_HOST, &regions[3]) == 0);
        CU_ASSERT(counted(WEFT_SIM_REGS_REFUSED) == 2);
        net_close();
    }
}

/* Among twenty rma of one flow, counts those that overtook an older one. */
static uint64_t overtaken(uint8_t rails)
{
    weft_sim_profile profile = {.name = "own", .delay_ns = 8000, .rails = rails};
    net_open(&profile, 9);
    CU_ASSERT(now.sides[0].iface->caps.rails == rails);
    weft_mr remote = map(1, there, AREA, ALL);
    for (uint64_t i = 0; i < 20; i++)
        CU_ASSERT(start(false, NULL, &remote, i * 100, 100) == 0);
    while (now.sides[0].ended < 20)
        turn();
    uint64_t count = counted(WEFT_SIM_OVERTAKEN);
    net_close();
    return count;
}

static void rails_overtake(void)
{
    CU_ASSERT(overtaken(1) == 0);
    CU_ASSERT(overtaken(3) > 3);
    CU_ASSERT(overtaken(0) > 3);
}

/* Longest idle time on a link that always has data. */
static uint64_t longest_silence(uint32_t flap_ns)
{
    weft_sim_profile profile = {.name = "own", .delay_ns = 500, .flap_every_ns = flap_ns ? 40000 : 0, .flap_ns = flap_ns};
    uint64_t longest = 0;
    net_open(&profile, 3);
    while (now.sides[1].arrived < 60) {
        if (counted(WEFT_SIM_FRAMES) < 60)
            send_one(0, 1);
        for (int i = 0; i < 8; i++)
            turn();
    }
    for (int i = 1; i < 60; i++)
        if (now.sides[1].arrived_ns[i] - now.sides[1].arrived_ns[i - 1] > longest)
            longest = now.sides[1].arrived_ns[i] - now.sides[1].arrived_ns[i - 1];
    CU_ASSERT((counted(WEFT_SIM_FLAPPED) > 2) == (flap_ns != 0));
    net_close();
    return longest;
}

static void links_flap(void)
{
    CU_ASSERT(longest_silence(20000) > 18000);
    CU_ASSERT(longest_silence(0) < 10000);
}

static void queues_fill(void)
{
    weft_sim_profile profile = {.name = "own", .delay_ns = 100, .queue = 3};
    net_open(&profile, 1);
    weft_mr remote = map(1, there, AREA, ALL);
    for (uint64_t i = 0; i < 3; i++)
        CU_ASSERT(start(false, NULL, &remote, i * 100, 100) == 0);
    for (int i = 0; i < 100; i++)
        weft_sim_ops.poll(now.sides[1].iface, 16); /* time passes and all completes, but this side was not polled */
    CU_ASSERT(start(false, NULL, &remote, 0, 100) == WEFT_AGAIN);
    CU_ASSERT(counted(WEFT_SIM_QUEUE_FULL) == 1 && now.sides[0].ended == 0);
    weft_sim_ops.poll(now.sides[0].iface, 1);
    CU_ASSERT(now.sides[0].ended == 1 && start(false, NULL, &remote, 0, 100) == 0);
    net_close();
}

static void arms_are_refused(void)
{
    weft_sim_profile profile = {.name = "own", .delay_ns = 100, .arm_again_permille = 500};
    uint32_t in_a_row = 0, max = 0, armed = 0;
    net_open(&profile, 1);
    for (int i = 0; i < 300; i++) {
        weft_wakeup wakeup;
        int rc = weft_sim_ops.arm(now.sides[0].iface, &wakeup);
        in_a_row = rc == WEFT_AGAIN ? in_a_row + 1 : 0;
        max = in_a_row > max ? in_a_row : max;
        armed += rc == 0;
        if (rc == 0)
            weft_sim_ops.disarm(now.sides[0].iface);
    }
    CU_ASSERT(max > 1 && max <= 4 && armed > 50 && counted(WEFT_SIM_ARMS_REFUSED) == 300 - armed);
    net_close();
}

/* Of many arrivals at an armed iface some raise the wakeup and some do not; then the wakeup states within which time to poll. */
static void some_arrivals_raise_no_wakeup(void)
{
    weft_sim_profile profile = {.name = "own", .delay_ns = 100, .unrung_permille = 300, .timer_ns = 7000};
    uint32_t rung = 0;
    net_open(&profile, 1);
    for (uint32_t i = 0; i < 100; i++) {
        weft_wakeup wakeup;
        CU_ASSERT(weft_sim_ops.arm(now.sides[1].iface, &wakeup) == 0 && wakeup.within_ns == 7000);
        send_one(0, 1);
        for (int k = 0; k < 20; k++)
            weft_sim_ops.poll(now.sides[0].iface, 1);
        rung += *wakeup.futex != wakeup.value;
        weft_sim_ops.poll(now.sides[1].iface, 16);
        weft_sim_ops.disarm(now.sides[1].iface);
    }
    CU_ASSERT(now.sides[1].arrived == 100 && rung > 50 && rung < 90 && counted(WEFT_SIM_UNRAISED) == 100 - rung);
    net_close();
}

static void connections_fail(void)
{
    weft_sim_profile profile = {.name = "own", .delay_ns = 1000, .cut_permille = 200};
    uint32_t posted = 0, refused = 0;
    net_open(&profile, 1);
    weft_mr remote = map(1, there, AREA, ALL);
    for (int i = 0; i < 3000 && !refused; i++) {
        int rc = start(false, NULL, &remote, 0, 100);
        posted += rc == 0;
        refused += rc == WEFT_E_PEER;
        turn();
    }
    for (int i = 0; i < 1000; i++)
        turn();
    CU_ASSERT(refused == 1 && posted > 0 && now.sides[0].ended == posted); /* each completion is reported, also of failed operations */
    CU_ASSERT(now.sides[0].last_rc == WEFT_E_PEER && counted(WEFT_SIM_CUT) == 1);
    CU_ASSERT(now.sides[0].lost == 1 && now.sides[1].lost == 1 && now.sides[2].lost == 0);
    CU_ASSERT(send_one(1, 0) == WEFT_E_PEER);
    CU_ASSERT(send_one(2, 0) == 0 && send_one(2, 1) == 0); /* operations to others continue */
    for (int i = 0; i < 1000; i++)
        turn();
    CU_ASSERT(now.sides[0].arrived == 1 && now.sides[1].arrived == 1);
    net_close();
}

static uint32_t wrong_bits(const uint8_t *at, uint64_t bytes)
{
    uint32_t count = 0;
    for (uint64_t i = 0; i < bytes; i++)
        count += (uint32_t)__builtin_popcount(at[i]);
    return count;
}

static void rma_bits_are_flipped(void)
{
    for (int is_get = 0; is_get < 2; is_get++)
        for (int prompt = 0; prompt < 2; prompt++)
            for (int torn = 0; torn < 2; torn++) {
                weft_sim_profile profile = {.name = "own", .delay_ns = 100, .flip_rma_permille = 1000, .torn = torn,
                                            .prompt_permille = prompt ? 1000 : 0};
                net_open(&profile, 4);
                weft_mr remote = map(1, there, AREA, ALL);
                memset(here, 0, AREA);
                memset(there, 0, AREA);
                CU_ASSERT(start(is_get, NULL, &remote, 0, 1000) == 0);
                for (int i = 0; i < 100; i++)
                    turn();
                CU_ASSERT(now.sides[0].ended == 1 && counted(WEFT_SIM_RMA_FLIPPED) == 1);
                CU_ASSERT(wrong_bits(is_get ? here : there, AREA) == 1 && wrong_bits(is_get ? there : here, AREA) == 0);
                net_close();
            }
}

static void *map_and_unmap(void *arg)
{
    uint32_t *rounds = arg;
    for (*rounds = 0; *rounds < 3000; (*rounds)++) {
        weft_mr mr;
        weft_iface *iface = now.sides[1].iface;
        if (weft_sim_ops.mr_reg(iface, there + *rounds % 1000, 4096, ALL, WEFT_MEMORY_HOST, &mr) ||
            weft_sim_ops.mr_dereg(iface, &mr))
            break;
    }
    return NULL;
}

/* A helper thread registers while rma requests rkeys; the next poll of the iface is charged for the registration. */
static void any_thread_registers(void)
{
    weft_sim_profile profile = {.name = "own", .delay_ns = 100, .wants_regcache = true, .pin_ns = 10};
    pthread_t thread;
    uint32_t rounds = 0, started = 0;
    net_open(&profile, 1);
    weft_mr remote = map(1, there, AREA, ALL);
    CU_ASSERT(pthread_create(&thread, NULL, map_and_unmap, &rounds) == 0);
    for (uint32_t i = 0; i < 3000; i++) {
        started += start(false, NULL, &remote, 0, 64) == 0;
        turn();
    }
    pthread_join(thread, NULL);
    for (int i = 0; i < 200; i++)
        turn();
    CU_ASSERT(rounds == 3000 && started > 2000 && now.sides[0].ended == started && now.sides[0].last_rc == 0);
    CU_ASSERT(counted(WEFT_SIM_PIN_NS) == 3001 * 10 && counted(WEFT_SIM_KEYS_REFUSED) == 0);
    net_close();
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {{"lines in any order", lines_in_any_order}, {"registrations cost time", pins_cost_time}, {"limits apply", limits_hold},
             {"rails overtake", rails_overtake}, {"links flap", links_flap}, {"queues fill", queues_fill},
             {"arms are refused", arms_are_refused}, {"some arrivals raise no wakeup", some_arrivals_raise_no_wakeup},
             {"connections fail", connections_fail},
             {"bits of rma are flipped", rma_bits_are_flipped}, {"any thread registers", any_thread_registers}};

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("profiles of the simulator", NULL, NULL);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        CU_add_test(suite, tests[i].name, tests[i].run);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
