/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_acceptor: what strangers on the network can do to the socket that awaits daemons: nothing but end their own connections.
 */
#include <CUnit/Basic.h>
#include <endian.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/mpirun/acceptor.h"

#define NODE 7u

static const unsigned char secret[CTRL_SECRET_BYTES] = "the secret of this job, 32 bytes";
static const unsigned char other_secret[CTRL_SECRET_BYTES] = "a secret that is of another job.";

typedef struct events {
    int other_releases, connections;
} events;

static bool is_expected(void *owner, uint32_t node)
{
    const events *seen = owner;
    return node == NODE && !seen->connections;
}

static void other_release(void *owner, uint32_t node, const char *why)
{
    events *seen = owner;
    CU_ASSERT_EQUAL(node, NODE);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "0.0.7"));
    seen->other_releases++;
}

static void connected(void *owner, uint32_t node, int fd, const ctrl_hello *hello, const ctrl_answer *answer)
{
    events *seen = owner;
    (void)hello;
    (void)answer;
    CU_ASSERT_EQUAL(node, NODE);
    seen->connections++;
    close(fd);
}

static void begin(acceptor *self, events *seen)
{
    acceptor_callbacks up = {.is_expected = is_expected, .other_release = other_release, .connected = connected, .owner = seen};
    *seen = (events){0};
    CU_ASSERT_EQUAL_FATAL(acceptor_open(self, secret, &up), 0);
}

static void turn(acceptor *self)
{
    struct pollfd set[ACCEPTOR_POLLFDS];
    acceptor_pollfds(self, set);
    if (poll(set, ACCEPTOR_POLLFDS, 20) > 0)
        acceptor_progress(self, set);
}

/* Connects from 127.0.0.from. */
static int dial(const acceptor *self, unsigned from)
{
    struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htobe32(0x7f000000u | from)};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htobe32(INADDR_LOOPBACK)};
    struct sockaddr_storage name;
    socklen_t bytes = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    getsockname(self->listener, (struct sockaddr *)&name, &bytes);
    to.sin_port = name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port : ((struct sockaddr_in *)&name)->sin_port;
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&source, sizeof source), 0);
    CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* What the head sends, bytes; 0: it closed the connection without a word. */
static ssize_t answer_of(acceptor *self, int fd, void *answer, size_t bytes)
{
    ssize_t n = -1;
    for (int i = 0; i < 200 && n < 0; i++) {
        turn(self);
        n = recv(fd, answer, bytes, MSG_DONTWAIT);
    }
    return n;
}

static ctrl_hello foreign_hello(const unsigned char *from)
{
    ctrl_hello hello;
    ctrl_hello_make(from, NODE, &hello);
    return hello;
}

static void stranger_of_another_release(void)
{
    acceptor self;
    events seen;
    ctrl_answer answer;
    begin(&self, &seen);
    for (int way = 0; way < 3; way++) {
        ctrl_hello hello = foreign_hello(way ? other_secret : secret);
        int fd = dial(&self, 2);
        if (way < 2)
            memset(hello.release, 0, sizeof hello.release), strcpy(hello.release, "0.0.7"); /* signed before, or by another secret */
        else
            memset(hello.mac, 0, sizeof hello.mac);
        CU_ASSERT_EQUAL(send(fd, &hello, sizeof hello, 0), sizeof hello);
        CU_ASSERT_EQUAL(answer_of(&self, fd, &answer, sizeof answer), 0);
        close(fd);
    }
    CU_ASSERT_EQUAL(seen.other_releases, 0);
    CU_ASSERT_EQUAL(seen.connections, 0);
    acceptor_close(&self);
}

static bool handshake(acceptor *self, events *seen, int fd)
{
    ctrl_hello hello = foreign_hello(secret);
    ctrl_answer answer;
    unsigned char proof[32];
    if (send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello ||
        answer_of(self, fd, &answer, sizeof answer) != sizeof answer || !ctrl_answer_is_valid(secret, &hello, &answer))
        return false;
    ctrl_proof_make(secret, &hello, &answer, proof);
    if (send(fd, proof, sizeof proof, MSG_NOSIGNAL) != sizeof proof)
        return false;
    for (int i = 0; i < 200 && !seen->connections; i++)
        turn(self);
    return seen->connections == 1;
}

/* Strangers that connect and say nothing: `before` the daemon, and `between` its connection and its hello. */
static void silent(unsigned from, int before, int between)
{
    acceptor self;
    events seen;
    int fds[256], count = 0;
    begin(&self, &seen);
    for (; count < before; count++) {
        fds[count] = dial(&self, 2);
        turn(&self);
    }
    int fd = dial(&self, from);
    turn(&self);
    for (; count < before + between; count++) {
        fds[count] = dial(&self, 2);
        turn(&self);
    }
    CU_ASSERT_TRUE(handshake(&self, &seen, fd));
    while (count)
        close(fds[--count]);
    close(fd);
    acceptor_close(&self);
}

static void silent_strangers(void)
{
    silent(3, 64, 0);   /* the daemon is the 65th */
    silent(3, 64, 100); /* and slow to speak: its address keeps it */
    silent(2, 200, 0);  /* it comes from the strangers' own address */
    silent(2, 64, 40);
}

/* Strangers that speak half a hello. */
static void half_words(void)
{
    acceptor self;
    events seen;
    int fds[100];
    begin(&self, &seen);
    for (int i = 0; i < 100; i++) {
        fds[i] = dial(&self, 2);
        CU_ASSERT_EQUAL(send(fds[i], "WEFTWIRE", 8, 0), 8);
        turn(&self);
    }
    int fd = dial(&self, 3);
    CU_ASSERT_TRUE(handshake(&self, &seen, fd));
    close(fd);
    for (int i = 0; i < 100; i++)
        close(fds[i]);
    acceptor_close(&self);
    CU_ASSERT_EQUAL(self.listener, -1);
    acceptor_close(&self);
}

/* A daemon with the job's secret and another release is reported. */
static void daemon_of_another_release(void)
{
    acceptor self;
    events seen;
    ctrl_answer answer;
    ctrl_hello hello = foreign_hello(secret);
    begin(&self, &seen);
    int fd = dial(&self, 2);
    weft_hmac hmac;
    memset(hello.release, 0, sizeof hello.release);
    strcpy(hello.release, "0.0.7");
    weft_hmac_begin(&hmac, secret);
    weft_hmac_add(&hmac, "hello", sizeof "hello");
    weft_hmac_add(&hmac, &hello, offsetof(ctrl_hello, mac));
    weft_hmac_end(&hmac, hello.mac);
    CU_ASSERT_EQUAL(send(fd, &hello, sizeof hello, 0), sizeof hello);
    CU_ASSERT_EQUAL(answer_of(&self, fd, &answer, sizeof answer), sizeof answer);
    CU_ASSERT_NOT_EQUAL(answer.is_other, 0);
    CU_ASSERT_EQUAL(seen.other_releases, 1);
    close(fd);
    acceptor_close(&self);
}

int main(void)
{
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("acceptor", NULL, NULL);
    CU_add_test(suite, "a stranger who claims another release", stranger_of_another_release);
    CU_add_test(suite, "a daemon of another release", daemon_of_another_release);
    CU_add_test(suite, "silent strangers", silent_strangers);
    CU_add_test(suite, "strangers with half a hello", half_words);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
