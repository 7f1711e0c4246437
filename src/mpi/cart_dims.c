/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cart_dims: MPI_Dims_create (MPI 5.0 8.5.2). Called by the generated entries without a lock; weft_dims_balance by the unit test too.
 * Method: windows [low, high] of divisors around the root of n, the narrowest first, until n has a factorization within one; then the first
 * factorization in lexicographic order. A number has at most 30 prime factors and, below 2^31, 1,600 divisors.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/topo.h"

enum { DIVISORS_MAX = 1600, PRIMES_MAX = 31 };

typedef struct factors {
    uint32_t primes[PRIMES_MAX]; /* ascending, with repetitions */
    uint32_t divisors[DIVISORS_MAX]; /* ascending */
    int prime_count, divisor_count;
    /* Searches that failed in the window number `window`: bit c of failed[i] says that divisors[i] has no c factors there. Valid if
     * failed_in[i] is that number. */
    uint32_t window, failed[DIVISORS_MAX], failed_in[DIVISORS_MAX];
} factors;

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void find_primes(uint32_t n, factors *f)
{
    f->prime_count = 0;
    for (uint32_t p = 2; (uint64_t)p * p <= n; p += p == 2 ? 1 : 2)
        for (; n % p == 0; n /= p)
            f->primes[f->prime_count++] = p;
    if (n > 1)
        f->primes[f->prime_count++] = n;
}

static void find_divisors(factors *f)
{
    int count = 1, before = 1;
    f->divisors[0] = 1;
    for (int i = 0; i < f->prime_count; i++) {
        /* a repeated prime multiplies only what the last one has added */
        int from = i && f->primes[i] == f->primes[i - 1] ? before : 0, end = count;
        before = count;
        for (int k = from; k < end; k++)
            f->divisors[count++] = f->divisors[k] * f->primes[i];
    }
    f->divisor_count = count;
    qsort(f->divisors, (size_t)count, sizeof *f->divisors, by_value);
    f->window = 0;
    memset(f->failed_in, 0, (size_t)count * sizeof *f->failed_in);
}

/* base^exponent, at most 2^32. */
static uint64_t power(uint64_t base, int exponent)
{
    uint64_t result = 1;
    for (; exponent > 0 && result < UINT64_C(1) << 32; exponent--)
        result *= base;
    return result < UINT64_C(1) << 32 ? result : UINT64_C(1) << 32;
}

static int first_not_below(const factors *f, uint32_t value)
{
    int low = 0, high = f->divisor_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (f->divisors[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Is n a product of `count` divisors in low..high? n is among the divisors; its primes are among primes[0..last]. The factor that has the
 * largest prime is chosen first: few divisors have it. No pair of n and count is searched twice. */
static bool search(factors *f, uint32_t n, int last, int count, uint32_t low, uint32_t high)
{
    uint32_t prime;
    int at;
    if (power(low, count) > n || power(high, count) < n)
        return false;
    if (count <= 1 || n == 1)
        return true; /* n == 1: low is 1 */
    at = first_not_below(f, n);
    if (f->failed_in[at] != f->window) {
        f->failed_in[at] = f->window;
        f->failed[at] = 0;
    }
    if (f->failed[at] >> count & 1)
        return false;
    while (n % f->primes[last])
        last--;
    prime = f->primes[last];
    for (int i = first_not_below(f, low > prime ? low : prime); i < f->divisor_count && f->divisors[i] <= high; i++) {
        uint32_t d = f->divisors[i];
        if (d % prime == 0 && n % d == 0 && search(f, n / d, last, count - 1, low, high))
            return true;
    }
    f->failed[at] |= UINT32_C(1) << count;
    return false;
}

static bool has_factors(factors *f, uint32_t n, int count, uint32_t low, uint32_t high)
{
    f->window++;
    return search(f, n, f->prime_count - 1, count, low, high);
}

/* The narrowest window low..high that has `count` factors of n; of equally narrow ones the lowest. Returns high. Whether a window has
 * factors is monotonic in its upper end. */
static uint32_t find_window(factors *f, uint32_t n, int count, uint32_t *low)
{
    uint32_t high = n, largest = f->primes[f->prime_count - 1];
    int i = f->divisor_count - 1;
    *low = 1;
    while (power(f->divisors[i], count) > n)
        i--;
    for (; i >= 0; i--) {
        uint32_t bottom = f->divisors[i], top = bottom + (high - *low);
        int begin = first_not_below(f, bottom > largest ? bottom : largest), end = first_not_below(f, top + 1) - 1;
        if (begin > end)
            break; /* lower windows are wider */
        if (!has_factors(f, n, count, bottom, f->divisors[end]))
            continue;
        while (begin < end) {
            int middle = (begin + end) / 2;
            if (has_factors(f, n, count, bottom, f->divisors[middle]))
                end = middle;
            else
                begin = middle + 1;
        }
        high = f->divisors[end];
        *low = bottom;
    }
    return high;
}

void weft_dims_balance(uint32_t n, int count, int *dims)
{
    factors f;
    uint32_t low, high;
    int done = 0;
    find_primes(n, &f);
    if (count >= f.prime_count) { /* a prime for each dimension, and ones */
        for (int i = 0; i < count; i++)
            dims[i] = i < f.prime_count ? (int)f.primes[f.prime_count - 1 - i] : 1;
        return;
    }
    find_divisors(&f);
    high = find_window(&f, n, count, &low);
    for (; done < count; done++) {
        int left = count - done - 1, i = first_not_below(&f, low);
        while (power(f.divisors[i], left + 1) < n || n % f.divisors[i] ||
               !has_factors(&f, n / f.divisors[i], left, low, f.divisors[i]))
            i++;
        high = f.divisors[i] < high ? f.divisors[i] : high;
        dims[done] = (int)f.divisors[i];
        n /= f.divisors[i];
    }
}

int weft_mpi_dims_create(int nnodes, int ndims, int *dims)
{
    uint64_t fixed = 1;
    int zeros = 0, *found;
    if (nnodes < 1)
        return weft_fail(WEFT_E_ARG, "nnodes is %d: a grid has at least one process", nnodes);
    if (ndims < 0 || (ndims == 0 && nnodes != 1))
        return weft_fail(WEFT_E_DIMS, "ndims is %d: it must not be negative, and a grid of 0 dimensions has 1 process, not %d", ndims,
                         nnodes);
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0)
            return weft_fail(WEFT_E_DIMS, "dims[%d] is %d: it must be positive, or 0 where MPI_Dims_create shall set it", i, dims[i]);
        zeros += dims[i] == 0;
        if (dims[i] && fixed <= (uint64_t)nnodes)
            fixed *= (uint64_t)dims[i];
    }
    if ((uint64_t)nnodes % fixed || (zeros == 0 && fixed != (uint64_t)nnodes))
        return weft_fail(WEFT_E_DIMS, "nnodes is %d: the product of the dims that are set does not %s it", nnodes,
                         zeros ? "divide" : "equal");
    if (zeros == 0)
        return 0;
    found = malloc((size_t)zeros * sizeof *found);
    if (!found)
        return weft_fail(WEFT_E_NOMEM, "no memory for %d dimensions", zeros);
    weft_dims_balance((uint32_t)((uint64_t)nnodes / fixed), zeros, found);
    for (int i = 0, k = 0; i < ndims; i++)
        if (!dims[i])
            dims[i] = found[k++];
    free(found);
    return 0;
}
