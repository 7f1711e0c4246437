/* SPDX-License-Identifier: BSD-3-Clause
 *
 * language: which language the current call of MPI comes from, and how functions of a language other than C are called (MPI 5.0 19.3.6,
 * 19.3.7). A binding of another language (src/fortran) sets it around calls that pass functions or attribute values; the object made then
 * records it, and calls the program's functions through it. Any thread; the setting is the thread's.
 * Invariant: NULL is C. A callback of the program never runs with the setting of the call that caused it.
 */
#ifndef WEFT_BASE_LANGUAGE_H
#define WEFT_BASE_LANGUAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of objects whose handles are passed to functions. */
enum weft_language_kind { WEFT_LANGUAGE_COMM, WEFT_LANGUAGE_TYPE, WEFT_LANGUAGE_WIN, WEFT_LANGUAGE_FILE, WEFT_LANGUAGE_SESSION };

/* Calls of the program's functions: `function` first, then what a function in C gets. Attribute values are words: integers in the
 * language, as its MPI_X_set_attr stores them. */
typedef struct weft_language {
    int (*copy)(void *function, enum weft_language_kind kind, void *handle, int key, void *extra_state, void *value, void **copied,
                int *flag);
    int (*del)(void *function, enum weft_language_kind kind, void *handle, int key, void *value, void *extra_state);
    void (*reduce)(void *function, void *in, void *inout, const void *length, bool is_large, void *type);
    void (*fail)(void *function, enum weft_language_kind kind, void *handle, int *code);
    int (*query)(void *function, void *extra_state, void *status);
    int (*release)(void *function, void *extra_state);
    int (*cancel)(void *function, void *extra_state, int is_complete);
} weft_language;

/* Sets this thread's language; NULL: C. Exported by libmpi_abi.so for the library of another language. */
__attribute__((visibility("default"))) void weft_language_set(const weft_language *language);
/* Raises an error that a binding has found before the call of `function` (its name in C): code is of enum weft_status, text the cause. Runs
 * the error handler of comm (MPI_Comm), of MPI_COMM_SELF if that is no communicator. Returns the MPI error class if the handler returns.
 * Exported like weft_language_set; in src/mpi/language.c. */
__attribute__((visibility("default"), cold)) int weft_language_refuse(void *comm, const char *function, int code, const char *text);
/* For bindings whose handles are ints. What a request that is no constant begins with; the request of a send that was done at once, and its
 * number. NULL: no world is open. */
typedef struct weft_language_request {
    uint32_t magic;
    int32_t number; /* MPI_Request_toint */
} weft_language_request;
#define WEFT_LANGUAGE_DONE 4096
extern __attribute__((visibility("default"))) void *weft_language_done;
/* An array as a compiler passes it for a choice buffer: gfortran's descriptor, from version 8 on. */
#define WEFT_LANGUAGE_RANKS 15
typedef struct weft_language_array {
    void *base;         /* the first element */
    size_t offset;      /* unused here */
    size_t bytes;       /* of an element */
    int version;
    signed char rank;   /* 0: a scalar, whose dimensions are not set */
    signed char type;
    short attribute;
    ptrdiff_t span;     /* bytes that a stride of 1 means */
    struct {
        ptrdiff_t stride, lower, upper; /* the last upper bound of an assumed-size array is -1 */
    } dim[WEFT_LANGUAGE_RANKS];
} weft_language_array;
/* An array of one dimension without gaps? */
static inline bool weft_language_is_vector(const weft_language_array *array)
{
    return array->rank == 1 && array->dim[0].stride * array->span == (ptrdiff_t)array->bytes;
}

/* Short forms of the commonest calls: arguments by reference, handles as ints, buffers by address or as arrays, ierror may be NULL. A short
 * form makes the call itself if handles were used lately, no buffer is a sentinel of the binding, arrays are vectors and the other
 * arguments are usual; else it goes on with the binding's whole translation, the arguments as they came. It calls no MPI_X: a binding must
 * not use it for a call that a tool has replaced. */
#define WEFT_LANGUAGE_SENT const int *count, const int *datatype, const int *dest, const int *tag, const int *comm
#define WEFT_LANGUAGE_RECEIVED const int *count, const int *datatype, const int *source, const int *tag, const int *comm
typedef struct weft_language_quick {
    void (*send)(const void *buf, WEFT_LANGUAGE_SENT, int *ierror);
    void (*send_array)(const weft_language_array *buf, WEFT_LANGUAGE_SENT, int *ierror);
    void (*isend)(const void *buf, WEFT_LANGUAGE_SENT, int *request, int *ierror);
    void (*isend_array)(const weft_language_array *buf, WEFT_LANGUAGE_SENT, int *request, int *ierror);
    void (*recv)(void *buf, WEFT_LANGUAGE_RECEIVED, int *status, int *ierror);
    void (*recv_array)(const weft_language_array *buf, WEFT_LANGUAGE_RECEIVED, int *status, int *ierror);
    void (*irecv)(void *buf, WEFT_LANGUAGE_RECEIVED, int *request, int *ierror);
    void (*irecv_array)(const weft_language_array *buf, WEFT_LANGUAGE_RECEIVED, int *request, int *ierror);
    void (*wait)(int *request, int *status, int *ierror);
} weft_language_quick;
/* What a binding tells before its first call: its whole translations, the memory whose addresses are sentinels, and that which means
 * MPI_STATUS_IGNORE. */
typedef struct weft_language_binding {
    weft_language_quick whole;
    uintptr_t sentinels, sentinel_bytes;
    const void *status_ignore;
} weft_language_binding;
/* Sets `made` to the short forms. One binding, one thread. Exported like weft_language_set; in src/api/entries-quick.c. */
__attribute__((visibility("default"))) void weft_language_bind(const weft_language_binding *binding, weft_language_quick *made);
/* A copy of an array with gaps, that a binding keeps while a request has it as a buffer. The operation sees the copy. */
typedef struct weft_language_copy {
    struct weft_language_copy *next; /* of the same request; NULL: none */
    /* Moves bytes from .. to - 1 of the copy: from the array, or (is_out) those that have changed since, back to it. `to` may be too large.
     * Any thread; ranges that are moved at the same time do not overlap. */
    void (*move)(struct weft_language_copy *self, bool is_out, size_t from, size_t to);
    void (*free)(struct weft_language_copy *self);
} weft_language_copy;
/* Gives copies to the request (MPI_Request) of a collective or partitioned operation that was made just now; its thread has not passed it
 * to another one. From then on the request owns them: MPI_Start and MPI_Pready move into them (a nonblocking operation's were moved into
 * before it was called), completion and MPI_Parrived move out of them. Exported like weft_language_set; in src/mpi/language.c. */
__attribute__((visibility("default"))) void weft_language_keep(void *request, weft_language_copy *first);
/* Moves bytes of all copies of a request; first may be NULL. */
static inline void weft_language_move(weft_language_copy *first, bool is_out, size_t from, size_t to)
{
    for (weft_language_copy *one = first; one; one = one->next)
        one->move(one, is_out, from, to);
}
/* Frees all of them. */
void weft_language_copies_free(weft_language_copy *first);
/* This thread's language; from then on it is C, so that functions called meanwhile are not taken for the other language. */
const weft_language *weft_language_take(void);

#endif
