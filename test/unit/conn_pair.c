/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conn_pair: see conn_pair.h.
 */
#include "test/unit/conn_pair.h"

#include <CUnit/CUnit.h>
#include <sys/socket.h>

void conn_pair_open(ctrl_conn *head, ctrl_conn *daemon, uint32_t node, const unsigned char *head_secret,
                    const unsigned char *daemon_secret)
{
    int ends[2];
    ctrl_hello hello;
    ctrl_answer answer;

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ctrl_hello_make(daemon_secret, node, &hello);
    ctrl_answer_make(head_secret, &hello, &answer);
    ctrl_conn_open(head, ends[0], true, head_secret, &hello, &answer);
    ctrl_conn_open(daemon, ends[1], false, daemon_secret, &hello, &answer);
}
