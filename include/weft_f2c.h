/* SPDX-License-Identifier: BSD-3-Clause
 *
 * weft_f2c: the part of MPI's C interface that the standard ABI leaves out because it depends on Fortran's INTEGER (MPI 5.0 20.3.4, 20.3.5,
 * 21.4): MPI_Fint, and handles and statuses between C and Fortran. Included by mpi.h. Every function is inline and calls functions of the
 * ABI only, so that a program compiled with it runs with any library of that ABI. `__inline__`: C90 has no inline. Not here:
 * MPI_F_STATUS_IGNORE and MPI_F08_status.
 */
#ifndef WEFT_F2C_H
#define WEFT_F2C_H

#include <string.h>

typedef int MPI_Fint; /* a Fortran INTEGER of its default size */

/* The integer of a handle, and the handle of an integer; each also under its profiling name. */
#define WEFT_F2C_HANDLE(type, name) \
    static __inline__ MPI_Fint MPI_##name##_c2f(type handle) { return MPI_##name##_toint(handle); } \
    static __inline__ type MPI_##name##_f2c(MPI_Fint number) { return MPI_##name##_fromint(number); } \
    static __inline__ MPI_Fint PMPI_##name##_c2f(type handle) { return PMPI_##name##_toint(handle); } \
    static __inline__ type PMPI_##name##_f2c(MPI_Fint number) { return PMPI_##name##_fromint(number); }
WEFT_F2C_HANDLE(MPI_Comm, Comm)
WEFT_F2C_HANDLE(MPI_Datatype, Type)
WEFT_F2C_HANDLE(MPI_Errhandler, Errhandler)
WEFT_F2C_HANDLE(MPI_File, File)
WEFT_F2C_HANDLE(MPI_Group, Group)
WEFT_F2C_HANDLE(MPI_Info, Info)
WEFT_F2C_HANDLE(MPI_Message, Message)
WEFT_F2C_HANDLE(MPI_Op, Op)
WEFT_F2C_HANDLE(MPI_Request, Request)
WEFT_F2C_HANDLE(MPI_Session, Session)
WEFT_F2C_HANDLE(MPI_Win, Win)
#undef WEFT_F2C_HANDLE

/* Copies a status with all that it holds. MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE are erroneous. */
static __inline__ int MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    if (!c_status || !f_status)
        return MPI_ERR_ARG;
    memcpy(f_status, c_status, sizeof(*c_status));
    return MPI_SUCCESS;
}

static __inline__ int MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    if (!f_status || !c_status)
        return MPI_ERR_ARG;
    memcpy(c_status, f_status, sizeof(*c_status));
    return MPI_SUCCESS;
}

static __inline__ int PMPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status) { return MPI_Status_c2f(c_status, f_status); }
static __inline__ int PMPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status) { return MPI_Status_f2c(f_status, c_status); }

#endif
