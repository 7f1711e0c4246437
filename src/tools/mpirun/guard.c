/* SPDX-License-Identifier: BSD-3-Clause
 *
 * guard: PR_SET_PDEATHSIG ends a rank when mpirun is killed, but not the children of a wrapper script. The guardian, in its own session,
 * reads a pipe whose only write end mpirun holds. End of file without a 'q' message means that mpirun vanished: it then kills the ranks'
 * process groups and every process with the job's mark in its environment.
 * Invariant: the guardian holds no descriptor but its pipe, so it delays no end of file elsewhere.
 */
#include "tools/mpirun/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct message {
    char kind; /* 'g' group, 'e' empty group, 'd' directory, 'q' quit */
    int32_t group;
    char path[248];
} message;

_Static_assert(sizeof(message) <= 4096, "written in one piece into the pipe");

/* Reads a file of /proc completely; the caller frees. */
static char *proc_read(const char *pid, const char *file, size_t *bytes)
{
    char path[300];
    size_t capacity = 1 << 16;
    char *text = NULL;

    snprintf(path, sizeof(path), "/proc/%s/%s", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *bytes = 0;
    if (fd < 0)
        return NULL;
    for (;;) {
        char *more = realloc(text, capacity);
        if (!more)
            break;
        text = more;
        ssize_t n = read(fd, text + *bytes, capacity - *bytes);
        if (n <= 0)
            break;
        *bytes += (size_t)n;
        if (*bytes == capacity)
            capacity *= 2;
    }
    close(fd);
    return text;
}

#define KERNEL_THREAD 0x200000u /* PF_KTHREAD */

/* In the middle of execve a process has no environment yet: the next look tells. Kernel threads and zombies never have one. */
static bool process_is_in_exec(const char *pid)
{
    size_t bytes;
    char *text = proc_read(pid, "stat", &bytes), *end, state = 'Z';
    unsigned flags = 0;
    bool is_known;

    if (text)
        text[bytes] = 0;
    end = text ? strrchr(text, ')') : NULL;
    is_known = end && sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) == 2;
    free(text);
    return is_known && state != 'Z' && state != 'X' && !(flags & KERNEL_THREAD);
}

enum mark_state { UNMARKED, MARKED, UNSURE };

static enum mark_state process_mark(const char *pid, const char *mark)
{
    size_t bytes, length = strlen(mark);
    char *text = proc_read(pid, "environ", &bytes);
    bool is_readable = text != NULL, found = text && bytes >= length && memmem(text, bytes, mark, length);

    free(text);
    return found ? MARKED : is_readable && !bytes && process_is_in_exec(pid) ? UNSURE : UNMARKED;
}

/* By a descriptor of the process, opened before it is looked at: the number may be another process's by the time it is killed. True: it was
 * marked and is killed, or may have the mark. */
static bool kill_if_marked(pid_t pid, const char *name, const char *mark)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0), error = errno;
    enum mark_state state = process_mark(name, mark);
    bool is_killed = false;

    if (state == MARKED) {
        if (fd >= 0)
            is_killed = syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
        else if (error != ESRCH) /* a kernel before 5.3, or a filter refuses it */
            is_killed = kill(pid, SIGKILL) == 0;
    }
    if (fd >= 0)
        close(fd);
    return is_killed || state == UNSURE;
}

/* One scan. Returns how many processes it killed, and how many may have the mark. */
static int marked_kill(const char *mark)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int found = 0;

    if (!dir)
        return 0;
    while ((entry = readdir(dir))) {
        pid_t pid = (pid_t)atol(entry->d_name);
        if (pid > 1 && pid != getpid() && pid != getppid())
            found += kill_if_marked(pid, entry->d_name, mark);
    }
    closedir(dir);
    return found;
}

static void dir_empty(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    while ((entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (unlinkat(fd, entry->d_name, 0) && errno == EISDIR) {
            dir_empty(fd, entry->d_name);
            unlinkat(fd, entry->d_name, AT_REMOVEDIR);
        }
    }
    closedir(dir);
}

void dir_remove(const char *path)
{
    dir_empty(AT_FDCWD, path);
    rmdir(path);
}

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000};
    nanosleep(&t, NULL);
}

/* Processes may fork during a scan: done when two scans in a row find none. One that never has an environment ends it by the limit. */
void marked_end(const char *mark)
{
    for (int clean = 0, looks = 0; clean < 2 && looks < 200; looks++) {
        clean = marked_kill(mark) ? 0 : clean + 1;
        if (clean < 2)
            sleep_ms(clean ? 5 : 2);
    }
}

static void job_clear(const char *mark, const pid_t *groups, uint32_t count, const char *dir)
{
    for (uint32_t i = 0; i < count; i++)
        kill(-groups[i], SIGKILL);
    marked_end(mark);
    if (*dir)
        dir_remove(dir);
}

/* Records a group. The guardian inherits the list at fork and gets later changes by the pipe. Without memory the group is not recorded:
 * the mark still identifies its processes. */
static void group_add(guard *self, pid_t group)
{
    if (self->group_count == self->group_capacity) {
        pid_t *more = realloc(self->groups, (self->group_capacity + 256) * sizeof(*more));
        if (!more)
            return;
        self->groups = more;
        self->group_capacity += 256;
    }
    self->groups[self->group_count++] = group;
}

static void group_remove(guard *self, pid_t group)
{
    for (uint32_t i = 0; i < self->group_count; i++)
        if (self->groups[i] == group)
            self->groups[i--] = self->groups[--self->group_count];
}

static void guardian_main(int fd, guard *known)
{
    char dir[sizeof(((message *)0)->path)] = "";
    message msg;
    ssize_t n;

    if (known->dir)
        snprintf(dir, sizeof(dir), "%s", known->dir);

    while ((n = read(fd, &msg, sizeof(msg))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof(msg) || msg.kind == 'q')
            _exit(0);
        if (msg.kind == 'd') {
            memcpy(dir, msg.path, sizeof(dir));
            continue;
        }
        if (msg.kind == 'e')
            group_remove(known, msg.group);
        else
            group_add(known, msg.group);
    }
    job_clear(known->mark, known->groups, known->group_count, dir);
    _exit(0);
}

/* In the child: detaches the guardian from everything but the pipe. */
static void guardian_detach(int fd, sigset_t *before)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    /* erase an outer job's mark: a nested mpirun's guardian must survive the clearing of that job */
    for (char **item = environ; item && *item; item++)
        memset(*item, 0, strlen(*item));
    setsid();
    prctl(PR_SET_NAME, "weft-guard");
    prctl(PR_SET_PDEATHSIG, 0);
    for (int s = 1; s < NSIG; s++)
        if (s != SIGCHLD && s != SIGKILL && s != SIGSTOP && s != SIGSEGV && s != SIGBUS && s != SIGABRT)
            sigaction(s, &ignore, NULL);
    sigprocmask(SIG_SETMASK, before, NULL);
    dup2(fd, 3);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    if (syscall(SYS_close_range, 4u, ~0u, 0)) /* Linux before 5.9 */
        for (int i = 4, max = (int)sysconf(_SC_OPEN_MAX); i < max; i++)
            close(i);
    if (chdir("/")) { /* keep no file system busy; / always exists */
    }
}

int guard_start(guard *self)
{
    sigset_t all, before;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        guardian_detach(ends[0], &before);
        guardian_main(3, self);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    if (pid < 0) {
        close(ends[1]);
        return -1;
    }
    self->pid = pid;
    self->fd = ends[1];
    return 0;
}

static void guard_send(guard *self, const message *msg)
{
    /* EPIPE: the guardian is gone; its SIGCHLD leads to guard_restart */
    while (self->pid && write(self->fd, msg, sizeof(*msg)) < 0 && errno == EINTR)
        ;
}

void guard_add_group(guard *self, pid_t group)
{
    message msg = {.kind = 'g', .group = group};

    group_add(self, group);
    guard_send(self, &msg);
}

void guard_remove_group(guard *self, pid_t group)
{
    message msg = {.kind = 'e', .group = group};

    group_remove(self, group);
    guard_send(self, &msg);
}

void guard_add_dir(guard *self)
{
    message msg = {.kind = 'd'};

    if (!self->dir)
        return;
    snprintf(msg.path, sizeof(msg.path), "%s", self->dir);
    guard_send(self, &msg);
}

int guard_restart(guard *self)
{
    close(self->fd);
    self->pid = 0;
    return guard_start(self);
}

void guard_stop(guard *self)
{
    message msg = {.kind = 'q'};

    free(self->groups);
    self->groups = NULL;
    self->group_count = self->group_capacity = 0;
    if (!self->pid)
        return;
    guard_send(self, &msg);
    close(self->fd);
    while (waitpid(self->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    self->pid = 0;
}
