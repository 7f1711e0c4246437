/* SPDX-License-Identifier: BSD-3-Clause
 *
 * info: info objects (MPI 5.0 chapter 10), and how other objects read hints from them. An MPI_Info points to a weft_info or is a constant
 * of the ABI (0x130 MPI_INFO_NULL, 0x131 MPI_INFO_ENV). Any thread.
 * Invariant: a call reads or copies the info that it is given before it returns; what is kept is a copy of its own (weft_info_copy).
 */
#ifndef WEFT_MPI_INFO_H
#define WEFT_MPI_INFO_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/object.h"

#define WEFT_INFO_MAGIC WEFT_OBJECT_MAGIC('I', 'N', 'F', 'O')
#define WEFT_INFO_VALUE_BYTES (MPI_MAX_INFO_VAL + 1) /* of the longest value, with its 0 */

typedef struct weft_info_entry {
    char *key, *value; /* owned */
} weft_info_entry;

typedef struct MPI_ABI_Info weft_info;
struct MPI_ABI_Info {
    weft_object object;       /* refs: the handle, or the object that keeps this copy */
    weft_info_entry *entries; /* in the order of their first setting; guarded by info.c's lock */
    uint32_t count, capacity;
    bool is_constant; /* MPI_INFO_ENV: cannot be changed or freed */
};

extern weft_object_pool weft_info_pool;

/* info_env.c: the object behind MPI_INFO_ENV, built at the first use. NULL: out of memory. */
weft_info *weft_info_env(void);
/* MPI_Init: builds it from main's arguments (may be NULL), if it is not built yet. */
void weft_info_env_open(int argc, char **argv);

/* Handle to info. NULL: MPI_INFO_NULL, or an invalid or freed handle. */
static inline weft_info *weft_info_of(const void *handle)
{
    if (weft_object_is_constant(handle))
        return handle == (const void *)MPI_INFO_ENV ? weft_info_env() : NULL;
    return ((weft_info *)handle)->object.magic == WEFT_INFO_MAGIC ? (weft_info *)handle : NULL;
}

/* An empty info; NULL: out of memory (weft_fail has the text). */
weft_info *weft_info_new(void);
/* A copy of `info` (NULL: an empty info). NULL: out of memory. */
weft_info *weft_info_copy(const weft_info *info);
/* Drops a reference; the last one frees. NULL is allowed. */
void weft_info_drop(weft_info *info);
/* Adds a pair or replaces the key's value. 0, WEFT_E_INFO_KEY, WEFT_E_INFO_VALUE or WEFT_E_NOMEM. */
int weft_info_set(weft_info *info, const char *key, const char *value);

/* Reads a hint. False: info is NULL or has no such key; value is unchanged. */
bool weft_info_find(const weft_info *info, const char *key, char value[WEFT_INFO_VALUE_BYTES]);
/* The same for "true" or "false", and for a decimal integer, blanks around it stripped. False: also if the value is of another form. */
bool weft_info_find_bool(const weft_info *info, const char *key, bool *value);
bool weft_info_find_int(const weft_info *info, const char *key, int64_t *value);
/* Next element of a comma-separated value, blanks around it stripped: at most capacity - 1 bytes are copied. *at moves on; false: none is
 * left. An empty value has no element. */
bool weft_info_next_item(const char **at, char *item, size_t capacity);

#endif
