/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pack: moves data between its form in memory (count elements of a type at buf) and its packed form (bytes in type-map order),
 * from any packed offset, so that a chunk can be filled where it travels and a transfer may stop and go on anywhere.
 */
#ifndef WEFT_TYPE_PACK_H
#define WEFT_TYPE_PACK_H

#include <stdint.h>

#include "type/type.h"

/* Packs bytes [offset, offset + bytes) of the packed form to out. No state is kept; cost is O(blocks touched + depth). */
void weft_pack(const weft_type *type, const void *buf, uint64_t count, uint64_t offset, uint64_t bytes, void *out);
/* The other way. */
void weft_unpack(const weft_type *type, void *buf, uint64_t count, uint64_t offset, uint64_t bytes, const void *in);
/* Copies between two memory forms with the same packed size (a rank to itself, collectives' own block). */
void weft_copy(const weft_type *to_type, void *to, uint64_t to_count, const weft_type *from_type, const void *from, uint64_t from_count);

#endif
