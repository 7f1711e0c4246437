/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_memhooks: calls seen by the preloaded library: this program runs itself again with memhooks as the only monitor, and where the
 * kernel refuses userfaultfd.
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <fcntl.h>
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

static void test_interposed_calls(void)
{
    uint64_t cursor;
    char *p = fresh(16 * MIB), *q = fresh(MIB);

    CU_ASSERT_FATAL(weft_memmon_get()->hooks && !weft_memmon_get()->has_uffd);
    CU_ASSERT_FALSE(weft_memmon_needs_sync(weft_memmon_get()));
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
    munmap(p, 16 * MIB);
    CU_ASSERT_FALSE(is_covered(p + 5 * MIB, MIB));
    munmap(q, MIB);
}

/* The same calls through syscall(), whose results must not change. */
static void test_interposed_syscall(void)
{
    char *p = fresh(16 * MIB), *q = (char *)syscall(SYS_mmap, NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

    CU_ASSERT(is_covered(p, 16 * MIB));
    CU_ASSERT(is_covered(q, MIB));
    uint64_t cursor = now_cursor();
    CU_ASSERT(!syscall(SYS_munmap, p, MIB) && is_reported(&cursor, p, MIB, false));
    CU_ASSERT_FALSE(is_covered(p, 2 * MIB));
    cursor = now_cursor();
    CU_ASSERT(!syscall(SYS_madvise, p + MIB, MIB, MADV_DONTNEED) && is_reported(&cursor, p + MIB, MIB, true));
    CU_ASSERT(syscall(SYS_mmap, p + 2 * MIB, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              (long)(p + 2 * MIB));
    CU_ASSERT(is_reported(&cursor, p + 2 * MIB, MIB, false));
    CU_ASSERT(syscall(SYS_mremap, p + 3 * MIB, MIB, MIB, flags, q) == (long)q && is_reported(&cursor, p + 3 * MIB, MIB, false));
    CU_ASSERT(is_covered(q, MIB));
    CU_ASSERT_FALSE(is_covered(p + 3 * MIB, MIB));
    int id = shmget(IPC_PRIVATE, MIB, 0600); /* refused in some containers */
    char *segment = id < 0 ? NULL : (char *)syscall(SYS_shmat, id, NULL, 0);
    CU_ASSERT(!segment || is_covered(segment, MIB));
    cursor = now_cursor();
    CU_ASSERT(!segment || (!syscall(SYS_shmdt, segment) && is_reported(&cursor, segment, MIB, false)));
    shmctl(id, IPC_RMID, NULL);
    char *heap = sbrk(MIB), *end = (char *)(((uintptr_t)heap + 4095) & ~(uintptr_t)4095);
    cursor = now_cursor();
    CU_ASSERT(syscall(SYS_brk, end) == (long)end && is_reported(&cursor, end, MIB / 2, false));
    CU_ASSERT(!brk(heap));
    errno = 0;
    CU_ASSERT(syscall(SYS_close, -1) == -1 && errno == EBADF);
    CU_ASSERT(syscall(SYS_getpid) == getpid());
    munmap(p, 16 * MIB);
    munmap(q, MIB);
}

/* Unmapped by a call that is not intercepted: reported when the kernel reuses the address, for whatever mapping. */
static void test_interposed_behind(void)
{
    int fd = memfd_create("weft-test", MFD_CLOEXEC), fixed = MAP_FIXED_NOREPLACE;

    CU_ASSERT_FATAL(fd >= 0 && !ftruncate(fd, (off_t)MIB));
    for (int kind = 0; kind < 3; kind++) {
        char *p = fresh(4 * MIB), *again;
        CU_ASSERT(is_covered(p, 4 * MIB));
        weft_raw_syscall(SYS_munmap, (long)(p + MIB), (long)MIB, 0, 0);
        uint64_t cursor = now_cursor();
        if (kind == 0)
            again = mmap(p + MIB, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
        else if (kind == 1)
            again = mmap(p + MIB, MIB, PROT_READ, MAP_SHARED | fixed, fd, 0);
        else
            again = mremap(p, MIB, 2 * MIB, 0); /* grows in place, into the hole */
        CU_ASSERT(again == (kind == 2 ? p : p + MIB));
        CU_ASSERT(is_reported(&cursor, p + MIB, MIB, false));
        CU_ASSERT_EQUAL(weft_memmon_get()->hooks->is_range_seen((uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + 4 * MIB), kind != 1);
        munmap(p, 4 * MIB);
    }
    close(fd);
}

/* malloc's blocks are mapped by libc itself: never tracked. */
static void test_interposed_malloc(void)
{
    char *volatile block = malloc(64 * MIB);
    int local = 0;

    memset(block, 1, MIB);
    CU_ASSERT_FALSE(is_covered(block, MIB));
    CU_ASSERT_FALSE(is_covered(&local, sizeof(local)));
    free(block);
    uint64_t cursor = now_cursor();
    char *heap = sbrk(MIB);
    CU_ASSERT_FALSE(is_reported(&cursor, heap, MIB, false));
    sbrk(-(intptr_t)MIB);
    CU_ASSERT(is_reported(&cursor, heap, MIB, false));
    heap = sbrk(MIB);
    cursor = now_cursor();
    CU_ASSERT_EQUAL(brk(heap), 0);
    CU_ASSERT(is_reported(&cursor, heap, MIB, false));
}

static void test_interposed_sysv(void)
{
    int id = shmget(IPC_PRIVATE, MIB, 0600);
    if (id < 0) {
        printf("(skipped: no SysV memory for us) ");
        return;
    }
    char *segment = shmat(id, NULL, 0), *p = fresh(4 * MIB);
    uint64_t cursor;

    CU_ASSERT_FATAL(segment != (char *)-1);
    CU_ASSERT(is_covered(segment, MIB));
    cursor = now_cursor();
    CU_ASSERT_EQUAL(shmdt(segment), 0);
    CU_ASSERT(is_reported(&cursor, segment, MIB, false));
    CU_ASSERT(is_covered(p, 4 * MIB));
    cursor = now_cursor();
    CU_ASSERT(shmat(id, p + MIB, SHM_REMAP) == p + MIB); /* not reported by userfaultfd */
    CU_ASSERT(is_reported(&cursor, p + MIB, MIB, false));
    CU_ASSERT(is_covered(p, 4 * MIB)); /* tracked by both */
    shmctl(id, IPC_RMID, NULL);
    munmap(p, 4 * MIB);
}

static void *mapper(void *arg)
{
    uint64_t wrong = 0;

    for (int i = 0; i < 20000; i++) {
        size_t bytes = (1 + (size_t)i % 7) * 4096;
        char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        uint64_t start = (uint64_t)(uintptr_t)p;
        wrong += !weft_memmon_get()->hooks->is_range_seen(start, start + bytes);
        if (i % 3 == 0)
            madvise(p, 4096, MADV_DONTNEED);
        munmap(p, bytes);
    }
    return (void *)(uintptr_t)(wrong + (arg != NULL));
}

static void test_interposed_threads(void)
{
    pthread_t threads[4];
    void *wrong;
    int status = 1;

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, mapper, NULL);
    for (int i = 0; i < 20; i++) { /* its lock may be held at fork: the child must continue */
        pid_t child = fork();
        if (!child) {
            char *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            _exit(p == MAP_FAILED || munmap(p, MIB));
        }
        CU_ASSERT(child > 0 && waitpid(child, &status, 0) == child && !status);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        CU_ASSERT_PTR_NULL(wrong);
    }
}

/* -- where userfaultfd is refused -- */

/* `auto` where the kernel refuses userfaultfd: memhooks is loaded and reports, but tracks nothing. */
static void test_refused(void)
{
    char *p = fresh(MIB);

    CU_ASSERT(weft_memmon_get()->hooks && !weft_memmon_get()->has_uffd);
    CU_ASSERT_FALSE(is_covered(p, MIB));
    uint64_t cursor = now_cursor();
    munmap(p, MIB);
    CU_ASSERT(is_reported(&cursor, p, MIB, false));
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

static void test_memhooks_alone(void) { run_again("memhooks"); }
static void test_auto_refused(void) { run_again("refused"); }

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
        run_again("device");
    else
        printf("(skipped: no /dev/userfaultfd for us, or it watches nothing) ");
}

static void add_tests(CU_pSuite suite, const char *preloaded)
{
    if (!preloaded) {
        CU_add_test(suite, "memhooks alone", test_memhooks_alone);
        CU_add_test(suite, "memhooks, userfaultfd refused", test_auto_refused);
        CU_add_test(suite, "the system call alone refused", test_call_refused);
        return;
    }
    CU_add_test(suite, "describe", test_describe);
    if (!strcmp(preloaded, "refused")) {
        CU_add_test(suite, "refused: nothing is tracked", test_refused);
        return;
    }
    if (!strcmp(preloaded, "device")) {
        CU_add_test(suite, "call refused, device permitted", test_device);
        return;
    }
    CU_add_test(suite, "intercepted calls", test_interposed_calls);
    CU_add_test(suite, "intercepted: syscall()", test_interposed_syscall);
    CU_add_test(suite, "intercepted: inline system calls", test_interposed_behind);
    CU_add_test(suite, "intercepted: malloc", test_interposed_malloc);
    CU_add_test(suite, "intercepted: SysV", test_interposed_sysv);
    CU_add_test(suite, "intercepted: threads", test_interposed_threads);
}

int main(void)
{
    weft_knobs_load(false);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    add_tests(CU_add_suite("memhooks", NULL, NULL), getenv("WEFT_TEST_PRELOADED"));
    return run_tests();
}
