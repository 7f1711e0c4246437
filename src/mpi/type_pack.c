/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_pack: MPI_Pack and MPI_Unpack (MPI 5.0 5.2), whose format is the packed form of src/type, and their external32 forms (5.3).
 * Called by the generated entries, which have checked handles and pointers.
 */
#include <mpi.h>
#include <string.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/type_local.h"
#include "type/pack.h"
#include "type/signature.h"
#include "type/type.h"

static int packed_bytes(MPI_Count count, const weft_type *type, MPI_Count *bytes)
{
    if (__builtin_mul_overflow(count, type->size, bytes))
        return weft_fail(WEFT_E_TOOLARGE, "%lld elements of %lld bytes do not fit into 63 bits", (long long)count, (long long)type->size);
    return 0;
}

/* Do `bytes` fit between position and the end? */
static int position_check(const char *what, MPI_Count size, MPI_Count position, MPI_Count bytes)
{
    if (position < 0 || position > size)
        return weft_fail(WEFT_E_ARG, "position %lld is not in 0..%lld, the size of %s", (long long)position, (long long)size, what);
    if (bytes > size - position)
        return weft_fail(WEFT_E_TRUNCATE, "%lld bytes at position %lld do not fit into the %lld bytes of %s", (long long)bytes,
                         (long long)position, (long long)size, what);
    return 0;
}

int weft_mpi_pack(const void *inbuf, MPI_Count incount, const weft_type *datatype, void *outbuf, MPI_Count outsize,
                  MPI_Count *position, weft_comm *comm)
{
    MPI_Count bytes;
    int rc = packed_bytes(incount, datatype, &bytes);
    (void)comm; /* all ranks use the same format */
    if (rc || (rc = position_check("outbuf", outsize, *position, bytes)))
        return rc;
    weft_pack(datatype, inbuf, (uint64_t)incount, 0, (uint64_t)bytes, (char *)outbuf + *position);
    *position += bytes;
    return 0;
}

int weft_mpi_unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
                    const weft_type *datatype, weft_comm *comm)
{
    MPI_Count bytes;
    int rc = packed_bytes(outcount, datatype, &bytes);
    (void)comm;
    if (rc || (rc = position_check("inbuf", insize, *position, bytes)))
        return rc;
    weft_unpack(datatype, outbuf, (uint64_t)outcount, 0, (uint64_t)bytes, (const char *)inbuf + *position);
    *position += bytes;
    return 0;
}

int weft_mpi_pack_size(MPI_Count incount, const weft_type *datatype, weft_comm *comm, MPI_Count *size)
{
    (void)comm;
    if (datatype->is_absent)
        return weft_fail(WEFT_E_TYPE, "%s does not exist with this compiler", datatype->name);
    return packed_bytes(incount, datatype, size);
}

/* Bytes of count elements in external32. */
static int external_bytes(const char *datarep, MPI_Count count, const weft_type *type, MPI_Count *bytes)
{
    int64_t one;
    int rc;
    if (strcmp(datarep, "external32"))
        return weft_fail(WEFT_E_ARG, "datarep is '%.40s': MPI 5.0 5.3 defines external32 only", datarep);
    if (type->is_absent)
        return weft_fail(WEFT_E_TYPE, "%s does not exist with this compiler", type->name);
    rc = weft_external_size(type, &one);
    if (!rc && __builtin_mul_overflow(count, one, bytes))
        rc = weft_fail(WEFT_E_TOOLARGE, "%lld elements of %lld bytes of external32 do not fit into 63 bits", (long long)count,
                       (long long)one);
    return rc;
}

int weft_mpi_pack_external(const char *datarep, const void *inbuf, MPI_Count incount, const weft_type *datatype, void *outbuf,
                           MPI_Count outsize, MPI_Count *position)
{
    MPI_Count bytes;
    int rc = external_bytes(datarep, incount, datatype, &bytes);
    if (rc || (rc = position_check("outbuf", outsize, *position, bytes)))
        return rc;
    weft_external_pack(datatype, inbuf, (uint64_t)incount, (char *)outbuf + *position);
    *position += bytes;
    return 0;
}

int weft_mpi_unpack_external(const char *datarep, const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
                             MPI_Count outcount, const weft_type *datatype)
{
    MPI_Count bytes;
    int rc = external_bytes(datarep, outcount, datatype, &bytes);
    if (rc || (rc = position_check("inbuf", insize, *position, bytes)))
        return rc;
    weft_external_unpack(datatype, outbuf, (uint64_t)outcount, (const char *)inbuf + *position);
    *position += bytes;
    return 0;
}

int weft_mpi_pack_external_size(const char *datarep, MPI_Count incount, const weft_type *datatype, MPI_Count *size)
{
    return external_bytes(datarep, incount, datatype, size);
}
