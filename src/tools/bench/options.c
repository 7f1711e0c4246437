/* SPDX-License-Identifier: BSD-3-Clause
 * options: command line of weft-bench. One table of options serves parsing, --help and the nearest name for a misspelt one.
 */
#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef enum option_kind
{
    FLAG,
    NUMBER,
    SIZES_RANGE,
    SIZES_LIST
} option_kind;

typedef struct option_row
{
    const char *name;
    char letter;
    option_kind kind;
    size_t offset;
    long min, max;
    const char *argument;
    const char *help;
} option_row;

#define AT(field) offsetof(bench_options, field)

static const option_row rows[] = {
    {"sizes", 'm', SIZES_RANGE, 0, 0, 1L << 30, "MIN:MAX",
     "message sizes in bytes, doubled from MIN to MAX (suffixes K, M, G); one number: that size"},
    {"list-sizes", 0, SIZES_LIST, 0, 0, 1L << 30, "A,B,...", "these sizes only"},
    {"iterations", 'i', NUMBER, AT(iterations), 1, 1000000000, "N",
     "iterations of a sample (default: as many as --time allows)"},
    {"time", 't', NUMBER, AT(row_ms), 1, 600000, "MS", "target time of a row, all samples together, in ms (200)"},
    {"samples", 's', NUMBER, AT(samples), 1, BENCH_SAMPLES_MAX, "N",
     "samples of a row, of which median, min and max are shown (11)"},
    {"window", 'w', NUMBER, AT(window), 1, 4096, "N",
     "messages in flight in bandwidth, bibw, rate, vector, one-sided bandwidth and rate (64)"},
    {"depth", 'd', NUMBER, AT(depth), 1, 30000, "N", "queue length of posted and unexpected (4096)"},
    {"rotate", 'r', NUMBER, AT(rotate_bytes), 1, 1L << 34, "BYTES",
     "rotate buffers through BYTES of memory, so that they are in no cache"},
    {"memory", 0, NUMBER, AT(memory_bytes), 1 << 16, 1L << 40, "BYTES",
     "leave out rows that need more memory for buffers on a rank (256M)"},
    {"check", 'c', FLAG, AT(check), 0, 0, NULL, "verify every byte, in extra rounds before and after the timed ones"},
    {"json", 'j', FLAG, AT(json), 0, 0, NULL, "print one JSON object instead of tables"},
    {"list", 'l', FLAG, AT(list), 0, 0, NULL, "list the tests"},
    {"help", 'h', FLAG, AT(help), 0, 0, NULL, "print this help"},
};

enum
{
    ROWS = sizeof rows / sizeof rows[0]
};

/* Levenshtein distance of two short names. */
static int distance(const char *a, const char *b)
{
    int row[64];
    int m = (int)strlen(b);

    if (m > 62) {
        return INT_MAX;
    }
    for (int j = 0; j <= m; j++) {
        row[j] = j;
    }
    for (int i = 1; a[i - 1]; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int change = corner + (a[i - 1] != b[j - 1]);
            int min = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            corner = row[j];
            row[j] = change < min ? change : min;
        }
    }
    return row[m];
}

static void nearest(const char *what, const char *given, const char *const *names, int count, char *why, size_t why_bytes)
{
    const char *best = NULL;
    int min = 4;

    for (int i = 0; i < count; i++) {
        int d = distance(given, names[i]);
        if (d < min) {
            min = d;
            best = names[i];
        }
    }
    if (best) {
        snprintf(why, why_bytes, "unknown %s \"%s\"; did you mean \"%s\"?", what, given, best);
    } else {
        snprintf(why, why_bytes, "unknown %s \"%s\"; --help lists the options, --list the tests", what, given);
    }
}

/* Parses a number with an optional K, M or G (powers of 1,024). 0; -1: not a number, or overflow. */
static int number_read(const char *text, const char **end, long *out)
{
    char *stop;
    long factor = 1, n;

    if (*text < '0' || *text > '9') {
        return -1;
    }
    errno = 0;
    n = strtol(text, &stop, 10);
    if (errno) {
        return -1;
    }
    if (*stop == 'K' || *stop == 'k') {
        factor = 1L << 10;
    } else if (*stop == 'M') {
        factor = 1L << 20;
    } else if (*stop == 'G') {
        factor = 1L << 30;
    }
    stop += factor > 1;
    if (n > LONG_MAX / factor) {
        return -1;
    }
    *out = n * factor;
    *end = stop;
    return 0;
}

static int sizes_double(long min, long max, long sizes[BENCH_SIZES_MAX])
{
    int n = 0;

    for (long b = min; b <= max && n < BENCH_SIZES_MAX; b = b ? b * 2 : 1) {
        sizes[n++] = b;
    }
    return n;
}

static int sizes_read(bench_options *o, const option_row *row, const char *text)
{
    const char *at = text;
    long a, b;

    if (row->kind == SIZES_RANGE) {
        if (number_read(at, &at, &a)) {
            return -1;
        }
        b = a;
        if (*at == ':' && number_read(at + 1, &at, &b)) {
            return -1;
        }
        if (*at || a > b || b > row->max) {
            return -1;
        }
        o->sizes_count = sizes_double(a, b, o->sizes);
        return 0;
    }
    for (o->sizes_count = 0;; at++) {
        if (o->sizes_count == BENCH_SIZES_MAX || number_read(at, &at, &a) || a > row->max) {
            return -1;
        }
        o->sizes[o->sizes_count++] = a;
        if (*at != ',') {
            return *at ? -1 : 0;
        }
    }
}

static int value_read(bench_options *o, const option_row *row, const char *text, char *why, size_t why_bytes)
{
    const char *end;
    long n;

    if (row->kind == NUMBER) {
        if (!number_read(text, &end, &n) && !*end && n >= row->min && n <= row->max) {
            *(long *)((char *)o + row->offset) = n;
            return 0;
        }
        snprintf(why, why_bytes, "--%s needs a number from %ld to %ld, not \"%s\"", row->name, row->min, row->max, text);
        return -1;
    }
    if (sizes_read(o, row, text)) {
        snprintf(why, why_bytes, "--%s needs %s, each from 0 to 1G, not \"%s\"", row->name, row->argument, text);
        return -1;
    }
    return 0;
}

static const option_row *row_find(const char *arg, char *name, size_t name_bytes, const char **value)
{
    const char *equals = strchr(arg, '=');
    size_t n;

    *value = NULL;
    if (arg[1] != '-') {
        for (int i = 0; i < ROWS; i++) {
            if (rows[i].letter && arg[1] == rows[i].letter) {
                *value = arg[2] ? arg + 2 : NULL;
                return &rows[i];
            }
        }
        snprintf(name, name_bytes, "%s", arg + 1);
        return NULL;
    }
    n = equals ? (size_t)(equals - arg - 2) : strlen(arg + 2);
    snprintf(name, name_bytes, "%.*s", (int)(n < name_bytes ? n : name_bytes - 1), arg + 2);
    *value = equals ? equals + 1 : NULL;
    for (int i = 0; i < ROWS; i++) {
        if (!strcmp(rows[i].name, name)) {
            return &rows[i];
        }
    }
    return NULL;
}

static int option_read(bench_options *o, int argc, char **argv, int *i, char *why, size_t why_bytes)
{
    const char *names[ROWS], *value;
    char name[64];
    const option_row *row = row_find(argv[*i], name, sizeof name, &value);

    if (!row) {
        for (int k = 0; k < ROWS; k++) {
            names[k] = rows[k].name;
        }
        nearest("option", name, names, ROWS, why, why_bytes);
        return -1;
    }
    if (row->kind == FLAG) {
        if (value) {
            snprintf(why, why_bytes, "--%s takes no value, but \"%s\" was given", row->name, value);
            return -1;
        }
        *(bool *)((char *)o + row->offset) = true;
        return 0;
    }
    if (!value && *i + 1 < argc) {
        value = argv[++*i];
    }
    if (!value) {
        snprintf(why, why_bytes, "--%s needs a value: %s", row->name, row->argument);
        return -1;
    }
    return value_read(o, row, value, why, why_bytes);
}

static int test_read(bench_options *o, const char *name, const bench_test *const *all, char *why, size_t why_bytes)
{
    const char *names[BENCH_TESTS_MAX + 1];
    int n = 0;

    for (; all[n]; n++) {
        if (!strcmp(all[n]->name, name)) {
            if (o->tests_count == BENCH_TESTS_MAX) {
                snprintf(why, why_bytes, "more than %d tests", BENCH_TESTS_MAX);
                return -1;
            }
            o->tests[o->tests_count++] = all[n];
            return 0;
        }
        names[n] = all[n]->name;
    }
    names[n] = "all";
    nearest("test", name, names, n + 1, why, why_bytes);
    return -1;
}

int bench_options_parse(bench_options *o, int argc, char **argv, const bench_test *const *all, char *why, size_t why_bytes)
{
    *o = (bench_options){.row_ms = 200, .samples = 11, .window = 64, .depth = 4096, .memory_bytes = 256L << 20};
    for (int i = 1; i < argc; i++) {
        int rc = 0;
        if (argv[i][0] == '-' && argv[i][1]) {
            rc = option_read(o, argc, argv, &i, why, why_bytes);
        } else if (strcmp(argv[i], "all")) {
            rc = test_read(o, argv[i], all, why, why_bytes);
        } else {
            for (o->tests_count = 0; all[o->tests_count]; o->tests_count++) {
                o->tests[o->tests_count] = all[o->tests_count];
            }
        }
        if (rc) {
            return rc;
        }
    }
    if (!o->tests_count) {
        o->tests[o->tests_count++] = &bench_latency;
        o->tests[o->tests_count++] = &bench_bandwidth;
    }
    return 0;
}

void bench_options_help(FILE *to)
{
    fprintf(to, "usage: mpirun -n RANKS weft-bench [TEST ...|all] [options]\n"
                "Benchmarks this MPI; default tests: latency and bandwidth. In tests of pairs rank i exchanges messages with\n"
                "rank i + RANKS/2, all pairs at once: times are means over the pairs, bandwidths and rates are sums.\n"
                "Exit code: 0, 1 wrong data (--check) or out of memory, 2 bad usage.\n\n");
    for (int i = 0; i < ROWS; i++) {
        char left[48], letter[8] = "    ";
        if (rows[i].letter) {
            snprintf(letter, sizeof letter, "-%c, ", rows[i].letter);
        }
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
                 rows[i].argument ? rows[i].argument : "");
        fprintf(to, "  %s%-22s %s\n", letter, left, rows[i].help);
    }
}

void bench_options_list(FILE *to, const bench_test *const *all)
{
    for (int i = 0; all[i]; i++) {
        fprintf(to, "%-25s %s\n", all[i]->name, all[i]->help);
    }
}

int bench_options_sizes(const bench_options *o, const bench_test *t, long sizes[BENCH_SIZES_MAX])
{
    if (o->sizes_count && t->unit_bytes) {
        int n = 0;
        for (int i = 0; i < o->sizes_count; i++) {
            if (o->sizes[i] % t->unit_bytes == 0 && (o->sizes[i] || t->empty)) {
                sizes[n++] = o->sizes[i];
            }
        }
        return n;
    }
    return sizes_double(t->min_bytes, t->max_bytes, sizes);
}
