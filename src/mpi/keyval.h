/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keyval: attribute keys and their callbacks (MPI 5.0 7.7). Referenced by the program until MPI_X_free_keyval, and by each attribute.
 * Called by attribute.c and attribute_calls.c; any thread.
 */
#ifndef WEFT_MPI_KEYVAL_H
#define WEFT_MPI_KEYVAL_H

#include "base/language.h"
#include "base/object.h"

/* Kinds of objects that have attributes; a key is for one kind. */
enum weft_keyval_kind { WEFT_KEYVAL_COMM, WEFT_KEYVAL_TYPE, WEFT_KEYVAL_WIN };

typedef struct weft_keyval {
    weft_object object;
    int number; /* the key, also after MPI_X_free_keyval: attributes may still have it */
    enum weft_keyval_kind kind;
    uintptr_t copy, del; /* the program's functions, or a predefined constant: NULL_COPY, DUP, NULL_DELETE */
    void *extra_state;
    const weft_language *language; /* of both functions; NULL: C */
} weft_keyval;

/* An attribute's value: a pointer if C set it, else an integer (MPI 5.0 19.3.7). */
typedef struct weft_word {
    void *word;
    const weft_language *language; /* that set it; NULL: C */
} weft_word;

/* As C sees it: the pointer, or the address of the integer, which is valid as long as *value is. */
static inline void *weft_word_in_c(const weft_word *value) { return value->language ? (void *)&value->word : value->word; }

/* A new key; 0 or WEFT_E_NOMEM. */
int weft_keyval_create(enum weft_keyval_kind kind, uintptr_t copy, uintptr_t del, void *extra_state, int *number);
/* MPI_X_free_keyval: the key stays usable for attributes that have it. 0 or WEFT_E_KEYVAL. */
int weft_keyval_retire(enum weft_keyval_kind kind, int *number);
/* The valid key with this number, held; WEFT_E_KEYVAL: none, or one for another kind of object. */
int weft_keyval_find(enum weft_keyval_kind kind, int number, weft_keyval **key);
void weft_keyval_drop(weft_keyval *key);

/* Run the program's functions, with no lock held. 0, or the positive code that the function returned. */
int weft_keyval_call_copy(const weft_keyval *key, void *handle, const weft_word *value, weft_word *copied, int *flag);
int weft_keyval_call_delete(const weft_keyval *key, void *handle, const weft_word *value);

#endif
