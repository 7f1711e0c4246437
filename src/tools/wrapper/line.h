/* SPDX-License-Identifier: BSD-3-Clause
 *
 * line: a growing command line. Words are borrowed unless documented as copied, and never freed. Out of memory ends the program.
 */
#ifndef WEFT_TOOLS_WRAPPER_LINE_H
#define WEFT_TOOLS_WRAPPER_LINE_H

#include <stddef.h>

typedef struct line {
    const char **words; /* NULL after the last; NULL: no words yet */
    size_t count, capacity; /* capacity of `words` includes the final NULL */
} line;

/* Adds a word, borrowed. */
void line_add(line *self, const char *word);
/* Adds prefix and text as one copied word. */
void line_add_joined(line *self, const char *prefix, const char *text);
/* Adds the blank-separated words of text, each copied: "ccache gcc" is two. */
void line_add_split(line *self, const char *text);
/* Adds all words of other, borrowed. */
void line_add_all(line *self, const line *other);
/* Prints to stdout with a newline, quoted for a shell. */
void line_print(const line *self);

#endif
