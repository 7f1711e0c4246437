/* np: 2 : where only one rank checks, it says so once, and messages pass in both directions */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

/* Which rank this is before MPI knows: the launcher gives each its own; here a file that only one can make decides. */
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
    char path[100], said[4000] = "";
    int rank, size, heard[2], kept = dup(2), times = 0, all;
    snprintf(path, sizeof path, "/tmp/weft-mixed-%d", (int)getppid());
    int checks = is_first(path);
    setenv("WEFT_CHECKSUM", checks ? "1" : "0", 1);
    if (pipe(heard))
        return 1;
    fcntl(heard[0], F_SETFL, O_NONBLOCK);
    dup2(heard[1], 2);
    check_start(NULL, NULL, &rank, &size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (checks)
        unlink(path);
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
        exchange(rank, lengths[i], 10 * i);
    dup2(kept, 2);
    if (read(heard[0], said, sizeof said - 1) < 0)
        said[0] = 0;
    for (const char *at = said; (at = strstr(at, "sends without checksums")); at++)
        times++;
    CHECK(times == checks, "said %d times: %s", times, said);
    OK(MPI_Allreduce(&times, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(all == 1, "%d of two ranks check", all);
    OK(MPI_Finalize());
    return 0;
}
