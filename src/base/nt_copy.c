/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nt_copy: see nt_copy.h.
 */
#include "base/nt_copy.h"

#include "base/clock.h"

#define WORTH 2 /* non-temporal stores cost the reader more: they must be so many times faster for the sender */

#if defined(__x86_64__)
#include <emmintrin.h>

/* Non-temporal stores for whole lines. The fence orders them before the release that publishes the body. */
static void copy_past(void *to, const void *from, uint32_t bytes)
{
    uint32_t odd = (uint32_t)(-(uintptr_t)to % WEFT_LINE);
    __m128i *t = (__m128i *)((char *)to + odd);
    const __m128i *f = (const __m128i *)((const char *)from + odd);
    memcpy(to, from, odd);
    bytes -= odd;
    for (; bytes >= WEFT_LINE; bytes -= WEFT_LINE, t += 4, f += 4) {
        __m128i a = _mm_loadu_si128(f), b = _mm_loadu_si128(f + 1), c = _mm_loadu_si128(f + 2), d = _mm_loadu_si128(f + 3);
        _mm_stream_si128(t, a);
        _mm_stream_si128(t + 1, b);
        _mm_stream_si128(t + 2, c);
        _mm_stream_si128(t + 3, d);
    }
    memcpy(t, f, bytes);
    _mm_sfence();
}
#else
static void copy_past(void *to, const void *from, uint32_t bytes) { memcpy(to, from, bytes); }
#endif

static void copy(bool past, void *to, const void *from, uint32_t bytes)
{
    if (past)
        copy_past(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

static void learn(uint32_t *per_byte_ps, uint64_t took_ns, uint32_t bytes)
{
    uint32_t seen = (uint32_t)(took_ns * 1000 / bytes) + 1;
    /* large samples may come from preemption: they raise the average slowly, small ones lower it at once */
    *per_byte_ps =
        !*per_byte_ps || seen < *per_byte_ps ? (seen + *per_byte_ps) / (*per_byte_ps ? 2 : 1) : *per_byte_ps + (*per_byte_ps >> 3) + 1;
}

static void sample(weft_nt_copy *store, void *to, const void *from, uint32_t bytes)
{
    bool past = store->count / WEFT_STORE_SAMPLE % 2 ? !store->goes_past : store->goes_past;
    uint64_t start = weft_clock_ns();
    copy(past, to, from, bytes);
    learn(past ? &store->past_ps : &store->through_ps, weft_clock_ns() - start, bytes);
    if (store->past_ps && store->through_ps)
        store->goes_past = store->through_ps > WORTH * (uint64_t)store->past_ps;
}

void weft_nt_copy_long(weft_nt_copy *store, void *to, const void *from, uint32_t bytes)
{
    if (weft_unlikely(store->count++ % WEFT_STORE_SAMPLE == 0))
        sample(store, to, from, bytes);
    else
        copy(store->goes_past, to, from, bytes);
}
