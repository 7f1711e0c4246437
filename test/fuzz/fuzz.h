/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz: what the harnesses of test/fuzz share. A harness is a program with LLVMFuzzerTestOneInput: it hands one input, as another process
 * might have written it, to one parser. It is linked with driver.c, which replays the kept inputs, or with libFuzzer (test/fuzz/run).
 */
#ifndef WEFT_TEST_FUZZ_H
#define WEFT_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Handles one input. Keeps nothing of an earlier one. Returns 0. The declaration is libFuzzer's. */
__attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The driver handles every n-th cut and change of an input; 1 unless a slow harness defines it. */
extern unsigned fuzz_stride;

/* An input that is read from its start. */
typedef struct fuzz_input {
    const uint8_t *at;
    size_t left;
} fuzz_input;

/* Copies up to `bytes` into `to`; the rest is zero. Returns how many were left. */
static inline size_t fuzz_take(fuzz_input *self, void *to, size_t bytes)
{
    size_t some = self->left < bytes ? self->left : bytes;

    memset(to, 0, bytes);
    if (some)
        memcpy(to, self->at, some);
    self->at += some;
    self->left -= some;
    return some;
}

static inline uint32_t fuzz_take_u32(fuzz_input *self)
{
    uint32_t value;

    fuzz_take(self, &value, sizeof(value));
    return value;
}

/* Copies the next bytes, at most `max`, into memory of just that size, so that a sanitizer sees a read behind them. The caller frees it. */
static inline void *fuzz_take_copy(fuzz_input *self, size_t max, size_t *bytes)
{
    void *copy;

    *bytes = self->left < max ? self->left : max;
    copy = malloc(*bytes ? *bytes : 1);
    if (!copy)
        abort();
    fuzz_take(self, copy, *bytes);
    return copy;
}

/* The whole input as a string. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
