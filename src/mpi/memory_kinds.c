/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory_kinds: see memory_kinds.h. Weft moves any memory that the CPU can address: the kinds "system" and "mpi", the latter with MPI's
 * restrictors.
 */
#include "mpi/memory_kinds.h"

#include <pthread.h>
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

/* Is the element one of the list's? */
static bool has(const char *list, const char *element)
{
    char other[WEFT_INFO_VALUE_BYTES];
    while (weft_info_next_item(&list, other, sizeof other))
        if (!strcmp(other, element))
            return true;
    return false;
}

void weft_memory_kinds(const char *requested, char kinds[WEFT_INFO_VALUE_BYTES])
{
    const char *at = requested ? requested : weft_knob.memory_alloc_kinds;
    char element[WEFT_INFO_VALUE_BYTES];
    size_t used = (size_t)snprintf(kinds, WEFT_INFO_VALUE_BYTES, "mpi,system,mpi:alloc_mem,mpi:win_allocate,mpi:win_allocate_shared");
    while (weft_info_next_item(&at, element, sizeof element))
        if (is_supported(element) && !has(kinds, element) && used + strlen(element) + 1 <= MPI_MAX_INFO_VAL)
            used += (size_t)snprintf(kinds + used, WEFT_INFO_VALUE_BYTES - used, ",%s", element);
}

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static char *kept[UINT8_MAX + 1]; /* never freed; [0] is not used */

uint8_t weft_memory_kinds_keep(const char *list)
{
    int number = 1;
    pthread_mutex_lock(&guard);
    while (number <= UINT8_MAX && kept[number] && strcmp(kept[number], list))
        number++;
    if (number <= UINT8_MAX && !kept[number])
        kept[number] = strdup(list);
    if (number > UINT8_MAX || !kept[number])
        number = 0;
    pthread_mutex_unlock(&guard);
    return (uint8_t)number;
}

const char *weft_memory_kinds_kept(uint8_t number)
{
    const char *list;
    pthread_mutex_lock(&guard);
    list = kept[number];
    pthread_mutex_unlock(&guard);
    return list;
}

int weft_memory_kinds_add(weft_info *info, uint8_t asserted)
{
    char kinds[WEFT_INFO_VALUE_BYTES];
    int rc;
    weft_memory_kinds(NULL, kinds);
    rc = weft_info_set(info, "mpi_memory_alloc_kinds", kinds);
    if (!rc && asserted)
        rc = weft_info_set(info, "mpi_assert_memory_alloc_kinds", weft_memory_kinds_kept(asserted));
    return rc;
}
