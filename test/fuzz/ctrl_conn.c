/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctrl_conn: bytes that a stranger without the job's secret sends to the head or a daemon: a hello, frames. None is accepted. The lowest
 * bit of the first byte: the receiver is the head.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "test/fuzz/fuzz.h"
#include "tools/mpirun/ctrl_conn.h"

static const unsigned char secret[CTRL_SECRET_BYTES] = "a secret of the job";

static void hello_check(fuzz_input in)
{
    ctrl_hello hello;

    fuzz_take(&in, &hello, sizeof(hello));
    if (ctrl_hello_is_valid(secret, &hello))
        abort(); /* signed without the secret */
}

static void frames_check(fuzz_input in, bool is_head)
{
    ctrl_hello hello;
    ctrl_answer answer;
    ctrl_conn conn;
    ctrl_frame frame;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return;
    ctrl_hello_make(secret, 1, &hello);
    ctrl_answer_make(secret, &hello, &answer);
    if (ctrl_answer_is_valid(secret, &hello, (const ctrl_answer *)&hello))
        abort();
    ctrl_conn_open(&conn, ends[0], is_head, secret, &hello, &answer);
    if (send(ends[1], in.at, in.left, MSG_DONTWAIT) == (ssize_t)in.left)
        for (int i = 0; i < 4 && !conn.error; i++) {
            ctrl_conn_read(&conn);
            if (ctrl_conn_next(&conn, &frame))
                abort();
        }
    ctrl_conn_close(&conn);
    close(ends[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    uint8_t kind;

    fuzz_take(&in, &kind, 1);
    if (!in.left || in.left > 60000)
        return 0;
    hello_check(in);
    frames_check(in, kind & 1);
    return 0;
}
