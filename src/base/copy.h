/* SPDX-License-Identifier: BSD-3-Clause
 *
 * copy: inline copy of short bodies.
 */
#ifndef WEFT_BASE_COPY_H
#define WEFT_BASE_COPY_H

#include <stdint.h>
#include <string.h>

/* Copies at most 32 bytes; reads and writes no others. The ranges must not overlap. */
static inline void weft_copy_short(void *to, const void *from, uint32_t bytes)
{
    char *t = to;
    const char *f = from;
    if (bytes >= 16) {
        memcpy(t, f, 16);
        memcpy(t + bytes - 16, f + bytes - 16, 16);
    } else if (bytes >= 8) {
        memcpy(t, f, 8);
        memcpy(t + bytes - 8, f + bytes - 8, 8);
    } else if (bytes >= 4) {
        memcpy(t, f, 4);
        memcpy(t + bytes - 4, f + bytes - 4, 4);
    } else {
        while (bytes--)
            *t++ = *f++;
    }
}

#endif
