/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hammer: threads that do not call MPI and disturb those that do: they map, unmap, move, trim; unmap memory just sent from while its owner
 * waits for its address; fork, spawn, call the shell. Invariant: a thread unmaps only what it mapped or what was handed over to it.
 */
#include "blocks.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#define THREADS_MAX 8

extern char **environ;
atomic_ullong hammer_turns, hammer_forks, hammer_spawns, hammer_systems, hammer_races, hammer_overtaken, hammer_child_errors;

static pthread_t threads[THREADS_MAX + 3];
static uint32_t thread_count;
static atomic_bool stops;
static bool uses_raw;
static uint64_t first_seed;

/* -- hand-over of an address: one thread unmaps; the owner maps it again as soon as it is free, possibly before the unmapping call
 * returns, and sends from it at once. One at a time. -- */

static _Atomic bool race_taken;
static _Atomic uint32_t race_given, race_unmapped;
static void *race_addr;
static size_t race_bytes;

bool block_race(block *block)
{
    bool is_taken = false, is_in_place = false;
    if (!thread_count || !atomic_compare_exchange_strong(&race_taken, &is_taken, true))
        return false;
    race_addr = block->addr;
    race_bytes = block->bytes;
    uint32_t number = atomic_fetch_add(&race_given, 1) + 1;
    for (bool is_last = false; !is_last && !is_in_place;) {
        is_last = atomic_load(&race_unmapped) == number;
        void *addr = mmap(block->addr, block->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                          -1, 0);
        is_in_place = addr == block->addr;
        if (!is_in_place && addr != MAP_FAILED)
            munmap(addr, block->bytes);
    }
    if (is_in_place) {
        atomic_fetch_add(&hammer_races, 1);
        if (atomic_load(&race_unmapped) != number)
            atomic_fetch_add(&hammer_overtaken, 1);
    } else { /* another mapping took all or a part of it */
        block->addr = mmap(NULL, block->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block->addr == MAP_FAILED)
            abort();
    }
    return true;
}

/* Unmaps memory that was sent from or received into a moment ago. Only then the next address may be handed over. */
static void *unmapper(void *argument)
{
    (void)argument;
    for (uint32_t n = 0; !atomic_load(&stops) || atomic_load(&race_given) != n;) {
        if (atomic_load(&race_given) == n) {
            usleep(50);
            continue;
        }
        if (uses_raw && n % 2)
            syscall(SYS_munmap, race_addr, race_bytes);
        else
            munmap(race_addr, race_bytes);
        atomic_store(&race_unmapped, ++n);
        atomic_store(&race_taken, false);
    }
    return NULL;
}

/* -- a thread that makes random changes to its own memory -- */

static void *pounder(void *argument)
{
    block_yard yard;
    block blocks[6];
    memset(blocks, 0, sizeof blocks);
    block_yard_open(&yard, first_seed * 31 + (uintptr_t)argument, uses_raw, false);
    yard.may_race = false;
    while (!atomic_load(&stops)) {
        block *one = &blocks[block_random(&yard, 6)];
        size_t bytes = 1 + block_random(&yard, block_random(&yard, 2) ? 300000 : 3000000);
        if (one->kind == BLOCK_NONE)
            block_alloc(&yard, one, bytes);
        else if (block_random(&yard, 2))
            block_change(&yard, one, bytes);
        else
            block_free(&yard, one);
        if (one->kind != BLOCK_NONE)
            for (size_t i = 0; i < one->bytes; i += 16 * BLOCK_PAGE)
                one->addr[i] = (uint8_t)i;
        atomic_fetch_add_explicit(&hammer_turns, 1, memory_order_relaxed);
        usleep(block_random(&yard, 400));
    }
    for (int i = 0; i < 6; i++)
        block_free(&yard, &blocks[i]);
    return NULL;
}

/* -- children -- */

static void wait_for(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        atomic_fetch_add(&hammer_child_errors, 1);
}

/* A child that runs for a while: its parent's pages are shared with it until either writes. */
static void fork_one(uint32_t n)
{
    pid_t child = fork();
    if (child == 0) {
        usleep(n % 3 * 4000);
        if (n % 4 == 3)
            execl("/bin/true", "true", (char *)NULL);
        _exit(0);
    }
    if (child > 0) {
        atomic_fetch_add(&hammer_forks, 1);
        wait_for(child);
    }
}

static void spawn_one(void)
{
    char *arguments[] = {"true", NULL};
    pid_t child;
    if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0) {
        atomic_fetch_add(&hammer_spawns, 1);
        wait_for(child);
    }
}

static void *forker(void *argument)
{
    (void)argument;
    for (uint32_t n = 0; !atomic_load(&stops); n++) {
        if (n % 3 == 0)
            fork_one(n / 3);
        else if (n % 3 == 1)
            spawn_one();
        else if (system("true") == 0)
            atomic_fetch_add(&hammer_systems, 1);
        else
            atomic_fetch_add(&hammer_child_errors, 1);
        usleep(20000);
    }
    return NULL;
}

/* The event thread of userfaultfd waits in ppoll: it gets the lowest priority, so its events are late. */
uint32_t hammer_delay_listener(void)
{
    struct sched_param none = {0};
    uint32_t found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[300], text[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/syscall", task->d_name);
        FILE *file = fopen(path, "re");
        if (file && fgets(text, sizeof text, file) && atoi(text) == SYS_ppoll && *text != 'r')
            found += sched_setscheduler(atoi(task->d_name), SCHED_IDLE, &none) == 0;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

static void start(void *(*run)(void *), void *argument)
{
    if (pthread_create(&threads[thread_count], NULL, run, argument)) {
        perror("pthread_create");
        abort();
    }
    thread_count++;
}

void hammer_start(uint32_t count, bool forks, bool may_raw, uint64_t seed)
{
    uses_raw = may_raw;
    first_seed = seed;
    if (!count)
        return;
    start(unmapper, NULL);
    if (forks)
        start(forker, NULL);
    for (uint32_t i = 0; i < count && i < THREADS_MAX; i++)
        start(pounder, (void *)(uintptr_t)(i + 1));
}

void hammer_stop(void)
{
    atomic_store(&stops, true);
    for (uint32_t i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    thread_count = 0;
}
