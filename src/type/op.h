/* SPDX-License-Identifier: BSD-3-Clause
 *
 * op: reduction operators. An MPI_Op points to a weft_op or is a constant of the ABI (0x20..0x3f). Kernels of predefined operators
 * are selected once per call by operator, basic type and CPU level. Called by src/mpi and collectives; any thread.
 * Reference counts are atomic: an operator belongs to no worker.
 */
#ifndef WEFT_TYPE_OP_H
#define WEFT_TYPE_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/language.h"
#include "type/kernels.h"
#include "type/type.h"

#define WEFT_OP_MAGIC WEFT_OBJECT_MAGIC('O', 'P', 'E', 'R')

typedef struct MPI_ABI_Op weft_op;
struct MPI_ABI_Op {
    weft_object object; /* refs: user's handle and operations in flight */
    int32_t handle;   /* constant of the ABI; 0: user operator */
    bool is_commutative;
    bool is_large;    /* user function takes MPI_Count */
    void *user;       /* MPI_User_function or _c; NULL if predefined */
    const weft_language *language; /* of user; NULL: C */
};

extern weft_object_pool weft_op_pool;
extern const weft_op *const weft_op_table[32]; /* by handle & 31 */
/* Handle to operator; NULL: not a valid handle (also freed operators). */
static inline const weft_op *weft_op_of(const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    const weft_op *op;
    if (weft_object_is_constant(handle))
        return bits >= 0x20 && bits < 0x40 ? weft_op_table[bits & 31] : NULL;
    op = handle;
    return op->object.magic == WEFT_OP_MAGIC ? op : NULL;
}

/* Creates a user operator with one reference. 0 or WEFT_E_NOMEM. hold and drop do nothing for predefined operators. */
int weft_op_make(void *user, bool is_commutative, bool is_large, weft_op **op);
void weft_op_hold(const weft_op *op);
void weft_op_drop(const weft_op *op);
/* MPI_Op_free: invalidates the handle and drops its reference. Operations in flight keep their references. */
void weft_op_retire(weft_op *op);

/* Name of a predefined operator, or a phrase for a user operator. */
const char *weft_op_name(int32_t handle);
/* May this operator reduce this type (MPI 5.0 6.9.2, and types that other implementations accept)? User operators: always.
 * 0; WEFT_E_OP with a text that names both; WEFT_E_TYPE: the compiler lacks the type. */
int weft_op_fits(const weft_op *op, const weft_type *type);
/* The same for collective reductions: MPI_REPLACE and MPI_NO_OP give WEFT_E_OP. */
int weft_op_reduces(const weft_op *op, const weft_type *type);
/* inout = in op inout for count elements of type in memory form. Requires weft_op_fits. A user operator calls the
 * program: the caller must release the worker's lock first (weft_worker_callout_begin). */
void weft_op_apply(const weft_op *op, const weft_type *type, const void *in, void *inout, uint64_t count);
/* The same with the result in out, which may be second, or in if the operator is predefined. */
void weft_op_combine(const weft_op *op, const weft_type *type, const void *in, const void *second, void *out, uint64_t count);
/* The kernel of a predefined operator, *per_element elements of which form one of type; NULL: it has none. Requires weft_op_fits. */
weft_op_kernel *weft_op_kernel_of(const weft_op *op, const weft_type *type, uint64_t *per_element);

#endif
