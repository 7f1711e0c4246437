/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attribute: attributes of communicators, datatypes and windows (MPI 5.0 7.7). Each object owns a list, opaque to it. Keys are ints:
 * the numbers of weft_keyval objects. Called by attribute_calls.c, and where objects are duplicated and freed. Any thread; the program's
 * callbacks run with no lock held. Values are given and taken in the language of the call (base/language).
 */
#ifndef WEFT_MPI_ATTRIBUTE_H
#define WEFT_MPI_ATTRIBUTE_H

#include <stdbool.h>

#include "mpi/keyval.h"

/* An object with attributes: its kind, the program's handle, and where its list begins (NULL: none). */
typedef struct weft_attributes {
    enum weft_keyval_kind kind;
    void *handle;
    void **list;
} weft_attributes;

/* MPI_X_set_attr, get_attr, delete_attr. 0; WEFT_E_KEYVAL; a positive code: the program's delete function returned it, and the attribute
 * stays. get: *flag 0 if the object has none for this key. */
int weft_attribute_set(weft_attributes of, int key, void *value);
int weft_attribute_get(weft_attributes of, int key, void **value, int *flag);
int weft_attribute_delete(weft_attributes of, int key);
/* Has the object any attribute? */
bool weft_attributes_any(weft_attributes of);
/* The object is duplicated: calls the copy functions in the order in which attributes were set; *list becomes the new object's list. On
 * error *list holds what was copied until then; the caller deletes it. */
int weft_attributes_copy(weft_attributes from, void **list);
/* The object is freed: calls the delete functions, the latest attribute first. A positive code: a function returned it; the attributes
 * left stay. */
int weft_attributes_delete_all(weft_attributes of);
/* The same at MPI_Finalize: a failed function does not end the loop; no attribute is left. */
void weft_attributes_clear(weft_attributes of);

#endif
