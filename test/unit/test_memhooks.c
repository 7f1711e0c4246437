/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_memhooks: calls seen in libc's patched code: this program runs itself again with memhooks as the only monitor, with other allocators
 * preloaded, where the kernel refuses userfaultfd, and where it refuses to change code. test/build/syscall_patch has the patch by itself.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/raw_thread.h"
#include "memmon_fixture.h"

static void test_calls(void)
{
    uint64_t cursor;
    char *p = fresh(16 * MIB), *q = fresh(MIB);

    CU_ASSERT_FATAL(weft_memmon_get()->trusts_hooks && !weft_memmon_get()->has_uffd);
    CU_ASSERT(is_covered(p, 16 * MIB));
    cursor = now_cursor();
    munmap(p, MIB);
    CU_ASSERT(is_reported(&cursor, p, MIB, false));
    CU_ASSERT_FALSE(is_covered(p, 2 * MIB));
    CU_ASSERT(is_covered(p + MIB, MIB));
    cursor = now_cursor();
    madvise(p + 2 * MIB, MIB, MADV_DONTNEED);
    CU_ASSERT(is_reported(&cursor, p + 2 * MIB, MIB, true));
    madvise(p + 2 * MIB, 4096, 102); /* MADV_GUARD_INSTALL: not reported by userfaultfd; older kernels refuse it */
    CU_ASSERT(is_reported(&cursor, p + 2 * MIB, 4096, true));
    madvise(p + 2 * MIB, MIB, MADV_WILLNEED);
    CU_ASSERT_FALSE(is_reported(&cursor, p + 2 * MIB, MIB, true));
    CU_ASSERT(mmap(p + 3 * MIB, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + 3 * MIB);
    CU_ASSERT(is_reported(&cursor, p + 3 * MIB, MIB, false));
    CU_ASSERT(is_covered(p + MIB, 4 * MIB));
    cursor = now_cursor();
    CU_ASSERT(mremap(p + 4 * MIB, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
    CU_ASSERT(is_reported(&cursor, p + 4 * MIB, MIB, false));
    CU_ASSERT(is_covered(q, MIB));
    CU_ASSERT_FALSE(is_covered(p + 4 * MIB, MIB));
    cursor = now_cursor();
    CU_ASSERT(mremap(p + 5 * MIB, 11 * MIB, MIB, 0) == p + 5 * MIB);
    CU_ASSERT(is_reported(&cursor, p + 6 * MIB, 10 * MIB, false));
    CU_ASSERT(is_covered(p + 5 * MIB, MIB));
    cursor = now_cursor();
    CU_ASSERT(!syscall(SYS_munmap, p, 16 * MIB) && is_reported(&cursor, p + 5 * MIB, MIB, false));
    CU_ASSERT_FALSE(is_covered(p + 5 * MIB, MIB));
    munmap(q, MIB);
}

static char *map_far(uint64_t offset)
{
    char *far = mmap((void *)(((uintptr_t)1 << 44) + offset), 64 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CU_ASSERT_FATAL(far != MAP_FAILED);
    return far;
}

static bool fills_log(char *far)
{
    uint64_t cursor = now_cursor();

    for (size_t i = 0; i < 16; i++)
        munmap(far + 2 * i * MIB, MIB);
    return now_cursor() != cursor;
}

/* What no cache asked for does not fill the log, unless it is a multiple of 64 GiB away from what one did: one place of eight is not. */
static void test_unwatched(void)
{
    char *far = map_far(0);
    uint64_t cursor;

    for (uint64_t place = 1; fills_log(far) && place < 8; place++) {
        munmap(far, 64 * MIB);
        far = map_far(place * 7777 * MIB);
    }
    cursor = now_cursor();
    CU_ASSERT_FALSE(fills_log(far));
    CU_ASSERT(is_covered(far + MIB, MIB));
    munmap(far, 64 * MIB);
    CU_ASSERT(is_reported(&cursor, far + MIB, MIB, false));
}

/* Not tracked: what may change without a system call of this process. */
static void test_not_covered(void)
{
    int fd = memfd_create("weft-test", MFD_CLOEXEC), local = 0;

    CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, (off_t)MIB));
    char *file = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    char *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CU_ASSERT_FALSE(is_covered(file, MIB));
    CU_ASSERT_FALSE(is_covered(memory, MIB));
    CU_ASSERT(is_covered(&local, sizeof(local)));
    munmap(file, MIB);
    munmap(memory, MIB);
    close(fd);
}

/* The byte at p, read by the kernel; -1: not mapped. */
static int peek(const char *p)
{
    static int ends[2] = {-1, -1};
    unsigned char byte = 0;

    if (ends[0] < 0)
        CU_ASSERT_FATAL(!pipe(ends));
    return write(ends[1], p, 1) == 1 && read(ends[0], &byte, 1) == 1 ? byte : -1;
}

static bool is_logged(uint64_t cursor, const char *p)
{
    overlap o = {{(uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + 1}, 0, 0};
    return !weft_inval_log_read(weft_memmon_log(weft_memmon_get()), &cursor, see, &o) || o.times;
}

/* Frees tracked blocks of all sizes. Any page that no longer holds what was written must have been reported. */
#define BLOCKS 64
static void *free_blocks(void *arg)
{
    static const size_t sizes[] = {64 << 20, 12 << 20, 300 << 10, 100 << 10, 20 << 10};
    char *blocks[BLOCKS], *volatile at[BLOCKS];
    int *gone = arg;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        int count = sizes[s] > MIB ? 1 : BLOCKS;
        for (int i = 0; i < count; i++) {
            at[i] = blocks[i] = memset(malloc(sizes[s]), 7, sizes[s]);
            CU_ASSERT(is_covered(blocks[i], sizes[s]));
        }
        uint64_t before = now_cursor();
        for (int i = count - 1; i >= 0; i--)
            free(blocks[i]);
        malloc_trim(0);
        for (int i = 0; i < count; i++)
            for (char *p = at[i] + 4096; p + 4096 < at[i] + sizes[s]; p += 4096) {
                if (peek(p) == 7)
                    continue;
                ++*gone;
                CU_ASSERT(is_logged(before, p));
                p += sizes[s] / 16 & ~(size_t)4095;
            }
    }
    return NULL;
}

static void test_malloc(void)
{
    pthread_t thread;
    int gone = 0, gone_of_thread = 0;

    free_blocks(&gone);
    CU_ASSERT_FATAL(!pthread_create(&thread, NULL, free_blocks, &gone_of_thread)); /* an arena of its own */
    pthread_join(thread, NULL);
    printf("(%d and %d pages were gone) ", gone, gone_of_thread);
    CU_ASSERT(gone > 0 || !strcmp(getenv("WEFT_TEST_MONITOR"), "allocator"));
    CU_ASSERT_FALSE(weft_memmon_needs_sync(weft_memmon_get())); /* with several threads, too */
}

static void test_heap(void)
{
    char *heap = sbrk(MIB), *page = (char *)(((uintptr_t)heap + 4095) & ~(uintptr_t)4095);

    CU_ASSERT_FATAL(heap != (char *)-1);
    memset(page, 1, MIB / 2);
    CU_ASSERT(is_covered(page, MIB / 2));
    uint64_t cursor = now_cursor();
    CU_ASSERT(!brk(heap) && is_reported(&cursor, page, MIB / 2, false));
    CU_ASSERT_FALSE(is_covered(page, MIB / 2));
}

static void test_sysv(void)
{
    int id = shmget(IPC_PRIVATE, MIB, 0600);
    if (id < 0) {
        printf("(skipped: no SysV memory for us) ");
        return;
    }
    char *segment = shmat(id, NULL, 0), *p = fresh(4 * MIB);

    CU_ASSERT_FATAL(segment != (char *)-1);
    CU_ASSERT(is_covered(segment, MIB));
    uint64_t cursor = now_cursor();
    CU_ASSERT_EQUAL(shmdt(segment), 0);
    CU_ASSERT(is_reported(&cursor, segment, MIB, false));
    CU_ASSERT(is_covered(p, 4 * MIB));
    cursor = now_cursor();
    CU_ASSERT(shmat(id, p + MIB, SHM_REMAP) == p + MIB); /* not reported by userfaultfd */
    CU_ASSERT(is_reported(&cursor, p + MIB, MIB, false));
    CU_ASSERT(is_covered(p, 4 * MIB));
    shmctl(id, IPC_RMID, NULL);
    shmdt(p + MIB);
    munmap(p, 4 * MIB);
}

static void *mapper(void *arg)
{
    uintptr_t wrong = 0;

    for (int i = 0; i < 2000; i++) {
        size_t bytes = (1 + (size_t)i % 7) * 4096;
        char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        overlap o = {{(uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + bytes}, 0, 0};
        wrong += !is_covered(p, bytes);
        uint64_t cursor = now_cursor();
        if (i % 3 == 0)
            madvise(p, 4096, MADV_DONTNEED);
        munmap(p, bytes);
        wrong += weft_inval_log_read(weft_memmon_log(weft_memmon_get()), &cursor, see, &o) && o.times <= o.emptied;
    }
    return (void *)(wrong + (arg != NULL));
}

static void test_threads(void)
{
    pthread_t threads[4];
    void *wrong;
    int status = 1;

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, mapper, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (!child) {
            char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            _exit(p == MAP_FAILED || munmap(p, MIB) || weft_memmon_track(weft_memmon_get(), (uintptr_t)&p, (uintptr_t)&p + 1));
        }
        CU_ASSERT(child > 0 && waitpid(child, &status, 0) == child && !status);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        CU_ASSERT_PTR_NULL(wrong);
    }
}

/* -- what is refused -- */

/* `auto` where the kernel refuses userfaultfd: tracked all the same. */
static void test_refused(void)
{
    char *p = fresh(MIB);

    CU_ASSERT(weft_memmon_get()->trusts_hooks && !weft_memmon_get()->has_uffd);
    CU_ASSERT(is_covered(p, MIB));
    uint64_t cursor = now_cursor();
    munmap(p, MIB);
    CU_ASSERT(is_reported(&cursor, p, MIB, false));
}

/* `strict` there, or code that cannot be changed: nothing is tracked. */
static void test_nothing(void)
{
    char *p = fresh(MIB);

    CU_ASSERT(!weft_memmon_get()->trusts_hooks && !weft_memmon_get()->has_uffd);
    CU_ASSERT_FALSE(is_covered(p, MIB));
    CU_ASSERT(!munmap(p, MIB));
}

static void note(void *arg, const char *text)
{
    if (strstr(text, "opened by /dev/userfaultfd"))
        *(bool *)arg = true;
}

/* The call is refused, /dev/userfaultfd is not: tracked as usual, and weft-info shows it. */
static void test_device(void)
{
    bool is_described = false;
    char *p = fresh(MIB);

    CU_ASSERT(weft_memmon_get()->has_uffd && weft_memmon_get()->uffd.by_device);
    weft_memmon_describe(note, &is_described);
    CU_ASSERT(is_described);
    CU_ASSERT(is_covered(p, MIB));
    uint64_t cursor = now_cursor();
    weft_raw_syscall(SYS_munmap, (long)p, (long)MIB, 0, 0);
    CU_ASSERT(is_reported(&cursor, p, MIB, false));
}

static void test_describe(void)
{
    int lines = 0;

    weft_memmon_describe(say, &lines);
    CU_ASSERT(lines >= 3);
}

static void test_memhooks_alone(void) { run_again("memhooks", ""); }
static void test_auto_refused(void) { run_again("refused", ""); }
static void test_strict_refused(void) { run_again("strict-refused", ""); }
static void test_no_code(void) { run_again("no-code", ""); }

static void test_allocators(void)
{
    static const char *const names[] = {"libjemalloc.so.[0-9]*", "libtcmalloc_minimal.so.[0-9]*", "libmimalloc.so.[0-9]*"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char pattern[128];
        glob_t found;
        snprintf(pattern, sizeof(pattern), "/usr/lib/*/%s", names[i]);
        if (glob(pattern, 0, NULL, &found))
            printf("(skipped: no %s) ", names[i]);
        else
            run_again("allocator", found.gl_pathv[0]);
        globfree(&found);
    }
}

/* Tells whether userfaultfd is active here, and whether the device alone would suffice. */
static bool has_device(void)
{
    int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC), fd = device < 0 ? -1 : ioctl(device, _IO(0xAA, 0x00), O_CLOEXEC);

    if (fd >= 0)
        close(fd);
    if (device >= 0)
        close(device);
    return fd >= 0 && weft_memmon_get()->has_uffd;
}

static void test_call_refused(void)
{
    if (has_device())
        run_again("device", "");
    else
        printf("(skipped: no /dev/userfaultfd for us, or it watches nothing) ");
}

static void add_tests(CU_pSuite suite, const char *monitor)
{
    if (!monitor) {
        CU_add_test(suite, "memhooks alone", test_memhooks_alone);
        CU_add_test(suite, "other allocators", test_allocators);
        CU_add_test(suite, "userfaultfd refused", test_auto_refused);
        CU_add_test(suite, "userfaultfd refused, strict", test_strict_refused);
        CU_add_test(suite, "code cannot be changed", test_no_code);
        CU_add_test(suite, "the system call alone refused", test_call_refused);
        return;
    }
    CU_add_test(suite, "describe", test_describe);
    if (!strcmp(monitor, "refused"))
        CU_add_test(suite, "refused: tracked by memhooks", test_refused);
    else if (!strcmp(monitor, "strict-refused") || !strcmp(monitor, "no-code"))
        CU_add_test(suite, "nothing is tracked", test_nothing);
    else if (!strcmp(monitor, "device"))
        CU_add_test(suite, "call refused, device permitted", test_device);
    if (strcmp(monitor, "memhooks") && strcmp(monitor, "allocator"))
        return;
    CU_add_test(suite, "libc's calls", test_calls);
    CU_add_test(suite, "not watched, not reported", test_unwatched);
    CU_add_test(suite, "not tracked", test_not_covered);
    CU_add_test(suite, "malloc's own calls", test_malloc);
    CU_add_test(suite, "SysV", test_sysv);
    CU_add_test(suite, "threads", test_threads);
    if (!strcmp(monitor, "memhooks"))
        CU_add_test(suite, "the heap's end", test_heap);
}

int main(void)
{
    weft_knobs_load(false);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    add_tests(CU_add_suite("memhooks", NULL, NULL), getenv("WEFT_TEST_MONITOR"));
    return run_tests();
}
