/* SPDX-License-Identifier: BSD-3-Clause
 *
 * spawn: MPI_Comm_spawn and MPI_Comm_spawn_multiple in C, which check what spawn.f90 passes and set what goes out.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int is, const char *what)
{
    if (is)
        return;
    printf("not so in C: %s\n", what);
    fflush(stdout);
    exit(1);
}

static int is_root(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 0;
}

static void set(int *codes, int first)
{
    for (int i = 0; codes != MPI_ERRCODES_IGNORE && i < 3; i++)
        codes[i] = first + i;
}

int MPI_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *intercomm,
                   int codes[])
{
    must(root == 0 && comm == MPI_COMM_WORLD, "root and comm");
    if (maxprocs == 1) {
        must(argv == MPI_ARGV_NULL && codes == MPI_ERRCODES_IGNORE && info == MPI_INFO_NULL, "sentinels");
    } else {
        must(!strcmp(command, "./prog") && maxprocs == 3 && info == MPI_INFO_ENV && codes != NULL, "command");
        must(is_root() ? !strcmp(argv[0], " a b") && !strcmp(argv[1], "c") && !argv[2] : !argv, "argv");
    }
    *intercomm = MPI_COMM_SELF;
    set(codes, 7);
    return MPI_SUCCESS;
}

int MPI_Comm_spawn_multiple(int count, char *commands[], char **argvs[], const int maxprocs[], const MPI_Info infos[], int root,
                            MPI_Comm comm, MPI_Comm *intercomm, int codes[])
{
    must(count == 2 && root == 0 && comm == MPI_COMM_WORLD && maxprocs[1] == maxprocs[0] + 1, "count");
    if (is_root()) {
        must(!strcmp(commands[0], "one") && !strcmp(commands[1], "two  2"), "commands");
        must(infos[0] == MPI_INFO_NULL && infos[1] == MPI_INFO_ENV, "infos");
    }
    if (maxprocs[0] == 3)
        must(argvs == MPI_ARGVS_NULL && codes == MPI_ERRCODES_IGNORE, "sentinels of multiple");
    else if (is_root())
        must(!strcmp(argvs[0][0], "x") && !strcmp(argvs[0][1], "xx") && !argvs[0][2] && !strcmp(argvs[1][0], "y") && !argvs[1][1], "argvs");
    *intercomm = MPI_COMM_SELF;
    set(codes, 4);
    return MPI_SUCCESS;
}
