/* SPDX-License-Identifier: BSD-3-Clause
 *
 * run: schedules ranks as fibres on one thread, by the seed, in virtual time. If no rank can run, time advances to the next event; without
 * one the run ends with a report of what each rank waits for.
 */
#include "test/transports/sim/run.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/transports/sim/sim.h"

#define STEP_LIMIT 50000000u
#define QUIET_LIMIT 300000u /* switches in which nothing was sent, received or moved: all turn in circles */
#define STACK_BYTES (1u << 20)
#define HASTE_AFTER 1000u   /* switches in which nothing got on ... */
#define HASTE_NS 200u       /* ... each more makes time so much faster, for as many again */
#define NET_ROUNDS 4000u    /* timers of another network that fire without progress: a peer timeout may take seconds */

/* The one run of this process: boots and programs have no argument that leads to it. */
static sim_run *running;

sim_run *sim_run_now(void)
{
    return running;
}

static void hand_over(sim_run *run)
{
    sim_rank *me = run->now;
    me->world = weft_world_now;
    me->model = weft_world_model;
    weft_fibre_pause(me->fibre);
    weft_world_now = me->world;
    weft_world_model = me->model;
}

void sim_run_yield(sim_run *run, const char *waits_for)
{
    sim_rank *me = run->now;
    me->waits_for = waits_for;
    hand_over(run);
    me->waits_for = NULL;
}

uint64_t weft_sim_run_ns(void)
{
    return running ? running->sim->now : 0;
}

void weft_sim_yield(void)
{
    if (running && running->now)
        sim_run_yield(running, "the program itself");
}

static sim_nic *nic_of(weft_sim *sim, uint32_t rank)
{
    for (uint32_t i = 0; i < sim->nic_count; i++)
        if (sim->nics[i]->proc_id.rank == rank)
            return sim->nics[i];
    return NULL;
}

void weft_sim_cut(uint32_t rank)
{
    weft_sim *sim = running->sim;
    sim_nic *from = nic_of(sim, running->now->rank), *to = nic_of(sim, rank);
    sim_flow *flow = from && to ? sim_flow_of(from, to) : NULL;
    if (flow && from != to && flow->is_open && !flow->is_cut)
        sim_cut(sim, flow);
}

void weft_sim_sound(bool is_sound)
{
    if (running)
        running->sim->is_sound = is_sound;
}

void sim_run_abort(sim_run *run, int code, const char *text)
{
    run->is_aborted = true;
    run->abort_code = code;
    snprintf(run->text, sizeof run->text, "%s", text);
    run->now->state = SIM_DEAD;
    for (;;)
        hand_over(run);
}

/* A poll was empty: other ranks may run here too, so that loops over MPI_Test end and runs cover more interleavings. */
static void on_idle(void *arg)
{
    sim_run *run = arg;
    sim_rank *me = run->now;
    if (!me)
        return;
    if (++me->dull >= 8 || (sim_random(run->sim) & 1)) {
        me->dull = 0;
        hand_over(run);
    }
}

static void on_death(void *arg, uint32_t rank)
{
    sim_run *run = arg;
    (void)rank;
    run->now->state = SIM_DEAD;
    for (;;)
        hand_over(run);
}

/* Registration takes virtual time; other ranks run meanwhile. */
static void on_busy(void *arg, uint64_t ns)
{
    sim_run *run = arg;
    sim_rank *me = run->now;
    if (!me) {
        sim_advance(run->sim, ns);
        return;
    }
    if (me->is_aside) {
        me->aside_ns += ns;
        return;
    }
    me->wake_ns = run->sim->now + ns;
    me->state = SIM_BUSY;
    hand_over(run);
    me->state = SIM_READY;
}

void weft_sim_compute(uint64_t ns)
{
    if (running && running->now && running->config->net)
        on_busy(running, ns);
}

/* -- another network -- */

static void pass(sim_run *run, uint64_t ns)
{
    sim_advance(run->sim, ns);
    if (run->config->net)
        run->config->net->advance(run->sim->now);
}

static uint64_t next_due(const sim_run *run)
{
    uint64_t own = sim_next_due(run->sim), net = run->config->net ? run->config->net->next_due() : UINT64_MAX;
    return own < net ? own : net;
}

static uint64_t activity(const sim_run *run)
{
    return run->sim->activity + (run->config->net ? *run->config->net->activity : 0);
}

int weft_sim_rank(void)
{
    return running && running->now ? (int)running->now->rank : -1;
}

void weft_sim_enter(void)
{
    sim_run *run = running;
    if (!run || !run->now)
        return;
    const weft_sim_config *config = run->config;
    if (++run->now->calls != config->kill_step || !config->kill || run->now->rank != config->kill_rank)
        return;
    run->sim->counts[WEFT_SIM_KILLED]++;
    config->net->ended(run->now->rank);
    on_death(run, run->now->rank);
}

void weft_sim_pass(uint64_t ns)
{
    if (running && running->now && running->now->is_aside)
        running->now->aside_ns += ns;
    else if (running)
        pass(running, ns);
}

void weft_sim_idle(void)
{
    if (running)
        on_idle(running);
}

/* -- waiting, for core/wait -- */

/* Clears completions older than the end of a sleep: the rank tests for them before it sleeps again. A later one ends the next sleep. */
static void forget_done(sim_rank *rank, uint64_t now)
{
    uint32_t n = 0;
    while (n < rank->helper_count && rank->helper_done[n] <= now)
        n++;
    if (n)
        memmove(rank->helper_done, rank->helper_done + n, (rank->helper_count -= n) * sizeof *rank->helper_done);
}

static bool rest_sleep(weft_worker *worker, const weft_wakeup *wakeups, uint32_t count, uint64_t limit_ns)
{
    sim_run *run = running;
    sim_rank *me = run->now;
    (void)worker;
    me->wakeups = wakeups;
    me->wakeup_count = count;
    me->rings_seen = UINT64_MAX;
    me->wake_ns = run->sim->now + limit_ns;
    me->has_timer = false;
    for (uint32_t i = 0; i < count; i++)
        me->has_timer |= wakeups[i].within_ns != 0;
    me->state = SIM_ASLEEP;
    hand_over(run);
    me->state = SIM_READY;
    forget_done(me, run->sim->now);
    return me->by_limit;
}

/* A simulated rank has one thread: no other thread of its worker can sleep. Its helper wakes it by helper_done. */
static void rest_wake(weft_worker *worker)
{
    (void)worker;
}

/* The helper does one piece of work after the other. */
static uint64_t rest_aside(bool begins)
{
    sim_run *run = running;
    sim_rank *me = run->now;
    me->is_aside = begins;
    if (begins) {
        me->aside_ns = 0;
        return run->sim->now;
    }
    if (me->helper_count == me->helper_room) {
        me->helper_room = me->helper_room ? 2 * me->helper_room : 16;
        me->helper_done = realloc(me->helper_done, me->helper_room * sizeof *me->helper_done);
        if (!me->helper_done)
            sim_run_abort(run, 1, "no memory for the helper's work");
    }
    me->helper_free_ns = (me->helper_free_ns > run->sim->now ? me->helper_free_ns : run->sim->now) + me->aside_ns;
    me->helper_done[me->helper_count++] = me->helper_free_ns;
    return me->helper_free_ns;
}

static uint64_t rest_now_ns(void) { return weft_sim_run_ns(); }

const weft_sleep_ops sim_rest = {.sleep = rest_sleep, .wake = rest_wake, .aside = rest_aside, .now_ns = rest_now_ns};

/* When the helper next wakes the rank; UINT64_MAX: it has nothing to do. */
static uint64_t helper_due(const sim_rank *rank)
{
    return rank->helper_count ? rank->helper_done[0] : UINT64_MAX;
}

/* -- the scheduler -- */

static int at_exit(void (*call)(void))
{
    running->now->exit_call = call;
    return 0;
}

static void run_rank(void *arg)
{
    sim_rank *me = arg;
    me->code = me->run->program((int)me->rank, me->run->arg);
    if (me->exit_call)
        me->exit_call();
    me->state = SIM_OVER;
}

static bool is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

static bool has_rung(sim_rank *rank)
{
    const weft_sim_net *net = rank->run->config->net;
    bool looks = net && rank->rings_seen != *net->rings;
    for (uint32_t i = 0; i < rank->wakeup_count; i++) {
        const weft_wakeup *wakeup = &rank->wakeups[i];
        if ((wakeup->futex && *wakeup->futex != wakeup->value) || (looks && wakeup->fd >= 0 && is_readable(wakeup->fd)))
            return true;
    }
    if (net)
        rank->rings_seen = *net->rings;
    return rank->wakeup_count == 0;
}

static bool can_run(sim_run *run, sim_rank *rank)
{
    if (rank->state == SIM_READY)
        return true;
    if (rank->state == SIM_BUSY)
        return run->sim->now >= rank->wake_ns;
    if (rank->state != SIM_ASLEEP)
        return false;
    if (has_rung(rank) || helper_due(rank) <= run->sim->now) {
        rank->by_limit = false;
        return true;
    }
    rank->by_limit = run->sim->now >= rank->wake_ns;
    return rank->by_limit;
}

static sim_rank *choose(sim_run *run)
{
    uint32_t size = run->config->ranks, count = 0;
    sim_rank *chosen = NULL;
    for (uint32_t i = 0; i < size; i++)
        if (can_run(run, &run->ranks[i]) && sim_random(run->sim) % ++count == 0)
            chosen = &run->ranks[i];
    if (chosen && chosen->is_slow && count > 1 && sim_random(run->sim) % 16)
        return choose(run);
    return chosen;
}

/* What a rank that runs or sleeps is doing, in words. */
static void describe(const sim_rank *rank, char *text, size_t room)
{
    static const char *const whys[] = {"nothing", "send", "receive", "probe", "requests", "collective", "finalize", "launch",
                                       "registration"};
    const weft_page_status *status = &rank->world->page->status;
    uint32_t why = atomic_load(&status->why);
    snprintf(text, room, "waits for %s, peer %d tag %d, %" PRIu64 " bytes", why < weft_count(whys) ? whys[why] : "?",
             atomic_load(&status->peer), atomic_load(&status->tag), (uint64_t)atomic_load(&status->bytes));
}

/* A sleeper's own limit is all that is left: had its wakeup been raised, it would not have come to this. */
static void note_late_wake(sim_run *run, const sim_rank *rank)
{
    char text[200];
    run->sim->counts[WEFT_SIM_LOST_WAKEUPS]++;
    describe(rank, text, sizeof text);
    snprintf(run->text, sizeof run->text, "rank %u slept to its limit: %s", rank->rank, text);
}

/* Time at which the first rank can run by itself: its work or its helper's is done, or an iface's timer fires. */
static uint64_t next_turn(const sim_run *run)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < run->config->ranks; i++) {
        const sim_rank *rank = &run->ranks[i];
        bool is_sure = rank->state == SIM_BUSY || (rank->state == SIM_ASLEEP && rank->has_timer);
        if (is_sure && rank->wake_ns < next)
            next = rank->wake_ns;
        if (rank->state == SIM_ASLEEP && helper_due(rank) < next)
            next = helper_due(rank);
    }
    return next;
}

static bool is_anyone_busy(const sim_run *run)
{
    for (uint32_t i = 0; i < run->config->ranks; i++)
        if (run->ranks[i].state == SIM_BUSY || (run->ranks[i].state == SIM_ASLEEP && run->ranks[i].helper_count))
            return true;
    return false;
}

/* No rank can run: advances time to the next event; false: there is none. */
static bool jump(sim_run *run)
{
    weft_sim *sim = run->sim;
    uint64_t next = next_due(run), turn = next_turn(run);
    if (next == UINT64_MAX && turn != UINT64_MAX) {
        /* timers repeat without end: counts only the first few without progress. A rank that registers memory is not idle. */
        if (!is_anyone_busy(run) && ++run->idle_rounds > (run->config->net ? NET_ROUNDS : 4) * (run->config->ranks + 1))
            return false;
        next = turn;
    } else if (turn < next) {
        next = turn;
    } else if (next == UINT64_MAX) {
        /* only sleepers' own limits are left. A few rounds of them may still get things going: a lost wake-up, or what a long wait does */
        if (++run->idle_rounds > 2 * run->config->ranks + 4)
            return false;
        sim_rank *first = NULL;
        for (uint32_t i = 0; i < run->config->ranks; i++)
            if (run->ranks[i].state == SIM_ASLEEP && run->ranks[i].wake_ns < next)
                next = (first = &run->ranks[i])->wake_ns;
        if (!first)
            return false;
        note_late_wake(run, first);
    }
    pass(run, next > sim->now ? next - sim->now : 0);
    return true;
}

static const char *state_name(const sim_rank *rank)
{
    static const char *const names[] = {"runs", "sleeps", "pins memory", "has ended", "is dead"};
    return names[rank->state];
}

static void report(sim_run *run, const char *what)
{
    FILE *out = stderr;
    snprintf(run->text, sizeof run->text, "%s", what);
    if (run->config->is_quiet)
        return;
    fprintf(out, "sim: %s after %" PRIu64 " switches\n", what, run->steps);
    for (uint32_t i = 0; i < run->config->ranks; i++) {
        const sim_rank *rank = &run->ranks[i];
        fprintf(out, "sim:   rank %u %s", i, state_name(rank));
        if (rank->state == SIM_OVER)
            fprintf(out, " (returned %d)", rank->code);
        if (rank->waits_for)
            fprintf(out, ", waits for %s", rank->waits_for);
        if (rank->world && rank->state < SIM_OVER) {
            char text[200];
            describe(rank, text, sizeof text);
            fprintf(out, ", in %s", text);
        }
        fputc('\n', out);
    }
    weft_sim_print(run->sim, out);
}

static void resume(sim_run *run, sim_rank *rank)
{
    weft_sim *sim = run->sim;
    run->steps++;
    sim->counts[WEFT_SIM_SWITCHES]++;
    run->now = rank;
    weft_world_now = rank->world;
    weft_world_model = rank->model;
    weft_boot_state *state_before = weft_boot_now;
    weft_boot_now = &rank->boot_state;
    bool goes_on = weft_fibre_resume(rank->fibre);
    weft_boot_now = state_before;
    weft_world_now = weft_world_model = NULL;
    run->now = NULL;
    /* a rank that ended without closing its iface is as dead as one that was killed */
    if (!goes_on && run->config->net)
        run->config->net->ended(rank->rank);
    if (!goes_on)
        for (uint32_t i = 0; i < sim->nic_count; i++)
            if (sim->nics[i]->proc_id.rank == rank->rank && sim->nics[i]->iface && !sim->nics[i]->is_dead)
                weft_sim_kill(sim, rank->rank);
}

/* On another network some waits take seconds (retries, peer timeouts), in which polling ranks would take millions of turns: without
 * progress time advances faster. */
static uint64_t haste(const sim_run *run)
{
    uint64_t quiet = run->steps - run->quiet_since;
    if (!run->config->net || quiet < HASTE_AFTER)
        return 0;
    quiet -= HASTE_AFTER;
    return (quiet < HASTE_AFTER ? quiet : HASTE_AFTER) * HASTE_NS;
}

/* Until all are over: 0, or WEFT_E_TIMEOUT. */
static int schedule(sim_run *run)
{
    weft_sim *sim = run->sim;
    uint64_t limit = run->config->step_limit ? run->config->step_limit : STEP_LIMIT;
    for (;;) {
        bool is_live = false;
        for (uint32_t i = 0; i < run->config->ranks; i++)
            is_live |= run->ranks[i].state < SIM_OVER;
        if (!is_live || run->is_aborted)
            return 0;
        pass(run, 10 + sim_random(sim) % 50 + haste(run));
        sim_rank *rank = choose(run);
        if (rank)
            resume(run, rank);
        else if (!jump(run)) {
            report(run, "everybody waits for ever");
            return WEFT_E_TIMEOUT;
        }
        if (activity(run) != run->last_activity) {
            run->idle_rounds = 0;
            run->last_activity = activity(run);
            run->quiet_since = run->steps;
        }
        if (run->steps - run->quiet_since > QUIET_LIMIT || run->steps > limit) {
            report(run, run->steps > limit ? "the limit of steps is reached" : "everybody turns in circles");
            return WEFT_E_TIMEOUT;
        }
    }
}

/* -- begin and end -- */

static int begin(sim_run *run)
{
    const weft_sim_config *config = run->config;
    uint32_t per_node = config->ranks_per_node ? config->ranks_per_node : config->ranks;
    run->sim = weft_sim_open(config->profile ? config->profile : weft_sim_profile_find("calm"), config->seed);
    run->ranks = calloc(config->ranks, sizeof *run->ranks);
    run->node_of = calloc(config->ranks, sizeof *run->node_of);
    run->stages = calloc(config->ranks, sizeof *run->stages);
    run->local_of = calloc(config->ranks, sizeof *run->local_of);
    if (!run->sim || !run->ranks || !run->node_of || !run->stages || !run->local_of)
        return weft_fail(WEFT_E_NOMEM, "no memory for %u simulated ranks", config->ranks);
    run->sim->idle = on_idle;
    run->sim->died = on_death;
    run->sim->busy = on_busy;
    run->sim->hook_arg = run;
    if (config->kill)
        weft_sim_kill_at(run->sim, config->kill_rank, config->kill_step);
    for (uint32_t i = 0; i < config->ranks; i++) {
        sim_rank *rank = &run->ranks[i];
        run->node_of[i] = i / per_node;
        run->local_of[i] = i % per_node;
        *rank = (sim_rank){.run = run, .rank = i, .code = INT32_MIN, .is_slow = sim_random(run->sim) % 8 == 0,
                           .boot_state = {.at_exit = at_exit}};
        rank->fibre = weft_fibre_new(run_rank, rank, config->stack_bytes ? config->stack_bytes : STACK_BYTES);
        if (!rank->fibre)
            return weft_fail(WEFT_E_NOMEM, "no memory for the stack of simulated rank %u", i);
    }
    return 0;
}

static int result(sim_run *run, int rc)
{
    if (rc)
        return rc;
    if (run->is_aborted)
        return run->abort_code ? run->abort_code : 1;
    for (uint32_t i = 0; i < run->config->ranks; i++)
        if (run->ranks[i].code && run->ranks[i].state == SIM_OVER)
            return run->ranks[i].code;
    return 0;
}

static void tell(sim_run *run, int rc)
{
    weft_sim_report *out = run->config->report;
    for (uint32_t i = 0; run->config->codes && i < run->config->ranks; i++)
        run->config->codes[i] = run->ranks[i].code;
    if (!out)
        return;
    out->deadlocked = rc == WEFT_E_TIMEOUT;
    out->aborted = run->is_aborted;
    out->abort_code = run->abort_code;
    out->rc = result(run, rc);
    snprintf(out->text, sizeof out->text, "%s", run->text);
    out->steps = run->steps;
    out->now_ns = run->sim->now;
    memcpy(out->counts, run->sim->counts, sizeof out->counts);
}

int weft_sim_run(const weft_sim_config *config, int (*program)(int rank, void *arg), void *arg)
{
    sim_run run = {.config = config, .program = program, .arg = arg};
    weft_boot *(*hook_before)(void) = weft_boot_hook;
    weft_world *world_before = weft_world_now, *model_before = weft_world_model;
    if (running)
        return weft_fail(WEFT_E_ARG, "one simulated run at a time: this one was asked for inside another");
    if (!config->ranks)
        return weft_fail(WEFT_E_ARG, "a run needs at least one rank");
    weft_list_init(&run.pairs);
    running = &run;
    weft_boot_hook = sim_boot_new;
    int rc = begin(&run);
    if (!rc) {
        rc = schedule(&run);
        tell(&run, rc);
        rc = result(&run, rc);
    }
    for (uint32_t i = 0; run.ranks && i < config->ranks; i++)
        weft_fibre_free(run.ranks[i].fibre);
    for (uint32_t i = 0; run.ranks && i < config->ranks; i++)
        free(run.ranks[i].helper_done);
    if (run.sim)
        weft_sim_close(run.sim);
    sim_pairs_free(&run);
    free(run.ranks);
    free(run.node_of);
    free(run.stages);
    free(run.local_of);
    weft_world_now = world_before;
    weft_world_model = model_before;
    weft_boot_hook = hook_before;
    running = NULL;
    return rc;
}
