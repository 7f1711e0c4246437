/* SPDX-License-Identifier: BSD-3-Clause
 *
 * patch_probe: program of test/build/syscall_patch: libc's patched system calls, by themselves. Needs no other part of Weft, so it is built
 * for other architectures, statically, and against other libcs. Patches while other threads make the calls. Exit code: number of failed
 * checks.
 *     patch_probe [-b]     -b: also the times of the calls, before and after
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/raw_thread.h"
#include "mem/memhooks.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static int failures;
#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            printf("line %d: not so: %s\n", __LINE__, #condition);             \
            failures++;                                                        \
        }                                                                      \
    } while (0)

static weft_inval_log invals;
static uint64_t cursor;

typedef struct query {
    uint64_t start, end;
    int gone, discarded;
} query;

static void see(void *arg, weft_range range)
{
    query *q = arg;
    bool is_discarded = range.start & WEFT_INVAL_LOG_DISCARDED;

    if ((range.start & ~WEFT_INVAL_LOG_DISCARDED) < q->end && range.end > q->start)
        (*(is_discarded ? &q->discarded : &q->gone))++;
}

/* What was reported of this range since the last call: 1: gone, 2: discarded, 3: both. */
static int reported(const void *p, size_t bytes)
{
    query q = {(uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + bytes, 0, 0};
    bool is_whole = weft_inval_log_read(&invals, &cursor, see, &q);
    return !is_whole ? 3 : (q.gone ? 1 : 0) | (q.discarded ? 2 : 0);
}

static void watch(const void *p, size_t bytes) { weft_memhooks_watch((uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)p + bytes); }

static char *map(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? abort(), NULL : memset(p, 1, bytes);
}

static char *map_watched(size_t bytes)
{
    char *p = map(bytes);
    watch(p, bytes);
    reported(p, 1);
    return p;
}

/* -- one call each -- */

static void test_calls(void)
{
    char *p = map_watched(16 * MIB), *q = map(MIB);

    CHECK(!munmap(p, MIB) && reported(p, MIB) == 1 && !reported(p, 16 * MIB));
    CHECK(!madvise(p + MIB, MIB, MADV_DONTNEED) && reported(p + MIB, MIB) == 2 && !p[MIB]);
    CHECK(!madvise(p + MIB, MIB, MADV_WILLNEED) && !reported(p, 16 * MIB));
    CHECK(mmap(p + 2 * MIB, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + 2 * MIB);
    CHECK(reported(p + 2 * MIB, MIB) == 1 && !p[2 * MIB]);
    CHECK(mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED && !reported(NULL, SIZE_MAX));
    CHECK(mremap(p + 4 * MIB, MIB, MIB, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
    CHECK(reported(p + 4 * MIB, MIB) == 1 && *q == 1);
    CHECK(mremap(p + 5 * MIB, 2 * MIB, MIB, 0) == p + 5 * MIB && reported(p + 6 * MIB, MIB) == 1);
    CHECK(!mprotect(p + 8 * MIB, MIB, PROT_READ) && !reported(p, 16 * MIB));
    errno = 0;
    CHECK(munmap(p + 1, MIB) == -1 && errno == EINVAL);
    CHECK(mmap(p + 1, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mremap(p + 1, MIB, MIB, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(madvise(p + 1, MIB, MADV_DONTNEED) == -1 && errno == EINVAL);
    reported(p, 1);
    CHECK(!munmap(p, 16 * MIB) && reported(p + 15 * MIB, MIB) == 1);
    CHECK(!munmap(q, MIB));
}

/* By number: the number and six arguments arrive. */
static void test_by_number(void)
{
    char *p = map_watched(4 * MIB);

    CHECK(!syscall(SYS_madvise, p, MIB, MADV_DONTNEED) && reported(p, MIB) == 2);
    CHECK(syscall(SYS_mmap, p, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (long)p && reported(p, MIB) == 1);
    CHECK(!syscall(SYS_munmap, p, 4 * MIB) && reported(p, 4 * MIB) == 1);
    CHECK(syscall(SYS_getpid) == getpid());
    errno = 0;
    CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
    struct timespec now;
    CHECK(!syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) && now.tv_sec + now.tv_nsec > 0);
}

static void test_heap(void)
{
    char *heap = sbrk(MIB), *page = (char *)(((uintptr_t)heap + 65535) & ~(uintptr_t)65535);

    if (heap == (void *)-1)
        return; /* musl has none for programs */
    watch(page, MIB / 2);
    reported(page, 1);
    CHECK(sbrk(-(intptr_t)MIB) == heap + MIB && sbrk(0) == heap && reported(page, MIB / 2) == 1);
    heap = sbrk(MIB);
    CHECK(!brk(heap) && sbrk(0) == heap && reported(page, MIB / 2) == 1);
    errno = 0;
    CHECK(brk((void *)(UINTPTR_MAX / 2)) == -1 && errno == ENOMEM && sbrk(0) == heap);
}

static void test_sysv(void)
{
    int id = shmget(IPC_PRIVATE, MIB, 0600);
    char *segment = id < 0 ? (char *)-1 : shmat(id, NULL, 0), *p = map_watched(4 * MIB);

    if (segment == (char *)-1) {
        printf("left out: no SysV memory here\n");
        return;
    }
    CHECK(shmat(id, p + MIB, SHM_REMAP) == p + MIB && reported(p + MIB, MIB) == 1);
    watch(segment, MIB);
    CHECK(!shmdt(segment) && reported(segment, MIB) == 1);
    CHECK(!shmdt(p + MIB));
    errno = 0;
    CHECK(shmdt(segment) == -1 && errno == EINVAL);
    shmctl(id, IPC_RMID, NULL);
    munmap(p, 4 * MIB);
    reported(p, 1);
}

/* -- within malloc. The oracle asks the kernel: does the page still hold what was written? -- */

/* The byte at p, read by the kernel; -1: not mapped. */
static int peek(const char *p)
{
    static int ends[2] = {-1, -1};
    unsigned char byte = 0;

    if (ends[0] < 0 && pipe(ends))
        abort();
    return write(ends[1], p, 1) == 1 && read(ends[0], &byte, 1) == 1 ? byte : -1;
}

#define BLOCKS 64
static void *use_malloc(void *arg)
{
    static const size_t sizes[] = {64 * MIB, 100 * KIB, 20 * KIB, 300 * KIB};
    int *gone = arg;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        char *blocks[BLOCKS], *at[BLOCKS];
        int count = sizes[s] > MIB ? 1 : BLOCKS;
        for (int i = 0; i < count; i++) {
            at[i] = blocks[i] = memset(malloc(sizes[s]), 7, sizes[s]);
            watch(blocks[i], sizes[s]);
        }
        uint64_t before = cursor = atomic_load(&invals.next);
        for (int i = count - 1; i >= 0; i--)
            free(blocks[i]);
#ifdef __GLIBC__
        int malloc_trim(size_t);
        malloc_trim(0);
#endif
        for (int i = 0; i < count; i++)
            for (char *p = at[i] + 4096; p + 4096 < at[i] + sizes[s]; p += 4096)
                if (peek(p) != 7) {
                    (*gone)++;
                    cursor = before;
                    if (!reported(p, 1)) {
                        printf("block %d of %zu KiB: discarded without a report\n", i, sizes[s] / KIB);
                        failures++;
                        i = count;
                        break;
                    }
                    p += sizes[s] / 16 & ~(size_t)4095;
                }
    }
    return NULL;
}

static void test_malloc(void)
{
    pthread_t thread;
    int gone = 0, gone_of_thread = 0;

    use_malloc(&gone);
    pthread_create(&thread, NULL, use_malloc, &gone_of_thread); /* an arena of its own */
    pthread_join(thread, NULL);
    CHECK(gone > 0 && gone_of_thread > 0);
}

/* -- registers: what the kernel keeps, the patched call keeps -- */

/* Calls unmap(p, bytes) with registers set from values[0..6], and stores what they hold afterwards. */
int call_with(int (*unmap)(void *, size_t), void *p, size_t bytes, uint64_t *values);
#if defined(__x86_64__)
__asm__(".text\n.globl call_with\n.type call_with, @function\ncall_with:\n"
        "push %rbx\n push %rbp\n push %r12\n mov %rcx, %rbx\n mov %rdi, %rbp\n mov %rsi, %rdi\n mov %rdx, %rsi\n"
        "mov (%rbx), %rdx\n mov 8(%rbx), %r8\n mov 16(%rbx), %r9\n mov 24(%rbx), %r10\n"
        "movq 32(%rbx), %xmm0\n movq 40(%rbx), %xmm7\n movq 48(%rbx), %xmm15\n"
        "call *%rbp\n"
        "mov %rdx, (%rbx)\n mov %r8, 8(%rbx)\n mov %r9, 16(%rbx)\n mov %r10, 24(%rbx)\n"
        "movq %xmm0, 32(%rbx)\n movq %xmm7, 40(%rbx)\n movq %xmm15, 48(%rbx)\n"
        "pop %r12\n pop %rbp\n pop %rbx\n ret\n.size call_with, . - call_with\n");
#else
__asm__(".text\n.globl call_with\n.type call_with, %function\ncall_with:\n"
        "stp x29, x30, [sp, #-32]!\n stp x19, x20, [sp, #16]\n mov x19, x3\n mov x20, x0\n mov x0, x1\n mov x1, x2\n"
        "ldp x2, x9, [x19]\n ldp x15, x16, [x19, #16]\n ldr x17, [x19, #32]\n ldr d0, [x19, #40]\n ldr d31, [x19, #48]\n"
        "blr x20\n"
        "stp x2, x9, [x19]\n stp x15, x16, [x19, #16]\n str x17, [x19, #32]\n str d0, [x19, #40]\n str d31, [x19, #48]\n"
        "ldp x19, x20, [sp, #16]\n ldp x29, x30, [sp], #32\n ret\n.size call_with, . - call_with\n");
#endif

/* munmap of glibc is no more than the system call. */
static void test_registers(void)
{
#ifdef __GLIBC__
    uint64_t values[7] = {11, 22, 33, 44, 55, 66, 77};
    char *p = map_watched(MIB);

    CHECK(!call_with(munmap, p, MIB, values) && reported(p, MIB) == 1);
    for (uint64_t i = 0; i < 7; i++)
        CHECK(values[i] == 11 * (i + 1));
#endif
}

/* -- other processes and threads -- */

static void test_children(void)
{
    char *p = map_watched(MIB);
    int status = 1;
    pid_t child = fork();

    if (!child)
        _exit(munmap(p, MIB) != 0 || !malloc(64 * MIB));
    CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
    CHECK(!reported(p, MIB));
    child = vfork(); /* shares the address space: its unmapping counts */
    if (!child) {
        munmap(p, MIB);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
    CHECK(peek(p) != -1 || reported(p, MIB) == 1); /* qemu-user forks instead */
}

static void *leave(void *arg) { return arg; }

/* A detached thread may unmap the stack that it runs on. */
static void test_detached(void)
{
    pthread_attr_t detached;

    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, &detached, leave, NULL));
        if (i % 8 == 7)
            usleep(1000);
    }
    usleep(20000);
}

static _Atomic int is_over;
static _Atomic long turns;

/* Makes all the calls all the time, also while they are being patched. */
static void *churn(void *arg)
{
    long *wrong = arg;

    while (!atomic_load(&is_over)) {
        char *p = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;
        p[0] = 1;
        *wrong += madvise(p, 4096, MADV_DONTNEED) || p[0];
        *wrong += mmap(p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != p;
        q = mremap(p + 4096, 60 * KIB, 120 * KIB, MREMAP_MAYMOVE);
        *wrong += q == MAP_FAILED || munmap(q, 120 * KIB) || munmap(p, 4096) || syscall(SYS_getpid) != getpid();
        errno = 0;
        *wrong += munmap(p + 1, 4096) != -1 || errno != EINVAL;
        atomic_fetch_add(&turns, 1);
    }
    return NULL;
}

/* -- times -- */

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Least time of one munmap of 64 KiB that were touched, or of an madvise of nothing. */
static double time_of(int is_munmap, int is_watched)
{
    double best = 1e30;

    for (int i = 0; i < 20000; i++) {
        char *p = mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(p, 1, 64 * KIB);
        if (is_watched)
            watch(p, 64 * KIB);
        double start = now_ns();
        if (is_munmap)
            munmap(p, 64 * KIB);
        else
            madvise(p, 0, MADV_DONTNEED);
        double ns = now_ns() - start;
        best = ns < best ? ns : best;
        munmap(p, 64 * KIB);
    }
    return best;
}

int main(int argc, char **argv)
{
    char why[256] = "";
    pthread_t threads[3];
    long wrong[3] = {0};
    int is_timed = argc > 1 && !strcmp(argv[1], "-b");
    double before[2] = {0};

    if (is_timed)
        before[0] = time_of(1, 0), before[1] = time_of(0, 0);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, churn, &wrong[i]);
    while (atomic_load(&turns) < 100)
        usleep(1000);
    if (weft_memhooks_install(why, sizeof(why))) {
        printf("not patched: %s\n", why);
        return 255;
    }
    long then = atomic_load(&turns);
    while (atomic_load(&turns) < then + 300)
        usleep(1000);
    atomic_store(&is_over, 1);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        CHECK(!wrong[i]);
    }
    if (is_timed)
        printf("munmap of 64 KiB  before %.0f ns, patched %.0f\n", before[0], time_of(1, 0));
    weft_memhooks_report_to(&invals);
    cursor = atomic_load(&invals.next);
    if (is_timed) {
        double unwatched = time_of(1, 0), none = time_of(0, 0); /* before anything is watched */
        printf("                  reporting: not watched %.0f, watched %.0f\n", unwatched, time_of(1, 1));
        printf("madvise of nothing  before %.0f ns, patched %.0f\n", before[1], none);
        reported(NULL, 1);
    }
    test_calls();
    test_by_number();
    test_heap();
    test_sysv();
    test_malloc();
    test_registers();
    test_children();
    test_detached();
    printf("patched; %d checks failed\n", failures);
    return failures > 200 ? 200 : failures;
}
