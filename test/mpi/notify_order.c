/* np: 2 3 4 : notified access: a target that sees a count has the data of that put and of all earlier ones. A target of a get may write its
 * memory after it sees the count */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "../../examples/notify.h"
#include "check.h"

enum { LONG = 40000, TURNS = 40, AREA = 2 * LONG + 64 };

static int rank, size;
static MPI_Win win;
static MPI_Aint bases[64], unit; /* of the ranks' memory; of displacements. A dynamic window's are addresses, others count words */
static int64_t *mine, out[AREA], in[AREA];

static void fill(int64_t *words, int n, int turn)
{
    for (int i = 0; i < n; i++)
        words[i] = (int64_t)rank << 40 | turn << 20 | i;
}

static void check_words(const int64_t *words, int n, int from, int turn, const char *what)
{
    for (int i = 0; i < n; i++)
        CHECK(words[i] == ((int64_t)from << 40 | turn << 20 | i), "%s, turn %d, word %d of rank %d: the count came before the data: %lx",
              what, turn, i, from, (long)words[i]);
}

static MPI_Datatype gaps(int n)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(n, 1, 2, MPI_INT64_T, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

/* One message of the origin: how = 0 a notified put; 1 a plain put, then a notification without data; 2 a plain put, then a short notified
 * one; 3 an accumulate, then a notified put; 4 a notified put whose data have gaps there; 5 a get under way, then a notified put. */
static void send(int to, int how, int n, int turn)
{
    MPI_Datatype loose = gaps(n);
    fill(out, n, turn);
    if (how == 1 || how == 2)
        OK(MPI_Put(out, n, MPI_INT64_T, to, bases[to], n, MPI_INT64_T, win));
    if (how == 3)
        OK(MPI_Accumulate(out, n, MPI_INT64_T, to, bases[to], n, MPI_INT64_T, MPI_REPLACE, win));
    if (how == 5)
        OK(MPI_Get(in, n, MPI_INT64_T, to, bases[to] + LONG * unit, n, MPI_INT64_T, win));
    if (how == 0 || how == 5)
        OK(MPIX_Put_notify(out, n, MPI_INT64_T, to, bases[to], n, MPI_INT64_T, win, 1));
    else if (how == 1)
        OK(MPIX_Put_notify(out, 0, MPI_INT64_T, to, 0, 0, MPI_INT64_T, win, 1));
    else if (how == 4)
        OK(MPIX_Put_notify(out, n, MPI_INT64_T, to, bases[to], 1, loose, win, 1));
    else
        OK(MPIX_Put_notify(out, 1, MPI_INT64_T, to, bases[to] + (AREA - 1) * unit, 1, MPI_INT64_T, win, 1));
    OK(MPI_Type_free(&loose));
}

/* Rank 0 sends to the last rank, which answers by a notification. */
static void data_before_count(int how, int n)
{
    int last = size - 1;
    MPI_Count value;
    for (int turn = 1; turn <= TURNS; turn++) {
        if (rank == 0) {
            send(last, how, n, turn);
            OK(MPIX_Win_notify_wait(win, 0, turn, &value));
            OK(MPI_Win_flush(last, win));
        } else if (rank == last) {
            OK(MPIX_Win_notify_wait(win, 1, turn, &value));
            CHECK(value == turn, "%ld", (long)value);
            for (int i = 0; how == 4 && i < n; i++)
                mine[i] = mine[2 * i];
            check_words(mine, n, 0, turn, "put");
            memset(mine, 0xff, AREA * sizeof *mine);
            OK(MPIX_Put_notify(out, 0, MPI_INT64_T, 0, 0, 0, MPI_INT64_T, win, 0));
        }
    }
}

/* All others send to rank 0 on a counter of their own, without an answer: rank 0 sees each count with the data so far. */
static void many_origins(int n)
{
    MPI_Count value;
    if (rank) {
        for (int turn = 1; turn <= TURNS; turn++) {
            fill(out, n, turn);
            OK(MPI_Put(out, n, MPI_INT64_T, 0, bases[0] + (rank - 1) * 2 * n * unit, n, MPI_INT64_T, win));
            OK(MPIX_Put_notify(out, n, MPI_INT64_T, 0, bases[0] + ((rank - 1) * 2 + 1) * n * unit, n, MPI_INT64_T, win, rank));
            OK(MPIX_Win_notify_wait(win, 0, turn, &value));
            OK(MPI_Win_flush(0, win));
        }
        return;
    }
    int seen[16] = {0}, ids[16], index;
    MPI_Count next[16];
    for (int left = TURNS * (size - 1); left; left--) {
        int n_ids = 0;
        for (int r = 1; r < size; r++)
            if (seen[r] < TURNS)
                ids[n_ids] = r, next[n_ids++] = seen[r] + 1;
        OK(MPIX_Win_notify_waitany(win, n_ids, ids, next, &index, &value));
        int from = ids[index];
        CHECK(value == ++seen[from], "%ld", (long)value);
        check_words(mine + (from - 1) * 2 * n, n, from, seen[from], "first of two");
        check_words(mine + ((from - 1) * 2 + 1) * n, n, from, seen[from], "second of two");
        OK(MPIX_Put_notify(out, 0, MPI_INT64_T, from, 0, 0, MPI_INT64_T, win, 0));
    }
}

/* The last rank's memory is read by rank 0; when it sees the count it writes the next values. plain: a get without, then a short one
 * with. */
static void read_before_count(int n, int plain)
{
    int last = size - 1;
    MPI_Count value;
    for (int turn = 1; turn <= TURNS; turn++) {
        if (rank == last) {
            fill(mine, n, turn);
            OK(MPIX_Put_notify(out, 0, MPI_INT64_T, 0, 0, 0, MPI_INT64_T, win, 0)); /* it may read */
            OK(MPIX_Win_notify_wait(win, 1, turn, &value));
            memset(mine, 0xff, AREA * sizeof *mine);
        } else if (rank == 0) {
            OK(MPIX_Win_notify_wait(win, 0, turn, &value));
            if (plain) {
                OK(MPI_Get(in, n, MPI_INT64_T, last, bases[last], n, MPI_INT64_T, win));
                OK(MPIX_Get_notify(&in[AREA - 1], 1, MPI_INT64_T, last, bases[last], 1, MPI_INT64_T, win, 1));
            } else {
                OK(MPIX_Get_notify(in, n, MPI_INT64_T, last, bases[last], n, MPI_INT64_T, win, 1));
            }
            OK(MPI_Win_flush(last, win));
            check_words(in, n, last, turn, "get");
        }
    }
}

static void restart(void)
{
    MPI_Count value;
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int id = 0; id < size; id++)
        OK(MPIX_Win_notify_reset(win, id, &value));
    memset(mine, 0, AREA * sizeof *mine);
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void open_dynamic(void)
{
    MPI_Aint own;
    mine = malloc(AREA * sizeof *mine);
    OK(MPI_Get_address(mine, &own));
    OK(MPI_Allgather(&own, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, mine, AREA * sizeof *mine));
}

int main(int argc, char **argv)
{
    static const int lengths[] = {1, 100, 600, LONG};
    check_start(&argc, &argv, &rank, &size);
    for (int flavor = 0; flavor < 3; flavor++) {
        unit = flavor == 2 ? sizeof *mine : 1;
        if (flavor == 2)
            open_dynamic();
        else if (flavor == 1)
            OK(MPI_Win_create(mine = malloc(AREA * sizeof *mine), AREA * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        else
            OK(MPI_Win_allocate(AREA * sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
        OK(MPIX_Win_notify_init(win, size));
        OK(MPI_Win_lock_all(0, win));
        for (int i = 0; i < 4; i++) {
            int n = lengths[i];
            for (int how = 0; how < 6; how++) {
                restart();
                data_before_count(how, n);
            }
            restart();
            many_origins(n < AREA / 8 ? n : AREA / 8);
            restart();
            read_before_count(n, 0);
            restart();
            read_before_count(n, 1);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_free(&win));
        if (flavor)
            free(mine);
    }
    OK(MPI_Finalize());
    return 0;
}
