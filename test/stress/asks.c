/* SPDX-License-Identifier: BSD-3-Clause
 *
 * asks: number of syncs with the kernel of a receiver with several threads. WINDOW receives are posted before their messages are sent: one
 * sync serves all. A sender's buffer is new with each call, so it syncs for each. Between rounds another thread unmaps the buffers by an
 * inline system call, and they are mapped again at the same address before that call returns, while the event thread of userfaultfd gets
 * hardly any CPU: syncs of earlier rounds must not count.
 */
#include <dirent.h>
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WINDOW 16
#define ROUNDS 30
#define BYTES 65536

static char *const place = (char *)0x300000000000; /* no other mapping uses this address */
static MPI_T_pvar_session session;
static int wrong;

static MPI_T_pvar_handle counter(const char *name)
{
    MPI_T_pvar_handle handle;
    int index, count;

    MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    MPI_T_pvar_start(session, handle);
    return handle;
}

static unsigned long long value_of(MPI_T_pvar_handle handle)
{
    unsigned long long value = 0;

    MPI_T_pvar_read(session, handle, &value);
    return value;
}

/* As soon as the address is free, which is before munmap has returned in the other thread. */
static char *map_anew(void)
{
    char *p;

    do
        p = mmap(place, WINDOW * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    while (p == MAP_FAILED && errno == EEXIST);
    if (p != place)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return p;
}

static void *unmap(void *arg)
{
    long result = SYS_munmap;

#if defined(__x86_64__)
    __asm__ volatile("syscall" : "+a"(result) : "D"(place), "S"((long)WINDOW * BYTES) : "rcx", "r11", "memory");
#else
    result = syscall(SYS_munmap, place, (long)WINDOW * BYTES);
#endif
    return result ? NULL : arg;
}

/* The library names its event thread (mem/memmon_uffd.c). */
static int delay_listener(void)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");

    for (struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "re");
        if (file && fgets(name, sizeof name, file) && !strcmp(name, "weft-memmon\n"))
            found += !sched_setscheduler(atoi(task->d_name), SCHED_IDLE, &(struct sched_param){0});
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

static void *spin(void *stop)
{
    while (!atomic_load_explicit((atomic_int *)stop, memory_order_relaxed)) {
    }
    return NULL;
}

/* is_early: the messages have arrived when the receives are posted, so the look-ups follow at once. */
static void exchange(int rank, char *at, int round, int is_early)
{
    MPI_Request requests[WINDOW];

    for (int i = 0; i < WINDOW && rank == 1; i++)
        MPI_Irecv(at + i * BYTES, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
    if (!is_early)
        MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOW && rank == 0; i++) {
        memset(at + i * BYTES, 1 + (round * WINDOW + i) % 255, BYTES);
        MPI_Isend(at + i * BYTES, BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW && rank == 1; i++)
        for (int k = 0; k < BYTES; k++)
            wrong += at[i * BYTES + k] != (char)(1 + (round * WINDOW + i) % 255);
}

/* Memory that is unmapped and mapped again. */
static void come_and_go(int rank, char *at)
{
    static atomic_int stop;
    pthread_t spinners[64], thread;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN), spinning = 0;

    if (delay_listener() != 1)
        wrong += printf("asks: rank %d: there is no listener that could be delayed\n", rank);
    while (rank == 1 && spinning < cpus && spinning < 64)
        pthread_create(&spinners[spinning++], NULL, spin, &stop);
    for (int round = 0; round < ROUNDS; round++) {
        if (rank == 1)
            MPI_Probe(0, WINDOW - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_create(&thread, NULL, unmap, at);
        at = map_anew();
        exchange(rank, at, round, 1);
        pthread_join(thread, NULL);
        exchange(rank, at, round + 7, 0);
    }
    atomic_store(&stop, 1);
    while (spinning)
        pthread_join(spinners[--spinning], NULL);
}

int main(int argc, char **argv)
{
    MPI_T_pvar_handle asks, hits;
    pthread_t thread;
    unsigned long long asked, hit;
    int rank, level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    MPI_T_init_thread(MPI_THREAD_SERIALIZED, &level);
    MPI_T_pvar_session_create(&session);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    asks = counter("weft_reg_sync_calls");
    hits = counter("weft_reg_hits");
    /* The same memory in each round: counts syncs. */
    char *at = map_anew();
    for (int round = 0; round < 2; round++)
        exchange(rank, at, round, 0); /* registers */
    pthread_create(&thread, NULL, unmap, at); /* from here on there are threads, whatever the transport did */
    pthread_join(thread, NULL);
    at = map_anew();
    exchange(rank, at, 2, 0);
    exchange(rank, at, 3, 0);
    asked = value_of(asks);
    hit = value_of(hits);
    for (int round = 4; round < 4 + ROUNDS; round++)
        exchange(rank, at, round, 0);
    printf("asks: rank %d: %llu look-ups hit, %llu asked\n", rank, value_of(hits) - hit, value_of(asks) - asked);
    /* At most one in four: a look-up during asynchronous registration may miss. */
    if (rank == 1 && (value_of(hits) - hit < ROUNDS * WINDOW / 2 || (value_of(asks) - asked) * 4 > value_of(hits) - hit))
        wrong++;
    come_and_go(rank, at);
    printf("asks: rank %d: %d wrong\n", rank, wrong);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
    return wrong != 0;
}
