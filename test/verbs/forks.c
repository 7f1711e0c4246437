/* SPDX-License-Identifier: BSD-3-Clause
 *
 * forks: a rank forks, calls system() and posix_spawn() while registered memory is in use by the device. The children overwrite the memory
 * that they inherited and must change nothing in the parent. What arrives after the fork must arrive in the parent, which writes beside
 * the message on its pages: a page copied for that must not be the one that the device fills.
 */
#include "../mpi/check.h"

#include <mpi.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1000000, BESIDE = 64, ROUNDS = 6 };

extern char **environ;

static void child_is_over(pid_t child, const char *what)
{
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "%s", what);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %x", what, (unsigned)status);
}

/* While both messages are in flight: the sender does not receive yet, the receiver's buffers are posted. */
static void disturb(unsigned round, unsigned char *in, unsigned char *out)
{
    char *arguments[] = {"true", NULL};
    pid_t child = -1;
    switch (round % 3) {
    case 0:
        child = fork();
        if (child == 0) {
            memset(in, 0xDD, BYTES);
            memset(out, 0xDD, BYTES);
            _exit(0);
        }
        child_is_over(child, "fork");
        break;
    case 1:
        CHECK(system("exit 0") == 0, "system");
        break;
    default:
        CHECK(posix_spawnp(&child, "true", NULL, NULL, arguments, environ) == 0, "posix_spawn");
        child_is_over(child, "posix_spawn");
    }
}

int main(int argc, char **argv)
{
    int rank, size;
    check_start(&argc, &argv, &rank, &size);
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    unsigned char *memory = malloc(BYTES + 2 * BESIDE), *in = memory + BESIDE, *out = malloc(BYTES);
    CHECK(memory && out, "no memory");
    for (unsigned round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        check_fill(out, BYTES, 2 * round + 100 * (unsigned)rank);
        memset(memory, 0, BYTES + 2 * BESIDE);
        OK(MPI_Irecv(in, BYTES, MPI_BYTE, from, 1, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(out, BYTES, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[1]));
        disturb(round, in, out);
        memset(memory, 0xAB, BESIDE);
        memset(in + BYTES, 0xAB, BESIDE);
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (size_t at = 0; at < BYTES; at++)
            CHECK(in[at] == check_byte(2 * round + 100 * (unsigned)from, at), "round %u, byte %zu", round, at);
        for (size_t at = 0; at < BESIDE; at++)
            CHECK(memory[at] == 0xAB && in[BYTES + at] == 0xAB, "round %u, %zu bytes beside the message", round, at);
    }
    free(memory);
    free(out);
    MPI_Finalize();
    return 0;
}
