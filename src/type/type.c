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
        .true_extent = offsetof(struct pair_##name_, i) + sizeof(second_type), .elements = 1,                                      \
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

static void envelope_free(weft_envelope *envelope)
{
    if (!envelope)
        return;
    for (uint64_t i = 0; i < envelope->type_count; i++)
        weft_type_drop(envelope->types[i]);
    free(envelope->numbers);
    free(envelope->addresses);
    free(envelope->types);
    free(envelope);
}

void weft_type_hold(const weft_type *type)
{
    if (!type->is_predefined)
        weft_object_hold(&((weft_type *)type)->object);
}

void weft_type_drop(const weft_type *type)
{
    weft_type *mine = (weft_type *)type;
    weft_envelope *envelope;
    const weft_type_layout *layout;
    if (mine->is_predefined || !weft_object_drop(&mine->object))
        return;
    envelope = mine->envelope;
    layout = mine->layout;
    weft_object_free(&weft_type_pool, mine);
    weft_layout_free(layout);
    envelope_free(envelope);
}

void weft_type_retire(weft_type *type)
{
    if (!type->is_predefined && weft_object_retire(&type->object))
        weft_type_drop(type);
}

int weft_type_commit(weft_type *type)
{
    if (!type->is_committed) /* predefined types are in read-only memory */
        type->is_committed = true;
    return 0;
}

static int64_t *copy_numbers(const int64_t *from, uint64_t count, bool *is_out_of_memory)
{
    int64_t *to = malloc((count ? count : 1) * sizeof(*to));
    if (!to)
        *is_out_of_memory = true;
    else if (count)
        memcpy(to, from, count * sizeof(*to));
    return to;
}

int weft_type_set_envelope(weft_type *type, enum weft_combiner combiner, uint64_t number_count, const int64_t *numbers,
                           uint64_t address_count, const int64_t *addresses)
{
    weft_envelope *envelope = type->envelope;
    bool is_out_of_memory = false;
    int64_t *n = copy_numbers(numbers, number_count, &is_out_of_memory), *a = copy_numbers(addresses, address_count, &is_out_of_memory);
    if (is_out_of_memory) {
        free(n);
        free(a);
        return weft_fail(WEFT_E_NOMEM, "no memory for the envelope of a datatype (%llu numbers)",
                         (unsigned long long)(number_count + address_count));
    }
    free(envelope->numbers);
    free(envelope->addresses);
    envelope->combiner = combiner;
    envelope->number_count = number_count;
    envelope->address_count = address_count;
    envelope->numbers = n;
    envelope->addresses = a;
    return 0;
}
