/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks: see blocks.h.
 */
#include "fortran/blocks.h"

#include <limits.h>
#include <stdlib.h>

#include "base/macros.h"
#include "fortran/runtime.h"
#include "fortran/staging.h"

/* MPI reads the arrays of a nonblocking or persistent call until its request is freed, so that the request owns them like a copy. */
typedef struct weft_f_numbers {
    weft_language_copy copy;
    bool is_kept; /* by the list of a request */
    MPI_Datatype *types;
    void *counts, *displs;
    MPI_Count memory[];
} weft_f_numbers;

static void move_nothing(weft_language_copy *copy, bool is_out, size_t from, size_t to) { (void)copy, (void)is_out, (void)from, (void)to; }

static void free_numbers(weft_language_copy *copy) { free(weft_container(copy, weft_f_numbers, copy)); }

static MPI_Count number_at(const void *numbers, size_t bytes, int i)
{
    return bytes == sizeof(int) ? ((const int *)numbers)[i] : ((const MPI_Count *)numbers)[i];
}

/* False: it does not fit. */
static bool number_set(void *numbers, size_t bytes, int i, MPI_Count value)
{
    if (bytes != sizeof(int))
        ((MPI_Count *)numbers)[i] = value;
    else if (value < INT_MIN || value > INT_MAX)
        return false;
    else
        ((int *)numbers)[i] = (int)value;
    return true;
}

static weft_f_numbers *numbers_new(const weft_f_layout *given)
{
    size_t number = (size_t)given->number, types = given->types ? number : 1;
    weft_f_numbers *self = malloc(sizeof *self + (types + 2 * number) * sizeof self->memory[0]);
    if (!self)
        return NULL;
    *self = (weft_f_numbers){.copy = {.move = move_nothing, .free = free_numbers}, .types = (MPI_Datatype *)(void *)self->memory,
                             .counts = self->memory + types, .displs = self->memory + types + number};
    for (size_t i = 0; i < types; i++)
        self->types[i] = given->types ? given->types[i] : given->type;
    return self;
}

/* Frees the datatypes made here: equal neighbours are one. */
static void free_types(const weft_f_numbers *self, const weft_f_layout *given)
{
    for (int i = 0; i < (given->types ? given->number : 1); i++)
        if (self->types[i] != (given->types ? given->types[i] : given->type) && (i == 0 || self->types[i] != self->types[i - 1]))
            PMPI_Type_free(&(MPI_Datatype){self->types[i]});
}

/* Sets block i to runs of the array; run: that of the block before, of the same datatype. False: no runs are the block. */
static bool block_set(weft_f_numbers *self, const weft_f_array *array, const weft_f_layout *given, weft_f_run *run, int i)
{
    MPI_Count count = number_at(given->counts, given->count_bytes, i), displ = 0;
    MPI_Datatype type = given->types ? given->types[i] : given->type, *made = &self->types[given->types ? i : 0];
    if (count && given->displs)
        displ = number_at(given->displs, given->displ_bytes, i);
    if (count && given->types && i && given->types[i - 1] == type)
        *made = self->types[i - 1]; /* as it was given, if that block is empty */
    if (count && *made == type &&
        (type == MPI_DATATYPE_NULL || !weft_f_array_run(array, type, run) || weft_f_run_type(array, type, run, made)))
        return false;
    if (count && given->types) {
        if (displ % run->size)
            return false;
        displ /= run->size;
    }
    if (count % run->items || displ % run->items)
        return false;
    displ = displ / run->items * (given->types ? run->stride : 1);
    return number_set(self->counts, given->count_bytes, i, count / run->items) &&
           (!given->displs || number_set(self->displs, given->displ_bytes, i, displ));
}

/* Passes the array as runs. False: no runs are the blocks, or no memory. */
static bool describe(weft_f_blocks *self, const weft_f_array *array)
{
    const weft_f_layout *given = self->given;
    weft_f_run run = {.items = 1};
    weft_f_numbers *made = numbers_new(given);
    int i = 0;
    while (made && i < given->number && block_set(made, array, given, &run, i))
        i++;
    if (made && i == given->number) {
        self->numbers = made;
        self->counts = made->counts;
        self->displs = made->displs;
        self->types = made->types;
        return true;
    }
    if (made)
        free_types(made, given);
    free(made);
    return false;
}

/* Must the array be copied? */
static bool needs_copy(weft_f_blocks *self, const weft_f_array *array, const weft_f_layout *given)
{
    *self = (weft_f_blocks){.address = weft_f_buffer(array->base), .counts = given->counts, .displs = given->displs, .given = given,
                            .types = given->types ? given->types : &given->type};
    return weft_f_is_sparse(array) && !given->is_ignored && !describe(self, array);
}

int weft_f_blocks_open(weft_f_blocks *self, const weft_f_array *array, const weft_f_layout *layout)
{
    int rc = needs_copy(self, array, layout) ? weft_f_copy_open(&self->copy, array) : 0;
    if (self->copy.made)
        self->address = self->copy.address;
    return rc;
}

int weft_f_blocks_stage(weft_f_blocks *self, const weft_f_array *array, const weft_f_layout *layout, weft_language_copy **list, bool is_in,
                        bool is_begun)
{
    if (needs_copy(self, array, layout))
        return weft_f_stage(list, array, is_in, is_begun, &self->address);
    if (self->numbers) {
        self->numbers->is_kept = true;
        self->numbers->copy.next = *list;
        *list = &self->numbers->copy;
    }
    return 0;
}

void weft_f_blocks_close(weft_f_blocks *self, bool is_out)
{
    if (self->numbers) {
        free_types(self->numbers, self->given);
        if (!self->numbers->is_kept)
            free(self->numbers);
    }
    weft_f_copy_close(&self->copy, is_out);
}
