/* SPDX-License-Identifier: BSD-3-Clause
 *
 * session: see session.h. The leader shares mpirun's memory (CLONE_VM) and descriptors (CLONE_FILES), so it forks ranks with their current
 * environment and pipes, while mpirun waits.
 * The leader makes raw system calls only.
 */
#include "tools/mpirun/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (8u << 20) /* a child may copy long argument lists; pages are allocated on use */
#define LEADER_CODE __attribute__((no_sanitize("address", "thread", "undefined")))

bool session_is_scheduled(void)
{
    char on = '0';
    int fd = open("/proc/sys/kernel/sched_autogroup_enabled", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (read(fd, &on, 1) != 1)
        on = '0';
    close(fd);
    return on != '0';
}

/* CLONE_PARENT: ranks are children of mpirun, which gets their SIGCHLD and the leader's. */
static LEADER_CODE int lead(void *arg)
{
    session *self = arg;
    char order;
    long pid;

    syscall(SYS_setsid);
    syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (syscall(SYS_getppid) != self->parent) /* mpirun died before prctl */
        syscall(SYS_exit_group, 1);
    while (syscall(SYS_read, self->orders[0], &order, 1) == 1) {
        pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (pid == 0)
            self->child(self->arg);
        if (pid < 0)
            pid = -errno;
        if (syscall(SYS_write, self->answers[1], &pid, sizeof(pid)) != sizeof(pid))
            break;
    }
    syscall(SYS_exit_group, 0);
    return 0;
}

static void fds_close(int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

int session_open(session *self)
{
    int error;

    *self = (session){.parent = getpid()};
#ifdef __SANITIZE_THREAD__ /* its runtime takes this clone for a fork, in memory that is shared, and ends mpirun at its next thread */
    errno = ENOTSUP;
    return -1;
#endif
    if (pipe2(self->orders, O_CLOEXEC))
        return -1;
    if (pipe2(self->answers, O_CLOEXEC))
        goto close_orders;
    self->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (self->stack == MAP_FAILED)
        goto close_answers;
    self->leader = clone(lead, (char *)self->stack + STACK_BYTES, CLONE_VM | CLONE_FILES | CLONE_PIDFD | SIGCHLD, self, &self->leader_fd);
    if (self->leader > 0)
        return 0;
    error = errno;
    munmap(self->stack, STACK_BYTES);
    errno = error;
close_answers:
    fds_close(self->answers);
close_orders:
    fds_close(self->orders);
    self->leader = 0;
    return -1;
}

pid_t session_fork(session *self, void (*child)(void *arg), void *arg)
{
    struct pollfd fds[2] = {{.fd = self->answers[0], .events = POLLIN}, {.fd = self->leader_fd, .events = POLLIN}};
    long pid;

    self->child = child;
    self->arg = arg;
    if (write(self->orders[1], "", 1) != 1)
        return -1;
    while (poll(fds, 2, -1) < 0 && errno == EINTR)
        ;
    if (!(fds[0].revents & POLLIN) || read(self->answers[0], &pid, sizeof(pid)) != (ssize_t)sizeof(pid)) {
        errno = ESRCH; /* the leader was killed */
        return -1;
    }
    if (pid < 0)
        errno = (int)-pid;
    return pid < 0 ? -1 : (pid_t)pid;
}

void session_close(session *self)
{
    if (!self->leader)
        return;
    kill(self->leader, SIGKILL);
    while (waitpid(self->leader, NULL, 0) < 0 && errno == EINTR)
        ;
    close(self->leader_fd);
    fds_close(self->orders);
    fds_close(self->answers);
    munmap(self->stack, STACK_BYTES);
    self->leader = 0;
}
