/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernels2: level 2: AVX-512 (base/arith.h says which CPUs that is on each architecture).
 */
#define LEVEL WEFT_ARITH_LEVEL2
#define TABLE weft_kernels2
#include "type/kernels.inc"
