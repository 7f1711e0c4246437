/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type: table of predefined datatypes; references, commit and envelope of the others. Reference counts are atomic because a type
 * belongs to no worker: two threads may use it in two workers.
 */
#include "type/type.h"

#include <stdlib.h>
#include <string.h>

#include "base/arith.h"
#include "base/status.h"
#include "type/layout.h"
#include "type/type_internal.h"

typedef struct weft_float16_pair { weft_float16 re, im; } weft_float16_pair;
typedef struct weft_float128_pair { weft_float128 re, im; } weft_float128_pair;

/* Value and index, laid out as a C struct: there may be padding between and after them. */
#define PAIR(value, name_, first_type, second_type)                                                                                \
    struct pair_##name_ { first_type v; second_type i; };                                                                          \
    static const weft_layout_block blocks_##name_[3] = {                                                                          \
        {.disp = 0, .start = 0},                                                                                                   \
        {.disp = offsetof(struct pair_##name_, i), .start = sizeof(first_type)},                                                   \
        {.start = sizeof(first_type) + sizeof(second_type)}};                                                                      \
    static const weft_type_layout layout_##name_ = {                                                                              \
        .kind = offsetof(struct pair_##name_, i) == sizeof(first_type) ? WEFT_LAYOUT_RUN : WEFT_LAYOUT_TABLE,                      \
        .size = sizeof(first_type) + sizeof(second_type),                                                                          \
        .count = offsetof(struct pair_##name_, i) == sizeof(first_type) ? 1 : 2,                                                   \
        .bytes = sizeof(first_type) + sizeof(second_type),                                                                         \
        .blocks = blocks_##name_};                                                                                                 \
    enum { dense_##name_ = sizeof(struct pair_##name_) == sizeof(first_type) + sizeof(second_type) };                              \
    static const weft_type type_##name_ = {                                                                                        \
        .object = {.magic = WEFT_TYPE_MAGIC, .refs = 1}, .handle = value, .is_committed = true, .is_predefined = true,             \
        .is_dense = dense_##name_, .class_ = WEFT_CLASS_PAIR, .basic_handle = value,                                               \
        .size = sizeof(first_type) + sizeof(second_type), .extent = sizeof(struct pair_##name_),                                   \
        .count_max = WEFT_TYPE_SPAN_MAX / sizeof(struct pair_##name_),                                                             \
        .true_extent = offsetof(struct pair_##name_, i) + sizeof(second_type), .elements = 2,                                      \
        .layout = dense_##name_ ? NULL : &layout_##name_, .name = #name_, .align = __alignof__(struct pair_##name_)};
#define BASIC(value, name_, c_type, kind, group, is_there)                                                                         \
    static const weft_type type_##name_ = {                                                                                        \
        .object = {.magic = WEFT_TYPE_MAGIC, .refs = 1}, .handle = value, .is_committed = true, .is_predefined = true,             \
        .is_dense = true,                                                                                                          \
        .is_absent = !(is_there), .class_ = WEFT_CLASS_##kind, .basic_handle = value, .size = sizeof(c_type),                      \
        .count_max = WEFT_TYPE_SPAN_MAX / sizeof(c_type),                                                                          \
        .extent = sizeof(c_type), .true_extent = sizeof(c_type), .elements = 1, .name = #name_, .align = _Alignof(c_type)};
#include "type/types.def"
#undef BASIC
#undef PAIR

const weft_type *const weft_type_table[256] = {
#define BASIC(value, name_, c_type, kind, group, is_there) [value & 255] = &type_##name_,
#define PAIR(value, name_, first_type, second_type) [value & 255] = &type_##name_,
#include "type/types.def"
#undef BASIC
#undef PAIR
};

weft_object_pool weft_type_pool = WEFT_OBJECT_POOL(weft_type, WEFT_TYPE_MAGIC);

weft_type *weft_type_blank(void)
{
    return weft_object_new(&weft_type_pool);
}

const weft_type_layout *weft_layout_of(const weft_type *type, weft_type_layout *scratch)
{
    if (type->layout)
        return type->layout;
    weft_layout_dense(scratch, 0, (uint64_t)type->size);
    return scratch;
}

void weft_type_hold(const weft_type *type)
{
    if (!type->is_predefined)
        weft_object_hold(&((weft_type *)type)->object);
}

/* Drops a reference. A type whose last one it was joins the list of those to be freed: types may be nested deeper than the stack is. */
static void drop_into(weft_type **dead, const weft_type *type)
{
    weft_type *dropped = (weft_type *)type;
    if (dropped->is_predefined || !weft_object_drop(&dropped->object))
        return;
    dropped->next_dead = *dead;
    *dead = dropped;
}

static void envelope_drop_into(weft_type **dead, weft_envelope *envelope)
{
    if (!envelope || __atomic_sub_fetch(&envelope->refs, 1, __ATOMIC_ACQ_REL))
        return;
    for (uint64_t i = 0; i < envelope->type_count; i++)
        drop_into(dead, envelope->types[i]);
    free(envelope->values);
    free(envelope->types);
    free(envelope);
}

static void free_all(weft_type *dead)
{
    while (dead) {
        weft_type *dropped = dead;
        weft_envelope *envelope = dropped->envelope;
        const weft_type_layout *layout = dropped->layout;
        const weft_type *origin = dropped->origin;
        dead = dropped->next_dead;
        weft_object_free(&weft_type_pool, dropped);
        if (origin)
            drop_into(&dead, origin);
        else
            weft_layout_free(layout);
        envelope_drop_into(&dead, envelope);
    }
}

void weft_envelope_drop(weft_envelope *envelope)
{
    weft_type *dead = NULL;
    envelope_drop_into(&dead, envelope);
    free_all(dead);
}

void weft_type_drop(const weft_type *type)
{
    weft_type *dead = NULL;
    drop_into(&dead, type);
    free_all(dead);
}

void weft_type_retire(weft_type *type)
{
    if (!type->is_predefined && weft_object_retire(&type->object))
        weft_type_drop(type);
}

int weft_type_commit(weft_type *type)
{
    if (!__atomic_load_n(&type->is_committed, __ATOMIC_RELAXED)) /* predefined types are in read-only memory */
        __atomic_store_n(&type->is_committed, true, __ATOMIC_RELAXED);
    return 0;
}

void weft_type_set_envelope(weft_type *type, enum weft_combiner combiner, uint64_t number_count, uint64_t address_count,
                            uint64_t large_count, int64_t *values)
{
    weft_envelope *envelope = type->envelope;
    free(envelope->values);
    envelope->combiner = combiner;
    envelope->number_count = number_count;
    envelope->address_count = address_count;
    envelope->large_count = large_count;
    envelope->values = values;
}

static const struct pair_row {
    uint16_t handle, value, index;
} pairs[] = {
    {0x228, 0x210, 0x209}, {0x229, 0x214, 0x209}, {0x22a, 0x20a, 0x209}, {0x22b, 0x209, 0x209}, {0x22c, 0x208, 0x209},
    {0x22d, 0x220, 0x209}, {0x230, 0x21a, 0x21a}, {0x231, 0x21c, 0x21c}, {0x232, 0x219, 0x219}};

bool weft_type_pair_parts(const weft_type *pair, const weft_type *parts[2])
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i].handle != pair->handle)
            continue;
        parts[0] = weft_type_table[pairs[i].value & 255];
        parts[1] = weft_type_table[pairs[i].index & 255];
        return true;
    }
    return false;
}

int32_t weft_type_pair_of(const weft_type *value, const weft_type *index)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].value == value->handle && pairs[i].index == index->handle)
            return pairs[i].handle;
    return 0;
}
