/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group: the calls on groups and those that return a communicator's groups (MPI 5.0 7.3, 7.4.1, 7.6.1). Called by the generated entries,
 * any thread, with no lock: groups never change. core/group.h has the algorithms and their costs.
 * Invariant: a group that the user has no handle of is not accepted, though a communicator may hold it.
 */
#include "mpi/group.h"

#include "base/status.h"
#include "mpi/calls.h"

/* Sets the user's handle to a new group, unless there was an error. It is of the session of the group that it was made from. */
static int return_group(int rc, const weft_group *from, weft_group **group, MPI_Group *newgroup)
{
    if (!rc && (*group)->size)
        (*group)->session = from->session;
    if (!rc)
        *newgroup = weft_group_handle(*group);
    return rc;
}

/* An array of n elements, n >= 0. */
static int check_array(int n, const void *array, const char *name)
{
    if (n < 0)
        return weft_fail(WEFT_E_ARG, "argument n is %d: it cannot be negative", n);
    if (n && !array)
        return weft_fail(WEFT_E_ARG, "argument %s is NULL, but n is %d", name, n);
    return 0;
}

int weft_mpi_group_size(weft_group *group, int *size)
{
    *size = (int)group->size;
    return 0;
}

int weft_mpi_group_rank(weft_group *group, int *rank)
{
    const weft_boot *boot = weft_world_now->boot;
    int own = weft_group_rank_of(group, (weft_process){boot->job, boot->rank});
    *rank = own < 0 ? MPI_UNDEFINED : own;
    return 0;
}

int weft_mpi_group_translate_ranks(weft_group *group1, int n, const int ranks1[], weft_group *group2, int ranks2[])
{
    int rc = check_array(n, ranks1, "ranks1");
    if (!rc)
        rc = check_array(n, ranks2, "ranks2");
    for (int i = 0; i < n && !rc; i++) {
        int rank = ranks1[i], other = MPI_PROC_NULL;
        if (rank != MPI_PROC_NULL && (uint32_t)rank >= group1->size)
            return group1->size ? weft_fail(WEFT_E_RANK, "argument ranks1[%d] is %d: not in group1 (0..%u), nor MPI_PROC_NULL", i, rank,
                                            group1->size - 1)
                                : weft_fail(WEFT_E_RANK, "argument ranks1[%d] is %d: group1 is empty", i, rank);
        if (rank != MPI_PROC_NULL) {
            other = weft_group_rank_of(group2, weft_group_process(group1, (uint32_t)rank));
            other = other < 0 ? MPI_UNDEFINED : other;
        }
        ranks2[i] = other;
    }
    return rc;
}

int weft_mpi_group_compare(weft_group *group1, weft_group *group2, int *result)
{
    static const int results[] = {[WEFT_GROUP_IDENT] = MPI_IDENT, [WEFT_GROUP_SIMILAR] = MPI_SIMILAR, [WEFT_GROUP_UNEQUAL] = MPI_UNEQUAL};
    *result = results[weft_group_compare(group1, group2)];
    return 0;
}

int weft_mpi_group_union(weft_group *group1, weft_group *group2, MPI_Group *newgroup)
{
    weft_group *group;
    return return_group(weft_group_union(group1, group2, &group), group1->size ? group1 : group2, &group, newgroup);
}

int weft_mpi_group_intersection(weft_group *group1, weft_group *group2, MPI_Group *newgroup)
{
    weft_group *group;
    return return_group(weft_group_intersection(group1, group2, &group), group1->size ? group1 : group2, &group, newgroup);
}

int weft_mpi_group_difference(weft_group *group1, weft_group *group2, MPI_Group *newgroup)
{
    weft_group *group;
    return return_group(weft_group_difference(group1, group2, &group), group1->size ? group1 : group2, &group, newgroup);
}

int weft_mpi_group_incl(weft_group *from, int n, const int ranks[], MPI_Group *newgroup)
{
    weft_group *group;
    int rc = check_array(n, ranks, "ranks");
    if (!rc)
        rc = weft_group_incl(from, (uint32_t)n, ranks, &group);
    return return_group(rc, from, &group, newgroup);
}

int weft_mpi_group_excl(weft_group *from, int n, const int ranks[], MPI_Group *newgroup)
{
    weft_group *group;
    int rc = check_array(n, ranks, "ranks");
    if (!rc)
        rc = weft_group_excl(from, (uint32_t)n, ranks, &group);
    return return_group(rc, from, &group, newgroup);
}

int weft_mpi_group_range_incl(weft_group *from, int n, int ranges[][3], MPI_Group *newgroup)
{
    weft_group *group;
    int rc = check_array(n, ranges, "ranges");
    if (!rc)
        rc = weft_group_range_incl(from, (uint32_t)n, ranges, &group);
    return return_group(rc, from, &group, newgroup);
}

int weft_mpi_group_range_excl(weft_group *from, int n, int ranges[][3], MPI_Group *newgroup)
{
    weft_group *group;
    int rc = check_array(n, ranges, "ranges");
    if (!rc)
        rc = weft_group_range_excl(from, (uint32_t)n, ranges, &group);
    return return_group(rc, from, &group, newgroup);
}

/* MPI_GROUP_EMPTY may be freed, since other calls return it as a new group (MPI 5.0 7.3.2). */
int weft_mpi_group_free(MPI_Group *handle)
{
    weft_group *group = weft_group_of(*handle);
    uint32_t handles = group ? __atomic_load_n(&group->handles, __ATOMIC_RELAXED) : 0;
    *handle = MPI_GROUP_NULL;
    if (group == &weft_group_empty)
        return 0;
    while (handles && !__atomic_compare_exchange_n(&group->handles, &handles, handles - 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
    if (!handles)
        return weft_fail(WEFT_E_GROUP, "argument group is freed already, by another thread");
    weft_group_drop(group);
    return 0;
}

int weft_mpi_comm_group(weft_comm *comm, MPI_Group *group)
{
    weft_group_hold(comm->group);
    *group = weft_group_handle(comm->group);
    return 0;
}

int weft_mpi_comm_remote_group(weft_comm *comm, MPI_Group *group)
{
    if (!comm->is_inter)
        return weft_fail(WEFT_E_COMM, "%s is an intracommunicator: it has no remote group",
                         comm->traits.name[0] ? comm->traits.name : "this communicator");
    weft_group_hold(comm->chan->group);
    *group = weft_group_handle(comm->chan->group);
    return 0;
}
