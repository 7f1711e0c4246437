/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exchange: agreement and data exchange between the processes that make a communicator: over the collectives of an existing
 * communicator, by messages among some of its members, or over an intercommunicator. Blocking; requires the worker's lock.
 * Invariant: all participants make the same calls in the same order. A call that makes a communicator begins with an agreement, in which a
 * participant that has failed before, by its arguments or for lack of memory, takes part all the same.
 */
#ifndef WEFT_MPI_EXCHANGE_H
#define WEFT_MPI_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "mpi/bridge.h"
#include "mpi/comm.h"

struct weft_exchange_ops;

typedef struct weft_exchange {
    const struct weft_exchange_ops *ops;
    weft_comm *comm;         /* over which; its worker and error handler become the new communicator's */
    weft_chan *chan;         /* by messages: over which; a collective channel of comm, or the instance's service channel */
    uint32_t size, rank;     /* participants, and the number of this one */
    const weft_group *group; /* by messages: the participants, members of the channel's group; borrowed */
    uint32_t first;          /* by messages: the member of the group that is participant 0; the others follow in turn */
    int tag;                 /* by messages */
    bool is_collective;      /* participants are all of comm, an intracommunicator: errors of its collectives reach the new one's */
    bool remote_first;       /* intercommunicator: participants are the remote group, then the local one; else the other way round */
} weft_exchange;

/* Participants: all members of an intracommunicator. */
weft_exchange weft_exchange_over_comm(weft_comm *comm);
/* Participants: the members of `group`, all members of chan's group; `rank` is this process's place. tag: of the program, keeps concurrent
 * calls apart. Allocates nothing, so nothing can fail before the participants agree. */
weft_exchange weft_exchange_by_messages(weft_comm *comm, weft_chan *chan, const weft_group *group, uint32_t rank, int tag);
/* Participants: both groups of an intercommunicator. */
weft_exchange weft_exchange_over_intercomm(weft_comm *comm, bool remote_first);

#define WEFT_EXCHANGE_WORDS 16
/* inout[i] becomes the minimum over all participants, count <= WEFT_EXCHANGE_WORDS. 0 or an error. */
int weft_exchange_min(const weft_exchange *exchange, uint32_t *inout, uint32_t count);
#define WEFT_EXCHANGE_AGREED 7
/* The participants agree on their results. rc: of this one, 0 or an error with its text; words[count], count <= WEFT_EXCHANGE_AGREED. 0:
 * rc is 0 on all, and words[i] is now the minimum over all. An error is one on all: a participant that has failed gets its own rc and text,
 * the others one that names the first that failed. By messages also WEFT_E_PEER on all: a participant has left the job. Agreements do not
 * differ in their messages, whatever count is. */
int weft_exchange_agree(const weft_exchange *exchange, int rc, uint32_t *words, uint32_t count);
/* The error of a participant whose own part succeeded. failed: the number of one that failed. */
int weft_exchange_failed(const weft_exchange *exchange, uint32_t failed) __attribute__((cold));
/* By messages: words[count] of participant 0 go to all, words[0] < 2^31. Participant 0 waits for none of the others. */
int weft_exchange_spread(const weft_exchange *exchange, uint32_t *words, uint32_t count);
/* all[i * words ...] becomes participant i's part[words]. */
int weft_exchange_gather(const weft_exchange *exchange, const uint32_t *part, uint32_t words, uint32_t *all);

/* A message of such a call found no memory, and others wait for it: called before the next try, with the number of tries. Polls; ends the
 * job when that has not helped for long. */
void weft_exchange_before_retry(weft_worker *worker, int tries) __attribute__((cold));

/* Swaps data between the groups: part[words], the same on all members of a group, becomes remote_part[remote_words] on all members of the
 * other. */
int weft_bridge_swap(const weft_bridge *bridge, const uint32_t *part, uint32_t words, uint32_t *remote_part, uint32_t remote_words);
/* weft_exchange_agree over both groups. words[count] become the minima over the local group, remote_words[count] those over the other one.
 * Where the local group fails its leader reports that to the other group's, if bridge->chan is not NULL; else that group waits. */
int weft_bridge_agree(const weft_bridge *bridge, int rc, uint32_t *words, uint32_t *remote_words, uint32_t count);
/* The leader's part of the agreement alone, for a local group that has failed before it had an intracommunicator; chan may be NULL. rank:
 * the first member that failed; UINT32_MAX: not known. */
void weft_bridge_refuse(const weft_bridge *bridge, uint32_t rank);
/* The bridge of an intercommunicator, between ranks 0 of both groups. */
weft_bridge weft_bridge_of(weft_comm *comm);

#endif
