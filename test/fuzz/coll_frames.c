/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_frames: what other members of a communicator send and write: notifications (a stop, calls that differ, inquiries), messages of
 * schedules, with those by which the members agree on a node area, and the area itself (flags, published calls, causes, places of lanes).
 * This rank is member 1 of 3 and makes nonblocking calls. A lane lies within the area, and a call ends once the team has stopped at it. The
 * input: a byte, bit 0: on an intercommunicator, else with an area; then steps, each a byte whose lower four bits are the step's number.
 */
#include "base/status.h"
#include "collectives/coll.h"
#include "collectives/shmcoll.h"
#include "collectives/shmcoll_area.h"
#include "collectives/shmcoll_check.h"
#include "collectives/shmcoll_lane.h"
#include "collectives/shmcoll_queue.h"
#include "collectives/stop.h"
#include "p2p/dispatch.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/made_rank.h"
#include "type/op.h"

enum { CALLS = 8, COUNT_MAX = 80 /* all messages are eager: no rank answers an announced one */, MEMBERS = 3, INT64 = 0x249, SUM = 0x21 };

static struct {
    made_rank *rank;
    weft_team team;
    weft_req *reqs[CALLS];
    uint32_t calls;
    bool is_inter;
} run;

static int64_t from[MEMBERS * COUNT_MAX], to[CALLS][MEMBERS * COUNT_MAX];

/* What an aborted job leaves is not freed. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }

/* -- this member -- */

static void call(fuzz_input *in)
{
    static const enum weft_coll_kind kinds[] = {WEFT_COLL_BARRIER, WEFT_COLL_ALLGATHER, WEFT_COLL_ALLTOALL, WEFT_COLL_ALLREDUCE,
                                                WEFT_COLL_BCAST, WEFT_COLL_REDUCE, WEFT_COLL_GATHER, WEFT_COLL_SCATTER, WEFT_COLL_SCAN,
                                                WEFT_COLL_REDUCE_SCATTER_BLOCK};
    struct { uint8_t kind, root; uint16_t count; } what;
    const weft_type *type = weft_type_of((void *)(uintptr_t)INT64);
    fuzz_take(in, &what, sizeof what);
    if (run.calls == CALLS)
        return;
    weft_coll args = {.sendbuf = from, .recvbuf = to[run.calls], .sendcount = what.count % COUNT_MAX, .recvcount = what.count % COUNT_MAX,
                      .sendtype = type, .recvtype = type, .op = weft_op_of((void *)(uintptr_t)SUM), .root = what.root % MEMBERS};
    if (weft_coll_start(&run.team, kinds[what.kind % (run.is_inter ? 4 : weft_count(kinds))], &args, &run.reqs[run.calls]) == 0)
        run.calls++;
}

static void progress(void)
{
    weft_sched_progress(&run.rank->worker);
    weft_shmcoll_progress(&run.rank->worker);
}

/* -- what comes -- */

static void deliver(const weft_hdr *given, fuzz_input *in, uint32_t bytes)
{
    weft_hdr hdr = *given;
    size_t taken;
    void *body = fuzz_take_copy(in, bytes < MADE_FRAME_MAX ? bytes : MADE_FRAME_MAX, &taken);
    hdr.chan = MADE_CHAN;
    hdr.bytes = (uint32_t)taken;
    weft_dispatch_frame(NULL, &run.rank->peer, &hdr, body);
    free(body);
}

/* Bits: 4 from member 2, 5 its tag is a number near this member's next call, 6 of any other member. */
static void notification(fuzz_input *in, uint8_t how)
{
    weft_hdr hdr = {.kind = WEFT_FRAME_NOTIFY, .src = how & 16 ? 2 : 0};
    uint8_t body[WEFT_NOTIFY_BYTES];
    uint16_t bytes;
    fuzz_take(in, &bytes, sizeof bytes);
    bytes %= sizeof body + 1;
    fuzz_take(in, body, bytes);
    if (how & 64)
        fuzz_take(in, &hdr.src, sizeof hdr.src);
    if (how & 32 && bytes >= 8) {
        uint32_t tag = run.team.sequence + (uint32_t)(int32_t)(int8_t)body[4];
        memcpy(body + 4, &tag, sizeof tag);
    }
    deliver(&hdr, &(fuzz_input){body, bytes}, bytes);
}

/* Bits: 4 from member 2, 5 to 7: of which call under way; 7: with a tag of the input. */
static void message(fuzz_input *in, uint8_t how)
{
    weft_hdr hdr = {.kind = WEFT_FRAME_EAGER, .src = how & 16 ? 2 : 0};
    uint32_t nth = how >> 5;
    uint16_t bytes;
    fuzz_take(in, &bytes, sizeof bytes);
    for (const weft_list_link *link = run.team.active.next; link != &run.team.active; link = link->next)
        if (nth-- == 0)
            hdr.tag = weft_container(link, weft_sched, active)->tag;
    if (how >> 5 == 7)
        fuzz_take(in, &hdr.tag, sizeof hdr.tag);
    deliver(&hdr, in, bytes);
}

/* -- what is written into the area -- */

static void write_area(fuzz_input *in)
{
    const weft_shmcoll *area = run.team.area;
    uint32_t at = fuzz_take_u32(in);
    uint8_t bytes, copy[255];
    fuzz_take(in, &bytes, sizeof bytes);
    fuzz_take(in, copy, bytes);
    if (area && area->bytes) {
        uint64_t used = (uint64_t)(area->lanes - (char *)area->hdr);
        memcpy((char *)area->hdr + at % (used - sizeof copy), copy, bytes);
    }
}

/* Bits: 4 by member 2, 5 with the hash of this member's calls. */
static void post(uint8_t how)
{
    const weft_shmcoll *area = run.team.area;
    if (!area)
        return;
    weft_shmcoll_line *line = weft_shmcoll_line_of(area, how & 16 ? 2 : 0, area->op);
    atomic_store(&line->posted, area->op);
    if (how & 32)
        atomic_store(&line->call_hash, area->call_hash);
}

/* A persistent call: the others say at once what the input says. */
static void lane(fuzz_input *in)
{
    weft_shmcoll *area = run.team.area, *made;
    weft_coll args = {.sendbuf = from};
    weft_call made_by = {.what = WEFT_COLL_BARRIER};
    uint32_t place = fuzz_take_u32(in);
    if (!area || area->rc || area->current || !weft_list_is_empty(&area->pending) || run.team.stopped)
        return;
    for (uint32_t i = 0; i < MEMBERS; i++)
        for (uint32_t s = 0; i != area->rank && s < area->depth; s++) {
            weft_shmcoll_line *line = weft_shmcoll_line_of(area, i, s);
            atomic_store(&line->call_hash, (area->log_hash ^ made_by.what) * WEFT_SHMCOLL_MIX + made_by.bytes);
            memcpy(line->data, &place, sizeof place);
            atomic_store(&line->posted, UINT64_MAX / 2);
        }
    if (weft_shmcoll_open_lane(area, WEFT_COLL_BARRIER, &args, made_by, &made) || !made)
        return;
    if ((char *)made->hdr < area->lanes || (char *)made->hdr >= area->lanes + area->lanes_bytes ||
        made->slots < area->lanes || made->slots > area->lanes + area->lanes_bytes)
        abort();
    weft_shmcoll_close(made);
}

/* -- the input -- */

static void step(fuzz_input *in, uint8_t how)
{
    switch (how & 15) {
    case 0: notification(in, how); break;
    case 1: message(in, how); break;
    case 2: call(in); break;
    case 3: progress(); break;
    case 4: write_area(in); break;
    case 5: post(how); break;
    case 6: lane(in); break;
    default: progress(); break;
    }
}

static void check_area(void)
{
    const weft_shmcoll *area = run.team.area;
    if (area && area->area_index >= run.rank->boot.segment.hdr->area_count)
        abort();
}

static void stop_at(int tag)
{
    weft_team_stop(&run.team, weft_fail(WEFT_E_OTHER, "the end"), tag);
    for (uint32_t i = 0; i < 100; i++)
        progress();
}

/* Every call ends once the team has stopped at it, whatever has come. A stop that came may be half of all numbers away. */
static void end_calls(void)
{
    stop_at(0);
    for (uint32_t i = 0; i < run.calls; i++) {
        if (!run.reqs[i]->is_done)
            stop_at(((const weft_sched *)run.reqs[i]->extra)->tag);
        if (!run.reqs[i]->is_done)
            abort();
        weft_req_free(run.reqs[i]);
    }
}

static void open_all(uint8_t how)
{
    made_rank *rank = made_rank_open();
    weft_group_drop(rank->group);
    memset(&run, 0, sizeof run);
    run.rank = rank;
    run.is_inter = how & 1;
    rank->boot.rank = rank->boot.local_rank = rank->chan.rank = 1;
    rank->boot.local_size = MEMBERS;
    rank->boot.job = 1;
    rank->peer.proc_id = (weft_proc_id){.job = 1};
    if (weft_group_range(1, 0, 1, MEMBERS, &rank->group) || weft_segment_make(MEMBERS, 1, 0, &rank->boot.segment))
        abort();
    rank->chan.group = rank->group;
    rank->boot.has_segment = true;
    rank->world.page = weft_segment_rank(&rank->boot.segment, 1);
    atomic_store(&rank->world.page->membarrier_ok, 1);
    if (run.is_inter ? weft_team_open_inter(&rank->chan, (weft_members){1, 2}, &run.team) : weft_team_open(&rank->chan, true, &run.team))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    uint8_t how;
    fuzz_take(&in, &how, 1);
    open_all(how);
    if (!setjmp(made_rank_refused)) {
        for (uint32_t steps = 0; in.left && steps < 1000; steps++) {
            fuzz_take(&in, &how, 1);
            step(&in, how);
            check_area();
        }
        end_calls();
    }
    weft_team_close(&run.team);
    weft_sched_free_spares(&run.rank->worker);
    weft_peer_free_all(&run.rank->worker); /* those to which notifications were sent */
    weft_segment_close(&run.rank->boot.segment);
    made_rank_close(run.rank);
    return 0;
}
