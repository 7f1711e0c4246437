/* SPDX-License-Identifier: BSD-3-Clause
 *
 * out: says facts as text for people or as JSON for programs. A section holds rows; a row has a name and named values.
 */
#ifndef WEFT_TOOLS_INFO_OUT_H
#define WEFT_TOOLS_INFO_OUT_H

#include <stdbool.h>

typedef struct out {
    bool is_json;
    int sections, rows;
} out;

void out_open(out *self, bool is_json);
void out_close(out *self);
/* Opens a section; the text form shows `title`, JSON uses `key`. */
void out_section(out *self, const char *key, const char *title);
void out_section_end(out *self);
/* One row. `note` says more (NULL: nothing). Text: "  name  value  note". */
void out_row(out *self, const char *name, const char *value, const char *note);

#endif
