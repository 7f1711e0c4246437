/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_rndv: every pair of a rendezvous's state and frame. The legal pairs are listed here anew, from docs/wire.md; all others must be
 * illegal. Then each pair goes through the frame's handler: a legal frame leads to the listed state, an illegal one changes nothing but
 * is reported. The iface is made up: it accepts every frame and completes no get or put.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/status.h"
#include "core/world.h"
#include "mem/pool.h"
#include "p2p/chan.h"
#include "p2p/frag.h"
#include "p2p/promise.h"
#include "p2p/rndv.h"
#include "p2p/rndv_pool.h"
#include "p2p/rndv_select.h"
#include "p2p/rndv_state.h"
#include "type/type.h"

enum { BYTES = 4096 * 4 };

static const struct { enum weft_rndv_state state; enum weft_rndv_frame frame; enum weft_rndv_state next; } legal[] = {
    {WEFT_RNDV_SEND_ANNOUNCED, WEFT_RNDV_ON_CTS_COPY, WEFT_RNDV_SEND_MOVING},
    {WEFT_RNDV_SEND_ANNOUNCED, WEFT_RNDV_ON_CTS_PUT, WEFT_RNDV_SEND_MOVING},
    {WEFT_RNDV_SEND_ANNOUNCED, WEFT_RNDV_ON_CTS_SPLIT, WEFT_RNDV_SEND_SPLIT},
    {WEFT_RNDV_SEND_ANNOUNCED, WEFT_RNDV_ON_CTS_CSUM, WEFT_RNDV_SEND_ANNOUNCED},
    {WEFT_RNDV_SEND_ANNOUNCED, WEFT_RNDV_ON_FIN, WEFT_RNDV_SEND_ENDING},
    {WEFT_RNDV_SEND_ANNOUNCED, WEFT_RNDV_ON_FIN_ERROR, WEFT_RNDV_SEND_ENDING},
    {WEFT_RNDV_SEND_CANCELLING, WEFT_RNDV_ON_CTS_COPY, WEFT_RNDV_SEND_MOVING},
    {WEFT_RNDV_SEND_CANCELLING, WEFT_RNDV_ON_CTS_PUT, WEFT_RNDV_SEND_MOVING},
    {WEFT_RNDV_SEND_CANCELLING, WEFT_RNDV_ON_CTS_SPLIT, WEFT_RNDV_SEND_SPLIT},
    {WEFT_RNDV_SEND_CANCELLING, WEFT_RNDV_ON_CTS_CSUM, WEFT_RNDV_SEND_CANCELLING},
    {WEFT_RNDV_SEND_CANCELLING, WEFT_RNDV_ON_FIN, WEFT_RNDV_SEND_ENDING},
    {WEFT_RNDV_SEND_CANCELLING, WEFT_RNDV_ON_FIN_ERROR, WEFT_RNDV_SEND_ENDING},
    {WEFT_RNDV_SEND_CANCELLING, WEFT_RNDV_ON_FIN_CANCELLED, WEFT_RNDV_SEND_ENDING},
    {WEFT_RNDV_SEND_MOVING, WEFT_RNDV_ON_CTS_COPY, WEFT_RNDV_SEND_MOVING},
    {WEFT_RNDV_SEND_MOVING, WEFT_RNDV_ON_CTS_PUT, WEFT_RNDV_SEND_MOVING},
    {WEFT_RNDV_SEND_MOVING, WEFT_RNDV_ON_FIN, WEFT_RNDV_SEND_ENDING},
    {WEFT_RNDV_SEND_MOVING, WEFT_RNDV_ON_FIN_ERROR, WEFT_RNDV_SEND_ENDING},
    {WEFT_RNDV_SEND_SPLIT, WEFT_RNDV_ON_FIN, WEFT_RNDV_SEND_ENDING},
    {WEFT_RNDV_SEND_SPLIT, WEFT_RNDV_ON_FIN_ERROR, WEFT_RNDV_SEND_ENDING},
    {WEFT_RNDV_RECV_COPY, WEFT_RNDV_ON_DATA, WEFT_RNDV_RECV_COPY},
    {WEFT_RNDV_RECV_COPY, WEFT_RNDV_ON_CSUM, WEFT_RNDV_RECV_COPY},
    {WEFT_RNDV_RECV_COPY, WEFT_RNDV_ON_FIN_ERROR, WEFT_RNDV_RECV_ENDING},
    {WEFT_RNDV_RECV_GET, WEFT_RNDV_ON_DATA, WEFT_RNDV_RECV_GET},
    {WEFT_RNDV_RECV_GET, WEFT_RNDV_ON_CSUM, WEFT_RNDV_RECV_GET},
    {WEFT_RNDV_RECV_GET, WEFT_RNDV_ON_FIN_ERROR, WEFT_RNDV_RECV_GET},
    {WEFT_RNDV_RECV_SPLIT, WEFT_RNDV_ON_DATA, WEFT_RNDV_RECV_SPLIT},
    {WEFT_RNDV_RECV_SPLIT, WEFT_RNDV_ON_CSUM, WEFT_RNDV_RECV_SPLIT},
    {WEFT_RNDV_RECV_SPLIT, WEFT_RNDV_ON_FIN, WEFT_RNDV_RECV_ENDING},
    {WEFT_RNDV_RECV_SPLIT, WEFT_RNDV_ON_FIN_ERROR, WEFT_RNDV_RECV_ENDING},
    {WEFT_RNDV_RECV_PUT, WEFT_RNDV_ON_DATA, WEFT_RNDV_RECV_PUT},
    {WEFT_RNDV_RECV_PUT, WEFT_RNDV_ON_CSUM, WEFT_RNDV_RECV_PUT},
    {WEFT_RNDV_RECV_PUT, WEFT_RNDV_ON_FIN_SEGMENT, WEFT_RNDV_RECV_PUT},
    {WEFT_RNDV_RECV_PUT, WEFT_RNDV_ON_FIN_ERROR, WEFT_RNDV_RECV_PUT},
    {WEFT_RNDV_RECV_CSUM, WEFT_RNDV_ON_CSUM, WEFT_RNDV_RECV_CSUM},
    {WEFT_RNDV_RECV_PROMISED, WEFT_RNDV_ON_USE, WEFT_RNDV_RECV_PUT},
};

static enum weft_rndv_state expected(int state, int frame)
{
    for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
        if ((int)legal[i].state == state && (int)legal[i].frame == frame)
            return legal[i].next;
    return WEFT_RNDV_ILLEGAL;
}

static void test_table(void)
{
    for (int state = 0; state < WEFT_RNDV_STATES; state++)
        for (int frame = 0; frame < WEFT_RNDV_FRAMES; frame++)
            CU_ASSERT_EQUAL(weft_rndv_next[state][frame], expected(state, frame));
    for (int state = 0; state < WEFT_RNDV_STATES; state++)
        CU_ASSERT_PTR_NOT_NULL(weft_rndv_state_names[state]);
    for (int frame = 0; frame < WEFT_RNDV_FRAMES; frame++)
        CU_ASSERT_PTR_NOT_NULL(weft_rndv_frame_names[frame]);
}

/* -- a world of one worker, one peer, one request -- */

static int sent; /* frames given to the iface */

static int send_frame(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    (void)iface, (void)ep, (void)frame;
    sent++;
    return 0;
}

static weft_frag *in_flight; /* of the latest get or put, which never completes by itself */

static int move(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    (void)iface, (void)ep;
    in_flight = rma->done;
    return 0;
}

static int send_zcopy(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    (void)iface, (void)ep, (void)frame;
    return WEFT_INPROGRESS;
}

static const weft_iface_ops ops = {.name = "made up", .send = send_frame, .get = move, .put = move};
static weft_iface iface = {.ops = &ops, .caps = {.get = true, .put = true, .frame_max = BYTES, .rma_max = UINT64_MAX / 2}};
static weft_ep ep = {.iface = &iface};
static weft_boot boot;
static weft_sleep_ops sleep_ops;
static weft_world world = {.boot = &boot, .sleep_ops = &sleep_ops};
static weft_worker worker = {.world = &world};
static weft_peer peer = {.ep = &ep, .worker = &worker};
static weft_rndv_stats stats;
static weft_type type = {.size = 1, .extent = 1};
static weft_chan chan = {.worker = &worker};
static char buf[BYTES], body[BYTES];

static bool is_recv(int state) { return state >= WEFT_RNDV_RECV_COPY; }

static weft_promise promise; /* of the receive in state PROMISED */

/* A rendezvous in this state, with one more fragment in flight than it can have, so that no frame ends it. */
static weft_rndv *open_rndv(int state)
{
    weft_req *req = weft_req_new(&worker, is_recv(state) ? WEFT_REQ_RECV : WEFT_REQ_SEND);
    weft_rndv *rndv;
    req->chan = &chan;
    req->rank = 0;
    req->tag = 7;
    req->type = &type;
    req->buf = buf;
    req->bytes = BYTES;
    req->is_dense = true;
    CU_ASSERT(weft_rndv_alloc(req, &peer, &rndv) == 0);
    rndv->moved = BYTES;
    rndv->fragment_count = 1;
    rndv->proto = state >= WEFT_RNDV_RECV_COPY && state <= WEFT_RNDV_RECV_PUT ? (uint8_t)(state - WEFT_RNDV_RECV_COPY) : WEFT_RNDV_GET;
    rndv->state = (uint8_t)state;
    if (state == WEFT_RNDV_RECV_PROMISED) {
        req->has_rndv = false;
        weft_match_post(&chan.match, req);
        req->is_persistent = true;
        req->extra = &promise;
    }
    if (is_recv(state)) {
        rndv->next = BYTES;
        rndv->begin_ns = 0;
        rndv->segments = 0;
        rndv->awaits_csum = true;
        rndv->is_stepping = rndv->fin_done = rndv->is_withdrawn = rndv->is_promised = rndv->is_written = false;
        weft_list_init(&rndv->exposed);
    } else {
        rndv->mw = NULL;
        rndv->left = state == WEFT_RNDV_SEND_SPLIT ? 2 : 1;
    }
    return rndv;
}

static void free_rndv(weft_rndv *rndv)
{
    weft_req *req = rndv->req;
    if (req->is_posted)
        weft_match_unpost(&chan.match, req);
    req->extra = NULL;
    weft_rndv_free(rndv);
    weft_req_free(req);
}

/* Frees what a frame began. */
static void free_fragments(void)
{
    while (!weft_list_is_empty(&worker.fragments)) {
        weft_frag *frag = weft_container(worker.fragments.next, weft_frag, link);
        weft_list_remove(&frag->link);
        weft_frag_free(frag);
    }
    if (in_flight)
        weft_frag_free(in_flight);
    in_flight = NULL;
}

static void deliver(uint32_t id, int frame)
{
    weft_cts cts = {.from = 0, .to = BYTES, .want = BYTES, .req_id = 1, .index = 1};
    weft_hdr hdr = {.chan = id, .bytes = BYTES};
    switch (frame) {
    case WEFT_RNDV_ON_CTS_COPY: cts.proto = WEFT_RNDV_COPY; break;
    case WEFT_RNDV_ON_CTS_SPLIT: cts.proto = WEFT_RNDV_SPLIT; cts.index = 0; break;
    case WEFT_RNDV_ON_CTS_PUT: cts.proto = WEFT_RNDV_PUT; break;
    case WEFT_RNDV_ON_CTS_CSUM: cts.proto = WEFT_CTS_CSUM; break;
    case WEFT_RNDV_ON_DATA: weft_rndv_data(&peer, &hdr, body); return;
    case WEFT_RNDV_ON_CSUM: weft_rndv_csum(&peer, &hdr); return;
    case WEFT_RNDV_ON_FIN: weft_rndv_fin(&peer, &hdr); return;
    case WEFT_RNDV_ON_FIN_SEGMENT: hdr.src = 1; weft_rndv_fin(&peer, &hdr); return;
    case WEFT_RNDV_ON_FIN_ERROR: hdr.tag = -1; weft_rndv_fin(&peer, &hdr); return;
    case WEFT_RNDV_ON_FIN_CANCELLED: hdr.tag = WEFT_FIN_CANCELLED; weft_rndv_fin(&peer, &hdr); return;
    case WEFT_RNDV_ON_USE: weft_rndv_use(&peer, &hdr); return;
    default: cts.proto = 77; break;
    }
    weft_rndv_cts(&peer, &hdr, &cts);
}

/* Delivers one frame; *text: what was logged. */
static void deliver_logged(uint32_t id, int frame, char *text, size_t room)
{
    FILE *file = tmpfile();
    int err = dup(2);
    size_t n;
    fflush(stderr);
    dup2(fileno(file), 2);
    deliver(id, frame);
    fflush(stderr);
    dup2(err, 2);
    close(err);
    rewind(file);
    n = fread(text, 1, room - 1, file);
    text[n] = 0;
    fclose(file);
}

static void test_frames(void)
{
    char text[1000];
    for (int state = WEFT_RNDV_ILLEGAL + 1; state < WEFT_RNDV_STATES; state++)
        for (int frame = 0; frame < WEFT_RNDV_FRAMES; frame++) {
            weft_rndv *rndv = open_rndv(state), before = *rndv;
            weft_req *req = rndv->req, req_before = *req;
            int next = expected(state, frame);
            sent = 0;
            deliver_logged(rndv->id, frame, text, sizeof text);
            CU_ASSERT_FALSE(req->is_done);
            CU_ASSERT_EQUAL(rndv->state, next ? next : state);
            if (next == WEFT_RNDV_ILLEGAL) {
                CU_ASSERT_EQUAL(memcmp(&before, rndv, sizeof before), 0);
                CU_ASSERT_EQUAL(memcmp(&req_before, req, sizeof req_before), 0);
                CU_ASSERT_EQUAL(sent, 0);
                CU_ASSERT_PTR_NOT_NULL(strstr(text, weft_rndv_frame_names[frame]));
                CU_ASSERT_PTR_NOT_NULL(strstr(text, weft_rndv_state_names[state]));
            } else {
                CU_ASSERT_STRING_EQUAL(text, "");
            }
            free_fragments();
            free_rndv(rndv);
        }
}

/* Bytes outside of the message, and a checksum that was not requested, are illegal in every state. */
static void test_other(void)
{
    char text[1000];
    for (int state = WEFT_RNDV_RECV_COPY; state < WEFT_RNDV_STATES; state++) {
        weft_rndv *rndv = open_rndv(state);
        rndv->moved = BYTES - 1;
        deliver_logged(rndv->id, WEFT_RNDV_ON_DATA, text, sizeof text);
        CU_ASSERT(rndv->arrived == 0 && strstr(text, weft_rndv_frame_names[WEFT_RNDV_ON_OTHER]));
        rndv->awaits_csum = false;
        deliver_logged(rndv->id, WEFT_RNDV_ON_CSUM, text, sizeof text);
        CU_ASSERT(strstr(text, weft_rndv_frame_names[WEFT_RNDV_ON_OTHER]) != NULL);
        free_rndv(rndv);
    }
}

/* Frames for an id that is no longer in use are dropped without a word; a put's segment is answered, for the receiver waits for it. */
static void test_unknown(void)
{
    char text[1000];
    weft_rndv *rndv = open_rndv(WEFT_RNDV_SEND_MOVING);
    uint32_t gone = rndv->id;
    free_rndv(rndv);
    for (int frame = 0; frame < WEFT_RNDV_FRAMES; frame++) {
        sent = 0;
        deliver_logged(gone, frame, text, sizeof text);
        CU_ASSERT_STRING_EQUAL(text, "");
        CU_ASSERT_EQUAL(sent, frame == WEFT_RNDV_ON_CTS_PUT);
    }
}

/* A lost peer ends its rendezvous with the error: a receive also where it waits for FINs of exposed fragments. */
static void test_lost(void)
{
    for (int state = WEFT_RNDV_SEND_ANNOUNCED; state < WEFT_RNDV_RECV_PROMISED; state++) {
        weft_rndv *rndv = open_rndv(state);
        weft_req *req = rndv->req;
        rndv->fragment_count = 0;
        if (state == WEFT_RNDV_RECV_PUT)
            weft_list_append(&rndv->exposed, &weft_frag_new(req, rndv, WEFT_FRAG_EXPOSED, 0, BYTES, NULL)->link);
        if (state == WEFT_RNDV_SEND_ENDING || state == WEFT_RNDV_RECV_ENDING) {
            free_rndv(rndv);
            continue;
        }
        sent = 0;
        weft_rndv_lost(&peer, weft_fail(WEFT_E_PEER, "test"));
        CU_ASSERT(req->is_done && req->rc == WEFT_E_PEER && sent == 0);
        req->has_rndv = false;
        weft_req_free(req);
    }
}

/* CANCEL is sent once, and only while the receiver may not have matched. */
static void test_cancel(void)
{
    for (int state = WEFT_RNDV_SEND_ANNOUNCED; state <= WEFT_RNDV_SEND_ENDING; state++) {
        weft_rndv *rndv = open_rndv(state);
        sent = 0;
        weft_rndv_cancel(rndv->req);
        weft_rndv_cancel(rndv->req);
        CU_ASSERT_EQUAL(sent, state == WEFT_RNDV_SEND_ANNOUNCED);
        CU_ASSERT_EQUAL(rndv->state, state == WEFT_RNDV_SEND_ANNOUNCED ? WEFT_RNDV_SEND_CANCELLING : state);
        free_rndv(rndv);
    }
}

/* What an iface accepts has left, also if it still reads the body: its number is used, and the credits in its header are returned. */
static void test_post(void)
{
    static const weft_iface_ops zcopy = {.name = "made up", .send = send_zcopy};
    uint32_t msgs = weft_peer_msgs_out(&peer), seq = peer.seq_out;
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER}};
    iface.ops = &zcopy;
    peer.credits_due = 3;
    CU_ASSERT_EQUAL(weft_peer_post(&peer, &frame), WEFT_INPROGRESS);
    CU_ASSERT(frame.hdr.credits == 3 && peer.credits_due == 0);
    CU_ASSERT(frame.hdr.seq == seq + 1 && peer.seq_out == seq + 1 && weft_peer_msgs_out(&peer) == msgs + 1);
    iface.ops = &ops;
    frame.hdr.kind = WEFT_FRAME_DATA;
    CU_ASSERT_EQUAL(weft_peer_post(&peer, &frame), 0);
    CU_ASSERT(peer.seq_out == seq + 2 && weft_peer_msgs_out(&peer) == msgs + 1);
}

static weft_rndv *take(enum weft_req_kind kind, int *rc)
{
    weft_req *req = weft_req_new(&worker, kind);
    weft_rndv *rndv = NULL;
    *rc = weft_rndv_alloc(req, &peer, &rndv);
    if (*rc)
        weft_req_free(req);
    return rndv;
}

/* No memory for more than one slab of states: sends leave the last ones to receives; a freed state serves the next. */
static void test_pool(void)
{
    weft_rndv *taken[WEFT_RNDV_SLAB];
    weft_peer another = {.worker = &worker};
    uint32_t n = 0, old;
    int rc;
    weft_rndv_pool_close(&worker);
    CU_ASSERT(weft_rndv_pool_open(&worker) == 0);
    CU_ASSERT(!worker.rndv_pool->is_full_reported);
    worker.rndv_pool->max = WEFT_RNDV_SLAB - 1;
    while ((taken[n] = take(WEFT_REQ_SEND, &rc)))
        n++;
    CU_ASSERT(rc == WEFT_AGAIN && n == WEFT_RNDV_SLAB - 1 - WEFT_RNDV_RECV_RESERVE && worker.rndv_pool->is_full_reported);
    while ((taken[n] = take(WEFT_REQ_RECV, &rc)))
        n++;
    CU_ASSERT(rc == WEFT_AGAIN && n == WEFT_RNDV_SLAB - 1);
    for (uint32_t i = 0; i < n; i++)
        CU_ASSERT(weft_rndv_lookup(&peer, taken[i]->id) == taken[i] && weft_rndv_lookup(&another, taken[i]->id) == NULL);
    old = taken[0]->id;
    free_rndv(taken[0]);
    CU_ASSERT(weft_rndv_lookup(&peer, old) == NULL);
    CU_ASSERT(take(WEFT_REQ_SEND, &rc) == NULL && rc == WEFT_AGAIN);
    CU_ASSERT(take(WEFT_REQ_RECV, &rc) == taken[0] && taken[0]->id != old && weft_rndv_lookup(&peer, old) == NULL);
    CU_ASSERT(weft_rndv_lookup(&peer, 0) == NULL && weft_rndv_lookup(&peer, UINT32_MAX) == NULL);
    while (n)
        free_rndv(taken[--n]);
    weft_rndv_pool_close(&worker);
    CU_ASSERT(weft_rndv_pool_open(&worker) == 0);
}

/* Posted receives get their share of the states and no more, and it comes back with each that ends or matches. */
static void test_posted_share(void)
{
    enum { MAX = 8 * WEFT_RNDV_SLAB - 1, SHARE = MAX / WEFT_RNDV_POSTED_SHARE };
    weft_rndv *taken[MAX], *other;
    uint32_t n = 0;
    int rc;
    weft_rndv_pool_close(&worker);
    CU_ASSERT(weft_rndv_pool_open(&worker) == 0);
    worker.rndv_pool->max = MAX;
    for (weft_rndv *rndv; n < MAX && (rndv = weft_rndv_alloc_posted(weft_req_new(&worker, WEFT_REQ_RECV), &peer)); n++)
        taken[n] = rndv;
    CU_ASSERT(n == SHARE);
    CU_ASSERT((other = take(WEFT_REQ_SEND, &rc)) != NULL); /* sends find states */
    free_rndv(other);
    free_rndv(taken[--n]);
    CU_ASSERT((taken[n] = weft_rndv_alloc_posted(weft_req_new(&worker, WEFT_REQ_RECV), &peer)) != NULL);
    weft_rndv_bind_posted(taken[n++]);
    CU_ASSERT((taken[n] = weft_rndv_alloc_posted(weft_req_new(&worker, WEFT_REQ_RECV), &peer)) != NULL);
    CU_ASSERT(weft_rndv_alloc_posted(taken[n++]->req, &peer) == NULL);
    while (n)
        free_rndv(taken[--n]);
    CU_ASSERT(worker.rndv_pool->posted_count == 0);
    weft_rndv_pool_close(&worker);
    CU_ASSERT(weft_rndv_pool_open(&worker) == 0);
}

int main(void)
{
    CU_pSuite suite;
    unsigned failed;
    weft_list_init(&worker.free_reqs);
    weft_list_init(&worker.fragments);
    weft_list_init(&worker.backlog);
    weft_match_open(&chan.match);
    weft_list_init(&peer.waiting);
    weft_list_init(&peer.sendqs);
    worker.pool = weft_pool_open();
    peer.rndv_stats = &stats;
    if (weft_rndv_pool_open(&worker))
        return 1;
    CU_initialize_registry();
    suite = CU_add_suite("rndv", NULL, NULL);
    CU_add_test(suite, "table", test_table);
    CU_add_test(suite, "frames", test_frames);
    CU_add_test(suite, "other", test_other);
    CU_add_test(suite, "unknown", test_unknown);
    CU_add_test(suite, "lost", test_lost);
    CU_add_test(suite, "cancel", test_cancel);
    CU_add_test(suite, "post", test_post);
    CU_add_test(suite, "pool", test_pool);
    CU_add_test(suite, "posted share", test_posted_share);
    CU_basic_run_tests();
    failed = CU_get_number_of_failures() + CU_get_number_of_suites_failed();
    CU_cleanup_registry();
    weft_rndv_pool_close(&worker);
    weft_pool_close(worker.pool);
    return failed ? 1 : 0;
}
