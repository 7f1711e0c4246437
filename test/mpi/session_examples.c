/* np: 1 2 3 4 : what the standard's examples of sessions show (MPI 5.0 11.3 and 11.4.3): libraries, process sets, finalize, memory kinds */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

/* Functions are in the order of the text and name the section; docs/standard-examples.md has the list. */
static void info_value(MPI_Info info, const char *key, char *value, int bytes)
{
    int flag, length = bytes;
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    CHECK(flag && length <= bytes, "%s", key);
}

static MPI_Comm comm_of(MPI_Session session, const char *pset, const char *tag, MPI_Info info)
{
    MPI_Group group;
    MPI_Comm comm;
    OK(MPI_Group_from_session_pset(session, pset, &group));
    OK(MPI_Comm_create_from_group(group, tag, info, MPI_ERRORS_RETURN, &comm));
    OK(MPI_Group_free(&group));
    return comm;
}

static int sum_over(MPI_Comm comm)
{
    int one = 1, sum = 0;
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    return sum;
}

/* 11.3.2: one process holds a session for two communicators, the others one for each, and finalize those in one order. Returns the
 * number of processes. */
static int connected(void)
{
    MPI_Session sessions[2];
    MPI_Comm comms[2];
    int me, n;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &sessions[0]));
    comms[0] = comm_of(sessions[0], "mpi://WORLD", "org.weft.test.first", MPI_INFO_NULL);
    OK(MPI_Comm_rank(comms[0], &me));
    OK(MPI_Comm_size(comms[0], &n));
    sessions[1] = sessions[0];
    if (me)
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &sessions[1]));
    comms[1] = comm_of(sessions[1], "mpi://WORLD", "org.weft.test.second", MPI_INFO_NULL);
    CHECK(sum_over(comms[0]) == n && sum_over(comms[1]) == n);
    OK(MPI_Comm_free(&comms[0]));
    OK(MPI_Comm_free(&comms[1]));
    OK(MPI_Session_finalize(&sessions[0]));
    CHECK(sessions[0] == MPI_SESSION_NULL);
    if (me)
        OK(MPI_Session_finalize(&sessions[1]));
    return n;
}

/* 11.3.4: a library opens a session of its own with the thread level that it needs. */
static void library(int n)
{
    char level[MPI_MAX_INFO_VAL];
    MPI_Session session;
    MPI_Info info, used;
    MPI_Comm comm;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_get_info(session, &used));
    info_value(used, "thread_level", level, sizeof level);
    CHECK(strcmp(level, "MPI_THREAD_MULTIPLE") == 0, "%s", level);
    comm = comm_of(session, "mpi://WORLD", "org.weft.test.library", MPI_INFO_NULL);
    CHECK(sum_over(comm) == n);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&used));
    OK(MPI_Session_finalize(&session));
}

/* 11.3.4: process sets by a part of their names; each name is read in two calls, the first of which asks for its length. */
static void process_sets(const char *part, int expected)
{
    char name[MPI_MAX_PSET_NAME_LEN], size[32];
    MPI_Session session;
    MPI_Info info;
    MPI_Group group;
    MPI_Comm comm;
    int count, found = 0, n;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
    CHECK(count >= 2);
    for (int i = 0; i < count && !found; i++) {
        int length = 0;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
        CHECK(length > 1 && length <= (int)sizeof name);
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        found = strstr(name, part) != NULL;
    }
    CHECK(found, "%s", part);
    OK(MPI_Session_get_pset_info(session, name, &info));
    info_value(info, "mpi_size", size, sizeof size);
    OK(MPI_Group_from_session_pset(session, name, &group));
    OK(MPI_Group_size(group, &n));
    CHECK(n == expected && atoi(size) == n, "%s: %d, %s", name, n, size);
    OK(MPI_Group_free(&group));
    comm = comm_of(session, name, "org.weft.test.sets", MPI_INFO_NULL);
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_free(&info));
    BAD(MPI_Group_from_session_pset(session, "mpi://nowhere", &group), MPI_ERR_ARG, "mpi://nowhere");
    OK(MPI_Session_finalize(&session)); /* completes what the barrier needs of this process */
    CHECK(session == MPI_SESSION_NULL);
}

/* 11.4.3: a session asks for kinds of memory, one of which Weft has not; a communicator asserts the kind that its buffers are of. */
static void memory_kinds(int n)
{
    char kinds[MPI_MAX_INFO_VAL], *rest = kinds, *kind;
    int has_system = 0, has_gpu = 0;
    MPI_Session session;
    MPI_Info info;
    MPI_Comm comm;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_memory_alloc_kinds", "system,gpu:device"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Info_free(&info));
    OK(MPI_Session_get_info(session, &info));
    info_value(info, "mpi_memory_alloc_kinds", kinds, sizeof kinds);
    while ((kind = strsep(&rest, ","))) {
        has_system |= strcmp(kind, "system") == 0;
        has_gpu |= strncmp(kind, "gpu", 3) == 0;
    }
    CHECK(has_system && !has_gpu);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_memory_alloc_kinds", "system"));
    comm = comm_of(session, "mpi://WORLD", "org.weft.test.system", info);
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_get_info(comm, &info));
    info_value(info, "mpi_assert_memory_alloc_kinds", kinds, sizeof kinds);
    CHECK(strcmp(kinds, "system") == 0, "%s", kinds);
    OK(MPI_Info_free(&info));
    OK(MPI_Allreduce(MPI_IN_PLACE, &has_gpu, 1, MPI_INT, MPI_LAND, comm));
    CHECK(!has_gpu && sum_over(comm) == n);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
}

int main(void)
{
    int n = connected();
    library(n);
    process_sets("WORLD", n);
    process_sets("SELF", 1);
    memory_kinds(n);
    return 0;
}
