/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checks: see checks.h. Never called for a valid common call.
 * Invariant: each function repeats the check, so that an unusual but valid argument (MPI_PROC_NULL, NULL with count 0) returns 0.
 */
#include "api/checks.h"

#include <stdio.h>
#include <string.h>

#include "mpi/calls.h"
#include "mpi/errhandler.h"
#include "mpi/errors.h"

/* Writes " of MPI_COMM_WORLD" or " of communicator 'rows'", or "" without comm. Returns text. */
static const char *of_comm(const weft_comm *comm, char text[192])
{
    if (!comm)
        text[0] = 0;
    else if (comm->handle == 0x101 || comm->handle == 0x102)
        snprintf(text, 192, " of %s", comm->handle == 0x101 ? "MPI_COMM_WORLD" : "MPI_COMM_SELF");
    else if (comm->traits.name[0])
        snprintf(text, 192, " of communicator '%.127s'", comm->traits.name);
    else
        snprintf(text, 192, " of the communicator at %p", (const void *)comm);
    return text;
}

/* Writes " (on MPI_COMM_WORLD)", for texts with another subject. Returns text. */
static const char *on_comm(const weft_comm *comm, char text[192])
{
    char name[192];
    if (!comm)
        text[0] = 0;
    else
        snprintf(text, 192, " (on %.180s)", of_comm(comm, name) + 4);
    return text;
}

/* Printable form of a handle: the name of its null handle, or its value in hexadecimal. */
static const char *handle_text(const void *handle, const char *null_name, uintptr_t null_value, char text[64])
{
    uintptr_t bits = (uintptr_t)handle;
    if (bits == null_value)
        snprintf(text, 64, "%s", null_name);
    else
        snprintf(text, 64, "0x%lx%s", (unsigned long)bits,
            weft_object_is_constant(handle) ? ", no handle of this kind" : ", freed or never a handle");
    return text;
}

static int not_built(const char *function)
{
    return weft_fail(WEFT_E_UNSUPPORTED,
        "%s: not built yet in Weft %s, although its header and MPI_Get_version report %d.%d (weft-info --missing lists such functions)",
        function, PACKAGE_VERSION, MPI_VERSION, MPI_SUBVERSION);
}

bool weft_checks_goes_on(weft_traits *at)
{
    weft_errhandler *handler = weft_errhandler_get(at);
    weft_errhandler_drop(handler);
    return handler != MPI_ERRORS_ARE_FATAL && handler != MPI_ERRORS_ABORT;
}

int weft_checks_missing(MPI_Comm handle, const char *function)
{
    weft_comm *comm = handle ? weft_comm_of(handle) : NULL;
    return weft_errors_raise((weft_traits *)comm, function, not_built(function));
}

int weft_checks_missing_file(const char *function)
{
    return weft_errors_class(not_built(function));
}

int weft_checks_alive(const char *function)
{
    int is_finalized = 0;
    if (weft_world_now)
        return 0;
    weft_mpi_finalized(&is_finalized);
    return weft_fail(WEFT_E_OTHER, "%s: called %s", function, is_finalized ? "after MPI_Finalize" : "before MPI_Init");
}

/* An invalid handle. kind: what it should be, "a group"; null_name, null_value: the kind's null handle. */
static int bad_handle(WEFT_ABOUT, int code, const char *kind, const void *handle, const char *null_name, uintptr_t null_value)
{
    char value[64], on[192];
    return weft_fail(code, "%s: argument %s is %s: not %s%s", function, argument, handle_text(handle, null_name, null_value, value), kind,
                     on_comm(comm, on));
}

int weft_checks_comm(WEFT_ABOUT, MPI_Comm handle)
{
    (void)comm;
    if ((handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF) && !weft_world_model)
        return weft_fail(WEFT_E_COMM, "%s: argument %s is %s, which exists from MPI_Init to MPI_Finalize only: in the Sessions Model "
                         "make a communicator by MPI_Comm_create_from_group", function, argument,
                         handle == MPI_COMM_WORLD ? "MPI_COMM_WORLD" : "MPI_COMM_SELF");
    return weft_comm_of(handle) ? 0
                                : bad_handle(function, NULL, argument, WEFT_E_COMM, "a communicator", handle, "MPI_COMM_NULL", 0x100);
}

int weft_checks_type(WEFT_ABOUT, MPI_Datatype handle, bool must_be_committed)
{
    const weft_type *type = weft_type_of(handle);
    char on[192];
    if (!type)
        return bad_handle(function, comm, argument, WEFT_E_TYPE, "a datatype", handle, "MPI_DATATYPE_NULL", 0x200);
    if (must_be_committed && type->is_absent)
        return weft_fail(WEFT_E_TYPE, "%s: argument %s is %s: a datatype that this compiler does not have%s", function, argument,
                         type->name, on_comm(comm, on));
    if (must_be_committed && !type->is_committed)
        return weft_fail(WEFT_E_TYPE, "%s: argument %s is %s%s%s: a datatype that is not committed (MPI_Type_commit)%s", function,
                         argument, type->name[0] ? "'" : "a derived type without a name", type->name, type->name[0] ? "'" : "",
                         on_comm(comm, on));
    return 0;
}

int weft_checks_op(WEFT_ABOUT, MPI_Op handle)
{
    return weft_op_of(handle) ? 0 : bad_handle(function, comm, argument, WEFT_E_OP, "an operation", handle, "MPI_OP_NULL", 0x20);
}

int weft_checks_group(WEFT_ABOUT, MPI_Group handle)
{
    return weft_group_of(handle) ? 0 : bad_handle(function, comm, argument, WEFT_E_GROUP, "a group", handle, "MPI_GROUP_NULL", 0x108);
}

int weft_checks_requests(WEFT_ABOUT, const MPI_Request *requests, int count, bool is_array)
{
    char value[64], which[32] = "";
    (void)comm;
    if (!requests && (count > 0 || !is_array))
        return weft_fail(WEFT_E_ARG, "%s: argument %s is NULL: it must point to a request", function, argument);
    for (int i = 0; i < count; i++) {
        if (!weft_checks_is_bad(requests[i]))
            continue;
        if (is_array)
            snprintf(which, sizeof which, "[%d]", i);
        return weft_fail(WEFT_E_REQUEST, "%s: argument %s%s is %s: not a request", function, argument, which,
                         handle_text(requests[i], "NULL", 0, value));
    }
    return 0;
}

int weft_checks_session(WEFT_ABOUT, MPI_Session handle)
{
    return weft_session_of(handle) ? 0
                                   : bad_handle(function, comm, argument, WEFT_E_SESSION, "a session", handle, "MPI_SESSION_NULL", 0x120);
}

/* MPI_MESSAGE_NO_PROC may be received. */
int weft_checks_win(WEFT_ABOUT, MPI_Win handle)
{
    return weft_win_of(handle) ? 0 : bad_handle(function, comm, argument, WEFT_E_WIN, "a window", handle, "MPI_WIN_NULL", 0x110);
}

int weft_checks_message(WEFT_ABOUT, MPI_Message handle)
{
    if (weft_message_of(handle) || handle == MPI_MESSAGE_NO_PROC)
        return 0;
    return bad_handle(function, comm, argument, WEFT_E_REQUEST, "a message", handle, "MPI_MESSAGE_NULL", 0x128);
}

int weft_checks_info(WEFT_ABOUT, MPI_Info handle, bool may_be_null)
{
    if (weft_info_of(handle) || (handle == MPI_INFO_NULL && may_be_null))
        return 0;
    return bad_handle(function, comm, argument, WEFT_E_INFO, "an info object", handle, "MPI_INFO_NULL", 0x130);
}

int weft_checks_count(WEFT_ABOUT, MPI_Count count)
{
    char on[192];
    if (count >= 0)
        return 0;
    return weft_fail(WEFT_E_COUNT, "%s: argument %s is %lld: a count cannot be negative%s", function, argument, (long long)count,
                     on_comm(comm, on));
}

int weft_checks_span(WEFT_ABOUT, MPI_Count count, MPI_Datatype handle, int ranks)
{
    const weft_type *type = weft_type_of(handle);
    char on[192], blocks[48] = "";
    if (!type || !weft_checks_are_long(count, type, ranks))
        return 0;
    if (ranks > 1)
        snprintf(blocks, sizeof blocks, " for each of %d ranks", ranks);
    return weft_fail(WEFT_E_COUNT, "%s: argument %s is %lld: elements of %s (%lld bytes, extent %lld)%s exceed 2^62 bytes%s",
                     function, argument, (long long)count, type->name[0] ? type->name : "a derived type", (long long)type->size,
                     (long long)type->extent, blocks, on_comm(comm, on));
}

/* kind: what the value is, "a size". */
static int not_negative(WEFT_ABOUT, MPI_Count value, const char *kind)
{
    char on[192];
    if (value >= 0)
        return 0;
    return weft_fail(WEFT_E_ARG, "%s: argument %s is %lld: %s cannot be negative%s", function, argument, (long long)value, kind,
                     on_comm(comm, on));
}

int weft_checks_bytes(WEFT_ABOUT, MPI_Count bytes) { return not_negative(function, comm, argument, bytes, "a size"); }

int weft_checks_blocklength(WEFT_ABOUT, MPI_Count length) { return not_negative(function, comm, argument, length, "a block length"); }

int weft_checks_length(WEFT_ABOUT, MPI_Count length)
{
    return not_negative(function, comm, argument, length, "the length of an array");
}

int weft_checks_array(WEFT_ABOUT, const void *array, MPI_Count count)
{
    char on[192];
    if (array || count <= 0)
        return 0;
    return weft_fail(WEFT_E_ARG, "%s: argument %s is NULL: it must have %lld elements%s", function, argument, (long long)count,
                     on_comm(comm, on));
}

/* Index of the first negative element; count: there is none. */
static MPI_Count first_negative(weft_counts counts, MPI_Count count)
{
    MPI_Count i = 0;
    while (i < count && weft_counts_get(counts, (size_t)i) >= 0)
        i++;
    return i;
}

static int counts_check(WEFT_ABOUT, weft_counts counts, MPI_Count count, int code, const char *what)
{
    char on[192];
    int rc = weft_checks_array(function, comm, argument, counts.at, count);
    MPI_Count i = rc ? count : first_negative(counts, count);
    if (rc || i >= count)
        return rc;
    return weft_fail(code, "%s: argument %s[%lld] is %lld: a %s cannot be negative%s", function, argument, (long long)i,
                     (long long)weft_counts_get(counts, (size_t)i), what, on_comm(comm, on));
}

bool weft_checks_counts_odd(weft_counts counts, MPI_Count count)
{
    return count > 0 && (!counts.at || first_negative(counts, count) < count);
}

int weft_checks_counts(WEFT_ABOUT, weft_counts counts, MPI_Count count)
{
    return counts_check(function, comm, argument, counts, count, WEFT_E_COUNT, "count");
}

int weft_checks_blocklengths(WEFT_ABOUT, weft_counts lengths, MPI_Count count)
{
    return counts_check(function, comm, argument, lengths, count, WEFT_E_ARG, "block length");
}

bool weft_checks_types_odd(const MPI_Datatype *types, MPI_Count count)
{
    bool is_odd = count > 0 && !types;
    for (MPI_Count i = 0; i < count && !is_odd; i++) {
        const weft_type *type = weft_type_of(types[i]);
        is_odd = !type || type->is_absent;
    }
    return is_odd;
}

int weft_checks_types(WEFT_ABOUT, const MPI_Datatype *types, MPI_Count count)
{
    char value[64], on[192];
    int rc = weft_checks_array(function, comm, argument, types, count);
    for (MPI_Count i = 0; i < count && !rc; i++) {
        const weft_type *type = weft_type_of(types[i]);
        if (!type)
            rc = weft_fail(WEFT_E_TYPE, "%s: argument %s[%lld] is %s: not a datatype%s", function, argument, (long long)i,
                           handle_text(types[i], "MPI_DATATYPE_NULL", 0x200, value), on_comm(comm, on));
        else if (type->is_absent)
            rc = weft_fail(WEFT_E_TYPE, "%s: argument %s[%lld] is %s: a datatype that this compiler does not have%s", function,
                           argument, (long long)i, type->name, on_comm(comm, on));
    }
    return rc;
}

static int not_a_rank(WEFT_ABOUT, int code, int rank, const char *others)
{
    char of[192];
    unsigned size = comm->chan->size;
    return weft_fail(code, "%s: argument %s is %d: not a rank%s%s (0..%u), nor %s", function, argument, rank, of_comm(comm, of),
                     comm->is_inter ? "'s remote group" : "", size - 1, others);
}

int weft_checks_dest(WEFT_ABOUT, int rank)
{
    if ((rank >= 0 && (uint32_t)rank < comm->chan->size) || rank == MPI_PROC_NULL)
        return 0;
    return not_a_rank(function, comm, argument, WEFT_E_RANK, rank, "MPI_PROC_NULL");
}

/* The program asserted by info that it does not use this wildcard. */
static int asserted_not(WEFT_ABOUT, int code, const char *wildcard, const char *hint)
{
    char on[192];
    return weft_fail(code, "%s: argument %s is %s%s, whose info asserts %s: drop the assertion, or name the source and the tag", function,
                     argument, wildcard, on_comm(comm, on), hint);
}

int weft_checks_source(WEFT_ABOUT, int rank)
{
    if (rank == MPI_ANY_SOURCE && comm->hints & WEFT_COMM_NO_ANY_SOURCE)
        return asserted_not(function, comm, argument, WEFT_E_RANK, "MPI_ANY_SOURCE", "mpi_assert_no_any_source");
    if ((rank >= 0 && (uint32_t)rank < comm->chan->size) || rank == MPI_PROC_NULL || rank == MPI_ANY_SOURCE)
        return 0;
    return not_a_rank(function, comm, argument, WEFT_E_RANK, rank, "MPI_ANY_SOURCE or MPI_PROC_NULL");
}

int weft_checks_root(WEFT_ABOUT, int rank)
{
    char of[192];
    if (comm->is_inter) {
        if ((rank >= 0 && (uint32_t)rank < comm->chan->size) || rank == MPI_PROC_NULL || rank == MPI_ROOT)
            return 0;
        return not_a_rank(function, comm, argument, WEFT_E_ROOT, rank, "MPI_ROOT or MPI_PROC_NULL");
    }
    if (rank >= 0 && rank < comm->size)
        return 0;
    return weft_fail(WEFT_E_ROOT, "%s: argument %s is %d: not a rank%s (0..%d)", function, argument, rank, of_comm(comm, of),
                     comm->size - 1);
}

int weft_checks_tag(WEFT_ABOUT, int tag, bool may_be_any)
{
    char on[192];
    if (may_be_any && tag == MPI_ANY_TAG && comm->hints & WEFT_COMM_NO_ANY_TAG)
        return asserted_not(function, comm, argument, WEFT_E_TAG, "MPI_ANY_TAG", "mpi_assert_no_any_tag");
    if (tag >= 0 || (may_be_any && tag == MPI_ANY_TAG))
        return 0;
    return weft_fail(WEFT_E_TAG, "%s: argument %s is %d%s: a tag must be in 0..2147483647%s%s", function, argument, tag,
                     tag == MPI_ANY_TAG ? " (MPI_ANY_TAG)" : "", may_be_any ? ", or MPI_ANY_TAG" : "", on_comm(comm, on));
}

int weft_checks_pointer(WEFT_ABOUT, const void *pointer)
{
    char on[192];
    if (pointer)
        return 0;
    return weft_fail(WEFT_E_ARG, "%s: argument %s is NULL%s", function, argument, on_comm(comm, on));
}

int weft_checks_buffer(WEFT_ABOUT, const void *buf, MPI_Count count, MPI_Datatype handle, bool may_be_in_place)
{
    const weft_type *type;
    char on[192];
    if (buf == MPI_IN_PLACE && may_be_in_place)
        return 0;
    if (buf == MPI_IN_PLACE || buf == MPI_BUFFER_AUTOMATIC)
        return weft_fail(WEFT_E_BUFFER, "%s: argument %s is %s, which is not allowed %s%s", function, argument,
                         buf == MPI_IN_PLACE ? "MPI_IN_PLACE" : "MPI_BUFFER_AUTOMATIC",
                         comm && comm->is_inter ? "on an intercommunicator" : "here", on_comm(comm, on));
    type = weft_type_of(handle);
    /* NULL is MPI_BOTTOM: valid for a derived type with absolute addresses, never for a predefined dense one. */
    if (buf || count == 0 || !type || !type->is_dense || !type->is_predefined)
        return 0;
    return weft_fail(WEFT_E_BUFFER, "%s: argument %s is NULL, but the count is %lld elements of %s%s", function, argument,
                     (long long)count, type->name, on_comm(comm, on));
}

int weft_checks_buffer_bytes(WEFT_ABOUT, const void *buf, MPI_Count bytes)
{
    char on[192];
    if (bytes == 0 || (buf && !weft_checks_buffer_is_odd(buf)))
        return 0;
    return weft_fail(WEFT_E_BUFFER, "%s: argument %s is %p: not a buffer of %lld bytes%s", function, argument, buf,
                     (long long)bytes, on_comm(comm, on));
}

int weft_checks_apart(const char *function, const weft_comm *comm, const void *sendbuf, const void *recvbuf, MPI_Count count)
{
    char on[192];
    if (sendbuf != recvbuf || count == 0 || sendbuf == MPI_BOTTOM)
        return 0;
    return weft_fail(WEFT_E_BUFFER, "%s: arguments sendbuf and recvbuf are both %p: they must not overlap%s%s", function, sendbuf,
                     comm->is_inter ? "" : "; pass MPI_IN_PLACE", on_comm(comm, on));
}

int weft_checks_too_large(WEFT_ABOUT, MPI_Count value)
{
    char on[192];
    return weft_fail(WEFT_E_TOOLARGE, "%s: argument %s would be %lld, which an int cannot hold: use %s_c%s", function, argument,
                     (long long)value, function, on_comm(comm, on));
}
