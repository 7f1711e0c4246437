/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op: reduction operators. An MPI_Op is a pointer to one of these, or one of the ABI's constants (0x20..0x3f). Predefined kernels
 * are chosen once per call (operator x basic type, dispatched at run time to what the CPU has), never per element.
 */
#ifndef WEFT_TYPE_OP_H
#define WEFT_TYPE_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "type/type.h"

#define WEFT_OP_MAGIC 0x4f505f5fu

/* inout[i] = in[i] op inout[i] for count basic elements. */
typedef void weft_op_kernel(const void *in, void *inout, uint64_t count);

typedef struct MPI_ABI_Op weft_op;
struct MPI_ABI_Op {
    uint32_t magic;
    uint32_t refs;
    int32_t handle;   /* the ABI's constant, 0 for user operators */
    bool is_commutative;
    bool is_large;    /* user function takes MPI_Count */
    void *user;       /* MPI_User_function or _c */
};

extern const weft_op *const weft_op_table[32]; /* by handle & 31 */
static inline const weft_op *weft_op_of(const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    const weft_op *op;
    if (bits < 4096)
        return bits >= 0x20 && bits < 0x40 ? weft_op_table[bits & 31] : NULL;
    op = handle;
    return op->magic == WEFT_OP_MAGIC ? op : NULL;
}

/* A user's operator, with one reference. WEFT_E_NOMEM. Predefined ones are never freed. */
int weft_op_make(void *user, bool is_commutative, bool is_large, weft_op **op);
void weft_op_hold(const weft_op *op);
void weft_op_drop(const weft_op *op);
/* The user gives the handle up (MPI_Op_free); operations under way go on using it. */
void weft_op_retire(weft_op *op);

/* MPI_SUM and so on; of a handle that is none of the ABI's: what else it is. */
const char *weft_op_name(int32_t handle);
/* May this operator reduce this type (MPI 5.0, 6.9.2, and what other implementations take)? User operators: always. On no: WEFT_E_OP with a text that names both. */
int weft_op_fits(const weft_op *op, const weft_type *type);
/* The same for reductions, where MPI_REPLACE and MPI_NO_OP are WEFT_E_OP. */
int weft_op_reduces(const weft_op *op, const weft_type *type);
/* inout = in op inout, count elements of type, in memory form; weft_op_fits said yes. User functions are given the type's handle. */
void weft_op_apply(const weft_op *op, const weft_type *type, const void *in, void *inout, uint64_t count);

#endif
