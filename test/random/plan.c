/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan: the steps of a program, and its run. Step i is drawn from (seed, i) and the objects that exist at that place; a step that is left
 * out (--only-steps) changes later ones only as far as they used its objects.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

static const struct {
    const char *name;
    uint32_t weight;
    void (*plan)(rp *, rp_step *);
    void (*run)(rp *, rp_step *);
} kinds[] = {
#define KIND(name, weight) {#name, weight, plan_##name, run_##name}
    KIND(messages, 30), KIND(wild, 6), KIND(shift, 8), KIND(pair, 3), KIND(start, 8), KIND(unpair, 1), KIND(cancel, 3), KIND(greq, 2),
    KIND(coll, 10), KIND(colls, 4), KIND(dup, 4), KIND(finish_dup, 2), KIND(split, 3), KIND(create, 3), KIND(inter, 2), KIND(merge, 1),
    KIND(topology, 3), KIND(session, 1), KIND(free, 9), KIND(queries, 3), KIND(groups, 3), KIND(types, 3), KIND(pack, 3),
    KIND(window, 6), KIND(access, 24), KIND(unwindow, 2)};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

void rp_say(rp_step *step, const char *format, ...)
{
    size_t used = strlen(step->text);
    va_list args;
    va_start(args, format);
    vsnprintf(step->text + used, sizeof step->text - used, format, args);
    va_end(args);
}

uint64_t rp_key(const rp *rp, uint32_t step, int source, uint32_t nth)
{
    return rp_hash(rp_hash(rp->seed, step), (uint64_t)(source + 2) << 32 | nth << 1);
}

void rp_plan(rp *rp, rp_step *step, uint32_t index)
{
    uint32_t all = 0, drawn;
    memset(step, 0, sizeof *step);
    step->index = index;
    step->dice.state = rp_hash(rp->seed, (uint64_t)index + 1000);
    for (int i = 0; i < KINDS; i++)
        all += kinds[i].weight;
    drawn = rp_draw(&step->dice, all);
    while (drawn >= kinds[step->kind].weight)
        drawn -= kinds[step->kind++].weight;
    kinds[step->kind].plan(rp, step);
}

static bool is_performed(const rp_options *options, uint32_t index) { return !options->only || options->only[index]; }

/* The plan is drawn again from its beginning, in a copy that has no handles. */
void rp_list(const rp *rp, uint32_t first, uint32_t last)
{
    struct rp *copy = rp_alloc(sizeof *copy);
    copy->options = rp->options;
    copy->seed = rp->seed;
    copy->rank = rp->rank;
    copy->size = rp->size;
    copy->comms[0] = rp->comms[0];
    copy->comms[0].marks = -1;
    for (uint32_t i = 0; i < rp->options->steps && i <= last; i++) {
        if (!is_performed(rp->options, i))
            continue;
        rp_plan(copy, &copy->step, i);
        if (i >= first)
            fprintf(stderr, "  %s step %u %s: %s\n", i == rp->now ? "*" : " ", i, kinds[copy->step.kind].name, copy->step.text);
    }
    free(copy);
}

void rp_fail(rp *rp, const char *format, ...)
{
    char text[500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "random: FAILED: seed %llu, step %u, rank %d of %d, thread %d: %s\n", (unsigned long long)rp->options->seed, rp->now,
            rp->rank, rp->size, rp->thread, text);
    rp_list(rp, rp->now > 6 ? rp->now - 6 : 0, rp->now + 3);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void rp_check(rp *rp, int code, const char *call, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    rp_fail(rp, "line %d: %.60s: code %d, %.300s", line, call, code, text);
}

void *rp_alloc(size_t bytes)
{
    void *block = calloc(1, bytes ? bytes : 1);
    if (!block)
        abort();
    return block;
}

typedef struct garbage {
    struct garbage *next;
    void *block;
} garbage;

void rp_garbage(rp *rp, void *block)
{
    garbage *g = rp_alloc(sizeof *g);
    *g = (garbage){rp->garbage, block};
    rp->garbage = g;
}

bool rp_plants(rp *rp, const char *what)
{
    const rp_options *options = rp->options;
    if (!options->plant || rp->is_planted || rp->now < options->plant_step || strcmp(options->plant, what))
        return false;
    return rp->is_planted = true;
}

static void begin(rp *rp, MPI_Comm comm)
{
    rp_comm *base = &rp->comms[0];
    RP_OK(rp, MPI_Comm_dup(comm, &rp->base));
    RP_OK(rp, MPI_Comm_set_errhandler(rp->base, MPI_ERRORS_RETURN));
    RP_OK(rp, MPI_Comm_dup(rp->base, &rp->control));
    RP_OK(rp, MPI_Comm_rank(comm, &rp->rank));
    RP_OK(rp, MPI_Comm_size(comm, &rp->size));
    if (rp->size > RP_RANKS)
        rp_fail(rp, "at most %d ranks", RP_RANKS);
    *base = (rp_comm){.state = RP_LIVE, .is_order_known = true, .n = {rp->size, 0}, .marks = -1, .is_member = true, .rank = rp->rank,
                      .mpi = rp->base, .started = MPI_REQUEST_NULL};
    for (int i = 0; i < rp->size; i++)
        base->members[0][i] = i;
    rp->own.state = rp_hash(rp->seed, (uint64_t)rp->rank + 77);
    rp->keyval = rp_attr_open(rp);
    rp_nodes_find(rp);
    rp_user_ops_open(rp);
    if (rp->thread == 0) {
        rp->buffer = rp_alloc(1 << 20);
        RP_OK(rp, MPI_Buffer_attach(rp->buffer, 1 << 20));
    }
}

static void end(rp *rp)
{
    void *address;
    int size;
    rp->now = rp->options->steps;
    rp_ops_all(rp);
    rp_pairs_close(rp);
    rp_windows_close(rp);
    rp_comms_close(rp);
    if (rp->buffer)
        RP_OK(rp, MPI_Buffer_detach(&address, &size));
    RP_OK(rp, MPI_Barrier(rp->base)); /* every message has been received: each rank receives before it comes here */
    RP_OK(rp, MPI_Comm_free(&rp->control));
    RP_OK(rp, MPI_Comm_free(&rp->base));
    RP_OK(rp, MPI_Comm_free_keyval(&rp->keyval));
    for (int i = 0; i < 2; i++)
        RP_OK(rp, MPI_Op_free(&rp->ops_user[i]));
    free(rp->buffer);
    for (garbage *g = rp->garbage, *next; g; g = next) {
        next = g->next;
        free(g->block);
        free(g);
    }
}

int rp_run(const rp_options *options, MPI_Comm comm, int thread)
{
    rp *rp = rp_alloc(sizeof *rp);
    rp->options = options;
    rp->seed = rp_hash(options->seed, (uint64_t)thread);
    rp->thread = thread;
    begin(rp, comm);
    for (uint32_t i = 0; i < options->steps; i++) {
        if (!is_performed(options, i))
            continue;
        rp->now = i;
        while (rp->flying > RP_OPS - 2 * RP_MESSAGES - 4)
            rp_ops_some(rp, true);
        rp_plan(rp, &rp->step, i);
        if (options->is_verbose)
            fprintf(stderr, "rank %d step %u %s: %s\n", rp->rank, i, kinds[rp->step.kind].name, rp->step.text);
        kinds[rp->step.kind].run(rp, &rp->step);
        if (rp_draw(&rp->own, 3) == 0)
            rp_ops_some(rp, rp_draw(&rp->own, 2));
    }
    end(rp);
    free(rp);
    return 0;
}
