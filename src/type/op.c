/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op: predefined and user operators, their valid types and their kernels. Like other implementations, and beyond MPI 5.0 6.9.2,
 * MPI_CHAR and MPI_CHARACTER are signed integers, and logical operators accept every integer. No derived types.
 * Floating point: MIN and MAX of a NaN give NaN; MINLOC and MAXLOC prefer a NaN, then the lower index. Complex products use the
 * plain formula. No operation is fused: results do not depend on the CPU.
 */
#include "type/op.h"

#include <string.h>

#include "base/arith.h"
#include "base/macros.h"
#include "base/status.h"
#include "type/kernels.h"
#include "type/pack.h"

#define CHUNK (UINT64_C(1) << 30) /* elements per call of a user's function with an int length */

/* MPI_User_function and MPI_User_function_c: MPI_Datatype is a pointer to weft_type. */
typedef void user_function(void *in, void *inout, int *length, weft_type **type);
typedef void user_function_large(void *in, void *inout, int64_t *length, weft_type **type);

enum { GROUP_C_INT = 1, GROUP_F_INT = 2, GROUP_FLOAT = 4, GROUP_LOGICAL = 8, GROUP_COMPLEX = 16, GROUP_BYTE = 32, GROUP_MULTI = 64,
       GROUP_PAIR = 128, GROUP_TEXT = 256, GROUP_CHAR = 512, GROUP_ALL = 1023 };
#define INTEGERS (GROUP_C_INT | GROUP_F_INT | GROUP_MULTI | GROUP_CHAR)
#define ORDERED (INTEGERS | GROUP_FLOAT)
#define NUMBERS (ORDERED | GROUP_COMPLEX)
#define LOGICALS (INTEGERS | GROUP_LOGICAL)
#define BITS (INTEGERS | GROUP_BYTE)

/* OPERATOR(value, name, slot, groups). REPLACE and NO_OP have no kernel. */
#define OPERATORS                                                                                                                  \
    OPERATOR(0x21, MPI_SUM, WEFT_OP_SUM, NUMBERS)                                                                                  \
    OPERATOR(0x22, MPI_MIN, WEFT_OP_MIN, ORDERED)                                                                                  \
    OPERATOR(0x23, MPI_MAX, WEFT_OP_MAX, ORDERED)                                                                                  \
    OPERATOR(0x24, MPI_PROD, WEFT_OP_PROD, NUMBERS)                                                                                \
    OPERATOR(0x28, MPI_BAND, WEFT_OP_BAND, BITS)                                                                                   \
    OPERATOR(0x29, MPI_BOR, WEFT_OP_BOR, BITS)                                                                                     \
    OPERATOR(0x2a, MPI_BXOR, WEFT_OP_BXOR, BITS)                                                                                   \
    OPERATOR(0x30, MPI_LAND, WEFT_OP_LAND, LOGICALS)                                                                               \
    OPERATOR(0x31, MPI_LOR, WEFT_OP_LOR, LOGICALS)                                                                                 \
    OPERATOR(0x32, MPI_LXOR, WEFT_OP_LXOR, LOGICALS)                                                                               \
    OPERATOR(0x38, MPI_MINLOC, WEFT_OP_MINLOC, GROUP_PAIR)                                                                         \
    OPERATOR(0x39, MPI_MAXLOC, WEFT_OP_MAXLOC, GROUP_PAIR)                                                                         \
    OPERATOR(0x3c, MPI_REPLACE, WEFT_OP_KINDS, GROUP_ALL)                                                                          \
    OPERATOR(0x3d, MPI_NO_OP, WEFT_OP_KINDS, GROUP_ALL)
enum { HANDLE_REPLACE = 0x3c, HANDLE_NO_OP = 0x3d, HANDLE_LONG_DOUBLE = 0x220, HANDLE_C_LONG_DOUBLE = 0x224, HANDLE_CXX_LONG_DOUBLE };

#define OPERATOR(value, name, kind, groups)                                                                                        \
    static const weft_op op_##name = {                                                                                             \
        .object = {.magic = WEFT_OP_MAGIC, .refs = 1}, .handle = value,                                                            \
        .is_commutative = (value) != HANDLE_REPLACE && (value) != HANDLE_NO_OP};
OPERATORS
#undef OPERATOR

const weft_op *const weft_op_table[32] = {
#define OPERATOR(value, name, kind, groups) [value & 31] = &op_##name,
    OPERATORS
#undef OPERATOR
};

static const struct { const char *name; uint16_t groups; uint8_t kind; } op_info[32] = {
#define OPERATOR(value, name, kind, groups) [value & 31] = {#name, groups, kind},
    OPERATORS
#undef OPERATOR
};

static const uint16_t type_groups[256] = {
#define BASIC(value, name, c_type, kind, group, is_there) [value & 255] = GROUP_##group,
#define PAIR(value, name, first_type, second_type) [value & 255] = GROUP_PAIR,
#include "type/types.def"
#undef BASIC
#undef PAIR
};

static const uint8_t pair_elems[16] = { /* by handle & 15 */
    [0x8] = WEFT_ELEM_F32_INT, [0x9] = WEFT_ELEM_F64_INT, [0xa] = WEFT_ELEM_LONG_INT, [0xb] = WEFT_ELEM_INT_INT,
    [0xc] = WEFT_ELEM_SHORT_INT, [0xd] = WEFT_ELEM_LONG_DOUBLE_INT,
    [0x0] = WEFT_ELEM_F32_F32, [0x1] = WEFT_ELEM_F64_F64, [0x2] = WEFT_ELEM_INT_INT};

weft_object_pool weft_op_pool = WEFT_OBJECT_POOL(weft_op, WEFT_OP_MAGIC);

int weft_op_make(void *user, bool is_commutative, bool is_large, weft_op **out)
{
    weft_op *op = weft_object_new(&weft_op_pool);
    if (!op)
        return weft_fail(WEFT_E_NOMEM, "no memory for an operator");
    op->is_commutative = is_commutative;
    op->is_large = is_large;
    op->user = user;
    op->language = weft_language_take();
    *out = op;
    return 0;
}

void weft_op_hold(const weft_op *op)
{
    if (!op->handle)
        weft_object_hold(&((weft_op *)op)->object);
}

void weft_op_drop(const weft_op *op)
{
    if (!op->handle && weft_object_drop(&((weft_op *)op)->object))
        weft_object_free(&weft_op_pool, (weft_op *)op);
}

void weft_op_retire(weft_op *op)
{
    if (!op->handle && weft_object_retire(&op->object))
        weft_op_drop(op);
}

static const char *type_text(const weft_type *type)
{
    return type->name[0] ? type->name : "a derived datatype";
}

const char *weft_op_name(int32_t handle)
{
    const char *name = handle & 0x20 ? op_info[handle & 31].name : NULL;
    return name ? name : "a user-defined operator";
}

int weft_op_fits(const weft_op *op, const weft_type *type)
{
    const char *name;
    if (type->is_absent)
        return weft_fail(WEFT_E_TYPE, "%s does not exist with this compiler", type->name);
    if (!op->handle || op->handle == HANDLE_REPLACE || op->handle == HANDLE_NO_OP)
        return 0;
    name = op_info[op->handle & 31].name;
    if (!type->is_predefined)
        return weft_fail(WEFT_E_OP, "%s does not reduce %s: predefined operators take predefined datatypes only; "
                         "give the count in basic elements, or make an operator with MPI_Op_create", name, type_text(type));
    if (!(type_groups[type->basic_handle & 255] & op_info[op->handle & 31].groups))
        return weft_fail(WEFT_E_OP, "%s does not reduce %s (MPI 5.0, 6.9.2 lists the valid pairs)", name, type_text(type));
    return 0;
}

int weft_op_reduces(const weft_op *op, const weft_type *type)
{
    if (weft_unlikely(op->handle == HANDLE_REPLACE || op->handle == HANDLE_NO_OP))
        return weft_fail(WEFT_E_OP, "%s is no reduction: only one-sided calls take it (MPI 5.0, 12.3.4)", weft_op_name(op->handle));
    return weft_op_fits(op, type);
}

/* log2 of the size: index within U8 to U128, and within the other rows of enum weft_elem. */
static unsigned size_log2(int64_t size)
{
    return (unsigned)__builtin_ctzll((uint64_t)size);
}

/* Element type of the kernel; *per_element: how many of them form one element of type. */
static enum weft_elem elem_of(enum weft_op_kind kind, const weft_type *type, uint64_t *per_element)
{
    int64_t size = type->size;
    int32_t handle = type->basic_handle;
    bool is_long = handle == HANDLE_LONG_DOUBLE || handle == HANDLE_C_LONG_DOUBLE || handle == HANDLE_CXX_LONG_DOUBLE;
    *per_element = 1;
    if (kind >= WEFT_OP_BAND && kind <= WEFT_OP_BXOR) {
        *per_element = (uint64_t)size;
        return WEFT_ELEM_U8;
    }
    if (kind >= WEFT_OP_MINLOC)
        return pair_elems[handle & 15];
    if (type->class_ == WEFT_CLASS_COMPLEX && kind == WEFT_OP_PROD)
        return is_long ? WEFT_ELEM_CLONG : size == 32 ? WEFT_ELEM_C128 : WEFT_ELEM_C16 + size_log2(size) - 2;
    if (type->class_ == WEFT_CLASS_COMPLEX) {
        *per_element = 2;
        return is_long ? WEFT_ELEM_LONG : size == 32 ? WEFT_ELEM_F128 : WEFT_ELEM_F16 + size_log2(size) - 2;
    }
    if (type->class_ == WEFT_CLASS_FLOAT)
        return is_long ? WEFT_ELEM_LONG : size == 16 ? WEFT_ELEM_F128 : WEFT_ELEM_F16 + size_log2(size) - 1;
    if ((type->class_ == WEFT_CLASS_INT || type->class_ == WEFT_CLASS_CHAR) && (kind == WEFT_OP_MIN || kind == WEFT_OP_MAX))
        return WEFT_ELEM_I8 + size_log2(size);
    return WEFT_ELEM_U8 + size_log2(size);
}

weft_op_kernel *weft_kernel_find(enum weft_op_kind kind, enum weft_elem elem, int level)
{
    const weft_kernel_table *table = level == 2 ? &weft_kernels2 : level == 1 ? &weft_kernels1 : &weft_kernels0;
    weft_op_kernel *kernel = table->kernel[kind][elem];
    return kernel ? kernel : weft_kernels_wide.kernel[kind][elem];
}

/* Passes a valid type handle to the user's function: a duplicate if the type was freed since the operation began. */
static void user_apply(const weft_op *op, const weft_type *type, const void *in, void *inout, uint64_t count)
{
    weft_type *handle = type->handle ? (weft_type *)(uintptr_t)type->handle : (weft_type *)type, *again = NULL;
    if (type->object.magic != WEFT_TYPE_MAGIC && !weft_type_dup(type, &again))
        handle = again;
    if (op->is_large) {
        user_function_large *call;
        int64_t length = (int64_t)count;
        memcpy(&call, &op->user, sizeof(call));
        if (op->language)
            op->language->reduce(op->user, (void *)in, inout, &length, true, handle);
        else
            call((void *)in, inout, &length, &handle);
    } else {
        user_function *call;
        int64_t extent = type->extent; /* the function may free both */
        memcpy(&call, &op->user, sizeof(call));
        for (uint64_t done = 0; done < count; done += CHUNK) {
            int length = (int)(count - done < CHUNK ? count - done : CHUNK);
            int64_t away = (int64_t)done * extent;
            weft_type *argument = handle;
            void *from = (void *)((uintptr_t)in + (uintptr_t)away), *to = (void *)((uintptr_t)inout + (uintptr_t)away);
            if (op->language)
                op->language->reduce(op->user, from, to, &length, false, handle);
            else
                call(from, to, &length, &argument);
        }
    }
    if (again)
        weft_type_drop(again);
}

static inline bool has_kernel(const weft_op *op) { return op->handle && op->handle != HANDLE_NO_OP && op->handle != HANDLE_REPLACE; }

weft_op_kernel *weft_op_kernel_of(const weft_op *op, const weft_type *type, uint64_t *per_element)
{
    enum weft_op_kind kind = op_info[op->handle & 31].kind;

    return has_kernel(op) ? weft_kernel_find(kind, elem_of(kind, type, per_element), weft_arith_level()) : NULL;
}

static inline void reduce(const weft_op *op, const weft_type *type, const void *in, const void *second, void *out, uint64_t count)
{
    uint64_t per_element;
    enum weft_op_kind kind = op_info[op->handle & 31].kind;
    enum weft_elem elem = elem_of(kind, type, &per_element);
    weft_kernel_find(kind, elem, weft_arith_level())(in, second, out, count * per_element);
}

void weft_op_combine(const weft_op *op, const weft_type *type, const void *in, const void *second, void *out, uint64_t count)
{
    if (weft_likely(has_kernel(op))) {
        reduce(op, type, in, second, out, count);
        return;
    }
    if (out != second)
        weft_copy(type, out, count, type, second, count);
    weft_op_apply(op, type, in, out, count);
}

void weft_op_apply(const weft_op *op, const weft_type *type, const void *in, void *inout, uint64_t count)
{
    if (!count || op->handle == HANDLE_NO_OP)
        return;
    if (!op->handle) {
        user_apply(op, type, in, inout, count);
        return;
    }
    if (op->handle == HANDLE_REPLACE) {
        weft_copy(type, inout, count, type, in, count);
        return;
    }
    reduce(op, type, in, inout, inout, count);
}
