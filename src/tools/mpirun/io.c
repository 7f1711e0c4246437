/* SPDX-License-Identifier: BSD-3-Clause
 *
 * io: each rank's output comes through a pipe of its own, is cut into lines, and waits in a bounded buffer for our own output. A
 * slow reader fills that buffer; then the pipes are not read, and the ranks wait in write(2): nothing is lost, nothing piles up.
 * Our descriptors 0, 1 and 2 are shared with the shell, so they are never made non-blocking: a pipe that polls writable takes
 * PIPE_BUF bytes, and a write to a stopped terminal comes back when a signal does.
 * Not forwarded but handed down: everything when there is one rank (nobody to mix with), a terminal (programs see that it is one
 * and write by lines), and standard input that is no terminal.
 */
#include "tools/mpirun/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define SINK_MOST ((size_t)256 << 10) /* more than that waiting: stop reading from ranks */
#define LINE_MOST ((size_t)1 << 20)   /* a longer line is passed on in pieces */
#define READ_MOST ((size_t)64 << 10)

typedef struct buffer {
    char *bytes;
    size_t start, used, room;
} buffer;

typedef struct sink {
    int fd;
    bool is_dead, is_file;
    buffer waiting;
} sink;

typedef struct stream {
    int fd; /* -1: ended */
    uint32_t rank;
    sink *to;
    bool is_inside; /* a line: its beginning was passed on */
    buffer line;
} stream;

struct io {
    const options *opts;
    bool is_direct[2];     /* stdout, stderr: handed down */
    bool stdin_is_direct;
    int null, child[3];    /* the ends of the rank that is being started; -1: as ours */
    int in;                /* pipe to the rank that reads our stdin, -1: none */
    bool in_has_ended;
    buffer in_waiting;
    sink sinks[2];
    stream *streams;       /* [2 * ranks], as they were opened */
    uint32_t stream_count;
    struct rlimit limit;   /* of descriptors, as we found it */
    struct { char kind; uint32_t index; } *map; /* what each entry of the poll set is */
};

static int buffer_add(buffer *self, const char *bytes, size_t count)
{
    if (self->start && self->start + self->used + count > self->room) {
        memmove(self->bytes, self->bytes + self->start, self->used);
        self->start = 0;
    }
    if (self->used + count > self->room) {
        size_t room = self->room ? self->room * 2 : 4096;
        while (room < self->used + count)
            room *= 2;
        char *more = realloc(self->bytes, room);
        if (!more)
            return -1;
        self->bytes = more;
        self->room = room;
    }
    memcpy(self->bytes + self->start + self->used, bytes, count);
    self->used += count;
    return 0;
}

static void buffer_drop(buffer *self, size_t count)
{
    self->used -= count;
    self->start = self->used ? self->start + count : 0;
}

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A terminal with "tostop" would stop ranks that write: they are in process groups of their own. */
static bool terminal_takes_all(int fd)
{
    struct termios term;

    return tcgetattr(fd, &term) == 0 && !(term.c_lflag & TOSTOP);
}

static int descriptors_raise(io *self, uint32_t ranks, bool is_tagged)
{
    struct rlimit want;
    rlim_t spare = 120; /* ours, the segment's, a PMIx server's */

    getrlimit(RLIMIT_NOFILE, &self->limit);
    want = self->limit;
    want.rlim_cur = want.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &want))
        want = self->limit;
    if (!self->is_direct[1] && 2 * ranks + spare > want.rlim_cur && !is_tagged)
        self->is_direct[1] = true;
    rlim_t need = spare + (self->is_direct[0] ? 0 : ranks) + (self->is_direct[1] ? 0 : ranks);
    if (need <= want.rlim_cur)
        return 0;
    if (is_tagged)
        return complain(1, "marking the lines of %u ranks needs %lu descriptors, and %lu are allowed: raise ulimit -n", ranks,
                        (unsigned long)need, (unsigned long)want.rlim_cur);
    self->is_direct[0] = true;
    return 0;
}

int io_open(const options *opts, io **result)
{
    io *self = calloc(1, sizeof(*self));

    *result = self;
    if (!self)
        return complain(1, "out of memory");
    self->opts = opts;
    self->in = self->child[0] = self->child[1] = self->child[2] = -1;
    self->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    self->streams = calloc(2 * opts->ranks, sizeof(*self->streams));
    self->map = calloc(io_most(self), sizeof(*self->map));
    if (self->null < 0 || !self->streams || !self->map)
        return complain(1, "out of memory or descriptors: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        struct stat stat;
        bool is_terminal = isatty(i + 1);
        self->sinks[i] = (sink){.fd = i + 1, .is_file = fstat(i + 1, &stat) == 0 && S_ISREG(stat.st_mode)};
        self->is_direct[i] = !opts->is_tagged && (opts->ranks == 1 || (is_terminal && terminal_takes_all(i + 1)));
    }
    self->stdin_is_direct = !isatty(0);
    if (opts->output)
        return 0;
    return descriptors_raise(self, opts->ranks, opts->is_tagged);
}

static int file_make(const char *prefix, uint32_t rank, const char *suffix)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s.%u.%s", prefix, rank, suffix);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        complain(1, "--output-filename: cannot write %s: %s", path, strerror(errno));
    return fd;
}

static int stream_open(io *self, uint32_t rank, int which)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return complain(-1, "no pipe for the output of rank %u: %s (ulimit -n)", rank, strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    self->streams[self->stream_count++] = (stream){.fd = ends[0], .rank = rank, .to = &self->sinks[which]};
    self->child[1 + which] = ends[1];
    return 0;
}

static int stdin_open(io *self, uint32_t rank)
{
    int ends[2];

    if (self->opts->stdin_to != (int)rank) {
        self->child[0] = self->null;
        return 0;
    }
    self->child[0] = -1;
    if (self->stdin_is_direct)
        return 0;
    if (pipe2(ends, O_CLOEXEC))
        return complain(-1, "no pipe for the input of rank %u: %s", rank, strerror(errno));
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    self->child[0] = ends[0];
    self->in = ends[1];
    return 0;
}

int io_rank_open(io *self, uint32_t rank)
{
    if (stdin_open(self, rank))
        return -1;
    if (self->opts->output) {
        self->child[1] = file_make(self->opts->output, rank, "out");
        self->child[2] = self->child[1] < 0 ? -1 : file_make(self->opts->output, rank, "err");
        return self->child[2] < 0 ? -1 : 0;
    }
    for (int which = 0; which < 2; which++) {
        self->child[1 + which] = -1;
        if (!self->is_direct[which] && stream_open(self, rank, which))
            return -1;
    }
    return 0;
}

void io_child(const io *self)
{
    for (int i = 0; i < 3; i++)
        if (self->child[i] >= 0)
            dup2(self->child[i], i);
    if (self->limit.rlim_max)
        setrlimit(RLIMIT_NOFILE, &self->limit);
}

void io_rank_started(io *self)
{
    for (int i = 0; i < 3; i++) {
        if (self->child[i] != self->null)
            fd_close(&self->child[i]);
        self->child[i] = -1;
    }
}

uint32_t io_most(const io *self)
{
    return 2 * self->opts->ranks + 4;
}

static uint32_t wish(io *self, struct pollfd *set, uint32_t at, int fd, short events, char kind, uint32_t index)
{
    set[at] = (struct pollfd){.fd = fd, .events = events};
    self->map[at].kind = kind;
    self->map[at].index = index;
    return at + 1;
}

/* Reading a terminal from the background stops us: only while it is ours. */
static bool stdin_is_readable(const io *self)
{
    return self->in >= 0 && !self->in_has_ended && !self->in_waiting.used && tcgetpgrp(0) == getpgrp();
}

uint32_t io_wishes(io *self, struct pollfd *set)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < 2; i++)
        if (self->sinks[i].waiting.used && !self->sinks[i].is_dead)
            count = wish(self, set, count, self->sinks[i].fd, POLLOUT, 'o', i);
    for (uint32_t i = 0; i < self->stream_count; i++)
        if (self->streams[i].fd >= 0 && self->streams[i].to->waiting.used < SINK_MOST)
            count = wish(self, set, count, self->streams[i].fd, POLLIN, 's', i);
    if (stdin_is_readable(self))
        count = wish(self, set, count, 0, POLLIN, 'r', 0);
    if (self->in >= 0)
        count = wish(self, set, count, self->in, self->in_waiting.used ? POLLOUT : 0, 'w', 0);
    return count;
}

static void sink_add(sink *to, const char *bytes, size_t count)
{
    if (!to->is_dead && buffer_add(&to->waiting, bytes, count))
        to->is_dead = true;
}

static void lines_pass(const io *self, stream *from, size_t count)
{
    const char *at = from->line.bytes + from->line.start, *end = at + count;
    char tag[24];

    if (!self->opts->is_tagged) {
        sink_add(from->to, at, count);
    } else {
        int length = snprintf(tag, sizeof(tag), "[%u] ", from->rank);
        while (at < end) {
            const char *next = memchr(at, '\n', (size_t)(end - at));
            next = next ? next + 1 : end;
            if (!from->is_inside)
                sink_add(from->to, tag, (size_t)length);
            sink_add(from->to, at, (size_t)(next - at));
            from->is_inside = next[-1] != '\n';
            at = next;
        }
    }
    buffer_drop(&from->line, count);
}

static void stream_end(const io *self, stream *from)
{
    if (from->line.used)
        lines_pass(self, from, from->line.used);
    if (from->is_inside) /* the next rank's tag must not stand in the middle */
        sink_add(from->to, "\n", 1);
    fd_close(&from->fd);
    free(from->line.bytes);
    from->line = (buffer){0};
}

/* One read. False when nothing more is there for now. */
static bool stream_read(const io *self, stream *from)
{
    char bytes[READ_MOST];
    ssize_t n = read(from->fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0 || from->to->is_dead || buffer_add(&from->line, bytes, (size_t)n)) {
        stream_end(self, from);
        return false;
    }
    const char *begin = from->line.bytes + from->line.start;
    const char *last = memrchr(begin + from->line.used - n, '\n', (size_t)n);
    if (last)
        lines_pass(self, from, (size_t)(last + 1 - begin));
    if (from->line.used >= LINE_MOST)
        lines_pass(self, from, from->line.used);
    return true;
}

static void sink_write(io *self, sink *to)
{
    size_t count = to->waiting.used;

    if (!to->is_file && count > PIPE_BUF)
        count = PIPE_BUF;
    ssize_t n = write(to->fd, to->waiting.bytes + to->waiting.start, count);
    if (n >= 0) {
        buffer_drop(&to->waiting, (size_t)n);
        return;
    }
    if (errno == EAGAIN || errno == EINTR)
        return;
    if (errno != EPIPE)
        complain(1, "the ranks' output cannot be written: %s", strerror(errno));
    to->is_dead = true;
    to->waiting.used = 0;
    for (uint32_t i = 0; i < self->stream_count; i++) /* as in a shell: who writes to a closed pipe gets SIGPIPE */
        if (self->streams[i].to == to && self->streams[i].fd >= 0)
            stream_end(self, &self->streams[i]);
}

static void stdin_read_some(io *self)
{
    char bytes[READ_MOST];
    ssize_t n = read(0, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || buffer_add(&self->in_waiting, bytes, (size_t)n)) {
        self->in_has_ended = true;
        fd_close(&self->in);
    }
}

static void stdin_write_some(io *self, short events)
{
    if (events & (POLLERR | POLLNVAL)) { /* the reader is gone */
        fd_close(&self->in);
        return;
    }
    if (!self->in_waiting.used)
        return;
    ssize_t n = write(self->in, self->in_waiting.bytes + self->in_waiting.start, self->in_waiting.used);
    if (n > 0)
        buffer_drop(&self->in_waiting, (size_t)n);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        fd_close(&self->in);
}

void io_turn(io *self, const struct pollfd *set, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!set[i].revents)
            continue;
        uint32_t index = self->map[i].index;
        if (self->map[i].kind == 'o')
            sink_write(self, &self->sinks[index]);
        else if (self->map[i].kind == 's' && self->streams[index].fd >= 0)
            stream_read(self, &self->streams[index]);
        else if (self->map[i].kind == 'r')
            stdin_read_some(self);
        else if (self->map[i].kind == 'w' && self->in >= 0)
            stdin_write_some(self, set[i].revents);
    }
}

bool io_is_drained(const io *self)
{
    for (uint32_t i = 0; i < self->stream_count; i++)
        if (self->streams[i].fd >= 0)
            return false;
    return (self->sinks[0].is_dead || !self->sinks[0].waiting.used) && (self->sinks[1].is_dead || !self->sinks[1].waiting.used);
}

void io_give_up(io *self)
{
    for (uint32_t i = 0; i < self->stream_count; i++) {
        /* a daemon that writes for ever must not keep us: what fits a pipe, and no more */
        for (int turns = 0; self->streams[i].fd >= 0 && turns < 32 && stream_read(self, &self->streams[i]); turns++)
            ;
        if (self->streams[i].fd >= 0)
            stream_end(self, &self->streams[i]);
    }
}

void io_drop(io *self)
{
    self->sinks[0].is_dead = self->sinks[1].is_dead = true;
}

void io_close(io *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; i < self->stream_count; i++) {
        fd_close(&self->streams[i].fd);
        free(self->streams[i].line.bytes);
    }
    fd_close(&self->in);
    fd_close(&self->null);
    free(self->sinks[0].waiting.bytes);
    free(self->sinks[1].waiting.bytes);
    free(self->in_waiting.bytes);
    free(self->streams);
    free(self->map);
    free(self);
}
