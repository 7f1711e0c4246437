/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_f90: predefined datatypes without a name, of Fortran's selected_real_kind and selected_int_kind (MPI 5.0, 19.1.9). Kinds are those
 * of gfortran. Called by src/mpi; any thread. The types live as long as the process: one for each (kind of type, p, r).
 */
#include <float.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/arith.h"
#include "base/status.h"
#include "type/type_internal.h"

#define BUCKETS 64

typedef struct f90_type {
    struct f90_type *next;
    enum weft_combiner combiner;
    int p, r; /* r alone for integers */
    weft_type *type;
} f90_type;

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static f90_type *known[BUCKETS]; /* under guard */

/* Kinds of gfortran in the order of selected_real_kind's preference; handles of the real and the complex type. */
static const struct real_kind {
    int p, r, real, complex_;
    bool is_there;
} real_kinds[] = {
    {6, 37, 0x2d2, 0x2db, true},
    {15, 307, 0x2da, 0x2e3, true},
    {18, 4931, 0x220, 0x224, LDBL_MANT_DIG == 64},
    {33, 4931, 0x2e2, 0x2eb, WEFT_HAS_FLOAT128},
};
static const struct int_kind {
    int r, handle;
    bool is_there;
} int_kinds[] = {{2, 0x2c1, true}, {4, 0x2c9, true}, {9, 0x2d1, true}, {18, 0x2d9, true}, {38, 0x2e1, WEFT_HAS_INT128}};

/* The named type of the same representation; 0: none. */
static int base_of(enum weft_combiner combiner, int p, int r)
{
    if (combiner == WEFT_COMBINER_F90_INTEGER) {
        for (size_t i = 0; i < sizeof int_kinds / sizeof *int_kinds; i++)
            if (int_kinds[i].is_there && r <= int_kinds[i].r)
                return int_kinds[i].handle;
        return 0;
    }
    for (size_t i = 0; i < sizeof real_kinds / sizeof *real_kinds; i++)
        if (real_kinds[i].is_there && p <= real_kinds[i].p && r <= real_kinds[i].r)
            return combiner == WEFT_COMBINER_F90_REAL ? real_kinds[i].real : real_kinds[i].complex_;
    return 0;
}

static f90_type *f90_make(enum weft_combiner combiner, int p, int r, const weft_type *base)
{
    uint64_t count = combiner == WEFT_COMBINER_F90_INTEGER ? 1 : 2;
    f90_type *made = calloc(1, sizeof *made);
    int64_t *values = malloc(2 * sizeof *values);
    weft_type *type = made && values ? weft_type_blank() : NULL;
    weft_envelope *envelope = type ? weft_envelope_new(0, NULL) : NULL;
    if (!envelope) {
        if (type)
            weft_type_drop(type);
        free(values);
        free(made);
        return NULL;
    }
    values[0] = count == 1 ? r : p;
    values[1] = r;
    type->envelope = envelope;
    weft_type_set_envelope(type, combiner, count, 0, 0, values);
    weft_type_copy_shape(type, base);
    type->is_committed = type->is_predefined = true;
    *made = (f90_type){.combiner = combiner, .p = p, .r = r, .type = type};
    return made;
}

int weft_type_f90(enum weft_combiner combiner, int p, int r, const weft_type **out)
{
    int base = base_of(combiner, p, r), rc = 0;
    f90_type **bucket = &known[((unsigned)p * 31u + (unsigned)r + (unsigned)combiner * 7u) % BUCKETS], *at;
    if (!base)
        return WEFT_E_ARG;
    pthread_mutex_lock(&guard);
    at = *bucket;
    while (at && (at->combiner != combiner || at->p != p || at->r != r))
        at = at->next;
    if (!at) {
        at = f90_make(combiner, p, r, weft_type_table[base & 255]);
        if (at) {
            at->next = *bucket;
            *bucket = at;
        } else {
            rc = weft_fail(WEFT_E_NOMEM, "no memory for a predefined datatype of Fortran");
        }
    }
    if (at)
        *out = at->type;
    pthread_mutex_unlock(&guard);
    return rc;
}
