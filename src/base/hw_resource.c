/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hw_resource: see hw_resource.h. One file per kind is read: the CPUs of the instance that has this process's first CPU. The process is
 * restricted to that instance if the list contains all of its CPUs.
 */
#include "base/hw_resource.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_BYTES 4096
#define PATH_BYTES 512
#define CACHES_MAX 8 /* index directories of one CPU */

typedef struct place {
    const char *root;
    const cpu_set_t *mask; /* CPUs that the process may use */
    int first;             /* the lowest of them */
} place;

static bool line_read(const char *path, char line[LINE_BYTES])
{
    FILE *file = fopen(path, "re");
    bool is_read = file && fgets(line, LINE_BYTES, file);
    if (file)
        fclose(file);
    return is_read;
}

/* Is `cpu` in a list such as "0-3,8-11"? *lowest: its smallest number; -1: an empty list. */
static bool list_has(const char *list, int cpu, int *lowest)
{
    bool has = false;
    *lowest = -1;
    for (const char *at = list; *at >= '0' && *at <= '9';) {
        char *end;
        long from = strtol(at, &end, 10), to = *end == '-' ? strtol(end + 1, &end, 10) : from;
        if (*lowest < 0 || from < *lowest)
            *lowest = (int)from;
        has |= cpu >= from && cpu <= to;
        at = *end == ',' ? end + 1 : end;
    }
    return has;
}

/* Adds a kind whose instance, which has the first CPU, consists of the CPUs in `list`. */
static int add(const place *at, const char *type, const char *list, int count, weft_hw_resource *found)
{
    int instance, lowest;
    if (!list_has(list, at->first, &instance) || count == WEFT_HW_RESOURCES_MAX)
        return count;
    for (int cpu = at->first + 1; cpu < CPU_SETSIZE && instance >= 0; cpu++)
        if (CPU_ISSET(cpu, at->mask) && !list_has(list, cpu, &lowest))
            instance = -1;
    found[count] = (weft_hw_resource){type, instance};
    return count + 1;
}

/* A kind whose list of CPUs is a file of the first CPU; `older`: the file's name before Linux 5.2, or NULL. */
static int add_file(const place *at, const char *type, const char *name, const char *older, int count, weft_hw_resource *found)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/%s", at->root, at->first, name);
    if (!line_read(path, line)) {
        if (!older)
            return count;
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/%s", at->root, at->first, older);
        if (!line_read(path, line))
            return count;
    }
    return add(at, type, line, count, found);
}

/* The NUMA node is a directory nodeN beside the first CPU's topology. */
static int add_numa(const place *at, int count, weft_hw_resource *found)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    const struct dirent *entry;
    DIR *folder;
    int node = -1;
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d", at->root, at->first);
    folder = opendir(path);
    while (folder && node < 0 && (entry = readdir(folder)))
        if (sscanf(entry->d_name, "node%d", &node) != 1)
            node = -1;
    if (folder)
        closedir(folder);
    snprintf(path, sizeof path, "%s/sys/devices/system/node/node%d/cpulist", at->root, node);
    return node >= 0 && line_read(path, line) ? add(at, "hwloc://NUMANode", line, count, found) : count;
}

/* The data or unified cache of one level. */
static int add_cache(const place *at, const char *type, int level, int count, weft_hw_resource *found)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    for (int i = 0; i < CACHES_MAX; i++) {
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/cache/index%d/level", at->root, at->first, i);
        if (!line_read(path, line) || atoi(line) != level)
            continue;
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/cache/index%d/type", at->root, at->first, i);
        if (!line_read(path, line) || !strncmp(line, "Instruction", 11))
            continue;
        snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", at->root, at->first, i);
        if (line_read(path, line))
            return add(at, type, line, count, found);
    }
    return count;
}

int weft_hw_resources_under(const char *root, const cpu_set_t *mask, weft_hw_resource found[WEFT_HW_RESOURCES_MAX])
{
    place at = {root, mask, 0};
    char self[16];
    int count = 0;
    found[count++] = (weft_hw_resource){"hwloc://Machine", 0};
    while (at.first < CPU_SETSIZE && !CPU_ISSET(at.first, mask))
        at.first++;
    if (at.first == CPU_SETSIZE)
        return count;
    snprintf(self, sizeof self, "%d", at.first);
    count = add_file(&at, "hwloc://Package", "package_cpus_list", "core_siblings_list", count, found);
    count = add_numa(&at, count, found);
    count = add_file(&at, "hwloc://Die", "die_cpus_list", NULL, count, found);
    count = add_cache(&at, "hwloc://L3Cache", 3, count, found);
    count = add_cache(&at, "hwloc://L2Cache", 2, count, found);
    count = add_cache(&at, "hwloc://L1Cache", 1, count, found);
    count = add_file(&at, "hwloc://Core", "core_cpus_list", "thread_siblings_list", count, found);
    return add(&at, "hwloc://PU", self, count, found);
}

int weft_hw_resources(weft_hw_resource found[WEFT_HW_RESOURCES_MAX])
{
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask))
        CPU_ZERO(&mask); /* more CPUs than a cpu_set_t holds: only the machine is reported */
    return weft_hw_resources_under("", &mask, found);
}

bool weft_hw_resource_find(const char *type, int *instance)
{
    weft_hw_resource found[WEFT_HW_RESOURCES_MAX];
    int count = weft_hw_resources(found);
    for (int i = 0; i < count; i++)
        if (!strcasecmp(found[i].type, type)) {
            *instance = found[i].instance;
            return true;
        }
    return false;
}
