/* np: 1 2 4 : user's error handlers get communicator and code, MPI_ERRORS_RETURN returns the class, handlers are inherited and counted */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size;
static int calls, last_code;
static MPI_Comm last_comm;

static void handler(MPI_Comm *comm, int *code, ...)
{
    calls++;
    last_code = *code;
    last_comm = *comm;
}

static void other_handler(MPI_Comm *comm, int *code, ...)
{
    int r;
    (void)code;
    calls += 100;
    OK(MPI_Comm_rank(*comm, &r)); /* calls are allowed here */
    OK(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN));
}

static void users(void)
{
    MPI_Errhandler errhandler, got;
    MPI_Comm dup, part;
    int code;
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
    CHECK(got == errhandler);
    OK(MPI_Errhandler_free(&got));
    CHECK(got == MPI_ERRHANDLER_NULL);
    OK(MPI_Errhandler_free(&errhandler)); /* the communicator keeps it */
    code = MPI_Send(NULL, 1, MPI_INT, size + 3, 0, MPI_COMM_WORLD);
    CHECK(code == MPI_ERR_RANK || code == MPI_ERR_BUFFER, "code %d", code);
    CHECK(calls == 1 && last_code == code && last_comm == MPI_COMM_WORLD, "%d calls, code %d", calls, last_code);
    /* dup and split inherit */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &dup));
    code = MPI_Send(&code, 1, MPI_INT, 0, -7, dup);
    CHECK(code == MPI_ERR_TAG && calls == 2 && last_comm == dup, "code %d, %d calls", code, calls);
    OK(MPI_Comm_split(dup, rank, 0, &part));
    code = MPI_Send(&code, -1, MPI_INT, 0, 0, part);
    CHECK(code == MPI_ERR_COUNT && calls == 3 && last_comm == part, "code %d, %d calls", code, calls);
    OK(MPI_Comm_set_errhandler(part, MPI_ERRORS_RETURN));
    code = MPI_Send(&code, 1, MPI_INT, 99, 0, part);
    CHECK(code == MPI_ERR_RANK && calls == 3);
    /* another handler only for the dup; it replaces itself while it runs */
    OK(MPI_Comm_create_errhandler(other_handler, &errhandler));
    OK(MPI_Comm_set_errhandler(dup, errhandler));
    OK(MPI_Errhandler_free(&errhandler));
    code = MPI_Recv(&code, 1, MPI_INT, -9, 0, dup, MPI_STATUS_IGNORE);
    CHECK(code == MPI_ERR_RANK && calls == 103);
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&dup));
    /* MPI_Comm_call_errhandler, with any code */
    calls = 0;
    OK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_IO));
    CHECK(calls == 1 && last_code == MPI_ERR_IO && last_comm == MPI_COMM_WORLD);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* A freed handle is detected, also when memory of its size was allocated meanwhile. */
static void stale(void)
{
    MPI_Errhandler errhandler, copy;
    void *fill[64];
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    copy = errhandler;
    OK(MPI_Errhandler_free(&errhandler));
    for (int i = 0; i < 64; i++) {
        fill[i] = malloc(16);
        for (int j = 0; j < 4; j++)
            ((unsigned *)fill[i])[j] = 0x45525248; /* magic of a live handler */
    }
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, copy) == MPI_ERR_ERRHANDLER);
    CHECK(MPI_Errhandler_free(&copy) == MPI_ERR_ERRHANDLER);
    for (int i = 0; i < 64; i++)
        free(fill[i]);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

static void win_handler(MPI_Win *win, int *code, ...) { (void)win, (void)code; }
static void file_handler(MPI_File *file, int *code, ...) { (void)file, (void)code; }
static void session_handler(MPI_Session *session, int *code, ...) { (void)session, (void)code; }

/* A handler for windows, files or sessions cannot be set on a communicator. */
static void other_kinds(void)
{
    MPI_Errhandler handlers[3];
    OK(MPI_Win_create_errhandler(win_handler, &handlers[0]));
    OK(MPI_File_create_errhandler(file_handler, &handlers[1]));
    OK(MPI_Session_create_errhandler(session_handler, &handlers[2]));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < 3; i++) {
        CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handlers[i]) == MPI_ERR_ERRHANDLER);
        OK(MPI_Errhandler_free(&handlers[i]));
        CHECK(handlers[i] == MPI_ERRHANDLER_NULL);
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* An error in MPI_Wait runs the handler of the request's communicator. */
static void late(void)
{
    MPI_Errhandler errhandler;
    MPI_Comm comm;
    MPI_Request req;
    int code, value[2] = {1, 2}, in;
    calls = 0;
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    OK(MPI_Comm_set_errhandler(comm, errhandler));
    OK(MPI_Errhandler_free(&errhandler));
    OK(MPI_Irecv(&in, 1, MPI_INT, 0, 0, comm, &req));
    OK(MPI_Send(value, 2, MPI_INT, 0, 0, comm));
    code = MPI_Wait(&req, MPI_STATUS_IGNORE);
    CHECK(code == MPI_ERR_TRUNCATE && calls == 1 && last_comm == comm, "code %d, %d calls", code, calls);
    OK(MPI_Comm_free(&comm));
}

/* Errors without a communicator run MPI_COMM_SELF's handler. */
static void unattached(void)
{
    int code, n;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Errhandler errhandler;
    calls = 0;
    OK(MPI_Comm_create_errhandler(handler, &errhandler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, errhandler));
    OK(MPI_Errhandler_free(&errhandler));
    code = MPI_Type_size(type, &n);
    CHECK(code == MPI_ERR_TYPE && calls == 1 && last_comm == MPI_COMM_SELF, "code %d, %d calls", code, calls);
    code = MPI_Comm_rank(MPI_COMM_NULL, &n);
    CHECK(code == MPI_ERR_COMM && calls == 2);
    code = MPI_Init(NULL, NULL);
    CHECK(code == MPI_ERR_OTHER && calls == 3, "a second MPI_Init returned %d", code);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    code = MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRHANDLER_NULL);
    CHECK(code == MPI_ERR_ERRHANDLER || code == MPI_ERR_ARG, "code %d", code);
    code = MPI_Alloc_mem(-1, MPI_INFO_NULL, &type);
    CHECK(code != MPI_SUCCESS);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

static void strings(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, class;
    for (int code = 0; code <= MPI_ERR_ABI; code++) {
        OK(MPI_Error_class(code, &class));
        CHECK(class == code);
        memset(text, 0, sizeof text);
        OK(MPI_Error_string(code, text, &length));
        CHECK(length > 8 && (size_t)length == strlen(text) && strncmp(text, code ? "MPI_ERR_" : "MPI_SUCCESS", 8) == 0,
              "code %d: '%s'", code, text);
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    class = MPI_Send(&length, 1, MPI_INT, 4242, 0, MPI_COMM_WORLD);
    OK(MPI_Error_string(class, text, &length));
    CHECK(strstr(text, "4242"), "the string does not say what was wrong: %s", text);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

/* In-place and buffers of collectives. */
static void collectives(void)
{
    int a[64] = {0}, b[64], code;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    code = MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(code == MPI_ERR_BUFFER, "aliased buffers returned %d", code);
    code = MPI_Allreduce(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(code == MPI_ERR_BUFFER, "recvbuf in place returned %d", code);
    code = MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(code == MPI_ERR_BUFFER, "bcast in place returned %d", code);
    code = MPI_Allreduce(a, b, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD);
    CHECK(code == MPI_ERR_OP, "and of doubles returned %d", code);
    code = MPI_Bcast(a, 1, MPI_INT, size, MPI_COMM_WORLD);
    CHECK(code == MPI_ERR_ROOT, "a root behind the end returned %d", code);
    code = MPI_Allgather(a, 2, MPI_INT, b, 1, MPI_INT, MPI_COMM_WORLD);
    CHECK(code == MPI_ERR_TRUNCATE, "a block that does not fit returned %d", code);
    code = MPI_Gather(rank == 0 ? a : MPI_IN_PLACE, 1, MPI_INT, b, rank == 0 ? -1 : 1, MPI_INT, 0, MPI_COMM_WORLD);
    CHECK(code == (rank == 0 ? MPI_ERR_COUNT : MPI_ERR_BUFFER), "gather returned %d", code);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    users();
    stale();
    other_kinds();
    late();
    unattached();
    strings();
    collectives();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
