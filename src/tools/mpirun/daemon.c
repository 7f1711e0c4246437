/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon: see daemon.h. It ends its ranks and itself when the connection to its parent (the head or another daemon) closes or the parent's
 * host stops responding. Its guardian does so when the daemon is killed. One loop on one thread.
 */
#include "tools/mpirun/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/mpirun/contact.h"
#include "tools/mpirun/ctrl_conn.h"
#include "tools/mpirun/head_connect.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/job_desc.h"
#include "tools/mpirun/node.h"
#include "tools/mpirun/pmix_srv.h"
#include "tools/mpirun/poll_sparse.h"
#include "tools/mpirun/relay.h"
#include "tools/mpirun/report.h"
#include "tools/mpirun/signals.h"
#include "tools/mpirun/srun_launch.h"
#include "tools/mpirun/wait_report.h"

/* Most bytes of output sent and not credited by the head. It fits the receive buffer of the head's socket (contact.c): otherwise data to
 * a stopped head would stay unacknowledged and TCP_USER_TIMEOUT would end the connection. */
#define WINDOW ((size_t)128 << 10)
#define SIGNAL_REPEAT_NS 3000000000u /* longer than the head's delay between SIGTERM and SIGKILL */
#define LINE_S 60                /* wait for the line with the secret */

typedef struct daemon_state {
    ctrl_conn conn;
    relay relay;
    unsigned char secret[CTRL_SECRET_BYTES]; /* erased once the daemons below were started */
    pmix_channel channel; /* messages of the PMIx and PMI servers */
    job_desc job;
    guard guard;
    node node;
    io *io;
    wait_report *wait_report;    /* wait report of local ranks, if the job has a time limit */
    char host[256];
    size_t window;      /* this daemon's part of WINDOW */
    size_t in_flight;   /* bytes of output sent and not credited by the head */
    size_t input_bytes; /* bytes of input received and not reported as consumed */
    bool is_prepared, is_failed, has_sent_closed;
    uint64_t signaled_ns; /* time of the first terminating signal; 0: none */
} daemon_state;

static daemon_state *daemon_now; /* for report_to, which has no user pointer */

static bool message_send(const char *text)
{
    pack body = {0};

    pack_text(&body, text);
    pack_send(&body, &daemon_now->conn, CTRL_MESSAGE);
    return true;
}

/* Sends pending output, as the window allows, before a frame that follows from it. */
static void output_first(daemon_state *self)
{
    if (!self->io || self->in_flight >= self->window)
        return;
    io_flush(self->io);
    self->in_flight += io_send(self->io, self->window - self->in_flight);
}

/* Sends the PMIx_Abort of a local rank. */
static void abort_send(daemon_state *self)
{
    char text[256];
    int rank, code;
    pack body = {0};

    if (!self->node.pmix || !pmix_srv_aborted(self->node.pmix, &rank, &code, text))
        return;
    output_first(self);
    pack_u32(&body, (uint32_t)rank);
    pack_u32(&body, (uint32_t)code);
    pack_text(&body, text);
    pack_u32(&body, 0);
    pack_send(&body, &self->conn, CTRL_ABORTED);
}

static void rank_ended(void *owner, const rank_end *end)
{
    daemon_state *self = owner;
    pack body = {0};

    abort_send(self); /* the reason comes before the end */
    output_first(self);
    pack_u32(&body, end->rank);
    pack_u32(&body, (uint32_t)end->raw_status);
    pack_u32(&body, end->state);
    pack_u64(&body, (uint64_t)end->pid);
    pack_u32(&body, end->is_refused);
    pack_u32(&body, end->was_in_pmix);
    pack_send(&body, &self->conn, CTRL_ENDED);
}

static void rank_refused(void *owner, uint32_t rank, char what, int error)
{
    daemon_state *self = owner;
    pack body = {0};

    pack_u32(&body, rank);
    pack_u32(&body, (uint32_t)what);
    pack_u32(&body, (uint32_t)error);
    pack_send(&body, &self->conn, CTRL_NOEXEC);
}

static void modex_request_send(void *owner, uint32_t rank)
{
    daemon_state *self = owner;
    pack body = {0};

    pack_u32(&body, rank);
    pack_send(&body, &self->conn, CTRL_MODEX_REQ);
}

static void modex_data_send(void *owner, uint32_t rank, uint32_t state, const void *data, uint32_t bytes)
{
    daemon_state *self = owner;
    pack body = {0};

    pack_u32(&body, rank);
    pack_u32(&body, state);
    pack_bytes(&body, data, bytes);
    pack_send(&body, &self->conn, CTRL_MODEX_DATA);
}

static void fence_send(void *owner, uint64_t number)
{
    daemon_state *self = owner;
    pack body = {0};

    pack_u64(&body, number);
    pack_send(&body, &self->conn, CTRL_FENCE);
}

static void output_send(void *owner, int which, const char *bytes, size_t count)
{
    daemon_state *self = owner;
    pack body = {0};

    pack_u32(&body, (uint32_t)which);
    pack_bytes(&body, bytes, count);
    pack_send(&body, &self->conn, CTRL_OUT);
}

static void pmix_msg_send(daemon_state *self, const pmix_msg *what)
{
    if (pmix_channel_queue(&self->channel, what))
        self->conn.error = "out of memory";
    else
        pmix_channel_flush(&self->channel, &self->conn);
}

static void on_pmi_msg(void *owner, const pmix_msg *what)
{
    pmix_msg_send(owner, what);
}

static void on_pmi_aborted(void *owner, uint32_t rank, int code)
{
    daemon_state *self = owner;
    pack body = {0};

    output_first(self);
    pack_u32(&body, rank);
    pack_u32(&body, (uint32_t)code);
    pack_text(&body, NULL);
    pack_u32(&body, 1);
    pack_send(&body, &self->conn, CTRL_ABORTED);
}

/* Prepares everything before the first fork of a rank. */
static int prepare(daemon_state *self, const ctrl_frame *frame)
{
    io_remote remote = {.out = output_send, .owner = self};

    if (job_desc_unpack(frame, self->conn.node, &self->job))
        return report(1, "the description of the job is malformed");
    const char *keys = getenv("SSH_AUTH_SOCK"), *slurm = getenv("SLURMD_NODENAME"); /* kept: for this daemon's agents (ssh -A); its node */
    environ = self->job.environment;
    if (keys)
        setenv("SSH_AUTH_SOCK", keys, 1);
    if (slurm) /* an mpirun started by a rank needs this node's name */
        setenv("SLURMD_NODENAME", slurm, 1);
    self->window = relay_window(&self->job, WINDOW);
    if (chdir(self->job.directory))
        return report(2, "working directory %s: %s (use -wdir)", self->job.directory, strerror(errno));
    gethostname(self->host, sizeof(self->host) - 1);
    int rc = io_open(&self->job.opts, self->job.map.nodes[self->job.node].count, &remote, &self->io);
    if (rc) { /* other functions take io != NULL to mean that node is valid */
        io_close(self->io);
        self->io = NULL;
        return rc;
    }
    self->node = (node){.name = self->job.name, .host = self->host, .guard = &self->guard, .io = self->io, .map = &self->job.map,
                        .index = self->job.node, .up = {.ended = rank_ended, .refused = rank_refused, .owner = self},
                        .modex_node_callbacks = {.request = modex_request_send, .data = modex_data_send, .fence = fence_send,
                                                  .owner = self},
                        .pmi_up = {.pmix_msg = on_pmi_msg, .aborted = on_pmi_aborted, .owner = self}};
    rc = node_open(&self->node, &self->job.opts);
    if (rc)
        return rc;
    self->guard = (guard){.mark = self->node.mark};
    if (guard_start(&self->guard))
        return report(1, "cannot start the guardian process: %s", strerror(errno));
    rc = relay_open(&self->relay, &self->job, &self->conn, self->secret, &self->guard);
    explicit_bzero(self->secret, sizeof(self->secret));
    if (!rc)
        rc = node_serve(&self->node);
    for (uint32_t i = 0; i < self->node.count && !rc && self->job.opts.is_bind_reported; i++)
        bind_report(&self->node.binding, i, self->node.ranks[i].rank, self->job.map.nodes[self->job.node].name);
    return rc;
}

static void failed_send(daemon_state *self, int code)
{
    pack body = {0};

    pack_u32(&body, (uint32_t)code);
    pack_send(&body, &self->conn, CTRL_FAILED);
}

static void on_start(daemon_state *self, const ctrl_frame *frame)
{
    int rc = self->is_prepared ? 1 : prepare(self, frame);

    self->is_prepared = true;
    if (rc)
        failed_send(self, rc);
    else
        ctrl_conn_send(&self->conn, CTRL_READY, NULL, 0);
}

static void on_go(daemon_state *self)
{
    pack body = {0};
    int rc = node_start(&self->node);

    pack_u32(&body, self->node.live);
    pack_send(&body, &self->conn, CTRL_STARTED);
    if (rc)
        failed_send(self, rc);
}

static void on_drain(daemon_state *self, unpack *from)
{
    bool was_ended = unpack_u32(from);

    self->is_failed = unpack_u32(from);
    relay_drain(&self->relay);
    node_drain(&self->node, was_ended);
}

static void on_modex(daemon_state *self, uint32_t kind, unpack *from)
{
    if (kind == CTRL_FENCE) {
        modex_node_fenced(&self->node.modex_node, unpack_u64(from));
        return;
    }
    uint32_t rank = unpack_u32(from), state = kind == CTRL_MODEX_DATA ? unpack_u32(from) : 0;
    if (kind == CTRL_MODEX_REQ)
        modex_node_request(&self->node.modex_node, rank);
    else
        modex_node_fill(&self->node.modex_node, rank, state, from->at, from->left);
}

static void on_fragment(daemon_state *self, const ctrl_frame *frame)
{
    pmix_msg whole, answer;

    if (pmix_channel_recv(&self->channel, &self->conn, frame, &whole) == 1 && !pmi_server_handle(self->node.pmi, &whole) &&
        pmix_srv_handle(self->node.pmix, &whole, &answer))
        pmix_msg_send(self, &answer);
}

static void on_input(daemon_state *self, const ctrl_frame *frame)
{
    self->input_bytes += frame->bytes;
    if (self->io)
        io_add_input(self->io, frame->body, frame->bytes);
}

static void on_closed(daemon_state *self, int which)
{
    if (self->io)
        io_closed(self->io, which);
}

static void on_frame(daemon_state *self, const ctrl_frame *frame)
{
    unpack from = {.at = frame->body, .left = frame->bytes};

    if (frame->node != self->conn.node) {
        relay_forward(&self->relay, frame);
        return;
    }
    switch (frame->kind) {
    case CTRL_START:
        on_start(self, frame);
        break;
    case CTRL_GO:
        on_go(self);
        break;
    case CTRL_SIGNAL:
        node_signal(&self->node, (int)unpack_u32(&from));
        break;
    case CTRL_END:
        node_end(&self->node);
        break;
    case CTRL_KILL:
        node_kill(&self->node);
        break;
    case CTRL_DRAIN:
        on_drain(self, &from);
        break;
    case CTRL_DEATH:
        node_tell_death(&self->node, unpack_u32(&from));
        break;
    case CTRL_WAIT_REPORT:
        wait_report_print(&self->wait_report, &self->node);
        break;
    case CTRL_IN:
        on_input(self, frame);
        break;
    case CTRL_CLOSED:
        on_closed(self, (int)unpack_u32(&from));
        break;
    case CTRL_CREDIT:
        self->in_flight -= unpack_u32(&from);
        break;
    case CTRL_GIVE_UP:
        relay_give_up(&self->relay, unpack_u32(&from));
        break;
    case CTRL_MODEX_REQ:
    case CTRL_MODEX_DATA:
    case CTRL_FENCE:
        on_modex(self, frame->kind, &from);
        break;
    case CTRL_FRAGMENT:
        on_fragment(self, frame);
        break;
    case CTRL_FRAGMENT_ACK:
        pmix_channel_acked(&self->channel, unpack_u32(&from));
        pmix_channel_flush(&self->channel, &self->conn);
        break;
    default:
        self->conn.error = "a frame of unknown kind was received";
    }
}

static void reap(daemon_state *self)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != self->guard.pid) {
            if (!node_reaped(&self->node, pid, status))
                relay_reaped(&self->relay, pid, status);
        } else if (guard_restart(&self->guard)) {
            report(1, "the guardian process was killed and cannot be started again: %s", strerror(errno));
        }
    }
}

/* Sends aborts and messages of the local PMIx server to the head. */
static void pmix_send_all(daemon_state *self)
{
    pmix_msg what;

    abort_send(self);
    while (self->node.pmix && pmix_srv_next(self->node.pmix, &what))
        pmix_msg_send(self, &what);
}

/* Sends output of ranks, and reports consumed input. */
static void streams_move(daemon_state *self)
{
    pack body = {0};
    size_t unread;

    if (!self->io)
        return;
    if (self->in_flight < self->window)
        self->in_flight += io_send(self->io, self->window - self->in_flight);
    unread = io_unread_input(self->io);
    if (unread == SIZE_MAX && self->input_bytes && !self->has_sent_closed) {
        self->has_sent_closed = true;
        pack_u32(&body, UINT32_MAX);
        pack_send(&body, &self->conn, CTRL_IN_ACK);
    } else if (unread < self->input_bytes) {
        pack_u32(&body, (uint32_t)(self->input_bytes - unread));
        pack_send(&body, &self->conn, CTRL_IN_ACK);
        self->input_bytes = unread;
    }
}

static bool has_ended(daemon_state *self)
{
    return self->node.is_draining && (!self->io || node_is_over(&self->node)) && relay_is_over(&self->relay);
}

/* Handles signals from outside; those that the head forwards come as frames. They are not passed to ranks: Slurm signals every process
 * of a step itself. */
static void on_signal(daemon_state *self, int sig)
{
    pack body = {0};

    if (sig != SIGTERM && sig != SIGINT && sig != SIGHUP)
        return;
    if (self->signaled_ns) { /* Slurm sends two at once; a signal after SIGNAL_REPEAT_NS ends the daemon */
        if (weft_clock_ns() - self->signaled_ns > SIGNAL_REPEAT_NS)
            self->conn.error = "ended";
    } else { /* the head ends the whole job */
        self->signaled_ns = weft_clock_ns();
        pack_u32(&body, (uint32_t)sig);
        pack_send(&body, &self->conn, CTRL_SIGNALED);
    }
}

/* Main loop; returns true when the job is over here, false when the connection has failed. */
static bool serve(daemon_state *self, int signals)
{
    struct pollfd nothing[5], *set = nothing;
    ctrl_frame frame;

    for (;;) {
        uint64_t next = self->io ? node_deadlines(&self->node) : 0, now = weft_clock_ns();
        if (self->io)
            next = weft_clock_earlier(next, wait_report_sample(&self->wait_report, &self->node));
        uint32_t count = 0;
        relay_deadlines(&self->relay);
        if (self->io && set == nothing)
            set = calloc(io_max(self->io) + 5 + relay_max(&self->relay), sizeof(*set));
        if (!set || self->conn.error || has_ended(self))
            break;
        if (self->io)
            count = io_pollfds(self->io, set);
        set[count] = (struct pollfd){.fd = signals, .events = POLLIN};
        set[count + 1] = (struct pollfd){.fd = self->conn.fd, .events = (short)(POLLIN | (self->conn.out.used ? POLLOUT : 0))};
        set[count + 2] = (struct pollfd){.fd = self->node.count ? self->node.modex_node.wakeup : -1, .events = POLLIN};
        set[count + 3] = (struct pollfd){.fd = self->node.pmix ? pmix_srv_fd(self->node.pmix) : -1, .events = POLLIN};
        set[count + 4] = (struct pollfd){.fd = self->node.pmi ? pmi_server_fd(self->node.pmi) : -1, .events = POLLIN};
        uint32_t below = relay_pollfds(&self->relay, set + count + 5);
        uint64_t wait_ms = !next ? 1000 : next > now ? (next - now + 999999) / 1000000 : 0;
        int ready = poll_sparse_wait(set, count + 5 + below, wait_ms > 1000 ? 1000 : (int)wait_ms);
        if (ready > 0 && self->io)
            io_progress(self->io, set, count);
        for (int sig; (sig = signals_next());)
            on_signal(self, sig);
        reap(self);
        ctrl_conn_flush(&self->conn);
        ctrl_conn_read(&self->conn);
        while (ctrl_conn_next(&self->conn, &frame))
            on_frame(self, &frame);
        relay_progress(&self->relay, set + count + 5, ready > 0 ? below : 0);
        modex_node_progress(&self->node.modex_node);
        pmi_server_progress(self->node.pmi);
        pmix_send_all(self);
        streams_move(self);
    }
    if (set != nothing)
        free(set);
    return !self->conn.error && has_ended(self);
}

/* Sends DONE and waits until the parent, having read everything, closes the connection. */
static void done_send(ctrl_conn *conn)
{
    struct pollfd set = {.fd = conn->fd};

    ctrl_conn_send(conn, CTRL_DONE, NULL, 0);
    while (!conn->error && !conn->has_send_failed) {
        set.events = (short)(POLLIN | (conn->out.used ? POLLOUT : 0));
        if (poll(&set, 1, CTRL_SILENCE_MS) <= 0)
            return;
        ctrl_conn_flush(conn);
        ctrl_conn_read(conn);
        conn->in.used = 0;
    }
}

static int line_read(char *line, size_t capacity)
{
    struct pollfd set = {.fd = 0, .events = POLLIN};

    for (size_t used = 0; used < capacity - 1;) {
        if (poll(&set, 1, LINE_S * 1000) <= 0 || read(0, line + used, 1) != 1)
            return -1;
        if (line[used++] == '\n') {
            line[used] = '\0';
            return 0;
        }
    }
    return -1;
}

/* Finds this node in the lines that srun copies to all daemons. 0, or -1: the node is not listed. */
static int node_find(uint32_t *node)
{
    char line[400];

    while (line_read(line, sizeof(line)) == 0) {
        int64_t found = srun_launch_node_of(line);
        if (found < 0)
            continue;
        *node = (uint32_t)found;
        return 0;
    }
    return -1;
}

static int connect_head(daemon_state *self)
{
    char line[4096];
    contact order;
    ctrl_hello hello;
    ctrl_answer answer;
    unsigned char proof[32];
    const char *why;

    if (line_read(line, sizeof(line)) || contact_read(line, &order))
        return report(2, DAEMON_OPTION " is an internal option of mpirun");
    if (order.node == SRUN_NODE && node_find(&order.node))
        return report(1, "SLURMD_NODENAME of this host is not in the head's list of nodes");
    ctrl_hello_make(order.secret, order.node, &hello);
    int fd = head_connect(&order, &hello, &answer, &why);
    if (fd < 0)
        return report(1, "%s: %s, port %u", why, order.addresses, order.port);
    ctrl_proof_make(order.secret, &hello, &answer, proof);
    if (send(fd, proof, sizeof(proof), MSG_NOSIGNAL) != (ssize_t)sizeof(proof))
        return report(1, "the head does not answer");
    ctrl_conn_open(&self->conn, fd, false, order.secret, &hello, &answer);
    memcpy(self->secret, order.secret, sizeof(self->secret));
    explicit_bzero(&order, sizeof(order));
    explicit_bzero(line, sizeof(line));
    return 0;
}

int daemon_main(void)
{
    static daemon_state self;
    int rc = connect_head(&self), null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (rc)
        return rc;
    for (int i = 0; i < 3; i++)
        dup2(null, i);
    daemon_now = &self;
    report_to = message_send;
    int signals = signals_open();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "weft-daemon");
    bool is_well = signals >= 0 && serve(&self, signals);
    if (!is_well)
        node_kill(&self.node);
    relay_close(&self.relay);
    node_close(&self.node, !is_well || self.is_failed);
    guard_stop(&self.guard);
    if (is_well)
        done_send(&self.conn);
    pmix_channel_close(&self.channel);
    ctrl_conn_close(&self.conn);
    return !is_well;
}
