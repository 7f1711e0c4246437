/* SPDX-License-Identifier: BSD-3-Clause
 *
 * type_envelope: decoding of datatypes (MPI 5.0 5.1.13): how a type was made, and from which arguments. Arguments of a _c constructor that
 * are MPI_Count there are large counts, and only the _c forms of these calls return them.
 * Called by the generated entries; any thread, no lock: envelopes do not change.
 */
#include <mpi.h>
#include <stdint.h>

#include "base/status.h"
#include "mpi/calls.h"
#include "type/type.h"

/* Types made by a _c constructor need the _c form. */
static int form_check(const weft_envelope *envelope, bool is_large)
{
    if (is_large || !envelope || !envelope->large_count)
        return 0;
    return weft_fail(WEFT_E_TYPE, "datatype was made by a _c constructor with %llu large counts: use the _c form of this function",
                     (unsigned long long)envelope->large_count);
}

int weft_mpi_type_get_envelope(const weft_type *datatype, MPI_Count *num_integers, MPI_Count *num_addresses,
                               MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner, bool is_large)
{
    const weft_envelope *envelope = datatype->envelope;
    int rc = form_check(envelope, is_large);
    if (rc)
        return rc;
    *num_integers = envelope ? (MPI_Count)envelope->number_count : 0;
    *num_addresses = envelope ? (MPI_Count)envelope->address_count : 0;
    if (is_large)
        *num_large_counts = envelope ? (MPI_Count)envelope->large_count : 0;
    *num_datatypes = envelope ? (MPI_Count)envelope->type_count : 0;
    *combiner = envelope ? envelope->combiner : MPI_COMBINER_NAMED;
    return 0;
}

/* Is an array of the caller long enough? */
static int room_check(const char *argument, MPI_Count max, uint64_t count)
{
    if ((uint64_t)max >= count)
        return 0;
    return weft_fail(WEFT_E_ARG, "%s is %lld: the datatype has %llu (MPI_Type_get_envelope)", argument, (long long)max,
                     (unsigned long long)count);
}

/* Stores handles of equivalent types: constants of predefined types, else new ones, which the caller frees. */
static int types_store(const weft_envelope *envelope, MPI_Datatype *types)
{
    for (uint64_t i = 0; i < envelope->type_count; i++) {
        const weft_type *type = envelope->types[i];
        weft_type *made = (weft_type *)type;
        int rc = type->is_predefined ? 0 : weft_type_clone(type, &made);
        if (rc) {
            while (i-- > 0)
                if (!envelope->types[i]->is_predefined)
                    weft_type_drop(types[i]);
            return rc;
        }
        types[i] = type->handle ? (MPI_Datatype)(uintptr_t)type->handle : made;
    }
    return 0;
}

int weft_mpi_type_get_contents(const weft_type *datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
                               MPI_Count max_datatypes, int *array_of_integers, MPI_Aint *array_of_addresses,
                               MPI_Count *array_of_large_counts, MPI_Datatype *array_of_datatypes, bool is_large)
{
    const weft_envelope *envelope = datatype->envelope;
    const int64_t *values;
    int rc;
    if (!envelope)
        return weft_fail(WEFT_E_TYPE, "datatype is %s: a predefined type with a name has no contents (MPI_COMBINER_NAMED)",
                         datatype->name);
    if ((rc = form_check(envelope, is_large)) || (rc = room_check("max_integers", max_integers, envelope->number_count)) ||
        (rc = room_check("max_addresses", max_addresses, envelope->address_count)) ||
        (rc = room_check("max_large_counts", max_large_counts, envelope->large_count)) ||
        (rc = room_check("max_datatypes", max_datatypes, envelope->type_count)) || (rc = types_store(envelope, array_of_datatypes)))
        return rc;
    values = envelope->values;
    for (uint64_t i = 0; i < envelope->number_count; i++)
        array_of_integers[i] = (int)*values++;
    for (uint64_t i = 0; i < envelope->address_count; i++)
        array_of_addresses[i] = (MPI_Aint)*values++;
    for (uint64_t i = 0; i < envelope->large_count; i++)
        array_of_large_counts[i] = *values++;
    return 0;
}
