/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernels_wide: kernels without vector support: half, long double, quadruple, 128-bit integers, and pairs (MINLOC, MAXLOC).
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/arith.h"
#include "type/kernels.h"

WEFT_ARITH_NO_CONTRACT

#define LEVEL WEFT_ARITH_LEVEL0

WEFT_KERNELS_RING(LEVEL, u128, weft_uint128, weft_uint128)
WEFT_KERNELS_RING(LEVEL, f16, weft_float16, weft_float16)
WEFT_KERNELS_RING(LEVEL, long, long double, long double)
WEFT_KERNELS_RING(LEVEL, f128, weft_float128, weft_float128)
WEFT_KERNELS_ORDER(LEVEL, i128, weft_int128)
WEFT_KERNELS_FLOAT_ORDER(LEVEL, f16, weft_float16)
WEFT_KERNELS_FLOAT_ORDER(LEVEL, long, long double)
WEFT_KERNELS_FLOAT_ORDER(LEVEL, f128, weft_float128)
WEFT_KERNELS_LOGIC(LEVEL, u128, weft_uint128)
WEFT_KERNEL_COMPLEX(LEVEL, c16, weft_float16)
WEFT_KERNEL_COMPLEX(LEVEL, clong, long double)
WEFT_KERNEL_COMPLEX(LEVEL, c128, weft_float128)

/* Does x replace y? better: < or >. On a tie the lower index wins; a NaN replaces any number, so that the result does not depend on the
 * order in which ranks are combined. */
#define DISPLACES(better, x, xi, y, yi)                                                                                            \
    ((x)better(y) || (!((y)better(x)) && ((x) == (y) || ((x) != (x) && (y) != (y)) ? (xi) < (yi) : (x) != (x))))

/* Writes values and indices only, never the padding, which belongs to the user. */
#define PAIR_KERNEL(name, better, V, I)                                                                                            \
    static void name(const void *in, const void *second, void *out, uint64_t count)                                                \
    {                                                                                                                              \
        struct pair { V v; I i; };                                                                                                 \
        const char *a = in, *b = second;                                                                                           \
        char *c = out;                                                                                                             \
        for (; count; count--, a += sizeof(struct pair), b += sizeof(struct pair), c += sizeof(struct pair)) {                     \
            V x, y;                                                                                                                \
            I xi, yi;                                                                                                              \
            memcpy(&x, a, sizeof(x));                                                                                              \
            memcpy(&y, b, sizeof(y));                                                                                              \
            memcpy(&xi, a + offsetof(struct pair, i), sizeof(xi));                                                                 \
            memcpy(&yi, b + offsetof(struct pair, i), sizeof(yi));                                                                 \
            if (DISPLACES(better, x, xi, y, yi)) {                                                                                 \
                y = x;                                                                                                             \
                yi = xi;                                                                                                           \
            }                                                                                                                      \
            memcpy(c, &y, sizeof(y));                                                                                              \
            memcpy(c + offsetof(struct pair, i), &yi, sizeof(yi));                                                                 \
        }                                                                                                                          \
    }
#define PAIR_KERNELS(u, V, I) PAIR_KERNEL(minloc_##u, <, V, I) PAIR_KERNEL(maxloc_##u, >, V, I)
PAIR_KERNELS(f32_int, float, int)
PAIR_KERNELS(f64_int, double, int)
PAIR_KERNELS(long_int, long, int)
PAIR_KERNELS(int_int, int, int)
PAIR_KERNELS(short_int, short, int)
PAIR_KERNELS(long_double_int, long double, int)
PAIR_KERNELS(f32_f32, float, float)
PAIR_KERNELS(f64_f64, double, double)

#define FLOATS(f) [WEFT_ELEM_F16] = f##_f16, [WEFT_ELEM_LONG] = f##_long, [WEFT_ELEM_F128] = f##_f128
#define PAIRS(f)                                                                                                                   \
    [WEFT_ELEM_F32_INT] = f##_f32_int, [WEFT_ELEM_F64_INT] = f##_f64_int, [WEFT_ELEM_LONG_INT] = f##_long_int,                     \
    [WEFT_ELEM_INT_INT] = f##_int_int, [WEFT_ELEM_SHORT_INT] = f##_short_int,                                                      \
    [WEFT_ELEM_LONG_DOUBLE_INT] = f##_long_double_int, [WEFT_ELEM_F32_F32] = f##_f32_f32, [WEFT_ELEM_F64_F64] = f##_f64_f64
const weft_kernel_table weft_kernels_wide = {{
    [WEFT_OP_SUM] = {[WEFT_ELEM_U128] = sum_u128, FLOATS(sum)},
    [WEFT_OP_PROD] = {[WEFT_ELEM_U128] = prod_u128, FLOATS(prod), [WEFT_ELEM_C16] = prod_c16, [WEFT_ELEM_CLONG] = prod_clong,
                      [WEFT_ELEM_C128] = prod_c128},
    [WEFT_OP_MIN] = {[WEFT_ELEM_I128] = min_i128, FLOATS(min)},
    [WEFT_OP_MAX] = {[WEFT_ELEM_I128] = max_i128, FLOATS(max)},
    [WEFT_OP_LAND] = {[WEFT_ELEM_U128] = land_u128},
    [WEFT_OP_LOR] = {[WEFT_ELEM_U128] = lor_u128},
    [WEFT_OP_LXOR] = {[WEFT_ELEM_U128] = lxor_u128},
    [WEFT_OP_MINLOC] = {PAIRS(minloc)},
    [WEFT_OP_MAXLOC] = {PAIRS(maxloc)},
}};
