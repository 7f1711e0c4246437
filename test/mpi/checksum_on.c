/* np: 2 : with WEFT_CHECKSUM=1 exactly the damaged messages are errors, which name source, tag and byte */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum.h"

static void judge(int code, int flipped, size_t bytes, size_t at, size_t wrong, int tag)
{
    CHECK(wrong == (flipped ? at : bytes), "tag %d, %zu bytes: byte %zu is wrong, %zu was flipped", tag, bytes, wrong, at);
    CHECK(code == (flipped ? MPI_ERR_OTHER : MPI_SUCCESS), "tag %d, %zu bytes, flipped %d: code %d", tag, bytes, flipped, code);
    if (code) {
        char text[MPI_MAX_ERROR_STRING], message[80], byte[60];
        int length;
        OK(MPI_Error_string(code, text, &length));
        snprintf(message, sizeof message, "message from rank 0 with tag %d, %zu bytes", tag, bytes);
        snprintf(byte, sizeof byte, "bit 0 of its byte %zu is wrong", at);
        CHECK(strstr(text, message) && strstr(text, byte), "%s", text);
    }
}

int main(void)
{
    checksum_run("1", judge);
    return 0;
}
