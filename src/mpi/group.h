/* SPDX-License-Identifier: BSD-3-Clause
 *
 * group: handles of groups (MPI 5.0 7.3). The groups themselves are core/group.h. Used by all calls that return an MPI_Group.
 */
#ifndef WEFT_MPI_GROUP_H
#define WEFT_MPI_GROUP_H

#include <mpi.h>

#include "core/group.h"

/* Returns a user handle; the user must free it. Consumes one reference of the caller. MPI_GROUP_EMPTY if there are no members. */
static inline MPI_Group weft_group_handle(weft_group *group)
{
    if (!group->size)
        return MPI_GROUP_EMPTY;
    __atomic_add_fetch(&group->handles, 1, __ATOMIC_RELAXED);
    return group;
}

#endif
