/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cma: see cma.h.
 */
#include "transports/shm/cma.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

#define CALL_MAX ((uint64_t)1 << 30) /* the kernel stops at 2 GiB - 4 KiB */

/* Probe word: must be in private memory, as the rank page is shared. Written once per process. */
static uint64_t word;

void weft_cma_show(weft_rank_page *page)
{
    if (!word && (getrandom(&word, sizeof word, 0) != sizeof word || !word))
        word = weft_clock_ns() ^ (uint64_t)getpid() << 40;
    atomic_store_explicit(&page->probe_word, word, memory_order_relaxed);
    atomic_store_explicit(&page->probe_addr, (uint64_t)(uintptr_t)&word, memory_order_relaxed);
    atomic_store_explicit(&page->pid, (uint32_t)getpid(), memory_order_release);
}

bool weft_cma_works(const weft_rank_page *page)
{
    uint64_t seen = 0;
    uint32_t pid = atomic_load_explicit(&page->pid, memory_order_acquire);
    return pid && weft_cma_get(pid, &seen, atomic_load_explicit(&page->probe_addr, memory_order_relaxed), sizeof seen) == 0 &&
           seen == atomic_load_explicit(&page->probe_word, memory_order_relaxed);
}

static int refused(const char *call, uint32_t pid)
{
    int code = errno == EFAULT ? WEFT_E_KEY : errno == ESRCH ? WEFT_E_PEER : WEFT_E_UNSUPPORTED;
    return weft_fail(code, "%s on process %u failed: %s", call, pid, strerror(errno));
}

int weft_cma_get(uint32_t pid, void *local, uint64_t remote, uint64_t bytes)
{
    while (bytes) {
        struct iovec here = {local, bytes < CALL_MAX ? bytes : CALL_MAX}, there = {(void *)(uintptr_t)remote, here.iov_len};
        ssize_t n = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);
        if (n <= 0)
            return refused("process_vm_readv", pid);
        local = (char *)local + n;
        remote += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return 0;
}

int weft_cma_put(uint32_t pid, const void *local, uint64_t remote, uint64_t bytes)
{
    while (bytes) {
        struct iovec here = {(void *)local, bytes < CALL_MAX ? bytes : CALL_MAX}, there = {(void *)(uintptr_t)remote, here.iov_len};
        ssize_t n = process_vm_writev((pid_t)pid, &here, 1, &there, 1, 0);
        if (n <= 0)
            return refused("process_vm_writev", pid);
        local = (const char *)local + n;
        remote += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return 0;
}
