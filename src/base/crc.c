/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crc: see crc.h. A state is the bit-reflected remainder, without the inversions at both ends. Appending zero bytes to a message multiplies
 * its state by a power of x, which is linear. This combines three streams computed in parallel (the instruction has a latency of three
 * cycles, a throughput of one), and locates a wrong bit.
 */
#include "base/crc.h"

#include <string.h>

#include "base/macros.h"

#define POLYNOMIAL 0x82f63b78u

/* -- table-driven, eight bytes a step -- */

/* Table entries are linear in the index: they follow from the entries of the eight powers of two. */
#define AT(n, a, b, c, d, e, f, g, h)                                                                                 \
    (((n)&1 ? a : 0u) ^ ((n)&2 ? b : 0u) ^ ((n)&4 ? c : 0u) ^ ((n)&8 ? d : 0u) ^ ((n)&16 ? e : 0u) ^ ((n)&32 ? f : 0u) ^   \
     ((n)&64 ? g : 0u) ^ ((n)&128 ? h : 0u))
#define AT4(n, ...) AT(n, __VA_ARGS__), AT((n) + 1, __VA_ARGS__), AT((n) + 2, __VA_ARGS__), AT((n) + 3, __VA_ARGS__)
#define AT16(n, ...) AT4(n, __VA_ARGS__), AT4((n) + 4, __VA_ARGS__), AT4((n) + 8, __VA_ARGS__), AT4((n) + 12, __VA_ARGS__)
#define AT64(n, ...) AT16(n, __VA_ARGS__), AT16((n) + 16, __VA_ARGS__), AT16((n) + 32, __VA_ARGS__), AT16((n) + 48, __VA_ARGS__)
#define TABLE(...) {AT64(0, __VA_ARGS__), AT64(64, __VA_ARGS__), AT64(128, __VA_ARGS__), AT64(192, __VA_ARGS__)}

/* tables[k][n]: the state after byte n and k zero bytes. */
static const uint32_t tables[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

static uint32_t sum_by_table(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint32_t state = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint32_t low, high;
        memcpy(&low, at, 4);
        memcpy(&high, at + 4, 4);
        low ^= state;
        state = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^
                tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^ tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
    }
    for (; bytes; bytes--, at++)
        state = state >> 8 ^ tables[0][(state ^ *at) & 255];
    return ~state;
}

static bool always(void) { return true; }

/* -- CRC instructions -- */

#if defined(__x86_64__)
#include <immintrin.h>

static inline uint64_t word(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

__attribute__((target("sse4.2"))) static inline uint32_t run_on(uint32_t state, const uint8_t *at, size_t bytes)
{
    uint64_t wide = state;
    for (; bytes >= 8; bytes -= 8, at += 8)
        wide = _mm_crc32_u64(wide, word(at));
    state = (uint32_t)wide;
    for (; bytes; bytes--, at++)
        state = _mm_crc32_u8(state, *at);
    return state;
}

__attribute__((target("sse4.2"))) static uint32_t sum_by_sse(uint32_t crc, const void *data, size_t bytes)
{
    return ~run_on(~crc, data, bytes);
}

/* state * power * x^33; with power = x^(8n - 33) the state after n more zero bytes. */
__attribute__((target("sse4.2,pclmul"))) static inline uint32_t shifted(uint32_t state, uint32_t power)
{
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)state), _mm_cvtsi32_si128((int)power), 0);
    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* Three interleaved streams of `lane` bytes each, while that many remain. past_one, past_two: x^(8n - 33), n: one and two lanes. */
#define LANES(state, at, bytes, lane, past_one, past_two)                                                             \
    for (; (bytes) >= 3 * (lane); (bytes) -= 3 * (lane), (at) += 3 * (lane)) {                                        \
        uint64_t a = (state), b = 0, c = 0;                                                                           \
        for (size_t i = 0; i < (lane); i += 8) {                                                                      \
            a = _mm_crc32_u64(a, word((at) + i));                                                                     \
            b = _mm_crc32_u64(b, word((at) + (lane) + i));                                                            \
            c = _mm_crc32_u64(c, word((at) + 2 * (lane) + i));                                                        \
        }                                                                                                             \
        (state) = shifted((uint32_t)a, past_two) ^ shifted((uint32_t)b, past_one) ^ (uint32_t)c;                      \
    }

__attribute__((target("sse4.2,pclmul"))) static uint32_t sum_by_lanes(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint32_t state = ~crc;
    LANES(state, at, bytes, 2048, 0xa51b6135, 0x82f89c77)
    LANES(state, at, bytes, 256, 0xb9e02b86, 0xdd7e3b0c)
    return ~run_on(state, at, bytes);
}

static bool has_sse(void) { return __builtin_cpu_supports("sse4.2"); }
static bool has_lanes(void) { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"); }
#define WAYS {"crc32 in three lanes", has_lanes, sum_by_lanes}, {"crc32", has_sse, sum_by_sse},

#elif defined(__aarch64__)
#include <arm_acle.h>
#include <sys/auxv.h>

#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif

__attribute__((target("+crc"))) static uint32_t sum_by_arm(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint32_t state = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t value;
        memcpy(&value, at, sizeof value);
        state = __crc32cd(state, value);
    }
    for (; bytes; bytes--, at++)
        state = __crc32cb(state, *at);
    return ~state;
}

static bool has_arm(void) { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#define WAYS {"crc32c", has_arm, sum_by_arm},

#else
#define WAYS
#endif

const weft_crc_way weft_crc_ways[] = {WAYS{"table", always, sum_by_table}, {NULL, NULL, NULL}};

uint32_t weft_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    const weft_crc_way *way = weft_crc_ways;
    while (!way->works())
        way++;
    return way->sum(crc, data, bytes);
}

/* A wrong bit followed by n bits (the CRC's included) makes a difference of x^n. */
bool weft_crc32c_find_bit(uint32_t difference, uint64_t bytes, uint64_t *bit)
{
    uint32_t power = 0x80000000u;
    for (uint64_t behind = 0; behind < 8 * bytes + 32; behind++) {
        if (power == difference) {
            *bit = 8 * bytes + 31 - behind;
            return true;
        }
        power = power >> 1 ^ (power & 1 ? POLYNOMIAL : 0);
    }
    return false;
}
