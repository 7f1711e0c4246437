/* np: 1 2 : functions valid before MPI_Init and after MPI_Finalize; versions, names, time, memory, handles as ints */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static void any_time(int initialized, int finalized)
{
    int flag = -1, major = -1, minor = -1, length = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    OK(MPI_Initialized(&flag));
    CHECK(flag == initialized);
    OK(MPI_Finalized(&flag));
    CHECK(flag == finalized);
    OK(MPI_Abi_get_version(&major, &minor));
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
    OK(MPI_Get_version(&major, &minor));
    CHECK(major == MPI_VERSION && minor == MPI_SUBVERSION && major == 5, "%d.%d", major, minor);
    OK(MPI_Get_library_version(text, &length));
    CHECK(strncmp(text, "Weft ", 5) == 0 && (size_t)length == strlen(text), "%s", text);
    OK(MPI_Error_class(MPI_ERR_TAG, &flag));
    CHECK(flag == MPI_ERR_TAG);
    OK(MPI_Error_string(MPI_ERR_TAG, text, &length));
    CHECK(length > 0);
}

static void memory(void)
{
    static const MPI_Aint sizes[] = {0, 1, 4000, 100000, 10 << 20};
    for (int i = 0; i < 5; i++) {
        unsigned char *at = NULL;
        OK(MPI_Alloc_mem(sizes[i], MPI_INFO_NULL, &at));
        CHECK(at && (uintptr_t)at % 64 == 0);
        check_fill(at, (size_t)sizes[i], 5);
        CHECK(check_wrong(at, (size_t)sizes[i], 5) == (size_t)sizes[i]);
        OK(MPI_Free_mem(at));
    }
}

static void time_and_name(void)
{
    double start = MPI_Wtime(), now;
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);
    do
        now = MPI_Wtime();
    while (now == start);
    CHECK(now > start && now < start + 10);
    OK(MPI_Get_processor_name(name, &length));
    CHECK(length > 0 && (size_t)length == strlen(name));
}

static void ints(void)
{
    MPI_Comm comms[200];
    MPI_Datatype type;
    MPI_Request req;
    MPI_Errhandler handler;
    int numbers[200], value;
    CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 0x101 && MPI_Comm_fromint(0x101) == MPI_COMM_WORLD);
    CHECK(MPI_Type_toint(MPI_DOUBLE) == (int)(intptr_t)MPI_DOUBLE && MPI_Type_fromint((int)(intptr_t)MPI_INT) == MPI_INT);
    CHECK(MPI_Op_fromint(MPI_Op_toint(MPI_MAX)) == MPI_MAX && MPI_Request_toint(MPI_REQUEST_NULL) == 0x180);
    for (int i = 0; i < 200; i++) {
        OK(MPI_Comm_dup(MPI_COMM_SELF, &comms[i]));
        numbers[i] = MPI_Comm_toint(comms[i]);
        CHECK(numbers[i] > 4095 || numbers[i] < 0);
    }
    for (int i = 0; i < 200; i++) {
        CHECK(MPI_Comm_fromint(numbers[i]) == comms[i] && MPI_Comm_toint(comms[i]) == numbers[i]);
        OK(MPI_Comm_free(&comms[i]));
        CHECK(MPI_Comm_fromint(numbers[i]) == MPI_COMM_NULL); /* its object is gone */
    }
    CHECK(MPI_Comm_fromint(-5) == MPI_COMM_NULL && MPI_Type_fromint(1 << 30) == MPI_DATATYPE_NULL);
    CHECK(MPI_Request_fromint(1 << 30) == MPI_REQUEST_NULL);
    OK(MPI_Type_contiguous(3, MPI_INT, &type));
    CHECK(MPI_Type_fromint(MPI_Type_toint(type)) == type);
    OK(MPI_Type_free(&type));
    OK(MPI_Irecv(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &req));
    CHECK(MPI_Request_fromint(MPI_Request_toint(req)) == req);
    value = MPI_Request_toint(req);
    OK(MPI_Cancel(&req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    CHECK(MPI_Request_fromint(value) == MPI_REQUEST_NULL);
    OK(MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &req));
    CHECK(MPI_Request_fromint(MPI_Request_toint(req)) == req);
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    handler = MPI_Errhandler_fromint(MPI_Errhandler_toint(MPI_ERRORS_RETURN));
    CHECK(handler == MPI_ERRORS_RETURN);
}

int main(int argc, char **argv)
{
    int rank, size, provided = -1;
    any_time(0, 0);
    check_start(&argc, &argv, &rank, &size);
    any_time(1, 0);
    OK(MPI_Query_thread(&provided));
    CHECK(provided == MPI_THREAD_SINGLE);
    memory();
    time_and_name();
    ints();
    OK(MPI_Finalize());
    any_time(1, 1);
    return 0;
}
