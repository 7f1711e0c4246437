/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctrl_pack: packs and unpacks the bodies of control frames (ctrl_conn) and of messages between PMIx servers. Numbers are little-endian.
 * A failure is sticky: it is checked once, at the end.
 */
#ifndef WEFT_MPIRUN_CTRL_PACK_H
#define WEFT_MPIRUN_CTRL_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/mpirun/buffer.h"

typedef struct pack {
    buffer bytes;
    bool has_failed;
} pack;
void pack_u32(pack *self, uint32_t value);
void pack_u64(pack *self, uint64_t value);
void pack_bytes(pack *self, const void *bytes, size_t count); /* without a length */
void pack_text(pack *self, const char *text);                 /* NULL is unpacked as NULL */

typedef struct unpack {
    const char *at;
    size_t left;
    bool has_failed;
} unpack;
uint32_t unpack_u32(unpack *self);
uint64_t unpack_u64(unpack *self);
/* Points into the frame; NULL also after a failure. */
const char *unpack_text(unpack *self);

#endif
