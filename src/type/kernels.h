/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernels: tables of reduction loops, operator x element type, one table per CPU level (kernels.inc compiled three times) and one for
 * formats without vector support. Called by op.c. All levels give identical bits. Buffers may be unaligned.
 */
#ifndef WEFT_TYPE_KERNELS_H
#define WEFT_TYPE_KERNELS_H

#include <stdint.h>

/* out[i] = in[i] op second[i] for count basic elements. out may be one of the others, but may not overlap them otherwise. */
typedef void weft_op_kernel(const void *in, const void *second, void *out, uint64_t count);

enum weft_op_kind {
    WEFT_OP_SUM, WEFT_OP_PROD, WEFT_OP_MIN, WEFT_OP_MAX, WEFT_OP_BAND, WEFT_OP_BOR, WEFT_OP_BXOR,
    WEFT_OP_LAND, WEFT_OP_LOR, WEFT_OP_LXOR, WEFT_OP_MINLOC, WEFT_OP_MAXLOC, WEFT_OP_KINDS
};

/* Element type of a kernel. Signed sums and products use the unsigned type: same bits, no undefined overflow. */
enum weft_elem {
    WEFT_ELEM_U8, WEFT_ELEM_U16, WEFT_ELEM_U32, WEFT_ELEM_U64, WEFT_ELEM_U128, /* in the order of log2 of their bytes */
    WEFT_ELEM_I8, WEFT_ELEM_I16, WEFT_ELEM_I32, WEFT_ELEM_I64, WEFT_ELEM_I128,
    WEFT_ELEM_F16, WEFT_ELEM_F32, WEFT_ELEM_F64, WEFT_ELEM_LONG, WEFT_ELEM_F128, /* LONG: long double */
    WEFT_ELEM_C16, WEFT_ELEM_C32, WEFT_ELEM_C64, WEFT_ELEM_CLONG, WEFT_ELEM_C128, /* complex of two of those */
    WEFT_ELEM_F32_INT, WEFT_ELEM_F64_INT, WEFT_ELEM_LONG_INT, WEFT_ELEM_INT_INT, WEFT_ELEM_SHORT_INT, WEFT_ELEM_LONG_DOUBLE_INT,
    WEFT_ELEM_F32_F32, WEFT_ELEM_F64_F64,
    WEFT_ELEMS
};

typedef struct weft_kernel_table {
    weft_op_kernel *kernel[WEFT_OP_KINDS][WEFT_ELEMS];
} weft_kernel_table;

extern const weft_kernel_table weft_kernels0, weft_kernels1, weft_kernels2, weft_kernels_wide;

/* Kernel for a CPU level (0..2, base/arith.h); NULL: the operator does not apply to the element type. */
weft_op_kernel *weft_kernel_find(enum weft_op_kind kind, enum weft_elem elem, int level);

/* Types of any alignment that may alias anything. */
#define WEFT_ANYWHERE __attribute__((aligned(1), may_alias))

/* For the loop that follows: no element depends on another one, though out may be an operand. */
#ifdef __clang__
#define WEFT_KERNEL_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define WEFT_KERNEL_LOOP _Pragma("GCC ivdep")
#endif

/* One loop. R: type of the computation; x: element of in; y: element of second. */
#define WEFT_KERNEL(attribute, name, T, R, expression)                                                                             \
    static attribute void name(const void *in, const void *second, void *out, uint64_t count)                                      \
    {                                                                                                                              \
        typedef T any WEFT_ANYWHERE;                                                                                               \
        const any *a = in, *b = second;                                                                                            \
        any *c = out;                                                                                                              \
        WEFT_KERNEL_LOOP                                                                                                           \
        for (uint64_t i = 0; i < count; i++) {                                                                                     \
            const R x = (R)a[i], y = (R)b[i];                                                                                      \
            c[i] = (T)(expression);                                                                                                \
        }                                                                                                                          \
    }

#define WEFT_KERNELS_RING(A, u, T, R)                                                                                              \
    WEFT_KERNEL(A, sum_##u, T, R, x + y)                                                                                           \
    WEFT_KERNEL(A, prod_##u, T, R, x *y)
#define WEFT_KERNELS_ORDER(A, u, T)                                                                                                \
    WEFT_KERNEL(A, min_##u, T, T, x < y ? x : y)                                                                                   \
    WEFT_KERNEL(A, max_##u, T, T, x > y ? x : y)
/* A NaN on either side gives a NaN, so that the result does not depend on the order of operands. */
#define WEFT_KERNELS_FLOAT_ORDER(A, u, T)                                                                                          \
    WEFT_KERNEL(A, min_##u, T, T, ((x < y) | (x != x)) ? x : y)                                                                    \
    WEFT_KERNEL(A, max_##u, T, T, ((x > y) | (x != x)) ? x : y)
#define WEFT_KERNELS_LOGIC(A, u, T)                                                                                                \
    WEFT_KERNEL(A, land_##u, T, T, (x != 0) & (y != 0))                                                                            \
    WEFT_KERNEL(A, lor_##u, T, T, (x | y) != 0)                                                                                    \
    WEFT_KERNEL(A, lxor_##u, T, T, (x != 0) != (y != 0))

/* The plain formula, as in Fortran: C's handling of infinities (annex G) would prevent vectorization. */
#define WEFT_KERNEL_COMPLEX(attribute, u, T)                                                                                       \
    static attribute void prod_##u(const void *in, const void *second, void *out, uint64_t count)                                  \
    {                                                                                                                              \
        typedef T any WEFT_ANYWHERE;                                                                                               \
        const any *a = in, *b = second;                                                                                            \
        any *c = out;                                                                                                              \
        WEFT_KERNEL_LOOP                                                                                                           \
        for (uint64_t i = 0; i < 2 * count; i += 2) {                                                                              \
            const T xr = a[i], xi = a[i + 1], yr = b[i], yi = b[i + 1];                                                            \
            c[i] = xr * yr - xi * yi;                                                                                              \
            c[i + 1] = xr * yi + xi * yr;                                                                                          \
        }                                                                                                                          \
    }

#endif
