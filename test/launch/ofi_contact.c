/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi_contact: which ranks map libfabric, after traffic of several kinds. Each rank prints one line. Exit code 1 on wrong data.
 *     ofi_contact none             no rank speaks to another
 *     ofi_contact leaders          barriers and reductions of all, which one rank of each node carries to the other
 *     ofi_contact one              rank 2 (of one node) and the last rank (of the other) speak, once
 *     ofi_contact all SEED         each rank speaks to each, at random times; some compute or sleep meanwhile, one posts its receives late
 *     ofi_contact sleeper          the last rank sleeps in MPI_Recv when rank 2 first speaks to it
 *     ofi_contact late             rank 2's message comes while the last rank computes for a second, then only receives and finalizes
 *     ofi_contact gone             rank 2 waits for the last rank, which aborts the job without a word to it: it must end
 */
#include <dirent.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t state;
static int rank, size;

static uint32_t random_below(uint32_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % limit;
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;
    for (const struct dirent *one; folder && (one = readdir(folder));)
        count += one->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

/* Shared libraries in this process; *has_libfabric: is it one of them? */
static int libraries(int *has_libfabric)
{
    char line[512], last[512] = "";
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    *has_libfabric = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        const char *path = strchr(line, '/');
        if (!path || !strstr(path, ".so") || strcmp(path, last) == 0)
            continue;
        snprintf(last, sizeof last, "%s", path);
        count++;
        *has_libfabric |= strstr(path, "/libfabric.so") != NULL;
    }
    if (maps)
        fclose(maps);
    return count;
}

static long status_kib(const char *name)
{
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = atol(line + strlen(name) + 1);
    if (file)
        fclose(file);
    return value;
}

static void exchange_all(void)
{
    MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
    int *words = malloc(2 * (size_t)size * sizeof *words), wrong = 0, first = (int)random_below((uint32_t)size);
    if (random_below(3) == 0)
        usleep(random_below(400000));
    for (int i = 0; i < size; i++) {
        int peer = (first + i) % size;
        words[peer] = 1000 * rank + peer;
        MPI_Isend(&words[peer], 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &requests[size + peer]);
        if (random_below(4) == 0)
            usleep(random_below(20000));
    }
    if (rank == (int)(size / 2))
        sleep(1);
    for (int i = 0; i < size; i++)
        MPI_Irecv(&words[size + i], 1, MPI_INT, i, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < size; i++)
        wrong += words[size + i] != 1000 * i + rank;
    if (wrong)
        exit(1);
    free(words);
    free(requests);
}

static void speak(const char *how)
{
    int word = 7, sum = 0;
    if (strcmp(how, "leaders") == 0) {
        for (int i = 0; i < 3; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Allreduce(&word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        }
        if (sum != 7 * size)
            exit(1);
        return;
    }
    if (strcmp(how, "all") == 0) {
        exchange_all();
        return;
    }
    if (strcmp(how, "none") == 0 || (rank != 2 && rank != size - 1))
        return;
    if (rank == 2) {
        if (strcmp(how, "sleeper") == 0)
            sleep(2);
        if (strcmp(how, "gone") == 0)
            MPI_Recv(&word, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&word, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
        return;
    }
    if (strcmp(how, "late") == 0)
        for (double until = now_ms() + 1000; now_ms() < until;)
            continue;
    if (strcmp(how, "gone") == 0)
        _exit(3);
    MPI_Recv(&sum, 1, MPI_INT, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (sum != 7)
        exit(1);
}

int main(int argc, char **argv)
{
    double began = now_ms(), init_ms;
    int has_libfabric, count;
    long rss;
    MPI_Init(&argc, &argv);
    init_ms = now_ms() - began;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = (argc > 2 ? strtoull(argv[2], NULL, 0) : 1) * 0x9e3779b97f4a7c15u + (uint64_t)rank + 1;
    speak(argc > 1 ? argv[1] : "none");
    rss = status_kib("VmRSS:");
    count = libraries(&has_libfabric);
    printf("rank %d: libfabric %d, init %.1f ms, rss %ld KiB, threads %d, descriptors %d, libraries %d\n", rank, has_libfabric, init_ms,
           rss, entries("/proc/self/task"), entries("/proc/self/fd"), count);
    MPI_Finalize();
    return 0;
}
