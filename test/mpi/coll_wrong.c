/* np: 2 4 : members of a node that call different collectives get errors that name both calls; no member hangs */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"
#include "coll_call.h"

#include <unistd.h>

enum { NO_RANK, ROOT, ODD, MAX = 3 << 18, LATER = 4 };
enum form { COLD, WARM, LATE, LATE_AND_TOLD, FORMS }; /* LATE: the truncated rank calls after the others' errors */

typedef struct wrong {
    enum call call, odd_call; /* of all ranks but the last, and of the last */
    int bytes, odd_bytes;     /* multiples of 8 */
    int odd_root;             /* the last rank passes itself as root */
    int truncated;            /* rank whose receive is truncated: MPI_ERR_TRUNCATE */
    const char *words, *odd_words;
} wrong;

static const wrong wrongs[] = {
    {BCAST, BCAST, 1000, 16, 0, ODD, "bcast of 1000 bytes, root 0", "bcast of 16 bytes, root 0"},
    {BCAST, BCAST, 16, 1000, 0, NO_RANK, "bcast of 16 bytes", "bcast of 1000 bytes"},
    {BCAST, BCAST, 1 << 20, 16, 0, ODD, "bcast of 1048576 bytes", "bcast of 16 bytes"},
    {BCAST, BCAST, 16, 1 << 20, 0, NO_RANK, "bcast of 16 bytes", "bcast of 1048576 bytes"},
    {BCAST, BCAST, 0, 8, 0, NO_RANK, "bcast of 0 bytes", "bcast of 8 bytes"},
    {BCAST, BCAST, 8, 0, 0, NO_RANK, "bcast of 8 bytes", "bcast of 0 bytes"},
    {BCAST, BCAST, 8, 8, 1, NO_RANK, "bcast of 8 bytes, root 0", "bcast of 8 bytes, root "},
    {BCAST, BARRIER, 8, 0, 0, NO_RANK, "bcast of 8 bytes", "barrier"},
    {BARRIER, BCAST, 0, 8, 0, NO_RANK, "barrier", "bcast of 8 bytes"},
    {BCAST, ALLREDUCE, 8, 8, 0, NO_RANK, "bcast of 8 bytes", "allreduce of 8 bytes"},
    {BCAST, GATHER, 8, 8, 0, NO_RANK, "bcast of 8 bytes", "gather of 8 bytes a rank, root 0"},
    {BCAST, GATHER, 8, 200000, 0, NO_RANK, "bcast of 8 bytes", "gather of 200000 bytes a rank"},
    {ALLREDUCE, BARRIER, 4096, 0, 0, NO_RANK, "allreduce of 4096 bytes (each 8) by MPI_SUM", "barrier"},
    {ALLREDUCE, MAXIMUM, 8, 8, 0, NO_RANK, "by MPI_SUM", "by MPI_MAX"},
    {ALLREDUCE, ALLREDUCE, 800, 8, 0, NO_RANK, "allreduce of 800 bytes", "allreduce of 8 bytes"},
    {ALLREDUCE, ALLREDUCE, 8, 400000, 0, NO_RANK, "allreduce of 8 bytes", "allreduce of 400000 bytes"},
    {REDUCE, REDUCE, 8, 800, 0, NO_RANK, "reduce of 8 bytes (each 8) by MPI_SUM, root 0", "reduce of 800 bytes"},
    {REDUCE, REDUCE, 8, 8, 1, NO_RANK, "reduce of 8 bytes", "reduce of 8 bytes"},
    {GATHER, GATHER, 16, 1000, 0, ROOT, "gather of 16 bytes a rank", "gather of 1000 bytes a rank"},
    {GATHER, GATHER, 16, 200000, 0, ROOT, "gather of 16 bytes a rank", "gather of 200000 bytes a rank"},
    {GATHER, GATHER, 200000, 16, 0, NO_RANK, "gather of 200000 bytes a rank", "gather of 16 bytes a rank"},
    {SCATTER, SCATTER, 1000, 16, 0, ODD, "scatter of 1000 bytes a rank", "scatter of 16 bytes a rank"},
    {ALLGATHER, ALLGATHER, 1000, 16, 0, NO_RANK, "allgather of 1000 bytes a rank", "allgather of 16 bytes a rank"},
    {ALLTOALL, ALLTOALL, 1000, 16, 0, NO_RANK, "alltoall of 1000 bytes a rank", "alltoall of 16 bytes a rank"},
    {NOTHING, BARRIER, 0, 0, 0, NO_RANK, "allreduce of 8 bytes", "barrier"},
};

static int rank, size;
static unsigned char *out, *in; /* MOST bytes for each rank; bytes that no call may write are 7 */

/* The first error's text names this rank's call and that of another rank. In a long gather, which may go by messages, the members that
 * exchange one compare their calls, and tell the others. */
static void check_text(int i, int code)
{
    const wrong *w = &wrongs[i];
    char text[MPI_MAX_ERROR_STRING], own_text[20];
    int length;
    OK(MPI_Error_string(code, text, &length));
    snprintf(own_text, sizeof own_text, "rank %d called ", rank);
    CHECK(strstr(text, own_text) || (w->call == GATHER && w->bytes > 100000), "case %d: %s", i, text);
    CHECK(strstr(text, rank == size - 1 ? w->odd_words : w->words), "case %d: %s", i, text);
    CHECK(strstr(text, w->words) && strstr(text, w->odd_words), "case %d: %s", i, text);
}

/* All ranks make both calls, so that the wrong one repeats arguments of an earlier one (collectives/shmcoll_short.h). */
static void warm_up(const wrong *w, MPI_Comm c)
{
    for (int i = 0; i < 2; i++) {
        OK(coll_call(w->call, out, in, w->bytes, w->bytes, 0, c));
        OK(coll_call(w->odd_call, out, in, w->odd_bytes, w->odd_bytes, w->odd_root ? size - 1 : 0, c));
    }
}

static int is_truncated(const wrong *w) { return w->truncated != NO_RANK && rank == (w->truncated == ROOT ? 0 : size - 1); }

/* is_told: the notification of the others' stop has arrived. */
static void be_late(int is_told)
{
    int flag;
    usleep(3000);
    for (int i = 0; is_told && i < 100; i++)
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
}

/* On a communicator of its own that was used before. */
static void go_wrong(int i, enum form form)
{
    const wrong *w = &wrongs[i];
    int is_odd = rank == size - 1, n = is_odd ? w->odd_bytes : w->bytes, blocks, first, code, errors = 0;
    int64_t one = 1, sum = 0;
    MPI_Comm c;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
    for (int before = 0; before < i % 11; before++)
        OK(MPI_Bcast(&one, 1, MPI_INT64_T, before % size, c));
    if (form == WARM)
        warm_up(w, c);
    if (form >= LATE && is_truncated(w))
        be_late(form == LATE_AND_TOLD);
    memset(in, 7, (size_t)(size * MAX));
    first = coll_call(is_odd ? w->odd_call : w->call, out, in, n, n, is_odd && w->odd_root ? rank : 0, c);
    blocks = n && (is_odd ? w->odd_call : w->call) >= GATHER ? size : 1;
    for (int at = blocks * n; at < size * MAX; at++)
        CHECK(in[at] == 7, "case %d: byte %d is overwritten", i, at);
    if (is_truncated(w))
        CHECK(class_of(first) == MPI_ERR_TRUNCATE, "case %d: class %d", i, class_of(first));
    else
        CHECK(!first || class_of(first) == MPI_ERR_NOT_SAME, "case %d: class %d", i, class_of(first));
    if (first)
        check_text(i, first);
    for (int later = 0; later < LATER; later++) {
        code = MPI_Allreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, c);
        CHECK(class_of(code) == MPI_ERR_NOT_SAME, "case %d: class %d", i, class_of(code));
        if (!first && !errors++)
            check_text(i, code);
    }
    OK(MPI_Comm_free(&c));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == size, "case %d: another communicator suffers", i);
}

/* One member frees the communicator, the others use it. */
static void leave(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int code, length;
    MPI_Comm c;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(c));
    if (rank != size - 1) {
        code = MPI_Barrier(c);
        CHECK(class_of(code) == MPI_ERR_NOT_SAME, "class %d", class_of(code));
        OK(MPI_Error_string(code, text, &length));
        CHECK(strstr(text, "called barrier; rank"), "%s", text);
    }
    OK(MPI_Comm_free(&c));
}

/* Member 1 learns that the others' calls differ while it has calls before them to make: these succeed. */
static void late(void)
{
    int64_t value = rank ? 0 : 5, sum = 0;
    int code, flag;
    MPI_Comm c;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
    OK(MPI_Barrier(c));
    if (rank == 1) {
        OK(MPI_Recv(NULL, 0, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)); /* they have stopped */
        for (int i = 0; i < 100; i++)
            OK(MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE)); /* and notified this rank */
    }
    for (int i = 0; i < 3; i++) {
        OK(MPI_Bcast(&value, 1, MPI_INT64_T, 0, c));
        CHECK(value == 5, "%ld", (long)value);
    }
    code = rank == size - 1 ? MPI_Allreduce(&value, &sum, 1, MPI_INT64_T, MPI_SUM, c) : MPI_Barrier(c);
    CHECK(class_of(code) == MPI_ERR_NOT_SAME, "class %d", class_of(code));
    if (rank == size - 1)
        OK(MPI_Send(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD));
    OK(MPI_Comm_free(&c));
}

/* A member's call that comes after the others' errors is right, and sends less than theirs. Only its first such call is compared. */
static void late_and_right(void)
{
    char data[100] = {0};
    int code;
    MPI_Comm c;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    OK(MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN));
    OK(MPI_Bcast(data, 100, MPI_BYTE, 0, c));
    if (rank == size - 1)
        be_late(1);
    code = rank == 1 ? MPI_Barrier(c) : MPI_Bcast(data, 100, MPI_BYTE, 0, c);
    CHECK(!code || class_of(code) == MPI_ERR_NOT_SAME, "class %d", class_of(code));
    for (int i = 0; i < 3; i++) {
        code = MPI_Bcast(data, rank == size - 1 ? 4 : 100, MPI_BYTE, 0, c);
        CHECK(!code || class_of(code) == MPI_ERR_NOT_SAME, "class %d", class_of(code));
    }
    OK(MPI_Comm_free(&c));
}

int main(void)
{
    MPI_Comm near;
    int mates;
    check_start(NULL, NULL, &rank, &size);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
    OK(MPI_Comm_size(near, &mates));
    OK(MPI_Comm_free(&near));
    OK(MPI_Allreduce(MPI_IN_PLACE, &mates, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (mates < size) {
        if (!rank)
            printf("the ranks do not share memory\n");
        OK(MPI_Finalize());
        return 77;
    }
    out = calloc((size_t)size, MAX);
    in = malloc((size_t)(size * MAX));
    for (enum form form = 0; form < FORMS; form++)
        for (int i = 0; i < (int)(sizeof wrongs / sizeof *wrongs); i++)
            if (form < LATE || wrongs[i].truncated != NO_RANK)
                go_wrong(i, form);
    leave();
    if (size > 2) {
        late();
        late_and_right();
    }
    free(out);
    free(in);
    OK(MPI_Finalize());
    return 0;
}
