/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unpin: a program that gives back the buffers of its messages, then computes and makes no MPI call. Each rank sends to its right neighbour
 * from memory that is then unmapped, freed or discarded, and reads what the kernel holds pinned for it (VmPin) until that has fallen.
 *    unpin single|multiple: the level of threads
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES ((size_t)32 << 20)
#define SECONDS 20 /* at most; a busy machine is slow */

enum how { UNMAP, FREE, DISCARD, PART, HOWS };
static const char *const names[] = {"munmap", "free", "madvise", "munmap of a half"};

static long pinned_kb(void)
{
    char line[256];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "r");

    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "VmPin:", 6))
            kb = atol(line + 6);
    if (status)
        fclose(status);
    return kb;
}

static char *alloc(enum how how)
{
    char *p = how == FREE ? malloc(BYTES) : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!p || p == MAP_FAILED)
        MPI_Abort(MPI_COMM_WORLD, 3);
    memset(p, how + 1, BYTES);
    return p;
}

static void give_back(enum how how, char *p)
{
    if (how == FREE)
        free(p);
    else if (how == DISCARD)
        madvise(p, BYTES, MADV_DONTNEED);
    else
        munmap(how == PART ? p + BYTES / 2 : p, how == PART ? BYTES / 2 : BYTES);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* 1: what was pinned did not fall to `kb` within SECONDS. */
static int stays_above(long kb, int rank, const char *name, long before)
{
    double begin = now();
    long left;

    while ((left = pinned_kb()) > kb && now() < begin + SECONDS) {
    }
    printf("unpin: rank %d: %s: %ld MiB pinned, %ld MiB after %.1f ms\n", rank, name, before >> 10, left >> 10, (now() - begin) * 1e3);
    return left > kb;
}

int main(int argc, char **argv)
{
    int rank, size, given, bad = 0;
    const long quarter = (long)(BYTES >> 12); /* of one buffer, KiB */

    MPI_Init_thread(&argc, &argv, argc > 1 && !strcmp(argv[1], "multiple") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (enum how how = UNMAP; how < HOWS; how++) {
        char *out = alloc(how), *in = alloc(how);
        long base = pinned_kb();
        MPI_Sendrecv(out, (int)BYTES, MPI_BYTE, (rank + 1) % size, 1, in, (int)BYTES, MPI_BYTE, (rank + size - 1) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        long before = pinned_kb();
        if (before < base + quarter) {
            printf("unpin: rank %d: nothing was pinned: %ld KiB, then %ld\n", rank, base, before);
            bad++;
        }
        give_back(how, out);
        give_back(how, in);
        /* Of a half the other one may stay. */
        bad += stays_above(base + (how == PART ? 3 * (before - base) / 4 : quarter), rank, names[how], before);
        /* A child has no helper and ends as any process. */
        pid_t child = fork();
        if (!child)
            _exit(0);
        bad += child < 0 || waitpid(child, &given, 0) != child || given;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return bad != 0;
}
