/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bridge_wait: finds calls that make an intercommunicator and can never end (MPI 5.0 7.6.2): leaders with different tags or peer_comms, a
 * remote_leader that is no leader, a leader whose arguments were wrong. Called by exchange.c and intercomm.c; requires the worker's lock.
 * Invariant: a program that is right is never disturbed. Only processes without MPI_THREAD_MULTIPLE take part: while such a process waits
 * in one call, no other thread of it can make the call that another process waits for.
 */
#ifndef WEFT_MPI_BRIDGE_WAIT_H
#define WEFT_MPI_BRIDGE_WAIT_H

#include "mpi/bridge.h"

/* Registers the handlers of the service channel. 0 or WEFT_E_NOMEM. */
int weft_bridge_wait_open(weft_mpi_world *mpi);
void weft_bridge_wait_close(weft_mpi_world *mpi);

/* A call that makes an intercommunicator begins and ends. The others of the local group wait for its leader until it ends. */
void weft_bridge_call_begin(const weft_bridge *bridge);
void weft_bridge_call_end(const weft_bridge *bridge);
/* The leader waits for the other leader's message. is_refusal: its group does not wait for it. */
void weft_bridge_wait_begin(const weft_bridge *bridge, weft_req *receive, bool is_refusal);
/* Can the message never come? Then the wait ends, with the error of weft_bridge_wait_error. */
bool weft_bridge_wait_is_lost(const weft_bridge *bridge, const weft_req *receive);
int weft_bridge_wait_error(const weft_bridge *bridge) __attribute__((cold));
void weft_bridge_wait_end(const weft_bridge *bridge);
/* This process, a leader, fails without knowing the other leader, which may wait for it on chan. */
void weft_bridge_fail_unseen(const weft_chan *chan, int tag) __attribute__((cold));

#endif
