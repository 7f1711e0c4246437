/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_create: datatype constructors: bounds and extents by MPI 5.0 5.1, and the layout. All constructors place copies of old types at
 * displacements; they differ in how they build the layout.
 */
#include "type/type_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "type/layout.h"

/* Bounds and sums of the type map, accumulated over all copies. Overflow (is_over) is sticky. */
typedef struct bounds {
    int64_t lb, ub;           /* of resized members if there are any, else of the data */
    int64_t true_lb, true_ub; /* of the data */
    int64_t size, elements, align;
    int64_t extent, true_extent; /* set by bounds_close */
    uint16_t basic_handle;
    uint8_t class_;
    bool is_resized, has_data, is_mixed, is_over;
} bounds;

static int64_t add(bounds *b, int64_t x, int64_t y)
{
    int64_t z;
    b->is_over |= __builtin_add_overflow(x, y, &z);
    return z;
}

static int64_t mul(bounds *b, int64_t x, int64_t y)
{
    int64_t z;
    b->is_over |= __builtin_mul_overflow(x, y, &z);
    return z;
}

/* Extends the bounds by one copy of `old` at `at`. */
static void bounds_reach(bounds *b, const weft_type *old, int64_t at)
{
    int64_t lb = add(b, at, old->lb), ub = add(b, lb, old->extent);
    int64_t true_lb = add(b, at, old->true_lb), true_ub = add(b, true_lb, old->true_extent);
    if (old->is_resized) { /* its lb and ub override bounds of data */
        if (!b->is_resized || lb < b->lb)
            b->lb = lb;
        if (!b->is_resized || ub > b->ub)
            b->ub = ub;
        b->is_resized = true;
    }
    if (!old->elements)
        return;
    if (!b->has_data || true_lb < b->true_lb)
        b->true_lb = true_lb;
    if (!b->has_data || true_ub > b->true_ub)
        b->true_ub = true_ub;
    b->has_data = true;
}

/* Adds the size, elements and class of `copies` elements of `old`. */
static void bounds_amount(bounds *b, const weft_type *old, int64_t copies)
{
    if (!old->elements || !copies)
        return;
    if (old->align > b->align)
        b->align = old->align;
    if (b->elements && b->basic_handle != old->basic_handle)
        b->is_mixed = true;
    b->basic_handle = old->basic_handle;
    b->class_ = old->class_;
    b->size = add(b, b->size, mul(b, old->size, copies));
    b->elements = add(b, b->elements, mul(b, old->elements, copies));
}

/* Adds a block of `length` copies, one extent apart. The first and the last copy are the outermost, for any signs. */
static void bounds_block(bounds *b, const weft_type *old, int64_t at, int64_t length)
{
    if (!length)
        return;
    bounds_reach(b, old, at);
    bounds_reach(b, old, add(b, at, mul(b, length - 1, old->extent)));
    bounds_amount(b, old, length);
}

/* Computes the extents. Must be called after the last copy and before the layout is built, which relies on the overflow check. */
static void bounds_close(bounds *b)
{
    int64_t lb = b->is_resized ? b->lb : b->true_lb, past;
    b->is_over |= __builtin_sub_overflow(b->true_ub, b->true_lb, &b->true_extent);
    b->is_over |= __builtin_sub_overflow(b->is_resized ? b->ub : b->true_ub, lb, &b->extent);
    b->lb = lb;
    b->align = b->align ? b->align : 1;
    past = b->extent % b->align;
    if (!b->is_resized && past)
        b->extent = add(b, b->extent, b->align - past);
}

/* weft_type.count_max. */
static uint64_t count_max(const bounds *b)
{
    uint64_t span = b->extent < 0 ? -(uint64_t)b->extent : (uint64_t)b->extent;
    if ((uint64_t)b->size > span)
        span = (uint64_t)b->size;
    if ((uint64_t)b->true_extent > WEFT_TYPE_SPAN_MAX)
        return 0;
    return span ? WEFT_TYPE_SPAN_MAX / span : INT64_MAX;
}

weft_envelope *weft_envelope_new(uint64_t type_count, const weft_type *const *types)
{
    weft_envelope *envelope = calloc(1, sizeof(*envelope));
    if (!envelope)
        return NULL;
    envelope->types = malloc((type_count ? type_count : 1) * sizeof(*types));
    if (!envelope->types) {
        free(envelope);
        return NULL;
    }
    for (uint64_t i = 0; i < type_count; i++) {
        envelope->types[i] = types[i];
        weft_type_hold(types[i]);
    }
    envelope->type_count = type_count;
    envelope->refs = 1;
    return envelope;
}

static void type_set_bounds(weft_type *type, const bounds *b)
{
    const weft_type_layout *p = type->layout;
    type->size = b->size;
    type->elements = b->elements;
    type->align = b->align;
    type->basic_handle = b->is_mixed ? 0 : b->basic_handle;
    type->class_ = b->is_mixed ? WEFT_CLASS_NONE : b->class_;
    type->true_lb = b->true_lb;
    type->true_extent = b->true_extent;
    type->is_resized = b->is_resized;
    type->lb = b->lb;
    type->extent = b->extent;
    type->count_max = count_max(b);
    type->is_dense = type->size == type->extent && !type->lb && p->kind == WEFT_LAYOUT_RUN && p->count <= 1 && !p->disp;
    if (type->is_dense) {
        weft_layout_free(p);
        type->layout = NULL;
    }
}

/* Creates a type from closed bounds, layout and old types. Takes ownership of the layout, also on error; NULL: out of memory. */
static int type_finish(const bounds *b, weft_type_layout *layout, uint64_t type_count, const weft_type *const *types, weft_type **out)
{
    weft_type *type = NULL;
    if (!layout)
        goto no_memory;
    if (b->is_over) {
        weft_layout_free(layout);
        return weft_fail(WEFT_E_TOOLARGE, "the datatype's size or one of its addresses would not fit into 63 bits");
    }
    type = weft_type_blank();
    if (!type)
        goto no_memory;
    type->layout = layout;
    type->envelope = weft_envelope_new(type_count, types);
    if (!type->envelope)
        goto undo_type;
    type_set_bounds(type, b);
    *out = type;
    return 0;
undo_type:
    type->layout = NULL;
    weft_type_drop(type);
no_memory:
    weft_layout_free(layout);
    return weft_fail(WEFT_E_NOMEM, "no memory for a datatype made of %llu others", (unsigned long long)type_count);
}

/* Sets the envelope: combiner, and a copy of the two arrays. */
static int with_envelope(weft_type *type, enum weft_combiner combiner, uint64_t number_count, const int64_t *numbers,
                         uint64_t address_count, const int64_t *addresses, weft_type **out)
{
    uint64_t count = number_count + address_count;
    int64_t *values = malloc((count ? count : 1) * sizeof(*values));
    if (!values) {
        weft_type_drop(type);
        return weft_fail(WEFT_E_NOMEM, "no memory for the envelope of a datatype (%llu numbers)", (unsigned long long)count);
    }
    if (number_count)
        memcpy(values, numbers, number_count * sizeof(*values));
    if (address_count)
        memcpy(values + number_count, addresses, address_count * sizeof(*values));
    weft_type_set_envelope(type, combiner, number_count, address_count, 0, values);
    *out = type;
    return 0;
}

/* Layout of count blocks of blocklength copies. */
static weft_type_layout *vector_layout(const weft_type *old, int64_t count, int64_t blocklength, int64_t stride)
{
    weft_type_layout scratch, outer, *block, *root;
    const weft_type_layout *element = weft_layout_of(old, &scratch);
    weft_layout_repeat(&outer, element, (uint64_t)blocklength, old->extent);
    if (outer.child == &scratch || !(block = weft_layout_root(&outer, NULL)))
        return NULL; /* the first case cannot happen: a dense element always merges */
    weft_layout_repeat(&outer, block, (uint64_t)count, stride);
    if (outer.kind == WEFT_LAYOUT_LOOP && outer.child == block)
        return weft_layout_root(&outer, block);
    root = weft_layout_root(&outer, NULL);
    weft_layout_free(block);
    return root;
}

static int vector_make(int64_t count, int64_t blocklength, int64_t stride, const weft_type *old, weft_type **out)
{
    bounds b = {0};
    if (count && blocklength) {
        bounds_block(&b, old, 0, blocklength);
        b.size = b.elements = 0;
        bounds_block(&b, old, mul(&b, count - 1, stride), blocklength);
        b.size = b.elements = 0;
        bounds_amount(&b, old, mul(&b, count, blocklength));
    }
    bounds_close(&b);
    if (b.is_over) /* products of the layout would overflow 64 bits too */
        return weft_fail(WEFT_E_TOOLARGE, "%lld blocks of %lld elements of %lld bytes, %lld bytes apart, do not fit into 63 bits",
                         (long long)count, (long long)blocklength, (long long)old->size, (long long)stride);
    return type_finish(&b, vector_layout(old, count, blocklength, stride), 1, &old, out);
}

int weft_type_contiguous(int64_t count, const weft_type *old, weft_type **out)
{
    weft_type *type;
    int rc = vector_make(1, count, 0, old, &type);
    return rc ? rc : with_envelope(type, WEFT_COMBINER_CONTIGUOUS, 1, &count, 0, NULL, out);
}

int weft_type_vector(int64_t count, int64_t blocklength, int64_t stride_bytes, const weft_type *old, weft_type **out)
{
    weft_type *type;
    int64_t numbers[2] = {count, blocklength};
    int rc = vector_make(count, blocklength, stride_bytes, old, &type);
    return rc ? rc : with_envelope(type, WEFT_COMBINER_HVECTOR, 2, numbers, 1, &stride_bytes, out);
}

/* Block i has types[i * step]; step 0: one type for all blocks. */
static int blocks_make(int64_t count, const int64_t *blocklengths, const int64_t *displacements, const weft_type *const *types,
                       int step, weft_type **out)
{
    bounds b = {0};
    weft_layout_builder builder = {0};
    weft_type_layout scratch, block;
    for (int64_t i = 0; i < count; i++)
        bounds_block(&b, types[i * step], displacements[i], blocklengths[i]);
    bounds_close(&b);
    if (b.is_over)
        return weft_fail(WEFT_E_TOOLARGE, "the size or an address of a datatype of %lld blocks does not fit into 63 bits",
                         (long long)count);
    for (int64_t i = 0; i < count; i++) {
        const weft_type *old = types[i * step];
        weft_layout_repeat(&block, weft_layout_of(old, &scratch), (uint64_t)blocklengths[i], old->extent);
        weft_layout_builder_add(&builder, &block, displacements[i]);
    }
    return type_finish(&b, weft_layout_builder_finish(&builder), step ? (uint64_t)count : 1, types, out);
}

/* Sets the envelope of struct and hindexed: the count, then block lengths and displacements. */
static int with_blocks_envelope(weft_type *type, enum weft_combiner combiner, int64_t count, const int64_t *blocklengths,
                                const int64_t *displacements, weft_type **out)
{
    int64_t *values = malloc((2 * (size_t)count + 1) * sizeof(*values));
    if (!values) {
        weft_type_drop(type);
        return weft_fail(WEFT_E_NOMEM, "no memory for the envelope of a datatype (%lld block lengths)", (long long)count);
    }
    values[0] = count;
    if (count) {
        memcpy(values + 1, blocklengths, (size_t)count * sizeof(*values));
        memcpy(values + 1 + count, displacements, (size_t)count * sizeof(*values));
    }
    weft_type_set_envelope(type, combiner, (uint64_t)count + 1, (uint64_t)count, 0, values);
    *out = type;
    return 0;
}

int weft_type_struct(int64_t count, const int64_t *blocklengths, const int64_t *displacements, const weft_type *const *types,
                     weft_type **out)
{
    weft_type *type;
    int rc = blocks_make(count, blocklengths, displacements, types, 1, &type);
    return rc ? rc : with_blocks_envelope(type, WEFT_COMBINER_STRUCT, count, blocklengths, displacements, out);
}

int weft_type_hindexed(int64_t count, const int64_t *blocklengths, const int64_t *displacements, const weft_type *old, weft_type **out)
{
    weft_type *type;
    int rc = blocks_make(count, blocklengths, displacements, &old, 0, &type);
    return rc ? rc : with_blocks_envelope(type, WEFT_COMBINER_HINDEXED, count, blocklengths, displacements, out);
}

/* A second type over the same data: same layout, with new bounds if is_resized. */
static int type_over(const weft_type *old, bool is_resized, int64_t lb, int64_t extent, weft_type **out)
{
    weft_type_layout scratch;
    const weft_type_layout *element = weft_layout_of(old, &scratch);
    bounds b = {0};
    bounds_block(&b, old, 0, 1);
    if (is_resized) {
        b.is_resized = true;
        b.lb = lb;
        b.ub = add(&b, lb, extent);
    }
    bounds_close(&b);
    return type_finish(&b, weft_layout_root(element, NULL), 1, &old, out);
}

int weft_type_resized(const weft_type *old, int64_t lb, int64_t extent, weft_type **out)
{
    weft_type *type;
    int64_t addresses[2] = {lb, extent};
    int rc = type_over(old, true, lb, extent, &type);
    return rc ? rc : with_envelope(type, WEFT_COMBINER_RESIZED, 0, NULL, 2, addresses, out);
}

int weft_type_dup(const weft_type *old, weft_type **out)
{
    weft_type *type;
    int rc = type_over(old, false, 0, 0, &type);
    if (rc)
        return rc;
    type->is_committed = old->is_committed;
    return with_envelope(type, WEFT_COMBINER_DUP, 0, NULL, 0, NULL, out);
}

void weft_type_copy_shape(weft_type *type, const weft_type *from)
{
    type->size = from->size;
    type->elements = from->elements;
    type->align = from->align;
    type->basic_handle = from->basic_handle;
    type->class_ = from->class_;
    type->true_lb = from->true_lb;
    type->true_extent = from->true_extent;
    type->is_resized = from->is_resized;
    type->lb = from->lb;
    type->extent = from->extent;
    type->count_max = from->count_max;
    type->is_dense = from->is_dense;
    type->layout = from->layout;
}

/* A type over the layout of `from`. Takes ownership of a reference to the envelope; NULL: out of memory. */
static int type_share(const weft_type *from, weft_envelope *envelope, weft_type **out)
{
    weft_type *type = envelope ? weft_type_blank() : NULL;
    if (!type) {
        weft_envelope_drop(envelope);
        return weft_fail(WEFT_E_NOMEM, "no memory for another handle of a datatype");
    }
    weft_type_hold(from);
    type->origin = from;
    type->envelope = envelope;
    weft_type_copy_shape(type, from);
    *out = type;
    return 0;
}

int weft_type_clone(const weft_type *old, weft_type **out)
{
    weft_envelope *envelope = old->envelope;
    int rc;
    __atomic_add_fetch(&envelope->refs, 1, __ATOMIC_RELAXED);
    rc = type_share(old, envelope, out);
    if (!rc)
        (*out)->is_committed = __atomic_load_n(&old->is_committed, __ATOMIC_RELAXED);
    return rc;
}

int weft_type_wrap(const weft_type *made, const weft_type *old, weft_type **out)
{
    return type_share(made, weft_envelope_new(1, &old), out);
}
