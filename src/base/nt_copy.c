/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nt_copy: see nt_copy.h.
 */
#include "base/nt_copy.h"

#include "base/clock.h"

#define WORTH 2   /* without reports: factor by which non-temporal stores must be faster for the sender, as they cost the reader more */
#define LATE 4    /* samples that wait for a report */
#define PS_MAX (1u << 30)
#define CHANGED 2 /* factor by which the kind in use has become slower: then the other kind is sampled at once */

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

void weft_nt_copy_learn(uint32_t *per_byte_ps, uint64_t took_ns, uint32_t bytes)
{
    uint64_t ps = bytes ? took_ns * 1000 / bytes : 0;
    uint32_t seen = ps < PS_MAX ? (uint32_t)ps + 1 : PS_MAX;
    /* large samples may come from preemption: they raise the average slowly, small ones lower it at once */
    *per_byte_ps =
        !*per_byte_ps || seen < *per_byte_ps ? (seen + *per_byte_ps) / (*per_byte_ps ? 2 : 1) : *per_byte_ps + (*per_byte_ps >> 3) + 1;
}

/* The next trial is due the later the longer the kind in use stays. */
static void use(weft_nt_copy *store, uint8_t kind)
{
    uint32_t trial = store->trial ? store->trial : 1;
    if (kind != store->used || !store->rest)
        store->rest = (uint16_t)trial;
    else if (store->rest < trial * WEFT_STORE_REST_MAX)
        store->rest = (uint16_t)(store->rest * 2);
    store->left = store->rest;
    store->used = store->current = kind;
    store->compared_ps = store->write_ps[kind];
}

void weft_nt_copy_report(weft_nt_copy *store, uint32_t cached_ps, uint32_t past_ps)
{
    uint64_t cached = (uint64_t)store->write_ps[WEFT_STORE_CACHED] + cached_ps, past = (uint64_t)store->write_ps[WEFT_STORE_PAST] + past_ps;
    if (!cached_ps || !past_ps) {
        if (store->left && store->left--)
            return;
        store->is_due = false;
        use(store, store->used);
        return;
    }
    store->is_due = false;
    use(store, 10 * cached > (store->used ? store->worth * 3 / 4 : store->worth) * past);
}

/* Ends a trial, or counts down to the next one. */
static void count_sample(weft_nt_copy *store)
{
    if (store->current != store->used) {
        if (++store->tried < store->trial)
            return;
        store->tried = 0;
        store->current = store->used;
        if (store->worth) {
            store->is_due = true;
            store->left = LATE;
        } else
            use(store, store->write_ps[WEFT_STORE_CACHED] > WORTH * (uint64_t)store->write_ps[WEFT_STORE_PAST]);
    } else if (!store->is_due) {
        if (store->write_ps[store->used] > CHANGED * (uint64_t)store->compared_ps)
            store->left = store->rest = 0; /* the ranks may have moved to other CPUs */
        if (store->left)
            store->left--;
        else
            store->current = !store->used;
    }
}

static uint32_t sample(weft_nt_copy *store, void *to, const void *from, uint32_t bytes)
{
    uint8_t kind = store->current;
    uint64_t start = weft_clock_ns();
    copy(kind, to, from, bytes);
    weft_nt_copy_learn(&store->write_ps[kind], weft_clock_ns() - start, bytes);
    count_sample(store);
    return WEFT_COPY_TIMED | (kind ? WEFT_COPY_PAST : 0);
}

uint32_t weft_nt_copy_long(weft_nt_copy *store, void *to, const void *from, uint32_t bytes)
{
    if (weft_unlikely(store->count++ % WEFT_STORE_SAMPLE == 0))
        return sample(store, to, from, bytes);
    copy(store->current, to, from, bytes);
    return store->current ? WEFT_COPY_PAST : 0;
}
