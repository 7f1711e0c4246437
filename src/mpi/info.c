/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info: see info.h. Its MPI functions (MPI 5.0 chapter 10; Info_get and Info_get_valuelen: 16.3) are called by the generated entries, at
 * any time, also before MPI_Init and after MPI_Finalize. They take no worker's lock.
 * Invariant: keys have 1..MPI_MAX_INFO_KEY - 1 bytes, values 0..MPI_MAX_INFO_VAL.
 */
#include "mpi/info.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mpi/calls.h"

weft_object_pool weft_info_pool = WEFT_OBJECT_POOL(weft_info, WEFT_INFO_MAGIC);

/* Guards the entries of all infos. Never held across a call to the outside. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

weft_info *weft_info_new(void)
{
    weft_info *info = weft_object_new(&weft_info_pool);
    if (!info)
        weft_fail(WEFT_E_NOMEM, "no memory for an info object (%zu bytes)", sizeof *info);
    return info;
}

void weft_info_drop(weft_info *info)
{
    if (!info || !weft_object_drop(&info->object))
        return;
    for (uint32_t i = 0; i < info->count; i++) {
        free(info->entries[i].key);
        free(info->entries[i].value);
    }
    free(info->entries);
    weft_object_free(&weft_info_pool, info);
}

/* Requires the lock. NULL: no such key. */
static weft_info_entry *entry_of(const weft_info *info, const char *key)
{
    for (uint32_t i = 0; i < info->count; i++)
        if (!strcmp(info->entries[i].key, key))
            return &info->entries[i];
    return NULL;
}

/* Replaces or appends; owns key and value afterwards, unless it fails. Requires the lock. */
static bool put(weft_info *info, char *key, char *value)
{
    weft_info_entry *entry = entry_of(info, key);
    if (entry) {
        free(entry->value);
        free(key);
        entry->value = value;
        return true;
    }
    if (info->count == info->capacity) {
        uint32_t capacity = info->capacity ? 2 * info->capacity : 8;
        weft_info_entry *entries = realloc(info->entries, capacity * sizeof *entries);
        if (!entries)
            return false;
        info->entries = entries;
        info->capacity = capacity;
    }
    info->entries[info->count++] = (weft_info_entry){key, value};
    return true;
}

static int key_check(const char *key)
{
    size_t length = strnlen(key, MPI_MAX_INFO_KEY);
    if (length == 0)
        return weft_fail(WEFT_E_INFO_KEY, "key is empty");
    if (length == MPI_MAX_INFO_KEY)
        return weft_fail(WEFT_E_INFO_KEY, "key '%.40s...' is longer than %d bytes (MPI_MAX_INFO_KEY - 1)", key, MPI_MAX_INFO_KEY - 1);
    return 0;
}

int weft_info_set(weft_info *info, const char *key, const char *value)
{
    char *own_key, *own_value;
    bool done;
    int rc = key_check(key);
    if (rc)
        return rc;
    if (strnlen(value, MPI_MAX_INFO_VAL + 1) > MPI_MAX_INFO_VAL)
        return weft_fail(WEFT_E_INFO_VALUE, "the value of key '%.80s' is longer than %d bytes (MPI_MAX_INFO_VAL)", key, MPI_MAX_INFO_VAL);
    own_key = strdup(key);
    own_value = strdup(value);
    if (own_key && own_value) {
        pthread_mutex_lock(&guard);
        done = put(info, own_key, own_value);
        pthread_mutex_unlock(&guard);
        if (done)
            return 0;
    }
    free(own_key);
    free(own_value);
    return weft_fail(WEFT_E_NOMEM, "no memory for the info key '%.80s'", key);
}

weft_info *weft_info_copy(const weft_info *info)
{
    weft_info *copy = weft_info_new();
    bool done = true;
    if (!copy || !info)
        return copy;
    pthread_mutex_lock(&guard);
    for (uint32_t i = 0; i < info->count && done; i++) {
        char *key = strdup(info->entries[i].key), *value = strdup(info->entries[i].value);
        done = key && value && put(copy, key, value);
        if (!done) {
            free(key);
            free(value);
        }
    }
    pthread_mutex_unlock(&guard);
    if (done)
        return copy;
    weft_info_drop(copy);
    weft_fail(WEFT_E_NOMEM, "no memory for a copy of an info object with %u keys", info->count);
    return NULL;
}

/* Copies the value, at most capacity - 1 bytes and a 0 (capacity 0: nothing). Returns its length; -1: no such key. */
static int read_value(const weft_info *info, const char *key, char *to, size_t capacity)
{
    const weft_info_entry *entry;
    int length = -1;
    pthread_mutex_lock(&guard);
    entry = entry_of(info, key);
    if (entry) {
        size_t all = strlen(entry->value), some = all < capacity ? all : capacity - 1;
        length = (int)all;
        if (capacity > 0) {
            memcpy(to, entry->value, some);
            to[some] = 0;
        }
    }
    pthread_mutex_unlock(&guard);
    return length;
}

bool weft_info_find(const weft_info *info, const char *key, char value[WEFT_INFO_VALUE_BYTES])
{
    return info && read_value(info, key, value, WEFT_INFO_VALUE_BYTES) >= 0;
}

bool weft_info_next_item(const char **at, char *item, size_t capacity)
{
    const char *from = *at + strspn(*at, " "), *end = from + strcspn(from, ",");
    size_t length;
    if (!**at)
        return false;
    *at = *end ? end + 1 : end;
    while (end > from && end[-1] == ' ')
        end--;
    length = (size_t)(end - from) < capacity ? (size_t)(end - from) : capacity - 1;
    memcpy(item, from, length);
    item[length] = 0;
    return true;
}

/* The value without the blanks around it; false: no such key. */
static bool find_stripped(const weft_info *info, const char *key, char value[WEFT_INFO_VALUE_BYTES])
{
    char *from, *end;
    if (!weft_info_find(info, key, value))
        return false;
    from = value + strspn(value, " ");
    end = from + strlen(from);
    while (end > from && end[-1] == ' ')
        end--;
    memmove(value, from, (size_t)(end - from));
    value[end - from] = 0;
    return true;
}

bool weft_info_find_bool(const weft_info *info, const char *key, bool *value)
{
    char text[WEFT_INFO_VALUE_BYTES];
    if (!find_stripped(info, key, text) || (strcmp(text, "true") && strcmp(text, "false")))
        return false;
    *value = text[0] == 't';
    return true;
}

bool weft_info_find_int(const weft_info *info, const char *key, int64_t *value)
{
    char text[WEFT_INFO_VALUE_BYTES], *end;
    const char *digits;
    long long number;
    if (!find_stripped(info, key, text))
        return false;
    digits = text + (*text == '+' || *text == '-');
    if (*digits < '0' || *digits > '9')
        return false;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (*end || errno)
        return false;
    *value = number;
    return true;
}

int weft_mpi_info_create(MPI_Info *info)
{
    weft_info *made = weft_info_new();
    if (!made)
        return WEFT_E_NOMEM;
    *info = made;
    return 0;
}

/* May the program change or free it? */
static int change_check(const weft_info *info, const char *what)
{
    return info->is_constant ? weft_fail(WEFT_E_INFO, "info is MPI_INFO_ENV: it cannot be %s (MPI_Info_dup gives a copy)", what) : 0;
}

int weft_mpi_info_free(MPI_Info *info)
{
    weft_info *own = weft_info_of(*info);
    int rc = change_check(own, "freed");
    if (rc)
        return rc;
    if (!weft_object_retire(&own->object))
        return weft_fail(WEFT_E_INFO, "info %p was freed by another thread", (void *)own);
    weft_info_drop(own);
    *info = MPI_INFO_NULL;
    return 0;
}

int weft_mpi_info_dup(weft_info *info, MPI_Info *newinfo)
{
    weft_info *copy = weft_info_copy(info);
    if (!copy)
        return WEFT_E_NOMEM;
    *newinfo = copy;
    return 0;
}

int weft_mpi_info_set(weft_info *info, const char *key, const char *value)
{
    int rc = change_check(info, "changed");
    return rc ? rc : weft_info_set(info, key, value);
}

int weft_mpi_info_delete(weft_info *info, const char *key)
{
    weft_info_entry *entry, gone = {NULL, NULL};
    int rc = change_check(info, "changed");
    if (rc || (rc = key_check(key)))
        return rc;
    pthread_mutex_lock(&guard);
    entry = entry_of(info, key);
    if (entry) {
        gone = *entry;
        info->count--;
        memmove(entry, entry + 1, (size_t)(info->entries + info->count - entry) * sizeof *entry);
    }
    pthread_mutex_unlock(&guard);
    if (!gone.key)
        return weft_fail(WEFT_E_INFO_NOKEY, "key '%s' is not in this info", key);
    free(gone.key);
    free(gone.value);
    return 0;
}

int weft_mpi_info_get_nkeys(weft_info *info, int *nkeys)
{
    pthread_mutex_lock(&guard);
    *nkeys = (int)info->count;
    pthread_mutex_unlock(&guard);
    return 0;
}

/* key has MPI_MAX_INFO_KEY bytes. */
int weft_mpi_info_get_nthkey(weft_info *info, int n, char *key)
{
    uint32_t count;
    pthread_mutex_lock(&guard);
    count = info->count;
    if (n >= 0 && (uint32_t)n < count)
        strcpy(key, info->entries[n].key);
    pthread_mutex_unlock(&guard);
    if (n >= 0 && (uint32_t)n < count)
        return 0;
    return weft_fail(WEFT_E_ARG, "n is %d: this info has %u keys%s", n, count, count ? ", numbered from 0" : "");
}

int weft_mpi_info_get_string(weft_info *info, const char *key, int *buflen, char *value, int *flag)
{
    int length, rc = key_check(key);
    if (rc)
        return rc;
    if (*buflen < 0)
        return weft_fail(WEFT_E_ARG, "buflen is %d: it must not be negative", *buflen);
    if (*buflen > 0 && !value)
        return weft_fail(WEFT_E_ARG, "value is NULL, but buflen is %d", *buflen);
    length = read_value(info, key, value, (size_t)*buflen);
    *flag = length >= 0;
    if (length >= 0)
        *buflen = length + 1;
    return 0;
}

/* value has valuelen + 1 bytes. */
int weft_mpi_info_get(weft_info *info, const char *key, int valuelen, char *value, int *flag)
{
    int rc = key_check(key);
    if (rc)
        return rc;
    if (valuelen < 0)
        return weft_fail(WEFT_E_ARG, "valuelen is %d: it must not be negative", valuelen);
    *flag = read_value(info, key, value, (size_t)valuelen + 1) >= 0;
    return 0;
}

int weft_mpi_info_get_valuelen(weft_info *info, const char *key, int *valuelen, int *flag)
{
    int length, rc = key_check(key);
    if (rc)
        return rc;
    length = read_value(info, key, NULL, 0);
    *flag = length >= 0;
    if (length >= 0)
        *valuelen = length;
    return 0;
}
