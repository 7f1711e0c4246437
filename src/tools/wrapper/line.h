/* SPDX-License-Identifier: BSD-3-Clause
 *
 * line: a command line that grows. Words are borrowed or, where said, copied; they live as long as the program.
 */
#ifndef WEFT_TOOLS_WRAPPER_LINE_H
#define WEFT_TOOLS_WRAPPER_LINE_H

#include <stddef.h>

typedef struct line {
    const char **words; /* NULL after the last */
    size_t count, room;
} line;

void line_add(line *self, const char *word);
/* Adds prefix and text as one copied word. */
void line_add_joined(line *self, const char *prefix, const char *text);
/* Adds the blank-separated words of text, each copied: "ccache gcc" is two. */
void line_add_split(line *self, const char *text);
void line_add_all(line *self, const line *other);
/* On stdout with a newline, quoted so that a shell reads the same words again. */
void line_print(const line *self);

#endif
