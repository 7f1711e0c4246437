/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernels1: level 1, AVX2 on x86-64 (base/arith.h).
 */
#define LEVEL WEFT_ARITH_LEVEL1
#define COMPLEX_LEVEL WEFT_ARITH_LEVEL1
#define TABLE weft_kernels1
#include "type/kernels.inc"
