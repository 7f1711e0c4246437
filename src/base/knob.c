/* SPDX-License-Identifier: BSD-3-Clause
 *
 * knob: reads WEFT_<NAME> into weft_knob. Called once at start of MPI_Init, mpirun, weft-info and tests; one thread.
 * Invariant: every field always has a value in its range.
 */
#include "base/knob.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

extern char **environ;

#define KNOB_OTHER(name, sentence)

#define KNOB_INT(name, start, min, max, sentence) .name = start,
#define KNOB_SIZE KNOB_INT
#define KNOB_BOOL(name, start, sentence) .name = start,
#define KNOB_CHOICE(name, start, words, sentence) .name = start,
#define KNOB_TEXT(name, start, sentence) .name = start,
weft_knobs weft_knob = {
#include "base/knobs.def"
};
static const weft_knobs defaults = {
#include "base/knobs.def"
};
#undef KNOB_INT
#undef KNOB_SIZE
#undef KNOB_BOOL
#undef KNOB_CHOICE
#undef KNOB_TEXT

#define KNOB_INT(name, start, min, max, sentence) {#name, WEFT_KNOB_INT, offsetof(weft_knobs, name), min, max, NULL, sentence},
#define KNOB_SIZE(name, start, min, max, sentence) {#name, WEFT_KNOB_SIZE, offsetof(weft_knobs, name), min, max, NULL, sentence},
#define KNOB_BOOL(name, start, sentence) {#name, WEFT_KNOB_BOOL, offsetof(weft_knobs, name), 0, 1, NULL, sentence},
#define KNOB_CHOICE(name, start, words, sentence) {#name, WEFT_KNOB_CHOICE, offsetof(weft_knobs, name), 0, 0, words, sentence},
#define KNOB_TEXT(name, start, sentence) {#name, WEFT_KNOB_TEXT, offsetof(weft_knobs, name), 0, 0, NULL, sentence},
const weft_knob_row weft_knob_rows[] = {
#include "base/knobs.def"
};
#undef KNOB_INT
#undef KNOB_SIZE
#undef KNOB_BOOL
#undef KNOB_CHOICE
#undef KNOB_TEXT
#undef KNOB_OTHER
const int weft_knob_row_count = (int)weft_count(weft_knob_rows);
_Static_assert(weft_count(weft_knob_rows) < 60, "fewer than 60 knobs: what cannot be tuned is a constant");

#define KNOB_INT(name, start, min, max, sentence)
#define KNOB_SIZE(name, start, min, max, sentence)
#define KNOB_BOOL(name, start, sentence)
#define KNOB_CHOICE(name, start, words, sentence)
#define KNOB_TEXT(name, start, sentence)
#define KNOB_OTHER(name, sentence) name,
static const char *const others[] = {
#include "base/knobs.def"
};

enum origin { ORIGIN_DEFAULT, ORIGIN_ENVIRONMENT, ORIGIN_CLAMPED };
static unsigned char origins[weft_count(weft_knob_rows)]; /* origin of each row's value; written with weft_knob only */
static char *texts[weft_count(weft_knob_rows)];           /* copies of TEXT values, owned; live as long as weft_knob */

static void *field_of(weft_knobs *knobs, const weft_knob_row *row)
{
    return (char *)knobs + row->offset;
}

/* Parses an integer with an optional K, M or G (also KiB, MiB, KB: powers of 1,024). False: not a number, or too large. */
static bool number_read(const char *text, bool suffixes, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 0);
    if (end == text || errno)
        return false;
    int shift = 0;
    if (suffixes && *end) {
        static const char letters[] = "KMG";
        const char *letter = strchr(letters, toupper((unsigned char)*end));
        if (letter) {
            shift = 10 * (int)(letter - letters + 1);
            end++;
            end += *end == 'i';
        }
        end += *end == 'B' || *end == 'b';
    }
    if (*end || __builtin_mul_overflow(number, 1LL << shift, &number))
        return false;
    *value = number;
    return true;
}

/* Index of `text` in "a|b|c"; -1: not in it. */
static int word_find(const char *words, const char *text)
{
    size_t length = strlen(text);
    int index = 0;
    for (const char *at = words; *at; index++) {
        size_t n = strcspn(at, "|");
        if (n == length && strncasecmp(at, text, n) == 0)
            return index;
        at += n + (at[n] == '|');
    }
    return -1;
}

static int bool_read(const char *text)
{
    int no = word_find("0|no|off|false", text), yes = word_find("1|yes|on|true", text);
    return yes >= 0 ? 1 : no >= 0 ? 0 : -1;
}

/* Describes the values that a row accepts. */
static void range_show(const weft_knob_row *row, char *text, size_t capacity)
{
    switch (row->kind) {
    case WEFT_KNOB_INT:
    case WEFT_KNOB_SIZE:
        snprintf(text, capacity, "%" PRId64 " to %" PRId64 "%s", row->min, row->max, row->kind == WEFT_KNOB_SIZE ? " bytes (K, M, G)" : "");
        return;
    case WEFT_KNOB_BOOL: snprintf(text, capacity, "yes or no"); return;
    case WEFT_KNOB_CHOICE: snprintf(text, capacity, "%s", row->words); return;
    case WEFT_KNOB_TEXT: snprintf(text, capacity, "any text"); return;
    }
}

static void value_show(const weft_knob_row *row, const weft_knobs *knobs, char *text, size_t capacity)
{
    const void *field = (const char *)knobs + row->offset;
    switch (row->kind) {
    case WEFT_KNOB_INT: snprintf(text, capacity, "%d", *(const int *)field); return;
    case WEFT_KNOB_SIZE: {
        uint64_t value = *(const uint64_t *)field;
        int unit = 0;
        while (value && value % 1024 == 0 && unit < 3)
            value /= 1024, unit++;
        snprintf(text, capacity, "%" PRIu64 "%s", value, (const char *[]){"", "K", "M", "G"}[unit]);
        return;
    }
    case WEFT_KNOB_BOOL: snprintf(text, capacity, "%s", *(const bool *)field ? "yes" : "no"); return;
    case WEFT_KNOB_CHOICE: {
        const char *word = row->words;
        for (int skip = *(const int *)field; skip > 0; skip--)
            word += strcspn(word, "|") + 1;
        snprintf(text, capacity, "%.*s", (int)strcspn(word, "|"), word);
        return;
    }
    case WEFT_KNOB_TEXT: snprintf(text, capacity, "%s", *(const char *const *)field); return;
    }
}

void weft_knob_show(int index, char *text, size_t capacity)
{
    value_show(&weft_knob_rows[index], &weft_knob, text, capacity);
}

void weft_knob_show_default(int index, char *text, size_t capacity)
{
    value_show(&weft_knob_rows[index], &defaults, text, capacity);
}

const char *weft_knob_origin(int index)
{
    static const char *const names[] = {"default", "environment", "environment, clamped"};
    return names[origins[index]];
}

/* Parses `text` into the row's field of `knobs`. False: invalid. */
static bool value_read(const weft_knob_row *row, const char *text, weft_knobs *knobs, enum origin *origin)
{
    void *field = field_of(knobs, row);
    *origin = ORIGIN_ENVIRONMENT;
    if (row->kind == WEFT_KNOB_TEXT) {
        char **own = &texts[row - weft_knob_rows];
        if (!*own || strcmp(*own, text) != 0) {
            free(*own);
            *own = strdup(text);
        }
        if (*own)
            *(const char **)field = *own;
        return *own != NULL;
    }
    if (row->kind == WEFT_KNOB_BOOL || row->kind == WEFT_KNOB_CHOICE) {
        int index = row->kind == WEFT_KNOB_BOOL ? bool_read(text) : word_find(row->words, text);
        if (index < 0)
            return false;
        if (row->kind == WEFT_KNOB_BOOL)
            *(bool *)field = index;
        else
            *(int *)field = index;
        return true;
    }
    int64_t value;
    if (!number_read(text, row->kind == WEFT_KNOB_SIZE, &value))
        return false;
    int64_t inside = value < row->min ? row->min : value > row->max ? row->max : value;
    if (inside != value)
        *origin = ORIGIN_CLAMPED;
    if (row->kind == WEFT_KNOB_INT)
        *(int *)field = (int)inside;
    else
        *(uint64_t *)field = (uint64_t)inside;
    return true;
}

static size_t field_bytes(enum weft_knob_kind kind)
{
    switch (kind) {
    case WEFT_KNOB_SIZE: return sizeof(uint64_t);
    case WEFT_KNOB_BOOL: return sizeof(bool);
    case WEFT_KNOB_TEXT: return sizeof(const char *);
    default: return sizeof(int);
    }
}

/* "spin_us" becomes "WEFT_SPIN_US". */
static void name_upper(const char *name, char *text, size_t capacity)
{
    snprintf(text, capacity, "WEFT_%s", name);
    for (char *at = text; *at; at++)
        *at = (char)toupper((unsigned char)*at);
}

static void row_load(int index, bool warn)
{
    const weft_knob_row *row = &weft_knob_rows[index];
    char name[64], range[128], value[64];
    name_upper(row->name, name, sizeof(name));
    const char *text = getenv(name);
    origins[index] = ORIGIN_DEFAULT;
    memcpy(field_of(&weft_knob, row), (const char *)&defaults + row->offset, field_bytes(row->kind));
    if (!text || (!*text && row->kind != WEFT_KNOB_TEXT))
        return;
    enum origin origin;
    bool is_read = value_read(row, text, &weft_knob, &origin);
    if (is_read)
        origins[index] = (unsigned char)origin;
    if (!warn || (is_read && origin != ORIGIN_CLAMPED))
        return;
    range_show(row, range, sizeof(range));
    weft_knob_show(index, value, sizeof(value));
    weft_log_warn("%s=%s %s (%s): using %s", name, text, is_read ? "is out of range" : "is not understood", range, value);
}

static bool is_known(const char *name, size_t length)
{
    char known[64];
    for (int i = 0; i < weft_knob_row_count; i++) {
        name_upper(weft_knob_rows[i].name, known, sizeof(known));
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return true;
    }
    for (size_t i = 0; i < weft_count(others); i++) {
        size_t n = strlen(others[i]);
        bool is_prefix = others[i][n - 1] == '*';
        n -= is_prefix;
        if ((is_prefix ? length >= n : length == n) && memcmp(others[i], name, n) == 0)
            return true;
    }
    return false;
}

#define NAME_LENGTH_MAX 40

/* Edit distance (insert, delete, replace) of two names; names longer than NAME_LENGTH_MAX are far from all. */
static int distance(const char *a, const char *b)
{
    size_t rows = strlen(a), columns = strlen(b);
    if (rows > NAME_LENGTH_MAX || columns > NAME_LENGTH_MAX)
        return NAME_LENGTH_MAX;
    int line[NAME_LENGTH_MAX + 1];
    for (size_t j = 0; j <= columns; j++)
        line[j] = (int)j;
    for (size_t i = 1; i <= rows; i++) {
        int corner = line[0];
        line[0] = (int)i;
        for (size_t j = 1; j <= columns; j++) {
            int replaced = corner + (toupper((unsigned char)a[i - 1]) != toupper((unsigned char)b[j - 1]));
            corner = line[j];
            int min = line[j] < line[j - 1] ? line[j] + 1 : line[j - 1] + 1;
            line[j] = replaced < min ? replaced : min;
        }
    }
    return line[columns];
}

const char *weft_knob_nearest(const char *name, char *text, size_t capacity)
{
    int best = NAME_LENGTH_MAX;
    char known[64];
    for (int i = 0; i < weft_knob_row_count; i++) {
        name_upper(weft_knob_rows[i].name, known, sizeof(known));
        int edits = distance(name, known);
        if (edits < best) {
            best = edits;
            snprintf(text, capacity, "%s", known);
        }
    }
    /* near: at most a third of the characters after WEFT_ are wrong */
    size_t length = strlen(name) > 5 ? strlen(name) - 5 : 0;
    return best <= 1 + (int)length / 3 ? text : NULL;
}

static void unknown_warn(const char *name)
{
    char near[64];
    if (weft_knob_nearest(name, near, sizeof(near)))
        weft_log_warn("%s is not a knob of Weft: did you mean %s?", name, near);
    else
        weft_log_warn("%s is not a knob of Weft: weft-info --knobs lists them", name);
}

void weft_knobs_load(bool warn)
{
    for (int i = 0; i < weft_knob_row_count; i++)
        row_load(i, warn);
    weft_log_limit((enum weft_log_level)weft_knob.log);
    for (char **entry = environ; warn && environ && *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        if (length < 5 || memcmp(*entry, "WEFT_", 5) != 0 || is_known(*entry, length))
            continue;
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)length, *entry);
        unknown_warn(name);
    }
}
