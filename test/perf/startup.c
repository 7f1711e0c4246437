/* SPDX-License-Identifier: BSD-3-Clause
 *
 * startup: the program launched by test/perf/startup: MPI_Init, MPI_Barrier, MPI_Finalize. With an argument each rank prints, between two
 * barriers, its resources: "rank <host> private heap data anon shared segment descriptors sockets", memory in KiB. For any MPI.
 */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* KiB of private memory by kind; memory mapped by other processes is not part of it. */
struct own {
    long heap, data, anon, shared;
};

static void own_read(struct own *own)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[4096], place[4096] = "", rights[8];
    unsigned long begin, end;
    long kib;

    while (maps && fgets(line, sizeof(line), maps)) {
        int at = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %n", &begin, &end, rights, &at) == 3 && at) {
            snprintf(place, sizeof(place), "%s", line + at);
            place[strcspn(place, "\n")] = '\0';
        } else if (sscanf(line, "Private_Clean: %ld", &kib) == 1 || sscanf(line, "Private_Dirty: %ld", &kib) == 1) {
            if (rights[3] == 's')
                own->shared += kib;
            else if (!strcmp(place, "[heap]"))
                own->heap += kib;
            else if (*place == '/')
                own->data += kib;
            else
                own->anon += kib;
        }
    }
    if (maps)
        fclose(maps);
}

/* Pages of shared memory, each divided by the number of processes that map it: the sum over a host's ranks is all of it. */
static long shared_part(void)
{
    FILE *all = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kib = 0;

    while (all && fgets(line, sizeof(line), all))
        if (sscanf(line, "Pss_Shmem: %ld", &kib) == 1)
            break;
    if (all)
        fclose(all);
    return kib;
}

static void descriptors(int *count, int *sockets)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    struct stat what;

    *count = *sockets = 0;
    while (dir && (entry = readdir(dir))) {
        if (*entry->d_name == '.' || atoi(entry->d_name) == dirfd(dir) || fstat(atoi(entry->d_name), &what))
            continue;
        ++*count;
        *sockets += S_ISSOCK(what.st_mode);
    }
    if (dir)
        closedir(dir);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1) {
        struct own own = {0};
        char host[256] = "", text[512];
        int count, sockets;
        long shared = shared_part();
        own_read(&own);
        descriptors(&count, &sockets);
        gethostname(host, sizeof(host) - 1);
        int bytes = snprintf(text, sizeof(text), "rank %s %ld %ld %ld %ld %ld %ld %d %d\n", host,
                             own.heap + own.data + own.anon + own.shared, own.heap,
                             own.data, own.anon, own.shared, shared, count, sockets);
        if (write(1, text, (size_t)bytes) != bytes)
            return 1;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
