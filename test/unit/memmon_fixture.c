/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memmon_fixture: see the header.
 */
#include "memmon_fixture.h"

#include <CUnit/Basic.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/raw_thread.h"

void see(void *arg, weft_range range)
{
    overlap *o = arg;
    bool is_emptied = range.start & WEFT_INVAL_LOG_DISCARDED;

    if ((range.start & ~WEFT_INVAL_LOG_DISCARDED) < o->wanted.end && range.end > o->wanted.start) {
        o->times++;
        o->emptied += is_emptied;
    }
}

bool is_reported(uint64_t *cursor, const void *addr, size_t bytes, bool is_emptied)
{
    uint64_t start = (uint64_t)(uintptr_t)addr;
    overlap o = {{start, start + bytes}, 0, 0};

    CU_ASSERT(weft_inval_log_read(weft_memmon_log(weft_memmon_get()), cursor, see, &o));
    return o.times && (o.emptied == o.times) == is_emptied;
}

bool is_covered(const void *addr, size_t bytes)
{
    return weft_memmon_track(weft_memmon_get(), (uint64_t)(uintptr_t)addr, (uint64_t)(uintptr_t)addr + bytes);
}

uint64_t now_cursor(void) { return atomic_load(&weft_memmon_log(weft_memmon_get())->next); }

char *fresh(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(p != MAP_FAILED);
    memset(p, 1, bytes);
    return p;
}

void say(void *arg, const char *text)
{
    (*(int *)arg)++;
    printf("\n    %s", text);
}

bool refuse_userfaultfd(bool and_device)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, and_device ? SYS_ioctl : UINT32_MAX, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])), /* low half: little-endian */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, _IO(0xAA, 0x00), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(steps) / sizeof(steps[0]), steps};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* As systems do that allow no code but what files hold (prctl(PR_SET_MDWE), SELinux). False: not known to this kernel. */
static bool refuse_code(void) { return !prctl(65 /* PR_SET_MDWE */, 1 /* PR_MDWE_REFUSE_EXEC_GAIN */, 0, 0, 0); }

/* Takes away what `monitor` says; sets the knob. False: this kernel cannot. */
static bool prepare(const char *monitor)
{
    bool is_device = !strcmp(monitor, "device"), is_strict = !strcmp(monitor, "strict-refused");
    bool is_refused = is_device || is_strict || !strcmp(monitor, "refused"), is_code = !strcmp(monitor, "no-code");

    setenv("WEFT_REGCACHE_MONITOR", is_strict ? "strict" : is_code || !strcmp(monitor, "allocator") ? "memhooks"
           : is_refused ? "auto" : monitor, 1);
    return (!is_refused || refuse_userfaultfd(!is_device)) && (!is_code || refuse_code());
}

void run_again(const char *monitor, const char *preload)
{
    int status = 1;

    if (WEFT_IS_SANITIZED) {
        printf("(skipped: a sanitizer) ");
        return;
    }
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        setenv("WEFT_TEST_MONITOR", monitor, 1);
        if (*preload)
            setenv("LD_PRELOAD", preload, 1);
        if (!prepare(monitor))
            _exit(77);
        execl("/proc/self/exe", "again", (char *)NULL);
        _exit(99);
    }
    CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        printf("(skipped: this kernel has no such filter) ");
    else
        CU_ASSERT_EQUAL(status, 0);
}

int run_tests(void)
{
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failures = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failures != 0;
}
