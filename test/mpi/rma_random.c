/* np: 1 2 3 4 8 : random one-sided programs by seed against a sequential model: any flavor, synchronization, call and type */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

/* A program is a sequence of phases. In a phase each word of each window is either left alone, put by one rank, got by any, accumulated by
 * any with the phase's operator, fetched (with that operator or MPI_NO_OP) by one rank in order, or swapped by one rank in order. So the
 * outcome does not depend on timing. Arguments: first seed, number of seeds. */
enum { WORDS = 96, PHASES = 24, OPS = 12, LONGEST = 24, RANKS = 32 };

typedef enum use { FREE, PUT, GET, ACCUMULATE, FETCH, SWAP, USES } use;
typedef enum way { FENCE, PSCW, LOCKS, EXCLUSIVE, ALL, REQUESTS, WAYS } way;

typedef struct operation
{
    use use;
    int origin, target, at, blocks, length, stride; /* of the target's words */
    int step;                                       /* distance of elements at the origin */
    int no_op, is_equal;                            /* of FETCH; of SWAP: the compared value is the true one */
    int64_t value;                                  /* element i: value + i */
} operation;

static uint64_t seed, state;
static int rank, size, phase, ops_count;
static MPI_Comm comm;
static MPI_Win win;
static int64_t *mine, model[RANKS][WORDS], before[RANKS][WORDS];
static unsigned char uses[RANKS][WORDS], owners[RANKS][WORDS];
static operation ops[RANKS * OPS];
static MPI_Op phase_op;
static way phase_way;

static int below(int n) { return (int)(check_random(&state) % (uint32_t)n); }
static int elements(const operation *o) { return o->blocks * o->length; }
static int word(const operation *o, int i) { return o->at + i / o->length * o->stride + i % o->length; }

static int64_t combine(int64_t a, int64_t b)
{
    return phase_op == MPI_SUM ? a + b : phase_op == MPI_BXOR ? (a ^ b) : phase_op == MPI_MAX ? (a > b ? a : b)
           : phase_op == MPI_BOR ? (a | b) : b;
}

/* Whether the operation may use its words in this phase; marks them. */
static int is_allowed(const operation *o)
{
    int is_shared = o->use == GET || (o->use == ACCUMULATE && phase_op != MPI_REPLACE), is_ordered = o->use != PUT;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < elements(o); i++) {
            unsigned char *u = &uses[o->target][word(o, i)], *owner = &owners[o->target][word(o, i)];
            if (pass)
                *u = (unsigned char)o->use, *owner = (unsigned char)o->origin;
            else if (*u != FREE && (*u != o->use || (!is_shared && !(is_ordered && *owner == o->origin))))
                return 0;
        }
    return 1;
}

static void plan_operation(int origin)
{
    operation o = {.use = 1 + (use)below(USES - 1), .origin = origin, .target = below(size), .step = 1 + below(3), .no_op = below(2),
                   .is_equal = below(2), .value = below(1 << 20)};
    o.length = 1 + below(o.use == SWAP ? 1 : 6);
    o.blocks = 1 + below(o.use == SWAP ? 1 : LONGEST / 6);
    o.stride = o.length + below(4);
    o.at = below(WORDS - (o.blocks - 1) * o.stride - o.length + 1);
    if (is_allowed(&o))
        ops[ops_count++] = o;
}

/* Values that a fetch or swap returns are computed when the model is at that operation. */
static int64_t model_step(const operation *o, int i)
{
    int64_t *at = &model[o->target][word(o, i)], old = *at;
    if (o->use == PUT)
        *at = o->value + i;
    else if (o->use == ACCUMULATE || (o->use == FETCH && !o->no_op))
        *at = combine(old, o->value + i);
    else if (o->use == SWAP && o->is_equal)
        *at = o->value;
    return old;
}

static MPI_Datatype type_of(int blocks, int length, int stride)
{
    MPI_Datatype type;
    OK(MPI_Type_vector(blocks, length, stride, MPI_INT64_T, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

typedef struct buffers { int64_t out[LONGEST * 3], in[LONGEST * 3], must[LONGEST]; } buffers;

static void issue_vector(const operation *o, buffers *b, MPI_Request *req)
{
    MPI_Datatype far = type_of(o->blocks, o->length, o->stride), near = type_of(elements(o), 1, o->step);
    int t = o->target;
    if (o->use == PUT && req)
        OK(MPI_Rput(b->out, 1, near, t, o->at, 1, far, win, req));
    else if (o->use == PUT)
        OK(MPI_Put(b->out, 1, near, t, o->at, 1, far, win));
    else if (o->use == GET && req)
        OK(MPI_Rget(b->in, 1, near, t, o->at, 1, far, win, req));
    else if (o->use == GET)
        OK(MPI_Get(b->in, 1, near, t, o->at, 1, far, win));
    else if (o->use == ACCUMULATE && req)
        OK(MPI_Raccumulate(b->out, 1, near, t, o->at, 1, far, phase_op, win, req));
    else if (o->use == ACCUMULATE)
        OK(MPI_Accumulate(b->out, 1, near, t, o->at, 1, far, phase_op, win));
    else if (req)
        OK(MPI_Rget_accumulate(b->out, 1, near, b->in, 1, near, t, o->at, 1, far, o->no_op ? MPI_NO_OP : phase_op, win, req));
    else
        OK(MPI_Get_accumulate(b->out, 1, near, b->in, 1, near, t, o->at, 1, far, o->no_op ? MPI_NO_OP : phase_op, win));
    OK(MPI_Type_free(&far));
    OK(MPI_Type_free(&near));
}

/* Starts an operation; `req` is set to a request or MPI_REQUEST_NULL. */
static void issue(const operation *o, buffers *b, MPI_Request *req)
{
    int n = elements(o), by_request = phase_way == REQUESTS;
    *req = MPI_REQUEST_NULL;
    for (int i = 0; i < n; i++) {
        b->out[i * o->step] = o->value + i;
        b->in[i * o->step] = -99;
    }
    if (o->use == SWAP) { /* out[1]: compared */
        b->out[1] = b->must[0] + !o->is_equal;
        OK(MPI_Compare_and_swap(&b->out[0], &b->out[1], b->in, MPI_INT64_T, o->target, o->at, win));
    } else if (o->use == FETCH && n == 1 && !by_request) {
        OK(MPI_Fetch_and_op(b->out, b->in, MPI_INT64_T, o->target, o->at, o->no_op ? MPI_NO_OP : phase_op, win));
    } else {
        issue_vector(o, b, by_request ? req : NULL);
    }
}

static void open_epoch(void)
{
    MPI_Group all;
    OK(MPI_Win_get_group(win, &all));
    if (phase_way == FENCE)
        OK(MPI_Win_fence(below(2) ? MPI_MODE_NOPRECEDE : 0, win));
    if (phase_way == PSCW) {
        OK(MPI_Win_post(all, 0, win));
        OK(MPI_Win_start(all, 0, win));
    }
    if (phase_way == ALL || phase_way == REQUESTS)
        OK(MPI_Win_lock_all(0, win));
    OK(MPI_Group_free(&all));
}

static void close_epoch(void)
{
    if (phase_way == FENCE)
        OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (phase_way == PSCW) {
        OK(MPI_Win_complete(win));
        OK(MPI_Win_wait(win));
    }
    if (phase_way == ALL || phase_way == REQUESTS)
        OK(MPI_Win_unlock_all(win));
}

/* Runs this rank's operations. With locks: target by target, each in its own epoch; `jitter` is this rank's own random state. */
static void run_operations(buffers *all, uint64_t *jitter)
{
    static MPI_Request reqs[RANKS * OPS];
    int by_lock = phase_way == LOCKS || phase_way == EXCLUSIVE;
    open_epoch();
    for (int t = 0; t < (by_lock ? size : 1); t++) {
        int target = (t + rank) % size;
        if (by_lock)
            OK(MPI_Win_lock(phase_way == LOCKS ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win));
        for (int i = 0; i < ops_count; i++)
            if (ops[i].origin == rank && (!by_lock || ops[i].target == target)) {
                issue(&ops[i], &all[i], &reqs[i]);
                if (phase_way >= LOCKS && check_random(jitter) % 4 == 0)
                    OK(MPI_Win_flush(ops[i].target, win));
            }
        if (by_lock)
            OK(MPI_Win_unlock(target, win));
    }
    if (phase_way == REQUESTS)
        for (int i = 0; i < ops_count; i++)
            if (ops[i].origin == rank)
                OK(MPI_Wait(&reqs[i], MPI_STATUS_IGNORE));
    close_epoch();
}

static void check_results(const buffers *all)
{
    static const char *const names[] = {"", "put", "get", "accumulate", "fetch", "swap"};
    for (int i = 0; i < ops_count; i++)
        for (int k = 0; k < elements(&ops[i]) && ops[i].origin == rank; k++)
            if (ops[i].use != PUT && ops[i].use != ACCUMULATE)
                CHECK(all[i].in[k * ops[i].step] == all[i].must[k],
                      "seed %lu, phase %d, way %d, operation %d (%s), element %d: %ld, not %ld",
                      (unsigned long)seed, phase, phase_way, i, names[ops[i].use], k, (long)all[i].in[k * ops[i].step],
                      (long)all[i].must[k]);
    OK(MPI_Barrier(comm));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    for (int i = 0; i < WORDS; i++)
        CHECK(mine[i] == model[rank][i], "seed %lu, phase %d, way %d: word %d (%s by %d) is %ld, not %ld; it was %ld", (unsigned long)seed,
              phase, phase_way, i, names[uses[rank][i]], owners[rank][i], (long)mine[i], (long)model[rank][i], (long)before[rank][i]);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(comm));
}

static void run_phase(uint64_t *jitter)
{
    const MPI_Op choice[] = {MPI_SUM, MPI_BXOR, MPI_MAX, MPI_BOR, MPI_REPLACE};
    static buffers all[RANKS * OPS];
    phase_op = choice[below(5)];
    phase_way = (way)below(WAYS);
    memset(uses, FREE, sizeof uses);
    memcpy(before, model, sizeof model);
    ops_count = 0;
    for (int r = 0; r < size; r++) /* every rank draws the same numbers */
        for (int i = below(OPS + 1); i > 0; i--)
            plan_operation(r);
    for (int i = 0; i < ops_count; i++)
        for (int k = 0; k < elements(&ops[i]); k++)
            all[i].must[k] = model_step(&ops[i], k);
    run_operations(all, jitter);
    check_results(all);
}

/* Do all ranks share memory? */
static int is_one_node(void)
{
    MPI_Comm node;
    int n;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &n));
    OK(MPI_Comm_free(&node));
    OK(MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    return n == size;
}

/* Flavors: allocate, create, allocate_shared. */
static void run_program(int may_share)
{
    uint64_t jitter;
    state = seed;
    int flavor = below(3), is_reversed = below(2);
    MPI_Aint bytes = WORDS * (MPI_Aint)sizeof *mine;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, is_reversed ? -check_rank : check_rank, &comm));
    OK(MPI_Comm_rank(comm, &rank));
    jitter = seed * 1000 + (uint64_t)rank;
    if (flavor == 0 || (flavor == 2 && !may_share))
        OK(MPI_Win_allocate(bytes, sizeof *mine, MPI_INFO_NULL, comm, &mine, &win));
    else if (flavor == 2)
        OK(MPI_Win_allocate_shared(bytes, sizeof *mine, MPI_INFO_NULL, comm, &mine, &win));
    else {
        OK(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &mine));
        OK(MPI_Win_create(mine, bytes, sizeof *mine, MPI_INFO_NULL, comm, &win));
    }
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < WORDS; i++)
            model[r][i] = r * 1000 + i;
    memcpy(mine, model[rank], (size_t)bytes);
    OK(MPI_Win_unlock(rank, win));
    OK(MPI_Barrier(comm));
    for (phase = 0; phase < PHASES; phase++)
        run_phase(&jitter);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&comm));
    if (flavor == 1)
        OK(MPI_Free_mem(mine));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    CHECK(size <= RANKS);
    int may_share = is_one_node();
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 10;
    for (seed = first; seed < first + count; seed++)
        run_program(may_share);
    OK(MPI_Finalize());
    return 0;
}
