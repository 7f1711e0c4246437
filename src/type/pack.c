/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pack: interpreter of layouts (layout.h). Finds the packed offset by division and binary search, then moves runs of blocks by loops
 * specialized for the block length. Both directions share one source, compiled twice. Buffers must not overlap and may be unaligned.
 */
#include "type/pack.h"

#include <string.h>

#include "base/macros.h"
#include "type/layout.h"

#define BOUNCE 4096 /* bytes on the stack of weft_copy; the simulator's fibers have small stacks */
#define PAGE 4096  /* bytes: a way of most first-level caches; strides by multiples fall into one set */
#define WAYS 8     /* lines of a set, at least */
#define COLUMN_MIN 2048 /* bytes: strides by multiples fall into two sets or one */
#define COLUMN_BYTES 16 /* of a block in such a stride, at most */
#define PAGE_COLUMN_PACK_BYTES 24   /* ... if the stride is a multiple of PAGE */
#define PAGE_COLUMN_UNPACK_BYTES 32
#define TILE 64     /* elements of a TABLE moved together column by column, so that they stay in L1 */

/* Integer arithmetic: MPI_BOTTOM (NULL) plus an absolute displacement is legal. */
static inline char *at(const void *base, int64_t disp)
{
    return (char *)((uintptr_t)base + (uintptr_t)disp);
}

/* One block between memory and the packed form. bytes may be a constant. */
static inline __attribute__((always_inline)) void move(char *memory, char *packed, size_t bytes, bool packing)
{
    memcpy(packing ? packed : memory, packing ? memory : packed, bytes);
}

/* A block of variable length: short ones by two overlapping moves, long ones by memcpy. */
static inline __attribute__((always_inline)) void move_any(char *memory, char *packed, size_t bytes, bool packing)
{
    if (bytes > 64) {
        move(memory, packed, bytes, packing);
    } else if (bytes >= 32) {
        char *from = packing ? memory : packed, *to = packing ? packed : memory, head[32], tail[32];
        memcpy(head, from, 32);
        memcpy(tail, from + bytes - 32, 32);
        memcpy(to, head, 32);
        memcpy(to + bytes - 32, tail, 32);
    } else if (bytes >= 16) {
        move(memory, packed, 16, packing);
        move(memory + bytes - 16, packed + bytes - 16, 16, packing);
    } else if (bytes >= 8) {
        move(memory, packed, 8, packing);
        move(memory + bytes - 8, packed + bytes - 8, 8, packing);
    } else if (bytes >= 4) {
        move(memory, packed, 4, packing);
        move(memory + bytes - 4, packed + bytes - 4, 4, packing);
    } else {
        for (size_t i = 0; i < bytes; i++)
            move(memory + i, packed + i, 1, packing);
    }
}

/* Moves count whole blocks, `stride` apart in memory and `step` in the packed form. The switch is outside of the loops, so that each
 * loop moves a constant number of bytes. */
#define BLOCKS_OF(constant)                                                                                                        \
    case constant:                                                                                                                 \
        _Pragma("GCC unroll 8") for (uint64_t i = 0; i < count; i++, memory = at(memory, stride), packed += step)                   \
            move(memory, packed, constant, packing);                                                                               \
        break
static inline __attribute__((always_inline)) void blocks_move(char *memory, int64_t stride, uint64_t count, uint64_t bytes,
                                                              char *packed, uint64_t step, bool packing)
{
    switch (bytes) {
        BLOCKS_OF(1);
        BLOCKS_OF(2);
        BLOCKS_OF(4);
        BLOCKS_OF(8);
        BLOCKS_OF(12);
        BLOCKS_OF(16);
        BLOCKS_OF(20);
        BLOCKS_OF(24);
        BLOCKS_OF(32);
        BLOCKS_OF(40);
        BLOCKS_OF(48);
        BLOCKS_OF(56);
        BLOCKS_OF(64);
    default:
        for (uint64_t i = 0; i < count; i++, memory = at(memory, stride), packed += step)
            move_any(memory, packed, bytes, packing);
    }
}

/* Blocks whose lines fall into few sets of each cache, as a column of a matrix whose rows are 2 KiB or a multiple: more of them in flight
 * than the sets have ways evict one another's lines. When packing, a fence after as many as fit limits the loads in flight; when unpacking,
 * stores to the stack beside each block, `spacers` of them, limit the stores. (Such stores would also keep the packed bytes waiting, whose
 * lines may have to be taken back from another CPU.) */
static inline bool is_column(int64_t stride, uint64_t count, uint64_t bytes, uint64_t page_bytes_max)
{
    if (weft_likely(stride % COLUMN_MIN))
        return false;
    return stride % PAGE ? bytes <= COLUMN_BYTES && count > 4 * WAYS : bytes <= page_bytes_max && count > 2 * WAYS;
}

static inline void fence_loads(void)
{
#ifdef __x86_64__
    __builtin_ia32_lfence();
#endif
}

#define COLUMN_PACK_OF(bytes, move)                                                                                                \
    for (; count >= batch; count -= batch) {                                                                                       \
        for (uint64_t i = 0; i < batch; i++, memory = at(memory, stride), packed += step)                                          \
            move(memory, packed, bytes, true);                                                                                     \
        fence_loads();                                                                                                             \
    }                                                                                                                              \
    for (; count; count--, memory = at(memory, stride), packed += step)                                                            \
        move(memory, packed, bytes, true);
static __attribute__((noinline)) void column_pack(char *memory, int64_t stride, uint64_t count, uint64_t bytes, char *packed,
                                                  uint64_t step)
{
    uint64_t batch = stride % PAGE ? 2 * WAYS : WAYS;
    if (bytes == 8) {
        COLUMN_PACK_OF(8, move)
    } else if (bytes == 16) {
        COLUMN_PACK_OF(16, move)
    } else {
        COLUMN_PACK_OF(bytes, move_any)
    }
}

#define COLUMN_UNPACK_OF(bytes, move)                                                                                              \
    for (uint64_t i = 0; i < count; i++, memory = at(memory, stride), packed += step) {                                            \
        move(memory, packed, bytes, false);                                                                                        \
        _Pragma("GCC unroll 4") for (int s = 0; s < spacers; s++)                                                                  \
            spacer = i;                                                                                                            \
    }
static inline __attribute__((always_inline)) void column_unpack_spaced(char *memory, int64_t stride, uint64_t count, uint64_t bytes,
                                                                       char *packed, uint64_t step, int spacers)
{
    volatile uint64_t spacer;
    if (bytes == 8) {
        COLUMN_UNPACK_OF(8, move)
    } else if (bytes == 16) {
        COLUMN_UNPACK_OF(16, move)
    } else {
        COLUMN_UNPACK_OF(bytes, move_any)
    }
    (void)spacer;
}

static __attribute__((noinline)) void column_unpack(char *memory, int64_t stride, uint64_t count, uint64_t bytes, char *packed,
                                                    uint64_t step)
{
    if (stride % PAGE)
        column_unpack_spaced(memory, stride, count, bytes, packed, step, 4);
    else
        column_unpack_spaced(memory, stride, count, bytes, packed, step, 2);
}

static __attribute__((noinline)) void blocks_pack(char *memory, int64_t stride, uint64_t count, uint64_t bytes, char *packed,
                                                 uint64_t step)
{
    if (weft_unlikely(is_column(stride, count, bytes, PAGE_COLUMN_PACK_BYTES)))
        column_pack(memory, stride, count, bytes, packed, step);
    else
        blocks_move(memory, stride, count, bytes, packed, step, true);
}

static __attribute__((noinline)) void blocks_unpack(char *memory, int64_t stride, uint64_t count, uint64_t bytes, char *packed,
                                                   uint64_t step)
{
    if (weft_unlikely(is_column(stride, count, bytes, PAGE_COLUMN_UNPACK_BYTES)))
        column_unpack(memory, stride, count, bytes, packed, step);
    else
        blocks_move(memory, stride, count, bytes, packed, step, false);
}

/* Moves packed bytes [skip, skip + bytes) of a node at `memory`. */
static void node_pack(const weft_type_layout *node, char *memory, uint64_t skip, uint64_t bytes, char *packed);
static void node_unpack(const weft_type_layout *node, char *memory, uint64_t skip, uint64_t bytes, char *packed);

static inline __attribute__((always_inline)) void node_move(const weft_type_layout *node, char *memory, uint64_t skip, uint64_t bytes,
                                                            char *packed, bool packing)
{
    if (packing)
        node_pack(node, memory, skip, bytes, packed);
    else
        node_unpack(node, memory, skip, bytes, packed);
}

static inline __attribute__((always_inline)) void run_move(const weft_type_layout *node, char *memory, uint64_t skip, uint64_t bytes,
                                                           char *packed, bool packing)
{
    uint64_t block = node->bytes, whole, part;
    if (node->count <= 1) {
        move_any(at(memory, (int64_t)skip), packed, bytes, packing);
        return;
    }
    if (skip) {
        uint64_t first = skip / block;
        memory = at(memory, (int64_t)first * node->stride);
        skip -= first * block;
        if (skip) {
            part = block - skip < bytes ? block - skip : bytes;
            move_any(at(memory, (int64_t)skip), packed, part, packing);
            memory = at(memory, node->stride);
            packed += part;
            bytes -= part;
        }
    }
    whole = bytes == node->size ? node->count : bytes / block;
    if (packing)
        blocks_pack(memory, node->stride, whole, block, packed, block);
    else
        blocks_unpack(memory, node->stride, whole, block, packed, block);
    part = bytes - whole * block;
    if (part)
        move_any(at(memory, (int64_t)whole * node->stride), packed + whole * block, part, packing);
}

/* Moves whole elements of a TABLE column by column, each with the loop for its block length. */
static inline __attribute__((always_inline)) void table_move(const weft_type_layout *table, char *memory, int64_t stride,
                                                             uint64_t count, char *packed, bool packing)
{
    while (count) {
        uint64_t some = count < TILE ? count : TILE;
        for (uint64_t j = 0; j < table->count; j++) {
            const weft_layout_block *b = &table->blocks[j];
            char *column = at(memory, table->disp + b->disp);
            if (packing)
                blocks_pack(column, stride, some, b[1].start - b->start, packed + b->start, table->size);
            else
                blocks_unpack(column, stride, some, b[1].start - b->start, packed + b->start, table->size);
        }
        memory = at(memory, (int64_t)some * stride);
        packed += some * table->size;
        count -= some;
    }
}

static inline __attribute__((always_inline)) void loop_move(const weft_type_layout *node, char *memory, uint64_t skip, uint64_t bytes,
                                                            char *packed, bool packing)
{
    uint64_t first = skip / node->bytes;
    memory = at(memory, (int64_t)first * node->stride);
    skip -= first * node->bytes;
    while (bytes) {
        uint64_t part, whole = !skip && node->child->kind == WEFT_LAYOUT_TABLE ? bytes / node->bytes : 0;
        if (whole) {
            table_move(node->child, memory, node->stride, whole, packed, packing);
            memory = at(memory, (int64_t)whole * node->stride);
            packed += whole * node->bytes;
            bytes -= whole * node->bytes;
            continue;
        }
        part = node->bytes - skip < bytes ? node->bytes - skip : bytes;
        node_move(node->child, memory, skip, part, packed, packing);
        memory = at(memory, node->stride);
        packed += part;
        bytes -= part;
        skip = 0;
    }
}

static inline __attribute__((always_inline)) void list_move(const weft_type_layout *node, char *memory, uint64_t skip, uint64_t bytes,
                                                            char *packed, bool packing)
{
    const weft_layout_block *b = &node->blocks[skip ? weft_layout_list_find(node, skip) : 0];
    skip -= b->start;
    for (; bytes; b++) {
        uint64_t left = b[1].start - b->start - skip, part = left < bytes ? left : bytes;
        if (b->child)
            node_move(b->child, at(memory, b->disp), skip, part, packed, packing);
        else
            move_any(at(memory, b->disp + (int64_t)skip), packed, part, packing);
        packed += part;
        bytes -= part;
        skip = 0;
    }
}

/* Moves count whole blocks at places. */
#define PLACES_OF(constant)                                                                                                        \
    case constant:                                                                                                                 \
        _Pragma("GCC unroll 4") for (uint64_t i = 0; i < count; i++, packed += constant)                                           \
            move(at(memory, disps[i]), packed, constant, packing);                                                                 \
        break
static inline __attribute__((always_inline)) void places_move(const int64_t *disps, uint64_t count, uint64_t bytes, char *memory,
                                                               char *packed, bool packing)
{
    switch (bytes) {
        PLACES_OF(1);
        PLACES_OF(2);
        PLACES_OF(4);
        PLACES_OF(8);
        PLACES_OF(12);
        PLACES_OF(16);
        PLACES_OF(20);
        PLACES_OF(24);
        PLACES_OF(32);
        PLACES_OF(40);
        PLACES_OF(48);
        PLACES_OF(56);
        PLACES_OF(64);
    default:
        for (uint64_t i = 0; i < count; i++, packed += bytes)
            move_any(at(memory, disps[i]), packed, bytes, packing);
    }
}

static __attribute__((noinline)) void places_pack(const int64_t *disps, uint64_t count, uint64_t bytes, char *memory, char *packed)
{
    places_move(disps, count, bytes, memory, packed, true);
}

static __attribute__((noinline)) void places_unpack(const int64_t *disps, uint64_t count, uint64_t bytes, char *memory, char *packed)
{
    places_move(disps, count, bytes, memory, packed, false);
}

static inline __attribute__((always_inline)) void places_move_part(const weft_type_layout *node, char *memory, uint64_t skip,
                                                                   uint64_t bytes, char *packed, bool packing)
{
    uint64_t block = node->bytes, first = skip / block, whole, part;
    const int64_t *disps = node->disps + first;
    skip -= first * block;
    if (skip) {
        part = block - skip < bytes ? block - skip : bytes;
        move_any(at(memory, *disps++ + (int64_t)skip), packed, part, packing);
        packed += part;
        bytes -= part;
    }
    whole = bytes / block;
    if (packing)
        places_pack(disps, whole, block, memory, packed);
    else
        places_unpack(disps, whole, block, memory, packed);
    part = bytes - whole * block;
    if (part)
        move_any(at(memory, disps[whole]), packed + whole * block, part, packing);
}

#define NODE_BODY(packing)                                                                                                         \
    memory = at(memory, node->disp);                                                                                               \
    if (node->kind == WEFT_LAYOUT_RUN)                                                                                             \
        run_move(node, memory, skip, bytes, packed, packing);                                                                      \
    else if (node->kind == WEFT_LAYOUT_LOOP)                                                                                       \
        loop_move(node, memory, skip, bytes, packed, packing);                                                                     \
    else if (node->kind == WEFT_LAYOUT_PLACES)                                                                                     \
        places_move_part(node, memory, skip, bytes, packed, packing);                                                           \
    else                                                                                                                           \
        list_move(node, memory, skip, bytes, packed, packing);

static void node_pack(const weft_type_layout *node, char *memory, uint64_t skip, uint64_t bytes, char *packed)
{
    NODE_BODY(true)
}

static void node_unpack(const weft_type_layout *node, char *memory, uint64_t skip, uint64_t bytes, char *packed)
{
    NODE_BODY(false)
}

void weft_pack(const weft_type *type, const void *buf, uint64_t count, uint64_t offset, uint64_t bytes, void *out)
{
    weft_type_layout all;
    if (!bytes)
        return;
    if (type->is_dense) {
        memcpy(out, (const char *)buf + offset, bytes);
        return;
    }
    weft_layout_repeat(&all, type->layout, count, type->extent);
    node_pack(&all, (char *)buf, offset, bytes, out);
}

void weft_unpack(const weft_type *type, void *buf, uint64_t count, uint64_t offset, uint64_t bytes, const void *in)
{
    weft_type_layout all;
    if (!bytes)
        return;
    if (type->is_dense) {
        memcpy((char *)buf + offset, in, bytes);
        return;
    }
    weft_layout_repeat(&all, type->layout, count, type->extent);
    node_unpack(&all, buf, offset, bytes, (char *)in);
}

void weft_copy(const weft_type *to_type, void *to, uint64_t to_count, const weft_type *from_type, const void *from, uint64_t from_count)
{
    uint64_t to_bytes = (uint64_t)to_type->size * to_count, bytes = (uint64_t)from_type->size * from_count;
    char bounce[BOUNCE];
    if (to_bytes < bytes)
        bytes = to_bytes;
    if (to == from && to_type == from_type)
        return;
    if (to_type->is_dense) {
        weft_pack(from_type, from, from_count, 0, bytes, to);
        return;
    }
    if (from_type->is_dense) {
        weft_unpack(to_type, to, to_count, 0, bytes, from);
        return;
    }
    for (uint64_t done = 0; done < bytes;) {
        uint64_t part = bytes - done < BOUNCE ? bytes - done : BOUNCE;
        weft_pack(from_type, from, from_count, done, part, bounce);
        weft_unpack(to_type, to, to_count, done, part, bounce);
        done += part;
    }
}
