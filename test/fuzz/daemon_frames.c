/* SPDX-License-Identifier: BSD-3-Clause
 *
 * daemon_frames: frames of the daemons at the head, and the messages of PMIx servers inside of them. The input is a sequence of: kind (one
 * byte, an index into kinds), sending node (one byte), length (two bytes), body.
 */
#include <unistd.h>

#include "test/fuzz/fuzz.h"
#include "tools/mpirun/io.h"
#include "tools/mpirun/pmix_head.h"
#include "tools/mpirun/remote_nodes_internal.h"
#include "tools/mpirun/report.h"

#define RANKS 5
#define NODES 3 /* the head's is 0 */

static const uint8_t kinds[] = {CTRL_READY,     CTRL_FAILED,     CTRL_STARTED,    CTRL_MESSAGE,     CTRL_OUT,   CTRL_IN_ACK,
                                CTRL_ENDED,     CTRL_NOEXEC,     CTRL_ABORTED,    CTRL_DONE,        CTRL_SIGNALED, CTRL_LOST,
                                CTRL_NO_CONNECT, CTRL_MODEX_REQ, CTRL_MODEX_DATA, CTRL_FENCE,       CTRL_FRAGMENT, CTRL_FRAGMENT,
                                CTRL_FRAGMENT,  CTRL_FRAGMENT_ACK, 255};

/* -- what remote_frames.c calls of the rest of mpirun -- */

static size_t length_sum; /* so that every text is read to its end */

int report(int code, const char *format, ...)
{
    length_sum += strlen(format);
    return code;
}

void io_add(io *self, int which, const char *bytes, size_t count)
{
    (void)self;
    if (which != 1 && which != 2)
        abort();
    for (size_t i = 0; i < count; i++)
        length_sum += (unsigned char)bytes[i];
}

void io_in_acked(io *self, uint32_t node, uint32_t bytes)
{
    (void)self;
    (void)node;
    (void)bytes;
}

void child_detach(child_daemon *one) { (void)one; }

void remote_node_over(remote_nodes *self, remote_node *one)
{
    (void)self;
    one->is_over = true;
}

void remote_node_lost(remote_nodes *self, remote_node *one, const char *why)
{
    length_sum += strlen(why);
    remote_node_over(self, one);
}

void remote_node_failed(remote_nodes *self, remote_node *one, const char *why, const char *output)
{
    length_sum += strlen(output);
    remote_node_lost(self, one, why);
}

/* -- callbacks -- */

static void ended(job *job, const rank_end *end)
{
    if (end->rank >= job->map.ranks)
        abort();
}

static void refused(job *job, uint32_t rank, char what, int error)
{
    (void)what;
    (void)error;
    if (rank >= job->map.ranks)
        abort();
}

static void aborted(job *job, uint32_t rank, int code, const char *call, const char *text)
{
    (void)code;
    length_sum += strlen(call) + (text ? strlen(text) : 0);
    if (rank >= job->map.ranks)
        abort();
}

static void signaled(job *job, const char *host, int sig)
{
    (void)job;
    (void)sig;
    length_sum += strlen(host);
}

static void failed(job *job, int code)
{
    (void)job;
    if (code > 255)
        abort();
}

static void modex_request(void *owner, uint32_t node, uint32_t rank)
{
    (void)owner;
    if (node >= NODES || rank >= RANKS)
        abort();
}

static void modex_data(void *owner, uint32_t node, uint32_t rank, uint32_t state, const void *data, size_t bytes)
{
    (void)state;
    modex_request(owner, node, rank);
    for (size_t i = 0; i < bytes; i++)
        length_sum += ((const unsigned char *)data)[i];
}

static void modex_fenced(void *owner, uint32_t node, uint64_t number)
{
    (void)owner;
    (void)number;
    if (node >= NODES)
        abort();
}

static void pmix_send(void *owner, uint32_t node, const pmix_msg *what)
{
    (void)owner;
    if (node >= NODES)
        abort();
    refbuf_release(what->body);
}

/* -- the head -- */

typedef struct head {
    job job;
    remote_nodes nodes;
    remote_node items[NODES];
    child_daemon children[NODES];
    map_node map_nodes[NODES];
    uint32_t node_of[RANKS], local_of[RANKS];
} head;

static void head_open(head *self)
{
    static const remote_nodes_callbacks callbacks = {.ended = ended, .refused = refused, .aborted = aborted, .daemon_signaled = signaled,
                                                     .failed = failed};
    modex_head_callbacks modex = {.request = modex_request, .data = modex_data, .fenced = modex_fenced};
    pmix_msg_sender up = {.send = pmix_send};

    *self = (head){.map_nodes = {{"a", true, 1}, {"b", false, 2}, {"c", false, 2}}, .node_of = {0, 1, 1, 2, 2},
                   .local_of = {0, 0, 1, 0, 1}};
    self->job.map = (map){.nodes = self->map_nodes, .node_count = NODES, .ranks = RANKS, .node_of = self->node_of,
                          .local_of = self->local_of};
    self->job.live = RANKS;
    self->job.pmix_head = pmix_head_open(&self->job.map, &up);
    self->nodes = (remote_nodes){.job = &self->job, .callbacks = callbacks, .items = self->items, .count = NODES};
    if (modex_head_open(&self->nodes.modex_head, &self->job.map, &modex) || !self->job.pmix_head)
        abort();
    for (uint32_t i = 0; i < NODES; i++) {
        self->children[i] = (child_daemon){.node = i, .conn = {.fd = -1}};
        self->items[i] = (remote_node){.node = i, .child_daemon = &self->children[i], .conn = {.via = &self->children[i].conn, .node = i},
                                       .live = self->map_nodes[i].count};
    }
}

static void head_close(head *self)
{
    for (uint32_t i = 0; i < NODES; i++)
        pmix_channel_close(&self->items[i].channel);
    modex_head_close(&self->nodes.modex_head);
    pmix_head_close(self->job.pmix_head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    head head;

    head_open(&head);
    while (in.left) {
        struct { uint8_t kind, node; uint16_t bytes; } front;
        ctrl_frame frame;
        fuzz_take(&in, &front, sizeof(front));
        uint32_t node = 1 + front.node % (NODES - 1);
        void *body = fuzz_take_copy(&in, front.bytes, &frame.bytes);
        frame = (ctrl_frame){.kind = kinds[front.kind % sizeof(kinds)], .node = node, .body = body, .bytes = frame.bytes};
        remote_node_handle(&head.nodes, &head.items[node], &frame);
        free(body);
        if (head.items[node].child_daemon->conn.error) /* the head closes it */
            break;
    }
    head_close(&head);
    return 0;
}
