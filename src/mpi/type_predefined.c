/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_predefined: searches of predefined datatypes: by class and size, by Fortran's precision and range (MPI 5.0 19.1.9), by the members
 * of a pair (6.9.4). Called by the generated entries; any thread.
 */
#include <mpi.h>
#include <stdint.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "type/type.h"

int weft_mpi_type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
    static const struct { int typeclass, size; MPI_Datatype handle; } named[] = {
        {MPI_TYPECLASS_REAL, 2, MPI_REAL2},        {MPI_TYPECLASS_REAL, 4, MPI_REAL4},
        {MPI_TYPECLASS_REAL, 8, MPI_REAL8},        {MPI_TYPECLASS_REAL, 16, MPI_REAL16},
        {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},  {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
        {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},  {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
        {MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16}, {MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4},
        {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},  {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
        {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32},
    };
    if (typeclass != MPI_TYPECLASS_REAL && typeclass != MPI_TYPECLASS_INTEGER && typeclass != MPI_TYPECLASS_COMPLEX)
        return weft_fail(WEFT_E_ARG, "typeclass is %d: none of MPI_TYPECLASS_REAL, _INTEGER and _COMPLEX", typeclass);
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        if (named[i].typeclass != typeclass || named[i].size != size || weft_type_of(named[i].handle)->is_absent)
            continue;
        *datatype = named[i].handle;
        return 0;
    }
    return weft_fail(WEFT_E_ARG, "size is %d: Fortran has no %s of that many bytes", size,
                     typeclass == MPI_TYPECLASS_REAL      ? "REAL"
                     : typeclass == MPI_TYPECLASS_INTEGER ? "INTEGER"
                                                          : "COMPLEX");
}

/* The handle of a type that is predefined. */
static MPI_Datatype handle_of(const weft_type *type)
{
    return type->handle ? (MPI_Datatype)(uintptr_t)type->handle : (MPI_Datatype)type;
}

static int real_or_complex(enum weft_combiner combiner, int p, int r, MPI_Datatype *newtype)
{
    const weft_type *type;
    int rc;
    if (p == MPI_UNDEFINED && r == MPI_UNDEFINED)
        return weft_fail(WEFT_E_ARG, "p and r are both MPI_UNDEFINED: one of them must be given");
    rc = weft_type_f90(combiner, p, r, &type);
    if (rc == WEFT_E_ARG)
        return weft_fail(rc, "p is %d, r is %d: no kind of REAL has that precision (33 at most) and range (4931 at most)", p, r);
    if (!rc)
        *newtype = handle_of(type);
    return rc;
}

int weft_mpi_type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
    return real_or_complex(WEFT_COMBINER_F90_REAL, p, r, newtype);
}

int weft_mpi_type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
    return real_or_complex(WEFT_COMBINER_F90_COMPLEX, p, r, newtype);
}

int weft_mpi_type_create_f90_integer(int r, MPI_Datatype *newtype)
{
    const weft_type *type;
    int rc = weft_type_f90(WEFT_COMBINER_F90_INTEGER, 0, r, &type);
    if (rc == WEFT_E_ARG)
        return weft_fail(rc, "r is %d: no kind of INTEGER has that many digits (38 at most)", r);
    if (!rc)
        *newtype = handle_of(type);
    return rc;
}

/* Only pairs with a name: MPI_DATATYPE_NULL for all others (6.9.4). */
int weft_mpi_type_get_value_index(const weft_type *value_type, const weft_type *index_type, MPI_Datatype *pair_type)
{
    int32_t handle = weft_type_pair_of(value_type, index_type);
    *pair_type = handle ? (MPI_Datatype)(uintptr_t)handle : MPI_DATATYPE_NULL;
    return 0;
}
