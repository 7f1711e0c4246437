/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hostlist: see hostlist.h. Names are generated one at a time, so an error of `take` ends a range of millions at its first name.
 */
#include "tools/mpirun/hostlist.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 9 /* most digits of a number in brackets */

typedef struct expansion {
    int (*take)(void *owner, const char *name);
    void *owner;
    const char *end;       /* of the word being expanded */
    uint32_t names;        /* taken so far */
    char name[HOSTLIST_NAME_MAX];
} expansion;

static int rest_write(expansion *self, size_t used, const char *rest);

/* Reads a number; its digits with leading zeros set the width of the range. False: there is none. */
static bool number_read(const char **at, unsigned *value, int *width)
{
    *value = 0;
    for (*width = 0; isdigit((unsigned char)**at) && *width <= DIGITS_MAX; ++*width)
        *value = *value * 10 + (unsigned)(*(*at)++ - '0');
    return *width > 0 && *width <= DIGITS_MAX;
}

/* Emits "7" or "01-03" at *item, each number followed by the expansion of `rest`. */
static int item_write(expansion *self, size_t used, const char **item, const char *rest)
{
    unsigned from, to;
    int width, width_to, rc = 0;

    if (!number_read(item, &from, &width))
        return HOSTLIST_MALFORMED;
    to = from;
    if (**item == '-') {
        ++*item;
        if (!number_read(item, &to, &width_to) || to < from)
            return HOSTLIST_MALFORMED;
    }
    for (unsigned i = from; i <= to && !rc; i++) {
        int more = snprintf(self->name + used, sizeof(self->name) - used, "%0*u", width, i);
        rc = (size_t)more < sizeof(self->name) - used ? rest_write(self, used + (size_t)more, rest) : HOSTLIST_MALFORMED;
    }
    return rc;
}

/* Expands `rest` behind the first `used` letters of the name. */
static int rest_write(expansion *self, size_t used, const char *rest)
{
    size_t plain = 0;

    while (rest + plain < self->end && rest[plain] != '[' && rest[plain] != ']')
        plain++;
    if (used + plain >= sizeof(self->name))
        return HOSTLIST_MALFORMED;
    memcpy(self->name + used, rest, plain);
    self->name[used += plain] = '\0';
    rest += plain;
    if (rest == self->end)
        return self->names++ < HOSTLIST_NAMES_MAX ? self->take(self->owner, self->name) : HOSTLIST_TOO_MANY;
    const char *close = memchr(rest, ']', (size_t)(self->end - rest)), *item = rest + 1;
    if (*rest == ']' || !close)
        return HOSTLIST_MALFORMED;
    for (;; item++) {
        int rc = item_write(self, used, &item, close + 1);
        if (rc)
            return rc;
        if (item == close)
            return 0;
        if (*item != ',')
            return HOSTLIST_MALFORMED;
    }
}

int hostlist_each(const char *text, int (*take)(void *owner, const char *name), void *owner)
{
    expansion self = {.take = take, .owner = owner};

    for (const char *word = text;; word = self.end + 1) { /* commas inside brackets do not separate */
        self.end = word;
        for (bool is_inside = false; *self.end && (is_inside || *self.end != ','); self.end++)
            is_inside = *self.end == '[' || (is_inside && *self.end != ']');
        int rc = rest_write(&self, 0, word);
        if (rc || !*self.end)
            return rc;
    }
}
