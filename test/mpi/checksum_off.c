/* np: 2 : without WEFT_CHECKSUM the same damage is not detected, so checksum_on can fail */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum.h"

static void judge(int code, int flipped, size_t bytes, size_t at, size_t wrong, int tag)
{
    CHECK(wrong == (flipped ? at : bytes), "tag %d, %zu bytes: byte %zu is wrong, %zu was flipped", tag, bytes, wrong, at);
    CHECK(code == MPI_SUCCESS, "tag %d, %zu bytes: code %d", tag, bytes, code);
}

int main(void)
{
    checksum_run("0", judge);
    return 0;
}
