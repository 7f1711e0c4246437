/* np: 1 2 4 : the Sessions Model alone: init and finalize again and again, process sets, communicators from groups, errors */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int raised;

static void on_error(MPI_Session *session, int *code, ...)
{
    (void)session;
    raised = *code;
}

static void use(MPI_Comm comm, int expected_size)
{
    int size, rank, one = 1, sum;
    OK(MPI_Comm_size(comm, &size));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(size == expected_size && sum == size && rank < size);
}

static int pset_size(MPI_Session session, const char *name)
{
    char value[32];
    MPI_Info info;
    int length = sizeof value, flag;
    OK(MPI_Session_get_pset_info(session, name, &info));
    OK(MPI_Info_get_string(info, "mpi_size", &length, value, &flag));
    OK(MPI_Info_free(&info));
    CHECK(flag);
    return atoi(value);
}

static void query(MPI_Session session)
{
    char name[MPI_MAX_PSET_NAME_LEN], shorter[4] = "", value[32];
    MPI_Info info;
    int n, length, flag, has_world = 0, has_self = 0;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
    CHECK(n >= 2);
    for (int i = 0; i < n; i++) {
        length = 0;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
        CHECK(length > 1 && length <= MPI_MAX_PSET_NAME_LEN);
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        CHECK((int)strlen(name) + 1 == length);
        has_world |= strcmp(name, "mpi://WORLD") == 0;
        has_self |= strcmp(name, "mpi://SELF") == 0;
        length = sizeof shorter;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, shorter));
        CHECK(strlen(shorter) == 3 && length == (int)strlen(name) + 1);
    }
    CHECK(has_world && has_self && pset_size(session, "mpi://SELF") == 1);
    OK(MPI_Session_get_info(session, &info));
    length = sizeof value;
    OK(MPI_Info_get_string(info, "thread_level", &length, value, &flag));
    CHECK(flag && strncmp(value, "MPI_THREAD_", 11) == 0);
    OK(MPI_Info_free(&info));
}

static void communicate(MPI_Session session, int round)
{
    MPI_Group world, self, even;
    MPI_Comm all, alone, part;
    int size = pset_size(session, "mpi://WORLD"), rank, n;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &self));
    OK(MPI_Group_size(world, &n));
    CHECK(n == size);
    OK(MPI_Group_rank(world, &rank));
    OK(MPI_Comm_create_from_group(world, "org.weft.test.all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
    OK(MPI_Comm_create_from_group(self, "org.weft.test.self", MPI_INFO_NULL, MPI_ERRORS_RETURN, &alone));
    use(all, size);
    use(alone, 1);
    OK(MPI_Group_range_incl(world, 1, &(int[1][3]){{0, size - 1, 2}}[0], &even));
    if (rank % 2 == 0) { /* only the members call */
        OK(MPI_Comm_create_from_group(even, "org.weft.test.even", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part));
        use(part, (size + 1) / 2);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "org.weft.test.none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part));
    CHECK(part == MPI_COMM_NULL);
    if (size > 1) {
        MPI_Group odd, *local = rank % 2 ? &odd : &even, *other = rank % 2 ? &even : &odd;
        MPI_Comm inter;
        OK(MPI_Group_difference(world, even, &odd));
        OK(MPI_Intercomm_create_from_groups(*local, 0, *other, 0, "org.weft.test.inter", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter));
        OK(MPI_Comm_remote_size(inter, &n));
        CHECK(n == (rank % 2 ? (size + 1) / 2 : size / 2));
        OK(MPI_Intercomm_merge(inter, rank % 2, &part));
        use(part, size);
        OK(MPI_Comm_free(&part));
        OK(MPI_Comm_free(&inter));
        OK(MPI_Group_free(&odd));
    }
    (void)round;
    OK(MPI_Group_free(&even));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&self));
    OK(MPI_Comm_free(&alone));
    OK(MPI_Comm_free(&all));
}

/* Buffered sends on communicators of the session use its buffer, unless they have their own. */
static void buffers(MPI_Session session)
{
    static char memory[4096], other[2048];
    MPI_Group world;
    MPI_Comm all, dup;
    MPI_Request req;
    MPI_Count large;
    void *address;
    int rank, size, bytes, value = 1, in, class;
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    OK(MPI_Comm_create_from_group(world, "org.weft.test.buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all));
    OK(MPI_Group_free(&world));
    OK(MPI_Comm_split(all, 0, 0, &dup)); /* derived, too */
    OK(MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(all, &rank));
    OK(MPI_Comm_size(all, &size));
    OK(MPI_Error_class(MPI_Bsend(&value, 1, MPI_INT, rank, 1, dup), &class));
    CHECK(class == MPI_ERR_BUFFER); /* none is attached */
    OK(MPI_Session_attach_buffer(session, memory, sizeof memory));
    for (int i = 0; i < 4; i++) {
        value = 10 * rank + i;
        OK(MPI_Bsend(&value, 1, MPI_INT, (rank + 1) % size, 1, i % 2 ? dup : all));
    }
    OK(MPI_Session_iflush_buffer(session, &req));
    for (int i = 0; i < 4; i++) {
        OK(MPI_Recv(&in, 1, MPI_INT, (rank + size - 1) % size, 1, i % 2 ? dup : all, MPI_STATUS_IGNORE));
        CHECK(in == 10 * ((rank + size - 1) % size) + i);
    }
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    OK(MPI_Session_flush_buffer(session));
    OK(MPI_Error_class(MPI_Bsend(memory, sizeof memory, MPI_BYTE, rank, 1, all), &class));
    CHECK(class == MPI_ERR_BUFFER); /* too long with its overhead */
    OK(MPI_Comm_attach_buffer(dup, other, sizeof other));
    OK(MPI_Session_detach_buffer(session, &address, &bytes));
    CHECK(address == memory && bytes == (int)sizeof memory);
    OK(MPI_Bsend(&value, 1, MPI_INT, (rank + 1) % size, 2, dup));
    OK(MPI_Recv(&in, 1, MPI_INT, (rank + size - 1) % size, 2, dup, MPI_STATUS_IGNORE));
    OK(MPI_Comm_detach_buffer(dup, &address, &bytes));
    OK(MPI_Session_attach_buffer_c(session, memory, sizeof memory));
    OK(MPI_Session_detach_buffer_c(session, &address, &large));
    CHECK(address == memory && large == (MPI_Count)sizeof memory);
    OK(MPI_Session_attach_buffer_c(session, MPI_BUFFER_AUTOMATIC, 0));
    OK(MPI_Bsend(&value, 1, MPI_INT, (rank + 1) % size, 3, all));
    OK(MPI_Recv(&in, 1, MPI_INT, (rank + size - 1) % size, 3, all, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&all)); /* MPI_Session_finalize detaches the buffer */
}

static void errors(MPI_Session session)
{
    MPI_Errhandler handler, got;
    MPI_Group group;
    MPI_Comm comm;
    char longest[MPI_MAX_STRINGTAG_LEN + 1];
    int length = 1, class;
    OK(MPI_Session_create_errhandler(on_error, &handler));
    OK(MPI_Session_set_errhandler(session, handler));
    OK(MPI_Session_get_errhandler(session, &got));
    CHECK(got == handler);
    OK(MPI_Errhandler_free(&got));
    raised = 0;
    OK(MPI_Session_call_errhandler(session, MPI_ERR_IO));
    CHECK(raised == MPI_ERR_IO);
    CHECK(MPI_Group_from_session_pset(session, "mpi://NONE", &group) == MPI_ERR_ARG && raised == MPI_ERR_ARG);
    CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 1000, &length, longest) == MPI_ERR_ARG);
    {
        MPI_Group self, none;
        OK(MPI_Group_from_session_pset(session, "mpi://SELF", &self));
        raised = 0; /* errors on its groups, and on those derived from them, are the session's */
        CHECK(MPI_Group_incl(self, 1, &(int){99}, &none) == MPI_ERR_RANK && raised == MPI_ERR_RANK);
        OK(MPI_Group_incl(self, 1, &(int){0}, &group));
        raised = 0;
        CHECK(MPI_Group_excl(group, 1, &(int){-2}, &none) == MPI_ERR_RANK && raised == MPI_ERR_RANK);
        OK(MPI_Group_free(&group));
        OK(MPI_Group_free(&self));
    }
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    OK(MPI_Error_class(MPI_Comm_create_from_group(group, longest, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), &class));
    CHECK(class == MPI_ERR_ARG && comm == MPI_COMM_NULL);
    /* the handler that is passed to a call gets its errors, also those of arguments */
    OK(MPI_Error_class(MPI_Comm_create_from_group(group, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), &class));
    CHECK(class == MPI_ERR_ARG);
    OK(MPI_Error_class(MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), &class));
    CHECK(class == MPI_ERR_GROUP);
    OK(MPI_Error_class(MPI_Intercomm_create_from_groups(group, 7, group, 0, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), &class));
    CHECK(class == MPI_ERR_RANK);
    OK(MPI_Error_class(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL), &class));
    CHECK(class == MPI_ERR_ARG);
    OK(MPI_Group_free(&group));
    CHECK(MPI_Session_fromint(MPI_Session_toint(session)) == session && MPI_Session_fromint(0x120) == MPI_SESSION_NULL);
}

int main(void)
{
    MPI_Session session, second;
    MPI_Info info;
    int flag, status;
    pid_t child;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_SERIALIZED"));
    for (int round = 0; round < 3; round++) {
        OK(MPI_Session_init(round ? info : MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        OK(MPI_Initialized(&flag));
        CHECK(!flag); /* that is the World Model */
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second));
        query(session);
        communicate(session, round);
        OK(MPI_Session_finalize(&session));
        CHECK(session == MPI_SESSION_NULL);
        communicate(second, round);
        buffers(second);
        errors(second);
        OK(MPI_Session_finalize(&second));
        child = fork(); /* its end is not the job's */
        if (child == 0)
            exit(0);
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    OK(MPI_Info_free(&info));
    return 0;
}
