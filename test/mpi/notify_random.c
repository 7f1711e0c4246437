/* np: 1 2 3 4 8 : notified access: random programs by seed: at each count, all operations of its origin up to that one are there */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "../../examples/notify.h"
#include "check.h"

/* Each pair of ranks has a list of operations, the same draws on both sides: plain and notified puts and accumulates, short and long, with
 * gaps or not, each on words of its own. The target waits for random counts on the origin's counters, in any order, and checks the words of
 * all operations up to the last one that was counted. Arguments: first seed, number of seeds. */
enum { OPS = 12, LONGEST = 3000, COUNTERS = 3, ROUNDS = 4 };

typedef struct operation
{
    int at, n, stride, id; /* id: -1 not notified; stride: of the target's words */
    int by_accumulate;
    int64_t value;         /* word i: value + i */
} operation;

static int rank, size, area; /* area: words of each origin */
static uint64_t seed, own;
static MPI_Win win;
static int64_t *mine;

static int draw_plan(operation *ops, uint64_t round, int origin, int target)
{
    uint64_t state = seed * 7919 + round * 104729 + (uint64_t)(origin * 64 + target);
    int at = 0;
    check_random(&state);
    for (int i = 0; i < OPS; i++) {
        operation *o = &ops[i];
        int kind = (int)(check_random(&state) % 4);
        o->n = 1 + (int)(check_random(&state) % (kind == 0 ? LONGEST : kind == 1 ? 400 : 8));
        o->stride = check_random(&state) % 4 ? 1 : 2;
        o->id = check_random(&state) % 3 ? (int)(check_random(&state) % COUNTERS) : -1;
        o->by_accumulate = check_random(&state) % 5 == 0;
        o->value = (int64_t)check_random(&state) << 16;
        o->at = at;
        at += o->n * o->stride;
    }
    return at;
}

static void issue(const operation *o, int target, int64_t *buffer)
{
    MPI_Datatype type;
    MPI_Aint at = (MPI_Aint)rank * area + o->at;
    OK(MPI_Type_vector(o->n, 1, o->stride, MPI_INT64_T, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < o->n; i++)
        buffer[i] = o->value + i;
    if (o->by_accumulate)
        OK(MPI_Accumulate(buffer, o->n, MPI_INT64_T, target, at, 1, type, MPI_REPLACE, win));
    else if (o->id < 0)
        OK(MPI_Put(buffer, o->n, MPI_INT64_T, target, at, 1, type, win));
    else
        OK(MPIX_Put_notify(buffer, o->n, MPI_INT64_T, target, at, 1, type, win, rank * COUNTERS + o->id));
    if (o->by_accumulate && o->id >= 0)
        OK(MPIX_Put_notify(NULL, 0, MPI_BYTE, target, 0, 0, MPI_BYTE, win, rank * COUNTERS + o->id));
    OK(MPI_Type_free(&type));
}

static void check_operation(const operation *o, int origin, int which)
{
    for (int i = 0; i < o->n; i++) {
        int64_t is = mine[(size_t)origin * (size_t)area + (size_t)(o->at + i * o->stride)];
        CHECK(is == o->value + i, "seed %lu, operation %d of rank %d, word %d of %d is %lx", (unsigned long)seed, which, origin, i, o->n,
              (long)is);
    }
}

/* Waits for a random number of notifications of one origin on one counter, and checks what must be there. */
static void look(const operation *ops, int origin, int id)
{
    int in_all = 0, last = -1, want;
    MPI_Count value;
    for (int i = 0; i < OPS; i++)
        in_all += ops[i].id == id;
    want = (int)(check_random(&own) % (uint32_t)(in_all + 1));
    OK(MPIX_Win_notify_wait(win, origin * COUNTERS + id, want, &value));
    CHECK(value >= want && value <= in_all, "seed %lu, counter %d of rank %d: %ld of %d", (unsigned long)seed, id, origin, (long)value,
          in_all);
    for (int i = 0, n = 0; i < OPS; i++)
        if (ops[i].id == id && n++ < value)
            last = i;
    for (int i = 0; i <= last; i++)
        check_operation(&ops[i], origin, i);
}

static void run_round(uint64_t round, int64_t *buffers)
{
    static operation to[OPS], from[OPS];
    MPI_Count value;
    for (int i = 0; i < OPS; i++) /* to all targets in turn */
        for (int t = 0; t < size; t++) {
            draw_plan(to, round, rank, t);
            issue(&to[i], t, buffers + (i * size + t) * LONGEST);
        }
    for (int turn = 0; turn < 3 * size; turn++) {
        int origin = (int)(check_random(&own) % (uint32_t)size);
        draw_plan(from, round, origin, rank);
        look(from, origin, (int)(check_random(&own) % COUNTERS));
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD)); /* a flush has counted all puts */
    for (int origin = 0; origin < size; origin++) {
        int counts[COUNTERS] = {0};
        draw_plan(from, round, origin, rank);
        for (int i = 0; i < OPS; i++) {
            check_operation(&from[i], origin, i);
            if (from[i].id >= 0)
                counts[from[i].id]++;
        }
        for (int id = 0; id < COUNTERS; id++) {
            OK(MPIX_Win_notify_reset(win, origin * COUNTERS + id, &value));
            CHECK(value == counts[id], "seed %lu, counter %d of rank %d: %ld, not %d", (unsigned long)seed, id, origin, (long)value,
                  counts[id]);
        }
    }
    memset(mine, 0, (size_t)area * (size_t)size * sizeof *mine);
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 6;
    int64_t *buffers = malloc((size_t)OPS * (size_t)size * LONGEST * sizeof *buffers), *memory;
    area = OPS * LONGEST * 2;
    memory = calloc((size_t)area * (size_t)size, sizeof *memory);
    for (seed = first; seed < first + seeds; seed++) {
        MPI_Aint bytes = (MPI_Aint)area * size * (MPI_Aint)sizeof *mine;
        own = seed * 1000 + (uint64_t)rank;
        if (seed % 2)
            OK(MPI_Win_allocate(bytes, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
        else
            OK(MPI_Win_create(mine = memory, bytes, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        memset(mine, 0, (size_t)bytes);
        OK(MPIX_Win_notify_init(win, COUNTERS * size));
        OK(MPI_Win_lock_all(0, win));
        for (uint64_t round = 0; round < ROUNDS; round++)
            run_round(round, buffers);
        OK(MPI_Win_unlock_all(win));
        OK(MPI_Win_free(&win));
    }
    free(memory);
    free(buffers);
    OK(MPI_Finalize());
    return 0;
}
