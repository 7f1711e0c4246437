/* SPDX-License-Identifier: BSD-3-Clause
 *
 * crc: CRC32C (the Castagnoli polynomial, as iSCSI and NVMe have it), by the CPU's instruction where there is one. For messages
 * that are checked from end to end (p2p/msg_csum). All ways give the same sums, so peers with different CPUs understand each other.
 */
#ifndef WEFT_BASE_CRC_H
#define WEFT_BASE_CRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sum of `bytes` more bytes behind those that `crc` is the sum of; 0 is the sum of nothing. */
uint32_t weft_crc32c(uint32_t crc, const void *data, size_t bytes);

/* Which single bit explains that sums of `bytes` bytes differ by `difference` (their XOR)? true: bit *bit (from 0, the least bit
 * of the first byte) may be the only wrong one; 8 * bytes and up to 31 more stand for bits of the sum itself. false: no single bit
 * does. Other damage may look like one wrong bit by chance: once in 2^32 / (8 * bytes) cases. Takes about a nanosecond for each
 * bit: for errors only. */
bool weft_crc32c_find_bit(uint32_t difference, uint64_t bytes, uint64_t *bit);

/* Every way that was built, for tests; the last one works everywhere. Ends with name NULL. */
typedef struct weft_crc_way {
    const char *name;
    bool (*works)(void);
    uint32_t (*sum)(uint32_t crc, const void *data, size_t bytes);
} weft_crc_way;
extern const weft_crc_way weft_crc_ways[];

#endif
