/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_ctrl_conn: the connection between head and daemon. Both prove that they know the secret. Frames arrive complete whatever the reads
 * return. A frame that was changed, repeated, dropped, sent back or signed with another secret is an error and is not returned. A
 * forwarded frame is signed anew for each connection.
 */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/unit/conn_pair.h"

static unsigned char secret[32], other_secret[32];

/* What `from` writes, taken off the connection. */
static size_t frame_catch(ctrl_conn *from, ctrl_conn *to, uint32_t kind, const char *body, size_t bytes, char *caught, size_t room)
{
    ctrl_conn_send(from, kind, body, bytes);
    ssize_t n = recv(to->fd, caught, room, 0);
    return n > 0 ? (size_t)n : 0;
}

static bool feed(ctrl_conn *to, const char *bytes, size_t count, ctrl_frame *frame)
{
    buffer_add(&to->in, bytes, count);
    return ctrl_conn_next(to, frame);
}

static void pair_close(ctrl_conn *head, ctrl_conn *daemon)
{
    ctrl_conn_close(head);
    ctrl_conn_close(daemon);
}

static void proofs(void)
{
    unsigned char proof[32], false_proof[32];
    ctrl_hello hello, changed;
    ctrl_answer answer;

    ctrl_hello_make(secret, 7, &hello);
    CU_ASSERT_TRUE(ctrl_hello_is_valid(secret, &hello));
    CU_ASSERT_TRUE(ctrl_hello_is_same_release(&hello));
    ctrl_answer_make(secret, &hello, &answer);
    CU_ASSERT_TRUE(ctrl_answer_is_valid(secret, &hello, &answer));
    CU_ASSERT_FALSE(ctrl_answer_is_valid(other_secret, &hello, &answer));
    changed = hello;
    changed.node ^= 1; /* a daemon cannot be given another's place on the way */
    CU_ASSERT_FALSE(ctrl_answer_is_valid(secret, &changed, &answer));
    ctrl_proof_make(secret, &hello, &answer, proof);
    ctrl_proof_make(other_secret, &hello, &answer, false_proof);
    CU_ASSERT_FALSE(weft_bytes_equal(proof, false_proof, 32));
    CU_ASSERT_FALSE(weft_bytes_equal(proof, answer.proof, 32)); /* the head's proof, sent back, is none */
    CU_ASSERT_FALSE(ctrl_hello_is_valid(other_secret, &hello));
    strcpy(hello.release, "0.0.7"); /* a stranger's, whatever it says */
    CU_ASSERT_FALSE(ctrl_hello_is_same_release(&hello));
    CU_ASSERT_FALSE(ctrl_hello_is_valid(secret, &hello));
    ctrl_answer_make(secret, &hello, &answer);
    CU_ASSERT_NOT_EQUAL(answer.is_other, 0);
}

/* What goes over the wire: bodies cannot be read, nor can equal ones be told, but those of output. */
static void encrypted(void)
{
    static const char body[] = "HOME=/home/user PASSWORD=that nobody on the way should read, longer than a block of the cipher";
    char first[256], second[256];
    ctrl_frame frame;
    ctrl_conn head, daemon;

    conn_pair_open(&head, &daemon, 7, secret, secret);
    size_t count = frame_catch(&head, &daemon, CTRL_START, body, sizeof body, first, sizeof first);
    CU_ASSERT_EQUAL(frame_catch(&head, &daemon, CTRL_START, body, sizeof body, second, sizeof second), count);
    CU_ASSERT_PTR_NULL(memmem(first, count, "PASSWORD", 8));
    CU_ASSERT_PTR_NULL(memmem(first, count, "cipher", 6));
    for (size_t at = 12; at + 16 <= count - 16; at += 16)
        CU_ASSERT_NOT_EQUAL(memcmp(first + at, second + at, 16), 0);
    CU_ASSERT_TRUE(feed(&daemon, first, count, &frame) && frame.bytes == sizeof body && !memcmp(frame.body, body, sizeof body));
    CU_ASSERT_TRUE(feed(&daemon, second, count, &frame) && frame.bytes == sizeof body && !memcmp(frame.body, body, sizeof body));
    count = frame_catch(&head, &daemon, CTRL_IN, body, sizeof body, first, sizeof first);
    CU_ASSERT_PTR_NOT_NULL(memmem(first, count, "PASSWORD", 8));
    CU_ASSERT_TRUE(feed(&daemon, first, count, &frame) && !memcmp(frame.body, body, sizeof body));
    pair_close(&head, &daemon);
}

static void any_split(void)
{
    char caught[4096], body[300];
    ctrl_frame frame;
    ctrl_conn head, daemon;

    memset(body, 'b', sizeof body);
    for (size_t step = 1; step < 400; step += 13) {
        conn_pair_open(&head, &daemon, 7, secret, secret);
        size_t count = 0, got = 0;
        for (uint32_t i = 0; i < 5; i++)
            count += frame_catch(&head, &daemon, i, body, 60 * i, caught + count, sizeof caught - count);
        for (size_t at = 0; at < count; at += step) {
            buffer_add(&daemon.in, caught + at, count - at < step ? count - at : step);
            for (; ctrl_conn_next(&daemon, &frame); got++)
                CU_ASSERT_TRUE(frame.kind == got && frame.bytes == 60 * got && !memcmp(frame.body, body, frame.bytes));
        }
        CU_ASSERT_EQUAL(got, 5);
        CU_ASSERT_PTR_NULL(daemon.error);
        pair_close(&head, &daemon);
    }
}

static void changed(void)
{
    char caught[256];
    ctrl_frame frame;
    ctrl_conn head, daemon;

    for (size_t bit = 0; bit < 8 * (12 + 20 + 16); bit++) {
        conn_pair_open(&head, &daemon, 7, secret, secret);
        size_t count = frame_catch(&head, &daemon, CTRL_SIGNAL, "twenty bytes of body", 20, caught, sizeof caught);
        CU_ASSERT_EQUAL_FATAL(count, 12 + 20 + 16);
        caught[bit / 8] = (char)(caught[bit / 8] ^ 1 << bit % 8);
        CU_ASSERT_FALSE(feed(&daemon, caught, count, &frame)); /* a longer length waits for more; nothing else may */
        CU_ASSERT_TRUE(daemon.error || bit < 32);
        pair_close(&head, &daemon);
    }
}

static void out_of_order(void)
{
    char first[256], second[256];
    ctrl_frame frame;
    ctrl_conn head, daemon;
    size_t a, b;

    conn_pair_open(&head, &daemon, 7, secret, secret);
    a = frame_catch(&head, &daemon, CTRL_SIGNAL, "one", 3, first, sizeof first);
    CU_ASSERT_TRUE(feed(&daemon, first, a, &frame));
    CU_ASSERT_FALSE(feed(&daemon, first, a, &frame)); /* repeated */
    CU_ASSERT_PTR_NOT_NULL(daemon.error);
    pair_close(&head, &daemon);

    conn_pair_open(&head, &daemon, 7, secret, secret);
    frame_catch(&head, &daemon, CTRL_SIGNAL, "one", 3, first, sizeof first);
    b = frame_catch(&head, &daemon, CTRL_SIGNAL, "two", 3, second, sizeof second);
    CU_ASSERT_FALSE(feed(&daemon, second, b, &frame)); /* the first is left out */
    CU_ASSERT_PTR_NOT_NULL(daemon.error);
    pair_close(&head, &daemon);

    conn_pair_open(&head, &daemon, 7, secret, secret);
    a = frame_catch(&head, &daemon, CTRL_MODEX_REQ, "one", 3, first, sizeof first);
    CU_ASSERT_FALSE(feed(&head, first, a, &frame)); /* turned back to its sender */
    CU_ASSERT_PTR_NOT_NULL(head.error);
    pair_close(&head, &daemon);

    conn_pair_open(&head, &daemon, 7, secret, other_secret);
    a = frame_catch(&head, &daemon, CTRL_SIGNAL, "one", 3, first, sizeof first);
    CU_ASSERT_FALSE(feed(&daemon, first, a, &frame)); /* made under another secret */
    CU_ASSERT_PTR_NOT_NULL(daemon.error);
    pair_close(&head, &daemon);
}

/* Head, a daemon between, one below: what passes keeps its kind, its node and its bytes, and is signed anew for each connection. */
static void passed_on(void)
{
    char first[256], second[256];
    ctrl_frame frame;
    ctrl_conn head, between, above, below;
    ctrl_conn way = {.via = &head, .node = 9, .fd = -1};

    conn_pair_open(&head, &between, 7, secret, secret);
    conn_pair_open(&above, &below, 7, secret, secret);
    CU_ASSERT_EQUAL(head.node, 7);
    size_t a = frame_catch(&way, &between, 1234, "body", 4, first, sizeof first);
    CU_ASSERT_TRUE_FATAL(feed(&between, first, a, &frame));
    CU_ASSERT_TRUE(frame.kind == 1234 && frame.node == 9 && frame.bytes == 4);
    ctrl_conn_forward(&above, &frame);
    ssize_t b = recv(below.fd, second, sizeof second, 0);
    CU_ASSERT_EQUAL_FATAL(b, (ssize_t)a);
    CU_ASSERT_TRUE_FATAL(feed(&below, second, a, &frame));
    CU_ASSERT_TRUE(frame.kind == 1234 && frame.node == 9 && frame.bytes == 4 && !memcmp(frame.body, "body", 4));
    pair_close(&above, &below);

    conn_pair_open(&above, &below, 7, secret, secret);
    CU_ASSERT_FALSE(feed(&below, first, a, &frame)); /* as it was, it is worth nothing on another connection */
    CU_ASSERT_PTR_NOT_NULL(below.error);
    pair_close(&above, &below);
    pair_close(&head, &between);
}

static void bodies(void)
{
    pack body = {0};

    pack_u32(&body, 5);
    pack_u64(&body, 1ull << 40);
    pack_text(&body, "text");
    pack_text(&body, NULL);
    unpack from = {.at = body.bytes.bytes, .left = body.bytes.used};
    CU_ASSERT_EQUAL(unpack_u32(&from), 5);
    CU_ASSERT_EQUAL(unpack_u64(&from), 1ull << 40);
    const char *text = unpack_text(&from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    CU_ASSERT_STRING_EQUAL(text, "text");
    CU_ASSERT_PTR_NULL(unpack_text(&from));
    CU_ASSERT_TRUE(!from.has_failed && !from.left);
    unpack_u32(&from);
    CU_ASSERT_TRUE(from.has_failed);
    body.bytes.bytes[body.bytes.used - 5] = 'x'; /* a text without its end */
    from = (unpack){.at = body.bytes.bytes + 12, .left = body.bytes.used - 12};
    CU_ASSERT_PTR_NULL(unpack_text(&from));
    CU_ASSERT_TRUE(from.has_failed);
    buffer_free(&body.bytes);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    ctrl_secret_make(secret);
    ctrl_secret_make(other_secret);
    CU_pSuite suite = CU_add_suite("ctrl_conn", NULL, NULL);
    CU_add_test(suite, "proofs", proofs);
    CU_add_test(suite, "encrypted", encrypted);
    CU_add_test(suite, "cut anyhow", any_split);
    CU_add_test(suite, "changed", changed);
    CU_add_test(suite, "out of order", out_of_order);
    CU_add_test(suite, "passed on", passed_on);
    CU_add_test(suite, "bodies", bodies);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
