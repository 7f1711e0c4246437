/* SPDX-License-Identifier: BSD-3-Clause
 *
 * out: prints rows on stdout. Called by weft-info's main.
 * Invariant: the JSON form is one object whose members are the sections, each a list of {name, value, note}.
 */
#include "tools/info/out.h"

#include <stdio.h>

void out_open(out *self, bool is_json)
{
    *self = (out){.is_json = is_json};
    if (is_json)
        fputs("{", stdout);
}

void out_close(out *self)
{
    if (self->is_json)
        fputs("\n}\n", stdout);
}

void out_section(out *self, const char *key, const char *title)
{
    self->rows = 0;
    if (self->is_json)
        printf("%s\n  \"%s\": [", self->sections ? "," : "", key);
    else
        printf("%s%s\n", self->sections ? "\n" : "", title);
    self->sections++;
}

void out_section_end(out *self)
{
    if (self->is_json)
        fputs("\n  ]", stdout);
}

static void quoted(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 32)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

void out_row(out *self, const char *name, const char *value, const char *note)
{
    if (self->is_json) {
        printf("%s\n    {\"name\": ", self->rows++ ? "," : "");
        quoted(name);
        fputs(", \"value\": ", stdout);
        quoted(value);
        if (note) {
            fputs(", \"note\": ", stdout);
            quoted(note);
        }
        putchar('}');
    } else if (note) {
        printf("  %-24s %-11s %s\n", name, value, note);
    } else {
        printf("  %-24s %s\n", name, value);
    }
}
