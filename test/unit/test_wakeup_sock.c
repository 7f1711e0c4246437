/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_wakeup_sock: a rank that sleeps on descriptors is woken by another process, every time; a sender that cannot reach it marks the
 * page; a program that closes the library's descriptors causes a new one only.
 */
#include <CUnit/Basic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "mem/rank_page.h"

#define ROUNDS 20000
#define LIMIT_MS 100000 /* a lost wake-up never comes: the other process waits for this one */

typedef struct shared {
    weft_rank_page page;
    _Atomic uint32_t sent, seen;
} shared;

static shared *shared_new(void)
{
    return mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static bool is_rung(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

/* Stores the data, then checks for a sleeper: here by a full fence, which needs no membarrier on the other side. */
static void send_one(shared *at, uint32_t n)
{
    atomic_store_explicit(&at->sent, n, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    weft_page_wake_if_asleep(&at->page);
}

static int send_all(shared *at)
{
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        while (atomic_load(&at->seen) < n - 1)
            if (n % 64 == 0)
                sched_yield();
        for (uint32_t spin = n * 2654435761u >> 20; spin > 0; spin--) /* another moment each time */
            __asm__ volatile("");
        send_one(at, n);
    }
    return 0;
}

static void every_wakeup_arrives(void)
{
    shared *at = shared_new();
    int fd = weft_wakeup_sock_open(&at->page.sock), other[2], status = -1;
    uint32_t late = 0, slept = 0;
    CU_ASSERT_FATAL(fd >= 0 && pipe(other) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(send_all(at));
    for (uint32_t n = 1; n <= ROUNDS && !late; n++) {
        while (atomic_load(&at->sent) < n && !late) {
            struct pollfd fds[] = {{.fd = other[0], .events = POLLIN}, {.fd = fd, .events = POLLIN}};
            weft_page_sleep_begin(&at->page);
            atomic_thread_fence(memory_order_seq_cst);
            if (atomic_load(&at->sent) < n) {
                slept++;
                late += poll(fds, 2, LIMIT_MS) == 0;
            }
            atomic_store(&at->page.asleep, 0);
            weft_wakeup_sock_drain(fd);
        }
        atomic_store(&at->seen, n);
    }
    if (late)
        kill(child, SIGKILL);
    waitpid(child, &status, 0);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(late, 0);
    CU_ASSERT(slept > 100);
    CU_ASSERT(!weft_wakeup_sock_is_unreachable(&at->page.sock));
    printf("(slept %u of %u times) ", slept, ROUNDS);
    weft_wakeup_sock_close(&at->page.sock, fd);
    CU_ASSERT_EQUAL(at->page.sock.name, 0);
    close(other[0]);
    close(other[1]);
    munmap(at, sizeof *at);
}

static void ring_once(weft_rank_page *page)
{
    weft_page_sleep_begin(page);
    weft_page_wake(page);
    CU_ASSERT_EQUAL(page->asleep, 0);
}

static void a_late_byte_only_shortens_the_next_sleep(void)
{
    weft_rank_page *page = &shared_new()->page;
    int fd = weft_wakeup_sock_open(&page->sock);
    ring_once(page);
    CU_ASSERT(is_rung(fd));
    weft_wakeup_sock_drain(fd);
    CU_ASSERT(!is_rung(fd));
    for (int i = 0; i < 5000; i++) /* not read: the queue is full long before */
        ring_once(page);
    CU_ASSERT(is_rung(fd));
    CU_ASSERT(!weft_wakeup_sock_is_unreachable(&page->sock));
    weft_wakeup_sock_drain(fd);
    CU_ASSERT(!is_rung(fd));
    weft_page_wake(page); /* no sleeper: no byte */
    CU_ASSERT(!is_rung(fd));
    weft_wakeup_sock_close(&page->sock, fd);
}

/* Bytes that sleepers have not read count against the sending socket: that must not silence it for the others. */
static void full_sockets_block_no_other(void)
{
    enum { RANKS = 600 };
    weft_rank_page *page[RANKS];
    int fd[RANKS], unheard = 0;
    for (int i = 0; i < RANKS; i++) {
        page[i] = &shared_new()->page;
        fd[i] = weft_wakeup_sock_open(&page[i]->sock);
        CU_ASSERT_FATAL(fd[i] >= 0);
    }
    for (int i = 0; i < RANKS; i++)
        ring_once(page[i]);
    for (int i = 0; i < RANKS; i++) {
        unheard += !is_rung(fd[i]);
        weft_wakeup_sock_close(&page[i]->sock, fd[i]);
    }
    CU_ASSERT_EQUAL(unheard, 0);
}

static void closing_all_descriptors_is_survived(void)
{
    weft_rank_page *page = &shared_new()->page;
    int fd = weft_wakeup_sock_open(&page->sock), status = -1;
    pid_t child = fork();
    if (child == 0) {
        weft_page_sleep_begin(page);
        weft_page_wake(page); /* makes this process's socket */
        for (int i = 3; i < 256; i++)
            close(i);
        for (int i = 3; i < 64 && dup(0) >= 0; i++) /* its number now belongs to another file */
            ;
        weft_page_sleep_begin(page);
        weft_page_wake(page);
        _exit(weft_wakeup_sock_is_unreachable(&page->sock));
    }
    waitpid(child, &status, 0);
    CU_ASSERT_EQUAL(status, 0);
    char byte;
    CU_ASSERT_EQUAL(read(fd, &byte, 1), 1);
    CU_ASSERT_EQUAL(read(fd, &byte, 1), 1);
    CU_ASSERT(!is_rung(fd));
    weft_wakeup_sock_close(&page->sock, fd);
}

static void unreachable_socket_is_marked(void)
{
    weft_rank_page *page = &shared_new()->page;
    int fd = weft_wakeup_sock_open(&page->sock), status = -1;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 3; i < 256; i++) /* the socket of this process was made in the old network namespace */
            close(i);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0 && unshare(CLONE_NEWNET) != 0)
            atomic_store(&page->sock.name, 1); /* unreachable from this network namespace: an unknown name looks the same */
        weft_wakeup_sock_send(&page->sock, weft_wakeup_sock_name(&page->sock));
        _exit(0);
    }
    waitpid(child, &status, 0);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT(weft_wakeup_sock_is_unreachable(&page->sock));
    close(fd);
}

int main(void)
{
    CU_initialize_registry();
    CU_pSuite suite = CU_add_suite("wakeup_sock", NULL, NULL);
    CU_add_test(suite, "every wake-up from another process arrives", every_wakeup_arrives);
    CU_add_test(suite, "a late byte only shortens the next sleep", a_late_byte_only_shortens_the_next_sleep);
    CU_add_test(suite, "many full sockets silence no other", full_sockets_block_no_other);
    CU_add_test(suite, "closing all descriptors is survived", closing_all_descriptors_is_survived);
    CU_add_test(suite, "an unreachable socket is marked", unreachable_socket_is_marked);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    return CU_get_number_of_failures() ? 1 : 0;
}
