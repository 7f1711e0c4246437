/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi_frames: what a stranger or a peer sends over libfabric (transports/ofi): handshakes, frames, notifications, acknowledgements, pings;
 * several of them in one message. Rank 0 sends, puts, gets and closes meanwhile; sends fail, time passes, addresses do not answer. No frame
 * may lie outside of its message, none comes after its peer has failed, and each body sent without copy is given back once. The input: a
 * byte, bit 0: over plain TCP, bit 1: rank 0 has the smaller nonce; then steps, each a byte whose lower four bits are the step's number.
 */
#include "base/macros.h"
#include "base/status.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/ofi_provider.h"
#include "transports/ofi/ofi.h"

enum { PEERS = 2, RECORDS = 512, JOB = 7 };

typedef struct record { /* of a body sent without copy, or of a get, put or flush */
    uint32_t times;
} record;

static struct {
    ofi_iface *iface;
    ofi_ep *eps[PEERS];
    bool has_failed[PEERS];
    record records[RECORDS];
    uint32_t record_count;
    uint8_t message[OFI_LONG_MESSAGE]; /* to be delivered with the frames that follow */
    uint32_t bytes;
} run;

static uint8_t memory[OFI_LONG_MESSAGE];
static uint64_t now = 1000000000;
static volatile uint8_t seen;

static uint64_t now_ns(void) { return now; }

/* -- rank 0 -- */

static uint32_t peer_index(const void *peer) { return (uint32_t)((const bool *)peer - run.has_failed); }

static record *record_new(void) { return run.record_count < RECORDS ? &run.records[run.record_count++] : NULL; }

static void frame_send(uint32_t peer, uint32_t bytes, bool is_held, bool has_more)
{
    record *record = is_held ? record_new() : NULL;
    weft_frame frame = {.hdr = {.kind = WEFT_FRAME_EAGER, .bytes = bytes}, .body = memory, .zcopy_ctx = record, .more = has_more};
    if (run.eps[peer] && bytes <= run.iface->iface.caps.frame_max &&
        weft_ofi_ops.send(&run.iface->iface, &run.eps[peer]->ep, &frame) != WEFT_INPROGRESS && record)
        record->times = 1; /* it was copied, or refused: no callback follows */
}

static void recv_frame(void *owner, void *peer, const weft_hdr *hdr, const void *body)
{
    (void)owner;
    if (run.has_failed[peer_index(peer)])
        abort();
    for (uint32_t i = 0; i < hdr->bytes; i++)
        seen = ((const uint8_t *)body)[i];
    if (hdr->tag & 1)
        frame_send(peer_index(peer), 8, false, false);
}

static void done(void *owner, void *what, int rc)
{
    (void)owner, (void)rc;
    if (((record *)what)->times++)
        abort();
}

static void notify(void *owner, void *peer, uint32_t value)
{
    (void)owner, (void)value;
    if (run.has_failed[peer_index(peer)])
        abort();
}

static void peer_failed(void *owner, void *peer, int rc)
{
    (void)owner, (void)rc;
    if (run.has_failed[peer_index(peer)])
        abort();
    run.has_failed[peer_index(peer)] = true;
}

/* Nonces of rank 1 and 2, between those that rank 0 may have. */
static uint64_t nonce_of(uint32_t peer) { return 1000 + peer; }

static bool peer_open(uint32_t peer)
{
    weft_proc_id id = {.job = JOB, .rank = peer + 1};
    ofi_iface_addr addr = run.iface->addr;
    weft_ep *ep;
    addr.nonce = nonce_of(peer);
    if (addr.form == OFI_FORM_IN) {
        addr.count = 2;
        memcpy(addr.addresses, (uint8_t[10]){10, 0, 0, (uint8_t)peer, 0, 10, 0, 1, (uint8_t)peer, 1}, 10);
    }
    run.has_failed[peer] = false;
    if (weft_ofi_ops.ep_open(&run.iface->iface, &id, &addr, sizeof addr, &run.has_failed[peer], &ep))
        return false;
    run.eps[peer] = (ofi_ep *)ep;
    return true;
}

static void *accept_peer(void *owner, const weft_proc_id *id)
{
    uint32_t peer = id->rank - 1;
    (void)owner;
    return id->job == JOB && !id->worker && peer < PEERS && !run.eps[peer] && peer_open(peer) ? &run.has_failed[peer] : NULL;
}

static void peer_close(uint32_t peer)
{
    if (run.eps[peer] && weft_ofi_ops.ep_close(&run.iface->iface, &run.eps[peer]->ep) == 0)
        run.eps[peer] = NULL;
}

/* step 8 to 10: put with notification, get, flush */
static void move(uint32_t peer, uint32_t step, uint32_t bytes)
{
    static weft_mr mr;
    record *record = record_new();
    weft_rma rma = {.local = memory, .mr = &mr, .remote = (uintptr_t)memory, .rkey = &mr.rkey, .bytes = bytes, .done = record,
                    .notify = step == 8};
    weft_iface *iface = &run.iface->iface;
    weft_ep *ep = run.eps[peer] ? &run.eps[peer]->ep : NULL;
    int rc = WEFT_AGAIN;
    if (!record || weft_ofi_ops.mr_reg(iface, memory, sizeof memory, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE, WEFT_MEMORY_HOST, &mr))
        return;
    if (ep)
        rc = step == 10 ? weft_ofi_ops.flush(iface, ep, true, record) : step == 8 ? weft_ofi_ops.put(iface, ep, &rma)
                                                                                  : weft_ofi_ops.get(iface, ep, &rma);
    if (rc)
        record->times++;
    weft_ofi_ops.mr_dereg(iface, &mr);
}

/* -- what comes -- */

static void deliver(void)
{
    provider_deliver(run.message, weft_round_up(run.bytes, 8));
    run.bytes = 0;
}

static bool add(const void *from, size_t bytes)
{
    if (run.bytes + weft_round_up(bytes, 8) > run.iface->message_max)
        return false;
    memcpy(run.message + run.bytes, from, bytes);
    memset(run.message + run.bytes + bytes, 0, weft_round_up(bytes, 8) - bytes);
    run.bytes += (uint32_t)weft_round_up(bytes, 8);
    return true;
}

/* Any bytes; bit 4: with rank 0's nonce. */
static void any_bytes(fuzz_input *in, uint8_t how)
{
    uint16_t bytes;
    size_t taken;
    uint8_t *copy;
    fuzz_take(in, &bytes, sizeof bytes);
    copy = fuzz_take_copy(in, bytes, &taken);
    if (how & 16 && taken >= sizeof(uint64_t))
        memcpy(copy, &run.iface->addr.nonce, sizeof(uint64_t));
    provider_deliver(copy, taken < run.iface->message_max ? taken : run.iface->message_max);
    free(copy);
}

/* Bits: 4 from the second peer, 5 it answers the last handshake, 6 its numbers are right, 7 its address is one. */
static void handshake(fuzz_input *in, uint8_t how)
{
    uint32_t peer = how >> 4 & 1;
    const ofi_ep *ep = run.eps[peer];
    const ofi_handshake *last = provider_last_handshake();
    ofi_handshake msg;
    fuzz_take(in, &msg, sizeof msg);
    msg.wire.nonce = run.iface->addr.nonce;
    msg.wire.kind = OFI_HANDSHAKE;
    msg.proc_id = (weft_proc_id){.job = JOB, .rank = peer + 1};
    msg.nonce = nonce_of(peer);
    if (how & 32)
        msg.echo = last ? last->attempt : 0;
    if (how & 64) {
        msg.sent = ep ? ep->received : 0;
        msg.received = ep ? ep->sent : 0;
    }
    if (how & 128) {
        struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = 1, .sin_addr = {msg.ep_index}};
        msg.hint_bytes = sizeof own;
        memcpy(msg.hint, &own, sizeof own);
    }
    if (add(&msg, sizeof msg))
        deliver();
}

/* A frame that is shorter than it says must not be counted as received: its receiver would wait for it for ever. */
static void check_not_counted(const ofi_ep *ep)
{
    uint32_t received = ep->received;
    for (int i = 0; i < 16; i++)
        weft_ofi_ops.poll(&run.iface->iface, 64);
    if (ep->received != received)
        abort();
}

/* Bits: 4 from the second peer, 5 its length is right, 6 more frames follow in the same message. */
static void frame(fuzz_input *in, uint8_t how)
{
    uint32_t peer = how >> 4 & 1;
    const ofi_ep *ep = run.eps[peer];
    struct { int8_t seq, ack; uint8_t kind, flags; uint16_t bytes; } what;
    ofi_framed *framed = (ofi_framed *)(void *)memory;
    bool is_alone;
    fuzz_take(in, &what, sizeof what);
    fuzz_take(in, &framed->hdr, sizeof framed->hdr);
    framed->wire = (ofi_wire){.nonce = run.iface->addr.nonce, .to = ep ? ep->index : what.kind, .kind = what.kind ? what.kind : OFI_FRAME,
                              .seq = (ep ? ep->received : 0) + (uint32_t)(int32_t)what.seq + 1,
                              .ack = (ep ? ep->sent : 0) + (uint32_t)(int32_t)what.ack, .flags = what.flags};
    if (how & 32)
        framed->hdr.bytes = what.bytes;
    if (sizeof *framed + what.bytes > sizeof memory)
        return;
    is_alone = !run.bytes && !(how & 64);
    if (!add(framed, what.kind == OFI_ACK || what.kind == OFI_PING ? sizeof framed->wire : sizeof *framed + what.bytes) || !(how & 64))
        deliver();
    if (ep && is_alone && framed->wire.kind == OFI_FRAME && framed->hdr.bytes > weft_round_up((uint32_t)what.bytes, 8u))
        check_not_counted(ep);
}

/* -- the input -- */

static void sleep_and_wake(void)
{
    weft_wakeup wakeup;
    if (weft_ofi_ops.arm(&run.iface->iface, &wakeup))
        return;
    weft_ofi_ops.poll(&run.iface->iface, 32);
    weft_ofi_ops.disarm(&run.iface->iface);
}

static void step(fuzz_input *in, uint8_t how)
{
    static const uint64_t pauses[] = {1000, 30000, 1000000, 60000000, 300000000, 1000000000, 6000000000, 40000000000};
    uint32_t peer = how >> 5 & 1, bits = how >> 4;
    uint16_t bytes = 0;
    if ((how & 15) == 3 || ((how & 15) >= 7 && (how & 15) <= 9))
        fuzz_take(in, &bytes, sizeof bytes);
    switch (how & 15) {
    case 0: any_bytes(in, how); break;
    case 1: handshake(in, how); break;
    case 2: frame(in, how); break;
    case 3: frame_send(peer, bytes, bits & 1, bits & 4); break;
    case 4: provider_complete(1 + (bits >> 1), bits & 1); break;
    case 5: weft_ofi_ops.poll(&run.iface->iface, 1 + (int)bits * 4); break;
    case 6: now += pauses[bits & 7]; break;
    case 7: frame_send(peer, bytes % 512, false, true); break;
    case 8:
    case 9:
    case 10: move(peer, how & 15, bytes); break;
    case 11: peer_close(peer); break;
    case 12: provider_refuses = bits & 1, provider_is_dead = bits & 2; break;
    case 13: sleep_and_wake(); break;
    case 14: deliver(); break;
    default:
        if (!run.eps[peer])
            peer_open(peer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const weft_iface_callbacks callbacks = {.recv_frame = recv_frame, .done = done, .notify = notify, .peer_failed = peer_failed,
                                                   .accept_peer = accept_peer};
    weft_iface_params params = {.owner = &run, .callbacks = &callbacks, .self = {.job = JOB}, .now_ns = now_ns, .is_far = true};
    fuzz_input in = {data, size};
    uint8_t how;
    memset(&run, 0, sizeof run);
    fuzz_take(&in, &how, 1);
    provider_is_tcp = how & 1;
    provider_refuses = provider_is_dead = false;
    if (weft_ofi_ops.open(&params, (weft_iface **)&run.iface))
        abort();
    run.iface->addr.nonce = how & 2 ? 1 : 1 << 20;
    run.iface->flusher.has_failed = true; /* no thread: each run is the same */
    for (uint32_t steps = 0; in.left && steps < 2000; steps++) {
        fuzz_take(&in, &how, 1);
        step(&in, how);
        if ((how & 15) <= 2)
            weft_ofi_ops.poll(&run.iface->iface, 64);
    }
    weft_ofi_ops.close(&run.iface->iface);
    return 0;
}
