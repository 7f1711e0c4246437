/* np: 2 3 5 8 : collectives on intercommunicators against naive results: forms, roots, uneven groups, types, counts by direction */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT, BLOCKING_C, FORMS };
enum { LARGEST = 20000 };

typedef struct pair {
    MPI_Comm inter, local;
    int side, rank, sizes[2]; /* sides: 0 has the first rank of MPI_COMM_WORLD that is in the intercommunicator */
} pair;

static int world_rank, world_size;
static long *out, *in, *want;

/* Item i of a rank. Small, so that products do not overflow. */
static long item(int side, int r, long i) { return 1 + (side * 11 + r * 7 + i * 3) % 5; }

static int remote_size(const pair *p) { return p->sizes[!p->side]; }

static void expect(const char *what, const pair *p, int form, long n, long param)
{
    for (long i = 0; i < n; i++)
        CHECK(in[i] == want[i], "%s, form %d, groups of %d and %d, %ld items, case %ld: item %ld is %ld, not %ld", what, form, p->sizes[0],
              p->sizes[1], n, param, i, in[i], want[i]);
    CHECK(in[n] == -1, "%s, form %d: an item behind the last one is written", what, form);
}

static void clear(long n)
{
    for (long i = 0; i <= n; i++)
        in[i] = -1;
}

/* Completes a call of the form. Persistent requests are started twice. */
static void complete(int form, MPI_Request *request)
{
    for (int start = 0; start < (form == PERSISTENT ? 2 : 1); start++) {
        if (form == PERSISTENT)
            OK(MPI_Start(request));
        if (form == NONBLOCKING || form == PERSISTENT)
            OK(MPI_Wait(request, MPI_STATUS_IGNORE));
    }
    if (form == PERSISTENT)
        OK(MPI_Request_free(request));
}

/* The call in one of its forms; `name` with its arguments but the last ones. */
#define RUN(form, comm, name, ...) \
    do { \
        MPI_Request run_request = MPI_REQUEST_NULL; \
        if ((form) == BLOCKING) \
            OK(MPI_##name(__VA_ARGS__, comm)); \
        else if ((form) == BLOCKING_C) \
            OK(MPI_##name##_c(__VA_ARGS__, comm)); \
        else if ((form) == NONBLOCKING) \
            OK(MPI_I##name(__VA_ARGS__, comm, &run_request)); \
        else \
            OK(MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &run_request)); \
        complete(form, &run_request); \
    } while (0)
#define MPI_IBcast MPI_Ibcast
#define MPI_IReduce MPI_Ireduce
#define MPI_IAllreduce MPI_Iallreduce
#define MPI_IGather MPI_Igather
#define MPI_IScatter MPI_Iscatter
#define MPI_IAllgather MPI_Iallgather
#define MPI_IAlltoall MPI_Ialltoall

/* What this rank passes as root. */
static int root_for(const pair *p, int side, int root) { return p->side != side ? root : p->rank == root ? MPI_ROOT : MPI_PROC_NULL; }

static void bcast(const pair *p, int form, int n, int side, int root)
{
    int passed = root_for(p, side, root);
    clear(n);
    for (int i = 0; i < n; i++) {
        want[i] = item(side, root, i) * 1000 + i;
        if (passed == MPI_ROOT)
            in[i] = want[i];
    }
    if (passed == MPI_PROC_NULL)
        RUN(form, p->inter, Bcast, NULL, -1, MPI_DATATYPE_NULL, passed); /* not significant */
    else
        RUN(form, p->inter, Bcast, in, n, MPI_LONG, passed);
    if (passed != MPI_PROC_NULL)
        expect("bcast", p, form, n, root);
    else
        CHECK(in[0] == -1);
}

static void fold(const pair *p, int side, int n)
{
    for (int i = 0; i < n; i++) {
        want[i] = 0;
        for (int r = 0; r < p->sizes[side]; r++)
            want[i] += item(side, r, i);
    }
}

static void reduce(const pair *p, int form, int n, int side, int root)
{
    int passed = root_for(p, side, root);
    clear(n);
    fold(p, !side, n);
    for (int i = 0; i < n; i++)
        out[i] = item(p->side, p->rank, i);
    if (passed == MPI_ROOT)
        RUN(form, p->inter, Reduce, NULL, in, n, MPI_LONG, MPI_SUM, passed);
    else if (passed == MPI_PROC_NULL)
        RUN(form, p->inter, Reduce, NULL, NULL, 0, MPI_DATATYPE_NULL, MPI_OP_NULL, passed);
    else
        RUN(form, p->inter, Reduce, out, NULL, n, MPI_LONG, MPI_SUM, passed);
    if (passed == MPI_ROOT)
        expect("reduce", p, form, n, root);
}

static void allreduce(const pair *p, int form, int n)
{
    clear(n);
    fold(p, !p->side, n);
    for (int i = 0; i < n; i++)
        out[i] = item(p->side, p->rank, i);
    RUN(form, p->inter, Allreduce, out, in, n, MPI_LONG, MPI_SUM);
    expect("allreduce", p, form, n, 0);
}

static void gather(const pair *p, int form, int n, int side, int root)
{
    int passed = root_for(p, side, root), blocks = p->sizes[!side];
    clear((long)n * blocks);
    for (int i = 0; i < n * blocks; i++)
        want[i] = item(!side, i / (n ? n : 1), i % (n ? n : 1)) * 1000 + i % (n ? n : 1);
    for (int i = 0; i < n; i++)
        out[i] = item(p->side, p->rank, i) * 1000 + i;
    if (passed == MPI_ROOT)
        RUN(form, p->inter, Gather, NULL, -1, MPI_DATATYPE_NULL, in, n, MPI_LONG, passed);
    else if (passed == MPI_PROC_NULL)
        RUN(form, p->inter, Gather, NULL, -1, MPI_DATATYPE_NULL, NULL, -1, MPI_DATATYPE_NULL, passed);
    else
        RUN(form, p->inter, Gather, out, n, MPI_LONG, NULL, -1, MPI_DATATYPE_NULL, passed);
    if (passed == MPI_ROOT)
        expect("gather", p, form, (long)n * blocks, root);
}

static void scatter(const pair *p, int form, int n, int side, int root)
{
    int passed = root_for(p, side, root), blocks = p->sizes[!side];
    clear(n);
    for (int i = 0; i < n * blocks; i++)
        out[i] = item(side, root, i) * 1000 + i;
    for (int i = 0; i < n; i++)
        want[i] = out[(passed >= 0 ? p->rank : 0) * n + i];
    if (passed == MPI_ROOT)
        RUN(form, p->inter, Scatter, out, n, MPI_LONG, NULL, -1, MPI_DATATYPE_NULL, passed);
    else if (passed == MPI_PROC_NULL)
        RUN(form, p->inter, Scatter, NULL, -1, MPI_DATATYPE_NULL, NULL, -1, MPI_DATATYPE_NULL, passed);
    else
        RUN(form, p->inter, Scatter, NULL, -1, MPI_DATATYPE_NULL, in, n, MPI_LONG, passed);
    if (passed >= 0)
        expect("scatter", p, form, n, root);
}

/* counts[s]: items that a rank of side s sends to each of the other side. */
static void allgather(const pair *p, int form, const int counts[2])
{
    int n = counts[p->side], m = counts[!p->side];
    clear((long)m * remote_size(p));
    for (int i = 0; i < n; i++)
        out[i] = item(p->side, p->rank, i) * 1000 + i;
    for (int i = 0; i < m * remote_size(p); i++)
        want[i] = item(!p->side, i / m, i % m) * 1000 + i % m;
    RUN(form, p->inter, Allgather, out, n, MPI_LONG, in, m, MPI_LONG);
    expect("allgather", p, form, (long)m * remote_size(p), n);
}

static void alltoall(const pair *p, int form, const int counts[2])
{
    int n = counts[p->side], m = counts[!p->side];
    clear((long)m * remote_size(p));
    for (int i = 0; i < n * remote_size(p); i++)
        out[i] = item(p->side, p->rank, i) * 1000 + i;
    for (int i = 0; i < m * remote_size(p); i++)
        want[i] = item(!p->side, i / m, p->rank * m + i % m) * 1000 + p->rank * m + i % m;
    RUN(form, p->inter, Alltoall, out, n, MPI_LONG, in, m, MPI_LONG);
    expect("alltoall", p, form, (long)m * remote_size(p), n);
}

/* No rank returns before all of the other group have entered. */
static void barrier(const pair *p, int form, int late)
{
    double entered, left, others;
    MPI_Request request;
    if (world_rank % 3 == late)
        for (double until = MPI_Wtime() + 0.002; MPI_Wtime() < until;)
            ;
    entered = MPI_Wtime();
    if (form == NONBLOCKING)
        OK(MPI_Ibarrier(p->inter, &request));
    else if (form == PERSISTENT)
        OK(MPI_Barrier_init(p->inter, MPI_INFO_NULL, &request));
    else
        OK(MPI_Barrier(p->inter));
    complete(form, &request);
    left = MPI_Wtime();
    OK(MPI_Allreduce(&entered, &others, 1, MPI_DOUBLE, MPI_MAX, p->inter));
    CHECK(left >= others, "form %d: left %g s before another entered", form, others - left);
}

static void all_calls(const pair *p, int form, int n)
{
    int other = n < 50 ? 2 * n + 1 : n / 3, both[2] = {n, n}, differ[2] = {n, other}, one_way[2] = {0, n}, other_way[2] = {n, 0};
    for (int side = 0; side < 2; side++)
        for (int root = 0; root < p->sizes[side]; root += p->sizes[side] > 3 ? 2 : 1) {
            bcast(p, form, n, side, root);
            reduce(p, form, n, side, root);
            gather(p, form, n, side, root);
            scatter(p, form, n, side, root);
        }
    allreduce(p, form, n);
    allgather(p, form, both);
    allgather(p, form, differ);
    allgather(p, form, one_way);
    allgather(p, form, other_way);
    alltoall(p, form, both);
    alltoall(p, form, differ);
    alltoall(p, form, one_way);
    alltoall(p, form, other_way);
    barrier(p, form, n % 3);
}

/* ---- operators and types ---- */

/* x -> a x + b, then x -> c x + d: associative, not commutative; those of `in` come first. */
static void compose(void *in_at, void *inout_at, int *length, MPI_Datatype *type)
{
    uint32_t *x = in_at, *y = inout_at;
    (void)type;
    for (int i = 0; i < *length; i++, x += 2, y += 2) {
        uint32_t a = y[0] * x[0], b = y[0] * x[1] + y[1];
        y[0] = a;
        y[1] = b;
    }
}

/* The order of operands is that of the ranks in their group (MPI 5.0 6.9.1). */
static void in_order(const pair *p, int n)
{
    uint32_t *maps = malloc((size_t)n * 8), *got = malloc((size_t)n * 8), *sum = malloc((size_t)n * 8), *next = malloc((size_t)n * 8);
    MPI_Datatype map;
    MPI_Op op;
    int length = n, root = p->sizes[1] - 1, passed = root_for(p, 1, root);
    OK(MPI_Type_contiguous(2, MPI_UINT32_T, &map));
    OK(MPI_Type_commit(&map));
    OK(MPI_Op_create(compose, 0, &op));
    for (int r = p->sizes[!p->side]; r-- > 0;) {
        for (int i = 0; i < n; i++) {
            uint32_t a = 3 + 2 * (uint32_t)(r + i), b = 1 + (uint32_t)(7 * r + i * !p->side);
            (r == p->sizes[!p->side] - 1 ? sum : next)[2 * i] = a;
            (r == p->sizes[!p->side] - 1 ? sum : next)[2 * i + 1] = b;
        }
        if (r < p->sizes[!p->side] - 1)
            compose(next, sum, &length, &map);
    }
    for (int i = 0; i < n; i++) {
        maps[2 * i] = 3 + 2 * (uint32_t)(p->rank + i);
        maps[2 * i + 1] = 1 + (uint32_t)(7 * p->rank + i * p->side);
    }
    OK(MPI_Allreduce(maps, got, n, map, op, p->inter));
    CHECK(!memcmp(got, sum, (size_t)n * 8), "allreduce of %d by an operator that does not commute", n);
    memset(got, 0, (size_t)n * 8);
    OK(MPI_Reduce(maps, got, n, map, op, passed, p->inter));
    if (passed == MPI_ROOT)
        CHECK(!memcmp(got, sum, (size_t)n * 8), "reduce of %d by an operator that does not commute", n);
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&map));
    free(maps);
    free(got);
    free(sum);
    free(next);
}

/* Each group has another layout of the same elements. */
static void layouts(const pair *p, int n)
{
    long *strided = malloc(sizeof(long) * (size_t)(3 * n * (world_size + 1) + 3));
    long *dense = malloc(sizeof(long) * (size_t)(n * (world_size + 1)));
    int root = root_for(p, 0, 0), is_strided = p->side, step = is_strided ? 3 : 1, blocks = remote_size(p);
    long *at = is_strided ? strided : dense;
    MPI_Datatype third, type = MPI_LONG;
    OK(MPI_Type_create_resized(MPI_LONG, 0, 3 * (MPI_Aint)sizeof(long), &third));
    OK(MPI_Type_commit(&third));
    if (is_strided)
        type = third;
    for (int i = 0; i < 3 * n * (world_size + 1); i++)
        strided[i] = -7;
    for (int i = 0; i < n; i++)
        at[i * step] = item(p->side, p->rank, i);
    OK(MPI_Bcast(at, n, type, root, p->inter));
    for (int i = 0; i < n; i++)
        if (root != MPI_PROC_NULL)
            CHECK(at[i * step] == item(0, 0, i), "bcast between layouts: item %d of %d", i, n);
    for (int i = 0; i < n; i++)
        out[i] = item(p->side, p->rank, i);
    OK(MPI_Allgather(out, n, MPI_LONG, at, n, type, p->inter));
    for (int i = 0; i < n * blocks; i++)
        CHECK(at[i * step] == item(!p->side, i / n, i % n), "allgather between layouts: item %d of %d", i, n);
    for (int i = 0; i < n; i++)
        at[i * step] = item(p->side, p->rank, i);
    OK(MPI_Allgather(at, n, type, in, n, MPI_LONG, p->inter));
    for (int i = 0; i < n * blocks; i++)
        CHECK(in[i] == item(!p->side, i / n, i % n), "allgather of a layout: item %d of %d", i, n);
    for (int i = 0; i < n * blocks; i++)
        at[i * step] = item(p->side, p->rank, i);
    OK(MPI_Alltoall(at, n, type, in, n, MPI_LONG, p->inter));
    for (int i = 0; i < n * blocks; i++)
        CHECK(in[i] == item(!p->side, i / n, p->rank * n + i % n), "alltoall of a layout: item %d of %d", i, n);
    for (int i = 0; i < 3 * n && is_strided; i++)
        CHECK(i % 3 == 0 || strided[i] == -7, "a gap of a type is written");
    OK(MPI_Type_free(&third));
    free(strided);
    free(dense);
}

/* Predefined types: moved as bytes; integers reduced. */
static void types(const pair *p)
{
    const MPI_Datatype moved[] = {MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE, MPI_WCHAR, MPI_SHORT, MPI_UNSIGNED_SHORT, MPI_INT,
                                  MPI_UNSIGNED, MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG, MPI_FLOAT, MPI_DOUBLE,
                                  MPI_LONG_DOUBLE, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T,
                                  MPI_UINT32_T, MPI_UINT64_T, MPI_C_BOOL, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
                                  MPI_C_LONG_DOUBLE_COMPLEX, MPI_AINT, MPI_COUNT, MPI_OFFSET, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT,
                                  MPI_2INT, MPI_SHORT_INT, MPI_LONG_DOUBLE_INT};
    for (size_t t = 0; t < sizeof moved / sizeof *moved; t++) {
        char own_blocks[5 * 32], *remote_blocks = malloc(5 * 32 * (size_t)remote_size(p)), *sum = malloc(5 * 32);
        MPI_Aint lb, extent;
        int bytes;
        OK(MPI_Type_get_extent(moved[t], &lb, &extent));
        OK(MPI_Type_size(moved[t], &bytes));
        memset(own_blocks, 0, sizeof own_blocks);
        memset(remote_blocks, 0, 5 * 32 * (size_t)remote_size(p));
        for (int i = 0; i < 5; i++)
            memset(own_blocks + i * extent, 1 + p->rank + 16 * p->side, bytes < extent ? 2 : (size_t)bytes);
        OK(MPI_Allgather(own_blocks, 5, moved[t], remote_blocks, 5, moved[t], p->inter));
        for (int r = 0; r < remote_size(p); r++)
            for (int i = 0; i < 5; i++)
                CHECK(remote_blocks[(r * 5 + i) * extent] == 1 + r + 16 * !p->side, "type %d: element %d of rank %d", (int)t, i, r);
        if (moved[t] != MPI_WCHAR && moved[t] != MPI_CHAR && bytes == extent && bytes <= 8 && moved[t] != MPI_FLOAT &&
            moved[t] != MPI_DOUBLE && moved[t] != MPI_C_BOOL && moved[t] != MPI_C_FLOAT_COMPLEX && moved[t] != MPI_2INT &&
            moved[t] != MPI_FLOAT_INT) {
            OK(MPI_Allreduce(own_blocks, sum, 5, moved[t], MPI_BXOR, p->inter));
            for (int r = 1; r < remote_size(p); r++)
                OK(MPI_Reduce_local(remote_blocks + r * 5 * extent, remote_blocks, 5, moved[t], MPI_BXOR));
            CHECK(!memcmp(sum, remote_blocks, 5 * (size_t)extent), "type %d reduced", (int)t);
        }
        free(remote_blocks);
        free(sum);
    }
}

/* ---- beside each other ---- */

/* Calls on the local group, the intercommunicator and messages on it are in flight at once, begun in orders that differ. */
static void together(const pair *p, int n)
{
    long *data = malloc(sizeof(long) * (size_t)(6 * n + 2 * n * (world_size + 1)));
    long *sums = data + n, *locals = data + 2 * n, *root_data = data + 3 * n;
    long *blocks = data + 4 * n, *got = blocks + n * (world_size + 1), token = -1, sent = 77;
    MPI_Request requests[7];
    MPI_Status status;
    int to = p->rank % remote_size(p), senders = 0, flag;
    for (int i = 0; i < n; i++) {
        data[i] = item(p->side, p->rank, i);
        root_data[i] = p->side == 0 && p->rank == 0 ? 100 + i : -1;
    }
    for (int i = 0; i < n * remote_size(p); i++)
        blocks[i] = item(p->side, p->rank, i);
    for (int r = 0; r < remote_size(p); r++)
        senders += r % p->sizes[p->side] == p->rank;
    OK(MPI_Irecv(&token, 1, MPI_LONG, MPI_ANY_SOURCE, MPI_ANY_TAG, p->inter, &requests[0])); /* no collective's message may match it */
    for (int turn = 0; turn < 2; turn++) {
        if (turn == p->rank % 2)
            OK(MPI_Iallreduce(data, locals, n, MPI_LONG, MPI_SUM, p->local, &requests[1]));
        else
            OK(MPI_Iallreduce(data, sums, n, MPI_LONG, MPI_SUM, p->inter, &requests[2]));
    }
    OK(MPI_Ibcast(root_data, n, MPI_LONG, root_for(p, 0, 0), p->inter, &requests[3]));
    OK(MPI_Ialltoall(blocks, n, MPI_LONG, got, n, MPI_LONG, p->inter, &requests[4]));
    OK(MPI_Ibarrier(p->local, &requests[5]));
    OK(MPI_Ibarrier(p->inter, &requests[6]));
    OK(MPI_Waitall(6, requests + 1, MPI_STATUSES_IGNORE));
    OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "a collective's message matches a receive on the intercommunicator");
    fold(p, p->side, n);
    for (int i = 0; i < n; i++)
        CHECK(locals[i] == want[i], "allreduce of the local group: item %d is %ld", i, locals[i]);
    fold(p, !p->side, n);
    for (int i = 0; i < n; i++) {
        CHECK(sums[i] == want[i], "allreduce between the groups: item %d is %ld", i, sums[i]);
        CHECK(root_data[i] == (p->side || !p->rank ? 100 + i : -1), "bcast: item %d is %ld", i, root_data[i]);
    }
    for (int i = 0; i < n * remote_size(p); i++)
        CHECK(got[i] == item(!p->side, i / n, p->rank * n + i % n), "alltoall: item %d is %ld", i, got[i]);
    OK(MPI_Barrier(p->inter));
    OK(MPI_Send(&sent, 1, MPI_LONG, to, 5, p->inter));
    if (senders) {
        OK(MPI_Wait(&requests[0], &status));
        CHECK(token == 77 && status.MPI_TAG == 5);
    } else {
        OK(MPI_Cancel(&requests[0]));
        OK(MPI_Wait(&requests[0], &status));
    }
    for (int more = 1; more < senders; more++)
        OK(MPI_Recv(&token, 1, MPI_LONG, MPI_ANY_SOURCE, 5, p->inter, &status));
    free(data);
}

/* ---- groups ---- */

static pair pair_of(MPI_Comm inter, MPI_Comm local, int side)
{
    pair p = {.inter = inter, .local = local, .side = side};
    OK(MPI_Comm_rank(inter, &p.rank));
    OK(MPI_Comm_size(inter, &p.sizes[side]));
    OK(MPI_Comm_remote_size(inter, &p.sizes[!side]));
    return p;
}

static void all_of(const pair *p)
{
    for (int form = 0; form < FORMS; form++) {
        all_calls(p, form, 0);
        all_calls(p, form, 1);
        all_calls(p, form, 7);
        all_calls(p, form, 700);
    }
    all_calls(p, BLOCKING, LARGEST);
    all_calls(p, NONBLOCKING, LARGEST / 3);
    in_order(p, 1);
    in_order(p, 100);
    in_order(p, 10000);
    layouts(p, 5);
    layouts(p, 4000);
    types(p);
    together(p, 3);
    together(p, 3000);
}

/* Duplicates made while calls on the intercommunicator, its local group and another duplication are under way. */
static void idup(const pair *p)
{
    MPI_Comm made[2];
    MPI_Request requests[5];
    MPI_Info info;
    long one = 1, sums[2];
    pair q;
    int compare, buflen = 8, flag;
    char value[8];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Iallreduce(&one, &sums[0], 1, MPI_LONG, MPI_SUM, p->inter, &requests[0]));
    OK(MPI_Comm_idup(p->inter, &made[0], &requests[1]));
    OK(MPI_Iallreduce(&one, &sums[1], 1, MPI_LONG, MPI_SUM, p->local, &requests[2]));
    OK(MPI_Comm_idup_with_info(p->inter, info, &made[1], &requests[3]));
    OK(MPI_Ibarrier(p->inter, &requests[4]));
    OK(MPI_Waitall(5, requests, MPI_STATUSES_IGNORE));
    CHECK(sums[0] == remote_size(p) && sums[1] == p->sizes[p->side], "sums %ld and %ld beside duplications", sums[0], sums[1]);
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_get_info(made[1], &info));
    OK(MPI_Info_get_string(info, "mpi_assert_no_any_tag", &buflen, value, &flag));
    CHECK(flag && !strcmp(value, "true"), "the hint of a duplicate");
    OK(MPI_Info_free(&info));
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_compare(p->inter, made[i], &compare));
        CHECK(compare == MPI_CONGRUENT);
        q = pair_of(made[i], p->local, p->side);
        all_calls(&q, i ? PERSISTENT : NONBLOCKING, 30);
        OK(MPI_Comm_dup(made[i], &q.inter)); /* its local part works too */
        all_calls(&q, BLOCKING, 3);
        OK(MPI_Comm_free(&q.inter));
        OK(MPI_Comm_free(&made[i]));
    }
}

/* side: of this rank. Also a duplicate, parts of it, and one of the merged processes in another order. */
static void with_groups(int side)
{
    MPI_Comm local, inter, other, merged;
    pair p;
    int first[2] = {world_size, world_size}, lead = world_rank, leads[64], sides[64], merged_rank;
    OK(MPI_Allgather(&side, 1, MPI_INT, sides, 1, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Allgather(&lead, 1, MPI_INT, leads, 1, MPI_INT, MPI_COMM_WORLD));
    for (int r = world_size; r-- > 0;)
        first[sides[r]] = r;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &local));
    OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, first[!side], 3, &inter));
    p = pair_of(inter, local, side);
    all_of(&p);
    idup(&p);
    OK(MPI_Comm_dup(inter, &other));
    OK(MPI_Comm_free(&inter));
    p = pair_of(other, local, side);
    all_calls(&p, BLOCKING, 40);
    OK(MPI_Comm_split(other, 1, -p.rank, &inter)); /* the same groups, turned round */
    p = pair_of(inter, local, side);
    all_calls(&p, NONBLOCKING, 40);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Intercomm_merge(other, side == 0, &merged)); /* side 1 is first */
    OK(MPI_Comm_rank(merged, &merged_rank));
    OK(MPI_Intercomm_create(local, 0, merged, side ? p.sizes[1] : 0, 8, &inter));
    p = pair_of(inter, local, side);
    all_calls(&p, BLOCKING, 300);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_free(&local));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &world_rank, &world_size);
    out = malloc(sizeof *out * (size_t)(LARGEST * world_size + 1));
    in = malloc(sizeof *in * (size_t)(LARGEST * world_size + 1));
    want = malloc(sizeof *want * (size_t)(LARGEST * world_size + 1));
    with_groups(world_rank % 2);
    if (world_size > 2) {
        with_groups(world_rank != world_size - 1); /* 1 and the others; side 0 has the higher ranks */
        with_groups(world_rank >= 2);
    }
    free(out);
    free(in);
    free(want);
    OK(MPI_Finalize());
    return 0;
}
