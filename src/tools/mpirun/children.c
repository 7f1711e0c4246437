/* SPDX-License-Identifier: BSD-3-Clause
 *
 * children: see children.h. Agent, daemon and connection of a child may end at any time, in any order; the owner gets one callback.
 */
#include "tools/mpirun/children.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tools/mpirun/contact.h"
#include "tools/mpirun/options.h"
#include "tools/mpirun/report.h"

#define AGENT_END_LIMIT_NS 3000000000u /* from the end of its daemon */

static child_daemon *child_of(children *self, uint32_t node)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (self->items[i].node == node)
            return &self->items[i];
    return NULL;
}

static void child_end(child_daemon *one)
{
    one->is_over = true;
    one->over_ns = weft_clock_ns() + AGENT_END_LIMIT_NS;
    ctrl_conn_close(&one->conn);
}

void child_detach(child_daemon *one)
{
    if (!one->is_over)
        child_end(one);
}

void child_kill(child_daemon *one)
{
    if (one->is_over)
        return;
    child_end(one);
    agent_kill(&one->agent, SIGKILL);
}

void child_cancel(child_daemon *one)
{
    if (one->is_over || one->is_connected)
        return;
    child_end(one);
    agent_kill(&one->agent, SIGTERM);
}

/* Callbacks of acceptor. */
static bool node_is_expected(void *owner, uint32_t node)
{
    const child_daemon *one = child_of(owner, node);

    return one && !one->is_connected && !one->is_over;
}

static void node_has_other_release(void *owner, uint32_t node, const char *why)
{
    children *self = owner;

    self->up.failed(self->up.owner, child_of(self, node), why);
}

static void node_connected(void *owner, uint32_t node, int fd, const ctrl_hello *hello, const ctrl_answer *answer)
{
    children *self = owner;
    child_daemon *one = child_of(self, node);

    ctrl_conn_open(&one->conn, fd, true, self->secret, hello, answer);
    one->is_connected = true;
    self->up.connected(self->up.owner, one);
}

int children_open(children *self, const unsigned char *secret, uint32_t capacity, guard *guard, const children_callbacks *up)
{
    acceptor_callbacks in = {.is_expected = node_is_expected, .other_release = node_has_other_release, .connected = node_connected,
                             .owner = self};

    *self = (children){.guard = guard, .up = *up};
    memcpy(self->secret, secret, sizeof(self->secret));
    self->items = calloc(capacity, sizeof(*self->items));
    if (!self->items)
        errno = ENOMEM;
    return acceptor_open(&self->acceptor, self->secret, &in) || !self->items ? -1 : 0;
}

child_daemon *children_add(children *self, uint32_t node, const char *host)
{
    child_daemon *one = &self->items[self->count++];

    *one = (child_daemon){.node = node, .host = host, .conn.fd = -1, .agent.out = -1};
    return one;
}

int children_start(children *self, const char *agent_command)
{
    char line[4096], command[4200];
    int rc = 0;

    if (daemon_command(command, sizeof(command)))
        return report(1, "cannot determine the path of mpirun: %s", strerror(errno));
    self->is_ssh = !agent_command || !*agent_command;
    for (uint32_t i = 0; i < self->count && !rc; i++) {
        child_daemon *one = &self->items[i];
        rc = contact_write(self->acceptor.listener, self->secret, one->node, line, sizeof(line));
        if (rc)
            rc = report(1, "this machine has no network address: %s", strerror(errno));
        else if (agent_start(&one->agent, self->is_ssh ? AGENT_DEFAULT : agent_command, one->host, command, line, self->guard))
            rc = report(1, "cannot start the agent for host %s: %s", one->host, strerror(errno));
    }
    explicit_bzero(line, sizeof(line));
    return rc;
}

#define NO_CONNECT_NS 3000000000u

static void child_progress(children *self, child_daemon *one)
{
    ctrl_frame frame;

    ctrl_conn_flush(&one->conn);
    ctrl_conn_read(&one->conn);
    while (!one->is_over && ctrl_conn_next(&one->conn, &frame))
        self->up.frame(self->up.owner, one, &frame);
    if (!one->is_over && one->conn.error)
        self->up.lost(self->up.owner, one, one->conn.error);
}

/* Closes the listener once no daemon is awaited. */
static void listener_check(children *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (!self->items[i].is_connected && !self->items[i].is_over)
            return;
    if (self->count)
        acceptor_close(&self->acceptor);
}

uint32_t children_max(const children *self)
{
    return ACCEPTOR_POLLFDS + 2 * self->count;
}

/* Order: the acceptor's entries, then connection and agent of each child; absent ones are -1. */
uint32_t children_pollfds(const children *self, struct pollfd *set)
{
    uint32_t at = ACCEPTOR_POLLFDS;

    acceptor_pollfds(&self->acceptor, set);
    for (uint32_t i = 0; i < self->count; i++) {
        short out = self->items[i].conn.out.used ? POLLOUT : 0;
        set[at++] = (struct pollfd){.fd = self->items[i].conn.fd, .events = (short)(POLLIN | out)};
        set[at++] = (struct pollfd){.fd = self->items[i].agent.out, .events = POLLIN};
    }
    return at;
}

void children_progress(children *self, const struct pollfd *set, uint32_t count)
{
    uint32_t at = ACCEPTOR_POLLFDS;

    for (uint32_t i = 0; i < self->count && at < count; i++, at += 2) {
        if (set[at].revents && self->items[i].conn.fd >= 0)
            child_progress(self, &self->items[i]);
        if (set[at + 1].revents)
            agent_read(&self->items[i].agent);
    }
    if (count)
        acceptor_progress(&self->acceptor, set);
    listener_check(self);
}

bool children_reaped(children *self, pid_t pid, int status)
{
    for (uint32_t i = 0; i < self->count; i++) {
        child_daemon *one = &self->items[i];
        char why[400];
        if (one->agent.pid != pid)
            continue;
        agent_ended(&one->agent, self->guard);
        if (WIFSIGNALED(status))
            snprintf(why, sizeof(why), "its agent was killed by signal %d before the daemon connected", WTERMSIG(status));
        else
            snprintf(why, sizeof(why), "its agent ended with exit code %d", WEXITSTATUS(status));
        if (self->is_ssh && WIFEXITED(status) && WEXITSTATUS(status) == 255) /* 255: ssh itself failed */
            snprintf(why + strlen(why), sizeof(why) - strlen(why), " (this must work: ssh -o BatchMode=yes %s true)", one->host);
        if (!one->is_connected && !one->is_over && status)
            self->up.failed(self->up.owner, one, why);
        else if (!one->is_connected && !one->is_over) /* exit code 0: the daemon may run detached */
            one->warn_ns = weft_clock_ns() + NO_CONNECT_NS;
        return true;
    }
    return false;
}

/* Warns once that an agent exited with 0 and no daemon has connected. Returns the time of the warning, or 0. */
static uint64_t no_connect_deadline(const children *self, child_daemon *one, uint64_t now)
{
    if (one->is_connected || one->is_over || !self->up.warns)
        one->warn_ns = 0;
    if (one->warn_ns && now >= one->warn_ns) {
        const char *agent_command = agent_output(&one->agent);
        report(0,
            "host %s: its agent ended with exit code 0, and its daemon has not connected; mpirun waits for it (WEFT_START_TIMEOUT_S)%s%s",
            one->host, *agent_command ? ": " : "", agent_command);
        one->warn_ns = 0;
    }
    return one->warn_ns;
}

uint64_t children_deadlines(children *self)
{
    uint64_t now = weft_clock_ns(), next = acceptor_deadlines(&self->acceptor);

    for (uint32_t i = 0; i < self->count; i++) {
        child_daemon *one = &self->items[i];
        next = weft_clock_earlier(next, no_connect_deadline(self, one, now));
        if (!one->over_ns || !one->agent.pid)
            continue;
        if (now >= one->over_ns)
            agent_kill(&one->agent, SIGKILL);
        uint64_t again = now >= one->over_ns ? now + 100000000u : one->over_ns;
        if (!next || again < next)
            next = again;
    }
    return next;
}

bool children_are_over(const children *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (!self->items[i].is_over || self->items[i].agent.pid)
            return false;
    return true;
}

void children_close(children *self)
{
    for (uint32_t i = 0; i < self->count; i++) {
        ctrl_conn_close(&self->items[i].conn);
        agent_kill(&self->items[i].agent, SIGKILL);
        agent_close(&self->items[i].agent);
    }
    acceptor_close(&self->acceptor);
    explicit_bzero(self->secret, sizeof(self->secret));
    free(self->items);
    self->items = NULL;
    self->count = 0;
}
