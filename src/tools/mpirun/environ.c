/* SPDX-License-Identifier: BSD-3-Clause
 *
 * environ: see environ.h. Built once per part in the parent; variables of a rank are set on top before its fork.
 * Variables that an outer launcher set for mpirun (PMI_*, PMIX_*) are removed: a rank would take itself for a task of it.
 */
#include "tools/mpirun/environ.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"

static const char *const foreign[] = {"PMIX_", "PMI_", "OMPI_COMM_WORLD_", "MPI_LOCAL", "WEFT_BOOT"};

static bool name_is_foreign(const char *item)
{
    for (size_t i = 0; i < weft_count(foreign); i++)
        if (!strncmp(item, foreign[i], strlen(foreign[i])))
            return strncmp(item, "PMIX_MCA_", 9) != 0; /* user settings, kept */
    return false;
}

static bool names_contain(const char *names, const char *item)
{
    size_t length = strcspn(item, "=");

    for (const char *at = names; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && !strncmp(at, item, length))
            return true;
    return false;
}

int env_set(env_list *list, const char *text)
{
    size_t length = strcspn(text, "=");
    char *copy = strdup(text);

    if (!copy)
        return -1;
    for (uint32_t i = 0; i < list->count; i++) {
        if (strncmp(list->items[i], text, length) || list->items[i][length] != '=')
            continue;
        free(list->items[i]);
        list->items[i] = copy;
        return 0;
    }
    if (list->count + 2 > list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 64;
        char **more = realloc(list->items, capacity * sizeof(*more));
        if (!more) {
            free(copy);
            return -1;
        }
        list->items = more;
        list->capacity = capacity;
    }
    list->items[list->count++] = copy;
    list->items[list->count] = NULL;
    return 0;
}

int env_make(const options *opts, const app *part, env_list *list)
{
    const char *names = part->env_list ? part->env_list : opts->env_list;
    bool none = part->env_none || opts->env_none;
    int rc = 0;

    for (char **item = environ; *item && !rc; item++) {
        if (!strchr(*item, '=') || name_is_foreign(*item))
            continue;
        if (names ? names_contain(names, *item) : !none)
            rc = env_set(list, *item);
    }
    for (uint32_t i = 0; i < opts->edit_count && !rc; i++)
        rc = env_set(list, opts->edits[i].text);
    for (uint32_t i = 0; i < part->edit_count && !rc; i++)
        rc = env_set(list, part->edits[i].text);
    return rc;
}

void env_free(env_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (env_list){0};
}
