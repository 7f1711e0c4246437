/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type: datatypes. An MPI_Datatype points to a weft_type or is a constant of the ABI (0x200..0x2ff), which indexes a constant table.
 * Lower layers use size, extent and is_dense only. All other structure is a layout (layout.h), which pack.h interprets.
 * Any thread: a type is immutable but for commit, name and attributes; reference counts are atomic. It belongs to no worker.
 */
#ifndef WEFT_TYPE_TYPE_H
#define WEFT_TYPE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/object.h"

#define WEFT_TYPE_MAGIC WEFT_OBJECT_MAGIC('T', 'Y', 'P', 'E')

/* Class of the basic elements, for reductions. Derived types have NONE unless all elements are of one basic type. */
enum weft_class {
    WEFT_CLASS_NONE, WEFT_CLASS_INT, WEFT_CLASS_UINT, WEFT_CLASS_FLOAT, WEFT_CLASS_COMPLEX, WEFT_CLASS_BOOL,
    WEFT_CLASS_BYTE, WEFT_CLASS_CHAR, /* CHAR: text; a one-byte one reduces as a signed integer */
    WEFT_CLASS_PAIR /* value + index: MINLOC and MAXLOC */
};

/* Longest span of a buffer, bytes; leaves a margin for displacements of one more element within 63 bits. */
#define WEFT_TYPE_SPAN_MAX (UINT64_C(1) << 62)

struct weft_type_layout;

typedef struct MPI_ABI_Datatype weft_type;
struct MPI_ABI_Datatype {
    weft_object object;  /* refs: user's handle, requests in flight, types built on it */
    int32_t handle;      /* constant of the ABI; 0: derived */
    bool is_committed, is_predefined;
    bool is_dense;       /* packed form == memory form: size == extent, lb 0, in order, no holes */
    bool is_absent;      /* predefined but not supported by this compiler: size is MPI_UNDEFINED */
    uint8_t class_;      /* enum weft_class of the basic elements */
    uint16_t basic_handle; /* the predefined type of all elements; 0: mixed */
    int64_t size;        /* bytes of data in one element */
    uint64_t count_max;  /* largest count whose data and span stay within WEFT_TYPE_SPAN_MAX: products of checked counts cannot overflow */
    int64_t lb, extent;           /* bytes (MPI 5.0 5.1) */
    int64_t true_lb, true_extent; /* bytes, of the data */
    int64_t elements;    /* basic elements in one element */
    const struct weft_type_layout *layout; /* owned; NULL: dense */
    void *envelope;      /* weft_envelope, owned; NULL if predefined */
    void *attributes;    /* opaque, of src/mpi */
    char name[128];      /* MPI_MAX_OBJECT_NAME */
    int64_t align;       /* strictest alignment of the basic elements, bytes; rounds the extent (MPI 5.0 5.1) */
    bool is_resized;     /* lb and extent come from MPI_Type_create_resized, also of a member type, not from the data */
    const weft_type *origin; /* referenced owner of the layout; NULL: the layout is this type's own */
    weft_type *next_dead;    /* while it is freed: in the list of weft_type_drop */
};

/* Construction of a type, for MPI_Type_get_envelope and _contents. Combiners have the ABI's values. */
enum weft_combiner {
    WEFT_COMBINER_NAMED = 101, WEFT_COMBINER_DUP, WEFT_COMBINER_CONTIGUOUS, WEFT_COMBINER_VECTOR, WEFT_COMBINER_HVECTOR,
    WEFT_COMBINER_INDEXED, WEFT_COMBINER_HINDEXED, WEFT_COMBINER_INDEXED_BLOCK, WEFT_COMBINER_HINDEXED_BLOCK, WEFT_COMBINER_STRUCT,
    WEFT_COMBINER_SUBARRAY, WEFT_COMBINER_DARRAY, WEFT_COMBINER_F90_REAL, WEFT_COMBINER_F90_COMPLEX, WEFT_COMBINER_F90_INTEGER,
    WEFT_COMBINER_RESIZED
};
/* The constructor's arguments in the order of MPI 5.0 5.1.13: int arguments, MPI_Aint arguments, MPI_Count arguments (of a _c
 * constructor only). A STRUCT has its block lengths in values[1..type_count]. Immutable once the handle is returned. */
typedef struct weft_envelope {
    uint32_t refs; /* atomic: types that share it */
    int32_t combiner;
    uint64_t number_count, address_count, large_count, type_count;
    int64_t *values;         /* [number_count + address_count + large_count] owned */
    const weft_type **types; /* [type_count] referenced, so that this type's layout may point into their layouts */
} weft_envelope;

extern weft_object_pool weft_type_pool;

/* Handle to type. NULL: MPI_DATATYPE_NULL, another constant, or a freed type. */
extern const weft_type *const weft_type_table[256];
static inline const weft_type *weft_type_of(const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    const weft_type *type;
    if (weft_object_is_constant(handle))
        return (bits >> 8) == 2 ? weft_type_table[bits & 255] : NULL;
    type = handle;
    return type->object.magic == WEFT_TYPE_MAGIC ? type : NULL;
}

/* Constructors. *out is uncommitted, with one reference of the caller. 0; WEFT_E_NOMEM; WEFT_E_TOOLARGE: a size or address exceeds
 * 63 bits. The caller has checked the arguments (counts >= 0, old types not absent). Strides and displacements are in bytes and may
 * be negative. The old types may be dropped afterwards. */
int weft_type_contiguous(int64_t count, const weft_type *old, weft_type **out);
int weft_type_vector(int64_t count, int64_t blocklength, int64_t stride_bytes, const weft_type *old, weft_type **out);
/* count blocks: blocklengths[i] elements of types[i] at displacements[i]. */
int weft_type_struct(int64_t count, const int64_t *blocklengths, const int64_t *displacements, const weft_type *const *types,
                     weft_type **out);
/* The same with one old type; for indexed, hindexed and their block forms. */
int weft_type_hindexed(int64_t count, const int64_t *blocklengths, const int64_t *displacements, const weft_type *old, weft_type **out);
int weft_type_resized(const weft_type *old, int64_t lb, int64_t extent, weft_type **out);
/* A copy, committed if the old one is. */
int weft_type_dup(const weft_type *old, weft_type **out);
/* A second handle of the same type, for MPI_Type_get_contents: shares layout and envelope. */
int weft_type_clone(const weft_type *old, weft_type **out);
/* A type with the data and bounds of `made`, which it references, and an envelope of the one old type: a constructor of several steps. */
int weft_type_wrap(const weft_type *made, const weft_type *old, weft_type **out);
/* Replaces the combiner and values of the envelope of a new type (constructors record their byte form); its types stay. Takes
 * ownership of values (malloc). */
void weft_type_set_envelope(weft_type *type, enum weft_combiner combiner, uint64_t number_count, uint64_t address_count,
                            uint64_t large_count, int64_t *values);
/* Members of a predefined pair type (value, index). False: no pair. */
bool weft_type_pair_parts(const weft_type *pair, const weft_type *parts[2]);
/* The pair type of these members, a handle of the ABI; 0: none. */
int32_t weft_type_pair_of(const weft_type *value, const weft_type *index);
/* The predefined type without a name of MPI_Type_create_f90_x(p, r): the same for the same arguments. p or r negative: any; p is 0 for
 * integers. 0; WEFT_E_NOMEM; WEFT_E_ARG without a text: no kind of gfortran has that precision and range. */
int weft_type_f90(enum weft_combiner combiner, int p, int r, const weft_type **out);
int weft_type_commit(weft_type *type); /* idempotent */
void weft_type_hold(const weft_type *type);
void weft_type_drop(const weft_type *type); /* the last drop frees; no effect on predefined types */
/* MPI_Type_free: invalidates the handle and drops its reference. Other holders may still use the type. */
void weft_type_retire(weft_type *type);

#endif
