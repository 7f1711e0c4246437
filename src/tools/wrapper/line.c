/* SPDX-License-Identifier: BSD-3-Clause
 *
 * line: words in a growing array. Called by the wrapper's main. Invariant: words[count] is NULL after the first add.
 */
#include "tools/wrapper/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *memory)
{
    if (memory)
        return memory;
    fputs("mpicc: out of memory\n", stderr);
    exit(1);
}

void line_add(line *self, const char *word)
{
    if (self->count + 2 > self->capacity) {
        self->capacity = self->capacity ? 2 * self->capacity : 64;
        self->words = must(realloc(self->words, self->capacity * sizeof(*self->words)));
    }
    self->words[self->count++] = word;
    self->words[self->count] = NULL;
}

void line_add_joined(line *self, const char *prefix, const char *text)
{
    size_t capacity = strlen(prefix) + strlen(text) + 1;
    char *word = must(malloc(capacity));
    snprintf(word, capacity, "%s%s", prefix, text);
    line_add(self, word);
}

void line_add_split(line *self, const char *text)
{
    char *copy = must(strdup(text)), *rest = NULL;
    for (char *word = strtok_r(copy, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
        line_add(self, word);
}

void line_add_all(line *self, const line *other)
{
    for (size_t i = 0; i < other->count; i++)
        line_add(self, other->words[i]);
}

static void word_print(const char *word)
{
    if (*word && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == strlen(word)) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*word);
    putchar('\'');
}

void line_print(const line *self)
{
    for (size_t i = 0; i < self->count; i++) {
        if (i)
            putchar(' ');
        word_print(self->words[i]);
    }
    putchar('\n');
}
