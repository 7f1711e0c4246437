/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random: random numbers that nobody can guess, from the kernel: secrets, nonces, keys of memory.
 */
#ifndef WEFT_BASE_RANDOM_H
#define WEFT_BASE_RANDOM_H

#include <stddef.h>

/* Fills `bytes` bytes. Blocks until the kernel has gathered entropy, which may be so in a machine's first seconds only. 0, or WEFT_E_SYSTEM
 * with a text. Any thread. */
int weft_random(void *to, size_t bytes);

#endif
