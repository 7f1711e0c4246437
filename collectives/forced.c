/* SPDX-License-Identifier: BSD-3-Clause
 *
 * forced: see forced.h.
 */
#include "collectives/forced.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/log.h"

#define ENTRIES_MAX 64
#define FILE_BYTES_MAX 65536

typedef struct entry {
    enum weft_coll_kind kind;
    char name[32];     /* of the algorithm, letters and digits */
    uint64_t min, max; /* bytes, inclusive */
    bool was_told;     /* that it may not be used for a call */
} entry;

uint32_t weft_coll_forced_count;
static entry entries[ENTRIES_MAX];
static bool was_read, is_quiet;

#define REPORT(...) (is_quiet ? (void)0 : weft_log_warn("WEFT_COLL: " __VA_ARGS__))

/* Letters, in lower case, and digits of a name. */
static void plain(const char *from, size_t length, char *to, size_t capacity)
{
    size_t n = 0;

    for (size_t i = 0; i < length && from[i] && n + 1 < capacity; i++)
        if (isalnum((unsigned char)from[i]))
            to[n++] = (char)tolower((unsigned char)from[i]);
    to[n] = 0;
}

static bool is_named(const char *name, const char *plain_name)
{
    char own[64];

    plain(name, strlen(name), own, sizeof own);
    return !strcmp(own, plain_name);
}

static bool find_kind(const char *plain_name, enum weft_coll_kind *kind)
{
    for (int i = 0; i < WEFT_COLL_KINDS; i++)
        if (is_named(weft_coll_name((enum weft_coll_kind)i), plain_name)) {
            *kind = (enum weft_coll_kind)i;
            return true;
        }
    return false;
}

static bool has_algorithm(enum weft_coll_kind kind, const char *plain_name)
{
    size_t count;
    const weft_coll_rule *rules = weft_coll_select_rules(kind, &count);

    for (size_t i = 0; i < count; i++)
        if (is_named(rules[i].name, plain_name))
            return true;
    return false;
}

/* The names of an operation's algorithms, each once. */
static const char *names_of(enum weft_coll_kind kind, char *text, size_t capacity)
{
    size_t count, used = 0;
    const weft_coll_rule *rules = weft_coll_select_rules(kind, &count);

    text[0] = 0;
    for (size_t i = 0; i < count && used < capacity; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i; j++)
            is_new &= strcmp(rules[i].name, rules[j].name) != 0;
        if (is_new)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? "; " : "", rules[i].name);
    }
    return text;
}

/* Bytes with a suffix; *end is behind them. False: no number. */
static bool read_bytes(const char *text, const char **end, uint64_t *bytes)
{
    char *after;
    unsigned shift = 0;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    *bytes = strtoull(text, &after, 10);
    switch (toupper((unsigned char)*after)) {
    case 'G':
        shift += 10; /* fall through */
    case 'M':
        shift += 10; /* fall through */
    case 'K':
        shift += 10;
        after++;
    }
    *end = after;
    if (errno || *bytes > UINT64_MAX >> shift)
        return false;
    *bytes <<= shift;
    return true;
}

/* "", ":MIN-" or ":MIN-MAX". */
static bool read_range(const char *text, entry *to)
{
    to->min = 0;
    to->max = UINT64_MAX;
    if (!*text)
        return true;
    if (!read_bytes(text + 1, &text, &to->min) || *text++ != '-')
        return false;
    return !*text || (read_bytes(text, &text, &to->max) && !*text && to->max >= to->min);
}

static bool read_entry(const char *text)
{
    entry fresh = {.was_told = false};
    const char *equal = strchr(text, '='), *colon;
    char operation[32], names[600];

    if (!equal) {
        REPORT("'%s' is not of the form operation=algorithm[:MIN-[MAX]]", text);
        return false;
    }
    colon = strchr(equal, ':');
    colon = colon ? colon : equal + strlen(equal);
    plain(text, (size_t)(equal - text), operation, sizeof operation);
    plain(equal + 1, (size_t)(colon - equal - 1), fresh.name, sizeof fresh.name);
    if (!find_kind(operation, &fresh.kind))
        REPORT("there is no collective '%.*s'", (int)(equal - text), text);
    else if (!has_algorithm(fresh.kind, fresh.name))
        REPORT("%s has no algorithm '%.*s'; it has: %s", weft_coll_name(fresh.kind), (int)(colon - equal - 1), equal + 1,
                      names_of(fresh.kind, names, sizeof names));
    else if (!read_range(colon, &fresh))
        REPORT("'%s' is no range of bytes MIN-[MAX]", colon + 1);
    else if (weft_coll_forced_count == ENTRIES_MAX)
        REPORT("more than %d entries", ENTRIES_MAX);
    else {
        entries[weft_coll_forced_count++] = fresh;
        return true;
    }
    return false;
}

/* Changes text. Returns the number of wrong entries. */
static uint32_t read_entries(char *text)
{
    uint32_t wrong = 0;
    char *line, *rest = text;

    while ((line = strsep(&rest, "\n"))) {
        char *word, *words = line;
        line[strcspn(line, "#")] = 0;
        while ((word = strsep(&words, ", \t\r")))
            if (*word)
                wrong += !read_entry(word);
    }
    return wrong;
}

static uint32_t read_file(const char *name)
{
    FILE *file = fopen(name, "r");
    char *text = file ? calloc(1, FILE_BYTES_MAX) : NULL;
    uint32_t wrong = 1;

    if (text && (fread(text, 1, FILE_BYTES_MAX - 1, file), !ferror(file)))
        wrong = read_entries(text);
    else
        REPORT("file '%s' cannot be read: %s", name, strerror(errno));
    free(text);
    if (file)
        fclose(file);
    return wrong;
}

uint32_t weft_coll_forced_read(const char *text, bool is_loud)
{
    uint32_t wrong;
    char *copy;

    weft_coll_forced_count = 0;
    was_read = true;
    is_quiet = !is_loud;
    if (*text == '@')
        return read_file(text + 1);
    copy = strdup(text);
    if (!copy)
        return 1;
    wrong = read_entries(copy);
    free(copy);
    return wrong;
}

void weft_coll_forced_open(bool is_loud)
{
    if (!was_read && *weft_knob.coll)
        weft_coll_forced_read(weft_knob.coll, is_loud);
    was_read = true;
}

/* The operation's rule of this name that the call may use; NULL: none. */
static const weft_coll_rule *usable_rule(const entry *of, const weft_coll_query *query)
{
    size_t count;
    const weft_coll_rule *rules = weft_coll_select_rules(query->kind, &count);

    for (size_t i = 0; i < count; i++)
        if (is_named(rules[i].name, of->name) && !(rules[i].needs & ~(query->has | weft_coll_query_numbers(query))) &&
            (rules[i].algorithm || query->nodes == 1)) /* slots alone serve one node */
            return &rules[i];
    return NULL;
}

const weft_coll_rule *weft_coll_forced(const weft_coll_query *query)
{
    for (uint32_t i = weft_coll_forced_count; i-- > 0;) {
        entry *at = &entries[i];
        const weft_coll_rule *rule;
        if (at->kind != query->kind || query->bytes < at->min || query->bytes > at->max)
            continue;
        rule = usable_rule(at, query);
        if (!rule && !at->was_told)
            weft_log_info("WEFT_COLL: %s by '%s' may not be used for a call of %u ranks: another algorithm is chosen",
                          weft_coll_name(at->kind), at->name, query->ranks);
        at->was_told |= !rule;
        return rule;
    }
    return NULL;
}
