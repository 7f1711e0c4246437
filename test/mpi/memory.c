/* np: 1 2 : MPI_Alloc_mem aligns as asked, MPI_Free_mem refuses what it did not allocate; hardware resources and memory kinds by name */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>

#include "expect.h"

static void alignments(void)
{
    static const char *const wishes[] = {"16", "4096", " 65536 ", "+2097152", "100", "-8", "many", ""};
    static const uintptr_t must[] = {16, 4096, 65536, 2097152, 16, 16, 16, 16};
    MPI_Info info;
    char *memory;
    OK(MPI_Info_create(&info));
    for (int i = 0; i < 8; i++)
        for (MPI_Aint size = 0; size <= 100000; size = 10 * size + 1) {
            OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", wishes[i]));
            OK(MPI_Alloc_mem(size, info, &memory));
            CHECK((uintptr_t)memory % must[i] == 0, "%p for '%s'", (void *)memory, wishes[i]);
            memset(memory, 1, (size_t)size);
            OK(MPI_Free_mem(memory));
        }
    OK(MPI_Info_free(&info));
    OK(MPI_Alloc_mem(100, MPI_INFO_ENV, &memory));
    OK(MPI_Free_mem(memory));
}

static void refusals(void)
{
    char *memory, *own = malloc(8192);
    BAD(MPI_Alloc_mem(-1, MPI_INFO_NULL, &memory), MPI_ERR_ARG, "-1");
    BAD(MPI_Alloc_mem(8, MPI_INFO_NULL, NULL), MPI_ERR_ARG, "baseptr");
    BAD(MPI_Alloc_mem((MPI_Aint)1 << 62, MPI_INFO_NULL, &memory), MPI_ERR_NO_MEM, "no memory");
    BAD(MPI_Free_mem(own + 1), MPI_ERR_BASE, "MPI_Alloc_mem");
    OK(MPI_Free_mem(NULL));
    free(own);
}

static void hardware(void)
{
    MPI_Info info;
    char key[MPI_MAX_INFO_KEY], value[8];
    int n, flag, length, machine = 0, unit = 0;
    cpu_set_t one;
    OK(MPI_Get_hw_resource_info(&info));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n >= 2);
    for (int i = 0; i < n; i++) {
        OK(MPI_Info_get_nthkey(info, i, key));
        length = sizeof value;
        OK(MPI_Info_get_string(info, key, &length, value, &flag));
        CHECK(flag && !strncmp(key, "hwloc://", 8) && (!strcmp(value, "true") || !strcmp(value, "false")), "%s is %s", key, value);
        machine += !strcmp(key, "hwloc://Machine") && !strcmp(value, "true");
        unit += !strcmp(key, "hwloc://PU");
    }
    CHECK(machine == 1 && unit == 1);
    OK(MPI_Info_free(&info));
    CHECK(!sched_getaffinity(0, sizeof one, &one));
    for (int cpu = 0, found = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &one) && found++)
            CPU_CLR(cpu, &one);
    CHECK(!sched_setaffinity(0, sizeof one, &one)); /* on one CPU every kind has one instance */
    OK(MPI_Get_hw_resource_info(&info));
    for (int i = 0; i < n; i++) {
        OK(MPI_Info_get_nthkey(info, i, key));
        length = sizeof value;
        OK(MPI_Info_get_string(info, key, &length, value, &flag));
        CHECK(!strcmp(value, "true"), "%s is %s", key, value);
    }
    OK(MPI_Info_free(&info));
}

/* Copies the value of a key; "": none. Frees the info. */
static const char *value_of(MPI_Info info, const char *key)
{
    static char value[MPI_MAX_INFO_VAL + 1];
    int flag, length = sizeof value;
    value[0] = 0;
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    OK(MPI_Info_free(&info));
    return value;
}

/* Is the word an element of the list? */
static int has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return 1;
    return 0;
}

static void kinds(void)
{
    char world[MPI_MAX_INFO_VAL + 1];
    MPI_Info info, got;
    MPI_Session session;
    MPI_Comm comm;
    OK(MPI_Comm_get_info(MPI_COMM_WORLD, &got));
    snprintf(world, sizeof world, "%s", value_of(got, "mpi_memory_alloc_kinds"));
    CHECK(has(world, "mpi") && has(world, "system") && has(world, "mpi:alloc_mem"), "%s", world);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_memory_alloc_kinds", "system, mpi:alloc_mem"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    OK(MPI_Comm_get_info(comm, &got));
    CHECK(!strcmp(value_of(got, "mpi_assert_memory_alloc_kinds"), "system, mpi:alloc_mem"));
    OK(MPI_Comm_get_info(comm, &got));
    CHECK(!strcmp(value_of(got, "mpi_memory_alloc_kinds"), world));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_set(info, "mpi_assert_memory_alloc_kinds", "system,gpu:device")); /* not supported: ignored */
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    OK(MPI_Comm_get_info(comm, &got));
    CHECK(!strcmp(value_of(got, "mpi_assert_memory_alloc_kinds"), ""));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_set(info, "mpi_memory_alloc_kinds", "system,gpu:device,MPI:alloc_mem:win_allocate,mpi:other"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Info_free(&info));
    OK(MPI_Session_get_info(session, &got));
    snprintf(world, sizeof world, "%s", value_of(got, "mpi_memory_alloc_kinds"));
    CHECK(has(world, "mpi") && has(world, "system") && has(world, "MPI:alloc_mem:win_allocate"), "%s", world);
    CHECK(!has(world, "gpu:device") && !has(world, "mpi:other"), "%s", world);
    OK(MPI_Session_finalize(&session));
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    alignments();
    refusals();
    kinds();
    hardware();
    OK(MPI_Finalize());
    return 0;
}
