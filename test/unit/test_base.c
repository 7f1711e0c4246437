/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_base: status texts, log lines, knobs from the environment, CPU counts from cgroups, the pool, hash of queues.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bag.h"
#include "base/cpu_count.h"
#include "base/cpu_place.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "mem/pool.h"

static void *fail_elsewhere(void *unused)
{
    weft_fail(WEFT_E_RANK, "the other thread's");
    return unused;
}

static void test_status(void)
{
    CU_ASSERT_EQUAL(weft_fail(WEFT_E_TAG, "tag %d is negative", -7), WEFT_E_TAG);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_TAG), "tag -7 is negative");
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_RANK), weft_status_text(WEFT_E_RANK));
    pthread_t thread;
    pthread_create(&thread, NULL, fail_elsewhere, NULL);
    pthread_join(thread, NULL);
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_TAG), "tag -7 is negative");
    weft_fail(WEFT_E_TAG, "while sending: %s", weft_fail_text(WEFT_E_TAG)); /* a text may quote the previous one */
    CU_ASSERT_STRING_EQUAL(weft_fail_text(WEFT_E_TAG), "while sending: tag -7 is negative");
    char large[2000];
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = 0;
    weft_fail(WEFT_E_ARG, "%s", large);
    CU_ASSERT_EQUAL(strlen(weft_fail_text(WEFT_E_ARG)), 511);
    for (int code = 0; code > WEFT_E_LAST; code--)
        CU_ASSERT(strlen(weft_status_text(code)) > 5);
    CU_ASSERT_STRING_EQUAL(weft_status_text(-1000), "unknown error code");
}

/* Runs `act` with stderr in a pipe; returns the output. */
static void heard(void (*act)(void), char *text, size_t capacity)
{
    int ends[2], keep = dup(2);
    if (pipe(ends) != 0 || keep < 0)
        abort();
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    dup2(ends[1], 2);
    act();
    dup2(keep, 2);
    close(keep);
    close(ends[1]);
    ssize_t n = read(ends[0], text, capacity - 1);
    text[n > 0 ? n : 0] = 0;
    close(ends[0]);
}

static void say_much(void)
{
    errno = 42;
    weft_log_identify(3, "there");
    weft_log_error("1\n2\n3\n4\n5\n6\n7");
    weft_log_info("not at this level");
    CU_ASSERT_EQUAL(errno, 42);
}

static void test_log(void)
{
    char text[1024];
    weft_log_limit(WEFT_LOG_WARN);
    heard(say_much, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "weft: [3@there] 1\n2\n3\n4\n5\n");
}

static void say_again(void)
{
    for (int i = 1; i <= 1000; i++)
        CU_ASSERT_EQUAL(weft_log_once(WEFT_LOG_ERROR, "transport %s failed\nfor a reason", "x"), i);
    CU_ASSERT_EQUAL(weft_log_once(WEFT_LOG_INFO, "not at this level"), 0);
    weft_log_repeats();
    weft_log_repeats();
}

/* More texts than are stored: the output is bounded. */
static void say_ever_new(void)
{
    for (int i = 0; i < 10 * WEFT_LOG_ONCE_MAX; i++)
        weft_log_once(WEFT_LOG_ERROR, "cause %d", i);
    weft_log_repeats();
}

static void test_log_once(void)
{
    char text[16384];
    int lines = 0;
    heard(say_again, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "weft: [3@there] transport x failed\nfor a reason\n"
                                 "weft: [3@there] transport x failed (1000 times in all)\n");
    heard(say_ever_new, text, sizeof(text));
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    CU_ASSERT_EQUAL(lines, WEFT_LOG_ONCE_MAX); /* one slot was in use; the last line counts the others */
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "577 more messages"));
}

/* Removes WEFT_ variables of the caller. */
static void environ_clear(void)
{
    for (char **entry = environ; *entry;) {
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*entry, "="), *entry);
        if (strncmp(name, "WEFT_", 5) == 0) {
            unsetenv(name);
            entry = environ;
        } else {
            entry++;
        }
    }
}

static void load(void) { weft_knobs_load(true); }

static void test_knobs(void)
{
    char text[4096];
    environ_clear();
    CU_ASSERT_EQUAL(weft_knob.start_timeout_s, 60); /* defaults are set before weft_knobs_load */
    setenv("WEFT_EAGER_MAX", "16K", 1);
    setenv("WEFT_RNDV_SCHEME", "split", 1);
    setenv("WEFT_START_TIMEOUT_S", "7", 1);
    setenv("WEFT_TRANSPORTS", "self,shm", 1);
    setenv("WEFT_BOOT_SOMETHING", "1", 1);
    heard(load, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "");
    CU_ASSERT_EQUAL(weft_knob.eager_max, 16384);
    CU_ASSERT_EQUAL(weft_knob.rndv_scheme, WEFT_RNDV_SCHEME_SPLIT);
    CU_ASSERT_EQUAL(weft_knob.start_timeout_s, 7);
    CU_ASSERT_STRING_EQUAL(weft_knob.transports, "self,shm");

    setenv("WEFT_EAGER_MAX", "3.5K", 1);
    setenv("WEFT_RNDV_SCHEME", "magic", 1);
    setenv("WEFT_START_TIMEOUT_S", "0", 1);
    setenv("WEFT_EAGER_MAXX", "1", 1);
    setenv("WEFT_WHATEVER_THIS_IS", "1", 1);
    heard(load, text, sizeof(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "WEFT_EAGER_MAX=3.5K is not understood"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "WEFT_RNDV_SCHEME=magic is not understood (auto|copy|get|split|put)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "WEFT_START_TIMEOUT_S=0 is out of range (1 to 86400): using 1"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "WEFT_EAGER_MAXX is not a knob of Weft: did you mean WEFT_EAGER_MAX?"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "WEFT_WHATEVER_THIS_IS is not a knob of Weft: weft-info"));
    CU_ASSERT_EQUAL(weft_knob.start_timeout_s, 1);
    for (int i = 0; i < weft_knob_row_count; i++) {
        if (strcmp(weft_knob_rows[i].name, "start_timeout_s") == 0)
            CU_ASSERT_STRING_EQUAL(weft_knob_origin(i), "environment, clamped");
        if (strcmp(weft_knob_rows[i].name, "spin_us") == 0)
            CU_ASSERT_STRING_EQUAL(weft_knob_origin(i), "default");
    }
    static const struct {
        const char *text;
        uint64_t value;
    } sizes[] = {{"1G", 1u << 30}, {"2KiB", 2048}, {"0x100", 256}, {"5", 5}, {"9999999999999999999999", 0},
                 {"1T", 0}, {"", 0}, {"-1", 0}, {"2G", 1u << 30}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        setenv("WEFT_EAGER_MAX", sizes[i].text, 1); /* rejected values leave the default, 0 */
        weft_knobs_load(false);
        CU_ASSERT_EQUAL(weft_knob.eager_max, sizes[i].value);
    }
}

static void file_write(const char *root, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    if (!file)
        abort();
    fputs(text, file);
    fclose(file);
}

/* Where the kernel lets threads stay, each index has its CPU; the mask is the same afterwards. */
static void test_cpu_place(void)
{
    cpu_set_t before, after;
    int count = 0, misses = 0;
    CU_ASSERT_FATAL(!sched_getaffinity(0, sizeof before, &before));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        int index = count;
        if (!CPU_ISSET(cpu, &before))
            continue;
        count++;
        for (int tries = 0; tries < 50; tries++) {
            int place = weft_cpu_place_of((uint32_t)(index + CPU_COUNT(&before)));
            CU_ASSERT_EQUAL(place, CPU_COUNT(&before) < 2 ? -1 : cpu);
            weft_cpu_place_at(place);
            if (place < 0 || sched_getcpu() == cpu)
                break;
            misses += tries == 49;
        }
        CU_ASSERT(!sched_getaffinity(0, sizeof after, &after) && CPU_EQUAL(&before, &after));
    }
    CU_ASSERT_EQUAL(misses, 0);
}

static void test_cpu_count(void)
{
    char root[] = "/tmp/weft-base-XXXXXX", command[128];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
    CU_ASSERT_EQUAL(weft_cpu_count_quota_under(root), 0); /* no files: no limit */
    file_write(root, "proc/self/cgroup", "0::/a/b\n");
    file_write(root, "proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
    file_write(root, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    CU_ASSERT_EQUAL(weft_cpu_count_quota_under(root), 0);
    file_write(root, "sys/fs/cgroup/a/cpu.max", "250000 100000\n"); /* a parent's limit applies too */
    CU_ASSERT_EQUAL(weft_cpu_count_quota_under(root), 3);
    file_write(root, "sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    CU_ASSERT_EQUAL(weft_cpu_count_quota_under(root), 1);
    file_write(root, "proc/self/cgroup", "5:cpu,cpuacct:/docker/x\n1:name=systemd:/\n");
    file_write(root, "proc/self/mountinfo", "30 20 0:26 /docker/x /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    file_write(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
    file_write(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    CU_ASSERT_EQUAL(weft_cpu_count_quota_under(root), 4); /* a container sees part of the tree */
    file_write(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    CU_ASSERT_EQUAL(weft_cpu_count_quota_under(root), 0);
    CU_ASSERT(weft_cpu_count() >= 1 && weft_cpu_count() <= weft_cpu_count_affinity());
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    CU_ASSERT_EQUAL(system(command), 0);
}

/* Random allocs and frees; every byte of a live block belongs to it. At the end nothing is live and no more is kept than allowed. */
static void test_pool(void)
{
    enum { BLOCKS = 300, STEPS = 60000 };
    static struct {
        unsigned char *at;
        size_t bytes;
        unsigned char mark;
    } live[BLOCKS];
    weft_pool *pool = weft_pool_open();
    CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
    unsigned seed = 1, wrong = 0;
    for (int step = 0; step < STEPS; step++) {
        size_t i = (size_t)rand_r(&seed) % BLOCKS;
        if (live[i].at) {
            for (size_t b = 0; b < live[i].bytes; b += 61)
                wrong += live[i].at[b] != live[i].mark;
            weft_pool_free(pool, live[i].at, live[i].bytes);
            live[i].at = NULL;
            continue;
        }
        size_t bits = (size_t)rand_r(&seed) % 18;
        live[i].bytes = (size_t)rand_r(&seed) % ((size_t)2 << bits);
        live[i].at = weft_pool_alloc(pool, live[i].bytes);
        live[i].mark = (unsigned char)step;
        CU_ASSERT_FATAL(live[i].at != NULL && (uintptr_t)live[i].at % 16 == 0);
        memset(live[i].at, live[i].mark, live[i].bytes);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    for (size_t i = 0; i < BLOCKS; i++)
        weft_pool_free(pool, live[i].at, live[i].bytes);
    weft_pool_stats stats = weft_pool_get_stats(pool);
    CU_ASSERT_EQUAL(stats.live_blocks, 0);
    CU_ASSERT_EQUAL(stats.live_bytes, 0);
    CU_ASSERT(stats.kept_bytes <= WEFT_POOL_KEEP && stats.kept_bytes > 0);
    CU_ASSERT(stats.misses < stats.allocs / 4);

    /* the block of each size is large enough, at most 50 % too large, and comes from the list the second time */
    for (size_t bytes = 1; bytes <= WEFT_POOL_MAX; bytes += bytes < 200 ? 1 : 97) {
        void *block = weft_pool_alloc(pool, bytes);
        uint64_t size = weft_pool_get_stats(pool).live_bytes;
        CU_ASSERT(size >= bytes && (size <= 64 || size <= bytes + bytes / 2));
        weft_pool_free(pool, block, bytes);
        uint64_t misses = weft_pool_get_stats(pool).misses;
        weft_pool_free(pool, weft_pool_alloc(pool, bytes), bytes);
        CU_ASSERT_EQUAL(weft_pool_get_stats(pool).misses, misses);
    }
    static void *many[200];
    for (size_t i = 0; i < 200; i++)
        many[i] = weft_pool_alloc(pool, WEFT_POOL_MAX);
    for (size_t i = 0; i < 200; i++)
        weft_pool_free(pool, many[i], WEFT_POOL_MAX);
    CU_ASSERT(weft_pool_get_stats(pool).kept_bytes <= WEFT_POOL_KEEP);
    weft_pool_close(pool);
}

/* Compared with counters in an array: random adds and removes of few and many keys, so that slots of removed keys are met and cleaned. */
static void test_bag(void)
{
    enum { KEYS = 5000, STEPS = 300000 };
    static uint32_t counts[KEYS];
    weft_bag bag = {.slots = NULL};
    unsigned seed = 3, wrong = 0, live = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned range = step / (STEPS / 6) % 2 ? KEYS : 20, i = (unsigned)rand_r(&seed) % range;
        int32_t key = (int32_t)(i * 1000003u) - 70000;
        bool adds = (unsigned)rand_r(&seed) % 16 < (step / (STEPS / 3) % 3 == 1 ? 11u : 7u);
        wrong += weft_bag_has(&bag, key) != (counts[i] > 0) || weft_bag_count(&bag, key) != counts[i];
        if (adds) {
            live += counts[i]++ == 0;
            wrong += !weft_bag_add(&bag, key);
        } else {
            wrong += weft_bag_remove(&bag, key) != (counts[i] > 0);
            live -= counts[i] == 1;
            counts[i] -= counts[i] > 0;
        }
        wrong += bag.keys != live || bag.filled > bag.mask || bag.keys > bag.filled;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    unsigned met = 0;
    int32_t some;
    for (uint32_t at = 0; weft_bag_next(&bag, &at, &some); met++)
        wrong += !weft_bag_has(&bag, some);
    CU_ASSERT(met == live && !wrong);
    CU_ASSERT(live > 20 && bag.mask < 16 * KEYS);
    weft_bag_clear(&bag);
    CU_ASSERT(!weft_bag_has(&bag, 1) && !weft_bag_remove(&bag, 1));
    /* tags that never repeat: memory does not grow */
    for (int32_t key = 0; key < 100000; key++)
        wrong += !weft_bag_add(&bag, key) || !weft_bag_remove(&bag, key);
    CU_ASSERT(wrong == 0 && bag.mask < 64);
    weft_bag_clear(&bag);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("base", NULL, NULL);
    CU_add_test(suite, "status", test_status);
    CU_add_test(suite, "log", test_log);
    CU_add_test(suite, "log once", test_log_once);
    CU_add_test(suite, "knobs", test_knobs);
    CU_add_test(suite, "CPU count", test_cpu_count);
    CU_add_test(suite, "a thread is placed on each of its CPUs, and not bound", test_cpu_place);
    CU_add_test(suite, "pool", test_pool);
    CU_add_test(suite, "bag", test_bag);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
