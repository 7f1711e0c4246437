/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_share: see cpu_share.h.
 */
#include "core/cpu_share.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mem/segment.h"

#define LEAST_NS 100000000u /* between two readings: the kernel counts in units of 10 ms */
#define CPU_NS 50000000u    /* the same for each CPU: each has a rounding error of its own */
#define OTHERS_PART 3       /* other programs that use less than this part of one CPU do not count */

void weft_cpu_share_show(weft_rank_page *page)
{
    struct stat space;
    if (stat("/proc/self/ns/pid", &space) == 0)
        atomic_store_explicit(&page->pid_space, space.st_ino, memory_order_relaxed);
}

/* user, nice, system, idle, iowait, irq, softirq. A guest's time is in user's. */
uint64_t weft_cpu_share_parse(const char *line, uint64_t ticks)
{
    unsigned long long user, nice, system, idle, iowait, irq, softirq;
    if (sscanf(line, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &iowait, &irq, &softirq) != 7 || !ticks)
        return 0;
    return (user + nice + system + irq + softirq) * (1000000000u / ticks);
}

static uint64_t busy_ns(void)
{
    char line[256];
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    if (bytes <= 0)
        return 0;
    line[bytes] = 0;
    return weft_cpu_share_parse(line, (uint64_t)sysconf(_SC_CLK_TCK));
}

/* CPUs of the machine, if this process may use all; else 0. */
static uint64_t cpu_count(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    return online > 0 && sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == online ? (uint64_t)online : 0;
}

static uint64_t cpu_ns(uint32_t pid)
{
    struct timespec used;
    clockid_t clock;
    if (clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &used))
        return 0;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* 0: a rank's time cannot be read. */
static uint64_t ranks_ns(const weft_boot *boot)
{
    uint64_t all = 0, space = atomic_load_explicit(&weft_segment_rank(&boot->segment, boot->local_rank)->pid_space, memory_order_relaxed);
    for (uint32_t i = 0; i < boot->segment.hdr->ranks; i++) {
        const weft_rank_page *page = weft_segment_rank(&boot->segment, i);
        uint32_t state = atomic_load_explicit(&page->state, memory_order_relaxed);
        uint64_t used;
        if (state == WEFT_RANK_NONE || state == WEFT_RANK_FINAL || state == WEFT_RANK_DEAD)
            continue;
        if (!space || atomic_load_explicit(&page->pid_space, memory_order_relaxed) != space ||
            !(used = cpu_ns(atomic_load_explicit(&page->pid, memory_order_relaxed))))
            return 0;
        all += used;
    }
    return all;
}

bool weft_cpu_share_is_alone(const weft_cpu_share *from, const weft_cpu_share *to)
{
    return to->busy_ns - from->busy_ns < to->ranks_ns - from->ranks_ns + (to->at_ns - from->at_ns) / OTHERS_PART;
}

bool weft_cpu_share_look(weft_cpu_share *share, const weft_boot *boot, uint64_t now_ns, bool *is_alone)
{
    uint64_t passed = now_ns - share->at_ns, cpus = boot->has_segment && passed >= LEAST_NS ? cpu_count() : 0;
    weft_cpu_share before = *share;
    if (!cpus || passed < cpus * CPU_NS)
        return false;
    share->at_ns = now_ns;
    share->busy_ns = busy_ns();
    share->ranks_ns = ranks_ns(boot);
    if (!share->busy_ns || !share->ranks_ns)
        return false;
    *is_alone = true; /* until the second reading */
    if (!before.busy_ns || !before.ranks_ns)
        return !before.at_ns;
    if (share->ranks_ns < before.ranks_ns) /* a rank has ended meanwhile */
        return false;
    *is_alone = weft_cpu_share_is_alone(&before, share);
    return true;
}
