/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_crc: CRC32C against published vectors and a bitwise reference, with each implementation that this CPU supports; locating a flipped
 * bit. Prints the speed of each.
 */
#include <CUnit/Basic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/crc.h"

#define ROOM 70000

static uint8_t bytes[ROOM + 64];

static uint32_t bit_by_bit(uint32_t crc, const uint8_t *at, size_t count)
{
    crc = ~crc;
    for (size_t i = 0; i < count; i++)
        for (int bit = 0; bit < 8; bit++) {
            uint32_t out = (crc ^ (uint32_t)(at[i] >> bit)) & 1;
            crc = crc >> 1 ^ (out ? 0x82f63b78u : 0);
        }
    return ~crc;
}

static void fill(void)
{
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < sizeof bytes; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes[i] = (uint8_t)x;
    }
}

/* RFC 3720, B.4, and the common check value. */
static void known_vectors(void)
{
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; i++) {
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    for (const weft_crc_way *way = weft_crc_ways; way->name; way++) {
        if (!way->works())
            continue;
        CU_ASSERT(way->sum(0, "123456789", 9) == 0xe3069283);
        CU_ASSERT(way->sum(0, zeros, 32) == 0x8a9136aa);
        CU_ASSERT(way->sum(0, ones, 32) == 0x62a8ab43);
        CU_ASSERT(way->sum(0, up, 32) == 0x46dd794e);
        CU_ASSERT(way->sum(0, down, 32) == 0x113fdb5c);
        CU_ASSERT(way->sum(0x12345678, "", 0) == 0x12345678);
    }
}

/* Lengths around all borders of the lanes, at every alignment and start value. */
static void equals_the_reference(void)
{
    static const size_t around[] = {0, 8, 256, 768, 1024, 1536, 2048, 4096, 6144, 6912, 12288, 65536};
    fill();
    for (const weft_crc_way *way = weft_crc_ways; way->name; way++) {
        if (!way->works())
            continue;
        for (size_t a = 0; a < sizeof around / sizeof *around; a++)
            for (size_t off = 0; off < 9; off++) {
                size_t count = around[a] + off, from = (a * 7 + off) % 16;
                uint32_t begin = (uint32_t)(a * 0x9e3779b9u + off);
                CU_ASSERT(way->sum(begin, bytes + from, count) == bit_by_bit(begin, bytes + from, count));
            }
    }
}

static void checksums_of_parts(void)
{
    uint32_t whole = weft_crc32c(0, bytes, ROOM);
    for (uint32_t piece = 1; piece < ROOM; piece = piece * 3 + 1) {
        uint32_t sum = 0;
        for (size_t at = 0; at < ROOM; at += piece)
            sum = weft_crc32c(sum, bytes + at, ROOM - at < piece ? ROOM - at : piece);
        CU_ASSERT(sum == whole);
    }
}

static void finds_the_bit(void)
{
    for (uint32_t round = 0; round < 300; round++) {
        size_t count = 1 + round * round % 3000;
        uint64_t wrong = (uint64_t)round * 2654435761u % (8 * count + 32), found = UINT64_MAX;
        uint32_t before = weft_crc32c(0, bytes, count), sent = before;
        if (wrong < 8 * count)
            bytes[wrong / 8] ^= (uint8_t)(1u << wrong % 8);
        else
            sent ^= 1u << (wrong - 8 * count);
        uint32_t after = weft_crc32c(0, bytes, count);
        CU_ASSERT(after != sent);
        CU_ASSERT(weft_crc32c_find_bit(after ^ sent, count, &found) && found == wrong);
        if (wrong < 8 * count)
            bytes[wrong / 8] ^= (uint8_t)(1u << wrong % 8);
    }
    /* two flipped bits are detected, and not taken for one */
    uint64_t found;
    uint32_t before = weft_crc32c(0, bytes, 100);
    bytes[3] ^= 1;
    bytes[77] ^= 16;
    uint32_t after = weft_crc32c(0, bytes, 100);
    CU_ASSERT(before != after && !weft_crc32c_find_bit(before ^ after, 100, &found));
    bytes[3] ^= 1;
    bytes[77] ^= 16;
}

static void measure_speed(void)
{
    static uint8_t block[1 << 16];
    for (const weft_crc_way *way = weft_crc_ways; way->name; way++) {
        if (!way->works()) {
            printf("\n    %s: not on this CPU", way->name);
            continue;
        }
        double best = 0;
        uint32_t sum = 0;
        for (int round = 0; round < 20; round++) {
            struct timespec from, to;
            clock_gettime(CLOCK_MONOTONIC, &from);
            for (int i = 0; i < 16; i++)
                sum = way->sum(sum, block, sizeof block);
            clock_gettime(CLOCK_MONOTONIC, &to);
            double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
            if (16.0 * sizeof block / ns > best)
                best = 16.0 * sizeof block / ns;
        }
        printf("\n    %s: %.1f GB/s (%08x)", way->name, best, sum);
    }
    printf("\n");
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("crc", NULL, NULL);
    CU_add_test(suite, "known vectors", known_vectors);
    CU_add_test(suite, "equals the reference", equals_the_reference);
    CU_add_test(suite, "checksums of parts", checksums_of_parts);
    CU_add_test(suite, "locates a flipped bit", finds_the_bit);
    CU_add_test(suite, "speed", measure_speed);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
