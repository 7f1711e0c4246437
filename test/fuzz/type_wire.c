/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_wire: a datatype as another process has serialized it (type/wire). One that is accepted may be used: its data lie within the bounds
 * that it claims, in as many bytes as it claims, so packing and unpacking stay within memory of these bounds.
 */
#include "base/status.h"
#include "test/fuzz/fuzz.h"
#include "type/pack.h"
#include "type/runs.h"
#include "type/wire.h"

#define SPAN_MAX (1 << 20) /* bytes of a type that is used */
#define RUNS_MAX 100000    /* blocks of a type that is used */

static void use(const weft_type *type, const char *memory, char *packed, uint64_t count)
{
    uint64_t bytes = (uint64_t)type->size * count, seen = 0;
    char *at = (char *)((uintptr_t)memory - (uintptr_t)type->true_lb);
    weft_runs runs;

    weft_runs_begin(&runs, type, at, count, 0, bytes);
    for (uint32_t i = 0; i < RUNS_MAX && weft_runs_next(&runs); i++)
        seen += runs.bytes;
    if (seen > bytes)
        abort();
    if (seen < bytes)
        return;
    weft_pack(type, at, count, 0, bytes, packed);
    weft_unpack(type, at, count, 0, bytes, packed);
    weft_pack(type, at, count, bytes / 2, bytes - bytes / 2, packed);
    weft_unpack(type, at, count, bytes / 3, bytes / 3, packed);
}

/* Encodes it again: what was accepted is a layout like any other. */
static void again(const weft_type *type)
{
    weft_type *second;
    uint64_t bytes;
    void *wire;

    if (weft_type_encode(type, &wire, &bytes))
        return;
    if (weft_type_decode(wire, bytes, &second))
        abort();
    weft_type_drop(second);
    free(wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_type *type;

    if (weft_type_decode(data, size, &type))
        return 0;
    uint64_t span = (uint64_t)type->true_extent, count = type->extent >= 0 && type->extent < SPAN_MAX ? 2 : 1;
    if (type->true_extent < 0 || type->size < 0)
        abort();
    span += count > 1 ? (uint64_t)type->extent : 0;
    if (span <= SPAN_MAX && type->size <= SPAN_MAX) {
        char *memory = calloc(1, span + 1), *packed = calloc(1, (size_t)type->size * count + 1);
        use(type, memory, packed, count);
        free(memory);
        free(packed);
    }
    again(type);
    weft_type_drop(type);
    return 0;
}
