/* SPDX-License-Identifier: BSD-3-Clause
 * cg_matrix: reads a sparse matrix from a Matrix Market file, see cg_matrix.h. The file is not trusted: memory grows with the entries
 * read, not with the number in the header.
 */
#define _GNU_SOURCE
#include "cg_matrix.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct entry
{
    int row, column;
    double value;
    long line;
} entry;

typedef struct reader
{
    const char *path;
    FILE *file;
    pid_t gzip; /* 0: the file is not compressed */
    char *text;
    size_t text_bytes;
    long line;
    int symmetric, integer;
    long rows, promised; /* of the size line */
    entry *entries;
    long count, capacity;
    char *why;
    size_t why_bytes;
} reader;

__attribute__((format(printf, 3, 4))) static int fail(reader *r, long line, const char *format, ...)
{
    va_list args;
    int n = line ? snprintf(r->why, r->why_bytes, "%s:%ld: ", r->path, line) : snprintf(r->why, r->why_bytes, "%s: ", r->path);

    if (n >= 0 && (size_t)n < r->why_bytes) {
        va_start(args, format);
        vsnprintf(r->why + n, r->why_bytes - (size_t)n, format, args);
        va_end(args);
    }
    return -1;
}

/* The file is gzip's standard input: no shell, so file names have no special meaning. */
static int open_gzip(reader *r, int fd)
{
    char *argv[] = {"gzip", "-dc", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t pipe_signal;
    int ends[2], rc;

    if (pipe2(ends, O_CLOEXEC)) {
        return fail(r, 0, "no pipe to gzip: %s", strerror(errno));
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fd, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    /* If reading stops early, gzip ends by SIGPIPE, even if this process ignores it: that is no error. */
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    rc = posix_spawnp(&r->gzip, "gzip", &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (rc) {
        r->gzip = 0;
        close(ends[0]);
        return fail(r, 0, "is compressed, and gzip cannot be started: %s", strerror(rc));
    }
    r->file = fdopen(ends[0], "r");
    return r->file ? 0 : fail(r, 0, "%s", strerror(errno));
}

static int open_file(reader *r)
{
    unsigned char magic[2] = {0, 0};
    int fd = open(r->path, O_RDONLY | O_CLOEXEC), rc = 0;

    if (fd < 0) {
        return fail(r, 0, "%s", strerror(errno));
    }
    if (pread(fd, magic, 2, 0) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
        rc = open_gzip(r, fd);
        close(fd);
        return rc;
    }
    r->file = fdopen(fd, "r");
    return r->file ? 0 : fail(r, 0, "%s", strerror(errno));
}

/* Closes the file. A failure of gzip replaces the error found before. */
static int close_file(reader *r, int rc)
{
    int status = 0;

    if (r->file) {
        fclose(r->file);
    }
    if (r->gzip) {
        waitpid(r->gzip, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
            rc = fail(r, 0, "gzip cannot decompress it (damaged or cut short?)");
        }
    }
    free(r->text);
    return rc;
}

/* The next line that is neither blank nor a comment, without its newline; NULL at the end of the file. */
static char *next_line(reader *r)
{
    ssize_t n;

    while ((n = getline(&r->text, &r->text_bytes, r->file)) >= 0) {
        char *at = r->text;
        r->line++;
        while (n && isspace((unsigned char)at[n - 1])) {
            at[--n] = 0;
        }
        while (isspace((unsigned char)*at)) {
            at++;
        }
        if (*at && (*at != '%' || r->line == 1)) {
            return at;
        }
    }
    return NULL;
}

static int read_header(reader *r)
{
    char words[5][32] = {"", "", "", "", ""}, *at = next_line(r), extra[2];
    int n = 0;

    if (at && r->line == 1) {
        n = sscanf(at, "%31s %31s %31s %31s %31s %1s", words[0], words[1], words[2], words[3], words[4], extra);
    }
    if (n < 1 || strcasecmp(words[0], "%%MatrixMarket")) {
        return fail(r, 1, "no Matrix Market file: the first line must begin with %%%%MatrixMarket");
    }
    if (n != 5) {
        return fail(r, 1, "the first line must read \"%%%%MatrixMarket matrix coordinate real symmetric\" (or integer, general)");
    }
    if (strcasecmp(words[1], "matrix")) {
        return fail(r, 1, "object \"%s\" is not accepted, only \"matrix\"", words[1]);
    }
    if (strcasecmp(words[2], "coordinate")) {
        return fail(r, 1, "format \"%s\" is not accepted, only \"coordinate\" (sparse)", words[2]);
    }
    r->integer = !strcasecmp(words[3], "integer");
    if (!r->integer && strcasecmp(words[3], "real")) {
        return fail(r, 1, "field \"%s\" is not accepted, only \"real\" and \"integer\"", words[3]);
    }
    r->symmetric = !strcasecmp(words[4], "symmetric");
    if (!r->symmetric && strcasecmp(words[4], "general")) {
        return fail(r, 1, "symmetry \"%s\" is not accepted, only \"symmetric\" and \"general\"", words[4]);
    }
    return 0;
}

/* Reads an integer from the line. 0, or -1 if there is none or it does not fit. */
static int take_long(char **at, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(*at, &end, 10);
    if (end == *at || errno || (*end && !isspace((unsigned char)*end))) {
        return -1;
    }
    *at = end;
    return 0;
}

static int at_end_of_line(const char *at)
{
    while (isspace((unsigned char)*at)) {
        at++;
    }
    return !*at;
}

static int read_sizes(reader *r)
{
    char *at = next_line(r);
    long columns;

    if (!at) {
        return fail(r, r->line + 1, "the file ends before the line of sizes (rows, columns, entries)");
    }
    if (take_long(&at, &r->rows) || take_long(&at, &columns) || take_long(&at, &r->promised) || !at_end_of_line(at)) {
        return fail(r, r->line, "the line of sizes must hold three whole numbers: rows, columns, entries");
    }
    if (r->rows != columns) {
        return fail(r, r->line, "the matrix has %ld rows and %ld columns: it must be square", r->rows, columns);
    }
    if (r->rows < 1 || r->rows > INT_MAX / 2) {
        return fail(r, r->line, "%ld rows: from 1 to %d are accepted", r->rows, INT_MAX / 2);
    }
    if (r->promised < r->rows || (r->rows < 2000000000 && r->promised > r->rows * r->rows)) {
        return fail(r, r->line, "%ld entries cannot be right for %ld rows with a full diagonal", r->promised, r->rows);
    }
    return 0;
}

static int add_entry(reader *r, long row, long column, double value)
{
    if (r->count == r->capacity) {
        long capacity = r->capacity ? 2 * r->capacity : 1024;
        entry *more = realloc(r->entries, (size_t)capacity * sizeof *more);
        if (!more) {
            return fail(r, r->line, "no memory for %ld entries", capacity);
        }
        r->entries = more;
        r->capacity = capacity;
    }
    r->entries[r->count++] = (entry){(int)row - 1, (int)column - 1, value, r->line};
    return 0;
}

static int read_entry(reader *r, char *at)
{
    long row, column;
    char *end;
    double value;

    if (take_long(&at, &row) || take_long(&at, &column)) {
        return fail(r, r->line, "an entry must read: row column value");
    }
    errno = 0;
    value = strtod(at, &end);
    if (end == at || !at_end_of_line(end) || !isfinite(value)) {
        return fail(r, r->line, "the value of entry (%ld, %ld) must be one finite number, not \"%.40s\"", row, column,
                    at + strspn(at, " \t"));
    }
    if (r->integer && value != rint(value)) {
        return fail(r, r->line, "the value %g is not whole, but the first line says integer", value);
    }
    if (row < 1 || row > r->rows || column < 1 || column > r->rows) {
        return fail(r, r->line, "entry (%ld, %ld) lies outside a matrix of %ld rows", row, column, r->rows);
    }
    if (r->symmetric && column > row) {
        return fail(r, r->line, "entry (%ld, %ld) lies above the diagonal: a symmetric file gives the lower triangle only", row,
                    column);
    }
    if (add_entry(r, row, column, value)) {
        return -1;
    }
    return r->symmetric && row != column ? add_entry(r, column, row, value) : 0;
}

static int read_entries(reader *r)
{
    char *at;

    for (long n = 0; n < r->promised; n++) {
        at = next_line(r);
        if (!at) {
            return fail(r, r->line + 1, "the file ends after %ld entries, but the line of sizes promised %ld", n, r->promised);
        }
        if (read_entry(r, at)) {
            return -1;
        }
    }
    return next_line(r) ? fail(r, r->line, "more than the %ld entries that the line of sizes promised", r->promised) : 0;
}

static int by_place(const void *a, const void *b)
{
    const entry *x = a, *y = b;

    return x->row != y->row ? (x->row > y->row) - (x->row < y->row) : (x->column > y->column) - (x->column < y->column);
}

static const entry *find(const reader *r, int row, int column)
{
    entry key = {row, column, 0, 0};

    return bsearch(&key, r->entries, (size_t)r->count, sizeof key, by_place);
}

/* Requirements of conjugate gradients with Jacobi's preconditioner, reported with the line. */
static int look_at(reader *r)
{
    qsort(r->entries, (size_t)r->count, sizeof *r->entries, by_place);
    for (long i = 1; i < r->count; i++) {
        const entry *a = &r->entries[i - 1], *b = &r->entries[i];
        if (!by_place(a, b)) {
            long late = a->line > b->line ? a->line : b->line;
            return fail(r, late, "entry (%d, %d) stands in the file twice (also line %ld)", a->row + 1, a->column + 1,
                        a->line + b->line - late);
        }
    }
    for (int row = 0; row < r->rows; row++) {
        const entry *d = find(r, row, row);
        if (!d || d->value <= 0) {
            return fail(r, d ? d->line : 0, "the diagonal entry of row %d is %s: the matrix is not positive definite", row + 1,
                        d ? "not greater than 0" : "missing");
        }
    }
    for (long i = 0; i < r->count && !r->symmetric; i++) {
        const entry *e = &r->entries[i], *other = find(r, e->column, e->row);
        if (!other || fabs(other->value - e->value) > 1e-10 * (fabs(e->value) + fabs(other->value))) {
            return fail(r, e->line, "the matrix is not symmetric: (%d, %d) is %g, (%d, %d) is %g", e->row + 1,
                        e->column + 1, e->value, e->column + 1, e->row + 1, other ? other->value : 0);
        }
    }
    return 0;
}

static int compress(reader *r, matrix *m)
{
    m->rows = (int)r->rows;
    m->start = calloc((size_t)m->rows + 1, sizeof *m->start);
    m->column = malloc((size_t)r->count * sizeof *m->column);
    m->value = malloc((size_t)r->count * sizeof *m->value);
    if (!m->start || !m->column || !m->value) {
        return fail(r, 0, "no memory for %ld entries", r->count);
    }
    for (long i = 0; i < r->count; i++) {
        m->start[r->entries[i].row + 1] = i + 1;
        m->column[i] = r->entries[i].column;
        m->value[i] = r->entries[i].value;
    }
    return 0;
}

int matrix_read(matrix *m, const char *path, char *why, size_t why_bytes)
{
    reader r = {.path = path, .why = why, .why_bytes = why_bytes};
    int rc;

    memset(m, 0, sizeof *m);
    rc = open_file(&r);
    if (!rc) {
        rc = read_header(&r);
        rc = rc ? rc : read_sizes(&r);
        rc = rc ? rc : read_entries(&r);
        if (ferror(r.file)) {
            rc = fail(&r, 0, "cannot be read: %s", strerror(errno));
        }
    }
    rc = close_file(&r, rc);
    rc = rc ? rc : look_at(&r);
    rc = rc ? rc : compress(&r, m);
    free(r.entries);
    if (rc) {
        matrix_free(m);
    }
    return rc;
}

void matrix_free(matrix *m)
{
    free(m->start);
    free(m->column);
    free(m->value);
    memset(m, 0, sizeof *m);
}
