/* SPDX-License-Identifier: BSD-3-Clause
 *
 * macros: small helpers for the compiler and the CPU. Stateless.
 */
#ifndef WEFT_BASE_MACROS_H
#define WEFT_BASE_MACROS_H

#include <stddef.h>
#include <stdint.h>

#define weft_likely(x) __builtin_expect(!!(x), 1)
#define weft_unlikely(x) __builtin_expect(!!(x), 0)
#define WEFT_LINE 64 /* bytes of a cache line; layouts in shared memory depend on it */
#define weft_container(ptr, type, field) ((type *)((char *)(ptr)-offsetof(type, field)))
#define weft_count(array) (sizeof(array) / sizeof((array)[0]))
#define weft_round_up(x, to) (((x) + ((to)-1)) / (to) * (to))

/* Prefetches a cache line for writing. On x86-64 gcc's builtin emits a prefetch for reading, which does not get the line
 * exclusively. CPUs without prefetchw execute it as a no-op. */
#if defined(__x86_64__)
#define weft_prefetch_write(addr) __asm__ volatile("prefetchw %0" : : "m"(*(const char *)(addr)))
#else
#define weft_prefetch_write(addr) __builtin_prefetch(addr, 1)
#endif

#if defined(__x86_64__) || defined(__i386__)
#define weft_cpu_relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define weft_cpu_relax() __asm__ volatile("isb" ::: "memory")
#else
#define weft_cpu_relax() __asm__ volatile("" ::: "memory")
#endif

#endif
