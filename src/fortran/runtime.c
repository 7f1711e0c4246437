/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runtime: see runtime.h.
 */
#include "fortran/runtime.h"

#include <stdlib.h>
#include <string.h>

/* Aligned as Fortran compilers align COMMON blocks: the linker warns of less. */
__attribute__((aligned(64))) weft_f_sentinels weft_sentinels_;

weft_f_truth weft_f_truth_values = {.yes = 1, .no = 0};

void *weft_f_sentinel(size_t offset)
{
    switch (offset) {
    case offsetof(weft_f_sentinels, in_place): return MPI_IN_PLACE;
    case offsetof(weft_f_sentinels, buffer_automatic): return MPI_BUFFER_AUTOMATIC;
    case offsetof(weft_f_sentinels, unweighted): return MPI_UNWEIGHTED;
    case offsetof(weft_f_sentinels, weights_empty): return MPI_WEIGHTS_EMPTY;
    default: return NULL; /* MPI_BOTTOM, MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE, MPI_ARGV_NULL */
    }
}

int weft_f_no_memory(void)
{
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

/* `few` if count elements fit, else memory for them; NULL: no memory. */
static void *array_new(int count, size_t bytes, void *few)
{
    return count <= WEFT_F_FEW ? few : malloc((size_t)count * bytes);
}

void weft_f_free(void *made, void *few)
{
    if (made != few)
        free(made);
}

#define ARRAYS(name, type, one) \
    type *weft_f_##name##_in(const int *given, int count, type few[WEFT_F_FEW]) \
    { \
        type *made = array_new(count, sizeof *made, few); \
        for (int i = 0; made && i < count; i++) \
            made[i] = weft_f_##one(given[i]); \
        return made; \
    } \
    void weft_f_##name##_out(int *given, int count, type *made, type few[WEFT_F_FEW]) \
    { \
        for (int i = 0; made && i < count; i++) \
            if (made[i]) \
                given[i] = weft_f_##one##_out(made[i]); \
        weft_f_free(made, few); \
    } \
    void weft_f_##name##_free(const int *given, int count, type *made, type few[WEFT_F_FEW]) \
    { \
        (void)given, (void)count; \
        weft_f_free(made, few); \
    }
ARRAYS(types, MPI_Datatype, type)
ARRAYS(requests, MPI_Request, request)

MPI_Datatype *weft_f_types_new(const int *given, int count, MPI_Datatype few[WEFT_F_FEW])
{
    MPI_Datatype *made = array_new(count, sizeof *made, few);
    (void)given;
    for (int i = 0; made && i < count; i++)
        made[i] = NULL;
    return made;
}

void weft_f_indices_out(int *indices, int count)
{
    for (int i = 0; i < count; i++) /* MPI_UNDEFINED is negative */
        indices[i]++;
}

int *weft_f_logicals_in(const int *given, int count, int few[WEFT_F_FEW])
{
    int *made = array_new(count, sizeof *made, few);
    for (int i = 0; made && i < count; i++)
        made[i] = weft_f_is_true(given[i]);
    return made;
}

void weft_f_logicals_out(int *flags, int count)
{
    for (int i = 0; i < count; i++)
        flags[i] = weft_f_logical(flags[i]);
}

void weft_f_truth_read(void)
{
    weft_f_truth set;
    int is_set = 0;
    if (PMPI_Abi_get_fortran_booleans((int)sizeof set.yes, &set.yes, &set.no, &is_set) == MPI_SUCCESS && is_set)
        weft_f_truth_values = set;
}

char *weft_f_text_in(const char *given, size_t length, enum weft_f_trim trim, char few[WEFT_F_TEXT])
{
    char *made;
    while (length && given[length - 1] == ' ')
        length--;
    while (trim == WEFT_F_BOTH && length && *given == ' ')
        given++, length--;
    made = length < WEFT_F_TEXT ? few : malloc(length + 1);
    if (!made)
        return NULL;
    memcpy(made, given, length);
    made[length] = 0;
    return made;
}

void weft_f_text_out(char *given, size_t length, const char *text)
{
    size_t used = strlen(text);
    if (used > length)
        used = length;
    memcpy(given, text, used);
    memset(given + used, ' ', length - used);
}
