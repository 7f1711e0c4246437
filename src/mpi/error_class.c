/* SPDX-License-Identifier: BSD-3-Clause
 *
 * error_class: see error_class.h. Its MPI functions (MPI 5.0 9.4, 9.5.1) are called by the generated entries, at any time, also
 * before MPI_Init and after MPI_Finalize. They take no worker's lock.
 * Invariant: a class that the program added is not removed while codes belong to it.
 */
#include "mpi/error_class.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "mpi/calls.h"

typedef struct class_text {
    const char *name, *sentence;
} class_text;

#define ROW(name, sentence) [MPI_##name] = {"MPI_" #name, sentence}
static const class_text texts[] = {
    ROW(SUCCESS, "no error"),
    ROW(ERR_BUFFER, "invalid buffer pointer"),
    ROW(ERR_COUNT, "invalid count"),
    ROW(ERR_TYPE, "invalid datatype"),
    ROW(ERR_TAG, "invalid tag"),
    ROW(ERR_COMM, "invalid communicator"),
    ROW(ERR_RANK, "invalid rank"),
    ROW(ERR_REQUEST, "invalid request"),
    ROW(ERR_ROOT, "invalid root"),
    ROW(ERR_GROUP, "invalid group"),
    ROW(ERR_OP, "invalid reduction operation"),
    ROW(ERR_TOPOLOGY, "invalid topology"),
    ROW(ERR_DIMS, "invalid dimensions"),
    ROW(ERR_ARG, "invalid argument"),
    ROW(ERR_UNKNOWN, "unknown error"),
    ROW(ERR_TRUNCATE, "the message is longer than the receive buffer"),
    ROW(ERR_OTHER, "an error that has no class of its own"),
    ROW(ERR_INTERN, "internal error of the MPI library"),
    ROW(ERR_PENDING, "the request has neither failed nor completed"),
    ROW(ERR_IN_STATUS, "the error code is in the statuses"),
    ROW(ERR_ACCESS, "permission denied"),
    ROW(ERR_AMODE, "invalid access mode"),
    ROW(ERR_ASSERT, "invalid assertion"),
    ROW(ERR_BAD_FILE, "invalid file name"),
    ROW(ERR_BASE, "invalid base address"),
    ROW(ERR_CONVERSION, "a data conversion function failed"),
    ROW(ERR_DISP, "invalid displacement"),
    ROW(ERR_DUP_DATAREP, "the data representation is registered already"),
    ROW(ERR_FILE_EXISTS, "the file exists"),
    ROW(ERR_FILE_IN_USE, "the file is in use"),
    ROW(ERR_FILE, "invalid file handle"),
    ROW(ERR_INFO_KEY, "the info key is too long or empty"),
    ROW(ERR_INFO_NOKEY, "no such info key"),
    ROW(ERR_INFO_VALUE, "the info value is too long"),
    ROW(ERR_INFO, "invalid info object"),
    ROW(ERR_IO, "input or output failed"),
    ROW(ERR_KEYVAL, "invalid attribute key"),
    ROW(ERR_LOCKTYPE, "invalid lock type"),
    ROW(ERR_NAME, "the service name is not published"),
    ROW(ERR_NO_MEM, "out of memory"),
    ROW(ERR_NOT_SAME, "a collective argument is not the same on all processes"),
    ROW(ERR_NO_SPACE, "no space is left"),
    ROW(ERR_NO_SUCH_FILE, "no such file"),
    ROW(ERR_PORT, "invalid port name"),
    ROW(ERR_QUOTA, "the quota is exceeded"),
    ROW(ERR_READ_ONLY, "the file or file system is read-only"),
    ROW(ERR_RMA_ATTACH, "memory cannot be attached to the window"),
    ROW(ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    ROW(ERR_RMA_RANGE, "the target memory is outside the window"),
    ROW(ERR_RMA_SHARED, "memory cannot be shared"),
    ROW(ERR_RMA_SYNC, "wrong synchronization of one-sided calls"),
    ROW(ERR_SERVICE, "invalid service name"),
    ROW(ERR_SIZE, "invalid size"),
    ROW(ERR_SPAWN, "processes could not be started"),
    ROW(ERR_UNSUPPORTED_DATAREP, "unsupported data representation"),
    ROW(ERR_UNSUPPORTED_OPERATION, "unsupported operation"),
    ROW(ERR_WIN, "invalid window"),
    ROW(ERR_RMA_FLAVOR, "the window has the wrong flavor"),
    ROW(ERR_PROC_ABORTED, "another process has failed"),
    ROW(ERR_VALUE_TOO_LARGE, "a value does not fit the type of its argument"),
    ROW(ERR_SESSION, "invalid session"),
    ROW(ERR_ERRHANDLER, "invalid error handler"),
    ROW(ERR_ABI, "an ABI function was used wrongly"),
};
#undef ROW

#define ROW(name, sentence) [MPI_T_##name - MPI_T_ERR_CANNOT_INIT] = {"MPI_T_" #name, sentence}
static const class_text tool_texts[] = {
    ROW(ERR_CANNOT_INIT, "the tool interface cannot be initialized"),
    ROW(ERR_NOT_ACCESSIBLE, "the requested function is not accessible"),
    ROW(ERR_NOT_INITIALIZED, "the tool interface is not initialized"),
    ROW(ERR_NOT_SUPPORTED, "the requested function is not supported"),
    ROW(ERR_MEMORY, "out of memory"),
    ROW(ERR_INVALID, "invalid use of the tool interface, or a bad argument"),
    ROW(ERR_INVALID_INDEX, "no variable, category, enumeration item or event has this index"),
    ROW(ERR_INVALID_ITEM, "no enumeration item has this index"),
    ROW(ERR_INVALID_SESSION, "invalid session of performance variables"),
    ROW(ERR_INVALID_HANDLE, "invalid handle of the tool interface"),
    ROW(ERR_INVALID_NAME, "no variable, category or event has this name"),
    ROW(ERR_OUT_OF_HANDLES, "no more handles are available"),
    ROW(ERR_OUT_OF_SESSIONS, "no more sessions are available"),
    ROW(ERR_CVAR_SET_NOT_NOW, "the control variable cannot be set now"),
    ROW(ERR_CVAR_SET_NEVER, "the control variable can never be set"),
    ROW(ERR_PVAR_NO_WRITE, "the performance variable cannot be written or reset"),
    ROW(ERR_PVAR_NO_STARTSTOP, "the performance variable cannot be started or stopped"),
    ROW(ERR_PVAR_NO_ATOMIC, "the performance variable cannot be read and reset in one step"),
};
#undef ROW

static const class_text strange = {"error", "unknown error code"};

static const class_text *text_of(int mpi_code)
{
    int tool_code = mpi_code - MPI_T_ERR_CANNOT_INIT;
    if (tool_code >= 0 && tool_code < (int)weft_count(tool_texts))
        return &tool_texts[tool_code];
    return mpi_code >= 0 && mpi_code < (int)weft_count(texts) && texts[mpi_code].name ? &texts[mpi_code] : &strange;
}

/* A class or code that the program has added: value FIRST + its index. */
#define FIRST (MPI_ERR_LASTCODE + 1)
#define LAST (FIRST + (1 << 20)) /* above all values */
typedef struct added {
    int class;      /* 0: free; of a class: its own value */
    uint32_t codes; /* of a class: codes that belong to it */
    char *string;   /* owned; NULL: none */
} added;

/* Guards the table, which belongs to the process. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static added *table;
static int used, capacity; /* entries; those from `used` on are free */

int weft_error_last_code = MPI_ERR_LASTCODE;

/* Requires the lock. NULL: the program has not added this value, or has removed it. */
static added *find(int mpi_code)
{
    int index = mpi_code - FIRST;
    return mpi_code >= FIRST && index < used && table[index].class ? &table[index] : NULL;
}

/* Requires the lock. */
static void update_last(void)
{
    while (used > 0 && !table[used - 1].class)
        used--;
    __atomic_store_n(&weft_error_last_code, MPI_ERR_LASTCODE + used, __ATOMIC_RELAXED);
}

/* The lowest free value; class 0: a new class. 0: out of memory. Requires the lock. */
static int insert(int class)
{
    int index = 0;
    while (index < used && table[index].class)
        index++;
    if (index == capacity) {
        int more = capacity ? 2 * capacity : 32;
        added *wider = FIRST + more > LAST ? NULL : realloc(table, (size_t)more * sizeof *wider);
        if (!wider)
            return 0;
        table = wider;
        capacity = more;
    }
    table[index] = (added){.class = class ? class : FIRST + index};
    used = index < used ? used : index + 1;
    update_last();
    return FIRST + index;
}

void weft_error_text_of(int mpi_code, weft_error_text *text)
{
    const class_text *fixed = text_of(mpi_code);
    const added *own;
    snprintf(text->name, sizeof text->name, "%s", fixed->name);
    snprintf(text->sentence, sizeof text->sentence, "%s", fixed->sentence);
    pthread_mutex_lock(&guard);
    own = find(mpi_code);
    if (own) {
        snprintf(text->name, sizeof text->name, "user's error %s %d", own->class == mpi_code ? "class" : "code", mpi_code);
        snprintf(text->sentence, sizeof text->sentence, "%s", own->string ? own->string : "");
    }
    pthread_mutex_unlock(&guard);
}

static int unknown(const char *argument, int value)
{
    return weft_fail(WEFT_E_ARG, "%s is %d: neither one of MPI's in 0..%d nor one that was added", argument, value, MPI_ERR_LASTCODE);
}

int weft_mpi_error_class(int errorcode, int *errorclass)
{
    const added *own;
    int class = errorcode; /* every error code of Weft is a class */
    if (errorcode < 0)
        return unknown("errorcode", errorcode);
    if (errorcode > MPI_ERR_LASTCODE) {
        pthread_mutex_lock(&guard);
        own = find(errorcode);
        class = own ? own->class : -1;
        pthread_mutex_unlock(&guard);
        if (class < 0)
            return unknown("errorcode", errorcode);
    }
    *errorclass = class;
    return 0;
}

int weft_mpi_add_error_class(int *errorclass)
{
    int value;
    pthread_mutex_lock(&guard);
    value = insert(0);
    pthread_mutex_unlock(&guard);
    if (!value)
        return weft_fail(WEFT_E_NOMEM, "no memory for an error class, or %d classes and codes exist", LAST - FIRST);
    *errorclass = value;
    return 0;
}

int weft_mpi_add_error_code(int errorclass, int *errorcode)
{
    const added *own;
    bool is_class;
    int value = 0;
    pthread_mutex_lock(&guard);
    own = find(errorclass);
    is_class = own ? own->class == errorclass : errorclass > 0 && text_of(errorclass) != &strange;
    if (is_class)
        value = insert(errorclass);
    if (value && own)
        table[errorclass - FIRST].codes++;
    pthread_mutex_unlock(&guard);
    if (!is_class)
        return weft_fail(WEFT_E_ARG, "errorclass is %d: not an error class%s", errorclass, own ? ", but an error code" : "");
    if (!value)
        return weft_fail(WEFT_E_NOMEM, "no memory for an error code, or %d classes and codes exist", LAST - FIRST);
    *errorcode = value;
    return 0;
}

/* A class or code with a text must not be one of MPI's (MPI 5.0 9.5.1). */
static int check_added(int errorcode)
{
    if (errorcode > MPI_ERR_LASTCODE)
        return 0;
    return weft_fail(WEFT_E_ARG, "errorcode is %d: the strings of MPI's own codes (0..%d) are fixed", errorcode, MPI_ERR_LASTCODE);
}

/* Sets (or, NULL, removes) the string of an added class or code, and returns the one before; *is_added false: there is no such code. */
static char *exchange_string(int errorcode, char *string, bool *is_added)
{
    char *before = NULL;
    added *own;
    pthread_mutex_lock(&guard);
    own = find(errorcode);
    if (own) {
        before = own->string;
        own->string = string;
    }
    pthread_mutex_unlock(&guard);
    *is_added = own != NULL;
    return before;
}

int weft_mpi_add_error_string(int errorcode, const char *string)
{
    bool is_added;
    char *own;
    int rc = check_added(errorcode);
    if (rc)
        return rc;
    if (strnlen(string, MPI_MAX_ERROR_STRING + 1) > MPI_MAX_ERROR_STRING)
        return weft_fail(WEFT_E_ARG, "string is longer than %d bytes (MPI_MAX_ERROR_STRING)", MPI_MAX_ERROR_STRING);
    own = strdup(string);
    if (!own)
        return weft_fail(WEFT_E_NOMEM, "no memory for an error string");
    free(exchange_string(errorcode, own, &is_added));
    if (is_added)
        return 0;
    free(own);
    return unknown("errorcode", errorcode);
}

int weft_mpi_remove_error_string(int errorcode)
{
    bool is_added;
    char *before;
    int rc = check_added(errorcode);
    if (rc)
        return rc;
    before = exchange_string(errorcode, NULL, &is_added);
    if (!is_added)
        return unknown("errorcode", errorcode);
    if (!before)
        return weft_fail(WEFT_E_ARG, "errorcode is %d: it has no string that could be removed", errorcode);
    free(before);
    return 0;
}

/* Why a class or code cannot be removed; NULL: it was removed. Requires the lock. */
static const char *remove_added(int value, bool is_class)
{
    added *own = find(value), *class;
    if (!own || (own->class == value) != is_class)
        return is_class ? "not an error class that was added" : "not an error code that was added";
    if (own->codes)
        return "it has error codes, which must be removed first (MPI_Remove_error_code)";
    if (own->string && !is_class)
        return "it has a string, which must be removed first (MPI_Remove_error_string)";
    class = is_class ? NULL : find(own->class);
    if (class)
        class->codes--;
    free(own->string);
    *own = (added){0};
    update_last();
    return NULL;
}

int weft_mpi_remove_error_class(int errorclass)
{
    const char *why;
    pthread_mutex_lock(&guard);
    why = remove_added(errorclass, true);
    pthread_mutex_unlock(&guard);
    return why ? weft_fail(WEFT_E_ARG, "errorclass is %d: %s", errorclass, why) : 0;
}

int weft_mpi_remove_error_code(int errorcode)
{
    const char *why;
    pthread_mutex_lock(&guard);
    why = remove_added(errorcode, false);
    pthread_mutex_unlock(&guard);
    return why ? weft_fail(WEFT_E_ARG, "errorcode is %d: %s", errorcode, why) : 0;
}
