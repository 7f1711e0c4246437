/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_share: see cpu_share.h.
 */
#include "core/cpu_share.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cpu_count.h"
#include "mem/segment.h"

#define LEAST_NS 100000000u /* between two readings */
#define CPU_NS 50000000u    /* ... for each CPU */
#define RANK_NS 10000000u   /* ... for each rank of the node */
#define OTHERS_PART 3       /* other programs that use less than this part of one CPU do not count */
#define NO_SPACE UINT64_MAX /* in a rank page: /proc cannot be read there */

/* user, nice, system, idle, iowait, irq, softirq. A guest's time is in user's. False: not understood. */
static bool parse_times(const char *text, uint64_t ticks, uint64_t *busy_ns)
{
    unsigned long long user, nice, system, idle, iowait, irq, softirq;
    if (sscanf(text, " %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq, &softirq) != 7 || !ticks)
        return false;
    *busy_ns = (user + nice + system + irq + softirq) * (1000000000u / ticks);
    return true;
}

uint64_t weft_cpu_share_parse(const char *text, const cpu_set_t *cpus, uint64_t ticks)
{
    uint64_t all = 0, one;
    int count = 0;
    if (!cpus)
        return !strncmp(text, "cpu ", 4) && parse_times(text + 4, ticks, &all) ? all : 0;
    for (const char *line = strchr(text, '\n'); line && !strncmp(line + 1, "cpu", 3); line = strchr(line + 1, '\n')) {
        char *end;
        unsigned long cpu = strtoul(line + 4, &end, 10);
        if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, cpus))
            continue;
        if (!parse_times(end, ticks, &one))
            return 0;
        all += one;
        count++;
    }
    return count == CPU_COUNT(cpus) ? all : 0;
}

static uint64_t busy_ns(const cpu_set_t *cpus)
{
    static const uint32_t whole = 1024, by_cpu = 1 << 17;
    uint32_t capacity = cpus ? by_cpu : whole, used = 0;
    char *text = malloc(capacity);
    int fd = text ? open("/proc/stat", O_RDONLY | O_CLOEXEC) : -1;
    ssize_t bytes = 0;
    uint64_t all = 0;
    while (fd >= 0 && used + 1 < capacity && (bytes = read(fd, text + used, capacity - 1 - used)) > 0)
        used += (uint32_t)bytes;
    if (fd >= 0)
        close(fd);
    if (used) {
        text[used] = 0;
        all = weft_cpu_share_parse(text, cpus, (uint64_t)sysconf(_SC_CLK_TCK));
    }
    free(text);
    return all;
}

/* 0 too while the kernel has counted none: a process that has just begun. */
static uint64_t cpu_ns(uint32_t pid)
{
    struct timespec used;
    clockid_t clock;
    if (clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &used))
        return WEFT_CPU_SHARE_UNKNOWN;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Adds the CPUs that the process may use; all, if they do not fit a set. */
static void add_cpus(cpu_set_t *cpus, uint32_t pid)
{
    cpu_set_t its;
    if (sched_getaffinity((pid_t)pid, sizeof its, &its))
        memset(&its, 255, sizeof its);
    CPU_OR(cpus, cpus, &its);
}

/* cpus: those that the ranks may use. */
static uint64_t ranks_ns(const weft_boot *boot, cpu_set_t *cpus)
{
    uint64_t all = 0, space = atomic_load_explicit(&weft_segment_rank(&boot->segment, boot->local_rank)->pid_space, memory_order_relaxed);
    CPU_ZERO(cpus);
    for (uint32_t i = 0; i < boot->segment.hdr->ranks; i++) {
        const weft_rank_page *page = weft_segment_rank(&boot->segment, i);
        uint32_t state = atomic_load_explicit(&page->state, memory_order_relaxed);
        uint64_t used;
        uint64_t its_space = atomic_load_explicit(&page->pid_space, memory_order_relaxed);
        if (!its_space || state == WEFT_RANK_FINAL || state == WEFT_RANK_ABORT || state == WEFT_RANK_DEAD) /* not begun, or ended */
            continue;
        if (its_space == NO_SPACE || its_space != space)
            return WEFT_CPU_SHARE_UNKNOWN;
        used = cpu_ns(atomic_load_explicit(&page->pid, memory_order_relaxed));
        if (used == WEFT_CPU_SHARE_UNKNOWN)
            return WEFT_CPU_SHARE_UNKNOWN;
        all += used;
        add_cpus(cpus, atomic_load_explicit(&page->pid, memory_order_relaxed));
    }
    return all;
}

/* A full set stands for CPUs that do not fit it. */
static bool is_part(const cpu_set_t *cpus, long online) { return CPU_COUNT(cpus) < CPU_SETSIZE && CPU_COUNT(cpus) < online; }

bool weft_cpu_share_is_alone(const weft_cpu_share *from, const weft_cpu_share *to)
{
    return to->busy_ns - from->busy_ns < to->ranks_ns - from->ranks_ns + (to->at_ns - from->at_ns) / OTHERS_PART;
}

uint64_t weft_cpu_share_least_ns(uint64_t cpus, uint64_t ranks)
{
    uint64_t least = cpus * CPU_NS > ranks * RANK_NS ? cpus * CPU_NS : ranks * RANK_NS;
    return least > LEAST_NS ? least : LEAST_NS;
}

void weft_cpu_share_open(weft_cpu_share *share, const weft_boot *boot, weft_rank_page *page)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct stat space;
    atomic_store_explicit(&page->pid_space, stat("/proc/self/ns/pid", &space) ? NO_SPACE : space.st_ino, memory_order_relaxed);
    if (!boot->has_segment || online <= 0 || weft_cpu_count_quota())
        return;
    share->least_ns = weft_cpu_share_least_ns((uint64_t)online, boot->segment.hdr->ranks);
}

static bool is_known(const weft_cpu_share *share) { return share->busy_ns && share->ranks_ns != WEFT_CPU_SHARE_UNKNOWN; }

bool weft_cpu_share_judge(const weft_cpu_share *from, const weft_cpu_share *to, bool *is_alone)
{
    bool can_tell = is_known(to);
    *is_alone = can_tell && !from->at_ns;
    if (!can_tell || !from->at_ns || !is_known(from))
        return true;
    *is_alone = weft_cpu_share_is_alone(from, to);
    return to->ranks_ns >= from->ranks_ns && CPU_EQUAL(&to->cpus, &from->cpus); /* else a rank has ended, or was bound anew */
}

bool weft_cpu_share_look(weft_cpu_share *share, const weft_boot *boot, uint64_t now_ns, bool *is_alone)
{
    weft_cpu_share before = *share;
    if (!share->least_ns || now_ns - share->at_ns < share->least_ns)
        return false;
    share->at_ns = now_ns;
    share->ranks_ns = ranks_ns(boot, &share->cpus);
    share->busy_ns = busy_ns(is_part(&share->cpus, sysconf(_SC_NPROCESSORS_ONLN)) ? &share->cpus : NULL);
    return weft_cpu_share_judge(&before, share, is_alone);
}
