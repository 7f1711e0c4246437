/* np: 2 : if only one rank checks, it warns once, and messages pass in both directions */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

/* Selects one of the two processes before MPI_Init: the one that creates a file. */
static int is_first(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void exchange(int rank, size_t bytes, unsigned seed)
{
    unsigned char *out = malloc(bytes), *in = calloc(1, bytes);
    check_fill(out, bytes, seed + (unsigned)rank);
    OK(MPI_Sendrecv(out, (int)bytes, MPI_BYTE, 1 - rank, 7, in, (int)bytes, MPI_BYTE, 1 - rank, 7, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    CHECK(check_wrong(in, bytes, seed + 1 - (unsigned)rank) == bytes);
    free(out);
    free(in);
}

int main(void)
{
    static const size_t lengths[] = {1, 30, 5000, 400000, 3};
    char path[100], output[4000] = "";
    int rank, size, pipe_fds[2], saved_stderr = dup(2), times = 0, all;
    snprintf(path, sizeof path, "/tmp/weft-mixed-%d", (int)getppid());
    int checks = is_first(path);
    setenv("WEFT_CHECKSUM", checks ? "1" : "0", 1);
    if (pipe(pipe_fds))
        return 1;
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    dup2(pipe_fds[1], 2);
    check_start(NULL, NULL, &rank, &size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (checks)
        unlink(path);
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
        exchange(rank, lengths[i], 10 * i);
    dup2(saved_stderr, 2);
    if (read(pipe_fds[0], output, sizeof output - 1) < 0)
        output[0] = 0;
    for (const char *at = output; (at = strstr(at, "sends without checksums")); at++)
        times++;
    CHECK(times == checks, "%d warnings: %s", times, output);
    OK(MPI_Allreduce(&times, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == 1, "%d of two ranks check", all);
    OK(MPI_Finalize());
    return 0;
}
