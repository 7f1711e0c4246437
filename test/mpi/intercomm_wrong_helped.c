/* np: 2 : leaders that wait for each other get an error also while the progress thread works for the program */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "check.h"

enum { LONG = 1 << 20 };

int main(int argc, char **argv)
{
    static char in[LONG], out[LONG];
    MPI_Request pending;
    MPI_Comm self, inter;
    int rank, size, code;
    setenv("WEFT_PROGRESS_THREAD", "on", 1);
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_dup(MPI_COMM_SELF, &self));
    OK(MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN));
    OK(MPI_Irecv(in, LONG, MPI_CHAR, 1 - rank, 77, MPI_COMM_WORLD, &pending));
    code = MPI_Intercomm_create(self, 0, MPI_COMM_WORLD, 1 - rank, 10 + rank, &inter); /* other tags */
    OK(MPI_Error_class(code, &code));
    CHECK(code == MPI_ERR_NOT_SAME, "class %d", code);
    OK(MPI_Send(out, LONG, MPI_CHAR, 1 - rank, 77, MPI_COMM_WORLD));
    OK(MPI_Wait(&pending, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&self));
    OK(MPI_Finalize());
    return 0;
}
