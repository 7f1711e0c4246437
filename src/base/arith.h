/* SPDX-License-Identifier: BSD-3-Clause
 *
 * arith: number formats and vector levels of this compiler and CPU; keeps #if out of the layers above. A missing format has WEFT_HAS_... 0
 * and a placeholder type, which must not be used in arithmetic (its MPI datatypes are marked unavailable). Stateless.
 */
#ifndef WEFT_BASE_ARITH_H
#define WEFT_BASE_ARITH_H

#include <float.h>
#include <stdint.h>

/* IEEE binary16. clang 14 has the type but no arithmetic for it on x86. */
#if defined(__FLT16_MAX__) && !defined(__clang__)
#define WEFT_HAS_FLOAT16 1
typedef _Float16 weft_float16;
#else
#define WEFT_HAS_FLOAT16 0
typedef uint16_t weft_float16;
#endif

/* IEEE binary128, as Fortran's REAL(16). */
#if defined(__SIZEOF_FLOAT128__)
#define WEFT_HAS_FLOAT128 1
typedef __float128 weft_float128;
#elif LDBL_MANT_DIG == 113
#define WEFT_HAS_FLOAT128 1
typedef long double weft_float128;
#else
#define WEFT_HAS_FLOAT128 0
typedef double weft_float128;
#endif

#if defined(__SIZEOF_INT128__)
#define WEFT_HAS_INT128 1
typedef __int128 weft_int128;
typedef unsigned __int128 weft_uint128;
#else
#define WEFT_HAS_INT128 0
typedef int64_t weft_int128;
typedef uint64_t weft_uint128;
#endif

/* For loops that must be vectorized at any optimization level of the build. Contraction to fused multiply-add is off, so results have the
 * same bits on every CPU and ranks on different hosts agree. */
#if defined(__clang__)
#define WEFT_ARITH_LOOPS
#define WEFT_ARITH_NO_CONTRACT _Pragma("STDC FP_CONTRACT OFF")
#else
#define WEFT_ARITH_LOOPS optimize("O3", "fp-contract=off"),
#define WEFT_ARITH_NO_CONTRACT
#endif

/* Function attributes of each vector level, and the level of this CPU: 0: baseline; 1: AVX2; 2: AVX-512. Other architectures: 0 only. */
#if defined(__x86_64__)
#define WEFT_ARITH_LEVEL0 __attribute__((WEFT_ARITH_LOOPS unused))
#define WEFT_ARITH_LEVEL1 __attribute__((WEFT_ARITH_LOOPS target("avx2"), unused))
#define WEFT_ARITH_LEVEL2 __attribute__((WEFT_ARITH_LOOPS target("avx512f,avx512bw,avx512dq,avx512vl"), unused))
static inline int weft_arith_level(void)
{
    if (!__builtin_cpu_supports("avx2"))
        return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl")
               ? 2
               : 1;
}
#else
#define WEFT_ARITH_LEVEL0 __attribute__((WEFT_ARITH_LOOPS unused))
#define WEFT_ARITH_LEVEL1 WEFT_ARITH_LEVEL0
#define WEFT_ARITH_LEVEL2 WEFT_ARITH_LEVEL0
static inline int weft_arith_level(void) { return 0; }
#endif

#endif
