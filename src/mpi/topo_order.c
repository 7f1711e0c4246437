/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topo_order: finds the order of ranks for reorder (topo_create.h). Nodes are those of the launcher's map; a process's socket is read from
 * its affinity and exchanged. The order is computed by topo_reorder.c.
 */
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "collectives/stop.h"
#include "core/group.h"
#include "launch/boot.h"
#include "mpi/exchange.h"
#include "mpi/topo_create.h"
#include "mpi/topo_reorder.h"

/* Is the CPU in a list of ranges, "0-3,8"? */
static bool is_listed(const char *list, int cpu)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        long low = strtol(list, &end, 10), high = low;
        if (*end == '-')
            high = strtol(end + 1, &end, 10);
        if (cpu >= low && cpu <= high)
            return true;
        list = *end == ',' ? end + 1 : end;
    }
    return false;
}

/* The socket of this process: the lowest CPU there, plus 1; 0 if it may run on several. */
static uint32_t own_socket(void)
{
    char path[96], list[4096] = "";
    cpu_set_t set;
    FILE *file;
    int first = 0, low;
    if (sched_getaffinity(0, sizeof set, &set))
        return 0;
    while (first < CPU_SETSIZE && !CPU_ISSET(first, &set))
        first++;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/core_siblings_list", first);
    file = fopen(path, "re");
    if (!file || !fgets(list, sizeof list, file))
        list[0] = 0;
    if (file)
        fclose(file);
    low = atoi(list);
    for (int cpu = first; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && !is_listed(list, cpu))
            return 0;
    return (uint32_t)low + 1;
}

static uint32_t node_of(const weft_comm *comm, uint32_t rank)
{
    const weft_boot *boot = comm->worker->world->boot;
    weft_process process = weft_group_process(comm->group, rank);
    if (process.job != boot->job || process.rank >= boot->size)
        return UINT32_MAX; /* of another job: its node is not known */
    return boot->node_of ? boot->node_of[process.rank] : 0;
}

static int no_memory(const weft_comm *parent)
{
    return weft_fail(WEFT_E_NOMEM, "no memory to order %d ranks", parent->size);
}

static int graph_of(const weft_topo *topo, weft_topo_graph *graph)
{
    int *edges, count = 0, rc;
    if (topo->kind == MPI_CART)
        return weft_topo_graph_of_grid(topo->cart.ndims, topo->cart.dims, topo->cart.periods, graph);
    edges = malloc((3 * (size_t)topo->graph.nedges + 1) * sizeof *edges);
    if (!edges)
        return weft_fail(WEFT_E_NOMEM, "no memory for a graph of %d edges", topo->graph.nedges);
    for (int v = 0; v < topo->graph.nnodes; v++)
        for (; count < topo->graph.index[v]; count++) {
            edges[3 * count] = v;
            edges[3 * count + 1] = topo->graph.edges[count];
            edges[3 * count + 2] = 1;
        }
    rc = weft_topo_graph_of_edges((uint32_t)topo->graph.nnodes, edges, (uint64_t)count, graph);
    free(edges);
    return rc;
}

/* Computes the order of the graph on the parent's first members. socket[]: of all members. */
static int compute(const weft_comm *parent, const weft_topo_graph *graph, const uint32_t *socket, uint32_t *order)
{
    uint32_t *node = malloc((graph->count + 1) * sizeof *node);
    int rc;
    if (!node)
        return no_memory(parent);
    for (uint32_t i = 0; i < graph->count; i++)
        node[i] = node_of(parent, i);
    rc = weft_reorder_compute(graph, node, socket, order);
    free(node);
    return rc;
}

static int compute_topo(const weft_comm *parent, const weft_topo *topo, const uint32_t *socket, uint32_t *order)
{
    weft_topo_graph graph = {0};
    int rc = graph_of(topo, &graph);
    if (!rc)
        rc = compute(parent, &graph, socket, order);
    weft_topo_graph_free(&graph);
    return rc;
}

/* The members agree that all have memory before they exchange their sockets. */
int weft_topo_order(weft_comm *parent, const weft_topo *topo, uint32_t **out)
{
    weft_exchange over = weft_exchange_over_comm(parent);
    uint32_t socket = own_socket(), *sockets = malloc((size_t)parent->size * sizeof *sockets);
    uint32_t *order = malloc((size_t)parent->size * sizeof *order);
    int rc = weft_exchange_agree(&over, sockets && order ? 0 : no_memory(parent), NULL, 0);
    *out = NULL;
    if (!rc)
        rc = weft_exchange_gather(&over, &socket, 1, sockets);
    if (!rc)
        rc = compute_topo(parent, topo, sockets, order);
    free(sockets);
    if (!rc)
        *out = order;
    else
        free(order);
    return rc;
}

/* -- edges spread over the members: rank 0 collects them, computes the order and sends it to all -- */

static int gather_to_first(weft_comm *parent, const int *part, uint32_t words, int *all)
{
    weft_coll coll = {
        .sendbuf = part,
        .recvbuf = all,
        .sendcount = words,
        .recvcount = words,
        .sendtype = weft_type_of(MPI_INT),
        .recvtype = weft_type_of(MPI_INT),
    };
    return weft_team_trust(&parent->team, weft_coll_run(&parent->team, WEFT_COLL_GATHER, &coll));
}

static int bcast_from_first(weft_comm *parent, uint32_t *words, uint32_t count)
{
    weft_coll coll = {.recvbuf = words, .recvcount = count, .recvtype = weft_type_of(MPI_UINT32_T)};
    return weft_team_trust(&parent->team, weft_coll_run(&parent->team, WEFT_COLL_BCAST, &coll));
}

/* all: for each member its socket, its number of edges and these, `words` together. Moves the edges to the front of all. */
static int compute_gathered(const weft_comm *parent, int *all, uint32_t words, uint32_t *order)
{
    weft_topo_graph graph = {0};
    uint32_t size = (uint32_t)parent->size, *socket = malloc(size * sizeof *socket);
    uint64_t edges = 0;
    int rc = socket ? 0 : no_memory(parent);
    for (uint32_t i = 0; i < size && !rc; i++) {
        const int *from = all + (size_t)i * words;
        uint64_t count = (uint32_t)from[1];
        socket[i] = (uint32_t)from[0];
        memmove(all + 3 * edges, from + 2, 3 * count * sizeof *all);
        edges += count;
    }
    if (!rc)
        rc = weft_topo_graph_of_edges(size, all, edges, &graph);
    if (!rc)
        rc = compute(parent, &graph, socket, order);
    weft_topo_graph_free(&graph);
    free(socket);
    return rc;
}

/* The exchange itself. order: [size + 1], its last word says whether rank 0 succeeded. */
static int order_gathered(weft_comm *parent, const int *part, uint32_t words, int *all, uint32_t *order)
{
    int own = 0, rc = gather_to_first(parent, part, words, all);
    if (!rc && parent->rank == 0) {
        own = compute_gathered(parent, all, words, order);
        order[parent->size] = own == 0;
    }
    if (!rc)
        rc = bcast_from_first(parent, order, (uint32_t)parent->size + 1);
    if (own || rc)
        return own ? own : rc;
    return order[parent->size] ? 0 : weft_fail(WEFT_E_OTHER, "rank 0 had no memory to order %d ranks", parent->size);
}

int weft_topo_order_edges(weft_comm *parent, const int *edges, uint32_t count, uint32_t count_max, uint32_t **out)
{
    weft_exchange over = weft_exchange_over_comm(parent);
    uint64_t size = (uint64_t)parent->size;
    uint32_t words = 2 + 3 * count_max, *order;
    int *part, *all = NULL, rc = 0;
    *out = NULL;
    if (size * count_max > WEFT_TOPO_EDGES_MAX)
        return 0;
    part = malloc(words * sizeof *part);
    order = malloc((size + 1) * sizeof *order);
    if (parent->rank == 0)
        all = malloc(size * words * sizeof *all);
    if (!part || !order || (parent->rank == 0 && !all))
        rc = no_memory(parent);
    rc = weft_exchange_agree(&over, rc, NULL, 0);
    if (!rc) {
        memset(part, 0, words * sizeof *part);
        part[0] = (int)own_socket();
        part[1] = (int)count;
        if (count)
            memcpy(part + 2, edges, 3 * (size_t)count * sizeof *edges);
        rc = order_gathered(parent, part, words, all, order);
    }
    free(part);
    free(all);
    if (!rc)
        *out = order;
    else
        free(order);
    return rc;
}

int weft_topo_map(const weft_comm *parent, const weft_topo *topo, int *newrank)
{
    uint32_t *socket = calloc((size_t)parent->size, sizeof *socket), *order = malloc((size_t)parent->size * sizeof *order), count = 1;
    int rc = socket && order ? compute_topo(parent, topo, socket, order) : no_memory(parent);
    for (int d = 0; topo->kind == MPI_CART && d < topo->cart.ndims; d++)
        count *= (uint32_t)topo->cart.dims[d];
    if (topo->kind == MPI_GRAPH)
        count = (uint32_t)topo->graph.nnodes;
    if (!rc)
        *newrank = MPI_UNDEFINED;
    for (uint32_t i = 0; i < count && !rc; i++)
        if (order[i] == (uint32_t)parent->rank)
            *newrank = (int)i;
    free(socket);
    free(order);
    return rc;
}
