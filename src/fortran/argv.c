/* SPDX-License-Identifier: BSD-3-Clause
 *
 * argv: see argv.h.
 */
#include "fortran/argv.h"

#include <stdlib.h>
#include <string.h>

#include "fortran/runtime.h"

static size_t trimmed(const char *text, size_t length)
{
    while (length && text[length - 1] == ' ')
        length--;
    return length;
}

char **weft_f_texts_in(const char *given, size_t length, size_t step, size_t count)
{
    char **made = malloc((count + 1) * sizeof *made + count * (length + 1)), *at;
    if (!made)
        return NULL;
    at = (char *)(made + count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *text = given + i * step * length;
        size_t used = trimmed(text, length);
        made[i] = memcpy(at, text, used);
        at[used] = 0;
        at += used + 1;
    }
    made[count] = NULL;
    return made;
}

bool weft_f_argv_in(const char *given, size_t length, size_t step, char ***made)
{
    size_t count = 0;
    *made = NULL;
    if (weft_f_is_sentinel(given))
        return true;
    while (trimmed(given + count * step * length, length))
        count++;
    *made = weft_f_texts_in(given, length, step, count);
    return *made != NULL;
}

bool weft_f_argvs_in(const char *given, size_t length, int count, char ****made)
{
    bool is_all = true;
    *made = NULL;
    if (weft_f_is_sentinel(given) || count <= 0)
        return true;
    *made = calloc((size_t)count, sizeof **made);
    for (int i = 0; *made && i < count; i++)
        is_all &= weft_f_argv_in(given + (size_t)i * length, length, (size_t)count, &(*made)[i]);
    return *made && is_all;
}

void weft_f_argvs_free(char ***made, int count)
{
    for (int i = 0; made && i < count; i++)
        free(made[i]);
    free(made);
}

MPI_Info *weft_f_infos_in(const int *given, int count)
{
    MPI_Info *made = malloc((size_t)count * sizeof *made + 1);
    for (int i = 0; made && i < count; i++)
        made[i] = weft_f_info(given[i]);
    return made;
}
