/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handle: handles as ints (MPI 5.0 20.4, MPI_X_toint and fromint). A predefined handle keeps its value, any other has the number that its
 * object got when it was made. Called by the generated entries at any time, any thread; takes no lock.
 * Invariant: an int that names no valid object gives the kind's null handle.
 */
#include <mpi.h>

#include "core/group.h"
#include "core/req.h"
#include "mpi/calls.h"
#include "mpi/errhandler.h"
#include "mpi/session_type.h"
#include "mpi/message.h"
#include "mpi/win.h"

static int number_of(const void *handle)
{
    return weft_object_is_constant(handle) ? (int)(uintptr_t)handle : ((const weft_object *)handle)->number;
}

static void *handle_of(weft_object_pool *pool, int number, void *null)
{
    void *object;
    if (number >= 0 && number < WEFT_OBJECT_CONSTANTS)
        return (void *)(uintptr_t)number;
    object = weft_object_by_number(pool, number);
    return object ? object : null;
}

int weft_mpi_comm_toint(MPI_Comm comm) { return number_of(comm); }

MPI_Comm weft_mpi_comm_fromint(int comm) { return handle_of(&weft_comm_pool, comm, MPI_COMM_NULL); }

int weft_mpi_type_toint(MPI_Datatype datatype) { return number_of(datatype); }

MPI_Datatype weft_mpi_type_fromint(int datatype) { return handle_of(&weft_type_pool, datatype, MPI_DATATYPE_NULL); }

int weft_mpi_op_toint(MPI_Op op) { return number_of(op); }

MPI_Op weft_mpi_op_fromint(int op) { return handle_of(&weft_op_pool, op, MPI_OP_NULL); }

int weft_mpi_errhandler_toint(MPI_Errhandler errhandler) { return number_of(errhandler); }

MPI_Errhandler weft_mpi_errhandler_fromint(int number)
{
    MPI_Errhandler handler = handle_of(&weft_errhandler_pool, number, MPI_ERRHANDLER_NULL);
    return weft_object_is_constant(handler) || weft_errhandler_is_valid(handler) ? handler : MPI_ERRHANDLER_NULL; /* an object's alone */
}

int weft_mpi_group_toint(MPI_Group group) { return number_of(group); }

MPI_Group weft_mpi_group_fromint(int number)
{
    MPI_Group group = handle_of(&weft_group_pool, number, MPI_GROUP_NULL);
    return weft_object_is_constant(group) || weft_group_of(group) ? group : MPI_GROUP_NULL; /* a communicator's, without a handle */
}

int weft_mpi_info_toint(MPI_Info info) { return number_of(info); }

MPI_Info weft_mpi_info_fromint(int info) { return handle_of(&weft_info_pool, info, MPI_INFO_NULL); }

int weft_mpi_message_toint(MPI_Message message) { return number_of(message); }

MPI_Message weft_mpi_message_fromint(int message) { return handle_of(&weft_message_pool, message, MPI_MESSAGE_NULL); }

int weft_mpi_session_toint(MPI_Session session) { return number_of(session); }

MPI_Session weft_mpi_session_fromint(int session) { return handle_of(&weft_session_pool, session, MPI_SESSION_NULL); }

int weft_mpi_win_toint(MPI_Win win) { return number_of(win); }

MPI_Win weft_mpi_win_fromint(int win) { return handle_of(&weft_win_pool, win, MPI_WIN_NULL); }

/* Files do not exist yet: only constants are valid. */
static void *constant_of(int number, void *null)
{
    return number >= 0 && number < WEFT_OBJECT_CONSTANTS ? (void *)(uintptr_t)number : null;
}

int weft_mpi_file_toint(MPI_File file) { return (int)(uintptr_t)file; }

MPI_File weft_mpi_file_fromint(int file) { return constant_of(file, MPI_FILE_NULL); }

int weft_mpi_request_toint(MPI_Request request)
{
    return weft_object_is_constant(request) ? (int)(uintptr_t)request : ((const weft_req *)(const void *)request)->number;
}

MPI_Request weft_mpi_request_fromint(int request)
{
    uint32_t number = (uint32_t)request - WEFT_LANGUAGE_DONE, index = number % WEFT_REQ_STATICS_EACH;
    weft_req *req;
    if (request >= 0 && request < WEFT_OBJECT_CONSTANTS)
        return (MPI_Request)(uintptr_t)request;
    if (number >= WEFT_REQ_STATICS)
        req = weft_req_by_number(request);
    else if (weft_world_now && index < weft_world_now->worker_count)
        req = number == index ? &weft_world_now->workers[index]->done_req : &weft_world_now->workers[index]->done_sched;
    else
        req = NULL;
    return req ? (MPI_Request)req : MPI_REQUEST_NULL;
}
