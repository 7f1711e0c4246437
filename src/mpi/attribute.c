/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attribute: lists of attributes and their callbacks. See attribute.h. Calls of MPI: attribute_calls.c.
 * Invariant: an attribute is off its list while its delete function runs, so that no other thread reads or deletes it.
 */
#include "mpi/attribute.h"

#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/status.h"

typedef struct attribute {
    struct attribute *next; /* set before this one */
    weft_keyval *key;       /* held */
    weft_word value;
} attribute;

/* Guards all lists: they are short, and calls on them rare. Never held across a callback. */
static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;

static void attribute_free(attribute *at)
{
    weft_keyval_drop(at->key);
    free(at);
}

static void push(void **list, attribute *at)
{
    pthread_mutex_lock(&lists_lock);
    at->next = *list;
    *list = at;
    pthread_mutex_unlock(&lists_lock);
}

/* Takes the key's attribute, or the latest if key is NULL, off the list. NULL: none. */
static attribute *take(void **list, const weft_keyval *key)
{
    attribute *at, *before = NULL;
    pthread_mutex_lock(&lists_lock);
    for (at = *list; at && key && at->key != key; at = at->next)
        before = at;
    if (at && before)
        before->next = at->next;
    else if (at)
        *list = at->next;
    pthread_mutex_unlock(&lists_lock);
    return at;
}

/* Pushes `at`, unless the list has an attribute with its key: takes that one off and returns it. */
static attribute *replace(void **list, attribute *at)
{
    attribute *old, *before = NULL;
    pthread_mutex_lock(&lists_lock);
    for (old = *list; old && old->key != at->key; old = old->next)
        before = old;
    if (old && before)
        before->next = old->next;
    else if (old)
        *list = old->next;
    if (!old) {
        at->next = *list;
        *list = at;
    }
    pthread_mutex_unlock(&lists_lock);
    return old;
}

/* Deletes an attribute that is off its list; puts it back if the program's function fails. */
static int dispose(weft_attributes of, attribute *at)
{
    int rc = weft_keyval_call_delete(at->key, of.handle, &at->value);
    if (rc)
        push(of.list, at);
    else
        attribute_free(at);
    return rc;
}

int weft_attribute_set(weft_attributes of, int number, void *value)
{
    const weft_language *language = weft_language_take();
    weft_keyval *key;
    attribute *at, *old;
    int rc = weft_keyval_find(of.kind, number, &key); /* held */
    if (rc)
        return rc;
    at = malloc(sizeof *at);
    if (!at) {
        weft_keyval_drop(key);
        return weft_fail(WEFT_E_NOMEM, "no memory for an attribute");
    }
    *at = (attribute){.key = key, .value = {value, language}};
    /* The delete function, or another thread meanwhile, may set the attribute again. */
    while (!rc && (old = replace(of.list, at)))
        rc = dispose(of, old);
    if (rc)
        attribute_free(at);
    return rc;
}

int weft_attribute_get(weft_attributes of, int number, void **value, int *flag)
{
    const weft_language *language = weft_language_take();
    weft_keyval *key;
    int rc = weft_keyval_find(of.kind, number, &key);
    if (rc)
        return rc;
    *flag = 0;
    pthread_mutex_lock(&lists_lock);
    for (const attribute *at = *of.list; at && !*flag; at = at->next)
        if (at->key == key) {
            *value = language ? at->value.word : weft_word_in_c(&at->value);
            *flag = 1;
        }
    pthread_mutex_unlock(&lists_lock);
    weft_keyval_drop(key);
    return 0;
}

int weft_attribute_delete(weft_attributes of, int number)
{
    weft_keyval *key;
    attribute *at;
    int rc = weft_keyval_find(of.kind, number, &key);
    if (rc)
        return rc;
    at = take(of.list, key);
    if (at)
        rc = dispose(of, at);
    else
        rc = weft_fail(WEFT_E_KEYVAL, "this object has no attribute with key %d: there is nothing to delete", number);
    weft_keyval_drop(key);
    return rc;
}

bool weft_attributes_any(weft_attributes of)
{
    bool any;
    pthread_mutex_lock(&lists_lock);
    any = *of.list != NULL;
    pthread_mutex_unlock(&lists_lock);
    return any;
}

/* Copies of all attributes, with held keys, the first set first: callbacks may change the list. Returns their number, or an error. */
static int snapshot(void **list, attribute **out)
{
    int count = 0;
    pthread_mutex_lock(&lists_lock);
    for (const attribute *at = *list; at; at = at->next)
        count++;
    *out = count ? malloc((size_t)count * sizeof **out) : NULL;
    if (*out) {
        int i = count;
        for (const attribute *at = *list; at; at = at->next) {
            (*out)[--i] = *at;
            weft_object_hold(&at->key->object);
        }
    }
    pthread_mutex_unlock(&lists_lock);
    return count && !*out ? weft_fail(WEFT_E_NOMEM, "no memory to copy %d attributes", count) : count;
}

int weft_attributes_copy(weft_attributes from, void **list)
{
    attribute *all;
    int count = snapshot(from.list, &all), rc = count < 0 ? count : 0;
    for (int i = 0; i < count; i++) {
        weft_word value = {NULL, NULL};
        int flag = 0;
        attribute *made;
        if (!rc)
            rc = weft_keyval_call_copy(all[i].key, from.handle, &all[i].value, &value, &flag);
        made = !rc && flag ? malloc(sizeof *made) : NULL;
        if (made) {
            *made = (attribute){.key = all[i].key, .value = value};
            push(list, made);
            continue;
        }
        if (!rc && flag)
            rc = weft_fail(WEFT_E_NOMEM, "no memory to copy an attribute");
        weft_keyval_drop(all[i].key);
    }
    free(all);
    return rc;
}

int weft_attributes_delete_all(weft_attributes of)
{
    attribute *at;
    int rc = 0;
    while (!rc && (at = take(of.list, NULL)))
        rc = dispose(of, at);
    return rc;
}

void weft_attributes_clear(weft_attributes of)
{
    attribute *at;
    while ((at = take(of.list, NULL))) {
        weft_keyval_call_delete(at->key, of.handle, &at->value);
        attribute_free(at);
    }
}
