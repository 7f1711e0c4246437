/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_share: see cpu_share.h.
 */
#include "core/cpu_share.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* 0 too while the kernel has counted none: a process that has just begun. */
static uint64_t cpu_ns(uint32_t pid)
{
    struct timespec used;
    clockid_t clock;
    if (clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &used))
        return WEFT_CPU_SHARE_UNKNOWN;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static uint64_t ranks_ns(const weft_boot *boot)
{
    uint64_t all = 0, space = atomic_load_explicit(&weft_segment_rank(&boot->segment, boot->local_rank)->pid_space, memory_order_relaxed);
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
    }
    return all;
}

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
    if (boot->has_segment && online > 0 && weft_cpu_count_affinity() == online && !weft_cpu_count_quota())
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
    return to->ranks_ns >= from->ranks_ns; /* else a rank has ended */
}

bool weft_cpu_share_look(weft_cpu_share *share, const weft_boot *boot, uint64_t now_ns, bool *is_alone)
{
    weft_cpu_share before = *share;
    if (!share->least_ns || now_ns - share->at_ns < share->least_ns)
        return false;
    share->at_ns = now_ns;
    share->busy_ns = busy_ns();
    share->ranks_ns = ranks_ns(boot);
    return weft_cpu_share_judge(&before, share, is_alone);
}
