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
/* This thread's language; from then on it is C, so that functions called meanwhile are not taken for the other language. */
const weft_language *weft_language_take(void);

#endif
