/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu_count: see cpu_count.h.
 * Invariant: the result is at least one CPU; a file that is missing or malformed means "no limit", never an error.
 */
#include "base/cpu_count.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_ROOM 1024

int weft_cpu_count_affinity(void)
{
    /* The kernel refuses a mask smaller than its own: double it until it fits. */
    for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)capacity);
        if (!set)
            return 1;
        size_t bytes = CPU_ALLOC_SIZE((size_t)capacity);
        int rc = sched_getaffinity(0, bytes, set);
        int cpus = rc ? 0 : CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (rc == 0)
            return cpus > 0 ? cpus : 1;
    }
    return 1;
}

/* The first line of a small file; false when it cannot be read. */
static bool line_read(const char *path, char *line, int capacity)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_read = fgets(line, capacity, file) != NULL;
    fclose(file);
    return is_read;
}

/* The quota of one directory in CPUs, 0 when it has none. v2: "max 100000" or "150000 100000"; v1: two files, -1 for none. */
static double quota_of(const char *directory, bool is_v2)
{
    char path[3 * PATH_ROOM + 32], line[128];
    double quota = 0, period = 0;
    if (is_v2) {
        snprintf(path, sizeof(path), "%s/cpu.max", directory);
        if (!line_read(path, line, sizeof(line)) || sscanf(line, "%lf %lf", &quota, &period) != 2)
            return 0;
    } else {
        snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", directory);
        if (!line_read(path, line, sizeof(line)))
            return 0;
        quota = atof(line);
        snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", directory);
        if (!line_read(path, line, sizeof(line)))
            return 0;
        period = atof(line);
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* Whether `word` is an element of a comma-separated list. */
static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
        if (strcspn(at, ",\n") == length && memcmp(at, word, length) == 0)
            return true;
    return false;
}

/* This process's cgroup path in the hierarchy with the cpu controller (/proc/self/cgroup). */
static bool group_find(const char *root, bool is_v2, char *group, size_t capacity)
{
    char path[PATH_ROOM], line[PATH_ROOM];
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    bool is_found = false;
    while (file && !is_found && fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *where = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!where)
            continue;
        *where++ = 0;
        controllers++;
        is_found = is_v2 ? *controllers == 0 : list_has(controllers, "cpu");
        if (is_found)
            snprintf(group, capacity, "%s", where);
    }
    if (file)
        fclose(file);
    return is_found;
}

/* Mount point of that hierarchy, and the part of it that is mounted (/proc/self/mountinfo). */
static bool mount_find(const char *root, bool is_v2, char *mount, char *part)
{
    char path[PATH_ROOM], line[2 * PATH_ROOM];
    snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
    FILE *file = fopen(path, "re");
    bool is_found = false;
    while (file && !is_found && fgets(line, sizeof(line), file)) {
        char kind[32], options[PATH_ROOM];
        const char *tail = strstr(line, " - ");
        if (!tail || sscanf(tail, " - %31s %*s %1023s", kind, options) != 2)
            continue;
        if (sscanf(line, "%*s %*s %*s %1023s %1023s", part, mount) != 2)
            continue;
        is_found = is_v2 ? strcmp(kind, "cgroup2") == 0 : strcmp(kind, "cgroup") == 0 && list_has(options, "cpu");
    }
    if (file)
        fclose(file);
    return is_found;
}

/* The smallest quota from this process's cgroup up to the top of one hierarchy; 0: none. */
static double hierarchy_quota(const char *root, bool is_v2)
{
    char group[PATH_ROOM], mount[PATH_ROOM], part[PATH_ROOM], directory[3 * PATH_ROOM];
    if (!group_find(root, is_v2, group, sizeof(group)) || !mount_find(root, is_v2, mount, part))
        return 0;
    /* In a container only a part of the tree is mounted, and the cgroup's path begins with that part. */
    const char *below = group;
    size_t length = strlen(part);
    if (strcmp(part, "/") != 0 && strncmp(group, part, length) == 0)
        below = group + length;
    size_t top = (size_t)snprintf(directory, sizeof(directory), "%s%s", root, mount);
    snprintf(directory + top, sizeof(directory) - top, "%s", strcmp(below, "/") == 0 ? "" : below);
    double min = 0;
    for (;;) {
        double quota = quota_of(directory, is_v2);
        if (quota > 0 && (min == 0 || quota < min))
            min = quota;
        char *slash = strrchr(directory + top, '/');
        if (!slash)
            return min;
        *slash = 0;
    }
}

int weft_cpu_count_quota_under(const char *root)
{
    double v2 = hierarchy_quota(root, true), v1 = hierarchy_quota(root, false);
    double min = v2 > 0 && (v1 <= 0 || v2 < v1) ? v2 : v1;
    int whole = (int)min;
    return min <= 0 ? 0 : whole + (min > whole);
}

int weft_cpu_count_quota(void)
{
    return weft_cpu_count_quota_under("");
}

int weft_cpu_count(void)
{
    int cpus = weft_cpu_count_affinity(), quota = weft_cpu_count_quota();
    return quota > 0 && quota < cpus ? quota : cpus;
}
