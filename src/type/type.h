/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type: datatypes. An MPI_Datatype is a pointer to one of these, or one of the ABI's small constants (0x200..0x2ff), which index a
 * constant table. The engine below knows three facts of a type: its size, its extent, and whether it is one dense run of bytes.
 * Everything else is a program: a short list of strided blocks that pack.h interprets (and that all constructors compile to).
 */
#ifndef WEFT_TYPE_TYPE_H
#define WEFT_TYPE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_TYPE_MAGIC 0x54595045u

/* What the elements are, for reductions: a class and a width. Derived types have WEFT_CLASS_NONE unless all elements are the same basic type. */
enum weft_class {
    WEFT_CLASS_NONE, WEFT_CLASS_INT, WEFT_CLASS_UINT, WEFT_CLASS_FLOAT, WEFT_CLASS_COMPLEX, WEFT_CLASS_BOOL,
    WEFT_CLASS_BYTE, WEFT_CLASS_CHAR, /* CHAR: text; one byte of it reduces as a signed integer */
    WEFT_CLASS_PAIR /* value + index: MINLOC and MAXLOC */
};

/* Bytes of one buffer; a first or last element beyond it still has a 63-bit distance. */
#define WEFT_TYPE_SPAN_MAX (UINT64_C(1) << 62)

typedef struct weft_type_layout weft_type_layout;

typedef struct MPI_ABI_Datatype weft_type;
struct MPI_ABI_Datatype {
    uint32_t magic;      /* WEFT_TYPE_MAGIC while alive */
    uint32_t refs;       /* user's handle, requests in flight, types built on it */
    int32_t handle;      /* the ABI's constant of a predefined type; 0 for derived ones */
    bool is_committed, is_predefined;
    bool is_dense;       /* packed form == memory form: size == extent, lb 0, in order, no holes */
    bool is_absent;      /* predefined but not supported by this compiler: size is MPI_UNDEFINED */
    uint8_t class_;      /* enum weft_class of the basic element */
    uint16_t basic_handle; /* the one predefined type that all elements have; 0 when mixed */
    int64_t size;        /* bytes of data in one element */
    uint64_t count_max;  /* elements whose data and span stay within WEFT_TYPE_SPAN_MAX: no product of a count that was checked overflows */
    int64_t lb, extent;
    int64_t true_lb, true_extent;
    int64_t elements;    /* basic elements in one */
    const weft_type_layout *program; /* NULL when dense */
    void *envelope;      /* how it was made: combiner, integers, addresses, types (MPI_Type_get_contents) */
    void *attributes;    /* src/mpi's */
    char name[128];      /* MPI_MAX_OBJECT_NAME */
    int64_t align;       /* what the strictest basic element asks of addresses: rounds the extent (MPI 5.0, 5.1) */
    bool is_resized;     /* lb and extent were set by the user (or come from a type where they were), not by the data */
};

/* How a type was made, for MPI_Type_get_envelope and _contents. Combiners have the ABI's values. Owned by the type; holds `types`. */
enum weft_combiner {
    WEFT_COMBINER_NAMED = 101, WEFT_COMBINER_DUP, WEFT_COMBINER_CONTIGUOUS, WEFT_COMBINER_VECTOR, WEFT_COMBINER_HVECTOR,
    WEFT_COMBINER_INDEXED, WEFT_COMBINER_HINDEXED, WEFT_COMBINER_INDEXED_BLOCK, WEFT_COMBINER_HINDEXED_BLOCK, WEFT_COMBINER_STRUCT,
    WEFT_COMBINER_SUBARRAY, WEFT_COMBINER_DARRAY, WEFT_COMBINER_RESIZED = 116
};
typedef struct weft_envelope {
    int32_t combiner;
    uint64_t number_count, address_count, type_count;
    int64_t *numbers;        /* counts and integers in the order of the standard's tables (5.1.13) */
    int64_t *addresses;      /* byte displacements and strides */
    const weft_type **types; /* each is held by this one, so that programs may point into theirs */
} weft_envelope;

/* Handle to type: predefined constants by table, pointers as they are. NULL for MPI_DATATYPE_NULL, garbage below 4096, or freed types. */
extern const weft_type *const weft_type_table[256];
static inline const weft_type *weft_type_of(const void *handle)
{
    uintptr_t bits = (uintptr_t)handle;
    const weft_type *type;
    if (bits < 4096)
        return (bits >> 8) == 2 ? weft_type_table[bits & 255] : NULL;
    type = handle;
    return type->magic == WEFT_TYPE_MAGIC ? type : NULL;
}

/* Constructors: out types are uncommitted, with one reference, owned by the caller. WEFT_E_NOMEM; WEFT_E_TOOLARGE when a size or
 * an address of the new type passes 63 bits. Arguments were checked before (counts >= 0, old types present on this compiler).
 * Strides and displacements may be negative and are in bytes. The old types may be dropped afterwards. */
int weft_type_contiguous(int64_t count, const weft_type *old, weft_type **out);
int weft_type_vector(int64_t count, int64_t blocklength, int64_t stride_bytes, const weft_type *old, weft_type **out);
/* count blocks: blocklengths[i] elements of types[i] at displacements[i]. */
int weft_type_struct(int64_t count, const int64_t *blocklengths, const int64_t *displacements, const weft_type *const *types,
                     weft_type **out);
/* The same with one old type: what indexed, hindexed and their block forms compile to. */
int weft_type_hindexed(int64_t count, const int64_t *blocklengths, const int64_t *displacements, const weft_type *old, weft_type **out);
int weft_type_resized(const weft_type *old, int64_t lb, int64_t extent, weft_type **out);
/* A copy, committed if the old one is. */
int weft_type_dup(const weft_type *old, weft_type **out);
/* Replaces what the envelope says (the constructors note their byte form); keeps the types that it holds. */
int weft_type_describe(weft_type *type, enum weft_combiner combiner, uint64_t number_count, const int64_t *numbers,
                       uint64_t address_count, const int64_t *addresses);
int weft_type_commit(weft_type *type); /* idempotent */
void weft_type_hold(const weft_type *type);
void weft_type_drop(const weft_type *type); /* the last drop frees; predefined: nothing happens */
/* The user gives the handle up (MPI_Type_free): from now on weft_type_of knows it no more; whoever holds the type may go on using it. */
void weft_type_retire(weft_type *type);

#endif
