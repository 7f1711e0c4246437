/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crc: CRC32C (Castagnoli polynomial, as in iSCSI and NVMe), by the CPU's instruction if it has one. For checksums of messages
 * (p2p/msg_csum), headers (core/hdr_csum) and shared-memory collectives (collectives/shmcoll_csum).
 * All implementations return the same values. Stateless; any thread.
 */
#ifndef WEFT_BASE_CRC_H
#define WEFT_BASE_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Extends `crc`, the CRC of the preceding bytes (0: none), by `bytes` bytes. */
uint32_t weft_crc32c(uint32_t crc, const void *data, size_t bytes);

/* Finds the single wrong bit that explains `difference`, the XOR of two CRCs of `bytes` bytes. true: *bit is its number, from 0, the least
 * bit of the first byte; 8 * bytes and up to 31 more are bits of the CRC itself. false: no single bit explains it. Other damage looks
 * like one wrong bit in one of 2^32 / (8 * bytes) cases. Time is linear in `bytes`: for errors only. */
bool weft_crc32c_find_bit(uint32_t difference, uint64_t bytes, uint64_t *bit);

/* All implementations, best first, for tests; the last one works on every CPU. Ends with name NULL. */
typedef struct weft_crc_way {
    const char *name;
    bool (*works)(void);
    uint32_t (*sum)(uint32_t crc, const void *data, size_t bytes);
} weft_crc_way;
extern const weft_crc_way weft_crc_ways[];

#endif
