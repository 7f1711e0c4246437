/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernels1: level 1: AVX2 (base/arith.h says which CPUs that is on each architecture).
 */
#define LEVEL WEFT_ARITH_LEVEL1
#define COMPLEX_LEVEL WEFT_ARITH_LEVEL1
#define TABLE weft_kernels1
#include "type/kernels.inc"
