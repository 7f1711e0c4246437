/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernels0: level 0, the baseline of each architecture (base/arith.h).
 */
#define LEVEL WEFT_ARITH_LEVEL0
#define COMPLEX_LEVEL WEFT_ARITH_LEVEL0
#define TABLE weft_kernels0
#include "type/kernels.inc"
