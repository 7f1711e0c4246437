/* np: 1 2 : handles of every kind go to MPI_Fint and back, predefined and made by the program; statuses keep all that they hold */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

/* A handle and its integer, both names of each function. */
#define ROUND(name, handle, same) \
    do { \
        MPI_Fint number = MPI_##name##_c2f(handle); \
        CHECK(number == (same) && number == PMPI_##name##_c2f(handle), "%d is not %d", number, same); \
        CHECK(MPI_##name##_f2c(number) == (handle) && PMPI_##name##_f2c(number) == (handle)); \
    } while (0)

static void predefined(void)
{
    ROUND(Comm, MPI_COMM_WORLD, 0x101);
    ROUND(Comm, MPI_COMM_NULL, 0x100);
    ROUND(Type, MPI_DOUBLE, MPI_Type_toint(MPI_DOUBLE));
    ROUND(Type, MPI_DATATYPE_NULL, MPI_Type_toint(MPI_DATATYPE_NULL));
    ROUND(Op, MPI_SUM, 0x21);
    ROUND(Group, MPI_GROUP_EMPTY, MPI_Group_toint(MPI_GROUP_EMPTY));
    ROUND(Request, MPI_REQUEST_NULL, MPI_Request_toint(MPI_REQUEST_NULL));
    ROUND(Message, MPI_MESSAGE_NO_PROC, 0x129);
    ROUND(Errhandler, MPI_ERRORS_RETURN, MPI_Errhandler_toint(MPI_ERRORS_RETURN));
    ROUND(Info, MPI_INFO_ENV, 0x131);
    ROUND(Session, MPI_SESSION_NULL, 0x120);
    ROUND(Win, MPI_WIN_NULL, 0x110);
    ROUND(File, MPI_FILE_NULL, 0x118);
}

static void made(void)
{
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Info info;
    MPI_Request request;
    int got = 0, me;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Type_vector(3, 2, 5, MPI_INT, &type));
    OK(MPI_Info_create(&info));
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Irecv(&got, 1, MPI_INT, me, 7, comm, &request));
    ROUND(Comm, comm, MPI_Comm_toint(comm));
    ROUND(Group, group, MPI_Group_toint(group));
    ROUND(Type, type, MPI_Type_toint(type));
    ROUND(Info, info, MPI_Info_toint(info));
    ROUND(Request, request, MPI_Request_toint(request));
    CHECK(MPI_Comm_c2f(comm) != MPI_Comm_c2f(MPI_COMM_WORLD));
    OK(MPI_Send(&me, 1, MPI_INT, me, 7, MPI_Comm_f2c(MPI_Comm_c2f(comm))));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(got == me);
    OK(MPI_Info_free(&info));
    OK(MPI_Type_free(&type));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&comm));
}

static void statuses(int me)
{
    char message[100] = "";
    MPI_Status status, back;
    MPI_Fint there[MPI_F_STATUS_SIZE];
    MPI_Request request;
    int count = 0, flag = 0;
    OK(MPI_Sendrecv(message, 77, MPI_CHAR, me, 5, message, 100, MPI_CHAR, me, 5, MPI_COMM_WORLD, &status));
    status.MPI_ERROR = MPI_ERR_TAG;
    CHECK(sizeof there == sizeof status);
    OK(MPI_Status_c2f(&status, there));
    CHECK(there[MPI_F_SOURCE] == me && there[MPI_F_TAG] == 5 && there[MPI_F_ERROR] == MPI_ERR_TAG);
    memset(&back, 0, sizeof back);
    OK(PMPI_Status_f2c(there, &back));
    OK(MPI_Get_count(&back, MPI_CHAR, &count));
    CHECK(count == 77 && back.MPI_SOURCE == me && back.MPI_TAG == 5 && back.MPI_ERROR == MPI_ERR_TAG);

    OK(MPI_Irecv(message, 1, MPI_CHAR, me, 6, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(PMPI_Status_c2f(&status, there));
    OK(MPI_Status_f2c(there, &back));
    OK(MPI_Test_cancelled(&back, &flag));
    CHECK(flag);
    CHECK(MPI_Status_c2f(MPI_STATUS_IGNORE, there) == MPI_ERR_ARG && MPI_Status_f2c(there, MPI_STATUS_IGNORE) == MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    int me, size;
    check_start(&argc, &argv, &me, &size);
    predefined();
    made();
    statuses(me);
    OK(MPI_Finalize());
    return 0;
}
