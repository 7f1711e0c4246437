/* np: 2 : with WEFT_CHECKSUM=1 damage to a collective's data is an error that names the rank, the collective and the damaged byte */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum.h"

static const size_t lengths[] = {40, 900, 5000, 40000, 300000};
enum { LENGTHS = sizeof lengths / sizeof *lengths, KINDS = 3, ROUNDS = LENGTHS * KINDS * 4 };
static const char *const kinds[] = {"bcast", "allgather", "alltoall"};

static int perform(int kind, unsigned char *out, unsigned char *in, int bytes)
{
    switch (kind) {
    case 0: return MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    case 1: return MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    default: return MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
    }
}

/* Rank 0's block is damaged in rank 1's buffer. */
static int round_of(int rank, int round)
{
    int kind = round % KINDS, bytes = (int)lengths[round / KINDS % LENGTHS], code, class, length, flipped = 0;
    size_t at = (size_t)bytes / 3 + (size_t)round % 5, wrong;
    unsigned char *out = malloc(2 * (size_t)bytes), *in = calloc(2, (size_t)bytes);
    char text[MPI_MAX_ERROR_STRING], writer_text[80], byte[60];
    for (int block = 0; block < 2; block++) /* equal on both */
        check_fill(out + block * bytes, (size_t)bytes, (unsigned)(2 * round + rank));
    if (kind == 0 && rank == 0)
        check_fill(in, (size_t)bytes, (unsigned)(2 * round));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    flip_at = rank == 1 && round / KINDS % 2 ? in + at : NULL;
    if (flip_at)
        flipped = 1;
    code = perform(kind, out, in, bytes);
    flipped &= !flip_at;
    flip_at = NULL;
    wrong = check_wrong(in, (size_t)bytes, (unsigned)(2 * round));
    CHECK(wrong == (flipped ? at : (size_t)bytes), "%s of %d: byte %zu is wrong, %zu was flipped", kinds[kind], bytes, wrong, at);
    OK(MPI_Error_class(code, &class));
    CHECK(class == (flipped ? MPI_ERR_OTHER : MPI_SUCCESS), "%s of %d, flipped %d: class %d", kinds[kind], bytes, flipped, class);
    if (code) {
        OK(MPI_Error_string(code, text, &length));
        snprintf(writer_text, sizeof writer_text, "the data of rank 0 in %s", kinds[kind]);
        snprintf(byte, sizeof byte, "bit 0 of its byte %zu is wrong", at);
        CHECK((strstr(text, writer_text) || strstr(text, "the message from rank 0")) && strstr(text, byte), "%s", text);
    }
    free(out);
    free(in);
    return flipped;
}

int main(void)
{
    int rank, size, flips = 0;
    setenv("WEFT_CHECKSUM", "1", 1);
    check_start(NULL, NULL, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int round = 0; round < ROUNDS; round++)
        flips += round_of(rank, round);
    CHECK(rank == 0 || flips > ROUNDS / 8, "only %d bits were flipped", flips);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
