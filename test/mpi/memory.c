/* np: 1 2 : MPI_Alloc_mem aligns as asked, MPI_Free_mem refuses what it did not allocate; hardware resources by name */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>

#include "check.h"

static void expect_error(int line, int code, int must, const char *word)
{
    char text[MPI_MAX_ERROR_STRING];
    int class, length;
    OK(MPI_Error_class(code, &class));
    OK(MPI_Error_string(code, text, &length));
    if (class != must || !strstr(text, word))
        check_fail(__FILE__, line, "class and text", "class %d, must be %d; text lacks '%s': %s", class, must, word, text);
}
#define BAD(call, class, word) expect_error(__LINE__, (call), class, word)

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

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    alignments();
    refusals();
    hardware();
    OK(MPI_Finalize());
    return 0;
}
