/* np: 2 3 4 : nonblocking and persistent collectives that differ in kind, form or order are errors that name both calls; no member hangs */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

/* The calls of all ranks but the last, and those of the last. First letter: I nonblocking, P persistent, B blocking. */
enum call {
    NOTHING, IBARRIER, IBCAST, IREDUCE, IALLREDUCE, IMAXIMUM, IGATHER, IALLGATHER, IALLTOALL,
    PBCAST, PALLREDUCE, PMAXIMUM, BALLREDUCE, BBARRIER, ISCAN, IGATHERV, IALLGATHERV, IALLTOALLV, IREDUCE_SCATTER, PREDUCE_SCATTER
};

typedef struct wrong {
    enum call call[2], odd[2]; /* in order; both are started before the first wait */
    int bytes, odd_bytes;
    const char *words, *odd_words;
} wrong;

static const wrong wrongs[] = {
    {{IALLREDUCE}, {IALLREDUCE}, 8, 800, "nonblocking allreduce of 8 bytes (each 8) by MPI_SUM", "nonblocking allreduce of 800 bytes"},
    {{IALLREDUCE}, {IALLREDUCE}, 200000, 8, "nonblocking allreduce of 200000 bytes", "nonblocking allreduce of 8 bytes"},
    {{IALLREDUCE}, {IMAXIMUM}, 8, 8, "by MPI_SUM", "by MPI_MAX"},
    {{IBARRIER}, {IALLREDUCE}, 0, 8, "nonblocking barrier", "nonblocking allreduce of 8 bytes"},
    {{IBCAST}, {IBCAST}, 1000, 16, "nonblocking bcast of 1000 bytes, root 0", "nonblocking bcast of 16 bytes, root 0"},
    {{IBCAST}, {IBCAST}, 16, 1000, "nonblocking bcast of 16 bytes", "nonblocking bcast of 1000 bytes"},
    {{IBCAST}, {IBCAST}, 16, 1 << 20, "nonblocking bcast of 16 bytes", "nonblocking bcast of 1048576 bytes"},
    {{IBCAST}, {IBCAST}, 1 << 20, 16, "nonblocking bcast of 1048576 bytes", "nonblocking bcast of 16 bytes"},
    {{IREDUCE}, {IALLREDUCE}, 8, 8, "nonblocking reduce of 8 bytes (each 8) by MPI_SUM, root 0", "nonblocking allreduce of 8 bytes"},
    {{IGATHER}, {IGATHER}, 16, 200000, "nonblocking gather of 16 bytes a rank, root 0", "nonblocking gather of 200000 bytes a rank"},
    {{IALLGATHER}, {IALLTOALL}, 64, 64, "nonblocking allgather of 64 bytes a rank", "nonblocking alltoall of 64 bytes a rank"},
    {{IALLREDUCE}, {BALLREDUCE}, 8, 8, "nonblocking allreduce of 8 bytes", " allreduce of 8 bytes"},
    {{BALLREDUCE}, {IALLREDUCE}, 8, 8, " allreduce of 8 bytes", "nonblocking allreduce of 8 bytes"},
    {{BBARRIER}, {IBARRIER}, 0, 0, " barrier", "nonblocking barrier"},
    {{PALLREDUCE}, {PMAXIMUM}, 8, 8, "persistent allreduce of 8 bytes (each 8) by MPI_SUM",
     "persistent allreduce of 8 bytes (each 8) by MPI_MAX"},
    {{PALLREDUCE}, {IALLREDUCE}, 8, 8, "", ""}, /* numbered apart: found only in a later call, by an unknown message */
    {{ISCAN}, {IALLREDUCE}, 8, 8, "nonblocking scan of 8 bytes (each 8) by MPI_SUM", "nonblocking allreduce of 8 bytes"},
    {{ISCAN}, {ISCAN}, 8, 800, "nonblocking scan of 8 bytes", "nonblocking scan of 800 bytes"},
    {{IALLGATHERV}, {IALLGATHER}, 64, 64, "nonblocking allgatherv of ", "nonblocking allgather of 64 bytes a rank"},
    {{IALLGATHERV}, {IALLGATHERV}, 64, 8, "nonblocking allgatherv of ", "nonblocking allgatherv of "},
    {{IALLTOALLV}, {IALLTOALL}, 64, 64, "nonblocking alltoallv", "nonblocking alltoall of 64 bytes a rank"},
    {{IGATHERV}, {IGATHER}, 64, 64, "nonblocking gatherv, root 0", "nonblocking gather of 64 bytes a rank"},
    {{IREDUCE_SCATTER}, {IREDUCE_SCATTER}, 64, 640, "nonblocking reduce_scatter of ", "nonblocking reduce_scatter of "},
    {{PREDUCE_SCATTER}, {PALLREDUCE}, 64, 64, "persistent reduce_scatter_block of ", "persistent allreduce of 64 bytes"},
    {{IALLREDUCE, IBARRIER}, {IBARRIER, IALLREDUCE}, 8, 8, "nonblocking allreduce of 8 bytes", "nonblocking barrier"},
    {{IBARRIER, IALLREDUCE}, {IALLREDUCE, IBARRIER}, 8, 8, "nonblocking barrier", "nonblocking allreduce of 8 bytes"},
};

static int rank, size, errors;
static char *out, *in;

static int start(enum call call, int n, MPI_Comm c, MPI_Request *req)
{
    MPI_Info none = MPI_INFO_NULL;
    int code, counts[4], displs[4], eighths[4];
    for (int i = 0; i < 4; i++) {
        counts[i] = n;
        eighths[i] = n / 8;
        displs[i] = i * n;
    }
    *req = MPI_REQUEST_NULL;
    switch (call) {
    case ISCAN: return MPI_Iscan(out, in, n / 8, MPI_INT64_T, MPI_SUM, c, req);
    case IGATHERV: return MPI_Igatherv(out, n, MPI_BYTE, in, counts, displs, MPI_BYTE, 0, c, req);
    case IALLGATHERV: return MPI_Iallgatherv(out, n, MPI_BYTE, in, counts, displs, MPI_BYTE, c, req);
    case IALLTOALLV: return MPI_Ialltoallv(out, counts, displs, MPI_BYTE, in, counts, displs, MPI_BYTE, c, req);
    case IREDUCE_SCATTER: return MPI_Ireduce_scatter(out, in, eighths, MPI_INT64_T, MPI_SUM, c, req);
    case PREDUCE_SCATTER: code = MPI_Reduce_scatter_block_init(out, in, n / 8, MPI_INT64_T, MPI_SUM, c, none, req); break;
    case IBARRIER: return MPI_Ibarrier(c, req);
    case IBCAST: return MPI_Ibcast(in, n, MPI_BYTE, 0, c, req);
    case IREDUCE: return MPI_Ireduce(out, in, n / 8, MPI_INT64_T, MPI_SUM, 0, c, req);
    case IALLREDUCE: return MPI_Iallreduce(out, in, n / 8, MPI_INT64_T, MPI_SUM, c, req);
    case IMAXIMUM: return MPI_Iallreduce(out, in, n / 8, MPI_INT64_T, MPI_MAX, c, req);
    case IGATHER: return MPI_Igather(out, n, MPI_BYTE, in, n, MPI_BYTE, 0, c, req);
    case IALLGATHER: return MPI_Iallgather(out, n, MPI_BYTE, in, n, MPI_BYTE, c, req);
    case IALLTOALL: return MPI_Ialltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, c, req);
    case BALLREDUCE: return MPI_Allreduce(out, in, n / 8, MPI_INT64_T, MPI_SUM, c);
    case BBARRIER: return MPI_Barrier(c);
    case PBCAST: code = MPI_Bcast_init(in, n, MPI_BYTE, 0, c, none, req); break;
    case PALLREDUCE: code = MPI_Allreduce_init(out, in, n / 8, MPI_INT64_T, MPI_SUM, c, none, req); break;
    case PMAXIMUM: code = MPI_Allreduce_init(out, in, n / 8, MPI_INT64_T, MPI_MAX, c, none, req); break;
    default: return MPI_SUCCESS;
    }
    return code ? code : MPI_Start(req);
}

static int finish(MPI_Request *req)
{
    int code = *req == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_Wait(req, MPI_STATUS_IGNORE);
    if (*req != MPI_REQUEST_NULL)
        OK(MPI_Request_free(req));
    return code;
}

static void check_text(int i, int code)
{
    const wrong *w = &wrongs[i];
    char text[MPI_MAX_ERROR_STRING];
    int length, class = class_of(code);
    CHECK(class == MPI_ERR_NOT_SAME || class == MPI_ERR_TRUNCATE, "case %d: class %d", i, class);
    OK(MPI_Error_string(code, text, &length));
    if (!strstr(text, "rank ") || !strstr(text, " called ") ||
        (!strstr(text, "has freed the communicator") && /* the other's call was not known yet */
         (!strstr(text, w->words) || !strstr(text, w->odd_words))))
        CHECK(0, "case %d: %s", i, text);
    errors++;
}

/* All ranks make both sequences, so that the wrong one repeats arguments of earlier calls (collectives/shmcoll_short.h). */
static void warm_up(const wrong *w, MPI_Comm c)
{
    MPI_Request req;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            OK(start(w->call[k], w->bytes, c, &req));
            OK(finish(&req));
            OK(start(w->odd[k], w->odd_bytes, c, &req));
            OK(finish(&req));
        }
}

static void go_wrong(int i, int used)
{
    const wrong *w = &wrongs[i];
    int is_odd = rank == size - 1, n = is_odd ? w->odd_bytes : w->bytes, errors = 0;
    int64_t one = 1, sum = 0;
    MPI_Request reqs[2];
    MPI_Comm c;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
    if (used)
        OK(MPI_Barrier(c));
    if (used > 1)
        warm_up(w, c);
    for (int k = 0; k < 2; k++) {
        int code = start(is_odd ? w->odd[k] : w->call[k], n, c, &reqs[k]);
        if (code && !errors++)
            check_text(i, code);
    }
    for (int k = 2; k-- > 0;) {
        int code = finish(&reqs[k]);
        if (code && !errors++)
            check_text(i, code);
    }
    for (int later = 0; later < 3; later++) {
        int code = MPI_Allreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, c);
        if (code && !errors++)
            check_text(i, code);
        CHECK(code || later == 0, "case %d: a call %d later went well", i, later);
    }
    OK(MPI_Comm_free(&c));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size, "case %d: another communicator suffers", i);
}

int main(void)
{
    int cases = (int)(sizeof wrongs / sizeof *wrongs);
    check_start(NULL, NULL, &rank, &size);
    out = calloc((size_t)size, 1 << 20);
    in = calloc((size_t)size, 1 << 20);
    for (int used = 0; used < 3; used++)
        for (int i = 0; i < cases; i++)
            if (*wrongs[i].words)
                go_wrong(i, used);
    CHECK(errors >= 3 * (cases - 1), "%d errors", errors);
    free(out);
    free(in);
    OK(MPI_Finalize());
    return 0;
}
