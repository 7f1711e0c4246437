/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_promises: an MPI program whose persistent pairs repeat, so that their receives promise buffers, among ordinary sends, wildcard
 * receives, probes and cancels on the same envelopes. Both ranks of a pair draw the same turns: each message's content and its place in
 * MPI's order are known, whichever call receives it. See apps.h.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/apps.h"
#include "test/sim/rig.h"

enum { PAIRS = 3, TURNS = 24, TAG = 7, READY = 99, BYTES_MAX = 60000, OTHERS = 4 };

typedef struct pair {
    uint64_t bytes;
    MPI_Request out, in; /* to the right, from the left */
    uint8_t *sent, *received;
    int tag;
} pair;

/* A message of a turn, in the sender's order. */
typedef struct message {
    int pair;       /* a start of this pair's send; -1: an ordinary message */
    int tag;
    uint64_t bytes, name;
    MPI_Request req;
    uint8_t *body;
} message;

typedef struct turn {
    int count;
    message messages[PAIRS + OTHERS];
} turn;

/* What every sender sends in a turn; drawn by its receiver too. kind: how much is mixed. */
static void draw(turn *turn, uint64_t seed, const pair *pairs, uint64_t kind)
{
    uint64_t state = seed;
    turn->count = 0;
    for (int i = 0; i < PAIRS; i++) {
        for (uint64_t n = app_draw(&state, 4) < kind ? app_draw(&state, 2) + (kind > 2) : 0; n && turn->count < OTHERS + i; n--) {
            message *one = &turn->messages[turn->count++];
            *one = (message){.pair = -1, .tag = app_draw(&state, 3) ? pairs[app_draw(&state, PAIRS)].tag : TAG - 1, .req = MPI_REQUEST_NULL,
                             .bytes = app_draw(&state, 2) ? pairs[i].bytes : app_draw_bytes(&state)};
            if (one->bytes > BYTES_MAX)
                one->bytes = BYTES_MAX;
        }
        if (kind == 0 || app_draw(&state, 8))
            turn->messages[turn->count++] = (message){.pair = i, .tag = pairs[i].tag, .bytes = pairs[i].bytes, .req = MPI_REQUEST_NULL};
    }
    for (int i = 0; i < turn->count; i++)
        turn->messages[i].name = seed * 64 + (uint64_t)i;
}

static int send_all(app_self *self, turn *turn, pair *pairs, int right)
{
    for (int i = 0; i < turn->count; i++) {
        message *one = &turn->messages[i];
        if (one->pair >= 0) {
            rig_fill(pairs[one->pair].sent, one->name, one->bytes);
            APP_TRY(MPI_Start(&pairs[one->pair].out));
        } else {
            one->body = malloc(one->bytes + 1);
            rig_fill(one->body, one->name, one->bytes);
            APP_TRY(MPI_Isend(one->body, (int)one->bytes, MPI_BYTE, right, one->tag, MPI_COMM_WORLD, &one->req));
        }
        for (uint64_t naps = app_draw(&self->own, 4) ? 0 : app_draw(&self->own, 5); naps; naps--)
            weft_sim_yield();
    }
    return 0;
}

static int wait_sent(turn *turn, pair *pairs)
{
    for (int i = 0; i < turn->count; i++) {
        message *one = &turn->messages[i];
        if (MPI_Wait(one->pair >= 0 ? &pairs[one->pair].out : &one->req, MPI_STATUS_IGNORE))
            return 1;
        free(one->body);
        one->body = NULL;
    }
    return 0;
}

/* The oldest message with this tag (MPI_ANY_TAG: of all) that no receive has taken; -1: none. */
static int oldest(const turn *turn, const bool *is_taken, int tag)
{
    for (int i = 0; i < turn->count; i++)
        if (!is_taken[i] && (tag == MPI_ANY_TAG || turn->messages[i].tag == tag))
            return i;
    return -1;
}

static int check(const app_self *self, const turn *turn, int index, const uint8_t *body, const MPI_Status *status, const char *how)
{
    const message *one = &turn->messages[index];
    int count;
    APP_TRY(MPI_Get_count(status, MPI_BYTE, &count));
    if ((uint64_t)count != one->bytes || status->MPI_TAG != one->tag || rig_wrong(body, one->name, one->bytes) != one->bytes)
        return app_fail(self, "promises: message %d (%s%d) came by %s with %d of %d bytes, tag %d of %d, or wrong ones", index,
                        one->pair >= 0 ? "pair " : "", one->pair, how, count, (int)one->bytes, status->MPI_TAG, one->tag);
    return 0;
}

/* A receive in flight and the message that it must get. */
typedef struct posted {
    int index, pair; /* pair -1: an ordinary receive */
    MPI_Request req;
    uint8_t *body;
} posted;

static int wait_one(const app_self *self, const turn *turn, pair *pairs, posted *one)
{
    MPI_Status status;
    MPI_Request *req = one->pair >= 0 ? &pairs[one->pair].in : &one->req;
    APP_TRY(MPI_Wait(req, &status));
    if (check(self, turn, one->index, one->pair >= 0 ? pairs[one->pair].received : one->body, &status, one->pair >= 0 ? "a pair" : "Irecv"))
        return 1;
    free(one->body);
    return 0;
}

/* What a rank receives in a turn. */
typedef struct inbox {
    turn turn;
    bool is_taken[PAIRS + OTHERS], is_started[PAIRS];
    posted in[PAIRS + OTHERS];
    int count;
} inbox;

static int start_pair(inbox *box, pair *pairs, int which, int index)
{
    box->is_taken[index] = box->is_started[which] = true;
    box->in[box->count++] = (posted){.index = index, .pair = which};
    return MPI_Start(&pairs[which].in);
}

/* The usual case: receives are started before anything is sent. */
static int start_pairs(inbox *box, pair *pairs)
{
    for (int i = 0; i < PAIRS; i++) {
        int index = oldest(&box->turn, box->is_taken, pairs[i].tag);
        if (index >= 0 && box->turn.messages[index].bytes <= pairs[i].bytes && start_pair(box, pairs, i, index))
            return 1;
    }
    return 0;
}

static int receive_by_probe(const app_self *self, inbox *box, int index, int left)
{
    uint8_t *body = malloc(BYTES_MAX);
    MPI_Message handle;
    MPI_Status status;
    APP_TRY(MPI_Mprobe(left, box->turn.messages[index].tag, MPI_COMM_WORLD, &handle, &status));
    APP_TRY(MPI_Mrecv(body, BYTES_MAX, MPI_BYTE, &handle, &status));
    if (check(self, &box->turn, index, body, &status, "Mrecv"))
        return 1;
    free(body);
    box->is_taken[index] = true;
    return 0;
}

static int post(app_self *self, inbox *box, int index, int left)
{
    bool any_tag = index == oldest(&box->turn, box->is_taken, MPI_ANY_TAG) && app_draw(&self->own, 3) == 0;
    posted *one = &box->in[box->count++];
    *one = (posted){.index = index, .pair = -1, .body = malloc(BYTES_MAX)};
    box->is_taken[index] = true;
    return MPI_Irecv(one->body, BYTES_MAX, MPI_BYTE, app_draw(&self->own, 3) ? left : MPI_ANY_SOURCE,
                     any_tag ? MPI_ANY_TAG : box->turn.messages[index].tag, MPI_COMM_WORLD, &one->req);
}

/* Takes the turn's other messages: by the pairs' receives, ordinary ones and wildcards, posted in any order of tags, and by matched probes
 * while no receive is posted. Each posted receive must get the oldest message that it matches and no earlier one has. */
static int receive_rest(app_self *self, inbox *box, pair *pairs, int left)
{
    const turn *turn = &box->turn;
    for (int first; (first = oldest(turn, box->is_taken, MPI_ANY_TAG)) >= 0;) {
        int tag = app_draw(&self->own, 4) ? turn->messages[first].tag : turn->messages[app_draw(&self->own, (uint64_t)turn->count)].tag;
        int index = oldest(turn, box->is_taken, tag), which = -1;
        for (int i = 0; i < PAIRS && index >= 0; i++)
            if (!box->is_started[i] && pairs[i].tag == tag && turn->messages[index].bytes <= pairs[i].bytes)
                which = i;
        if (index < 0)
            continue;
        if (which >= 0 && app_draw(&self->own, 3))
            APP_TRY(start_pair(box, pairs, which, index));
        else if (box->count == 0 && app_draw(&self->own, 3) == 0)
            APP_TRY(receive_by_probe(self, box, index, left));
        else
            APP_TRY(post(self, box, index, left));
        if (box->count && app_draw(&self->own, 4) == 0 && wait_one(self, turn, pairs, &box->in[--box->count]))
            return 1;
    }
    while (box->count)
        if (wait_one(self, turn, pairs, &box->in[--box->count]))
            return 1;
    return 0;
}

static int take_turn(app_self *self, pair *pairs, uint64_t seed, uint64_t kind)
{
    int right = (self->rank + 1) % self->size, left = (self->rank + self->size - 1) % self->size;
    inbox box = {.count = 0};
    turn out;
    draw(&out, seed + (uint64_t)self->rank, pairs, kind);
    draw(&box.turn, seed + (uint64_t)left, pairs, kind);
    for (uint64_t naps = app_draw(&self->own, 8); naps > 5; naps--)
        weft_sim_yield();
    if (app_draw(&self->own, 6))
        APP_TRY(start_pairs(&box, pairs));
    for (uint64_t naps = app_draw(&self->own, 8); naps > 3; naps--)
        weft_sim_yield();
    return send_all(self, &out, pairs, right) || receive_rest(self, &box, pairs, left) || wait_sent(&out, pairs);
}

/* Starts a pair's receive, for which nothing is sent, and cancels it. */
static int cancel_one(app_self *self, pair *one)
{
    MPI_Status status;
    int is_cancelled;
    rig_fill(one->received, 1, one->bytes);
    APP_TRY(MPI_Start(&one->in));
    for (uint64_t naps = app_draw(&self->own, 6); naps; naps--)
        weft_sim_yield();
    APP_TRY(MPI_Cancel(&one->in));
    APP_TRY(MPI_Wait(&one->in, &status));
    APP_TRY(MPI_Test_cancelled(&status, &is_cancelled));
    if (!is_cancelled)
        return app_fail(self, "promises: a receive without a message was not cancelled");
    return 0;
}

/* Lets the pair from `from` to `to` match often enough for promises. No message to the receiver but the pair's. */
static int warm(app_self *self, pair *one, int from, int to)
{
    for (int i = 0; i < 4; i++) {
        if (self->rank == to) {
            APP_TRY(MPI_Start(&one->in));
            APP_TRY(MPI_Send(NULL, 0, MPI_BYTE, from, READY, MPI_COMM_WORLD));
            APP_TRY(MPI_Wait(&one->in, MPI_STATUS_IGNORE));
        } else if (self->rank == from) {
            APP_TRY(MPI_Recv(NULL, 0, MPI_BYTE, to, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            APP_TRY(MPI_Start(&one->out));
            APP_TRY(MPI_Wait(&one->out, MPI_STATUS_IGNORE));
        }
    }
    return 0;
}

/* The sender knows of the started receive and then calls nothing of MPI until the cancel has ended: that must not need it. Its send
 * started before (is_early), or starts after that. An ordinary message of the same envelope follows. */
static int send_to_cancelled(app_self *self, pair *one, int to, uint64_t name, bool is_early, uint32_t cancels)
{
    uint8_t *next = malloc(one->bytes);
    APP_TRY(MPI_Recv(NULL, 0, MPI_BYTE, to, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    rig_fill(one->sent, name, one->bytes);
    rig_fill(next, name + 1, one->bytes);
    if (is_early)
        APP_TRY(MPI_Start(&one->out));
    for (uint32_t naps = 0; self->what->cancels < cancels && naps < (is_early ? 3000 : 100000); naps++)
        weft_sim_yield();
    if (!is_early && self->what->cancels < cancels)
        return app_fail(self, "promises: MPI_Wait after MPI_Cancel of a receive needs the sender");
    if (!is_early)
        APP_TRY(MPI_Start(&one->out));
    APP_TRY(MPI_Send(next, (int)one->bytes, MPI_BYTE, to, one->tag, MPI_COMM_WORLD));
    APP_TRY(MPI_Wait(&one->out, MPI_STATUS_IGNORE));
    free(next);
    return 0;
}

static int receive_named(app_self *self, pair *one, int from, uint64_t name, uint64_t how)
{
    uint8_t *body = how == 0 ? one->received : malloc(one->bytes);
    MPI_Request req;
    MPI_Message handle;
    MPI_Status status;
    int count;
    if (how == 0) {
        APP_TRY(MPI_Start(&one->in));
        APP_TRY(MPI_Wait(&one->in, &status));
    } else if (how == 1) {
        APP_TRY(MPI_Mprobe(MPI_ANY_SOURCE, one->tag, MPI_COMM_WORLD, &handle, &status));
        APP_TRY(MPI_Mrecv(body, (int)one->bytes, MPI_BYTE, &handle, &status));
    } else {
        APP_TRY(MPI_Irecv(body, (int)one->bytes, MPI_BYTE, how == 2 ? from : MPI_ANY_SOURCE, one->tag, MPI_COMM_WORLD, &req));
        APP_TRY(MPI_Wait(&req, &status));
    }
    APP_TRY(MPI_Get_count(&status, MPI_BYTE, &count));
    if ((uint64_t)count != one->bytes || status.MPI_TAG != one->tag || rig_wrong(body, name, one->bytes) != one->bytes)
        return app_fail(self, "promises: after a cancel a message came by way %d with %d of %d bytes, right up to byte %d", (int)how, count,
                        (int)one->bytes, (int)rig_wrong(body, name, one->bytes));
    if (how)
        free(body);
    return 0;
}

/* Either the cancel or the receive succeeds. After a cancel the buffer is the program's: nothing may write into it any more. */
static int cancel_promised(app_self *self, pair *one, int from, uint64_t name)
{
    MPI_Status status;
    int is_cancelled;
    APP_TRY(MPI_Start(&one->in));
    APP_TRY(MPI_Send(NULL, 0, MPI_BYTE, from, READY, MPI_COMM_WORLD));
    for (uint64_t naps = app_draw(&self->own, 3) * app_draw(&self->own, 40); naps; naps--)
        weft_sim_yield();
    APP_TRY(MPI_Cancel(&one->in));
    APP_TRY(MPI_Wait(&one->in, &status));
    APP_TRY(MPI_Test_cancelled(&status, &is_cancelled));
    if (is_cancelled)
        rig_fill(one->received, name + 2, one->bytes);
    self->what->cancels++;
    if (!is_cancelled && rig_wrong(one->received, name, one->bytes) != one->bytes)
        return app_fail(self, "promises: a receive that was not cancelled has wrong bytes");
    if (is_cancelled) {
        uint64_t how = app_draw(&self->own, 4);
        APP_TRY(receive_named(self, one, from, name, how));
        if (how && rig_wrong(one->received, name + 2, one->bytes) != one->bytes)
            return app_fail(self, "promises: the buffer of a cancelled receive was written");
    }
    return receive_named(self, one, from, name + 1, 1 + app_draw(&self->own, 3));
}

static int cancel_alone(app_self *self, pair *one, uint64_t name)
{
    uint64_t state = name;
    int to = (int)app_draw(&state, (uint64_t)self->size), from = (to + self->size - 1) % self->size;
    bool is_early = app_draw(&state, 2);
    uint32_t cancels = self->what->cancels + 1;
    if (self->size == 1)
        return 0;
    APP_TRY(warm(self, one, from, to));
    if (self->rank == to)
        return cancel_promised(self, one, from, name);
    return self->rank == from ? send_to_cancelled(self, one, to, name, is_early, cancels) : 0;
}

static int open_pairs(pair *pairs, uint64_t seed, int right, int left)
{
    uint64_t state = seed;
    for (int i = 0; i < PAIRS; i++) {
        pair *one = &pairs[i];
        one->bytes = 1 + app_draw(&state, app_draw(&state, 4) ? BYTES_MAX : 3000);
        one->tag = TAG + (int)app_draw(&state, 2) * i;
        one->sent = malloc(one->bytes);
        one->received = malloc(one->bytes);
        if ((app_draw(&state, 3) ? MPI_Send_init : MPI_Ssend_init)(one->sent, (int)one->bytes, MPI_BYTE, right, one->tag, MPI_COMM_WORLD,
                                                                   &one->out) ||
            MPI_Recv_init(one->received, (int)one->bytes, MPI_BYTE, left, one->tag, MPI_COMM_WORLD, &one->in))
            return 1;
    }
    return 0;
}

/* kept: a receive that is in flight when its request is freed keeps its buffer until MPI_Finalize. */
static int close_pairs(app_self *self, pair *pairs, bool is_last, uint8_t **kept)
{
    for (int i = 0; i < PAIRS; i++) {
        bool is_active = is_last && app_draw(&self->own, 3) == 0;
        if (is_active)
            APP_TRY(MPI_Start(&pairs[i].in));
        kept[i] = is_active ? pairs[i].received : NULL;
        APP_TRY(MPI_Request_free(&pairs[i].out));
        APP_TRY(MPI_Request_free(&pairs[i].in));
        free(pairs[i].sent);
        if (!is_active)
            free(pairs[i].received);
    }
    return 0;
}

int app_promises(int rank, void *arg)
{
    app_self about, *self = &about;
    uint8_t *kept[PAIRS];
    pair pairs[PAIRS];
    (void)rank;
    if (!app_begin(self, arg))
        return 1;
    for (uint32_t round = 0; round < self->what->rounds; round++) {
        uint64_t name = (self->what->seed * 100 + round) << 20, kind = (self->what->seed + round) % 4;
        APP_TRY(open_pairs(pairs, name, (self->rank + 1) % self->size, (self->rank + self->size - 1) % self->size));
        for (uint64_t i = 0; i < TURNS; i++) {
            uint64_t seed = name + i * 1000, draws = seed;
            if (take_turn(self, pairs, seed, kind))
                return app_fail(self, "promises: round %u, turn %d", round, (int)i);
            if (app_draw(&draws, 6) == 0) {
                APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
                if (kind && cancel_one(self, &pairs[app_draw(&self->own, PAIRS)]))
                    return 1;
                APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
                if (cancel_alone(self, &pairs[app_draw(&draws, PAIRS)], seed + 500))
                    return 1;
                APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
            }
        }
        if (close_pairs(self, pairs, round + 1 == self->what->rounds, kept))
            return 1;
    }
    APP_TRY(MPI_Finalize());
    for (int i = 0; i < PAIRS; i++)
        free(kept[i]);
    return 0;
}
