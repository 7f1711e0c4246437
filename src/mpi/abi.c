/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abi: queries of the ABI, and the registration of Fortran's types and truth values (MPI 5.0 20.2, 20.4.1). Called by the generated
 * entries. Process-wide: set once, never changed.
 * Invariant: what a program registers agrees with the sizes of Weft's Fortran datatypes, which are constant.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "mpi/calls.h"
#include "mpi/info.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static weft_info *fortran; /* NULL: not set */
static struct {
    int size; /* bytes; 0: not set */
    unsigned char yes[16], no[16];
} booleans;

int weft_mpi_abi_get_version(int *abi_major, int *abi_minor)
{
    *abi_major = MPI_ABI_VERSION;
    *abi_minor = MPI_ABI_SUBVERSION;
    return 0;
}

static int set_number(weft_info *info, const char *key, size_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%zu", number);
    return weft_info_set(info, key, text);
}

int weft_mpi_abi_get_info(MPI_Info *info)
{
    weft_info *made = weft_info_new();
    int rc;
    if (!made)
        return WEFT_E_NOMEM;
    rc = set_number(made, "mpi_aint_size", sizeof(MPI_Aint));
    rc = rc ? rc : set_number(made, "mpi_count_size", sizeof(MPI_Count));
    rc = rc ? rc : set_number(made, "mpi_offset_size", sizeof(MPI_Offset));
    if (rc)
        weft_info_drop(made);
    else
        *info = made;
    return rc;
}

/* Keys of MPI_Abi_set_fortran_info, and the datatype that each is about. */
static const struct {
    const char *key;
    MPI_Datatype type;
} sizes[] = {
    {"mpi_logical_size", MPI_LOGICAL},
    {"mpi_integer_size", MPI_INTEGER},
    {"mpi_real_size", MPI_REAL},
    {"mpi_double_precision_size", MPI_DOUBLE_PRECISION},
}, supported[] = {
    {"mpi_logical1_supported", MPI_LOGICAL1},   {"mpi_logical2_supported", MPI_LOGICAL2},
    {"mpi_logical4_supported", MPI_LOGICAL4},   {"mpi_logical8_supported", MPI_LOGICAL8},
    {"mpi_logical16_supported", MPI_LOGICAL16}, {"mpi_integer1_supported", MPI_INTEGER1},
    {"mpi_integer2_supported", MPI_INTEGER2},   {"mpi_integer4_supported", MPI_INTEGER4},
    {"mpi_integer8_supported", MPI_INTEGER8},   {"mpi_integer16_supported", MPI_INTEGER16},
    {"mpi_real2_supported", MPI_REAL2},         {"mpi_real4_supported", MPI_REAL4},
    {"mpi_real8_supported", MPI_REAL8},         {"mpi_real16_supported", MPI_REAL16},
    {"mpi_complex4_supported", MPI_COMPLEX4},   {"mpi_complex8_supported", MPI_COMPLEX8},
    {"mpi_complex16_supported", MPI_COMPLEX16}, {"mpi_complex32_supported", MPI_COMPLEX32},
    {"mpi_double_complex_supported", MPI_DOUBLE_COMPLEX},
};

/* Copies the size of one key, if it is given and right. */
static int copy_size(const weft_info *info, weft_info *to, const char *key, const weft_type *type)
{
    char text[WEFT_INFO_VALUE_BYTES];
    int64_t bytes;
    if (!weft_info_find(info, key, text))
        return 0;
    if (!weft_info_find_int(info, key, &bytes) || bytes <= 0)
        return weft_fail(WEFT_E_ABI, "%s is '%.40s': not a size in bytes", key, text);
    if (bytes != type->size)
        return weft_fail(WEFT_E_ABI, "%s is %lld, but %s of Weft has %lld bytes: Fortran's default kinds cannot be changed", key,
                         (long long)bytes, type->name, (long long)type->size);
    return set_number(to, key, (size_t)bytes);
}

/* Copies whether Fortran has a type: true only if Weft has it too. */
static int copy_supported(const weft_info *info, weft_info *to, const char *key, const weft_type *type)
{
    char text[WEFT_INFO_VALUE_BYTES];
    bool is_supported;
    if (!weft_info_find(info, key, text))
        return 0;
    if (!weft_info_find_bool(info, key, &is_supported))
        return weft_fail(WEFT_E_ABI, "%s is '%.40s': neither true nor false", key, text);
    return weft_info_set(to, key, is_supported && type && !type->is_absent ? "true" : "false");
}

int weft_mpi_abi_set_fortran_info(weft_info *info)
{
    weft_info *own;
    bool is_first;
    int rc = 0;
    if (!info)
        return weft_fail(WEFT_E_INFO, "info is MPI_INFO_NULL");
    own = weft_info_new();
    if (!own)
        return WEFT_E_NOMEM;
    for (size_t i = 0; i < weft_count(sizes) && !rc; i++)
        rc = copy_size(info, own, sizes[i].key, weft_type_of(sizes[i].type));
    for (size_t i = 0; i < weft_count(supported) && !rc; i++)
        rc = copy_supported(info, own, supported[i].key, weft_type_of(supported[i].type));
    if (!rc) {
        pthread_mutex_lock(&guard);
        is_first = !fortran;
        if (is_first)
            fortran = own;
        pthread_mutex_unlock(&guard);
        if (is_first)
            return 0;
        rc = weft_fail(WEFT_E_ABI, "Fortran's types are set already: they can be set once (MPI_Abi_get_fortran_info)");
    }
    weft_info_drop(own);
    return rc;
}

int weft_mpi_abi_get_fortran_info(MPI_Info *info)
{
    weft_info *set;
    pthread_mutex_lock(&guard);
    set = fortran;
    pthread_mutex_unlock(&guard);
    *info = MPI_INFO_NULL;
    return set ? weft_mpi_info_dup(set, info) : 0;
}

static int size_check(int logical_size)
{
    if (logical_size == 1 || logical_size == 2 || logical_size == 4 || logical_size == 8 || logical_size == 16)
        return 0;
    return weft_fail(WEFT_E_ARG, "logical_size is %d: it must be 1, 2, 4, 8 or 16", logical_size);
}

int weft_mpi_abi_set_fortran_booleans(int logical_size, void *logical_true, void *logical_false)
{
    bool is_first;
    int rc = size_check(logical_size);
    if (rc)
        return rc;
    if (!logical_true || !logical_false)
        return weft_fail(WEFT_E_ARG, "%s is NULL", logical_true ? "logical_false" : "logical_true");
    pthread_mutex_lock(&guard);
    is_first = !booleans.size;
    if (is_first) {
        booleans.size = logical_size;
        memcpy(booleans.yes, logical_true, (size_t)logical_size);
        memcpy(booleans.no, logical_false, (size_t)logical_size);
    }
    pthread_mutex_unlock(&guard);
    return is_first ? 0 : weft_fail(WEFT_E_ABI, "Fortran's truth values are set already: they can be set once");
}

int weft_mpi_abi_get_fortran_booleans(int logical_size, void *logical_true, void *logical_false, int *is_set)
{
    int rc = size_check(logical_size), size;
    if (rc)
        return rc;
    pthread_mutex_lock(&guard);
    size = booleans.size;
    pthread_mutex_unlock(&guard); /* the values are constant once they are set */
    *is_set = size != 0;
    if (size && size != logical_size)
        return weft_fail(WEFT_E_ABI, "logical_size is %d, but the truth values were set with %d bytes", logical_size, size);
    if (size) {
        memcpy(logical_true, booleans.yes, (size_t)size);
        memcpy(logical_false, booleans.no, (size_t)size);
    }
    return 0;
}
