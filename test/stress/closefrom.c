/* SPDX-License-Identifier: BSD-3-Clause
 *
 * closefrom: a program that closes descriptors which it did not open, in the midst of messages. Each rank sends to its right neighbour from
 * memory that is unmapped by an inline system call and mapped again at the same address between messages; every byte is verified. In one
 * third of the rounds the memory monitor's descriptors (userfaultfd, /proc/self/maps) are closed and their numbers reused by pipes that
 * hold the program's own bytes. The transport's stay open: without them no message arrives, which nobody can miss.
 *    closefrom [-t: another thread unmaps]
 */
#include <dirent.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 300
#define BYTES 262144 /* registered by the caller itself, so that no helper thread is started */
#define PIPES 8
#define OWN "the program's own bytes"

static char *const place = (char *)0x300000000000; /* no other mapping uses these addresses */
static int wrong, pipes[PIPES][2];

static void *unmap(void *at)
{
    long result = SYS_munmap;

#if defined(__x86_64__)
    __asm__ volatile("syscall" : "+a"(result) : "D"(at), "S"((long)BYTES) : "rcx", "r11", "memory");
#else
    result = syscall(SYS_munmap, at, (long)BYTES);
#endif
    return result ? at : NULL;
}

static void map_again(char *at, int by_thread)
{
    pthread_t thread;

    if (by_thread) {
        pthread_create(&thread, NULL, unmap, at);
        pthread_join(thread, NULL);
    } else {
        unmap(at);
    }
    if (mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
        MPI_Abort(MPI_COMM_WORLD, 3);
}

static int is_monitors(const char *fd)
{
    char path[300], to[300];

    snprintf(path, sizeof path, "/proc/self/fd/%s", fd);
    ssize_t length = readlink(path, to, sizeof to - 1);
    to[length < 0 ? 0 : length] = '\0';
    return strstr(to, "[userfaultfd]") || (strlen(to) > 5 && !strcmp(to + strlen(to) - 5, "/maps"));
}

static int close_monitors(void)
{
    int closed = 0;
    DIR *all = opendir("/proc/self/fd");

    for (struct dirent *one; all && (one = readdir(all)) != NULL;)
        closed += is_monitors(one->d_name) && !close(atoi(one->d_name));
    if (all)
        closedir(all);
    for (int i = 0; i < PIPES; i++)
        if (pipe2(pipes[i], O_NONBLOCK) || write(pipes[i][1], OWN, sizeof OWN) != sizeof OWN)
            wrong++;
    return closed;
}

static void check_pipes(void)
{
    char text[64];

    for (int i = 0; i < PIPES; i++)
        wrong += read(pipes[i][0], text, sizeof text) != sizeof OWN || strcmp(text, OWN) != 0;
}

static void fill(char *at, int round, int rank)
{
    for (int i = 0; i < BYTES; i++)
        at[i] = (char)(round * 7 + rank * 3 + i / 4096 + i);
}

static int is_filled(const char *at, int round, int rank)
{
    for (int i = 0; i < BYTES; i++)
        if (at[i] != (char)(round * 7 + rank * 3 + i / 4096 + i))
            return 0;
    return 1;
}

int main(int argc, char **argv)
{
    int rank, size, bad = 0, closed = 0, by_thread = argc > 1 && !strcmp(argv[1], "-t");
    char *out = place, *in = place + 2 * BYTES;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < 2; i++)
        if (mmap(i ? in : out, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != (i ? in : out))
            MPI_Abort(MPI_COMM_WORLD, 3);
    for (int round = 0; round < ROUNDS; round++) {
        if (round == ROUNDS / 3)
            closed = close_monitors();
        if (round % 3 == 0) { /* the other rounds find what was registered */
            map_again(out, by_thread);
            map_again(in, by_thread);
        }
        fill(out, round, rank);
        memset(in, 0, BYTES);
        MPI_Sendrecv(out, BYTES, MPI_BYTE, (rank + 1) % size, 1, in, BYTES, MPI_BYTE, (rank + size - 1) % size, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        bad += !is_filled(in, round, (rank + size - 1) % size);
    }
    check_pipes();
    printf("closefrom: rank %d: %d of %d messages wrong, %d descriptors closed, %d pipes damaged\n", rank, bad, ROUNDS, closed, wrong);
    MPI_Finalize();
    return bad || wrong || !closed;
}
