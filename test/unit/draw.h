/* SPDX-License-Identifier: BSD-3-Clause
 *
 * draw: pseudorandom numbers of a test program (xorshift), the same in each run. One sequence for each file that includes this.
 */
#ifndef WEFT_TEST_UNIT_DRAW_H
#define WEFT_TEST_UNIT_DRAW_H

#include <stdint.h>

static uint64_t draw_state = 88172645463325252u; /* not 0; a test that is repeated from a seed sets it */

/* 0 .. below - 1; 0 if below is 0. */
static inline uint64_t draw(uint64_t below)
{
    draw_state ^= draw_state << 13;
    draw_state ^= draw_state >> 7;
    draw_state ^= draw_state << 17;
    return below ? (draw_state >> 11) % below : 0;
}

#endif
