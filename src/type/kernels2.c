/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernels2: level 2, AVX-512 on x86-64 (base/arith.h).
 */
#define LEVEL WEFT_ARITH_LEVEL2
/* gcc 12 emits vfmaddsub for a - b*c, a + b*c pairs under AVX-512 even with contraction off: results would differ from other levels.
 * The loop is memory-bound, so level 1 is as fast. */
#define COMPLEX_LEVEL WEFT_ARITH_LEVEL1
#define TABLE weft_kernels2
#include "type/kernels.inc"
