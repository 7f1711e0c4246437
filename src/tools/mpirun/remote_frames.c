/* SPDX-License-Identifier: BSD-3-Clause
 *
 * remote_frames: handles the frames that the daemon of another node sends to the head. See remote_nodes_internal.h.
 */
#include <stdio.h>
#include <string.h>

#include "launch/modex_cache.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/pmix_head.h"
#include "tools/mpirun/remote_nodes_internal.h"
#include "tools/mpirun/report.h"

static void on_ended(remote_nodes *self, remote_node *one, unpack *from)
{
    rank_end end = {.rank = unpack_u32(from)};

    end.raw_status = (int32_t)unpack_u32(from);
    end.state = unpack_u32(from);
    end.pid = (int64_t)unpack_u64(from);
    end.is_refused = unpack_u32(from);
    end.was_in_pmix = unpack_u32(from);
    if (from->has_failed || end.rank >= self->job->map.ranks || self->job->map.node_of[end.rank] != one->node || !one->live)
        return;
    one->live--;
    self->callbacks.ended(self->job, &end);
}

static void on_noexec(remote_nodes *self, remote_node *one, unpack *from)
{
    uint32_t rank = unpack_u32(from), what = unpack_u32(from), error = unpack_u32(from);

    if (!from->has_failed && rank < self->job->map.ranks && self->job->map.node_of[rank] == one->node)
        self->callbacks.refused(self->job, rank, (char)what, (int)error);
}

static void on_message(const remote_nodes *self, const remote_node *one, const char *text)
{
    char host[300];

    if (!one->is_ready && self->job->code) /* the job has failed already, and another host's reason was reported */
        return;
    snprintf(host, sizeof(host), "host %s", name_of(self, one));
    if (text && strstr(text, host))
        report(0, "%s", text);
    else if (text)
        report(0, "%s: %s", host, text);
}

static void on_aborted(remote_nodes *self, unpack *from)
{
    uint32_t rank = unpack_u32(from), code = unpack_u32(from);
    const char *text = unpack_text(from);

    if (!from->has_failed && rank < self->job->map.ranks)
        self->callbacks.aborted(self->job, rank, (int)code, unpack_u32(from) ? "MPI_Abort" : "PMIx_Abort", text);
}

static void on_started(remote_nodes *self, remote_node *one, unpack *from)
{
    uint32_t live = unpack_u32(from), ranks = self->job->map.nodes[one->node].count;

    if (from->has_failed || live >= ranks)
        return;
    self->job->live -= ranks - live;
    one->live -= ranks - live;
}

static void on_modex(remote_nodes *self, remote_node *one, uint32_t kind, unpack *from)
{
    if (kind == CTRL_FENCE) {
        uint64_t number = unpack_u64(from);
        if (!from->has_failed)
            modex_head_fence(&self->modex_head, one->node, number);
        return;
    }
    uint32_t rank = unpack_u32(from), state = kind == CTRL_MODEX_DATA ? unpack_u32(from) : 0;
    if (from->has_failed)
        return;
    if (kind == CTRL_MODEX_REQ)
        modex_head_request(&self->modex_head, one->node, rank);
    else if (from->left <= WEFT_MODEX_CAPACITY)
        modex_head_data(&self->modex_head, rank, state, from->at, from->left);
}

static void on_below_failed(remote_nodes *self, remote_node *one, uint32_t kind, unpack *from)
{
    const char *why = unpack_text(from);

    if (why && kind == CTRL_LOST)
        remote_node_lost(self, one, why);
    else if (why)
        remote_node_failed(self, one, why, "");
}

/* Handles a fragment of a pmix_msg, or the acknowledgement of one. */
static void on_fragment(remote_nodes *self, remote_node *one, const ctrl_frame *frame)
{
    unpack from = {.at = frame->body, .left = frame->bytes};
    pmix_msg whole;

    if (frame->kind == CTRL_FRAGMENT_ACK) {
        pmix_channel_acked(&one->channel, unpack_u32(&from));
        pmix_channel_flush(&one->channel, &one->conn);
    } else if (pmix_channel_recv(&one->channel, &one->conn, frame, &whole) == 1) {
        pmix_head_handle(self->job->pmix_head, one->node, &whole);
    }
}

void remote_node_handle(remote_nodes *self, remote_node *one, const ctrl_frame *frame)
{
    unpack from = {.at = frame->body, .left = frame->bytes};
    uint32_t which;

    switch (frame->kind) {
    case CTRL_READY:
        one->is_ready = true;
        break;
    case CTRL_FAILED:
        self->callbacks.failed(self->job, (int)unpack_u32(&from) & 0xff);
        break;
    case CTRL_STARTED:
        on_started(self, one, &from);
        break;
    case CTRL_MESSAGE:
        on_message(self, one, unpack_text(&from));
        break;
    case CTRL_OUT:
        which = unpack_u32(&from);
        if (which == 1 || which == 2)
            io_add(self->job->io, (int)which, from.at, from.left);
        one->uncredited += from.left;
        break;
    case CTRL_IN_ACK:
        io_in_acked(self->job->io, one->node, unpack_u32(&from));
        break;
    case CTRL_ENDED:
        on_ended(self, one, &from);
        break;
    case CTRL_NOEXEC:
        on_noexec(self, one, &from);
        break;
    case CTRL_ABORTED:
        on_aborted(self, &from);
        break;
    case CTRL_DONE:
        if (one->child_daemon->node == one->node)
            child_detach(one->child_daemon);
        remote_node_over(self, one); /* ranks whose end was not reported are counted as ended */
        break;
    case CTRL_SIGNALED:
        one->has_reported_signal = true;
        self->callbacks.daemon_signaled(self->job, name_of(self, one), (int)unpack_u32(&from));
        break;
    case CTRL_LOST:
    case CTRL_NO_CONNECT:
        on_below_failed(self, one, frame->kind, &from);
        break;
    case CTRL_MODEX_REQ:
    case CTRL_MODEX_DATA:
    case CTRL_FENCE:
        on_modex(self, one, frame->kind, &from);
        break;
    case CTRL_FRAGMENT:
    case CTRL_FRAGMENT_ACK:
        on_fragment(self, one, frame);
        break;
    default:
        one->child_daemon->conn.error = "it has sent a frame of unknown kind";
    }
}
