/* np: 2 : with WEFT_CHECKSUM=1 a receive shorter than its message reports damage to its part, else truncation */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum.h"

static const size_t cuts[][2] = {{100, 40}, {9000, 8000}, {16000, 1}, {300000, 5000}, {300000, 299999}, {2000000, 1500000},
                                 {70000, 0}};
enum { CUTS = sizeof cuts / sizeof *cuts, ROUNDS = CUTS * CHECKSUM_REPEATS };

static int receive(int round)
{
    size_t bytes = cuts[round % CUTS][0], capacity = cuts[round % CUTS][1], at = capacity / 3, wrong;
    int code, class, flipped, length, want = round / CUTS % 2 && capacity;
    unsigned char *buf = calloc(1, bytes), *kept = calloc(1, bytes);
    char text[MPI_MAX_ERROR_STRING], message[80], byte[60];
    flip_at = want ? buf + at : NULL;
    code = MPI_Recv(buf, (int)capacity, MPI_BYTE, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    flipped = want && !flip_at;
    flip_at = NULL;
    check_fill(kept, bytes, (unsigned)round);
    for (wrong = 0; wrong < capacity && buf[wrong] == kept[wrong]; wrong++)
        ;
    CHECK(wrong == (flipped ? at : capacity), "%zu of %zu bytes: byte %zu is wrong", capacity, bytes, wrong);
    OK(MPI_Error_class(code, &class));
    CHECK(class == (flipped ? MPI_ERR_OTHER : MPI_ERR_TRUNCATE), "%zu of %zu bytes, flipped %d: class %d", capacity, bytes, flipped,
          class);
    OK(MPI_Error_string(code, text, &length));
    snprintf(message, sizeof message, "message from rank 0 with tag %d", round);
    snprintf(byte, sizeof byte, "%zu bytes, was damaged in transit: bit 0 of its byte %zu is wrong", bytes, at);
    CHECK(strstr(text, message) && (!flipped || strstr(text, byte)), "%s", text);
    for (; wrong < bytes && !flipped; wrong++)
        CHECK(wrong < capacity || buf[wrong] == 0, "byte %zu was written, behind a receive of %zu", wrong, capacity);
    free(buf);
    free(kept);
    return flipped;
}

int main(void)
{
    int rank, size, flips = 0;
    setenv("WEFT_CHECKSUM", "1", 1);
    check_start(NULL, NULL, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = cuts[round % CUTS][0];
        unsigned char *buf = malloc(bytes);
        check_fill(buf, bytes, (unsigned)round);
        if (rank == 0)
            OK(MPI_Send(buf, (int)bytes, MPI_BYTE, 1, round, MPI_COMM_WORLD));
        else
            flips += receive(round);
        free(buf);
    }
    CHECK(rank == 0 || flips > ROUNDS / 8, "only %d bits were flipped", flips);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
