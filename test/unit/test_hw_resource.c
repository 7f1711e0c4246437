/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_hw_resource: kinds of hardware and their instances over a planted /sys: 8 CPUs in 2 packages, 4 cores of 2 threads, caches shared
 * by thread, core and package; masks within one instance and across.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hw_resource.h"

static char root[] = "/tmp/weft-hw-XXXXXX";

/* Writes a file below the root, with its folders. */
static void plant(const char *text, const char *format, int cpu, int index)
{
    char name[256], path[512];
    FILE *file;
    snprintf(name, sizeof name, format, cpu, index);
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    file = fopen(path, "w");
    CU_ASSERT_FATAL(file != NULL);
    fprintf(file, "%s\n", text);
    fclose(file);
}

#define CPU "sys/devices/system/cpu/cpu%d/"
static void plant_machine(void)
{
    char self[8], core[16];
    for (int cpu = 0; cpu < 8; cpu++) {
        const char *package = cpu < 4 ? "0-3" : "4-7";
        snprintf(self, sizeof self, "%d", cpu);
        snprintf(core, sizeof core, "%d,%d", cpu & ~1, cpu | 1);
        plant(package, CPU "topology/package_cpus_list", cpu, 0);
        plant(core, cpu % 2 ? CPU "topology/thread_siblings_list" : CPU "topology/core_cpus_list", cpu, 0); /* older name too */
        plant("1", CPU "cache/index%d/level", cpu, 0);
        plant("Instruction", CPU "cache/index%d/type", cpu, 0);
        plant("0-7", CPU "cache/index%d/shared_cpu_list", cpu, 0);
        plant("1", CPU "cache/index%d/level", cpu, 1);
        plant("Data", CPU "cache/index%d/type", cpu, 1);
        plant(core, CPU "cache/index%d/shared_cpu_list", cpu, 1);
        plant("3", CPU "cache/index%d/level", cpu, 2);
        plant("Unified", CPU "cache/index%d/type", cpu, 2);
        plant(package, CPU "cache/index%d/shared_cpu_list", cpu, 2);
        plant("", CPU "node%d/x", cpu, cpu / 4);
        plant(package, "sys/devices/system/node/node%d/cpulist", cpu / 4, 0);
    }
}

/* The instance of one kind for a mask of CPUs; -2: no such kind. */
static int instance(const char *type, unsigned mask)
{
    weft_hw_resource found[WEFT_HW_RESOURCES_MAX];
    cpu_set_t set;
    int count;
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < 8; cpu++)
        if (mask >> cpu & 1)
            CPU_SET(cpu, &set);
    count = weft_hw_resources_under(root, &set, found);
    for (int i = 0; i < count; i++)
        if (!strcmp(found[i].type, type))
            return found[i].instance;
    return -2;
}

static void test_instances(void)
{
    plant_machine();
    CU_ASSERT_EQUAL(instance("hwloc://Machine", 0xff), 0);
    CU_ASSERT_EQUAL(instance("hwloc://Package", 0xff), -1);
    CU_ASSERT_EQUAL(instance("hwloc://Package", 0xf0), 4);
    CU_ASSERT_EQUAL(instance("hwloc://Package", 0x0f), 0);
    CU_ASSERT_EQUAL(instance("hwloc://Package", 0x18), -1);
    CU_ASSERT_EQUAL(instance("hwloc://NUMANode", 0x60), 4);
    CU_ASSERT_EQUAL(instance("hwloc://NUMANode", 0x18), -1);
    CU_ASSERT_EQUAL(instance("hwloc://L3Cache", 0x0a), 0);
    CU_ASSERT_EQUAL(instance("hwloc://L2Cache", 0x02), -2);
    CU_ASSERT_EQUAL(instance("hwloc://L1Cache", 0x0c), 2); /* the data cache, not that of instructions */
    CU_ASSERT_EQUAL(instance("hwloc://L1Cache", 0x14), -1);
    CU_ASSERT_EQUAL(instance("hwloc://Core", 0xc0), 6);
    CU_ASSERT_EQUAL(instance("hwloc://Core", 0x80), 6);
    CU_ASSERT_EQUAL(instance("hwloc://Core", 0x06), -1);
    CU_ASSERT_EQUAL(instance("hwloc://PU", 0x20), 5);
    CU_ASSERT_EQUAL(instance("hwloc://PU", 0x30), -1);
    CU_ASSERT_EQUAL(instance("hwloc://Die", 0x20), -2);
    CU_ASSERT_EQUAL(instance("hwloc://PU", 0), -2);
}

static void test_here(void)
{
    int found = -7;
    CU_ASSERT_TRUE(weft_hw_resource_find("HWLOC://machine", &found));
    CU_ASSERT_EQUAL(found, 0);
    CU_ASSERT_TRUE(weft_hw_resource_find("hwloc://PU", &found));
    CU_ASSERT_FALSE(weft_hw_resource_find("hwloc://Nothing", &found));
}

int main(void)
{
    unsigned failed;
    char command[64];
    if (!mkdtemp(root))
        return 1;
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("hw_resource", NULL, NULL);
    CU_add_test(suite, "instances over a planted machine", test_instances);
    CU_add_test(suite, "this machine", test_here);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command) != 0 || failed > 0;
}
