/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checks: argument checks of API calls. Generated entry points run the inline checks on every call. If one fails, they call the cold
 * functions, which find the invalid argument and describe it with weft_fail.
 * Invariant: the text names the function, the argument, its value and the communicator, if there is one.
 */
#ifndef WEFT_API_CHECKS_H
#define WEFT_API_CHECKS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Declared hidden before their headers, so that entries access them without the GOT. */
#pragma GCC visibility push(hidden)
extern struct weft_world *weft_world_now, *weft_world_model;
extern const struct MPI_ABI_Datatype *const weft_type_table[256];
extern const struct MPI_ABI_Op *const weft_op_table[32];
#pragma GCC visibility pop

#include "base/counts.h"
#include "base/event.h"
#include "base/macros.h"
#include "base/status.h"
#include "core/group.h"
#include "core/world.h"
#include "mpi/comm.h"
#include "mpi/info.h"
#include "mpi/message.h"
#include "mpi/session_type.h"
#include "mpi/topo.h"
#include "mpi/win.h"
#include "type/op.h"
#include "type/type.h"

#define WEFT_ENTRY __attribute__((visibility("default")))
#define WEFT_COLD static __attribute__((cold, noinline))
#define WEFT_APART static __attribute__((noinline))
/* MPI_X is a weak alias of PMPI_X: a program or tool may define its own (MPI 5.0 15.2). */
#define WEFT_ALIAS(name) extern __typeof__(P##name) name __attribute__((weak, alias("P" #name), visibility("default")))

/* weft_comm_of, weft_type_of and weft_op_of with the common case first; same results. */
static inline weft_comm *weft_checks_comm_at(MPI_Comm handle)
{
    if (weft_likely(handle == MPI_COMM_WORLD)) {
        weft_world *world = weft_world_model; /* its mpi is set between MPI_Init and MPI_Finalize */
        weft_comm *comm;
        if (weft_unlikely(!world))
            return NULL;
        comm = ((weft_mpi_world *)world->mpi)->comm_world;
        if (!comm)
            __builtin_unreachable(); /* lets callers skip their NULL test */
        return comm;
    }
    return weft_comm_of(handle);
}
static inline const weft_type *weft_checks_type_at(MPI_Datatype handle)
{
    uintptr_t index = (uintptr_t)handle - 0x200;
    if (weft_likely(index < 256))
        return weft_type_table[index];
    return weft_type_of(handle);
}
/* The type, if communication may use it. NULL: invalid, not committed, or not supported by this compiler. */
static inline const weft_type *weft_checks_ready_at(MPI_Datatype handle)
{
    uintptr_t index = (uintptr_t)handle - 0x200;
    const weft_type *type;
    if (weft_likely(index < 256)) {
        type = weft_type_table[index];
        return weft_likely(type && !type->is_absent) ? type : NULL;
    }
    type = weft_type_of(handle);
    return weft_likely(type && type->is_committed) ? type : NULL;
}
static inline const weft_op *weft_checks_op_at(MPI_Op handle)
{
    uintptr_t index = (uintptr_t)handle - 0x20;
    if (weft_likely(index < 32))
        return weft_op_table[index];
    return weft_op_of(handle);
}

static inline weft_group *weft_checks_group_at(MPI_Group handle) { return weft_group_of(handle); }

/* Neither MPI_REQUEST_NULL nor a live request? */
static inline bool weft_checks_is_bad(MPI_Request request)
{
    if (weft_unlikely(weft_object_is_constant(request)))
        return request != MPI_REQUEST_NULL;
    return ((const weft_req *)(const void *)request)->magic != WEFT_REQ_MAGIC;
}

/* Is the array NULL or one of its requests invalid? The caller has checked that count is not negative. */
static inline bool weft_checks_some_bad(const MPI_Request *requests, int count)
{
    bool bad = !requests && count > 0;
    for (int i = 0; i < count && !bad; i++)
        bad = weft_checks_is_bad(requests[i]);
    return bad;
}

/* NULL, MPI_IN_PLACE and MPI_BUFFER_AUTOMATIC need the full check. */
static inline bool weft_checks_buffer_is_odd(const void *buf) { return (uintptr_t)buf <= 2; }

/* Does count exceed type->count_max, so that a product could overflow? Also true for a negative count. */
static inline bool weft_checks_is_long(MPI_Count count, const weft_type *type) { return (uint64_t)count > type->count_max; }
/* The same for a block of count elements per rank. */
static inline bool weft_checks_are_long(MPI_Count count, const weft_type *type, int ranks)
{
    uint64_t all;
    return __builtin_mul_overflow((uint64_t)count, (uint64_t)ranks, &all) || all > type->count_max;
}

/* Is the array NULL, although count > 0, or one of its elements negative? False if count is negative. */
bool weft_checks_counts_odd(weft_counts counts, MPI_Count count);
/* Is the array NULL, although count > 0, or one of its handles no datatype, or one that this compiler does not have? */
bool weft_checks_types_odd(const MPI_Datatype *types, MPI_Count count);

/* Roles in a collective call with a root, which is valid (MPI 5.0 6.2.3): the root; a rank that gives or gets a block, on an
 * intercommunicator those of the group without the root; either of them; a root that has a block too. */
static inline bool weft_checks_is_root(const weft_comm *comm, int root) { return root == (comm->is_inter ? MPI_ROOT : comm->rank); }
static inline bool weft_checks_has_block(const weft_comm *comm, int root) { return !comm->is_inter || root >= 0; }
static inline bool weft_checks_takes_part(const weft_comm *comm, int root) { return !comm->is_inter || root != MPI_PROC_NULL; }
static inline bool weft_checks_is_own_root(const weft_comm *comm, int root) { return !comm->is_inter && comm->rank == root; }

static inline weft_session *weft_checks_session_at(MPI_Session handle) { return weft_session_of(handle); }
static inline weft_win *weft_checks_win_at(MPI_Win handle) { return weft_win_of(handle); }
static inline weft_info *weft_checks_info_at(MPI_Info handle) { return weft_info_of(handle); }

/* Raises MPI_ERR_UNSUPPORTED_OPERATION for a function that is not implemented, with the error handler of comm if that is a valid
 * handle. Returns the MPI class. */
int weft_checks_missing(MPI_Comm comm, const char *function) __attribute__((cold));
/* The same for files, with their default handler MPI_ERRORS_RETURN (MPI 5.0 14.7). */
int weft_checks_missing_file(const char *function) __attribute__((cold));

/* An argument of a joint call is wrong: does the call go on, to tell the other members? Not if the error handler of `at` ends the job. */
bool weft_checks_goes_on(weft_traits *at) __attribute__((cold));

/* Full checks. Each returns 0 if the argument is valid after all, else an inner code with a text (weft_fail). comm: the call's
 * communicator, or NULL; argument: the parameter's name. */
#define WEFT_ABOUT const char *function, const weft_comm *comm, const char *argument
int weft_checks_alive(const char *function) __attribute__((cold));
int weft_checks_comm(WEFT_ABOUT, MPI_Comm handle) __attribute__((cold));
int weft_checks_type(WEFT_ABOUT, MPI_Datatype handle, bool must_be_committed) __attribute__((cold));
int weft_checks_op(WEFT_ABOUT, MPI_Op handle) __attribute__((cold));
int weft_checks_group(WEFT_ABOUT, MPI_Group handle) __attribute__((cold));
int weft_checks_requests(WEFT_ABOUT, const MPI_Request *requests, int count, bool is_array) __attribute__((cold));
int weft_checks_info(WEFT_ABOUT, MPI_Info handle, bool may_be_null) __attribute__((cold));
int weft_checks_session(WEFT_ABOUT, MPI_Session handle) __attribute__((cold));
int weft_checks_message(WEFT_ABOUT, MPI_Message handle) __attribute__((cold));
int weft_checks_win(WEFT_ABOUT, MPI_Win handle) __attribute__((cold));
int weft_checks_count(WEFT_ABOUT, MPI_Count count) __attribute__((cold));
/* WEFT_E_COUNT if `ranks` blocks of count elements exceed WEFT_TYPE_SPAN_MAX. */
int weft_checks_span(WEFT_ABOUT, MPI_Count count, MPI_Datatype type, int ranks) __attribute__((cold));
int weft_checks_bytes(WEFT_ABOUT, MPI_Count bytes) __attribute__((cold));
int weft_checks_blocklength(WEFT_ABOUT, MPI_Count length) __attribute__((cold));
int weft_checks_length(WEFT_ABOUT, MPI_Count length) __attribute__((cold)); /* of an array */
/* Arrays of `count` elements: NULL is an error of class MPI_ERR_ARG unless count is 0. */
int weft_checks_array(WEFT_ABOUT, const void *array, MPI_Count count) __attribute__((cold));
int weft_checks_counts(WEFT_ABOUT, weft_counts counts, MPI_Count count) __attribute__((cold));
int weft_checks_blocklengths(WEFT_ABOUT, weft_counts lengths, MPI_Count count) __attribute__((cold));
int weft_checks_types(WEFT_ABOUT, const MPI_Datatype *types, MPI_Count count) __attribute__((cold));
int weft_checks_dest(WEFT_ABOUT, int rank) __attribute__((cold));
int weft_checks_source(WEFT_ABOUT, int rank) __attribute__((cold));
int weft_checks_root(WEFT_ABOUT, int rank) __attribute__((cold));
int weft_checks_tag(WEFT_ABOUT, int tag, bool may_be_any) __attribute__((cold));
int weft_checks_pointer(WEFT_ABOUT, const void *pointer) __attribute__((cold));
int weft_checks_buffer(WEFT_ABOUT, const void *buf, MPI_Count count, MPI_Datatype type,
    bool may_be_in_place) __attribute__((cold));
int weft_checks_buffer_bytes(WEFT_ABOUT, const void *buf, MPI_Count bytes) __attribute__((cold));
int weft_checks_apart(const char *function, const weft_comm *comm, const void *sendbuf, const void *recvbuf, MPI_Count count)
    __attribute__((cold));
/* WEFT_E_TOOLARGE: the int form of a function cannot return the value. */
int weft_checks_too_large(WEFT_ABOUT, MPI_Count value) __attribute__((cold));

#endif
