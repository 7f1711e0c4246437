/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory_kinds: see memory_kinds.h. Weft moves any memory that the CPU can address: the kinds "system" and "mpi", the latter with MPI's
 * restrictors.
 */
#include "mpi/memory_kinds.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/knob.h"

/* Is the word of `length` bytes one of MPI's restrictors of "mpi"? */
static bool is_restrictor(const char *word, size_t length)
{
    static const char *const words[] = {"alloc_mem", "win_allocate", "win_allocate_shared"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && !strncasecmp(words[i], word, length))
            return true;
    return false;
}

/* One element: a kind and its restrictors, separated by colons. */
static bool is_supported(const char *element)
{
    size_t length = strcspn(element, ":");
    if (length == 6 && !strncasecmp(element, "system", 6))
        return !element[length];
    if (length != 3 || strncasecmp(element, "mpi", 3))
        return false;
    while (element[length]) {
        const char *word = element + length + 1;
        size_t bytes = strcspn(word, ":");
        if (!is_restrictor(word, bytes))
            return false;
        length += bytes + 1;
    }
    return true;
}

bool weft_memory_kinds_known(const char *list)
{
    char element[WEFT_INFO_VALUE_BYTES];
    while (weft_info_next_item(&list, element, sizeof element))
        if (!is_supported(element))
            return false;
    return true;
}

void weft_memory_kinds(const char *requested, char kinds[WEFT_INFO_VALUE_BYTES])
{
    const char *at = requested && *requested ? requested : weft_knob.memory_alloc_kinds;
    char element[WEFT_INFO_VALUE_BYTES];
    size_t used = (size_t)snprintf(kinds, WEFT_INFO_VALUE_BYTES, "mpi,system");
    while (at && weft_info_next_item(&at, element, sizeof element)) {
        size_t length = strlen(element);
        if (!is_supported(element) || !strcmp(element, "mpi") || !strcmp(element, "system") || used + length + 1 > MPI_MAX_INFO_VAL)
            continue;
        used += (size_t)snprintf(kinds + used, WEFT_INFO_VALUE_BYTES - used, ",%s", element);
    }
}
