/* SPDX-License-Identifier: BSD-3-Clause
 *
 * dist_graph: graphs whose edges are distributed: each member stores its own (MPI 5.0 8.5.4, 8.5.5). Called by the generated entries:
 * creation with the worker's lock, queries without.
 * The new communicator is made first. The members that specify edges then send them on it to the members at both ends.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "core/wait.h"
#include "mpi/calls.h"
#include "mpi/exchange.h"
#include "mpi/topo.h"
#include "mpi/topo_create.h"
#include "p2p/p2p.h"

/* -- arguments -- */

/* Numbers must not be negative; ranks must be below `limit`, which is INT32_MAX for other numbers. */
static int check_numbers(const char *name, const int *numbers, int count, int limit)
{
    for (int i = 0; i < count; i++)
        if (numbers[i] < 0 || (numbers[i] >= limit && limit != INT32_MAX))
            return limit == INT32_MAX ? weft_fail(WEFT_E_ARG, "%s[%d] is %d: it must not be negative", name, i, numbers[i])
                                      : weft_fail(WEFT_E_RANK, "%s[%d] is %d: it must be in 0..%d", name, i, numbers[i], limit - 1);
    return 0;
}

static int check_degree(const char *name, int degree)
{
    return degree >= 0 ? 0 : weft_fail(WEFT_E_ARG, "%s is %d: it must not be negative", name, degree);
}

static int check_weights(const char *name, const int *weights, int count)
{
    if (count == 0 || weights == MPI_UNWEIGHTED)
        return 0;
    if (!weights || weights == MPI_WEIGHTS_EMPTY)
        return weft_fail(WEFT_E_ARG, "%s is %s, but there are %d edges", name, weights ? "MPI_WEIGHTS_EMPTY" : "NULL", count);
    return check_numbers(name, weights, count, INT32_MAX);
}

/* -- agreement before the communicator is made -- */

typedef struct agreement {
    bool has_weights, has_none; /* some member has edges with, without weights */
    uint32_t count_max;         /* largest number of edges that a member names */
} agreement;

/* Joins the members' results. inout: in of this member, out of all. rc: an error of this member. An error of one is an error of all. */
static int agree(weft_comm *parent, agreement *inout, int rc)
{
    weft_exchange over = weft_exchange_over_comm(parent);
    uint32_t words[3] = {!inout->has_weights, !inout->has_none, ~inout->count_max};
    rc = weft_exchange_agree(&over, rc, words, 3);
    if (rc)
        return rc;
    *inout = (agreement){!words[0], !words[1], ~words[2]};
    if (inout->has_weights && inout->has_none)
        return weft_fail(WEFT_E_ARG, "MPI_UNWEIGHTED was passed by some members of the communicator, but not by all that have edges");
    return 0;
}

/* -- edges -- */

typedef struct edge {
    int source, dest, weight; /* sent as MPI_INTs */
} edge;

typedef struct edge_list {
    edge *edges;
    size_t count, capacity;
} edge_list;

static bool append(edge_list *list, edge item)
{
    if (list->count == list->capacity) {
        size_t more = 2 * list->capacity + 16;
        edge *edges = realloc(list->edges, more * sizeof *edges);
        if (!edges)
            return false;
        list->edges = edges;
        list->capacity = more;
    }
    list->edges[list->count++] = item;
    return true;
}

static int by_ends(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->dest != y->dest)
        return x->dest < y->dest ? -1 : 1;
    return x->weight < y->weight ? -1 : x->weight > y->weight;
}

/* The topology of the member that is node `me`, from all edges that touch it, sorted so that it does not depend on the order of arrival. */
static weft_topo *topo_of(edge_list *list, int me)
{
    int in = 0, out = 0;
    weft_topo *topo;
    if (list->count)
        qsort(list->edges, list->count, sizeof *list->edges, by_ends);
    for (size_t i = 0; i < list->count; i++) {
        in += list->edges[i].dest == me;
        out += list->edges[i].source == me;
    }
    topo = weft_topo_new_dist(in, out);
    if (!topo)
        return NULL;
    in = out = 0;
    for (size_t i = 0; i < list->count; i++) {
        const edge *e = &list->edges[i];
        if (e->dest == me) {
            topo->dist.sources[in] = e->source;
            topo->dist.source_weights[in++] = e->weight;
        }
        if (e->source == me) {
            topo->dist.destinations[out] = e->dest;
            topo->dist.dest_weights[out++] = e->weight;
        }
    }
    return topo;
}

/* -- messages on the new communicator, which the program does not have yet -- */

enum { TAG = 0 };

/* Both try again where there is no memory to begin: another member waits for the message. One that fails later ends on both sides. */
static int send_ints(weft_comm *comm, int to, const int *ints, uint64_t count, weft_req **req)
{
    for (int tries = 0;; tries++) {
        int rc = weft_isend(comm->chan, to, TAG, ints, count, weft_type_of(MPI_INT), WEFT_SEND_STANDARD, req);
        if (rc != WEFT_E_NOMEM)
            return rc;
        weft_exchange_before_retry(comm->worker, tries);
    }
}

static int recv_ints(weft_comm *comm, int from, int *ints, uint64_t count)
{
    weft_req *req;
    int rc;
    for (int tries = 0;; tries++) {
        rc = weft_irecv(comm->chan, from, TAG, ints, count, weft_type_of(MPI_INT), &req);
        if (rc != WEFT_E_NOMEM)
            break;
        weft_exchange_before_retry(comm->worker, tries);
    }
    if (rc)
        return rc;
    rc = weft_req_wait(req);
    weft_req_free(req);
    return rc;
}

/* Waits for a message; also for the end of the collectives, as its sender may have failed in one and left. */
static int await(weft_comm *comm, int source, weft_recv_info *found)
{
    bool is_there = false;
    weft_wait wait;
    int rc;
    weft_wait_begin(&wait, comm->worker, WEFT_WAIT_REASON_PROBE, source, TAG, 0);
    while (!(rc = weft_probe(comm->chan, source, TAG, false, &is_there, found)) && !is_there && !comm->team.stopped)
        weft_wait_progress(&wait);
    weft_wait_end(&wait);
    return rc || is_there ? rc : weft_team_stop_error(&comm->team);
}

/* A message of unknown length to this member: receives its ints into a new array. */
static int receive(weft_comm *comm, int source, int **ints, size_t *count)
{
    weft_recv_info found;
    int rc = await(comm, source, &found);
    *ints = NULL;
    if (rc)
        return rc;
    *count = found.bytes / sizeof **ints;
    *ints = malloc(found.bytes + 1);
    if (!*ints) {
        recv_ints(comm, (int)found.source, NULL, 0); /* else its sender would wait forever */
        return weft_fail(WEFT_E_NOMEM, "no memory for %zu numbers of a graph", *count);
    }
    return recv_ints(comm, (int)found.source, *ints, *count);
}

/* Where each member's edges begin in a list that is sorted by member, and how many members will send edges to this one. */
typedef struct mail {
    edge *edges;       /* sorted by receiver */
    uint32_t *counts;  /* [size] edges for each member */
    uint32_t *senders; /* [size] members that send to each, summed over all */
    weft_req **reqs;   /* [receivers] */
} mail;

static void free_mail(mail *m)
{
    free(m->edges);
    free(m->counts);
    free(m->senders);
    free(m->reqs);
}

static int fill_mail(const edge_list *own, uint32_t size, mail *m)
{
    size_t *next = calloc((size_t)size + 1, sizeof *next);
    uint32_t receivers = 0;
    *m = (mail){malloc((2 * own->count + 1) * sizeof *m->edges), calloc(size, sizeof *m->counts), calloc(size, sizeof *m->senders), NULL};
    if (!(next && m->edges && m->counts && m->senders)) {
        free(next);
        return weft_fail(WEFT_E_NOMEM, "no memory to send %zu edges", own->count);
    }
    for (size_t i = 0; i < own->count; i++) {
        m->counts[own->edges[i].source]++;
        if (own->edges[i].dest != own->edges[i].source)
            m->counts[own->edges[i].dest]++;
    }
    for (uint32_t r = 0; r < size; r++) {
        next[r + 1] = next[r] + m->counts[r];
        m->senders[r] = m->counts[r] > 0;
        receivers += m->senders[r];
    }
    for (size_t i = 0; i < own->count; i++) {
        const edge *e = &own->edges[i];
        m->edges[next[e->source]++] = *e;
        if (e->dest != e->source)
            m->edges[next[e->dest]++] = *e;
    }
    free(next);
    m->reqs = calloc((size_t)receivers + 1, sizeof(weft_req *));
    return m->reqs ? 0 : weft_fail(WEFT_E_NOMEM, "no memory to send edges to %u members", receivers);
}

/* Sums the numbers of messages by receiver over all members: the result is how many messages each member receives. */
static int sum_senders(weft_comm *comm, uint32_t *senders)
{
    weft_coll coll = {
        .recvbuf = senders,
        .sendbuf = senders,
        .sendcount = (uint64_t)comm->size,
        .recvcount = (uint64_t)comm->size,
        .sendtype = weft_type_of(MPI_UINT32_T),
        .recvtype = weft_type_of(MPI_UINT32_T),
        .op = weft_op_of(MPI_SUM),
        .in_place = true,
    };
    return weft_team_trust(&comm->team, weft_coll_run(&comm->team, WEFT_COLL_ALLREDUCE, &coll));
}

/* Sends the edges of `m` and receives those of this member into `list`. A lack of memory does not stop the exchange. */
static int exchange_edges(weft_comm *comm, const mail *m, edge_list *list)
{
    size_t at = 0;
    uint32_t sent = 0;
    int rc = 0, failed = 0;
    for (int r = 0; r < comm->size && !rc; r++)
        if (m->counts[r]) {
            rc = send_ints(comm, r, &m->edges[at].source, 3 * (uint64_t)m->counts[r], &m->reqs[sent]);
            sent += !rc;
            at += m->counts[r];
        }
    for (uint32_t i = 0; i < m->senders[comm->rank] && !rc && !comm->team.stopped; i++) {
        int *ints, bad;
        size_t count = 0;
        bad = receive(comm, WEFT_ANY, &ints, &count);
        failed = failed ? failed : bad;
        for (size_t k = 0; k < count / 3 && !failed; k++)
            if (!append(list, (edge){ints[3 * k], ints[3 * k + 1], ints[3 * k + 2]}))
                failed = weft_fail(WEFT_E_NOMEM, "no memory for the edges of rank %d", comm->rank);
        free(ints);
    }
    for (uint32_t i = 0; i < sent; i++) {
        int end;
        if (comm->team.stopped) /* then its receiver may have stopped too, and wait for its own sends */
            weft_cancel(m->reqs[i]);
        end = weft_req_wait(m->reqs[i]);
        if (end == WEFT_E_COMM) /* the receiver has closed the channel */
            end = weft_fail(WEFT_E_OTHER, "another member failed to make its part of the communicator: its own error names the cause");
        rc = rc ? rc : end;
        weft_req_free(m->reqs[i]);
    }
    return rc ? rc : failed;
}

/* Gives the new communicator its topology: edges that any member named go to both their ends. */
static int spread(weft_comm *comm, const edge_list *own, weft_topo **topo)
{
    edge_list list = {NULL, 0, 0};
    agreement unused = {false, false, 0};
    mail m;
    int rc = agree(comm, &unused, fill_mail(own, (uint32_t)comm->size, &m));
    if (!rc)
        rc = sum_senders(comm, m.senders);
    if (!rc)
        rc = exchange_edges(comm, &m, &list);
    if (!rc && !(*topo = topo_of(&list, comm->rank)))
        rc = WEFT_E_NOMEM;
    free(list.edges);
    free_mail(&m);
    return rc;
}

/* After reordering: the member that got rank r of the new communicator gets the lists that rank r of the old one has passed. lists: its
 * values, two degrees before them. */
static int swap_lists(weft_comm *comm, int old_rank, const uint32_t *order, const int *lists, size_t count, weft_topo **topo)
{
    weft_req *req;
    int *got, rc, from = 0;
    size_t ints = 0;
    rc = send_ints(comm, old_rank, lists, count, &req);
    if (rc)
        return rc;
    while (order[from] != (uint32_t)comm->rank)
        from++; /* the member whose old rank is this one's new rank */
    rc = receive(comm, from, &got, &ints);
    if (!rc && !(*topo = weft_topo_new_dist(got[0], got[1])))
        rc = WEFT_E_NOMEM;
    if (!rc)
        memcpy((*topo)->values, got + 2, (ints - 2) * sizeof *got);
    free(got);
    weft_req_wait(req);
    weft_req_free(req);
    return rc;
}

/* -- creation -- */

/* The last step: all members have their topology, or the communicator is closed on all. */
static int finish(weft_topo *topo, bool is_weighted, int rc, MPI_Comm *newcomm)
{
    weft_comm *comm = *newcomm;
    agreement unused = {false, false, 0};
    rc = agree(comm, &unused, rc);
    if (rc) {
        weft_topo_drop(topo);
        weft_mpi_comm_free(newcomm);
        return rc;
    }
    topo->dist.is_weighted = is_weighted;
    comm->topo = topo;
    return 0;
}

static int check_adjacent(const weft_comm *comm, int indegree, const int *sources, const int *sourceweights, int outdegree,
                          const int *destinations, const int *destweights)
{
    int rc = weft_topo_check_comm(comm);
    if (!rc)
        rc = check_degree("indegree", indegree);
    if (!rc)
        rc = check_degree("outdegree", outdegree);
    if (!rc)
        rc = check_numbers("sources", sources, indegree, comm->size);
    if (!rc)
        rc = check_weights("sourceweights", sourceweights, indegree);
    if (!rc)
        rc = check_numbers("destinations", destinations, outdegree, comm->size);
    if (!rc)
        rc = check_weights("destweights", destweights, outdegree);
    if (!rc && indegree && outdegree && (sourceweights == MPI_UNWEIGHTED) != (destweights == MPI_UNWEIGHTED))
        rc = weft_fail(WEFT_E_ARG, "%s is MPI_UNWEIGHTED, but %s is not", sourceweights == MPI_UNWEIGHTED ? "sourceweights" : "destweights",
                       sourceweights == MPI_UNWEIGHTED ? "destweights" : "sourceweights");
    return rc;
}

static void copy_side(int *ranks, int *weights, int degree, const int *from, const int *from_weights)
{
    for (int i = 0; i < degree; i++) {
        ranks[i] = from[i];
        weights[i] = from_weights == MPI_UNWEIGHTED ? 1 : from_weights[i];
    }
}

/* Orders the ranks by the edges out of each member. */
static int order_adjacent(weft_comm *parent, const weft_topo *topo, uint32_t count_max, uint32_t **order)
{
    int *edges = malloc((3 * (size_t)topo->dist.outdegree + 1) * sizeof *edges);
    agreement unused = {false, false, 0};
    int rc = agree(parent, &unused, edges ? 0 : weft_fail(WEFT_E_NOMEM, "no memory for %d edges", topo->dist.outdegree));
    for (int i = 0; i < topo->dist.outdegree && !rc; i++) {
        edges[3 * i] = parent->rank;
        edges[3 * i + 1] = topo->dist.destinations[i];
        edges[3 * i + 2] = topo->dist.dest_weights[i];
    }
    if (!rc)
        rc = weft_topo_order_edges(parent, edges, (uint32_t)topo->dist.outdegree, count_max, order);
    free(edges);
    return rc;
}

/* Makes the communicator; after reordering the lists change their owners. Takes ownership of topo. */
static int create_adjacent(weft_comm *parent, weft_topo *topo, const uint32_t *order, bool is_weighted, MPI_Comm *newcomm)
{
    size_t values = 2 * ((size_t)topo->dist.indegree + (size_t)topo->dist.outdegree);
    weft_topo *swapped = NULL;
    int *lists = NULL, rc = 0;
    if (order && !(lists = malloc((values + 2) * sizeof *lists)))
        rc = weft_fail(WEFT_E_NOMEM, "no memory for %zu edges", values / 2);
    rc = weft_topo_create(parent, (uint32_t)parent->size, order, NULL, rc, newcomm);
    if (!rc && order) {
        lists[0] = topo->dist.indegree;
        lists[1] = topo->dist.outdegree;
        memcpy(lists + 2, topo->values, values * sizeof *lists);
        rc = swap_lists(*newcomm, parent->rank, order, lists, values + 2, &swapped);
        weft_topo_drop(topo);
        topo = swapped;
    }
    free(lists);
    if (*newcomm == MPI_COMM_NULL) {
        weft_topo_drop(topo);
        return rc;
    }
    return finish(topo, is_weighted, rc, newcomm);
}

/* The entry has checked that sources and destinations are not NULL where there are edges. */
int weft_mpi_dist_graph_create_adjacent(weft_comm *comm_old, int indegree, const int *sources, const int *sourceweights, int outdegree,
                                        const int *destinations, const int *destweights, MPI_Info info, int reorder,
                                        MPI_Comm *comm_dist_graph, int failed)
{
    int rc = failed ? failed : check_adjacent(comm_old, indegree, sources, sourceweights, outdegree, destinations, destweights);
    bool has_weights = (indegree > 0 && sourceweights != MPI_UNWEIGHTED) || (outdegree > 0 && destweights != MPI_UNWEIGHTED);
    agreement all = {has_weights, !has_weights && (indegree > 0 || outdegree > 0), (uint32_t)outdegree};
    uint32_t *order = NULL;
    weft_topo *topo = NULL;
    (void)info;
    *comm_dist_graph = MPI_COMM_NULL;
    if (comm_old->is_inter)
        return rc; /* on all members */
    if (!rc && !(topo = weft_topo_new_dist(indegree, outdegree)))
        rc = WEFT_E_NOMEM;
    if (!rc) {
        copy_side(topo->dist.sources, topo->dist.source_weights, indegree, sources, sourceweights);
        copy_side(topo->dist.destinations, topo->dist.dest_weights, outdegree, destinations, destweights);
    }
    rc = agree(comm_old, &all, rc);
    if (!rc && reorder)
        rc = order_adjacent(comm_old, topo, all.count_max, &order);
    if (rc) {
        weft_topo_drop(topo);
        return rc;
    }
    if (!all.has_weights && !all.has_none) /* no edges at all: as this member passed it */
        all.has_weights = sourceweights != MPI_UNWEIGHTED || destweights != MPI_UNWEIGHTED;
    rc = create_adjacent(comm_old, topo, order, all.has_weights, comm_dist_graph);
    free(order);
    return rc;
}

/* Checks the arguments and counts the edges. */
static int check_general(const weft_comm *comm, int n, const int *sources, const int *degrees, const int *destinations,
                         const int *weights, int *count)
{
    int64_t sum = 0;
    int rc = weft_topo_check_comm(comm);
    *count = 0;
    if (!rc)
        rc = check_degree("n", n);
    if (!rc)
        rc = check_numbers("sources", sources, n, comm->size);
    if (!rc)
        rc = check_numbers("degrees", degrees, n, INT32_MAX);
    for (int i = 0; i < n && !rc; i++)
        sum += degrees[i];
    if (!rc && sum > INT32_MAX / 3)
        rc = weft_fail(WEFT_E_ARG, "the degrees add up to %lld edges: at most %d are supported", (long long)sum, INT32_MAX / 3);
    if (!rc && sum && !destinations)
        rc = weft_fail(WEFT_E_ARG, "destinations is NULL, but the degrees add up to %lld edges", (long long)sum);
    if (!rc)
        rc = check_numbers("destinations", destinations, (int)sum, comm->size);
    if (!rc)
        rc = check_weights("weights", weights, (int)sum);
    *count = rc ? 0 : (int)sum;
    return rc;
}

static int list_edges(int n, const int *sources, const int *degrees, const int *destinations, const int *weights, int count,
                      edge_list *list)
{
    int at = 0;
    *list = (edge_list){malloc(((size_t)count + 1) * sizeof *list->edges), (size_t)count, (size_t)count};
    if (!list->edges)
        return weft_fail(WEFT_E_NOMEM, "no memory for %d edges", count);
    for (int i = 0; i < n; i++)
        for (int end = at + degrees[i]; at < end; at++)
            list->edges[at] = (edge){sources[i], destinations[at], weights == MPI_UNWEIGHTED ? 1 : weights[at]};
    return 0;
}

int weft_mpi_dist_graph_create(weft_comm *comm_old, int n, const int *sources, const int *degrees, const int *destinations,
                               const int *weights, MPI_Info info, int reorder, MPI_Comm *comm_dist_graph, int failed)
{
    edge_list list = {NULL, 0, 0};
    uint32_t *order = NULL;
    weft_topo *topo = NULL;
    agreement all = {false, false, 0};
    int count = 0, rc = failed ? failed : check_general(comm_old, n, sources, degrees, destinations, weights, &count);
    (void)info;
    *comm_dist_graph = MPI_COMM_NULL;
    if (comm_old->is_inter)
        return rc; /* on all members */
    if (!rc)
        rc = list_edges(n, sources, degrees, destinations, weights, count, &list);
    all = (agreement){count > 0 && weights != MPI_UNWEIGHTED, count > 0 && weights == MPI_UNWEIGHTED, (uint32_t)count};
    rc = agree(comm_old, &all, rc);
    if (!rc && reorder)
        rc = weft_topo_order_edges(comm_old, (const int *)list.edges, (uint32_t)count, all.count_max, &order);
    if (!rc)
        rc = weft_topo_create(comm_old, (uint32_t)comm_old->size, order, NULL, 0, comm_dist_graph);
    if (!rc) {
        if (!all.has_weights && !all.has_none)
            all.has_weights = weights != MPI_UNWEIGHTED;
        rc = spread(*comm_dist_graph, &list, &topo);
        rc = finish(topo, all.has_weights, rc, comm_dist_graph);
    }
    free(list.edges);
    free(order);
    return rc;
}

/* -- queries -- */

int weft_mpi_dist_graph_neighbors_count(weft_comm *comm, int *indegree, int *outdegree, int *weighted)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_DIST_GRAPH);
    if (!topo)
        return WEFT_E_TOPOLOGY;
    *indegree = topo->dist.indegree;
    *outdegree = topo->dist.outdegree;
    *weighted = topo->dist.is_weighted;
    return 0;
}

/* The first `max` neighbors of one side; weights if the graph has them and the array is given. */
static int get_side(const weft_topo *topo, const char *name, int max, int degree, const int *ranks, const int *weights, int *to,
                    int *to_weights)
{
    size_t count = (size_t)(max < degree ? max : degree);
    bool wants_weights = topo->dist.is_weighted && to_weights != MPI_UNWEIGHTED && to_weights != MPI_WEIGHTS_EMPTY;
    if (max < 0)
        return weft_fail(WEFT_E_ARG, "max%s is %d: it must not be negative", name, max);
    if (!count)
        return 0;
    if (wants_weights && !to_weights)
        return weft_fail(WEFT_E_ARG, "the array of weights for %d edges is NULL: pass MPI_UNWEIGHTED if they are not wanted", (int)count);
    memcpy(to, ranks, count * sizeof *to);
    if (wants_weights)
        memcpy(to_weights, weights, count * sizeof *to_weights);
    return 0;
}

int weft_mpi_dist_graph_neighbors(weft_comm *comm, int maxindegree, int *sources, int *sourceweights, int maxoutdegree, int *destinations,
                                  int *destweights)
{
    const weft_topo *topo = weft_topo_of(comm, MPI_DIST_GRAPH);
    int rc = topo ? 0 : WEFT_E_TOPOLOGY;
    if (!rc)
        rc = get_side(topo, "indegree", maxindegree, topo->dist.indegree, topo->dist.sources, topo->dist.source_weights, sources,
                      sourceweights);
    if (!rc)
        rc = get_side(topo, "outdegree", maxoutdegree, topo->dist.outdegree, topo->dist.destinations, topo->dist.dest_weights, destinations,
                      destweights);
    return rc;
}
