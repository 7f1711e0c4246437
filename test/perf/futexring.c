/* SPDX-License-Identifier: BSD-3-Clause
 *
 * futexring: a ring of futex hand-overs: N processes on the allowed CPUs, one token; each process sleeps until it has the token and wakes
 * the next. A round of it is the scheduler's share of a collective of N ranks on fewer CPUs: each must run once, by one wake-up and one
 * context switch. Run by test/perf/compare.
 *    futexring N [MILLISECONDS]      prints JSON: microseconds of a hand-over and of a round (median of 9 samples, min, max)
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum
{
    MAX = 256,
    SAMPLES = 9
};

typedef struct seat
{
    _Alignas(64) _Atomic uint32_t token; /* rounds that have reached this process */
} seat;

typedef struct ring
{
    seat seats[MAX];
    _Atomic uint32_t last; /* the last round, after which all processes exit; UINT32_MAX: not known yet */
} ring;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void await(seat *s, uint32_t round)
{
    uint32_t seen;

    while ((seen = atomic_load_explicit(&s->token, memory_order_acquire)) < round) {
        syscall(SYS_futex, &s->token, FUTEX_WAIT, seen, NULL, NULL, 0);
    }
}

static void hand(seat *s, uint32_t round)
{
    atomic_store_explicit(&s->token, round, memory_order_release);
    syscall(SYS_futex, &s->token, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void follow(ring *r, int me, int n)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint32_t round = 1; round <= atomic_load(&r->last); round++) {
        await(&r->seats[me], round);
        hand(&r->seats[(me + 1) % n], round);
    }
    _exit(0);
}

/* Seconds of `rounds` rounds. The parent has place 0: it hands over to 1 and waits until the token is back. */
static double lead(ring *r, int n, uint32_t *round, long rounds)
{
    double start = now();

    for (long i = 0; i < rounds; i++) {
        ++*round;
        hand(&r->seats[1 % n], *round);
        await(&r->seats[0], *round);
    }
    return now() - start;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(ring *r, int n, double seconds)
{
    double samples[SAMPLES], one;
    uint32_t round = 0;
    long rounds;

    one = lead(r, n, &round, 100) / 100;
    rounds = (long)(seconds / SAMPLES / one) + 1;
    for (int i = 0; i < SAMPLES; i++) {
        samples[i] = lead(r, n, &round, rounds) / (double)rounds * 1e6;
    }
    qsort(samples, SAMPLES, sizeof samples[0], ascending);
    printf("{\"processes\": %d, \"handover_us\": %.3f, \"round_us\": %.3f, \"round_min_us\": %.3f, \"round_max_us\": %.3f}\n",
           n, samples[SAMPLES / 2] / n, samples[SAMPLES / 2], samples[0], samples[SAMPLES - 1]);
    fflush(stdout);
    /* Set before the token of that round starts, so each process reads it after its own hand-over, and none exits without handing over. */
    atomic_store(&r->last, round + 1);
    lead(r, n, &round, 1);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 0, code = 0, status;
    double seconds = (argc > 2 ? atof(argv[2]) : 500) / 1000;
    ring *r;

    if (n < 2 || n > MAX || !(seconds > 0)) {
        fprintf(stderr, "usage: futexring N [MILLISECONDS]     N from 2 to %d\n", MAX);
        return 2;
    }
    r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED) {
        perror("futexring: mmap");
        return 1;
    }
    atomic_store(&r->last, UINT32_MAX);
    alarm(120);
    for (int i = 1; i < n; i++) {
        pid_t pid = fork();
        if (pid < 0) {
            perror("futexring: fork");
            return 1;
        }
        if (!pid) {
            follow(r, i, n);
        }
    }
    measure(r, n, seconds);
    for (int i = 1; i < n; i++) {
        wait(&status);
        code |= status != 0;
    }
    return code;
}
