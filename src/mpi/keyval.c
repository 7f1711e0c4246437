/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keyval: see keyval.h.
 */
#include "mpi/keyval.h"

#include <mpi.h>

#include "base/status.h"

static weft_object_pool keyval_pool = WEFT_OBJECT_POOL(weft_keyval, WEFT_OBJECT_MAGIC('K', 'E', 'Y', 'V'));

static const char *const kinds[] = {[WEFT_KEYVAL_COMM] = "communicators", [WEFT_KEYVAL_TYPE] = "datatypes", [WEFT_KEYVAL_WIN] = "windows"};

/* The callbacks of the three kinds of objects differ in the type of the handle only. */
typedef int copy_function(void *handle, int key, void *extra_state, void *value, void *copied, int *flag);
typedef int delete_function(void *handle, int key, void *value, void *extra_state);

#define NULL_COPY 0 /* MPI_COMM_NULL_COPY_FN and others */
#define DUP 1       /* MPI_COMM_DUP_FN and others */
#define NULL_DELETE 0

int weft_keyval_create(enum weft_keyval_kind kind, uintptr_t copy, uintptr_t del, void *extra_state, int *number)
{
    weft_keyval *key = weft_object_new(&keyval_pool);
    if (!key)
        return weft_fail(WEFT_E_NOMEM, "no memory for an attribute key");
    key->kind = kind;
    key->copy = copy;
    key->del = del;
    key->extra_state = extra_state;
    key->language = weft_language_take();
    *number = key->number = key->object.number;
    return 0;
}

void weft_keyval_drop(weft_keyval *key)
{
    if (weft_object_drop(&key->object))
        weft_object_free(&keyval_pool, key);
}

/* The valid key with this number, held; NULL: none. Another thread may free it, and a third one reuse its memory for a new key, between
 * look-up and hold: a key without references is not held, and one of another number is dropped again. */
static weft_keyval *hold_by_number(int number)
{
    weft_keyval *key = weft_object_by_number(&keyval_pool, number);
    uint32_t refs = key ? __atomic_load_n(&key->object.refs, __ATOMIC_RELAXED) : 0;
    while (refs && !__atomic_compare_exchange_n(&key->object.refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        ;
    if (!refs)
        return NULL;
    if (weft_object_by_number(&keyval_pool, number) == key)
        return key;
    weft_keyval_drop(key);
    return NULL;
}

int weft_keyval_find(enum weft_keyval_kind kind, int number, weft_keyval **out)
{
    weft_keyval *key = hold_by_number(number);
    if (!key)
        return weft_fail(WEFT_E_KEYVAL, "keyval %d is %s", number,
                         number == MPI_KEYVAL_INVALID ? "MPI_KEYVAL_INVALID"
                         : number >= MPI_TAG_UB && number < WEFT_OBJECT_CONSTANTS ? "predefined: such attributes are read only"
                                                                              : "no attribute key, or was freed");
    if (key->kind != kind) {
        int rc = weft_fail(WEFT_E_KEYVAL, "keyval %d is a key for attributes of %s, not of %s", number, kinds[key->kind], kinds[kind]);
        weft_keyval_drop(key);
        return rc;
    }
    *out = key;
    return 0;
}

int weft_keyval_retire(enum weft_keyval_kind kind, int *number)
{
    weft_keyval *key;
    int rc = weft_keyval_find(kind, *number, &key);
    if (rc)
        return rc;
    if (weft_object_retire(&key->object))
        weft_keyval_drop(key); /* the program's reference */
    weft_keyval_drop(key);
    *number = MPI_KEYVAL_INVALID;
    return 0;
}

static enum weft_language_kind kind_of(const weft_keyval *key)
{
    return key->kind == WEFT_KEYVAL_COMM ? WEFT_LANGUAGE_COMM : key->kind == WEFT_KEYVAL_TYPE ? WEFT_LANGUAGE_TYPE : WEFT_LANGUAGE_WIN;
}

int weft_keyval_call_copy(const weft_keyval *key, void *handle, const weft_word *value, weft_word *copied, int *flag)
{
    int code;
    *flag = key->copy == DUP;
    *copied = *value;
    if (key->copy == NULL_COPY || key->copy == DUP)
        return 0;
    copied->language = key->language;
    if (key->language)
        code = key->language->copy((void *)key->copy, kind_of(key), handle, key->number, key->extra_state, value->word,
                                   &copied->word, flag);
    else
        code = ((copy_function *)key->copy)(handle, key->number, key->extra_state, weft_word_in_c(value), &copied->word, flag);
    return code ? weft_fail(code, "the copy function of attribute key %d returned error code %d", key->number, code) : 0;
}

int weft_keyval_call_delete(const weft_keyval *key, void *handle, const weft_word *value)
{
    int code;
    if (key->del == NULL_DELETE)
        return 0;
    if (key->language)
        code = key->language->del((void *)key->del, kind_of(key), handle, key->number, value->word, key->extra_state);
    else
        code = ((delete_function *)key->del)(handle, key->number, weft_word_in_c(value), key->extra_state);
    return code ? weft_fail(code, "the delete function of attribute key %d returned error code %d", key->number, code) : 0;
}
