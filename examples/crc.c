/* SPDX-License-Identifier: BSD-3-Clause
 * crc: CRC-32 by eight tables, eight bytes at a time; little endian.
 */
#include "crc.h"

#include <string.h>

static uint32_t tables[8][256];

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) {
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
        }
        tables[0][i] = c;
    }
    for (int t = 1; t < 8; t++) {
        for (int i = 0; i < 256; i++) {
            tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
        }
    }
}

uint32_t crc32_of(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint32_t c = 0xffffffffu;

    if (!tables[0][1]) {
        make_tables();
    }
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t w;
        memcpy(&w, at, sizeof w);
        w ^= c;
        c = 0;
        for (int t = 0; t < 8; t++, w >>= 8) {
            c ^= tables[7 - t][w & 0xff];
        }
    }
    while (bytes--) {
        c = c >> 8 ^ tables[0][(c ^ *at++) & 0xff];
    }
    return ~c;
}
