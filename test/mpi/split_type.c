/* np: 1 2 3 4 : MPI_Comm_split_type by every kind of hardware, guided, unguided and by process set; members that differ */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdbool.h>

#include "expect.h"

static int rank, size;
static int cpus[CPU_SETSIZE], cpu_count; /* CPUs that this job may use */
static int own_cpu;                      /* where this rank is bound; -1: not bound */

static bool apart(void) { return getenv("WEFT_SPLIT_NODE") || getenv("WEFT_TRANSPORTS"); } /* ranks are on several nodes, or may be */

static void find_cpus(void)
{
    cpu_set_t mask;
    sched_getaffinity(0, sizeof mask, &mask);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &mask))
            cpus[cpu_count++] = cpu;
}

/* Binds this rank to CPU `index`; -1: to all. */
static void bind_to(int index)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int i = 0; i < cpu_count; i++)
        if (index < 0 || i == index)
            CPU_SET(cpus[i], &mask);
    sched_setaffinity(0, sizeof mask, &mask);
    own_cpu = index < 0 && cpu_count > 1 ? -1 : cpus[index < 0 ? 0 : index];
}

static MPI_Info type_info(const char *type)
{
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_hw_resource_type", type));
    return info;
}

/* The members' CPUs, by rank in comm. */
static int gather_cpus(MPI_Comm comm, int *all)
{
    int n;
    OK(MPI_Comm_size(comm, &n));
    OK(MPI_Allgather(&own_cpu, 1, MPI_INT, all, 1, MPI_INT, comm));
    return n;
}

/* By hwloc://PU, with keys that reverse the order: exactly the ranks bound to this rank's CPU. */
static void by_cpu(int type)
{
    int all[size], members[size], same = 0, n, r;
    MPI_Info info = type_info("hwloc://pu"); /* schemes and names without regard to case */
    MPI_Comm part;
    gather_cpus(MPI_COMM_WORLD, all);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, -rank, info, &part));
    OK(MPI_Info_free(&info));
    CHECK((part == MPI_COMM_NULL) == (own_cpu < 0), "rank %d on CPU %d", rank, own_cpu);
    if (part == MPI_COMM_NULL)
        return;
    n = gather_cpus(part, members);
    OK(MPI_Comm_rank(part, &r));
    for (int i = 0; i < size; i++)
        same += all[i] == own_cpu;
    for (int i = 0; i < n; i++)
        CHECK(members[i] == own_cpu, "member %d on CPU %d, own is %d", i, members[i], own_cpu);
    if (!apart()) {
        int after = 0;
        for (int i = rank + 1; i < size; i++)
            after += all[i] == own_cpu;
        CHECK(n == same && r == after, "%d of %d members, rank %d, must be %d", n, same, r, after);
    }
    OK(MPI_Comm_free(&part));
}

/* By each kind that this machine has: a communicator if and only if the process is restricted to one instance. */
static void by_each_kind(void)
{
    MPI_Info kinds, info;
    MPI_Comm part;
    int n, length, flag;
    char kind[MPI_MAX_INFO_KEY + 1], value[8];
    OK(MPI_Get_hw_resource_info(&kinds));
    OK(MPI_Info_get_nkeys(kinds, &n));
    CHECK(n >= 1);
    for (int i = 0; i < n; i++) {
        OK(MPI_Info_get_nthkey(kinds, i, kind));
        length = sizeof value;
        OK(MPI_Info_get_string(kinds, kind, &length, value, &flag));
        info = type_info(kind);
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, rank, info, &part));
        CHECK((part != MPI_COMM_NULL) == (strcmp(value, "true") == 0), "%s is %s", kind, value);
        if (part != MPI_COMM_NULL)
            OK(MPI_Comm_free(&part));
        OK(MPI_Info_free(&info));
    }
    OK(MPI_Info_free(&kinds));
}

static void by_nothing(void)
{
    MPI_Info info = type_info("hwloc://Nonesuch"), both;
    MPI_Comm part = MPI_COMM_SELF;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &part));
    CHECK(part == MPI_COMM_NULL);
    part = MPI_COMM_SELF;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, MPI_INFO_NULL, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Info_free(&info));
    info = type_info("mpi_shared_memory");
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &(MPI_Comm){MPI_COMM_NULL}));
    CHECK(part != MPI_COMM_NULL);
    OK(MPI_Comm_free(&part));
    OK(MPI_Info_dup(info, &both));
    OK(MPI_Info_set(both, "mpi_pset_name", "mpi://WORLD"));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (rank == 0)
        BAD(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, both, &part), MPI_ERR_ARG, "mpi_pset_name",
            "one of them");
    else
        CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, both, &part) != MPI_SUCCESS);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Info_free(&both));
    OK(MPI_Info_free(&info));
}

/* Again and again until nothing is left: each part is a strict subset, and of one CPU at most at the end if ranks are bound. */
static void unguided(void)
{
    MPI_Comm levels[20];
    MPI_Info info;
    int n = size, depth = 0, length, flag;
    char type[MPI_MAX_INFO_VAL + 1];
    OK(MPI_Info_create(&info));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &levels[0]));
    while (levels[depth] != MPI_COMM_NULL) {
        int before = n, all[size];
        CHECK(depth < 12, "%d levels", depth);
        n = gather_cpus(levels[depth], all);
        CHECK(depth == 0 || n < before, "%d members after %d", n, before);
        if (depth) {
            length = sizeof type;
            OK(MPI_Info_get_string(info, "mpi_hw_resource_type", &length, type, &flag));
            CHECK(flag && strncmp(type, "hwloc://", 8) == 0, "level %d has type %s", depth, flag ? type : "none");
            for (int i = 0; i < n && strcmp(type, "hwloc://PU") == 0; i++)
                CHECK(all[i] == own_cpu);
        }
        OK(MPI_Comm_split_type(levels[depth], MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &levels[depth + 1]));
        depth++;
    }
    if (own_cpu >= 0 && !apart()) { /* the last level is one CPU, or all ranks share one */
        int all[size], mixed = 0;
        n = gather_cpus(levels[depth - 1], all);
        for (int i = 0; i < n; i++)
            mixed += all[i] != own_cpu;
        CHECK(mixed == 0, "%d members on other CPUs were not split off", mixed);
    }
    for (int i = 0; i < depth; i++)
        OK(MPI_Comm_free(&levels[i]));
    OK(MPI_Info_free(&info));
}

static void by_process_set(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm, part;
    MPI_Info info;
    int n;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_pset_name", "mpi://SELF"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part));
    CHECK(part == MPI_COMM_NULL); /* not of a session */
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "test.split_type", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part));
    OK(MPI_Comm_size(part, &n));
    CHECK(n == 1);
    OK(MPI_Comm_free(&part));
    OK(MPI_Info_set(info, "mpi_pset_name", "MPI://world"));
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_RESOURCE_GUIDED, -rank, info, &part));
    OK(MPI_Comm_size(part, &n));
    CHECK(n == size);
    OK(MPI_Comm_free(&part));
    OK(MPI_Info_set(info, "mpi_pset_name", "app://ocean"));
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Info_free(&info));
}

/* An intercommunicator of even and odd ranks, split by CPU: parts have members of both groups. */
static void between_groups(void)
{
    MPI_Comm half, inter, part;
    MPI_Info info = type_info("hwloc://PU");
    int n, remote;
    if (size < 2) {
        OK(MPI_Info_free(&info));
        return;
    }
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &inter));
    OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_HW_GUIDED, 0, info, &part));
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_size(part, &n));
        OK(MPI_Comm_remote_size(part, &remote));
        CHECK(n >= 1 && remote >= 1);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &part));
    if (part != MPI_COMM_NULL)
        OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
    OK(MPI_Info_free(&info));
}

/* Ranks other than 0 pass another type or resource than rank 0: an error on all, and the next call finds them in step. */
static void differs(MPI_Comm comm, int type, const char *value, int odd_type, const char *odd_value, const char *word, const char *odd_word)
{
    int own_type = rank ? odd_type : type;
    const char *own_value = rank ? odd_value : value, *own_word = rank ? odd_word : word;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm part = MPI_COMM_SELF;
    if (own_value)
        info = type_info(own_value);
    BAD(MPI_Comm_split_type(comm, own_type, 0, info, &part), MPI_ERR_NOT_SAME, own_word, own_value ? "" : word, own_value ? "" : odd_word);
    CHECK(part == MPI_COMM_NULL);
    if (info != MPI_INFO_NULL)
        OK(MPI_Info_free(&info));
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
    if (part != MPI_COMM_NULL)
        OK(MPI_Comm_free(&part));
}

static void different(MPI_Comm comm)
{
    MPI_Info info = type_info("hwloc://PU");
    MPI_Comm part;
    differs(comm, MPI_COMM_TYPE_SHARED, NULL, MPI_COMM_TYPE_HW_UNGUIDED, NULL, "MPI_COMM_TYPE_SHARED", "MPI_COMM_TYPE_HW_UNGUIDED");
    differs(comm, MPI_COMM_TYPE_HW_GUIDED, "hwloc://PU", MPI_COMM_TYPE_SHARED, NULL, "MPI_COMM_TYPE_HW_GUIDED", "MPI_COMM_TYPE_SHARED");
    differs(comm, MPI_COMM_TYPE_HW_GUIDED, "hwloc://PU", MPI_COMM_TYPE_HW_UNGUIDED, NULL, "HW_GUIDED", "HW_UNGUIDED");
    differs(comm, MPI_COMM_TYPE_HW_GUIDED, "hwloc://PU", MPI_COMM_TYPE_HW_GUIDED, "mpi_shared_memory", "hwloc://PU", "mpi_shared_memory");
    differs(comm, MPI_COMM_TYPE_HW_GUIDED, "hwloc://PU", MPI_COMM_TYPE_RESOURCE_GUIDED, "hwloc://PU", "HW_GUIDED", "RESOURCE_GUIDED");
    /* MPI_UNDEFINED, and a guide without a key, go with any type */
    for (int round = 0; round < 2; round++) {
        part = MPI_COMM_SELF;
        OK(MPI_Comm_split_type(comm, rank ? MPI_COMM_TYPE_HW_GUIDED : round ? MPI_UNDEFINED : MPI_COMM_TYPE_HW_GUIDED, 0,
                               rank ? info : MPI_INFO_NULL, &part));
        CHECK(rank || part == MPI_COMM_NULL);
        if (part != MPI_COMM_NULL)
            OK(MPI_Comm_free(&part));
        OK(MPI_Comm_split_type(comm, rank ? MPI_UNDEFINED : MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &part));
        if (part != MPI_COMM_NULL)
            OK(MPI_Comm_free(&part));
    }
    OK(MPI_Info_free(&info));
}

/* On a copy of MPI_COMM_WORLD, and between its rank 0 and the others. */
static void members_differ(void)
{
    MPI_Comm comm, half, inter;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    if (size > 1)
        different(comm);
    OK(MPI_Comm_split(comm, rank > 0, 0, &half));
    if (size > 1) {
        OK(MPI_Intercomm_create(half, 0, comm, rank ? 0 : 1, 3, &inter));
        OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
        different(inter);
        OK(MPI_Comm_free(&inter));
    }
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv)
{
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    find_cpus();
    for (int round = 0; round < 3; round++) {
        bind_to(round == 0 ? -1 : round == 1 ? rank % cpu_count : rank % 3 == 2 ? -1 : 0); /* none bound; spread; mixed */
        by_each_kind();
        by_cpu(MPI_COMM_TYPE_HW_GUIDED);
        by_cpu(MPI_COMM_TYPE_RESOURCE_GUIDED);
        unguided();
        between_groups();
    }
    by_nothing();
    by_process_set();
    members_differ();
    OK(MPI_Finalize());
    return 0;
}
