/* SPDX-License-Identifier: BSD-3-Clause
 *
 * comm_make: makes intracommunicators over a set of members and an exchange (exchange.h), for all calls that create communicators.
 */
#ifndef WEFT_MPI_COMM_MAKE_H
#define WEFT_MPI_COMM_MAKE_H

#include "mpi/exchange.h"

/* The members of a new communicator, which are among the participants of an exchange. */
typedef struct weft_comm_members {
    const weft_exchange *exchange;
    uint32_t size, rank;          /* of the new communicator; size 0: this process becomes no member */
    const uint32_t *participants; /* [size] number of each member among the participants; NULL: equal */
    weft_group *group;            /* the members; borrowed; NULL if size is 0 */
} weft_comm_members;

/* Collective over the exchange's participants. rc: an earlier error of this one; then all fail. *comm NULL: no member, or error. */
int weft_comm_make(const weft_comm_members *members, int rc, weft_comm **comm);
/* Local: a communicator of these members with open channels that are not connected, worker and error handler of `from`. Also on an error
 * *comm is what was made, for weft_comm_close; NULL: nothing. */
int weft_comm_open(weft_comm *from, weft_group *group, uint32_t rank, weft_comm **comm);
#endif
