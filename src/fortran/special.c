/* SPDX-License-Identifier: BSD-3-Clause
 *
 * special: translations that fortran.tbl marks `hand`, and procedures that only Fortran has (MPI 5.0 3.6, 10, 19.1.8, 19.3.5). Bodies for
 * MPI_X and PMPI_X are one: special.inc is included twice.
 */
#include <stdlib.h>
#include <string.h>

#include "fortran/argv.h"
#include "fortran/array.h"
#include "fortran/lengths.h"
#include "fortran/runtime.h"

#define F(name) mpi_##name
#define C(name) MPI_##name
#include "fortran/special.inc"
#undef F
#undef C
#define F(name) pmpi_##name
#define C(name) PMPI_##name
#include "fortran/special.inc"

/* Keeps the compiler from moving accesses to the buffer across the call (MPI 5.0 19.1.8). */
WEFT_F_ENTRY void mpi_f_sync_reg_(const void *buf) { (void)buf; }
WEFT_F_ALIAS(mpi_f_sync_reg_f08_, mpi_f_sync_reg_);
WEFT_F_ALIAS(mpi_f_sync_reg_fts_, mpi_f_sync_reg_);
WEFT_F_ALIAS(mpi_f_sync_reg_f08ts_, mpi_f_sync_reg_);
WEFT_F_ALIAS(pmpi_f_sync_reg_, mpi_f_sync_reg_);
WEFT_F_ALIAS(pmpi_f_sync_reg_fts_, mpi_f_sync_reg_);
WEFT_F_ALIAS(pmpi_f_sync_reg_f08ts_, mpi_f_sync_reg_);

/* The size of a variable's elements in bytes. */
WEFT_F_ENTRY void mpi_sizeof_f08ts_(const weft_f_array *x, int *size, int *ierror)
{
    *size = (int)x->bytes;
    weft_f_end(ierror, MPI_SUCCESS);
}
WEFT_F_ALIAS(mpi_sizeof_fts_, mpi_sizeof_f08ts_);
WEFT_F_ALIAS(pmpi_sizeof_fts_, mpi_sizeof_f08ts_);
WEFT_F_ALIAS(pmpi_sizeof_f08ts_, mpi_sizeof_f08ts_);

/* INTEGER arrays and TYPE(MPI_Status) have one layout. */
WEFT_F_ENTRY void mpi_status_f2f08_(const int *from, int *to, int *ierror)
{
    memcpy(to, from, sizeof(MPI_Status));
    weft_f_end(ierror, MPI_SUCCESS);
}
WEFT_F_ALIAS(mpi_status_f2f08_f08_, mpi_status_f2f08_);
WEFT_F_ALIAS(mpi_status_f082f_, mpi_status_f2f08_);
WEFT_F_ALIAS(mpi_status_f082f_f08_, mpi_status_f2f08_);
WEFT_F_ALIAS(pmpi_status_f2f08_, mpi_status_f2f08_);
WEFT_F_ALIAS(pmpi_status_f2f08_f08_, mpi_status_f2f08_);
WEFT_F_ALIAS(pmpi_status_f082f_, mpi_status_f2f08_);
WEFT_F_ALIAS(pmpi_status_f082f_f08_, mpi_status_f2f08_);

/* The operators == and /= of each type of handle (MPI 5.0 19.1.2). */
#define OPERATORS(name) \
    WEFT_F_ENTRY int weft_##name##_eq_(const int *left, const int *right) { return weft_f_logical(*left == *right); } \
    WEFT_F_ENTRY int weft_##name##_ne_(const int *left, const int *right) { return weft_f_logical(*left != *right); }
OPERATORS(comm)
OPERATORS(datatype)
OPERATORS(errhandler)
OPERATORS(file)
OPERATORS(group)
OPERATORS(info)
OPERATORS(message)
OPERATORS(op)
OPERATORS(request)
OPERATORS(session)
OPERATORS(win)
