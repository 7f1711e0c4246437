/* np: 1 2 3 4 6 8 : neighborhood collectives on grids, graphs and distributed graphs, in all forms: each block comes from its edge */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum { EDGES = 32, LENGTH = 7, FORMS = 6, UNTOUCHED = -1 };
enum operation { ALLGATHER, ALLGATHERV, ALLTOALL, ALLTOALLV, ALLTOALLW, OPERATIONS };

/* This member's edges, and for each incoming one the index that it has among the outgoing edges of its source. */
typedef struct edges {
    int in, out, source[EDGES], destination[EDGES], index_there[EDGES];
} edges;

static int rank, size;

/* -- edges of a communicator -- */

static int edge_among(const int *all, int from, int to, int nth)
{
    for (int i = 0; i < all[from * (EDGES + 1)]; i++)
        if (all[from * (EDGES + 1) + 1 + i] == to && !nth--)
            return i;
    return -1;
}

/* Several edges from one member to another: the first one out is the first one in. */
static void find_indices(edges *e, MPI_Comm comm)
{
    int own[EDGES + 1] = {e->out}, n, me, *all;
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Comm_rank(comm, &me));
    memcpy(own + 1, e->destination, sizeof e->destination);
    all = malloc((size_t)n * sizeof own);
    CHECK(all);
    OK(MPI_Allgather(own, EDGES + 1, MPI_INT, all, EDGES + 1, MPI_INT, comm));
    for (int i = 0, nth; i < e->in; i++) {
        nth = 0;
        for (int before = 0; before < i; before++)
            nth += e->source[before] == e->source[i];
        e->index_there[i] = edge_among(all, e->source[i], me, nth);
        CHECK(e->index_there[i] >= 0, "edge %d from %d", i, e->source[i]);
    }
    free(all);
}

static edges edges_of(MPI_Comm comm)
{
    edges e = {0};
    int kind, me, ignored;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Topo_test(comm, &kind));
    if (kind == MPI_CART) {
        OK(MPI_Cartdim_get(comm, &e.in));
        for (int d = 0; d < e.in; d++) {
            OK(MPI_Cart_shift(comm, d, 1, &e.source[2 * d], &e.source[2 * d + 1]));
            e.index_there[2 * d] = 2 * d + 1; /* from below comes what the member there sends up */
            e.index_there[2 * d + 1] = 2 * d;
        }
        e.in = e.out = 2 * e.in;
        memcpy(e.destination, e.source, sizeof e.source);
    } else if (kind == MPI_GRAPH) {
        OK(MPI_Graph_neighbors_count(comm, me, &e.in));
        OK(MPI_Graph_neighbors(comm, me, EDGES, e.source));
        e.out = e.in;
        memcpy(e.destination, e.source, sizeof e.source);
        find_indices(&e, comm);
    } else {
        OK(MPI_Dist_graph_neighbors_count(comm, &e.in, &e.out, &ignored));
        OK(MPI_Dist_graph_neighbors(comm, EDGES, e.source, MPI_UNWEIGHTED, EDGES, e.destination, MPI_UNWEIGHTED));
        find_indices(&e, comm);
    }
    return e;
}

/* -- blocks -- */

static int length_of(int from, int edge, int is_v) { return is_v ? (from * 5 + edge * 3) % (LENGTH + 1) : LENGTH; }

static int value_of(int from, int edge, int at, int round) { return ((round * 100 + from) * EDGES + edge) * 100 + at; }

/* Blocks lie LENGTH + 1 ints apart, in reverse order for the forms with displacements. */
static int place_of(int edge, int count, int has_displs) { return (LENGTH + 1) * (has_displs ? count - 1 - edge : edge); }

typedef struct call {
    int send[EDGES * (LENGTH + 1)], recv[EDGES * (LENGTH + 1)], sent, scounts[EDGES], rcounts[EDGES], sdispls[EDGES], rdispls[EDGES];
    MPI_Count scounts_c[EDGES], rcounts_c[EDGES];
    MPI_Aint sdispls_c[EDGES], rdispls_c[EDGES], sbytes[EDGES], rbytes[EDGES];
    MPI_Datatype stypes[EDGES], rtypes[EDGES];
} call;

static int is_gather(enum operation op) { return op == ALLGATHER || op == ALLGATHERV; }
static int is_v(enum operation op) { return op != ALLGATHER && op != ALLTOALL; }

/* In the plain operations a block is LENGTH ints and a gap of one: a resized type. */
static void fill(call *c, enum operation op, const edges *e, int me, MPI_Datatype block)
{
    memset(c, 0xFF, sizeof *c);
    c->sent = length_of(me, 0, is_v(op));
    for (int i = 0; i < e->out; i++) {
        c->scounts_c[i] = c->scounts[i] = length_of(me, i, is_v(op));
        c->sdispls_c[i] = c->sdispls[i] = place_of(i, e->out, is_v(op));
        c->sbytes[i] = c->sdispls[i] * (MPI_Aint)sizeof(int);
        c->stypes[i] = MPI_INT;
    }
    for (int i = 0; i < e->in; i++) {
        int edge = is_gather(op) ? 0 : e->index_there[i];
        c->rcounts_c[i] = c->rcounts[i] = e->source[i] < 0 ? LENGTH : length_of(e->source[i], edge, is_v(op));
        c->rdispls_c[i] = c->rdispls[i] = place_of(i, e->in, is_v(op));
        c->rbytes[i] = c->rdispls[i] * (MPI_Aint)sizeof(int);
        c->rtypes[i] = i % 2 && c->rcounts[i] == LENGTH ? block : MPI_INT;
        if (c->rtypes[i] == block)
            c->rcounts_c[i] = c->rcounts[i] = 1;
    }
    if (op != ALLTOALLW)
        for (int i = 0; i < e->in; i++)
            c->rcounts_c[i] = c->rcounts[i] = c->rtypes[i] == block ? LENGTH : c->rcounts[i];
}

static void set_values(call *c, enum operation op, const edges *e, int me, int round)
{
    memset(c->recv, UNTOUCHED, sizeof c->recv);
    for (int i = 0; i < (is_gather(op) ? 1 : e->out); i++)
        for (int at = 0; at < LENGTH; at++)
            c->send[(is_gather(op) ? 0 : place_of(i, e->out, is_v(op))) + at] = value_of(me, i, at, round);
}

static void check_values(const call *c, enum operation op, const edges *e, int form, int round)
{
    for (int i = 0; i < e->in; i++) {
        int edge = is_gather(op) ? 0 : e->index_there[i], from = e->source[i], length = from < 0 ? 0 : length_of(from, edge, is_v(op));
        const int *block = c->recv + place_of(i, e->in, is_v(op));
        for (int at = 0; at <= LENGTH; at++)
            CHECK(block[at] == (at < length ? value_of(from, edge, at, round) : UNTOUCHED),
                  "operation %d, form %d: block %d from %d (its edge %d)[%d] is %d", op, form, i, from, edge, at, block[at]);
    }
}

/* -- the calls -- */

static void blocking(call *c, enum operation op, MPI_Comm comm, MPI_Datatype block)
{
    switch (op) {
    case ALLGATHER: OK(MPI_Neighbor_allgather(c->send, 1, block, c->recv, 1, block, comm)); return;
    case ALLGATHERV: OK(MPI_Neighbor_allgatherv(c->send, c->sent, MPI_INT, c->recv, c->rcounts, c->rdispls, MPI_INT, comm)); return;
    case ALLTOALL: OK(MPI_Neighbor_alltoall(c->send, 1, block, c->recv, 1, block, comm)); return;
    case ALLTOALLV:
        OK(MPI_Neighbor_alltoallv(c->send, c->scounts, c->sdispls, MPI_INT, c->recv, c->rcounts, c->rdispls, MPI_INT, comm));
        return;
    default:
        OK(MPI_Neighbor_alltoallw(c->send, c->scounts, c->sbytes, c->stypes, c->recv, c->rcounts, c->rbytes, c->rtypes, comm));
    }
}

static void blocking_c(call *c, enum operation op, MPI_Comm comm, MPI_Datatype block)
{
    switch (op) {
    case ALLGATHER: OK(MPI_Neighbor_allgather_c(c->send, 1, block, c->recv, 1, block, comm)); return;
    case ALLGATHERV: OK(MPI_Neighbor_allgatherv_c(c->send, c->sent, MPI_INT, c->recv, c->rcounts_c, c->rdispls_c, MPI_INT, comm)); return;
    case ALLTOALL: OK(MPI_Neighbor_alltoall_c(c->send, 1, block, c->recv, 1, block, comm)); return;
    case ALLTOALLV:
        OK(MPI_Neighbor_alltoallv_c(c->send, c->scounts_c, c->sdispls_c, MPI_INT, c->recv, c->rcounts_c, c->rdispls_c, MPI_INT, comm));
        return;
    default:
        OK(MPI_Neighbor_alltoallw_c(c->send, c->scounts_c, c->sbytes, c->stypes, c->recv, c->rcounts_c, c->rbytes, c->rtypes, comm));
    }
}

static void start(call *c, enum operation op, MPI_Comm comm, MPI_Datatype block, MPI_Request *r)
{
    switch (op) {
    case ALLGATHER: OK(MPI_Ineighbor_allgather(c->send, 1, block, c->recv, 1, block, comm, r)); return;
    case ALLGATHERV: OK(MPI_Ineighbor_allgatherv(c->send, c->sent, MPI_INT, c->recv, c->rcounts, c->rdispls, MPI_INT, comm, r)); return;
    case ALLTOALL: OK(MPI_Ineighbor_alltoall(c->send, 1, block, c->recv, 1, block, comm, r)); return;
    case ALLTOALLV:
        OK(MPI_Ineighbor_alltoallv(c->send, c->scounts, c->sdispls, MPI_INT, c->recv, c->rcounts, c->rdispls, MPI_INT, comm, r));
        return;
    default:
        OK(MPI_Ineighbor_alltoallw(c->send, c->scounts, c->sbytes, c->stypes, c->recv, c->rcounts, c->rbytes, c->rtypes, comm, r));
    }
}

static void start_c(call *c, enum operation op, MPI_Comm comm, MPI_Datatype block, MPI_Request *r)
{
    switch (op) {
    case ALLGATHER: OK(MPI_Ineighbor_allgather_c(c->send, 1, block, c->recv, 1, block, comm, r)); return;
    case ALLGATHERV:
        OK(MPI_Ineighbor_allgatherv_c(c->send, c->sent, MPI_INT, c->recv, c->rcounts_c, c->rdispls_c, MPI_INT, comm, r));
        return;
    case ALLTOALL: OK(MPI_Ineighbor_alltoall_c(c->send, 1, block, c->recv, 1, block, comm, r)); return;
    case ALLTOALLV:
        OK(MPI_Ineighbor_alltoallv_c(c->send, c->scounts_c, c->sdispls_c, MPI_INT, c->recv, c->rcounts_c, c->rdispls_c, MPI_INT, comm, r));
        return;
    default:
        OK(MPI_Ineighbor_alltoallw_c(c->send, c->scounts_c, c->sbytes, c->stypes, c->recv, c->rcounts_c, c->rbytes, c->rtypes, comm, r));
    }
}

static void prepare(call *c, enum operation op, MPI_Comm comm, MPI_Datatype block, MPI_Request *r)
{
    const MPI_Info none = MPI_INFO_NULL;
    switch (op) {
    case ALLGATHER: OK(MPI_Neighbor_allgather_init(c->send, 1, block, c->recv, 1, block, comm, none, r)); return;
    case ALLGATHERV:
        OK(MPI_Neighbor_allgatherv_init(c->send, c->sent, MPI_INT, c->recv, c->rcounts, c->rdispls, MPI_INT, comm, none, r));
        return;
    case ALLTOALL: OK(MPI_Neighbor_alltoall_init(c->send, 1, block, c->recv, 1, block, comm, none, r)); return;
    case ALLTOALLV:
        OK(MPI_Neighbor_alltoallv_init(c->send, c->scounts, c->sdispls, MPI_INT, c->recv, c->rcounts, c->rdispls, MPI_INT, comm, none, r));
        return;
    default:
        OK(MPI_Neighbor_alltoallw_init(c->send, c->scounts, c->sbytes, c->stypes, c->recv, c->rcounts, c->rbytes, c->rtypes, comm, none,
                                       r));
    }
}

static void prepare_c(call *c, enum operation op, MPI_Comm comm, MPI_Datatype block, MPI_Request *r)
{
    const MPI_Info none = MPI_INFO_NULL;
    switch (op) {
    case ALLGATHER: OK(MPI_Neighbor_allgather_init_c(c->send, 1, block, c->recv, 1, block, comm, none, r)); return;
    case ALLGATHERV:
        OK(MPI_Neighbor_allgatherv_init_c(c->send, c->sent, MPI_INT, c->recv, c->rcounts_c, c->rdispls_c, MPI_INT, comm, none, r));
        return;
    case ALLTOALL: OK(MPI_Neighbor_alltoall_init_c(c->send, 1, block, c->recv, 1, block, comm, none, r)); return;
    case ALLTOALLV:
        OK(MPI_Neighbor_alltoallv_init_c(c->send, c->scounts_c, c->sdispls_c, MPI_INT, c->recv, c->rcounts_c, c->rdispls_c, MPI_INT, comm,
                                         none, r));
        return;
    default:
        OK(MPI_Neighbor_alltoallw_init_c(c->send, c->scounts_c, c->sbytes, c->stypes, c->recv, c->rcounts_c, c->rbytes, c->rtypes, comm,
                                         none, r));
    }
}

static void perform(call *c, enum operation op, int form, const edges *e, MPI_Comm comm, MPI_Datatype block)
{
    MPI_Request r = MPI_REQUEST_NULL;
    int me;
    OK(MPI_Comm_rank(comm, &me));
    fill(c, op, e, me, block);
    if (form >= 4)
        (form == 4 ? prepare : prepare_c)(c, op, comm, block, &r);
    for (int round = 0; round < (form >= 4 ? 3 : 1); round++) {
        set_values(c, op, e, me, round);
        if (form < 2)
            (form ? blocking_c : blocking)(c, op, comm, block);
        else if (form < 4)
            (form == 2 ? start : start_c)(c, op, comm, block, &r);
        else
            OK(MPI_Start(&r));
        OK(MPI_Wait(&r, MPI_STATUS_IGNORE));
        check_values(c, op, e, form, round);
    }
    if (form >= 4)
        OK(MPI_Request_free(&r));
}

static void all_calls(MPI_Comm comm)
{
    static call c;
    MPI_Datatype block, ints;
    edges e;
    if (comm == MPI_COMM_NULL)
        return;
    e = edges_of(comm);
    OK(MPI_Type_contiguous(LENGTH, MPI_INT, &ints));
    OK(MPI_Type_create_resized(ints, 0, (LENGTH + 1) * sizeof(int), &block));
    OK(MPI_Type_commit(&block));
    for (int op = 0; op < OPERATIONS; op++)
        for (int form = 0; form < FORMS; form++)
            perform(&c, op, form, &e, comm, block);
    OK(MPI_Type_free(&ints));
    OK(MPI_Type_free(&block));
}

/* -- topologies -- */

static void grids(void)
{
    static const int cases[][6] = { /* dims, periods */
        {1, 1, 1, 1, 1, 1}, {2, 1, 1, 1, 0, 1}, {2, 1, 1, 0, 1, 1}, {2, 2, 1, 1, 1, 0}, {3, 1, 1, 1, 0, 0}, {4, 1, 1, 1, 1, 1},
        {2, 3, 1, 0, 1, 1}, {2, 2, 2, 1, 1, 1}, {2, 2, 2, 0, 1, 0}, {8, 1, 1, 0, 0, 0}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        MPI_Comm grid, twin;
        if (cases[i][0] * cases[i][1] * cases[i][2] > size)
            continue;
        OK(MPI_Cart_create(MPI_COMM_WORLD, 3, cases[i], cases[i] + 3, i % 2, &grid));
        all_calls(grid);
        if (grid == MPI_COMM_NULL)
            continue;
        OK(MPI_Comm_dup(grid, &twin));
        OK(MPI_Comm_free(&grid));
        all_calls(twin);
        OK(MPI_Cart_sub(twin, (const int[]){1, 0, 1}, &grid));
        all_calls(grid);
        OK(MPI_Comm_free(&grid));
        OK(MPI_Comm_free(&twin));
    }
}

/* Each member with itself, twice with its successor, once with its second successor: a symmetric multigraph. */
static void graphs(void)
{
    int index[16], edges_all[16 * EDGES], n = 0;
    MPI_Comm graph;
    for (int i = 0; i < size; i++) {
        const int neighbors[] = {i, (i + 1) % size, (i + size - 1) % size, (i + 1) % size, (i + size - 2 % size) % size, (i + 2) % size,
                                 (i + size - 1) % size};
        for (unsigned k = 0; k < sizeof neighbors / sizeof *neighbors; k++)
            edges_all[n++] = neighbors[k];
        index[i] = n;
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges_all, 0, &graph));
    all_calls(graph);
    OK(MPI_Comm_free(&graph));
}

/* Member 0 sends to all, twice to the last; all send to member 0; the last has no other edge out. */
static void dist_graphs(void)
{
    int source[EDGES], destination[EDGES], in = 0, out = 0;
    MPI_Comm graph;
    for (int i = 0; i < size && rank == 0; i++)
        destination[out++] = source[in++] = size - 1 - i;
    if (rank == 0)
        destination[out++] = size - 1;
    else
        destination[out++] = source[in++] = 0;
    if (rank == size - 1)
        source[in++] = 0;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, source, MPI_UNWEIGHTED, out, destination, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &graph));
    all_calls(graph);
    OK(MPI_Comm_free(&graph));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph));
    all_calls(graph); /* no edges: no message */
    OK(MPI_Comm_free(&graph));
}

/* Without edges no argument is read. Absolute addresses as displacements. */
static void arrays(void)
{
    int value = 5 + rank, got[2] = {0, 0}, dims = size, periods = 1, ones[2] = {1, 1};
    MPI_Aint from[2], to[2];
    MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
    MPI_Comm lone, ring;
    OK(MPI_Cart_create(MPI_COMM_SELF, 0, NULL, NULL, 0, &lone));
    OK(MPI_Neighbor_allgather(NULL, 3, MPI_INT, NULL, 3, MPI_INT, lone));
    OK(MPI_Neighbor_alltoall(got, 3, MPI_INT, got, 3, MPI_INT, lone));
    OK(MPI_Neighbor_alltoallv(NULL, NULL, NULL, MPI_INT, NULL, NULL, NULL, MPI_INT, lone));
    OK(MPI_Neighbor_alltoallw(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, lone));
    OK(MPI_Comm_free(&lone));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 0, &ring));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Get_address(&value, &from[i]));
        OK(MPI_Get_address(&got[i], &to[i]));
    }
    OK(MPI_Neighbor_alltoallw(MPI_BOTTOM, ones, from, ints, MPI_BOTTOM, ones, to, ints, ring));
    CHECK(got[0] == 5 + (rank + size - 1) % size && got[1] == 5 + (rank + 1) % size, "%d %d", got[0], got[1]);
    OK(MPI_Comm_free(&ring));
}

/* Calls of several communicators overlap; a later one may complete first. */
static void overlapping(void)
{
    enum { CALLS = 4 };
    static call calls[CALLS];
    MPI_Comm ring[2];
    MPI_Request r[CALLS];
    edges e;
    int dims = size, periods = 1;
    for (int i = 0; i < 2; i++)
        OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &dims, &periods, 0, &ring[i]));
    e = edges_of(ring[0]);
    for (int i = 0; i < CALLS; i++) {
        fill(&calls[i], ALLTOALLV, &e, rank, MPI_DATATYPE_NULL);
        set_values(&calls[i], ALLTOALLV, &e, rank, i);
        start(&calls[i], ALLTOALLV, ring[i % 2], MPI_DATATYPE_NULL, &r[i]);
    }
    for (int i = CALLS; i--;) {
        OK(MPI_Wait(&r[i], MPI_STATUS_IGNORE));
        check_values(&calls[i], ALLTOALLV, &e, 2, i);
    }
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_free(&ring[i]));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    grids();
    graphs();
    dist_graphs();
    arrays();
    overlapping();
    OK(MPI_Finalize());
    return 0;
}
