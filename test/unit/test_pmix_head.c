/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_pmix_head: requests of the nodes' PMIx servers to the head, and the channel that carries them. Replies reach their requester only; a
 * rank that has ended or is late delays no operation of others; long messages arrive complete and respect the channel's window.
 */
#include <CUnit/Basic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "test/unit/conn_pair.h"
#include "tools/mpirun/id_table.h"
#include "tools/mpirun/nameserver.h"
#include "tools/mpirun/pmix_channel.h"
#include "tools/mpirun/pmix_head.h"

#define NODES 3
#define RANKS 6

static uint32_t node_of[RANKS] = {0, 0, 1, 1, 2, 2};
static map nodes = {.node_count = NODES, .ranks = RANKS, .node_of = node_of};
static pmix_msg sent[NODES][32];
static uint32_t count[NODES];
static int said;

int report(int code, const char *format, ...)
{
    (void)format;
    said++;
    return code;
}

static void take(void *owner, uint32_t node, const pmix_msg *what)
{
    (void)owner;
    CU_ASSERT_FATAL(count[node] < 32);
    sent[node][count[node]++] = *what;
}

static void forget(void)
{
    for (uint32_t i = 0; i < NODES; i++)
        while (count[i])
            refbuf_release(sent[i][--count[i]].body);
}

static pmix_head *open_hub(void)
{
    pmix_msg_sender up = {.send = take};
    pmix_head *self = pmix_head_open(&nodes, &up);

    CU_ASSERT_PTR_NOT_NULL_FATAL(self);
    return self;
}

static refbuf *refbuf_from(pack *body)
{
    refbuf *whole = refbuf_copy(body->bytes.bytes + body->bytes.start, body->bytes.used);

    buffer_free(&body->bytes);
    return whole;
}

/* `ranks` ends with -1. */
static void come(pmix_head *self, uint32_t node, uint64_t ticket, const int *ranks, const char *data, uint32_t seconds)
{
    pack body = {0};
    uint32_t n = 0;

    while (ranks[n] >= 0)
        n++;
    pack_u32(&body, n);
    for (uint32_t i = 0; i < n; i++)
        pack_u32(&body, (uint32_t)ranks[i]);
    pack_bytes(&body, data, strlen(data));
    pmix_msg what = {.kind = PMIX_MSG_COLL, .rank = PMIX_COLL_FENCE, .ticket = ticket, .seconds = seconds, .body = refbuf_from(&body)};
    pmix_head_handle(self, node, &what);
}

static bool is_done(uint32_t node, uint32_t at, uint64_t ticket, int32_t status, const char *data)
{
    const pmix_msg *done = &sent[node][at];
    size_t bytes = done->body ? done->body->bytes : 0;

    return at < count[node] && done->kind == PMIX_MSG_DONE && done->ticket == ticket && done->status == status && bytes == strlen(data) &&
           (!bytes || !memcmp(done->body->data, data, bytes));
}

static const int all[] = {-1}, some[] = {0, 2, -1}, others[] = {1, 2, -1};

static void test_gather(void)
{
    pmix_head *self = open_hub();

    come(self, 0, 1, all, "a", 0);
    come(self, 1, 2, some, "x", 0);
    come(self, 1, 3, others, "y", 0);
    come(self, 2, 4, all, "c", 0);
    CU_ASSERT_EQUAL(count[0] + count[1] + count[2], 0);
    come(self, 0, 5, some, "z", 0);
    CU_ASSERT(is_done(0, 0, 5, PMIX_MSG_OK, "xz") && is_done(1, 0, 2, PMIX_MSG_OK, "xz") && count[2] == 0);
    come(self, 1, 6, all, "b", 0);
    CU_ASSERT(is_done(0, 1, 1, PMIX_MSG_OK, "acb") && is_done(1, 1, 6, PMIX_MSG_OK, "acb") && is_done(2, 0, 4, PMIX_MSG_OK, "acb"));
    come(self, 1, 7, some, "", 0); /* the next one of the same members is independent */
    come(self, 0, 8, some, "", 0);
    CU_ASSERT(is_done(0, 2, 8, PMIX_MSG_OK, "") && is_done(1, 2, 7, PMIX_MSG_OK, ""));
    forget();
    pmix_head_close(self);
}

static void pause_s(void)
{
    struct timespec nap = {.tv_sec = 1, .tv_nsec = 50000000};

    while (nanosleep(&nap, &nap))
        ;
}

/* A node that times out gets the status, and so does each later one; another fence beside it succeeds. */
static void test_late(void)
{
    pmix_head *self = open_hub();

    come(self, 0, 1, all, "", 1);
    come(self, 1, 2, all, "", 0);
    pause_s();
    pmix_head_deadlines(self);
    CU_ASSERT(is_done(0, 0, 1, PMIX_MSG_TIMEOUT, "") && is_done(1, 0, 2, PMIX_MSG_TIMEOUT, "") && count[2] == 0);
    come(self, 0, 3, all, "a", 0);
    come(self, 1, 4, all, "b", 0);
    come(self, 2, 5, all, "", 0);
    CU_ASSERT(is_done(2, 0, 5, PMIX_MSG_TIMEOUT, "") && count[0] == 1 && count[1] == 1);
    come(self, 2, 6, all, "c", 0);
    CU_ASSERT(is_done(0, 1, 3, PMIX_MSG_OK, "abc") && is_done(1, 1, 4, PMIX_MSG_OK, "abc") && is_done(2, 1, 6, PMIX_MSG_OK, "abc"));
    CU_ASSERT_EQUAL(pmix_head_deadlines(self), 0);
    forget();
    pmix_head_close(self);
}

static void gone(pmix_head *self, uint32_t rank)
{
    pmix_msg what = {.kind = PMIX_MSG_RANK_ENDED, .rank = rank};

    pmix_head_handle(self, node_of[rank], &what);
}

static void test_failed_members(void)
{
    pmix_head *self = open_hub();

    come(self, 0, 1, all, "a", 0);
    come(self, 1, 2, all, "b", 0);
    gone(self, 4);
    CU_ASSERT_EQUAL(count[0], 0);
    gone(self, 5); /* the last there */
    CU_ASSERT(is_done(0, 0, 1, PMIX_MSG_OK, "ab") && is_done(1, 0, 2, PMIX_MSG_OK, "ab"));
    come(self, 1, 3, all, "b", 0);
    come(self, 0, 4, all, "a", 0);
    CU_ASSERT(is_done(0, 1, 4, PMIX_MSG_OK, "ba") && count[2] == 0);
    come(self, 2, 5, all, "", 0); /* from an ended rank: only its own operation waits for it */
    come(self, 0, 6, all, "", 0);
    come(self, 1, 7, all, "", 0);
    CU_ASSERT(is_done(0, 2, 6, PMIX_MSG_OK, "") && is_done(1, 2, 7, PMIX_MSG_OK, "") && is_done(2, 0, 5, PMIX_MSG_OK, ""));
    forget();
    pmix_head_close(self);
}

static void test_fetch(void)
{
    pmix_msg ask = {.kind = PMIX_MSG_FETCH, .rank = 5, .ticket = 70}, answer = {.kind = PMIX_MSG_DMODEX_RESP, .status = PMIX_MSG_OK};
    pmix_msg soon = {.kind = PMIX_MSG_FETCH, .rank = 2, .ticket = 80, .seconds = 1};
    pmix_msg bad = {.kind = PMIX_MSG_FETCH, .rank = RANKS, .ticket = 81};
    pmix_head *self = open_hub();

    pmix_head_handle(self, 0, &ask);
    ask.ticket = 71;
    pmix_head_handle(self, 1, &ask);
    CU_ASSERT(count[2] == 2 && sent[2][0].kind == PMIX_MSG_DMODEX_REQ && sent[2][0].rank == 5 && sent[2][0].ticket != sent[2][1].ticket);
    answer.ticket = sent[2][1].ticket;
    answer.body = refbuf_copy("value", 5);
    pmix_head_handle(self, 2, &answer);
    CU_ASSERT(is_done(1, 0, 71, PMIX_MSG_OK, "value") && count[0] == 0);
    answer.body = refbuf_copy("value", 5);
    pmix_head_handle(self, 2, &answer); /* duplicate: no operation waits for it */
    CU_ASSERT_EQUAL(count[0] + count[1], 1);
    answer = (pmix_msg){.kind = PMIX_MSG_DMODEX_RESP, .status = PMIX_MSG_NOT_FOUND, .ticket = sent[2][0].ticket};
    pmix_head_handle(self, 2, &answer);
    CU_ASSERT(is_done(0, 0, 70, PMIX_MSG_NOT_FOUND, ""));
    pmix_head_handle(self, 0, &soon);
    pmix_head_handle(self, 0, &bad);
    CU_ASSERT(is_done(0, 1, 81, PMIX_MSG_INVALID, ""));
    uint64_t unacked = sent[1][1].ticket;
    pause_s();
    pmix_head_deadlines(self);
    CU_ASSERT(is_done(0, 2, 80, PMIX_MSG_TIMEOUT, ""));
    answer = (pmix_msg){.kind = PMIX_MSG_DMODEX_RESP, .status = PMIX_MSG_OK, .ticket = unacked, .body = refbuf_copy("x", 1)};
    pmix_head_handle(self, 1, &answer); /* too late */
    CU_ASSERT_EQUAL(count[0], 3);
    forget();
    pmix_head_close(self);
}

static int32_t publish(pmix_head *self, uint32_t rank, uint32_t range, uint32_t keep, const char *key, const char *value)
{
    uint32_t node = node_of[rank];
    pack body = {0};

    pack_u32(&body, range);
    pack_u32(&body, keep);
    pack_u32(&body, 1);
    pack_text(&body, key);
    pack_u32(&body, (uint32_t)strlen(value));
    pack_bytes(&body, value, strlen(value));
    pmix_msg what = {.kind = PMIX_MSG_PUBLISH, .rank = rank, .ticket = 1, .body = refbuf_from(&body)};
    pmix_head_handle(self, node, &what);
    for (uint32_t i = count[node]; i-- > 0;)
        if (sent[node][i].ticket == 1)
            return sent[node][i].status;
    return -1;
}

/* True if a look-up is answered at once, with so many values. */
static bool finds(pmix_head *self, uint32_t rank, bool waits, const char *key, int32_t status, const char *value)
{
    uint32_t node = node_of[rank], before = count[node], owner, bytes;
    pack body = {0};

    pack_u32(&body, waits);
    pack_u32(&body, 1);
    pack_text(&body, key);
    pmix_msg what = {.kind = PMIX_MSG_LOOKUP, .rank = rank, .ticket = 2, .body = refbuf_from(&body)};
    pmix_head_handle(self, node, &what);
    if (count[node] != before + 1 || sent[node][before].status != status)
        return false;
    if (status)
        return true;
    unpack from = {.at = sent[node][before].body->data, .left = sent[node][before].body->bytes};
    uint32_t found = unpack_u32(&from);
    owner = unpack_u32(&from);
    const char *name = unpack_text(&from);
    bytes = unpack_u32(&from);
    return found == 1 && owner < RANKS && name && !strcmp(name, key) && bytes == strlen(value) && bytes == from.left &&
           !memcmp(from.at, value, bytes);
}

static void test_names(void)
{
    pmix_head *self = open_hub();
    pack keys = {0};

    CU_ASSERT_EQUAL(publish(self, 0, NAMESERVER_RANGE_JOB, NAMESERVER_PERSIST_JOB, "port", "here"), PMIX_MSG_OK);
    CU_ASSERT_EQUAL(publish(self, 4, NAMESERVER_RANGE_JOB, NAMESERVER_PERSIST_JOB, "port", "there"), PMIX_MSG_DUPLICATE);
    CU_ASSERT(finds(self, 5, false, "port", PMIX_MSG_OK, "here"));
    CU_ASSERT(finds(self, 5, false, "none", PMIX_MSG_NOT_FOUND, ""));
    CU_ASSERT_EQUAL(publish(self, 2, NAMESERVER_RANGE_NODE, NAMESERVER_PERSIST_JOB, "near", "n"), PMIX_MSG_OK);
    CU_ASSERT(finds(self, 3, false, "near", PMIX_MSG_OK, "n") && finds(self, 4, false, "near", PMIX_MSG_NOT_FOUND, ""));
    CU_ASSERT_EQUAL(publish(self, 2, NAMESERVER_RANGE_JOB, NAMESERVER_PERSIST_FIRST_READ, "once", "1"), PMIX_MSG_OK);
    CU_ASSERT(finds(self, 0, false, "once", PMIX_MSG_OK, "1") && finds(self, 0, false, "once", PMIX_MSG_NOT_FOUND, ""));
    CU_ASSERT_EQUAL(publish(self, 2, NAMESERVER_RANGE_JOB, NAMESERVER_PERSIST_RANK, "life", "2"), PMIX_MSG_OK);
    gone(self, 2);
    CU_ASSERT(finds(self, 0, false, "life", PMIX_MSG_NOT_FOUND, ""));
    forget();
    CU_ASSERT_FALSE(finds(self, 1, true, "later", PMIX_MSG_OK, "")); /* it waits */
    CU_ASSERT_EQUAL(count[0], 0);
    publish(self, 4, NAMESERVER_RANGE_JOB, NAMESERVER_PERSIST_JOB, "later", "now");
    CU_ASSERT(count[0] == 1 && sent[0][0].ticket == 2 && sent[0][0].status == PMIX_MSG_OK);
    pack_u32(&keys, 0);
    pmix_msg what = {.kind = PMIX_MSG_UNPUBLISH, .rank = 0, .ticket = 3, .body = refbuf_from(&keys)};
    pmix_head_handle(self, 0, &what);
    CU_ASSERT(finds(self, 5, false, "port", PMIX_MSG_NOT_FOUND, "") && finds(self, 5, false, "later", PMIX_MSG_OK, "now"));
    forget();
    pmix_head_close(self);
}

/* Notes that were cut short, or name what is not there, get an answer and harm nothing. */
static void test_bad(void)
{
    pmix_head *self = open_hub();
    uint32_t kinds[] = {PMIX_MSG_COLL, PMIX_MSG_PUBLISH, PMIX_MSG_LOOKUP, PMIX_MSG_UNPUBLISH};

    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (size_t bytes = 0; bytes < 16; bytes++) {
            pmix_msg what = {.kind = kinds[k], .rank = 1, .ticket = 9, .body = refbuf_alloc(bytes)};
            memset(what.body->data, 0xff, bytes);
            pmix_head_handle(self, 0, &what);
            CU_ASSERT(count[0] == 1 && sent[0][0].status != PMIX_MSG_OK);
            forget();
        }
    pmix_msg event = {.kind = PMIX_MSG_EVENT, .body = refbuf_copy("e", 1)};
    pmix_head_handle(self, 1, &event);
    CU_ASSERT(count[0] == 1 && count[1] == 0 && count[2] == 1 && sent[0][0].body == sent[2][0].body);
    forget();
    pmix_head_close(self);
}

static void test_slots(void)
{
    id_table self = {0};
    int things[40];
    uint64_t numbers[40], first;

    for (int i = 0; i < 40; i++)
        numbers[i] = id_table_add(&self, &things[i]);
    for (int i = 0; i < 40; i++)
        CU_ASSERT(numbers[i] && id_table_lookup(&self, numbers[i]) == &things[i]);
    first = numbers[7];
    CU_ASSERT_PTR_EQUAL(id_table_remove(&self, first), &things[7]);
    CU_ASSERT_PTR_NULL(id_table_remove(&self, first));
    numbers[7] = id_table_add(&self, &things[7]);
    CU_ASSERT(numbers[7] != first && !id_table_lookup(&self, first) && id_table_lookup(&self, numbers[7]) == &things[7]);
    CU_ASSERT(!id_table_lookup(&self, 0) && !id_table_lookup(&self, 1000));
    id_table_close(&self);
}

static void pair_open(ctrl_conn *head, ctrl_conn *daemon)
{
    static const unsigned char secret[CTRL_SECRET_BYTES] = "of this test";

    conn_pair_open(head, daemon, 1, secret, secret);
}

/* Lets one end read; returns the number of complete messages, the last one in `whole`. */
static int turn(pmix_channel *self, ctrl_conn *at, pmix_msg *whole)
{
    ctrl_frame frame;
    int notes = 0;

    ctrl_conn_flush(at);
    ctrl_conn_read(at);
    while (ctrl_conn_next(at, &frame)) {
        unpack from = {.at = frame.body, .left = frame.bytes};
        if (frame.kind == CTRL_FRAGMENT)
            notes += pmix_channel_recv(self, at, &frame, whole) == 1;
        else if (frame.kind == CTRL_FRAGMENT_ACK)
            pmix_channel_acked(self, unpack_u32(&from));
    }
    pmix_channel_flush(self, at);
    return notes;
}

static void test_long_messages(void)
{
    size_t sizes[] = {0, 1, PMIX_FRAGMENT_MAX - 1, PMIX_FRAGMENT_MAX, PMIX_FRAGMENT_MAX + 1, 10 * PMIX_CHANNEL_WINDOW + 3};
    pmix_channel to = {0}, from = {0};
    ctrl_conn head, daemon;

    pair_open(&head, &daemon);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        pmix_msg what = {.kind = PMIX_MSG_DONE, .status = -3, .ticket = 1ull << 40 | s, .rank = 4, .seconds = 5,
                         .body = refbuf_alloc(sizes[s])};
        pmix_msg came = {0};
        for (size_t i = 0; i < sizes[s]; i++)
            what.body->data[i] = (char)(i * 7 + i / 256);
        refbuf *kept = refbuf_acquire(what.body);
        CU_ASSERT_EQUAL(pmix_channel_queue(&to, &what), 0);
        pmix_channel_flush(&to, &head);
        CU_ASSERT(to.in_flight <= PMIX_CHANNEL_WINDOW + PMIX_FRAGMENT_MAX + 64); /* unread, so no more is sent */
        for (int i = 0; i < 1000 && !turn(&from, &daemon, &came); i++)
            turn(&to, &head, NULL);
        CU_ASSERT(came.kind == PMIX_MSG_DONE && came.status == -3 && came.ticket == what.ticket && came.rank == 4 && came.seconds == 5);
        CU_ASSERT(sizes[s] ? came.body && came.body->bytes == sizes[s] && !memcmp(came.body->data, kept->data, sizes[s]) : !came.body);
        refbuf_release(came.body);
        refbuf_release(kept);
        turn(&to, &head, NULL);
    }
    CU_ASSERT(!head.error && !daemon.error && to.queued_bytes == 0);
    pmix_channel_close(&to);
    pmix_channel_close(&from);
    ctrl_conn_close(&head);
    ctrl_conn_close(&daemon);
}

/* A length that cannot be, and a piece too long for its note. */
static void test_invalid_messages(void)
{
    for (int which = 0; which < 2; which++) {
        pmix_channel self = {0};
        ctrl_conn head, daemon;
        ctrl_frame frame = {.kind = CTRL_FRAGMENT};
        pack body = {0};
        pmix_msg whole;
        pair_open(&head, &daemon);
        for (int i = 0; i < 4; i++)
            pack_u32(&body, PMIX_MSG_DONE);
        pack_u64(&body, 0);
        pack_u64(&body, which ? 3 : (uint64_t)REFBUF_MAX + 1);
        pack_bytes(&body, "four", 4);
        frame.body = body.bytes.bytes;
        frame.bytes = body.bytes.used;
        CU_ASSERT_EQUAL(pmix_channel_recv(&self, &head, &frame, &whole), -1);
        CU_ASSERT_PTR_NOT_NULL(head.error);
        buffer_free(&body.bytes);
        pmix_channel_close(&self);
        ctrl_conn_close(&head);
        ctrl_conn_close(&daemon);
    }
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("pmix_head", NULL, NULL);
    CU_add_test(suite, "fences", test_gather);
    CU_add_test(suite, "fences that time out", test_late);
    CU_add_test(suite, "fences without ended ranks", test_failed_members);
    CU_add_test(suite, "what others have put", test_fetch);
    CU_add_test(suite, "names", test_names);
    CU_add_test(suite, "malformed messages; events", test_bad);
    CU_add_test(suite, "slots", test_slots);
    CU_add_test(suite, "long messages", test_long_messages);
    CU_add_test(suite, "invalid messages", test_invalid_messages);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed || said ? 1 : 0;
}
