/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topo_part: distributes vertices over parts of fixed sizes so that the edges between parts weigh little: several starting points, each
 * improved by swaps; the best is kept. Called by topo_reorder.c; any thread.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mpi/topo_reorder.h"

enum { PASSES = 12 };

/* Scratch memory of a job. */
typedef struct scratch {
    uint32_t *trial;                   /* [graph->count] the distribution under work */
    uint32_t *begin, *members, *place; /* members of part p: members[begin[p]..begin[p + 1] - 1]; place[v]: index of v there */
    uint64_t *toward;                  /* [parts] weight of a vertex's edges to a part; 0 between uses */
    uint32_t *touched;                 /* parts whose toward is set */
} scratch;

static void free_scratch(scratch *s)
{
    free(s->trial);
    free(s->begin);
    free(s->members);
    free(s->place);
    free(s->toward);
    free(s->touched);
}

static int alloc_scratch(const weft_part_job *job, scratch *s)
{
    size_t all = job->graph->count, parts = job->parts;
    s->trial = malloc(all * sizeof *s->trial);
    s->begin = malloc((parts + 1) * sizeof *s->begin);
    s->members = malloc(job->count * sizeof *s->members);
    s->place = malloc(all * sizeof *s->place);
    s->toward = calloc(parts, sizeof *s->toward);
    s->touched = malloc(parts * sizeof *s->touched);
    return s->trial && s->begin && s->members && s->place && s->toward && s->touched
               ? 0
               : weft_fail(WEFT_E_NOMEM, "no memory to place %zu processes", all);
}

/* Twice the weight between parts. */
static uint64_t cut_of(const weft_part_job *job, const uint32_t *part)
{
    const weft_topo_graph *graph = job->graph;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        uint32_t v = job->cells[i];
        for (uint32_t e = graph->first[v]; e < graph->first[v + 1]; e++)
            if (part[graph->to[e]] != WEFT_PART_NONE && part[graph->to[e]] != part[v])
                sum += graph->weight[e];
    }
    return sum;
}

static void spend(weft_part_job *job, uint64_t steps) { job->work -= steps < job->work ? steps : job->work; }

/* -- swaps -- */

static void list_members(const weft_part_job *job, scratch *s)
{
    uint32_t at = 0;
    for (uint32_t p = 0; p < job->parts; p++) {
        s->begin[p] = at;
        at += job->sizes[p];
    }
    for (uint32_t i = 0; i < job->count; i++) {
        uint32_t v = job->cells[i];
        s->place[v] = s->begin[s->trial[v]]++;
        s->members[s->place[v]] = v;
    }
    for (uint32_t p = job->parts; p > 0; p--)
        s->begin[p] = s->begin[p - 1];
    s->begin[0] = 0;
}

/* Sums the weights of v's edges by the part of the other end. Returns the number of parts touched. */
static uint32_t sum_toward(const weft_part_job *job, scratch *s, uint32_t v)
{
    const weft_topo_graph *graph = job->graph;
    uint32_t count = 0;
    for (uint32_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
        uint32_t p = s->trial[graph->to[e]];
        if (p == WEFT_PART_NONE || !graph->weight[e])
            continue;
        if (!s->toward[p])
            s->touched[count++] = p;
        s->toward[p] += graph->weight[e];
    }
    return count;
}

/* What the cut falls by if u moves from its part to `to`, where v is, and v takes its place; v's own gain not counted. */
static int64_t partner_gain(const weft_part_job *job, const scratch *s, uint32_t u, uint32_t to, uint32_t v)
{
    const weft_topo_graph *graph = job->graph;
    uint32_t from = s->trial[u];
    int64_t gain = 0;
    for (uint32_t e = graph->first[u]; e < graph->first[u + 1]; e++) {
        uint32_t p = s->trial[graph->to[e]];
        gain += p == to ? graph->weight[e] : p == from ? -(int64_t)graph->weight[e] : 0;
        if (graph->to[e] == v)
            gain -= 2 * (int64_t)graph->weight[e];
    }
    return gain;
}

static void swap(scratch *s, uint32_t v, uint32_t u)
{
    uint32_t part = s->trial[v], place = s->place[v];
    s->trial[v] = s->trial[u];
    s->trial[u] = part;
    s->place[v] = s->place[u];
    s->place[u] = place;
    s->members[s->place[v]] = v;
    s->members[s->place[u]] = u;
}

/* Swaps v with the vertex of another part that lowers the cut most. In each pair that lowers it, one vertex gains by itself: only those are
 * tried as v. */
static bool improve_one(weft_part_job *job, scratch *s, uint32_t v)
{
    uint32_t count = sum_toward(job, s, v), part = s->trial[v], best = v;
    int64_t own = (int64_t)s->toward[part], most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t p = s->touched[i];
        int64_t gain = (int64_t)s->toward[p] - own;
        if (gain <= 0)
            continue;
        for (uint32_t k = s->begin[p]; k < s->begin[p + 1] && job->work; k++) {
            uint32_t u = s->members[k];
            int64_t total = gain + partner_gain(job, s, u, part, v);
            spend(job, 2 + job->graph->first[u + 1] - job->graph->first[u]);
            if (total > most) {
                most = total;
                best = u;
            }
        }
    }
    for (uint32_t i = 0; i < count; i++)
        s->toward[s->touched[i]] = 0;
    if (best != v)
        swap(s, v, best);
    return best != v;
}

static void refine(weft_part_job *job, scratch *s)
{
    bool has_improved = true;
    list_members(job, s);
    for (int pass = 0; pass < PASSES && has_improved; pass++) {
        has_improved = false;
        for (uint32_t i = 0; i < job->count && job->work; i++) {
            spend(job, 1 + job->graph->first[job->cells[i] + 1] - job->graph->first[job->cells[i]]);
            has_improved |= improve_one(job, s, job->cells[i]);
        }
    }
}

/* -- growing parts, for graphs that are no grids -- */

/* A vertex without a part, with the fewest neighbors that have none either. */
static uint32_t find_seed(weft_part_job *job, const uint32_t *part)
{
    const weft_topo_graph *graph = job->graph;
    uint32_t best = WEFT_PART_NONE, fewest = UINT32_MAX;
    for (uint32_t i = 0; i < job->count; i++) {
        uint32_t v = job->cells[i], open = 0;
        if (part[v] != job->parts)
            continue;
        if (!job->work)
            return v;
        for (uint32_t e = graph->first[v]; e < graph->first[v + 1]; e++)
            open += part[graph->to[e]] == job->parts;
        spend(job, 1 + graph->first[v + 1] - graph->first[v]);
        if (open < fewest) {
            fewest = open;
            best = v;
        }
    }
    return best;
}

/* The frontier's vertex that is connected best with the part; removes it. */
static uint32_t take_best(weft_part_job *job, uint32_t *frontier, uint32_t *count, const uint64_t *bond)
{
    uint32_t best = 0, v;
    for (uint32_t i = 1; i < *count && job->work; i++) {
        uint64_t a = bond[frontier[i]], b = bond[frontier[best]];
        spend(job, 1);
        if (a > b || (a == b && frontier[i] < frontier[best]))
            best = i;
    }
    v = frontier[best];
    frontier[best] = frontier[--*count];
    return v;
}

/* Grows one part after the other from a seed, by the vertex with the strongest bond. part: job->parts stands for no part yet.
 * frontier[count] and bond[graph->count] are scratch memory; bond is 0. */
static void grow(weft_part_job *job, uint32_t *part, uint32_t *frontier, uint64_t *bond)
{
    const weft_topo_graph *graph = job->graph;
    for (uint32_t i = 0; i < job->count; i++)
        part[job->cells[i]] = job->parts;
    for (uint32_t p = 0; p < job->parts; p++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < job->sizes[p]; k++) {
            uint32_t v = count ? take_best(job, frontier, &count, bond) : find_seed(job, part);
            part[v] = p;
            for (uint32_t e = graph->first[v]; e < graph->first[v + 1]; e++) {
                uint32_t u = graph->to[e];
                if (part[u] != job->parts || !graph->weight[e])
                    continue;
                if (!bond[u])
                    frontier[count++] = u;
                bond[u] += graph->weight[e];
            }
        }
        for (uint32_t i = 0; i < job->count; i++)
            bond[job->cells[i]] = 0;
    }
}

static int grow_trial(weft_part_job *job, scratch *s)
{
    uint64_t *bond = calloc(job->graph->count, sizeof *bond);
    if (!bond)
        return weft_fail(WEFT_E_NOMEM, "no memory to place %u processes", job->count);
    grow(job, s->trial, s->place, bond);
    free(bond);
    return 0;
}

/* -- the best of all -- */

enum { AS_IT_IS, TILES, BISECTION, GROWTH, STARTS };

/* Sets s->trial to a starting point. 1: done, 0: not for this graph, or an error. */
static int begin_trial(weft_part_job *job, scratch *s, int start)
{
    bool is_grid = job->graph->ndims > 0;
    int rc;
    switch (start) {
    case AS_IT_IS:
        return 1;
    case TILES:
        return is_grid ? weft_part_tile(job, s->trial) : 0;
    case BISECTION:
        rc = is_grid ? weft_part_bisect(job, s->trial) : 0;
        return rc ? rc : is_grid;
    default:
        rc = is_grid ? 0 : grow_trial(job, s);
        return rc ? rc : !is_grid;
    }
}

int weft_part_improve(weft_part_job *job, uint32_t *part)
{
    scratch s = {NULL, NULL, NULL, NULL, NULL, NULL};
    size_t bytes = job->graph->count * sizeof *part;
    uint32_t *best = malloc(bytes);
    uint64_t least = cut_of(job, part), share = job->work / STARTS, left = job->work;
    int rc = alloc_scratch(job, &s);
    if (!rc && !best)
        rc = weft_fail(WEFT_E_NOMEM, "no memory to place %u processes", job->count);
    if (!rc)
        memcpy(best, part, bytes);
    for (int start = 0; start < STARTS && !rc && least; start++) {
        memcpy(s.trial, part, bytes);
        job->work = share;
        rc = begin_trial(job, &s, start);
        if (rc <= 0)
            continue;
        refine(job, &s);
        left -= share - job->work;
        rc = 0;
        if (cut_of(job, s.trial) < least) {
            least = cut_of(job, s.trial);
            memcpy(best, s.trial, bytes);
        }
    }
    job->work = left;
    if (!rc)
        memcpy(part, best, bytes);
    free(best);
    free_scratch(&s);
    return rc;
}
