/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sha256: SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104). Used between mpirun and its daemons; ranks do not use it.
 */
#ifndef WEFT_BASE_SHA256_H
#define WEFT_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_SHA256_BYTES 32

typedef struct weft_sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
} weft_sha256;

void weft_sha256_begin(weft_sha256 *self);
void weft_sha256_add(weft_sha256 *self, const void *data, size_t bytes);
void weft_sha256_end(weft_sha256 *self, unsigned char digest[WEFT_SHA256_BYTES]);

typedef struct weft_hmac {
    weft_sha256 inner;
    unsigned char outer_key[64];
} weft_hmac;

/* HMAC with a key of 32 bytes. */
void weft_hmac_begin(weft_hmac *self, const unsigned char key[WEFT_SHA256_BYTES]);
void weft_hmac_add(weft_hmac *self, const void *data, size_t bytes);
void weft_hmac_end(weft_hmac *self, unsigned char code[WEFT_SHA256_BYTES]);

/* Compares in constant time: the time does not depend on the contents. */
bool weft_bytes_equal(const void *a, const void *b, size_t bytes);

#endif
