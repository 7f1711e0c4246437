/* SPDX-License-Identifier: BSD-3-Clause
 *
 * signature: see signature.h. A type of one basic type, or of several, in which only STRUCT mixes: any other constructor repeats its one
 * old type, elements / old->elements times. So each level of nesting costs one step, and a STRUCT one for each member.
 */
#include "type/signature.h"

#include <stddef.h>
#include <string.h>

#include "base/arith.h"
#include "base/status.h"
#include "type/pack.h"

/* Member i of a type that mixes basic types: `copies` elements of *member. False: no more members. */
static bool member_at(const weft_type *type, uint64_t i, const weft_type **member, int64_t *copies)
{
    const weft_envelope *envelope = type->envelope;
    if (i >= envelope->type_count)
        return false;
    *member = envelope->types[i];
    if (envelope->combiner == WEFT_COMBINER_STRUCT)
        *copies = envelope->values[1 + i];
    else
        *copies = (*member)->elements ? type->elements / (*member)->elements : 0;
    return true;
}

/* Elements of one basic type, or pairs: counts those in *bytes and subtracts their bytes. */
static int64_t uniform_elements(const weft_type *basic, uint64_t *bytes)
{
    const weft_type *parts[2];
    int64_t whole = (int64_t)(*bytes / (uint64_t)basic->size);
    *bytes -= (uint64_t)(whole * basic->size);
    if (!weft_type_pair_parts(basic, parts))
        return whole;
    if (*bytes < (uint64_t)parts[0]->size)
        return 2 * whole;
    *bytes -= (uint64_t)parts[0]->size;
    return 2 * whole + 1;
}

int64_t weft_type_elements_in(const weft_type *type, uint64_t bytes)
{
    int64_t elements = 0;
    while (bytes && type->size > 0) {
        const weft_type *member = NULL;
        int64_t copies, whole;
        if (type->basic_handle) {
            elements += uniform_elements(weft_type_table[type->basic_handle & 255], &bytes);
            break;
        }
        whole = (int64_t)(bytes / (uint64_t)type->size);
        elements += whole * type->elements;
        bytes -= (uint64_t)(whole * type->size);
        for (uint64_t i = 0; bytes && member_at(type, i, &member, &copies) && bytes >= (uint64_t)(copies * member->size); i++) {
            elements += copies * member->elements;
            bytes -= (uint64_t)(copies * member->size);
        }
        if (bytes)
            type = member;
    }
    return bytes ? -1 : elements;
}

int64_t weft_type_bytes_of(const weft_type *type, int64_t elements)
{
    int64_t bytes = 0, more;
    bool is_over = false;
    while (elements) {
        const weft_type *member = NULL, *parts[2];
        int64_t copies;
        if (!type->elements)
            return -1;
        is_over |= __builtin_mul_overflow(elements / type->elements, type->size, &more);
        is_over |= __builtin_add_overflow(bytes, more, &bytes);
        elements %= type->elements;
        if (!elements)
            break;
        if (type->basic_handle) { /* elements are of one size, but for pairs */
            const weft_type *basic = weft_type_table[type->basic_handle & 255];
            bytes += elements / basic->elements * basic->size;
            if (elements % basic->elements && weft_type_pair_parts(basic, parts))
                bytes += parts[0]->size;
            break;
        }
        for (uint64_t i = 0; member_at(type, i, &member, &copies) && elements >= copies * member->elements; i++) {
            bytes += copies * member->size;
            elements -= copies * member->elements;
        }
        type = member;
    }
    return is_over ? -1 : bytes;
}

/* How a basic type is converted: each of its units (complex: 2) from `native` to `external` bytes. */
typedef struct convert_rule {
    uint8_t native, external, units;
    enum { SWAP, SIGNED, UNSIGNED, EXTENDED } kind; /* SWAP: same width; EXTENDED: long double and binary128 */
} convert_rule;

static convert_rule rule_of(const weft_type *basic)
{
    convert_rule rule = {(uint8_t)basic->size, (uint8_t)basic->size, 1, SWAP};
    if (basic->class_ == WEFT_CLASS_COMPLEX) {
        rule.units = 2;
        rule.native = rule.external = (uint8_t)(basic->size / 2);
    }
    switch (basic->handle) {
    case 0x201: case 0x202: case 0x203: /* MPI_AINT, MPI_COUNT, MPI_OFFSET */
        rule.external = 8;
        break;
    case 0x20a: case 0x20e: /* MPI_LONG, MPI_UNSIGNED_LONG */
        rule.external = 4;
        break;
    case 0x220: case 0x224: case 0x225: /* MPI_LONG_DOUBLE and its complex types */
        rule.external = 16;
        rule.kind = EXTENDED;
        return rule;
    case 0x23c: /* MPI_WCHAR */
        rule.external = 2;
        break;
    default:
        break;
    }
    if (rule.native != rule.external)
        rule.kind = basic->class_ == WEFT_CLASS_INT ? SIGNED : UNSIGNED;
    return rule;
}

/* Copies a unit of `bytes` bytes between the CPU's byte order and big-endian. */
static inline void swap_unit(const char *from, char *to, unsigned bytes)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (unsigned i = 0; i < bytes; i++)
        to[i] = from[bytes - 1 - i];
#else
    memcpy(to, from, bytes);
#endif
}

static int64_t load_int(const char *from, unsigned bytes, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 64 - 8 * bytes;
    for (unsigned i = 0; i < bytes; i++) { /* big-endian */
        value = value << 8 | (uint8_t)from[i];
    }
    return is_signed ? (int64_t)(value << shift) >> shift : (int64_t)value;
}

static void store_int(char *to, unsigned bytes, int64_t value)
{
    for (unsigned i = bytes; i-- > 0; value >>= 8)
        to[i] = (char)value;
}

static void unit_pack(const convert_rule *rule, const char *native, char *external)
{
    char big[16];
    if (rule->kind == SWAP) {
        swap_unit(native, external, rule->native);
    } else if (rule->kind == EXTENDED) {
#if WEFT_HAS_FLOAT128
        long double x;
        weft_float128 wide;
        memcpy(&x, native, sizeof x);
        wide = x;
        memcpy(big, &wide, 16);
        swap_unit(big, external, 16);
#else
        swap_unit(native, external, 16);
#endif
    } else {
        swap_unit(native, big, rule->native);
        store_int(external, rule->external, load_int(big, rule->native, rule->kind == SIGNED));
    }
}

static void unit_unpack(const convert_rule *rule, char *native, const char *external)
{
    char big[16];
    if (rule->kind == SWAP) {
        swap_unit(external, native, rule->native);
    } else if (rule->kind == EXTENDED) {
#if WEFT_HAS_FLOAT128
        long double x;
        weft_float128 wide;
        swap_unit(external, (char *)&wide, 16);
        x = (long double)wide;
        memset(native, 0, rule->native);
        memcpy(native, &x, sizeof x);
#else
        swap_unit(external, native, 16);
#endif
    } else {
        store_int(big, rule->native, load_int(external, rule->external, rule->kind == SIGNED));
        swap_unit(big, native, rule->native);
    }
}

/* Position in a conversion: `at` counts packed bytes of the native form, external those of the other. */
typedef struct conversion {
    const weft_type *type;
    char *buf;
    uint64_t count, at;
    char *external;
    bool is_packing;
} conversion;

#define BOUNCE 4096

/* Converts `count` elements of a basic type that is no pair. */
static void convert_basic(conversion *c, const weft_type *basic, uint64_t count)
{
    convert_rule rule = rule_of(basic);
    _Alignas(16) char bounce[BOUNCE];
    uint64_t at_once = BOUNCE / (uint64_t)basic->size;
    while (count) {
        uint64_t some = count < at_once ? count : at_once, bytes = some * (uint64_t)basic->size, units = some * rule.units;
        if (c->is_packing)
            weft_pack(c->type, c->buf, c->count, c->at, bytes, bounce);
        for (uint64_t i = 0; i < units; i++, c->external += rule.external) {
            if (c->is_packing)
                unit_pack(&rule, bounce + i * rule.native, c->external);
            else
                unit_unpack(&rule, bounce + i * rule.native, c->external);
        }
        if (!c->is_packing)
            weft_unpack(c->type, c->buf, c->count, c->at, bytes, bounce);
        c->at += bytes;
        count -= some;
    }
}

static void convert_type(conversion *c, const weft_type *type, uint64_t count)
{
    const weft_type *member, *parts[2];
    int64_t copies;
    if (type->basic_handle) {
        const weft_type *basic = weft_type_table[type->basic_handle & 255];
        uint64_t elements = count * (uint64_t)(type->elements / basic->elements);
        if (!weft_type_pair_parts(basic, parts)) {
            convert_basic(c, basic, elements);
            return;
        }
        for (uint64_t i = 0; i < elements; i++) {
            convert_basic(c, parts[0], 1);
            convert_basic(c, parts[1], 1);
        }
        return;
    }
    for (; type->elements && count; count--)
        for (uint64_t i = 0; member_at(type, i, &member, &copies); i++)
            convert_type(c, member, (uint64_t)copies);
}

int weft_external_size(const weft_type *type, int64_t *bytes)
{
    const weft_type *member, *parts[2];
    int64_t copies, one, all = 0;
    bool is_over = false;
    int rc;
    if (type->basic_handle) {
        const weft_type *basic = weft_type_table[type->basic_handle & 255];
        convert_rule rule = rule_of(basic);
        one = rule.external * rule.units;
        if (weft_type_pair_parts(basic, parts)) {
            convert_rule value = rule_of(parts[0]), index = rule_of(parts[1]);
            one = value.external + index.external;
        }
        is_over = __builtin_mul_overflow(type->elements / basic->elements, one, &all);
    } else if (type->elements) {
        for (uint64_t i = 0; member_at(type, i, &member, &copies); i++) {
            rc = weft_external_size(member, &one);
            if (rc)
                return rc;
            is_over |= __builtin_mul_overflow(one, copies, &one);
            is_over |= __builtin_add_overflow(all, one, &all);
        }
    }
    if (is_over)
        return weft_fail(WEFT_E_TOOLARGE, "the external32 form of the datatype does not fit into 63 bits");
    *bytes = all;
    return 0;
}

void weft_external_pack(const weft_type *type, const void *buf, uint64_t count, void *out)
{
    conversion c = {.type = type, .buf = (char *)buf, .count = count, .external = out, .is_packing = true};
    convert_type(&c, type, count);
}

void weft_external_unpack(const weft_type *type, void *buf, uint64_t count, const void *in)
{
    conversion c = {.type = type, .buf = buf, .count = count, .external = (char *)in};
    convert_type(&c, type, count);
}
