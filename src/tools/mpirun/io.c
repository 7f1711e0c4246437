/* SPDX-License-Identifier: BSD-3-Clause
 *
 * io: see io.h. Each rank's output comes through its own pipe, is cut into lines and waits in a bounded buffer (sink). When a slow reader
 * lets that buffer fill up, the pipes are not read and ranks block in write(2).
 * Descriptors 0, 1 and 2 are shared with the shell and never made non-blocking: a pipe that polls writable takes PIPE_BUF bytes, and a
 * signal interrupts a write to a stopped terminal. Inherited by ranks, not forwarded: everything with one rank; a terminal, so that
 * programs detect it and write by lines; standard input that is no terminal.
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

#include "tools/mpirun/buffer.h"
#include "tools/mpirun/report.h"

#define SINK_MAX ((size_t)256 << 10) /* bytes waiting above which ranks' pipes are not read */
#define LINE_LENGTH_MAX ((size_t)1 << 20)   /* a longer line is passed on in fragments */
#define READ_MAX ((size_t)64 << 10)

typedef struct sink {
    int fd;
    bool is_closed, is_file;
    buffer queue;
} sink;

typedef struct stream {
    int fd; /* -1: end of file */
    uint32_t rank;
    sink *to;
    bool is_inside; /* the beginning of the current line was passed on */
    buffer line;
} stream;

struct io {
    const options *opts;
    uint32_t ranks;        /* on this machine */
    io_remote remote;
    bool is_forwarded;                                       /* a daemon's: output goes to remote.out */
    struct { size_t in_flight; bool is_closed; } *remote_in; /* [remote.nodes] bytes of input sent and not consumed; no more is read */
    bool is_direct[2];                                       /* stdout, stderr: inherited by ranks */
    bool stdin_is_direct;
    int null, child[3];                               /* descriptors of the rank being started; -1: inherits mpirun's */
    struct reader { int fd; buffer queue; } *readers; /* [reader_count] pipes to local ranks that read stdin; fd -1: closed */
    uint32_t reader_count;
    bool in_has_ended, in_has_begun;
    sink sinks[2];
    stream *streams;       /* [2 * ranks], in the order of opening */
    uint32_t stream_count;
    struct rlimit limit;   /* RLIMIT_NOFILE as inherited, for the ranks */
    struct { char kind; uint32_t index; } *map; /* meaning of each entry of the poll set */
};

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* False for a terminal with "tostop": it would stop ranks that write, as they are in background process groups. */
static bool terminal_takes_all(int fd)
{
    struct termios term;

    return tcgetattr(fd, &term) == 0 && !(term.c_lflag & TOSTOP);
}

static int descriptors_raise(io *self, bool is_tagged)
{
    uint32_t ranks = self->ranks;
    struct rlimit want;
    rlim_t spare = 120, min = 40; /* descriptors of mpirun, the segment and a PMIx server; without the latter */

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
    if (is_tagged && need - spare + min <= want.rlim_cur)
        return 0; /* a shortage is reported where it occurs */
    if (is_tagged)
        return report(1, "the output of %u ranks needs %lu descriptors, the limit is %lu: raise ulimit -n", ranks,
                        (unsigned long)(need - spare + min), (unsigned long)want.rlim_cur);
    self->is_direct[0] = true;
    return 0;
}

int io_open(const options *opts, uint32_t ranks, const io_remote *remote, io **result)
{
    io *self = calloc(1, sizeof(*self));

    *result = self;
    if (!self)
        return report(1, "out of memory");
    self->opts = opts;
    self->ranks = ranks;
    self->remote = remote ? *remote : (io_remote){0};
    self->is_forwarded = self->remote.out;
    self->child[0] = self->child[1] = self->child[2] = -1;
    self->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    self->streams = calloc(2 * ranks + 1, sizeof(*self->streams));
    self->readers = calloc(ranks + 1, sizeof(*self->readers));
    self->remote_in = calloc(self->remote.nodes + 1, sizeof(*self->remote_in));
    self->map = calloc(io_max(self), sizeof(*self->map));
    if (self->null < 0 || !self->streams || !self->map || !self->readers || !self->remote_in)
        return report(1, "out of memory or descriptors: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        struct stat stat;
        bool is_terminal = isatty(i + 1);
        self->sinks[i] = (sink){.fd = i + 1, .is_file = fstat(i + 1, &stat) == 0 && S_ISREG(stat.st_mode)};
        if (self->is_forwarded)
            self->sinks[i].fd = -1;
        self->is_direct[i] = !self->is_forwarded && !opts->is_tagged && (opts->ranks == 1 || (is_terminal && terminal_takes_all(i + 1)));
    }
    self->stdin_is_direct = !isatty(0) && !self->is_forwarded && (opts->stdin_to != STDIN_ALL || opts->ranks == 1);
    if (opts->output)
        return 0;
    return descriptors_raise(self, opts->is_tagged || self->is_forwarded);
}

/* Creates missing directories, as Open MPI does. */
static void dirs_make(char *path)
{
    for (char *at = path; *at && (at = strchr(at + 1, '/'));) {
        *at = '\0';
        mkdir(path, 0777); /* errors show when the file is opened */
        *at = '/';
    }
}

static int file_make(const char *prefix, uint32_t rank, const char *suffix)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s.%u.%s", prefix, rank, suffix);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ENOENT) {
        dirs_make(path);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    if (fd < 0)
        report(1, "--output-filename: cannot write %s: %s", path, strerror(errno));
    return fd;
}

static int stream_open(io *self, uint32_t rank, int which)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return report(-1, "no pipe for the output of rank %u: %s (ulimit -n)", rank, strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    self->streams[self->stream_count++] = (stream){.fd = ends[0], .rank = rank, .to = &self->sinks[which]};
    self->child[1 + which] = ends[1];
    return 0;
}

static int stdin_open(io *self, uint32_t rank)
{
    int ends[2];

    if (self->opts->stdin_to != (int)rank && self->opts->stdin_to != STDIN_ALL) {
        self->child[0] = self->null;
        return 0;
    }
    self->child[0] = -1;
    if (self->stdin_is_direct)
        return 0;
    if (pipe2(ends, O_CLOEXEC))
        return report(-1, "no pipe for the input of rank %u: %s", rank, strerror(errno));
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    self->child[0] = ends[0];
    self->readers[self->reader_count++].fd = ends[1];
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

uint32_t io_max(const io *self)
{
    return 3 * self->ranks + 5;
}

static uint32_t pollfd_add(io *self, struct pollfd *set, uint32_t at, int fd, short events, char kind, uint32_t index)
{
    set[at] = (struct pollfd){.fd = fd, .events = events};
    self->map[at].kind = kind;
    self->map[at].index = index;
    return at + 1;
}

/* True once all readers have consumed earlier input, and mpirun owns the terminal: reading it from the background would stop mpirun. */
static bool stdin_is_readable(const io *self)
{
    bool is_read = false;

    if (self->is_forwarded || self->in_has_ended || (self->remote.in && !self->in_has_begun))
        return false;
    for (uint32_t i = 0; i < self->reader_count; i++) {
        if (self->readers[i].queue.used)
            return false;
        is_read |= self->readers[i].fd >= 0;
    }
    for (uint32_t n = 0; self->remote.in && n < self->remote.nodes; n++)
        if (!self->remote_in[n].is_closed && self->remote_in[n].in_flight >= READ_MAX)
            return false;
    return (is_read || self->remote.in) && (!isatty(0) || tcgetpgrp(0) == getpgrp());
}

uint32_t io_pollfds(io *self, struct pollfd *set)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < 2; i++)
        if (self->sinks[i].queue.used && !self->sinks[i].is_closed && !self->is_forwarded)
            count = pollfd_add(self, set, count, self->sinks[i].fd, POLLOUT, 'o', i);
    for (uint32_t i = 0; i < self->stream_count; i++)
        if (self->streams[i].fd >= 0 && self->streams[i].to->queue.used < SINK_MAX)
            count = pollfd_add(self, set, count, self->streams[i].fd, POLLIN, 's', i);
    if (stdin_is_readable(self))
        count = pollfd_add(self, set, count, 0, POLLIN, 'r', 0);
    for (uint32_t i = 0; i < self->reader_count; i++)
        if (self->readers[i].fd >= 0)
            count = pollfd_add(self, set, count, self->readers[i].fd, self->readers[i].queue.used ? POLLOUT : 0, 'w', i);
    return count;
}

static void sink_add(sink *to, const char *bytes, size_t count)
{
    if (!to->is_closed && buffer_add(&to->queue, bytes, count))
        to->is_closed = true;
}

static void lines_forward(const io *self, stream *from, size_t count)
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
        lines_forward(self, from, from->line.used);
    if (from->is_inside) /* the next rank's tag must start a line */
        sink_add(from->to, "\n", 1);
    fd_close(&from->fd);
    free(from->line.bytes);
    from->line = (buffer){0};
}

/* Reads once. False if nothing is available. */
static bool stream_read(const io *self, stream *from)
{
    char bytes[READ_MAX];
    ssize_t n = read(from->fd, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0 || from->to->is_closed || buffer_add(&from->line, bytes, (size_t)n)) {
        stream_end(self, from);
        return false;
    }
    const char *begin = from->line.bytes + from->line.start;
    const char *last = memrchr(begin + from->line.used - n, '\n', (size_t)n);
    if (last)
        lines_forward(self, from, (size_t)(last + 1 - begin));
    if (from->line.used >= LINE_LENGTH_MAX)
        lines_forward(self, from, from->line.used);
    return true;
}

/* Closes the pipes that feed the sink, so that writers get SIGPIPE, as in a shell. */
static void sink_end(io *self, sink *to)
{
    to->is_closed = true;
    to->queue.used = 0;
    for (uint32_t i = 0; i < self->stream_count; i++)
        if (self->streams[i].to == to && self->streams[i].fd >= 0)
            stream_end(self, &self->streams[i]);
}

static void sink_write(io *self, sink *to)
{
    size_t count = to->queue.used;

    if (!to->is_file && count > PIPE_BUF)
        count = PIPE_BUF;
    ssize_t n = write(to->fd, to->queue.bytes + to->queue.start, count);
    if (n >= 0) {
        buffer_drop(&to->queue, (size_t)n);
        return;
    }
    if (errno == EAGAIN || errno == EINTR)
        return;
    if (errno != EPIPE)
        report(1, "the ranks' output cannot be written: %s", strerror(errno));
    sink_end(self, to);
}

/* Queues input for all local readers; 0 bytes: end of file, which closes readers that have consumed all. */
static void stdin_queue(io *self, const char *bytes, size_t count)
{
    bool has_failed = false;

    for (uint32_t i = 0; i < self->reader_count && count; i++)
        if (self->readers[i].fd >= 0)
            has_failed |= buffer_add(&self->readers[i].queue, bytes, count) != 0;
    self->in_has_ended |= !count || has_failed;
    for (uint32_t i = 0; i < self->reader_count && self->in_has_ended; i++)
        if (!self->readers[i].queue.used)
            fd_close(&self->readers[i].fd);
}

static void stdin_read_some(io *self)
{
    char bytes[READ_MAX];
    ssize_t n = read(0, bytes, sizeof(bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (self->remote.in)
        self->remote.in(self->remote.owner, bytes, n > 0 ? (size_t)n : 0);
    stdin_queue(self, bytes, n > 0 ? (size_t)n : 0);
}

static void reader_close(struct reader *one)
{
    fd_close(&one->fd);
    buffer_free(&one->queue); /* input for a closed reader must not delay the others */
}

static void stdin_write_some(io *self, struct reader *one, short events)
{
    if (events & (POLLERR | POLLNVAL)) { /* the reader has closed */
        reader_close(one);
        return;
    }
    if (!one->queue.used)
        return;
    ssize_t n = write(one->fd, one->queue.bytes + one->queue.start, one->queue.used);
    if (n > 0)
        buffer_drop(&one->queue, (size_t)n);
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || (self->in_has_ended && !one->queue.used))
        reader_close(one);
}

void io_progress(io *self, const struct pollfd *set, uint32_t count)
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
        else if (self->map[i].kind == 'w' && self->readers[index].fd >= 0)
            stdin_write_some(self, &self->readers[index], set[i].revents);
    }
}

void io_flush(io *self)
{
    for (uint32_t i = 0; i < self->stream_count; i++)
        if (self->streams[i].fd >= 0 && self->streams[i].to->queue.used < SINK_MAX)
            stream_read(self, &self->streams[i]);
    for (int i = 0; i < 2 && !self->is_forwarded; i++) {
        struct pollfd set = {.fd = self->sinks[i].fd, .events = POLLOUT};
        while (self->sinks[i].queue.used && !self->sinks[i].is_closed && poll(&set, 1, 0) == 1)
            sink_write(self, &self->sinks[i]);
    }
}

bool io_queue(io *self, const char *text)
{
    if (self->is_forwarded || self->sinks[1].is_closed || !self->sinks[1].queue.used)
        return false;
    sink_add(&self->sinks[1], "mpirun: ", 8);
    sink_add(&self->sinks[1], text, strlen(text));
    sink_add(&self->sinks[1], "\n", 1);
    return !self->sinks[1].is_closed;
}

/* Bytes to pass: the whole lines that fit, or one longer line, or everything if there is no line end. */
static size_t send_count(const buffer *queue, size_t capacity)
{
    const char *at = queue->bytes + queue->start;

    if (queue->used <= capacity)
        return queue->used;
    const char *end = memrchr(at, '\n', capacity);
    if (!end)
        end = memchr(at + capacity, '\n', queue->used - capacity);
    return end ? (size_t)(end + 1 - at) : queue->used;
}

size_t io_send(io *self, size_t capacity)
{
    size_t sent = 0;

    for (int i = 0; i < 2; i++) {
        buffer *queue = &self->sinks[i].queue;
        if (!queue->used || sent >= capacity || self->sinks[i].is_closed)
            continue;
        size_t count = send_count(queue, capacity - sent);
        sent += count;
        self->remote.out(self->remote.owner, i + 1, queue->bytes + queue->start, count);
        buffer_drop(queue, count);
    }
    return sent;
}

void io_add_input(io *self, const char *bytes, size_t count)
{
    stdin_queue(self, bytes, count);
}

size_t io_unread_input(const io *self)
{
    size_t unread = 0;
    bool is_read = false;

    for (uint32_t i = 0; i < self->reader_count; i++) {
        is_read |= self->readers[i].fd >= 0;
        unread = self->readers[i].queue.used > unread ? self->readers[i].queue.used : unread;
    }
    return is_read ? unread : SIZE_MAX;
}

void io_add(io *self, int which, const char *bytes, size_t count)
{
    sink_add(&self->sinks[which - 1], bytes, count);
}

void io_closed(io *self, int which)
{
    if (which == 1 || which == 2)
        sink_end(self, &self->sinks[which - 1]);
}

bool io_is_read(const io *self, int which)
{
    return !self->sinks[which - 1].is_closed;
}

bool io_has_room(const io *self)
{
    return (self->sinks[0].is_closed || self->sinks[0].queue.used < SINK_MAX) &&
           (self->sinks[1].is_closed || self->sinks[1].queue.used < SINK_MAX);
}

void io_remote_begin(io *self)
{
    self->in_has_begun = true;
}

void io_in_acked(io *self, uint32_t node, uint32_t bytes)
{
    bool is_read = false;

    if (node >= self->remote.nodes)
        return;
    self->remote_in[node].in_flight -= bytes < self->remote_in[node].in_flight ? bytes : self->remote_in[node].in_flight;
    self->remote_in[node].is_closed |= bytes == UINT32_MAX;
    if (self->opts->stdin_to != STDIN_ALL) {
        self->in_has_ended |= bytes == UINT32_MAX;
        return;
    }
    for (uint32_t n = 0; n < self->remote.nodes; n++)
        is_read |= !self->remote_in[n].is_closed;
    for (uint32_t i = 0; i < self->reader_count; i++)
        is_read |= self->readers[i].fd >= 0;
    self->in_has_ended |= !is_read;
}

bool io_count_sent(io *self, uint32_t node, size_t bytes)
{
    if (self->remote_in[node].is_closed)
        return false;
    self->remote_in[node].in_flight += bytes;
    return true;
}

bool io_is_drained(const io *self)
{
    for (uint32_t i = 0; i < self->stream_count; i++)
        if (self->streams[i].fd >= 0)
            return false;
    return (self->sinks[0].is_closed || !self->sinks[0].queue.used) && (self->sinks[1].is_closed || !self->sinks[1].queue.used);
}

void io_give_up(io *self)
{
    for (uint32_t i = 0; i < self->stream_count; i++) {
        /* at most a pipe's capacity: a detached process may write for ever */
        for (int turns = 0; self->streams[i].fd >= 0 && turns < 32 && stream_read(self, &self->streams[i]); turns++)
            ;
        if (self->streams[i].fd >= 0)
            stream_end(self, &self->streams[i]);
    }
}

void io_drop(io *self)
{
    self->sinks[0].is_closed = self->sinks[1].is_closed = true;
}

void io_close(io *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; i < self->stream_count; i++) {
        fd_close(&self->streams[i].fd);
        free(self->streams[i].line.bytes);
    }
    for (uint32_t i = 0; self->readers && i < self->reader_count; i++)
        reader_close(&self->readers[i]);
    free(self->readers);
    free(self->remote_in);
    fd_close(&self->null);
    free(self->sinks[0].queue.bytes);
    free(self->sinks[1].queue.bytes);
    free(self->streams);
    free(self->map);
    free(self);
}
