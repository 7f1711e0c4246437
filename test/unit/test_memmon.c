/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_memmon: events of userfaultfd for every call that changes real memory; what is tracked and what is not; a delayed event thread; a
 * child after fork. What this kernel refuses is skipped with a text. First with userfaultfd alone, then as with the knob at `strict`.
 */
#include <CUnit/Basic.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/raw_thread.h"
#include "memmon_fixture.h"

/* -- mappings -- */

static void test_maps(void)
{
    int maps = weft_proc_maps_open(), fd = memfd_create("weft-test", MFD_CLOEXEC), local;
    weft_mapping m, text;
    static const char constant[] = "in a file";
    char *anonymous = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int sysv = shmget(IPC_PRIVATE, MIB, 0600); /* refused in some containers */
    char *segment = sysv < 0 ? shared : shmat(sysv, NULL, 0);

    CU_ASSERT_FATAL(maps >= 0 && fd >= 0 && !ftruncate(fd, (off_t)MIB));
    shmctl(sysv, IPC_RMID, NULL);
    char *file = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    munmap(anonymous + 2 * MIB, MIB);
    const struct {
        const void *addr;
        enum weft_mapping_kind kind;
    } cases[] = {{anonymous + MIB, WEFT_MAPPING_ANONYMOUS}, {shared, WEFT_MAPPING_OTHER},
                 {segment, sysv < 0 ? WEFT_MAPPING_OTHER : WEFT_MAPPING_SYSV},
                 {file, WEFT_MAPPING_OTHER},                {&local, WEFT_MAPPING_ANONYMOUS}, {constant, WEFT_MAPPING_OTHER},
                 {anonymous + 3 * MIB, WEFT_MAPPING_ANONYMOUS}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t addr = (uint64_t)(uintptr_t)cases[i].addr;
        CU_ASSERT_FATAL(weft_proc_maps_find(maps, addr, &m) && weft_proc_maps_find_by_text(maps, addr, &text));
        CU_ASSERT(m.start <= addr && addr < m.end);
        CU_ASSERT_EQUAL(m.kind, cases[i].kind);
        CU_ASSERT(m.start == text.start && m.end == text.end && m.kind == text.kind);
    }
    CU_ASSERT_FALSE(weft_proc_maps_find(maps, (uint64_t)(uintptr_t)anonymous + 2 * MIB, &m));
    CU_ASSERT_FALSE(weft_proc_maps_find(maps, 4096, &m));
    CU_ASSERT_FALSE(weft_proc_maps_find(maps, UINT64_MAX - 4096, &m));
    munmap(anonymous, 4 * MIB);
    munmap(shared, MIB);
    munmap(file, MIB);
    if (sysv >= 0)
        shmdt(segment);
    close(maps);
    close(fd);
}

/* -- userfaultfd -- */

static void test_every_call(void)
{
    uint64_t cursor;
    char *p = fresh(16 * MIB), *q;

    CU_ASSERT_FATAL(is_covered(p, 16 * MIB));
    cursor = now_cursor();
    syscall(SYS_munmap, p, MIB);
    CU_ASSERT(is_reported(&cursor, p, MIB, false));
    CU_ASSERT_FALSE(is_reported(&cursor, p, 16 * MIB, false)); /* reported once */
    munmap(p + MIB, MIB);
    CU_ASSERT(is_reported(&cursor, p + MIB, MIB, false));
    madvise(p + 2 * MIB, MIB, MADV_DONTNEED);
    CU_ASSERT(is_reported(&cursor, p + 2 * MIB, MIB, true));
    CU_ASSERT(is_covered(p + 2 * MIB, MIB)); /* the mapping is the same: neither looked up nor reported again */
    CU_ASSERT_FALSE(is_reported(&cursor, p + 2 * MIB, MIB, false));
    madvise(p + 2 * MIB, 4096, MADV_FREE);
    CU_ASSERT(is_reported(&cursor, p + 2 * MIB, 4096, true));
    q = mmap(p + 3 * MIB, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CU_ASSERT(q == p + 3 * MIB && is_reported(&cursor, q, MIB, false));
    q = fresh(MIB);
    CU_ASSERT(mremap(p + 4 * MIB, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
    CU_ASSERT(is_reported(&cursor, p + 4 * MIB, MIB, false));
    CU_ASSERT(mremap(p + 5 * MIB, 11 * MIB, 2 * MIB, 0) == p + 5 * MIB); /* shrinks in place */
    CU_ASSERT(is_reported(&cursor, p + 7 * MIB, 9 * MIB, false));
    CU_ASSERT_FALSE(is_reported(&cursor, p + 5 * MIB, 2 * MIB, false));
    CU_ASSERT(is_covered(p + 5 * MIB, 2 * MIB));
    CU_ASSERT_FALSE(is_covered(p, MIB));
    CU_ASSERT_FALSE(is_covered(p + 2 * MIB, 6 * MIB)); /* its end is a hole */
    munmap(p, 16 * MIB);
    munmap(q, MIB);
}

static void test_malloc(void)
{
    uint64_t cursor = now_cursor();
    char *volatile block = malloc(64 * MIB);
    uint64_t at = (uint64_t)(uintptr_t)block;

    memset(block, 1, 64 * MIB);
    CU_ASSERT(is_covered(block, 64 * MIB));
    block = realloc(block, 96 * MIB);
    CU_ASSERT(is_covered(block, 96 * MIB));
    if ((uint64_t)(uintptr_t)block != at)
        CU_ASSERT(is_reported(&cursor, (void *)(uintptr_t)at, 64 * MIB, false));
    at = (uint64_t)(uintptr_t)block;
    cursor = now_cursor();
    free(block);
    weft_mapping m;
    if (weft_proc_maps_find(weft_memmon_get()->maps, at, &m)) /* such an allocator (or AddressSanitizer) keeps freed memory */
        CU_ASSERT_FALSE(is_reported(&cursor, (void *)(uintptr_t)at, 96 * MIB, false))
    else
        CU_ASSERT(is_reported(&cursor, (void *)(uintptr_t)at, 96 * MIB, false));
    char *heap = sbrk(MIB), *page = (char *)(((uintptr_t)heap + 4095) & ~(uintptr_t)4095);
    if (heap == (void *)-1)
        return;
    memset(page, 1, MIB / 2);
    CU_ASSERT(is_covered(page, MIB / 2));
    sbrk(-(intptr_t)MIB);
    CU_ASSERT(is_reported(&cursor, page, MIB / 2, false));
    CU_ASSERT_FALSE(is_covered(page, MIB / 2));
}

/* Not tracked without a monitor that sees changes: files, shared memory, SysV memory (unless memhooks is loaded). */
static void test_not_covered(void)
{
    int fd = memfd_create("weft-test", MFD_CLOEXEC), local = 0;
    char *shared = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, (off_t)MIB));
    char *file = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CU_ASSERT_FALSE(is_covered(shared, MIB));
    CU_ASSERT_FALSE(is_covered(file, MIB));
    CU_ASSERT_FALSE(is_covered(memory, MIB));
    CU_ASSERT(is_covered(&local, sizeof(local)));
    munmap(shared, MIB);
    munmap(file, MIB);
    munmap(memory, MIB);
    close(fd);
}

/* Private memory in huge pages; the machine must have reserved some. */
static void test_huge(void)
{
    const size_t huge = 2 * MIB;
    uint64_t cursor;
    char *p = mmap(NULL, 4 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    if (p == MAP_FAILED) {
        printf("(skipped: no huge pages here) ");
        return;
    }
    p[0] = p[huge] = 1;
    if (!is_covered(p + 4096, 4096)) {
        printf("(this kernel cannot watch huge pages) ");
    } else {
        CU_ASSERT(is_covered(p, 4 * huge));
        cursor = now_cursor();
        madvise(p, huge, MADV_DONTNEED);
        CU_ASSERT(is_reported(&cursor, p, huge, true));
        syscall(SYS_munmap, p + huge, huge);
        CU_ASSERT(is_reported(&cursor, p + huge, huge, false));
        CU_ASSERT_FALSE(is_covered(p, 2 * huge));
    }
    munmap(p, 4 * huge);
}

/* A mapping that was not tracked is reported when it becomes tracked: a registration from before may be stale. */
static void test_gap_is_reported(void)
{
    char *p = fresh(2 * MIB);
    uint64_t cursor = now_cursor();

    CU_ASSERT(is_covered(p, MIB));
    CU_ASSERT(is_reported(&cursor, p, MIB, false));
    CU_ASSERT(is_covered(p + MIB / 2, MIB));
    CU_ASSERT_FALSE(is_reported(&cursor, p, 2 * MIB, false)); /* tracked already */
    munmap(p, 2 * MIB);
}

/* -- an event not read yet -- */

static weft_uffd held;
static _Atomic int is_unmapped;

static void *unmapper(void *arg)
{
    syscall(SYS_munmap, arg, MIB);
    atomic_store(&is_unmapped, 1);
    return NULL;
}

/* The event thread does not read: the unmapping hangs, its addresses are free, and a sync must wait. */
static void test_sync(void)
{
    static weft_inval_log unread;
    char why[192] = "";
    pthread_t thread;
    char *p = fresh(MIB), probe;

    if (weft_uffd_open(&held, &unread, why, sizeof(why))) {
        printf("(skipped: %s) ", why);
        return;
    }
    CU_ASSERT(weft_uffd_register(&held, (uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + MIB));
    CU_ASSERT(weft_uffd_is_synced(&held));
    eventfd_write(held.stop, 1); /* the thread ends; the descriptor stays */
    while (atomic_load(&held.is_alive))
        sched_yield();
    pthread_create(&thread, NULL, unmapper, p);
    int maps = weft_proc_maps_open();
    weft_mapping m;
    while (weft_proc_maps_find(maps, (uint64_t)(uintptr_t)p, &m) && m.start <= (uint64_t)(uintptr_t)p)
        sched_yield(); /* until the other thread is there */
    CU_ASSERT_FALSE(weft_uffd_is_synced(&held));
    usleep(20000);
    CU_ASSERT_FALSE(atomic_load(&is_unmapped));
    char *again = mmap(p, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CU_ASSERT_EQUAL(again, p); /* the race that a sync is for */
    CU_ASSERT_FALSE(weft_uffd_is_synced(&held));
    char message[64];
    CU_ASSERT(read(held.fd, message, sizeof(message)) > 0);
    pthread_join(thread, NULL);
    CU_ASSERT(weft_uffd_is_synced(&held));
    probe = *again;
    CU_ASSERT_EQUAL(probe, 0);
    munmap(again, MIB);
    close(maps);
    if (held.is_pthread)
        pthread_join(held.thread, NULL);
    weft_uffd_forget(&held);
}

static void test_single(void)
{
    weft_memmon *memmon = weft_memmon_get();

    if (!memmon->is_single || !WEFT_BARE_THREADS)
        return;
    CU_ASSERT_FALSE(weft_memmon_needs_sync(memmon)); /* runs before any test that makes a thread by libc */
}

static void test_needs_sync(void)
{
    weft_memmon *memmon = weft_memmon_get();

    CU_ASSERT(weft_memmon_needs_sync(memmon)); /* earlier tests made threads */
    CU_ASSERT(weft_memmon_sync(memmon));
}

static void ignore(void *arg, weft_range range) { (void)arg, (void)range; }

static void test_fork(void)
{
    char *p = fresh(MIB);
    int status = 1;

    CU_ASSERT(is_covered(p, MIB));
    pid_t child = fork();
    if (!child) {
        uint64_t cursor = now_cursor() - 1;
        bool is_right = !is_covered(p, MIB) && !weft_memmon_needs_sync(weft_memmon_get()) &&
                        !weft_inval_log_read(weft_memmon_log(weft_memmon_get()), &(uint64_t){0}, ignore, NULL) && !munmap(p, MIB) &&
                        weft_inval_log_is_new(weft_memmon_log(weft_memmon_get()), cursor);
        _exit(is_right ? 0 : 1);
    }
    CU_ASSERT(child > 0 && waitpid(child, &status, 0) == child && !status);
    CU_ASSERT(is_covered(p, MIB)); /* the parent's monitor continues */
    uint64_t cursor = now_cursor();
    munmap(p, MIB);
    CU_ASSERT(is_reported(&cursor, p, MIB, false));
}

/* More mappings than the table's capacity: entries are dropped and found again. */
static void test_full_table(void)
{
    static char *pages[300];
    size_t n = sizeof(pages) / sizeof(pages[0]), covered = 0;
    weft_memmon *memmon = weft_memmon_get();

    memmon->tracked.capacity = memmon->tracked.count + 64;

    char *all = mmap(NULL, n * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_FATAL(all != MAP_FAILED);
    for (size_t i = 0; i < n; i++) {
        pages[i] = all + i * 8192;
        mprotect(pages[i], 4096, PROT_READ | PROT_WRITE);
    }
    for (size_t i = 0; i < n; i++)
        covered += is_covered(pages[i], 4096);
    CU_ASSERT_EQUAL(covered, n);
    CU_ASSERT(memmon->tracked.count <= memmon->tracked.capacity);
    memmon->tracked.capacity = WEFT_MEMMON_RANGES_MAX;
    uint64_t cursor = now_cursor();
    munmap(pages[0], 4096);
    CU_ASSERT(is_reported(&cursor, pages[0], 4096, false)); /* forgotten in the table, still registered with the kernel */
    munmap(all, n * 8192);
}

/* -- a program that closes descriptors which it did not open -- */

#define PIPES 16
static const char own_bytes[] = "the program's own bytes";

/* Closes all descriptors from 3 on and reuses the numbers: each leads to a pipe that holds the program's bytes. */
static void close_and_reuse(int (*pipes)[2])
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    for (int i = 0; i < PIPES; i++)
        CU_ASSERT_FATAL(!pipe2(pipes[i], O_NONBLOCK) && write(pipes[i][1], own_bytes, sizeof(own_bytes)) == sizeof(own_bytes));
}

static void *unmap_inline(void *p)
{
    weft_raw_syscall(SYS_munmap, (long)p, (long)MIB, 0, 0);
    return NULL;
}

static void unmap_with(bool has_threads, char *p)
{
    pthread_t thread;

    if (!has_threads) {
        unmap_inline(p);
        return;
    }
    pthread_create(&thread, NULL, unmap_inline, p);
    pthread_join(thread, NULL);
}

/* What was tracked is still reported, the program's bytes are its own, and nothing new is tracked. */
static void check_closed(bool has_threads)
{
    int pipes[PIPES][2];
    char *p = fresh(4 * MIB), text[64];

    CU_ASSERT_FATAL(is_covered(p, 4 * MIB));
    CU_ASSERT(has_threads == weft_memmon_needs_sync(weft_memmon_get()));
    close_and_reuse(pipes);
    uint64_t cursor = now_cursor();
    unmap_with(has_threads, p);
    CU_ASSERT(is_reported(&cursor, p, MIB, false));
    if (has_threads)
        CU_ASSERT_FALSE(weft_memmon_sync(weft_memmon_get()));
    char *q = fresh(MIB);
    CU_ASSERT_FALSE(is_covered(q, MIB));
    CU_ASSERT(is_reported(&cursor, p + MIB, MIB, false)); /* all that was kept is dropped */
    unmap_with(has_threads, p + MIB);
    CU_ASSERT(is_reported(&cursor, p + MIB, MIB, false));
    CU_ASSERT_FALSE(is_covered(p + 2 * MIB, MIB));
    for (int i = 0; i < PIPES; i++)
        CU_ASSERT(read(pipes[i][0], text, sizeof(text)) == sizeof(own_bytes) && !strcmp(text, own_bytes));
    for (int i = 0; i < PIPES; i++)
        CU_ASSERT(write(pipes[i][1], own_bytes, 1) == 1); /* nothing of Weft's has closed it */
    munmap(p, 4 * MIB);
    munmap(q, MIB);
}

static void test_closed_single(void) { check_closed(!WEFT_BARE_THREADS || !weft_memmon_get()->is_single); }
static void test_closed_threads(void)
{
    char *p = fresh(MIB);

    unmap_with(true, p);
    check_closed(true);
}

/* In a new process each: the memmon does not recover. */
static void run_closed(const char *how)
{
    int status = 1;

    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        setenv("WEFT_TEST_CLOSED", how, 1);
        execl("/proc/self/exe", "test_memmon", (char *)NULL);
        _exit(99);
    }
    CU_ASSERT(child > 0 && waitpid(child, &status, 0) == child && !status);
}
static void test_closed(void)
{
    run_closed("single");
    run_closed("threads");
}

static void test_describe(void)
{
    int lines = 0;

    weft_memmon_describe(say, &lines);
    CU_ASSERT(lines >= 3);
}

static void test_both(void) { run_again("strict", ""); }

static void add_tests(CU_pSuite suite, bool is_second)
{
    CU_add_test(suite, "describe", test_describe);
    bool has_fault = weft_memmon_get()->has_uffd;
    if (has_fault) {
        CU_add_test(suite, "one thread: no sync needed", test_single);
        CU_add_test(suite, "every call is reported", test_every_call);
        CU_add_test(suite, "malloc's own calls", test_malloc);
        CU_add_test(suite, "gaps are reported", test_gap_is_reported);
        CU_add_test(suite, "not tracked", test_not_covered);
        CU_add_test(suite, "huge pages", test_huge);
    } else {
        printf("userfaultfd is not in force here: what it sees is not tested (why: above)\n");
    }
    CU_add_test(suite, "maps", test_maps);
    if (has_fault) {
        CU_add_test(suite, "sync", test_sync); /* makes a thread */
        CU_add_test(suite, "several threads: sync needed", test_needs_sync);
        CU_add_test(suite, "fork", test_fork);
        CU_add_test(suite, "full table", test_full_table);
        CU_add_test(suite, "every call, several threads", test_every_call);
        CU_add_test(suite, "the program closes our descriptors", test_closed);
    }
    if (!is_second)
        CU_add_test(suite, "memhooks and userfaultfd", test_both);
}

int main(void)
{
    setenv("WEFT_REGCACHE_MONITOR", "userfaultfd", 0);
    weft_knobs_load(false);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    const char *closed = getenv("WEFT_TEST_CLOSED");
    CU_pSuite suite = CU_add_suite("memmon", NULL, NULL);
    if (closed)
        CU_add_test(suite, closed, strcmp(closed, "single") ? test_closed_threads : test_closed_single);
    else
        add_tests(suite, getenv("WEFT_TEST_MONITOR") != NULL);
    return run_tests();
}
