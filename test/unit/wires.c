/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wires: see wires.h.
 */
#include "test/unit/wires.h"

#include <CUnit/CUnit.h>
#include <sys/socket.h>

void wires_open(wire *head, wire *daemon, uint32_t node, const unsigned char *head_secret, const unsigned char *daemon_secret)
{
    int ends[2];
    wire_hello hello;
    wire_answer answer;

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    wire_hello_make(node, &hello);
    wire_answer_make(head_secret, &hello, &answer);
    wire_open(head, ends[0], true, head_secret, &hello, &answer);
    wire_open(daemon, ends[1], false, daemon_secret, &hello, &answer);
}
