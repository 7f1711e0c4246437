/* SPDX-License-Identifier: BSD-3-Clause
 *
 * signature: the sequence of basic types in a datatype, without displacements (MPI 5.0 5.1), and its external32 form (14.5.2). Both walk
 * the envelopes of the constructors. A pair type counts as two basic elements. Called by src/mpi; any thread, no state.
 */
#ifndef WEFT_TYPE_SIGNATURE_H
#define WEFT_TYPE_SIGNATURE_H

#include <stdint.h>

#include "type/type.h"

/* Number of basic elements in the first `bytes` bytes of the packed form of any number of elements; -1: it ends within a basic element. */
int64_t weft_type_elements_in(const weft_type *type, uint64_t bytes);
/* Packed bytes of the first `elements` basic elements; -1: more than 63 bits, or the type has none. */
int64_t weft_type_bytes_of(const weft_type *type, int64_t elements);

/* Bytes of one element of the type in external32. 0 or WEFT_E_TOOLARGE. */
int weft_external_size(const weft_type *type, int64_t *bytes);
/* Converts count elements between memory and external32, in order of the type map, without holes. The buffers have room for all. */
void weft_external_pack(const weft_type *type, const void *buf, uint64_t count, void *out);
void weft_external_unpack(const weft_type *type, void *buf, uint64_t count, const void *in);

#endif
