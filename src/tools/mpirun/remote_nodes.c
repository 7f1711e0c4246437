/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_nodes: see remote_nodes.h. children.c handles connections, remote_frames.c the frames of each node's daemon.
 */
#include "tools/mpirun/remote_nodes_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "launch/modex_cache.h"
#include "tools/mpirun/contact.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/job_desc.h"
#include "tools/mpirun/report.h"

void remote_node_over(remote_nodes *self, remote_node *one)
{
    for (remote_node *at = one; at <= one + one->below; at++) {
        self->job->live -= at->live;
        at->live = 0;
        at->is_ready = false;
        at->is_over = true;
        pmix_channel_close(&at->channel);
    }
}

void remote_node_lost(remote_nodes *self, remote_node *one, const char *why)
{
    job *job = self->job;
    uint32_t ranks = 0, below = 0;
    char with[80] = "";

    for (remote_node *at = one; at <= one + one->below; at++) {
        ranks += at->is_over ? 0 : job->map.nodes[at->node].count;
        below += at != one && !at->is_over;
    }
    if (one->child_daemon->node == one->node)
        child_kill(one->child_daemon);
    remote_node_over(self, one);
    if (below)
        snprintf(with, sizeof(with), " and on the %u host%s below it", below, below == 1 ? "" : "s");
    if (self->srun_launch.is_used && job->phase == JOB_LAUNCHES)
        return; /* srun reports why: the end of one daemon often follows from another's */
    if (job->phase == JOB_RUNS || (!self->has_lost && !one->has_reported_signal))
        report(1, "host %s is lost: %s; %u %s of this job ran there%s%s", name_of(self, one), why, ranks,
                 ranks == 1 ? "rank" : "ranks", with, job->phase == JOB_RUNS && job->live ? "; the others are ended" : "");
    self->has_lost = true;
    self->callbacks.failed(job, 1);
}

void remote_node_failed(remote_nodes *self, remote_node *one, const char *why, const char *output)
{
    if (one->child_daemon->node == one->node)
        child_kill(one->child_daemon);
    if (self->job->phase == JOB_LAUNCHES && !self->job->code)
        report(1, "cannot start ranks on host %s: %s%s%s", name_of(self, one), why, *output ? ": " : "", output);
    remote_node_over(self, one);
    self->callbacks.failed(self->job, 1);
}

/* Callbacks of children. */
static void on_child_lost(void *owner, child_daemon *child_daemon, const char *why)
{
    remote_node_lost(owner, remote_node_of(owner, child_daemon->node), why);
}

static void on_child_failed(void *owner, child_daemon *child_daemon, const char *why)
{
    remote_node_failed(owner, remote_node_of(owner, child_daemon->node), why, agent_output(&child_daemon->agent));
}

static void on_child_connected(void *owner, child_daemon *child_daemon)
{
    remote_nodes *self = owner;
    pack body = {0};

    job_desc_pack(self->job->opts, &self->job->map, self->job->name, self->job->host, &body);
    pack_send(&body, &child_daemon->conn, CTRL_START);
}

/* Callbacks of modex_head: send to a node, or pass to this machine's own. */
static void modex_request_send(void *owner, uint32_t node, uint32_t rank)
{
    remote_nodes *self = owner;
    remote_node *one = remote_node_of(self, node);
    pack body = {0};

    if (!one) {
        modex_node_request(&self->job->node.modex_node, rank);
        return;
    }
    if (!is_open(one)) {
        modex_head_data(&self->modex_head, rank, WEFT_MODEX_FAILED, NULL, 0);
        return;
    }
    pack_u32(&body, rank);
    pack_send(&body, &one->conn, CTRL_MODEX_REQ);
}

static void modex_data_send(void *owner, uint32_t node, uint32_t rank, uint32_t state, const void *data, size_t bytes)
{
    remote_nodes *self = owner;
    remote_node *one = remote_node_of(self, node);
    pack body = {0};

    if (!one) {
        modex_node_fill(&self->job->node.modex_node, rank, state, data, bytes);
        return;
    }
    pack_u32(&body, rank);
    pack_u32(&body, state);
    pack_bytes(&body, data, bytes);
    pack_send(&body, &one->conn, CTRL_MODEX_DATA);
}

static void fence_release_send(void *owner, uint32_t node, uint64_t number)
{
    remote_nodes *self = owner;
    remote_node *one = remote_node_of(self, node);
    pack body = {0};

    if (!one) {
        modex_node_fenced(&self->job->node.modex_node, number);
        return;
    }
    pack_u64(&body, number);
    pack_send(&body, &one->conn, CTRL_FENCE);
}

static void on_child_frame(void *owner, child_daemon *child_daemon, const ctrl_frame *frame)
{
    remote_nodes *self = owner;
    uint32_t towards = tree_child_towards(&self->tree, frame->node);

    if (towards >= self->children.count || &self->children.items[towards] != child_daemon) {
        child_daemon->conn.error = "it has sent a frame of a host that is not below it";
        return;
    }
    remote_node *one = remote_node_of(self, frame->node);
    if (!one->is_over) /* not given up */
        remote_node_handle(self, one, frame);
}

/* Creates the remote nodes in tree order, and the children among them. */
static void remote_nodes_make(remote_nodes *self)
{
    const map *map = &self->job->map;
    uint32_t head = 0;

    while (head < map->node_count && !map->nodes[head].is_here)
        head++;
    self->tree = tree_of_head(map, head, self->job->opts->fanout);
    for (uint32_t i = 0; i < tree_children(&self->tree); i++) {
        uint32_t node = tree_child(&self->tree, i);
        children_add(&self->children, node, map->nodes[node].name);
    }
    for (uint32_t i = 0; i < map->node_count; i++) {
        if (i == head)
            continue;
        child_daemon *child_daemon = &self->children.items[tree_child_towards(&self->tree, i)];
        self->items[self->count++] = (remote_node){.node = i, .below = tree_of_node(&self->tree, i).count, .child_daemon = child_daemon,
                                               .conn = {.via = &child_daemon->conn, .node = i, .fd = -1}};
    }
}

int remote_nodes_open(job *job, const remote_nodes_callbacks *callbacks, remote_nodes **result)
{
    remote_nodes *self = *result = calloc(1, sizeof(*self));
    modex_head_callbacks up = {.request = modex_request_send, .data = modex_data_send, .fenced = fence_release_send, .owner = self};
    children_callbacks in = {.connected = on_child_connected, .frame = on_child_frame, .lost = on_child_lost,
                             .failed = on_child_failed, .warns = true, .owner = self};
    unsigned char secret[CTRL_SECRET_BYTES];

    if (!self)
        return report(1, "out of memory");
    self->job = job;
    self->callbacks = *callbacks;
    self->srun_launch.agent.out = -1;
    job->opts->fanout = fanout_read();
    if (job->opts->is_by_srun) /* srun has its own launch tree */
        job->opts->fanout = job->map.node_count;
    self->items = calloc(job->map.node_count, sizeof(*self->items));
    bool is_failed = ctrl_secret_make(secret) || children_open(&self->children, secret, job->map.node_count, &job->guard, &in);
    explicit_bzero(secret, sizeof(secret));
    if (is_failed || !self->items || modex_head_open(&self->modex_head, &job->map, &up))
        return report(1, "cannot listen for daemons of other hosts: %s", strerror(errno));
    remote_nodes_make(self);
    self->deadline_ns = weft_clock_ns() + contact_timeout_ns();
    return job->opts->is_by_srun ? srun_launch_start(&self->srun_launch, job, callbacks->failed, self->children.acceptor.listener,
                                                     self->children.secret)
                                 : children_start(&self->children, job->opts->agent);
}

uint32_t remote_nodes_max(const remote_nodes *self)
{
    return 1 + children_max(&self->children);
}

uint32_t remote_nodes_pollfds(remote_nodes *self, struct pollfd *set)
{
    set[0] = (struct pollfd){.fd = self->srun_launch.agent.out, .events = POLLIN};
    return 1 + children_pollfds(&self->children, set + 1);
}

/* Sends credit for output that was passed on, and CTRL_CLOSED. */
static void output_credit(remote_nodes *self, remote_node *one)
{
    for (int which = 1; which <= 2; which++) {
        pack body = {0};
        if (io_is_read(self->job->io, which) || one->has_sent_closed[which - 1])
            continue;
        one->has_sent_closed[which - 1] = true;
        pack_u32(&body, (uint32_t)which);
        pack_send(&body, &one->conn, CTRL_CLOSED);
    }
    if (one->uncredited && io_has_room(self->job->io)) {
        pack body = {0};
        pack_u32(&body, (uint32_t)one->uncredited);
        pack_send(&body, &one->conn, CTRL_CREDIT);
        one->uncredited = 0;
    }
}

void remote_nodes_progress(remote_nodes *self, const struct pollfd *set, uint32_t count)
{
    if (count && set[0].revents)
        srun_launch_read(&self->srun_launch);
    children_progress(&self->children, set + 1, count ? count - 1 : 0);
    for (uint32_t i = 0; i < self->count; i++)
        if (is_open(&self->items[i]) && self->items[i].is_ready)
            output_credit(self, &self->items[i]);
}

bool remote_nodes_reaped(remote_nodes *self, pid_t pid, int status)
{
    return srun_launch_reaped(&self->srun_launch, pid, status, remote_nodes_are_ready(self), self->has_lost) ||
           children_reaped(&self->children, pid, status);
}

static void remote_node_timed_out(remote_nodes *self, remote_node *one)
{
    pack body = {0};
    bool is_direct = one->child_daemon->node == one->node;

    if (!is_direct) {
        pack_u32(&body, one->node);
        pack_send(&body, &remote_node_of(self, tree_parent(&self->tree, one->node))->conn, CTRL_GIVE_UP);
    }
    remote_node_failed(self, one, "its daemon has not connected in time (WEFT_START_TIMEOUT_S)",
                       is_direct ? agent_output(&one->child_daemon->agent) : "");
}

static bool remote_nodes_all_over(const remote_nodes *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (!self->items[i].is_over)
            return false;
    return true;
}

uint64_t remote_nodes_deadlines(remote_nodes *self)
{
    uint64_t now = weft_clock_ns(), next = self->job->phase == JOB_LAUNCHES ? self->deadline_ns : 0;

    if (next && now >= next && self->srun_launch.is_used)
        srun_launch_fail(&self->srun_launch, "not all daemons have connected in time (WEFT_START_TIMEOUT_S). ");
    for (uint32_t i = 0; next && now >= next && i < self->count; i++)
        if (!self->items[i].is_ready && !self->items[i].is_over)
            remote_node_timed_out(self, &self->items[i]);
    next = weft_clock_earlier(next, children_deadlines(&self->children));
    return remote_nodes_all_over(self) ? weft_clock_earlier(next, srun_launch_finish(&self->srun_launch)) : next;
}

bool remote_nodes_are_ready(const remote_nodes *self)
{
    for (uint32_t i = 0; i < self->count; i++)
        if (!self->items[i].is_ready)
            return false;
    return true;
}

static void send_all(remote_nodes *self, uint32_t kind, const void *body, size_t bytes)
{
    for (uint32_t i = 0; i < self->count; i++)
        ctrl_conn_send(&self->items[i].conn, kind, body, bytes);
}

void remote_nodes_go(remote_nodes *self)
{
    self->deadline_ns = 0;
    for (uint32_t i = 0; i < self->count; i++)
        self->job->live += self->items[i].live = self->job->map.nodes[self->items[i].node].count;
    send_all(self, CTRL_GO, NULL, 0);
}

void remote_nodes_signal(remote_nodes *self, int sig)
{
    uint32_t value = htole32((uint32_t)sig);

    send_all(self, CTRL_SIGNAL, &value, sizeof(value));
}

void remote_nodes_death(remote_nodes *self, uint32_t rank)
{
    uint32_t value = htole32(rank);

    send_all(self, CTRL_DEATH, &value, sizeof(value));
}

void remote_nodes_send(remote_nodes *self, uint32_t kind)
{
    send_all(self, kind, NULL, 0);
}

void remote_nodes_drain(remote_nodes *self, bool was_ended, bool has_failed)
{
    for (uint32_t i = 0; i < self->count; i++) {
        remote_node *one = &self->items[i];
        pack body = {0};
        if (one->child_daemon->node == one->node && !one->child_daemon->is_connected && !one->is_over) {
            child_cancel(one->child_daemon);
            remote_node_over(self, one);
        }
        if (one->is_draining || !is_open(one))
            continue;
        one->is_draining = true;
        pack_u32(&body, was_ended);
        pack_u32(&body, has_failed);
        pack_send(&body, &one->conn, CTRL_DRAIN);
    }
}

/* Backwards, so that the node named in the message is not one that waits for a node below it. */
void remote_nodes_give_up(remote_nodes *self)
{
    for (uint32_t i = self->count; i-- > 0;)
        if (!self->items[i].is_over)
            remote_node_lost(self, &self->items[i], "its daemon does not answer");
}

bool remote_nodes_are_over(const remote_nodes *self)
{
    return remote_nodes_all_over(self) && children_are_over(&self->children) && !self->srun_launch.agent.pid;
}

void remote_nodes_in(remote_nodes *self, uint32_t node, const char *bytes, size_t count)
{
    remote_node *one = remote_node_of(self, node);

    if (one)
        ctrl_conn_send(&one->conn, CTRL_IN, bytes, count);
}

void remote_nodes_modex_request(remote_nodes *self, uint32_t rank)
{
    modex_head_request(&self->modex_head, self->job->node.index, rank);
}

void remote_nodes_modex_data(remote_nodes *self, uint32_t rank, uint32_t state, const void *data, uint32_t bytes)
{
    modex_head_data(&self->modex_head, rank, state, data, bytes);
}

void remote_nodes_fence(remote_nodes *self, uint64_t number)
{
    modex_head_fence(&self->modex_head, self->job->node.index, number);
}

void remote_nodes_pmix_msg(remote_nodes *self, uint32_t node, const pmix_msg *what)
{
    remote_node *one = remote_node_of(self, node);

    if (!one || !is_open(one)) /* no longer connected */
        refbuf_release(what->body);
    else if (pmix_channel_queue(&one->channel, what))
        one->child_daemon->conn.error = "out of memory";
    else
        pmix_channel_flush(&one->channel, &one->conn);
}

void remote_nodes_close(remote_nodes *self)
{
    if (!self)
        return;
    for (uint32_t i = 0; i < self->count; i++)
        pmix_channel_close(&self->items[i].channel);
    srun_launch_close(&self->srun_launch);
    children_close(&self->children);
    modex_head_close(&self->modex_head);
    free(self->items);
    free(self);
}
