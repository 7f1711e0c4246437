/* SPDX-License-Identifier: BSD-3-Clause
 *
 * topologies: grids, graphs and distributed graphs, with and without reorder (MPI 5.0, 8.5).
 */
#include <string.h>

#include "random.h"

static void topology_grid(rp_dice *dice, rp_comm *made, int n)
{
    int room = n;
    made->dims = 1 + (int)rp_draw(dice, 3);
    for (int d = 0; d < made->dims; d++) {
        made->dim[d] = 1 + (int)rp_draw(dice, (uint32_t)room);
        room /= made->dim[d];
        made->periodic[d] = (int)rp_draw(dice, 2);
    }
}

/* Forms: 0 grid, 1 graph (a ring), 2 adjacent distributed graph, 3 general one. Reorder only where all ranks take part. */
void plan_topology(rp *rp, rp_step *step)
{
    rp_dice *dice = &step->dice;
    step->slot = rp_comm_slot(rp, 0);
    step->other = rp_comm_pick(rp, dice, false, true);
    step->form = (int)rp_draw(dice, 4);
    step->variant = (int)rp_draw(dice, 3) == 0;
    const rp_comm *old = &rp->comms[step->other];
    int n = old->n[0];
    rp_comm made = {.is_order_known = true, .marks = -1};
    if (step->slot < 0) {
        rp_say(step, "topology: no slot is free");
        return;
    }
    made.n[0] = n;
    if (step->form == 0) {
        topology_grid(dice, &made, n);
        made.n[0] = 1;
        for (int d = 0; d < made.dims; d++)
            made.n[0] *= made.dim[d];
    }
    step->shift = 1 + (int)rp_draw(dice, 2);
    step->variant = step->variant && made.n[0] == n;
    made.is_order_known = !step->variant;
    memcpy(made.members[0], old->members[0], sizeof(int) * (size_t)made.n[0]);
    rp_comm_enter(rp, step, step->slot, &made);
    rp_say(step, "topology %d of %d: form %d, %d of %d ranks%s", step->slot, step->other, step->form, made.n[0], n,
           step->variant ? ", reordered" : "");
}

static void make_topology(rp *rp, rp_step *step, const rp_comm *old, rp_comm *comm)
{
    int n = old->n[0], index[RP_RANKS], edges[RP_RANKS], one = 1;
    int to = (old->rank + step->shift) % n, from = (old->rank + n - step->shift % n) % n;
    switch (step->form) {
    case 0:
        RP_OK(rp, MPI_Cart_create(old->mpi, comm->dims, comm->dim, comm->periodic, step->variant, &comm->mpi));
        break;
    case 1:
        for (int i = 0; i < n; i++) {
            index[i] = i + 1;
            edges[i] = (i + step->shift) % n;
        }
        RP_OK(rp, MPI_Graph_create(old->mpi, n, index, edges, step->variant, &comm->mpi));
        break;
    case 2:
        RP_OK(rp, MPI_Dist_graph_create_adjacent(old->mpi, 1, &from, MPI_UNWEIGHTED, 1, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, step->variant,
                                                 &comm->mpi));
        break;
    default: { /* each rank names the edge of its right neighbour */
        int source = (old->rank + 1) % n, target = (source + step->shift) % n;
        RP_OK(rp, MPI_Dist_graph_create(old->mpi, 1, &source, &one, &target, MPI_UNWEIGHTED, MPI_INFO_NULL, step->variant, &comm->mpi));
    }
    }
}

static void verify_grid(rp *rp, const rp_comm *comm)
{
    int coords[3], rest = comm->rank, rank, low, high, want[3];
    for (int d = comm->dims - 1; d >= 0; d--) {
        want[d] = rest % comm->dim[d];
        rest /= comm->dim[d];
    }
    RP_OK(rp, MPI_Cart_coords(comm->mpi, comm->rank, comm->dims, coords));
    for (int d = 0; d < comm->dims; d++)
        RP_SAME(rp, coords[d], want[d], "MPI_Cart_coords");
    RP_OK(rp, MPI_Cart_rank(comm->mpi, coords, &rank));
    RP_SAME(rp, rank, comm->rank, "MPI_Cart_rank");
    for (int d = 0, stride = comm->n[0]; d < comm->dims; d++) {
        stride /= comm->dim[d];
        int up = coords[d] + 1 < comm->dim[d] ? rank + stride : comm->periodic[d] ? rank - coords[d] * stride : MPI_PROC_NULL;
        RP_OK(rp, MPI_Cart_shift(comm->mpi, d, 1, &low, &high));
        RP_SAME(rp, high, up, "MPI_Cart_shift");
    }
}

static void verify_graph(rp *rp, rp_step *step, const rp_comm *comm)
{
    int n = comm->n[0], count, to[4], from[4], weighted, out;
    if (step->form == 1) {
        RP_OK(rp, MPI_Graph_neighbors_count(comm->mpi, comm->rank, &count));
        RP_SAME(rp, count, 1, "MPI_Graph_neighbors_count");
        RP_OK(rp, MPI_Graph_neighbors(comm->mpi, comm->rank, 4, to));
        RP_SAME(rp, to[0], (comm->rank + step->shift) % n, "MPI_Graph_neighbors");
        return;
    }
    RP_OK(rp, MPI_Dist_graph_neighbors_count(comm->mpi, &count, &out, &weighted));
    RP_SAME(rp, count * 100 + out * 10 + !!weighted, 110, "MPI_Dist_graph_neighbors_count");
    RP_OK(rp, MPI_Dist_graph_neighbors(comm->mpi, 1, from, MPI_UNWEIGHTED, 1, to, MPI_UNWEIGHTED));
    RP_SAME(rp, to[0], (comm->rank + step->shift) % n, "MPI_Dist_graph_neighbors: destination");
    RP_SAME(rp, from[0], (comm->rank + 2 * n - step->shift) % n, "MPI_Dist_graph_neighbors: source");
}

void run_topology(rp *rp, rp_step *step)
{
    if (step->slot < 0 || !rp->comms[step->other].is_member)
        return;
    const rp_comm *old = &rp->comms[step->other];
    rp_comm *comm = &rp->comms[step->slot];
    make_topology(rp, step, old, comm);
    if (step->variant) { /* the members learn their order; each old rank must occur once */
        bool seen[RP_RANKS] = {false};
        RP_OK(rp, MPI_Allgather(&rp->rank, 1, MPI_INT, comm->members[0], 1, MPI_INT, comm->mpi));
        rp_comm_find_self(rp, comm);
        for (int i = 0; i < comm->n[0]; i++) {
            int member = comm->members[0][i];
            RP_SAME(rp, member >= 0 && member < RP_RANKS, 1, "reorder: a member is no rank");
            if (member < 0 || member >= RP_RANKS)
                return; /* a network that damages data */
            RP_SAME(rp, seen[member], 0, "reorder: a process occurs twice");
            seen[member] = true;
        }
    }
    rp_comm_verify(rp, comm);
    if (!comm->is_member)
        return;
    if (step->form == 0)
        verify_grid(rp, comm);
    else if (!step->variant || step->form == 1) /* reordered, the edges of the distributed forms join the same ranks of the new one */
        verify_graph(rp, step, comm);
}
