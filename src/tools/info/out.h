/* SPDX-License-Identifier: BSD-3-Clause
 *
 * out: prints sections of rows to stdout, as text or as JSON. A row has a name, a value and a note.
 */
#ifndef WEFT_TOOLS_INFO_OUT_H
#define WEFT_TOOLS_INFO_OUT_H

#include <stdbool.h>

typedef struct out {
    bool is_json;
    int sections, rows; /* printed so far; rows of the current section */
} out;

void out_open(out *self, bool is_json);
void out_close(out *self);
/* Opens a section: text shows `title`, JSON `key`. */
void out_section(out *self, const char *key, const char *title);
void out_section_end(out *self);
/* Prints a row; note may be NULL. Text: "  name  value  note". */
void out_row(out *self, const char *name, const char *value, const char *note);

#endif
