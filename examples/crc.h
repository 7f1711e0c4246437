/* SPDX-License-Identifier: BSD-3-Clause
 * crc: CRC-32 (polynomial 0xEDB88320, as in zlib and Ethernet).
 */
#ifndef CRC_H
#define CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32 of `bytes` bytes. Not for the first use by two threads at once. */
uint32_t crc32_of(const void *data, size_t bytes);

#endif
