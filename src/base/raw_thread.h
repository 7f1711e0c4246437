/* SPDX-License-Identifier: BSD-3-Clause
 *
 * raw_thread: a kernel thread unknown to libc, and system calls without errno. For a helper that must run while the process may be anywhere
 * in libc: no thread-local storage, stack protector, locks or allocation. libc still takes the process for single-threaded, so its fast
 * paths and its count of the program's threads stay right. Used by mem/memmon.
 * Invariant: functions run in such a thread are marked WEFT_BARE and call only weft_raw_syscall and other WEFT_BARE functions.
 */
#ifndef WEFT_BASE_RAW_THREAD_H
#define WEFT_BASE_RAW_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__has_attribute) && __has_attribute(no_stack_protector)
#define WEFT_BARE __attribute__((no_stack_protector, no_instrument_function))
#else
#define WEFT_BARE __attribute__((no_instrument_function))
#endif

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define WEFT_IS_SANITIZED 1
#endif
#endif
#if !defined(WEFT_IS_SANITIZED) && (defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__))
#define WEFT_IS_SANITIZED 1
#endif
#ifndef WEFT_IS_SANITIZED
#define WEFT_IS_SANITIZED 0
#endif

/* Not with sanitizers: they need per-thread state, which such a thread lacks. */
#if (defined(__x86_64__) || defined(__aarch64__)) && !WEFT_IS_SANITIZED
#define WEFT_BARE_THREADS true
#else
#define WEFT_BARE_THREADS false
#endif

/* System call by inline assembly, without libc. Returns the kernel's result: -errno on error. Where WEFT_RAW_SYSCALLS is false it uses
 * libc's syscall(). */
#if defined(__x86_64__)
#define WEFT_RAW_SYSCALLS true
static inline __attribute__((always_inline)) long weft_raw_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long fourth __asm__("r10") = d;
    register long fifth __asm__("r8") = e;
    register long sixth __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
#define WEFT_RAW_SYSCALLS true
static inline __attribute__((always_inline)) long weft_raw_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
    register long call __asm__("x8") = number;
    register long first __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long fifth __asm__("x4") = e;
    register long sixth __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(first)
                     : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "memory");
    return first;
}
#else
#include <errno.h>
#include <unistd.h>
#define WEFT_RAW_SYSCALLS false
static inline long weft_raw_syscall6(long number, long a, long b, long c, long d, long e, long f)
{
    long result = syscall(number, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
}
#endif
static inline __attribute__((always_inline)) long weft_raw_syscall(long number, long a, long b, long c, long d)
{
    return weft_raw_syscall6(number, a, b, c, d, 0, 0);
}

/* Starts a raw thread that calls run(arg), with all signals blocked, on its own stack (64 KiB, never freed); it ends when run returns.
 * Returns its thread id, or -errno; -ENOSYS: WEFT_BARE_THREADS is false. */
int weft_raw_thread(void (*run)(void *arg), void *arg);

#endif
