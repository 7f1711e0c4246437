/* SPDX-License-Identifier: BSD-3-Clause
 *
 * checksum: damage to messages, for the tests of WEFT_CHECKSUM: a bit is flipped after the library copies into a receive buffer. The
 * functions below override libc's, because the program is linked before it.
 */
#ifndef TEST_MPI_CHECKSUM_H
#define TEST_MPI_CHECKSUM_H

#include <stddef.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "check.h"

/* The byte whose lowest bit is flipped after it is written; NULL: done. */
static unsigned char *volatile flip_at;

static void flip_within(void *to, size_t bytes)
{
    if (flip_at && flip_at >= (unsigned char *)to && flip_at < (unsigned char *)to + bytes) {
        *flip_at ^= 1;
        flip_at = NULL;
    }
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    unsigned char *volatile t = to; /* volatile: the compiler would make a call of memcpy out of this loop */
    const unsigned char *f = from;
    for (size_t i = 0; i < bytes; i++)
        t[i] = f[i];
    flip_within(to, bytes);
    return to;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there, unsigned long m,
                         unsigned long flags)
{
    ssize_t got = syscall(SYS_process_vm_readv, pid, here, n, there, m, flags);
    for (unsigned long i = 0; got > 0 && i < n; i++)
        flip_within(here[i].iov_base, here[i].iov_len);
    return got;
}

enum { CHECKSUM_REPEATS = 12 };
static const size_t checksum_bytes[] = {33, 100, 4000, 9000, 16000, 300000, 2000000};
enum { CHECKSUM_SIZES = sizeof checksum_bytes / sizeof *checksum_bytes };

/* Rank 0 sends, rank 1 receives, every second message with a bit flipped. `judge` checks code and buffer. */
typedef void checksum_judge(int code, int flipped, size_t bytes, size_t at, size_t wrong, int tag);

static inline void checksum_run(const char *knob, checksum_judge *judge)
{
    int rank, size, flips = 0;
    setenv("WEFT_CHECKSUM", knob, 1);
    check_start(NULL, NULL, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int round = 0; round < CHECKSUM_SIZES * CHECKSUM_REPEATS; round++) {
        size_t bytes = checksum_bytes[round % CHECKSUM_SIZES], at = bytes / 3 + (size_t)round % 7;
        int code, flipped, tag = 100 + round, want = round % 2;
        unsigned char *buf = malloc(bytes);
        check_fill(buf, bytes, (unsigned)round);
        if (rank == 0) {
            OK(MPI_Send(buf, (int)bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD));
        } else {
            memset(buf, 0, bytes);
            flip_at = want ? buf + at : NULL;
            code = MPI_Recv(buf, (int)bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            flipped = want && !flip_at;
            flip_at = NULL;
            flips += flipped;
            judge(code, flipped, bytes, at, check_wrong(buf, bytes, (unsigned)round), tag);
        }
        free(buf);
    }
    /* nothing is flipped where the sender writes (put, split); most messages must have been damaged */
    CHECK(rank == 0 || flips > CHECKSUM_SIZES * CHECKSUM_REPEATS / 4, "only %d bits were flipped", flips);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
}

#endif
