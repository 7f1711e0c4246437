/* SPDX-License-Identifier: BSD-3-Clause
 *
 * relay: see relay.h. It inspects only the node of a frame. Each side may name only nodes behind its own connection.
 */
#include "tools/mpirun/relay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/mpirun/report.h"

static child_daemon *child_towards(relay *self, uint32_t node)
{
    uint32_t towards = self->job ? tree_child_towards(&self->tree, node) : UINT32_MAX;

    return towards == UINT32_MAX ? NULL : &self->children.items[towards];
}

/* Sends a frame to the head on behalf of a child. */
static void send_for_child(relay *self, const child_daemon *one, uint32_t kind, const char *text)
{
    ctrl_conn as = {.via = self->up, .node = one->node};
    pack body = {0};

    pack_text(&body, text);
    pack_send(&body, &as, kind);
}

static void on_child_connected(void *owner, child_daemon *one)
{
    relay *self = owner;

    ctrl_conn_send(&one->conn, CTRL_START, self->job->bytes, self->job->size);
}

static void on_child_frame(void *owner, child_daemon *one, const ctrl_frame *frame)
{
    relay *self = owner;

    if (child_towards(self, frame->node) != one) {
        one->conn.error = "it has sent a frame of a host that is not below it";
        return;
    }
    ctrl_conn_forward(self->up, frame);
    if (frame->kind == CTRL_DONE && frame->node == one->node)
        child_detach(one);
}

static void on_child_lost(void *owner, child_daemon *one, const char *why)
{
    send_for_child(owner, one, CTRL_LOST, why);
    child_kill(one);
}

static void on_child_failed(void *owner, child_daemon *one, const char *why)
{
    const relay *self = owner;
    const char *output = agent_output(&one->agent);
    char text[1024];

    snprintf(text, sizeof(text), "%s (started from host %s)%s%s", why, self->job->map.nodes[self->job->node].name,
             *output ? ": " : "", output);
    send_for_child(owner, one, CTRL_NO_CONNECT, text);
    child_kill(one);
}

int relay_open(relay *self, const job_desc *job, ctrl_conn *up, const unsigned char *secret, guard *guard)
{
    children_callbacks in = {.connected = on_child_connected, .frame = on_child_frame,
                             .lost = on_child_lost, .failed = on_child_failed, .owner = self};
    tree all = tree_of_head(&job->map, job->head, job->opts.fanout), below = tree_of_node(&all, job->node);

    if (!below.count)
        return 0;
    *self = (relay){.job = job, .up = up, .tree = below};
    if (children_open(&self->children, secret, tree_children(&below), guard, &in))
        return report(1, "cannot listen for daemons of other hosts: %s", strerror(errno));
    for (uint32_t i = 0; i < tree_children(&below); i++) {
        uint32_t node = tree_child(&below, i);
        children_add(&self->children, node, job->map.nodes[node].name);
    }
    return children_start(&self->children, job->opts.agent);
}

size_t relay_window(const job_desc *job, size_t window)
{
    tree all = tree_of_head(&job->map, job->head, job->opts.fanout);
    uint32_t first = tree_child(&all, tree_child_towards(&all, job->node));

    window /= tree_of_node(&all, first).count + 1;
    return window ? window : 1;
}

void relay_forward(relay *self, const ctrl_frame *frame)
{
    child_daemon *one = child_towards(self, frame->node);

    if (one) /* a child that is not connected needs no frame */
        ctrl_conn_forward(&one->conn, frame);
}

void relay_give_up(relay *self, uint32_t node)
{
    child_daemon *one = child_towards(self, node);

    if (one && one->node == node)
        child_kill(one);
}

void relay_drain(relay *self)
{
    for (uint32_t i = 0; self->job && i < self->children.count; i++) {
        child_daemon *one = &self->children.items[i];
        if (one->is_over || one->is_connected)
            continue;
        child_cancel(one);
        send_for_child(self, one, CTRL_DONE, NULL);
    }
}

uint32_t relay_max(const relay *self)
{
    return self->job ? children_max(&self->children) : 0;
}

uint32_t relay_pollfds(const relay *self, struct pollfd *set)
{
    return self->job ? children_pollfds(&self->children, set) : 0;
}

void relay_progress(relay *self, const struct pollfd *set, uint32_t count)
{
    if (self->job)
        children_progress(&self->children, set, count);
}

bool relay_reaped(relay *self, pid_t pid, int status)
{
    return self->job && children_reaped(&self->children, pid, status);
}

void relay_deadlines(relay *self)
{
    if (self->job)
        children_deadlines(&self->children);
}

bool relay_is_over(const relay *self)
{
    return !self->job || children_are_over(&self->children);
}

void relay_close(relay *self)
{
    if (self->job)
        children_close(&self->children);
    self->job = NULL;
}
