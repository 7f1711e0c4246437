/* np: 1 2 3 4 : windows with the info key weft_device_atomics: accumulates of all kinds, of all ranks on all, give what they give without
 * it */
/* SPDX-License-Identifier: BSD-3-Clause */
/* With the argument "must" each rank's device must have changed words. */
#include "device_counts.h"

enum { TURNS = 25, VECTOR = 600, OWN = 3, INTS = 4 };
/* Words of 8 bytes in a window; then OWN of each rank, INTS of 4 bytes, and a word that is not aligned. */
enum { TICKET, SWAPPED, BITS, LARGEST, PRODUCT, REAL, LAST, LIST, SERIES = LIST + VECTOR };

static int rank, size;
static MPI_Win win;
static char *memory;
static MPI_Datatype pair; /* first and third of a rank's own words */
static int64_t series[64][OWN], *tickets;

static size_t ints_at(void) { return (size_t)(SERIES + size * OWN) * 8; }
static size_t odd_at(void) { return ints_at() + INTS * 4 + 4; }
static size_t bytes(void) { return odd_at() + 8; }
static int64_t *word(int at) { return (int64_t *)(void *)memory + at; }

/* Neither these nor what follows waits for what a target does. */
static void sums(int target, int turn)
{
    const int64_t bit = (int64_t)1 << rank, largest = rank * 100 + turn, three = 3, last = 1000 + rank, one = 1;
    const double half = 0.5;
    const int small = rank + 1;
    int64_t list[VECTOR];
    int count = turn % 5 ? 1 + turn % 12 : VECTOR, from = turn % 5 ? (turn * 31 + rank) % (VECTOR - 12) : 0;
    for (int i = 0; i < count; i++)
        list[i] = rank + i;
    OK(MPI_Accumulate(&bit, 1, MPI_INT64_T, target, BITS * 8, 1, MPI_INT64_T, MPI_BOR, win));
    OK(MPI_Accumulate(&largest, 1, MPI_INT64_T, target, LARGEST * 8, 1, MPI_INT64_T, MPI_MAX, win));
    OK(MPI_Accumulate(&three, 1, MPI_UINT64_T, target, PRODUCT * 8, 1, MPI_UINT64_T, MPI_PROD, win));
    OK(MPI_Accumulate(&half, 1, MPI_DOUBLE, target, REAL * 8, 1, MPI_DOUBLE, MPI_SUM, win));
    OK(MPI_Accumulate(&last, 1, MPI_INT64_T, target, LAST * 8, 1, MPI_INT64_T, MPI_REPLACE, win));
    OK(MPI_Accumulate(list, count, MPI_INT64_T, target, (LIST + from) * 8, count, MPI_INT64_T, MPI_SUM, win));
    for (int i = 0; i < INTS; i++)
        OK(MPI_Accumulate(&small, 1, MPI_INT, target, (MPI_Aint)ints_at() + 4 * i, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, (MPI_Aint)odd_at(), 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_flush(target, win)); /* `list` is reused */
}

static void ticket(int target)
{
    const int64_t one = 1;
    int64_t got = -1;
    OK(MPI_Fetch_and_op(&one, &got, MPI_INT64_T, target, TICKET * 8, MPI_SUM, win));
    OK(MPI_Win_flush_local(target, win));
    CHECK(got >= 0 && got < size * TURNS, "ticket %lld", (long long)got);
    tickets[target * size * TURNS + got]++;
}

static void swap(int target)
{
    int64_t have = 0, next, seen = -1;
    for (;; have = seen) {
        next = have + 1;
        OK(MPI_Compare_and_swap(&next, &have, &seen, MPI_INT64_T, target, SWAPPED * 8, win));
        OK(MPI_Win_flush(target, win));
        if (seen == have)
            return;
        CHECK(seen > have, "the word fell from %lld to %lld", (long long)have, (long long)seen);
    }
}

/* Operations on own words, of which a device performs some and the target others, in their order. */
static void in_order(int target, int turn)
{
    int64_t *have = series[target], out[3] = {turn + 5, 7 * turn - 90, turn}, got[4][2] = {{0}}, first = have[0], none = 0;
    MPI_Aint at = (SERIES + rank * OWN) * 8;
    OK(MPI_Fetch_and_op(&out[0], &got[0][0], MPI_INT64_T, target, at, MPI_SUM, win));
    OK(MPI_Get_accumulate(&out[1], 1, MPI_INT64_T, &got[1][0], 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_MAX, win));
    OK(MPI_Get_accumulate(out, 2, MPI_INT64_T, got[2], 2, MPI_INT64_T, target, at, 1, pair, turn % 2 ? MPI_REPLACE : MPI_SUM, win));
    OK(MPI_Fetch_and_op(&none, &got[3][0], MPI_INT64_T, target, at, MPI_NO_OP, win));
    OK(MPI_Win_flush(target, win));
    CHECK(got[0][0] == first, "%lld, not %lld", (long long)got[0][0], (long long)first);
    first += out[0];
    CHECK(got[1][0] == first, "%lld, not %lld", (long long)got[1][0], (long long)first);
    first = first > out[1] ? first : out[1];
    CHECK(got[2][0] == first && got[2][1] == have[2], "%lld and %lld", (long long)got[2][0], (long long)got[2][1]);
    have[0] = turn % 2 ? out[0] : first + out[0];
    have[2] = turn % 2 ? out[1] : have[2] + out[1];
    CHECK(got[3][0] == have[0], "%lld, not %lld", (long long)got[3][0], (long long)have[0]);
}

static uint64_t power_of_3(int n)
{
    uint64_t power = 1;
    while (n--)
        power *= 3;
    return power;
}

static void check_list(void)
{
    int64_t must[VECTOR] = {0};
    for (int r = 0; r < size; r++)
        for (int turn = 0; turn < TURNS; turn++) {
            int count = turn % 5 ? 1 + turn % 12 : VECTOR, from = turn % 5 ? (turn * 31 + r) % (VECTOR - 12) : 0;
            for (int i = 0; i < count; i++)
                must[from + i] += r + i;
        }
    for (int i = 0; i < VECTOR; i++)
        CHECK(*word(LIST + i) == must[i], "word %d of the list is %lld, not %lld", i, (long long)*word(LIST + i), (long long)must[i]);
}

static void check_own(void)
{
    int64_t odd, all = (int64_t)size * TURNS;
    double real;
    memcpy(&odd, memory + odd_at(), sizeof odd);
    memcpy(&real, word(REAL), sizeof real);
    CHECK(*word(TICKET) == all && *word(SWAPPED) == all && odd == all, "%lld %lld %lld of %lld", (long long)*word(TICKET),
          (long long)*word(SWAPPED), (long long)odd, (long long)all);
    CHECK(*word(BITS) == ((int64_t)1 << size) - 1 && *word(LARGEST) == (size - 1) * 100 + TURNS - 1);
    CHECK((uint64_t)*word(PRODUCT) == power_of_3((int)all) && real == (double)all / 2, "%llx %g", (unsigned long long)*word(PRODUCT), real);
    CHECK(*word(LAST) >= 1000 && *word(LAST) < 1000 + size);
    for (int i = 0; i < INTS; i++)
        CHECK(((int *)(void *)(memory + ints_at()))[i] == TURNS * size * (size + 1) / 2);
    check_list();
    OK(MPI_Allreduce(MPI_IN_PLACE, tickets, size * size * TURNS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < size * size * TURNS; i++)
        CHECK(tickets[i] == 1, "ticket %d of %d was given %lld times", i % (size * TURNS), i / (size * TURNS), (long long)tickets[i]);
}

/* A window of the other flavors' memory, with the key or without it. */
static void use(int is_allocated, const char *value)
{
    MPI_Info info;
    char text[16] = "";
    int length = sizeof text, flag;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "weft_device_atomics", value));
    if (is_allocated) {
        OK(MPI_Win_allocate((MPI_Aint)bytes(), 1, info, MPI_COMM_WORLD, &memory, &win));
        memset(memory, 0, bytes());
    } else {
        memory = calloc(1, bytes());
        OK(MPI_Win_create(memory, (MPI_Aint)bytes(), 1, info, MPI_COMM_WORLD, &win));
    }
    *word(PRODUCT) = 1;
    OK(MPI_Info_free(&info));
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, "weft_device_atomics", &length, text, &flag));
    CHECK(!flag || !strcmp(text, value), "weft_device_atomics is %s", text); /* another MPI has no such key */
    OK(MPI_Info_free(&info));
    memset(series, 0, sizeof series);
    memset(tickets, 0, (size_t)(size * size) * TURNS * sizeof *tickets);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < size; i++) {
            int target = (rank + turn + i) % size;
            sums(target, turn);
            ticket(target);
            swap(target);
            in_order(target, turn);
        }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    check_own();
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Win_free(&win));
    if (!is_allocated)
        free(memory);
}

int main(int argc, char **argv)
{
    int provided;
    check_start(&argc, &argv, &rank, &size);
    CHECK(size <= 62);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    count();
    tickets = malloc((size_t)(size * size) * TURNS * sizeof *tickets);
    OK(MPI_Type_vector(2, 1, 2, MPI_INT64_T, &pair));
    OK(MPI_Type_commit(&pair));
    use(1, "false");
    CHECK(counted(DEVICE_WORDS) == 0);
    use(1, "true");
    CHECK(argc < 2 || counted(DEVICE_WORDS) > 0, "no word was changed by this rank's device");
    use(0, "true");
    OK(MPI_Type_free(&pair));
    free(tickets);
    OK(MPI_T_finalize());
    return MPI_Finalize();
}
