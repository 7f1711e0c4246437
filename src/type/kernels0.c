/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernels0: level 0: what every CPU of the kind has (base/arith.h says which CPUs that is on each architecture).
 */
#define LEVEL WEFT_ARITH_LEVEL0
#define COMPLEX_LEVEL WEFT_ARITH_LEVEL0
#define TABLE weft_kernels0
#include "type/kernels.inc"
