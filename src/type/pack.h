/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pack: converts between memory form (count elements of a type at buf) and packed form (bytes in type-map order), from any packed
 * offset: a frame is packed in place, and a transfer may resume anywhere. Any thread; keeps no state and takes no lock.
 */
#ifndef WEFT_TYPE_PACK_H
#define WEFT_TYPE_PACK_H

#include <stdint.h>

#include "type/type.h"

/* Packs bytes [offset, offset + bytes) of the packed form into out. O(blocks touched + depth). */
void weft_pack(const weft_type *type, const void *buf, uint64_t count, uint64_t offset, uint64_t bytes, void *out);
/* Unpacks bytes [offset, offset + bytes) of the packed form from in. */
void weft_unpack(const weft_type *type, void *buf, uint64_t count, uint64_t offset, uint64_t bytes, const void *in);
/* Copies between two memory forms of equal packed size, which must not overlap. */
void weft_copy(const weft_type *to_type, void *to, uint64_t to_count, const weft_type *from_type, const void *from, uint64_t from_count);

#endif
