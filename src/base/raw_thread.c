/* SPDX-License-Identifier: BSD-3-Clause
 *
 * raw_thread: see raw_thread.h. Calls clone by inline assembly, with a stack and signal mask for the new thread.
 * Invariant: the new thread uses only its own stack and memory reachable from its argument, no state of libc.
 */
#include "base/raw_thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define STACK_BYTES ((size_t)64 << 10)
#define FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

/* At the top of the new thread's stack. */
typedef struct start {
    void (*run)(void *arg);
    void *arg;
} start;

#if defined(__x86_64__)
static long clone_bare(start *top)
{
    long result;
    register long fourth __asm__("r10") = 0;
    register long fifth __asm__("r8") = 0;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "pop %%rax\n\t"
                     "pop %%rdi\n\t"
                     "call *%%rax\n\t"
                     "mov %[leave], %%eax\n\t"
                     "xor %%edi, %%edi\n\t"
                     "syscall\n"
                     "1:"
                     : "=a"(result)
                     : "a"((long)SYS_clone), "D"((long)FLAGS), "S"(top), "d"(0L), "r"(fourth), "r"(fifth), [leave] "i"(SYS_exit)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static long clone_bare(start *top)
{
    register long call __asm__("x8") = SYS_clone;
    register long first __asm__("x0") = FLAGS;
    register start *second __asm__("x1") = top;
    register long third __asm__("x2") = 0;
    register long fourth __asm__("x3") = 0;
    register long fifth __asm__("x4") = 0;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "ldp x9, x0, [sp], #16\n\t"
                     "blr x9\n\t"
                     "mov x8, %[leave]\n\t"
                     "mov x0, xzr\n\t"
                     "svc 0\n"
                     "1:"
                     : "+r"(first)
                     : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), [leave] "i"(SYS_exit)
                     : "memory", "x9");
    return first;
}
#else
static long clone_bare(start *top)
{
    (void)top;
    return -ENOSYS;
}
#endif

int weft_raw_thread(void (*run)(void *arg), void *arg)
{
    sigset_t all, before;

    if (!WEFT_BARE_THREADS)
        return -ENOSYS;
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -errno;
    mprotect(stack, 4096, PROT_NONE);
    /* start has 16 bytes, so the stack below it is aligned for a call. */
    start *top = (start *)(void *)(stack + STACK_BYTES - sizeof(start));
    *top = (start){run, arg};
    sigfillset(&all);
    /* The new thread inherits the mask. glibc keeps its two internal signals unblocked, but sends them only to threads that it knows. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    long result = clone_bare(top);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result < 0)
        munmap(stack, STACK_BYTES);
    return (int)result;
}
