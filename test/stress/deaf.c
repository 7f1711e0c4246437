/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deaf: preloaded into churn, suppresses userfaultfd: from weft_test_deafen on, registering a mapping reports success without reaching the
 * kernel. The library's self-tests passed before. So stale data must occur, and churn must detect it.
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
