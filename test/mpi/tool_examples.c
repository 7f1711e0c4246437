/* np: 2 : what the standard's examples of tools show (MPI 5.0 15.2, 15.3): wrappers that read variables; listing variables */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

/* A tool in the program: PMPI wrappers that sum what is sent, and find receives during which many unexpected bytes wait. */
static MPI_T_pvar_session session;
static MPI_T_pvar_handle unexpected;
static long bytes_sent, slow_receives;
static double send_seconds;

int MPI_Init(int *argc, char ***argv)
{
    char name[40];
    int index = -1, provided, n, length, class_, bind, count;
    OK(PMPI_Init(argc, argv));
    OK(PMPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(PMPI_T_pvar_get_num(&n));
    for (int i = 0; i < n && index < 0; i++) {
        length = sizeof name;
        OK(PMPI_T_pvar_get_info(i, name, &length, NULL, &class_, NULL, NULL, NULL, NULL, &bind, NULL, NULL, NULL));
        if (strcmp(name, "weft_unexpected_now") == 0)
            index = i;
    }
    CHECK(index >= 0 && class_ == MPI_T_PVAR_CLASS_LEVEL && bind == MPI_T_BIND_NO_OBJECT);
    OK(PMPI_T_pvar_session_create(&session));
    OK(PMPI_T_pvar_handle_alloc(session, index, NULL, &unexpected, &count));
    CHECK(count == 1); /* a level runs always: it needs no start */
    return MPI_SUCCESS;
}

int MPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    double start = PMPI_Wtime();
    int size, code = PMPI_Send(buf, count, type, dest, tag, comm);
    send_seconds += PMPI_Wtime() - start;
    OK(PMPI_Type_size(type, &size));
    bytes_sent += (long)size * count;
    return code;
}

int MPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    uint64_t waiting = 0;
    OK(PMPI_T_pvar_read(session, unexpected, &waiting));
    slow_receives += waiting > 3000;
    return PMPI_Recv(buf, count, type, source, tag, comm, status);
}

int MPI_Finalize(void)
{
    OK(PMPI_T_pvar_handle_free(session, &unexpected));
    OK(PMPI_T_pvar_session_free(&session));
    OK(PMPI_T_finalize());
    return PMPI_Finalize();
}

/* 15.3.6: every control variable is listed and, since none is bound to an object, read. */
static void variables(void)
{
    char name[40], text[4096];
    MPI_T_cvar_handle handle;
    MPI_Datatype type;
    int n, length, bind, count, integer;
    OK(MPI_T_cvar_get_num(&n));
    CHECK(n > 0);
    for (int i = 0; i < n; i++) {
        length = sizeof name;
        OK(MPI_T_cvar_get_info(i, name, &length, NULL, &type, NULL, NULL, NULL, &bind, NULL));
        CHECK(strncmp(name, "WEFT_", 5) == 0 && bind == MPI_T_BIND_NO_OBJECT);
        OK(MPI_T_cvar_handle_alloc(i, NULL, &handle, &count));
        CHECK(type == MPI_CHAR ? count <= (int)sizeof text : count == 1, "%s: %d", name, count);
        if (type == MPI_INT)
            OK(MPI_T_cvar_read(handle, &integer));
        else
            OK(MPI_T_cvar_read(handle, text));
        OK(MPI_T_cvar_handle_free(&handle));
    }
}

int main(int argc, char **argv)
{
    int rank, size, ints[100] = {0};
    check_start(&argc, &argv, &rank, &size);
    variables();
    for (int i = 0; i < 20 && rank == 0; i++)
        OK(MPI_Send(ints, 100, MPI_INT, 1, 1, MPI_COMM_WORLD));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 20 && rank == 1; i++)
        OK(MPI_Recv(ints, 100, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (rank == 0)
        CHECK(bytes_sent == 8000 && send_seconds >= 0);
    else
        CHECK(slow_receives >= 10 && slow_receives <= 19, "%ld", slow_receives);
    OK(MPI_Finalize());
    return 0;
}
