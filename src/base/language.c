/* SPDX-License-Identifier: BSD-3-Clause
 *
 * language: see language.h.
 */
#include "base/language.h"

#include <stddef.h>

void *weft_language_done;

static _Thread_local const weft_language *current;

void weft_language_set(const weft_language *language) { current = language; }

const weft_language *weft_language_take(void)
{
    const weft_language *language = current;
    current = NULL;
    return language;
}

void weft_language_copies_free(weft_language_copy *first)
{
    for (weft_language_copy *one = first, *next; one; one = next) {
        next = one->next;
        one->free(one);
    }
}
