/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernels2: level 2: AVX-512 (base/arith.h says which CPUs that is on each architecture).
 */
#define LEVEL WEFT_ARITH_LEVEL2
/* gcc 12 makes vfmaddsub of a - b*c, a + b*c pairs under AVX-512 even with contraction off: bits would differ from the other levels'.
 * Without AVX-512 the product is as fast (memory-bound). */
#define COMPLEX_LEVEL WEFT_ARITH_LEVEL1
#define TABLE weft_kernels2
#include "type/kernels.inc"
