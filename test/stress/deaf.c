/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deaf: preloaded into churn, makes the registration cache believe that userfaultfd watches a mapping although it does not: from
 * weft_test_deafen on, registrations are said to have worked and never reach the kernel. The library's self-tests were passed
 * before.
 * So wrong data must come, and churn must see them: the proof that it can.
 */
#include <dlfcn.h>
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_bool is_deaf;
static atomic_ulong missed;

void weft_test_deafen(void) { atomic_store(&is_deaf, 1); }

int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (request == UFFDIO_REGISTER && atomic_load(&is_deaf)) {
        struct uffdio_register *wish = argument;
        wish->ioctls = 1ull << _UFFDIO_WRITEPROTECT;
        atomic_fetch_add(&missed, 1);
        return 0;
    }
    return (int)syscall(SYS_ioctl, fd, request, argument);
}

__attribute__((destructor)) static void tell(void)
{
    if (atomic_load(&is_deaf))
        fprintf(stderr, "deaf: %lu mappings were not watched\n", atomic_load(&missed));
}
