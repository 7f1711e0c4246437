/* SPDX-License-Identifier: BSD-3-Clause
 *
 * processes: the contract between two processes on one segment: echo with real sleeps, CMA, and death by SIGKILL.
 * contract.c tests each rule within one process. An alarm ends a process that hangs.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/status.h"
#include "mem/segment.h"
#include "test/contract/rig.h"
#include "transport/iface.h"

#define SLEEP_S 30     /* a sleep this long with a frame waiting is a lost wake-up */
#define HANG_S 500
#define ECHOES 4000
#define WINDOW 60
#define AREA 100000u

typedef struct side {
    weft_iface *iface;
    weft_ep *ep;
    weft_proc_id other;
    uint32_t arrived, wrong, losts, lost_wakeups, sleeps;
    bool has_bye, is_echo;
    uint64_t remote_addr;
    struct { weft_hdr hdr; uint8_t body[512]; } owed[2 * WINDOW]; /* echoes that found the iface full */
    uint32_t owed_first, owed_count;
} side;

static int try_send(side *me, const weft_hdr *hdr, const void *body)
{
    weft_frame frame = {.hdr = *hdr, .body = body};
    return me->iface->ops->send(me->iface, me->ep, &frame);
}

static void on_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    side *me = owner;
    me->wrong += peer != &me->other;
    if (hdr->kind == WEFT_FRAME_BYE) {
        me->has_bye = true;
    } else if (hdr->kind == WEFT_FRAME_FIN) {
        memcpy(&me->remote_addr, body, sizeof me->remote_addr);
    } else {
        me->wrong += hdr->seq != me->arrived++ || !rig_is_pattern(body, hdr->seq, hdr->bytes);
        if (me->is_echo && (me->owed_count || try_send(me, hdr, body))) {
            uint32_t at = (me->owed_first + me->owed_count++) % weft_count(me->owed);
            me->owed[at].hdr = *hdr;
            memcpy(me->owed[at].body, body, hdr->bytes);
        }
    }
}

static void done(void *owner, void *what, int rc)
{
    (void)owner;
    *(int *)what = rc ? rc : 1;
}

static void notified(void *owner, void *peer, uint32_t notify)
{
    (void)owner;
    (void)peer;
    (void)notify;
}

static void on_failed(void *owner, void *peer, int rc)
{
    side *me = owner;
    me->losts++;
    me->wrong += peer != &me->other || rc >= 0;
}

static int reach(side *me)
{
    uint32_t local = me->other.rank; /* shm's address: the index on the node */
    return me->iface->ops->ep_open(me->iface, &me->other, &local, sizeof local, &me->other, &me->ep);
}

static void *on_accept(void *owner, const weft_proc_id *proc_id)
{
    side *me = owner;
    return proc_id->rank == me->other.rank && reach(me) == 0 ? &me->other : NULL;
}

static bool side_open(side *me, weft_segment *segment, uint32_t local)
{
    static const weft_iface_callbacks callbacks = {.recv_frame = on_frame, .done = done, .notify = notified, .peer_failed = on_failed,
                                                   .accept_peer = on_accept};
    memset(me, 0, sizeof *me);
    me->other = (weft_proc_id){77, 1 - local, 0};
    weft_iface_params params = {.owner = me, .callbacks = &callbacks, .self = {77, local, 0}, .segment = segment, .local_rank = (int)local};
    return weft_shm_ops.open(&params, &me->iface) == 0;
}

static int look(side *me)
{
    int n = me->iface->ops->poll(me->iface, 16);
    while (me->owed_count && try_send(me, &me->owed[me->owed_first].hdr, me->owed[me->owed_first].body) == 0) {
        me->owed_first = (me->owed_first + 1) % weft_count(me->owed);
        me->owed_count--;
        n++;
    }
    return n;
}

/* As core/wait.c: poll, arm, poll again, sleep. */
static void wait_a_turn(side *me)
{
    struct timespec limit = {SLEEP_S, 0};
    weft_wakeup wakeup = {.fd = -1};
    if (look(me))
        return;
    me->iface->ops->arm(me->iface, &wakeup);
    bool late = false;
    uint32_t losts = me->losts; /* peer_failed does not count as an event */
    if (!look(me) && losts == me->losts) {
        me->sleeps++;
        late = syscall(SYS_futex, wakeup.futex, FUTEX_WAIT, wakeup.value, &limit, NULL, 0) && errno == ETIMEDOUT;
    }
    me->iface->ops->disarm(me->iface);
    if (late && look(me))
        me->lost_wakeups++;
}

static int serve(weft_segment *segment)
{
    static side me;
    static uint8_t area[AREA];
    uint64_t addr = (uintptr_t)area;
    weft_hdr hdr = {.kind = WEFT_FRAME_FIN, .bytes = sizeof addr};
    alarm(HANG_S);
    if (!side_open(&me, segment, 1) || reach(&me))
        return 2;
    me.is_echo = true;
    rig_pattern(area, 9, AREA);
    while (try_send(&me, &hdr, &addr))
        look(&me);
    while (!me.has_bye || me.owed_count)
        wait_a_turn(&me);
    while (me.iface->ops->ep_close(me.iface, me.ep) == WEFT_AGAIN)
        look(&me);
    me.iface->ops->close(me.iface);
    return me.wrong ? 3 : me.lost_wakeups ? 4 : me.losts ? 5 : !rig_is_pattern(area + 5, 10, AREA - 5);
}

static pid_t spawn(weft_segment *segment)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(serve(segment));
    return child;
}

static void echo_all(side *me)
{
    uint64_t random = 12345;
    uint32_t sent = 0, max = ECHOES;
    while (me->arrived < max) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        weft_hdr hdr = {.seq = sent, .kind = WEFT_FRAME_EAGER, .bytes = (uint32_t)(random >> 40) % 500};
        uint8_t body[512];
        rig_pattern(body, sent, hdr.bytes);
        if (sent < max && sent - me->arrived < WINDOW && try_send(me, &hdr, body) == 0) {
            sent++;
            if (random >> 60 == 0)
                usleep(300); /* the other side falls asleep */
        } else {
            wait_a_turn(me);
        }
        if (me->arrived == max && !me->sleeps) /* or nothing was shown about waking */
            max += WINDOW;
    }
}

static void move_all(side *me)
{
    uint8_t *local = malloc(AREA);
    static const weft_rkey rkey;
    int told = 0;
    weft_rma rma = {.local = local, .remote = me->remote_addr, .rkey = &rkey, .bytes = AREA, .done = &told};
    if (me->iface->ops->can_rma(me->iface, me->ep)) {
        CU_ASSERT(me->iface->ops->get(me->iface, me->ep, &rma) == 0);
        CU_ASSERT(told == 1 && rig_is_pattern(local, 9, AREA));
    } else {
        CU_ASSERT(me->iface->ops->get(me->iface, me->ep, &rma) == WEFT_E_UNSUPPORTED && told == 0);
    }
    free(local);
}

/* The child checks the pattern at its end: returns 0 if intact, else 1. */
static bool put_back(side *me)
{
    uint8_t *local = malloc(AREA);
    static const weft_rkey rkey;
    weft_rma rma = {.local = local, .remote = me->remote_addr + 5, .rkey = &rkey, .bytes = AREA - 5};
    rig_pattern(local, 10, AREA);
    bool can = me->iface->ops->can_rma(me->iface, me->ep);
    CU_ASSERT(me->iface->ops->put(me->iface, me->ep, &rma) == (can ? 0 : WEFT_E_UNSUPPORTED));
    free(local);
    return can;
}

static void two_processes(void)
{
    static side me;
    weft_segment segment;
    weft_hdr bye = {.kind = WEFT_FRAME_BYE};
    int status = 0;
    CU_ASSERT_FATAL(weft_segment_make(2, 77, 0, &segment) == 0);
    pid_t child = spawn(&segment);
    CU_ASSERT_FATAL(side_open(&me, &segment, 0));
    while (!me.remote_addr)
        wait_a_turn(&me);
    echo_all(&me);
    move_all(&me);
    bool can_put = put_back(&me);
    while (try_send(&me, &bye, NULL))
        look(&me);
    waitpid(child, &status, 0);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == (can_put ? 0 : 1));
    CU_ASSERT(me.arrived >= ECHOES && me.wrong == 0 && me.lost_wakeups == 0 && me.losts == 0);
    CU_ASSERT(me.sleeps > 0);
    printf("\n    %u echoes, slept %u times ", me.arrived, me.sleeps);
    while (me.iface->ops->ep_close(me.iface, me.ep) == WEFT_AGAIN)
        look(&me);
    me.iface->ops->close(me.iface);
    weft_segment_close(&segment);
}

/* Acts as the launcher: marks the dead rank's page and wakes the peer. */
static void killed(void)
{
    static side me;
    weft_segment segment;
    CU_ASSERT_FATAL(weft_segment_make(2, 77, 0, &segment) == 0);
    pid_t child = spawn(&segment);
    CU_ASSERT_FATAL(side_open(&me, &segment, 0));
    while (!me.remote_addr)
        wait_a_turn(&me);
    weft_hdr hdr = {.kind = WEFT_FRAME_EAGER};
    for (uint32_t i = 0; i < 20; i++, hdr.seq = i)
        try_send(&me, &hdr, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    atomic_store(&weft_segment_rank(&segment, 1)->state, WEFT_RANK_DEAD);
    weft_page_wake(weft_segment_rank(&segment, 0));
    time_t end = time(NULL) + 200;
    while (!me.losts && time(NULL) < end)
        wait_a_turn(&me);
    CU_ASSERT(me.losts == 1 && me.wrong == 0);
    for (int i = 0; i < 1000; i++)
        look(&me);
    CU_ASSERT(me.losts == 1);
    me.iface->ops->close(me.iface);
    weft_segment_close(&segment);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    alarm(HANG_S);
    CU_pSuite suite = CU_add_suite("shm between two processes", NULL, NULL);
    CU_add_test(suite, "echo, sleep, copy", two_processes);
    CU_add_test(suite, "killed", killed);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
