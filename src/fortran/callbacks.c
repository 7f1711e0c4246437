/* SPDX-License-Identifier: BSD-3-Clause
 *
 * callbacks: calls of the program's procedures in Fortran (MPI 5.0 19.3.6), and the predefined ones. The procedures of mpi_f08 have the
 * same convention as those of mpi and mpif.h: handles of either are one INTEGER by reference, choice arguments are addresses.
 * Called by src/mpi through base/language.h.
 */
#include "fortran/runtime.h"

typedef void copy_function(int *handle, int *key, MPI_Aint *state, MPI_Aint *in, MPI_Aint *out, int *flag, int *ierror);
typedef void delete_function(int *handle, int *key, MPI_Aint *value, MPI_Aint *state, int *ierror);
typedef void old_copy_function(int *handle, int *key, int *state, int *in, int *out, int *flag, int *ierror);
typedef void old_delete_function(int *handle, int *key, int *value, int *state, int *ierror);
typedef void reduce_function(void *in, void *inout, const void *length, int *type);
typedef void fail_function(int *handle, int *code);
typedef void query_function(MPI_Aint *state, void *status, int *ierror);
typedef void release_function(MPI_Aint *state, int *ierror);
typedef void cancel_function(MPI_Aint *state, int *is_complete, int *ierror);

static int number_of(enum weft_language_kind kind, void *handle)
{
    switch (kind) {
    case WEFT_LANGUAGE_COMM: return weft_f_comm_out(handle);
    case WEFT_LANGUAGE_TYPE: return weft_f_type_out(handle);
    case WEFT_LANGUAGE_WIN: return weft_f_win_out(handle);
    case WEFT_LANGUAGE_FILE: return weft_f_file_out(handle);
    default: return weft_f_session_out(handle);
    }
}

static int copy(void *function, enum weft_language_kind kind, void *handle, int key, void *extra_state, void *value, void **copied,
                int *flag)
{
    int number = number_of(kind, handle), logical = weft_f_logical(0), ierror = MPI_SUCCESS;
    MPI_Aint state = (MPI_Aint)extra_state, in = (MPI_Aint)value, out = in;
    ((copy_function *)function)(&number, &key, &state, &in, &out, &logical, &ierror);
    *copied = (void *)out;
    *flag = weft_f_is_true(logical);
    return ierror;
}

static int del(void *function, enum weft_language_kind kind, void *handle, int key, void *value, void *extra_state)
{
    int number = number_of(kind, handle), ierror = MPI_SUCCESS;
    MPI_Aint state = (MPI_Aint)extra_state, word = (MPI_Aint)value;
    ((delete_function *)function)(&number, &key, &word, &state, &ierror);
    return ierror;
}

/* Of MPI_KEYVAL_CREATE: the values are INTEGERs, sign-extended (MPI 5.0 19.3.7). */
static int old_copy(void *function, enum weft_language_kind kind, void *handle, int key, void *extra_state, void *value, void **copied,
                    int *flag)
{
    int number = number_of(kind, handle), logical = weft_f_logical(0), ierror = MPI_SUCCESS;
    int state = (int)(intptr_t)extra_state, in = (int)(intptr_t)value, out = in;
    ((old_copy_function *)function)(&number, &key, &state, &in, &out, &logical, &ierror);
    *copied = (void *)(intptr_t)out;
    *flag = weft_f_is_true(logical);
    return ierror;
}

static int old_del(void *function, enum weft_language_kind kind, void *handle, int key, void *value, void *extra_state)
{
    int number = number_of(kind, handle), ierror = MPI_SUCCESS;
    int state = (int)(intptr_t)extra_state, word = (int)(intptr_t)value;
    ((old_delete_function *)function)(&number, &key, &word, &state, &ierror);
    return ierror;
}

static void reduce(void *function, void *in, void *inout, const void *length, bool is_large, void *type)
{
    int number = weft_f_type_out(type);
    (void)is_large; /* the length has the kind that the function expects */
    ((reduce_function *)function)(in, inout, length, &number);
}

static void fail(void *function, enum weft_language_kind kind, void *handle, int *code)
{
    int number = number_of(kind, handle);
    ((fail_function *)function)(&number, code);
}

static int query(void *function, void *extra_state, void *status)
{
    MPI_Aint state = (MPI_Aint)extra_state;
    int ierror = MPI_SUCCESS;
    ((query_function *)function)(&state, status, &ierror);
    return ierror;
}

static int release(void *function, void *extra_state)
{
    MPI_Aint state = (MPI_Aint)extra_state;
    int ierror = MPI_SUCCESS;
    ((release_function *)function)(&state, &ierror);
    return ierror;
}

static int cancel(void *function, void *extra_state, int is_complete)
{
    MPI_Aint state = (MPI_Aint)extra_state;
    int logical = weft_f_logical(is_complete), ierror = MPI_SUCCESS;
    ((cancel_function *)function)(&state, &logical, &ierror);
    return ierror;
}

const weft_language weft_f_language = {copy, del, reduce, fail, query, release, cancel};
const weft_language weft_f_deprecated = {old_copy, old_del, reduce, fail, query, release, cancel};

/* The predefined procedures, each under its names in MPI and PMPI. A program may also call them itself. */
#define PREDEFINED(kind) \
    WEFT_F_ENTRY void mpi_##kind##null_copy_fn_(int *handle, int *key, void *state, void *in, void *out, int *flag, int *ierror) \
    { \
        (void)handle, (void)key, (void)state, (void)in, (void)out; \
        *flag = weft_f_logical(0); \
        *ierror = MPI_SUCCESS; \
    } \
    WEFT_F_ENTRY void mpi_##kind##null_delete_fn_(int *handle, int *key, void *value, void *state, int *ierror) \
    { \
        (void)handle, (void)key, (void)value, (void)state; \
        *ierror = MPI_SUCCESS; \
    }
#define PREDEFINED_DUP(kind, word) \
    WEFT_F_ENTRY void mpi_##kind##dup_fn_(int *handle, int *key, void *state, word *in, word *out, int *flag, int *ierror) \
    { \
        (void)handle, (void)key, (void)state; \
        *out = *in; \
        *flag = weft_f_logical(1); \
        *ierror = MPI_SUCCESS; \
    }
PREDEFINED(comm_)
PREDEFINED(type_)
PREDEFINED(win_)
PREDEFINED()
PREDEFINED_DUP(comm_, MPI_Aint)
PREDEFINED_DUP(type_, MPI_Aint)
PREDEFINED_DUP(win_, MPI_Aint)
PREDEFINED_DUP(, int)

/* They stand for no conversion (MPI 5.0 14.5.3) and are not called. */
WEFT_F_ENTRY void mpi_conversion_fn_null_(void *userbuf, int *type, const void *count, void *filebuf, MPI_Offset *position,
                                          MPI_Aint *state, int *ierror)
{
    (void)userbuf, (void)type, (void)count, (void)filebuf, (void)position, (void)state;
    *ierror = MPI_ERR_CONVERSION;
}
WEFT_F_ALIAS(mpi_conversion_fn_null_c_, mpi_conversion_fn_null_);

#define IS(name) ((void *)function == (void *)(name))
weft_f_function *weft_f_predefined(weft_f_function *function)
{
    if (IS(mpi_comm_dup_fn_) || IS(mpi_type_dup_fn_) || IS(mpi_win_dup_fn_) || IS(mpi_dup_fn_))
        return (weft_f_function *)(void *)MPI_COMM_DUP_FN;
    if (IS(mpi_comm_null_copy_fn_) || IS(mpi_type_null_copy_fn_) || IS(mpi_win_null_copy_fn_) || IS(mpi_null_copy_fn_) ||
        IS(mpi_conversion_fn_null_) || IS(mpi_conversion_fn_null_c_) || IS(mpi_comm_null_delete_fn_) || IS(mpi_type_null_delete_fn_) ||
        IS(mpi_win_null_delete_fn_) || IS(mpi_null_delete_fn_))
        return NULL; /* MPI_COMM_NULL_COPY_FN and the others */
    return function;
}
