/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handle: handles as ints (MPI 5.0 20.4, MPI_X_toint and fromint). A predefined handle keeps its value; any other gets a number above
 * the predefined range at its first call. Called by the generated entries at any time, any thread.
 * Invariant: a number belongs to one address and kind for the life of the process. A new object at the address of a freed one
 * inherits the number; the standard forbids use of the old handle.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/macros.h"
#include "mpi/calls.h"

#define FIRST_NUMBER 4096

/* Numbers of one kind: handles by number, and a hash from handle to number (open addressing, at most half full). Process-wide:
 * error handlers exist before init, and numbers must not change after it. */
typedef struct table {
    void **handles;
    uint32_t *slots; /* number + 1; 0: empty */
    uint32_t count, capacity;
} table;

enum kind { COMM, TYPE, OP, REQUEST, ERRHANDLER, KINDS };

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static table tables[KINDS];

static uint32_t *find_slot(const table *names, const void *handle)
{
    uint32_t mask = 2 * names->capacity - 1, at = (uint32_t)(((uintptr_t)handle >> 4) * 0x9E3779B97F4A7C15ull >> 32) & mask;
    while (names->slots[at] && names->handles[names->slots[at] - 1] != handle)
        at = (at + 1) & mask;
    return &names->slots[at];
}

static int grow(table *names)
{
    uint32_t capacity = names->capacity ? 2 * names->capacity : 64;
    void **handles = realloc(names->handles, capacity * sizeof *handles);
    uint32_t *slots;
    if (!handles)
        return -1;
    names->handles = handles;
    slots = calloc(2 * (size_t)capacity, sizeof *slots);
    if (!slots)
        return -1;
    free(names->slots);
    names->slots = slots;
    names->capacity = capacity;
    for (uint32_t i = 0; i < names->count; i++)
        *find_slot(names, handles[i]) = i + 1;
    return 0;
}

/* Out of memory: 0, which is no handle's number; the calls cannot return an error. */
static int number_of(enum kind kind, const void *handle)
{
    table *names = &tables[kind];
    uint32_t *slot;
    int number = 0;
    if ((uintptr_t)handle < FIRST_NUMBER)
        return (int)(uintptr_t)handle;
    pthread_mutex_lock(&guard);
    if (names->count == names->capacity && grow(names))
        goto out;
    slot = find_slot(names, handle);
    if (!*slot) {
        names->handles[names->count++] = (void *)handle;
        *slot = names->count;
    }
    number = (int)(FIRST_NUMBER + *slot - 1);
out:
    pthread_mutex_unlock(&guard);
    return number;
}

/* Returns `null` for an int that toint did not return. */
static void *handle_of(enum kind kind, int number, void *null)
{
    table *names = &tables[kind];
    void *handle = null;
    if (number >= 0 && number < FIRST_NUMBER)
        return (void *)(uintptr_t)number;
    pthread_mutex_lock(&guard);
    if (number >= FIRST_NUMBER && (uint32_t)(number - FIRST_NUMBER) < names->count)
        handle = names->handles[number - FIRST_NUMBER];
    pthread_mutex_unlock(&guard);
    return handle;
}

int weft_mpi_comm_toint(MPI_Comm comm) { return number_of(COMM, comm); }

MPI_Comm weft_mpi_comm_fromint(int comm) { return handle_of(COMM, comm, MPI_COMM_NULL); }

int weft_mpi_type_toint(MPI_Datatype datatype) { return number_of(TYPE, datatype); }

MPI_Datatype weft_mpi_type_fromint(int datatype) { return handle_of(TYPE, datatype, MPI_DATATYPE_NULL); }

int weft_mpi_op_toint(MPI_Op op) { return number_of(OP, op); }

MPI_Op weft_mpi_op_fromint(int op) { return handle_of(OP, op, MPI_OP_NULL); }

int weft_mpi_request_toint(MPI_Request request) { return number_of(REQUEST, request); }

MPI_Request weft_mpi_request_fromint(int request) { return handle_of(REQUEST, request, MPI_REQUEST_NULL); }

int weft_mpi_errhandler_toint(MPI_Errhandler errhandler) { return number_of(ERRHANDLER, errhandler); }

MPI_Errhandler weft_mpi_errhandler_fromint(int errhandler) { return handle_of(ERRHANDLER, errhandler, MPI_ERRHANDLER_NULL); }
