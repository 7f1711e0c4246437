/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stops: collectives and communicator creation in which one member has no memory: each allocation of the library in the call fails once, on
 * each member in turn. Every member returns, the failing one with MPI_ERR_NO_MEM, the others with its reason or successfully. Later calls
 * on that communicator return on all members; other communicators are unaffected.
 *    stops [CALL RANKS PER_NODE VICTIM NUMBER]    all runs, or one
 */
#include <CUnit/Basic.h>
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/sim/rig.h"

enum call { DUP, SPLIT, SPLIT_TYPE, BAD_COLOR, BAD_TYPE, BARRIER, BCAST, REDUCE, ALLREDUCE, LARGE, GATHER, SCATTER, ALLGATHER, ALLTOALL,
            IBCAST, IALLREDUCE, IDUP, BAD_COPY, CART, GRAPH, LARGE_GRAPH, MERGE, GROUP, PERSISTENT,
            FIRST_IBCAST, FIRST_IALLREDUCE, FIRST_IDUP, INTER_SUMS, INTER_BCAST, INTER_GATHER, INTER_ALLGATHER, INTER_IDUP, CALLS };
static const char *const names[] = {
    "dup", "split", "split_type", "bad color", "bad split_type", "barrier", "bcast", "reduce", "allreduce", "large allreduce", "gather",
    "scatter", "allgather", "alltoall", "ibcast", "iallreduce", "idup", "idup, bad copy function", "cart_create", "dist_graph_create",
    "large dist_graph_create", "intercomm_create, merge", "create_group", "persistent", "first ibcast", "first iallreduce",
    "first idup", "allreduce between groups",
    "bcast between groups", "gather between groups", "allgather between groups", "idup of groups"};
enum { RANKS_MAX = 6, COUNT = 300, COUNT_LARGE = 40000, EDGES = 12000 };

typedef struct run {
    enum call call;
    int victim;
    int number; /* number of the allocation that fails */
    bool is_hit;
    int class[RANKS_MAX], later[RANKS_MAX];
} run;

/* ---- allocations of the failing rank ---- */

static run *present;
static int left = -1; /* allocations until the failing one; < 0: none fails */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_FAIL 0
#else
#define CAN_FAIL 1
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);

static bool fails(void)
{
    if (left < 0 || !present || weft_sim_rank() != present->victim || left-- > 0)
        return false;
    present->is_hit = true;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return fails() ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return fails() ? NULL : __libc_realloc(old, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return fails() ? NULL : __libc_memalign(align, bytes); }
#endif

/* ---- the program ---- */

static int wait_for(int code, MPI_Request *request) { return code ? code : MPI_Wait(request, MPI_STATUS_IGNORE); }

/* A copy function that fails on the victim. extra: the run. */
static int copy(MPI_Comm comm, int key, void *extra, void *value, void *out, int *flag)
{
    *(void **)out = value;
    *flag = weft_sim_rank() != ((const run *)extra)->victim;
    return (void)comm, (void)key, *flag ? MPI_SUCCESS : MPI_ERR_ARG;
}

static int idup(const run *run, MPI_Comm c, MPI_Comm *made)
{
    MPI_Request req = MPI_REQUEST_NULL;
    int key = MPI_KEYVAL_INVALID, rc, kept = left;
    bool is_victim = weft_sim_rank() == run->victim;
    if (run->call != BAD_COPY)
        return wait_for(MPI_Comm_idup(c, made, &req), &req);
    if (is_victim)
        left = -1;
    rc = MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, (void *)run);
    rc = rc ? rc : MPI_Comm_set_attr(c, key, NULL);
    if (is_victim)
        left = kept;
    rc = rc ? rc : wait_for(MPI_Comm_idup(c, made, &req), &req);
    MPI_Comm_delete_attr(c, key);
    MPI_Comm_free_keyval(&key);
    return rc;
}

static int cart(MPI_Comm c, MPI_Comm *made)
{
    int dims[2] = {2, 2}, periods[2] = {0};
    return MPI_Cart_create(c, 2, dims, periods, 1, made);
}

static int graph(MPI_Comm c, int rank, MPI_Comm *made)
{
    int one = 1, to = (rank + 1) % 4;
    return MPI_Dist_graph_create(c, 1, &rank, &one, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
}

/* Each member sends each other one more edges than an eager message has. */
static int large_graph(MPI_Comm c, int rank, MPI_Comm *made)
{
    static int dests[EDGES];
    int degree = EDGES, size, rc = MPI_Comm_size(c, &size);
    for (int i = 0; i < EDGES; i++)
        dests[i] = i % size;
    return rc ? rc : MPI_Dist_graph_create(c, 1, &rank, &degree, dests, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
}

/* All but the last rank make a communicator. */
static int group(MPI_Comm c, int rank, MPI_Comm *made)
{
    MPI_Group all, some;
    int last, rc = MPI_Comm_size(c, &last);
    last--;
    rc = rc ? rc : MPI_Comm_group(c, &all);
    rc = rc ? rc : MPI_Group_excl(all, 1, &last, &some);
    if (rc)
        return rc;
    if (rank != last)
        rc = MPI_Comm_create_group(c, some, 3, made);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    return rc;
}

/* The intercommunicator is freed by the caller: what stops it stops those made of it, until it is freed. */
static int merge(MPI_Comm c, MPI_Comm half, int rank, MPI_Comm *inter, MPI_Comm *made)
{
    int rc = MPI_Intercomm_create(half, 0, c, rank % 2 ? 0 : 1, 4, inter);
    if (*inter == MPI_COMM_NULL)
        return rc;
    rc = MPI_Comm_set_errhandler(*inter, MPI_ERRORS_RETURN);
    return rc ? rc : MPI_Intercomm_merge(*inter, rank % 2, made);
}

static int perform(const run *run, MPI_Comm c, MPI_Comm half, MPI_Comm *inter, int64_t *out, int64_t *in, int rank)
{
    MPI_Request req = MPI_REQUEST_NULL;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Datatype type = MPI_INT64_T;
    int code = 0, rc;

    switch (run->call) {
    case DUP: code = MPI_Comm_dup(c, &made); break;
    case SPLIT: code = MPI_Comm_split(c, rank % 2, -rank, &made); break;
    case SPLIT_TYPE: code = MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made); break;
    case BAD_COLOR: code = MPI_Comm_split(c, rank == run->victim ? -77 : 0, 0, &made); break;
    case BAD_TYPE: code = MPI_Comm_split_type(c, rank == run->victim ? 77 : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made); break;
    case IDUP: case BAD_COPY: case FIRST_IDUP: code = idup(run, c, &made); break;
    case CART: code = cart(c, &made); break;
    case GRAPH: code = graph(c, rank, &made); break;
    case LARGE_GRAPH: code = large_graph(c, rank, &made); break;
    case MERGE: code = merge(c, half, rank, inter, &made); break;
    case GROUP: code = group(c, rank, &made); break;
    case BARRIER: return MPI_Barrier(c);
    case BCAST: return MPI_Bcast(in, COUNT_LARGE, type, 1, c);
    case REDUCE: return MPI_Reduce(out, in, COUNT, type, MPI_SUM, 1, c);
    case ALLREDUCE: return MPI_Allreduce(out, in, COUNT, type, MPI_SUM, c);
    case LARGE: return MPI_Allreduce(out, in, COUNT_LARGE, type, MPI_SUM, c);
    case GATHER: return MPI_Gather(out, COUNT, type, in, COUNT, type, 1, c);
    case SCATTER: return MPI_Scatter(out, COUNT, type, in, COUNT, type, 1, c);
    case ALLGATHER: return MPI_Allgather(out, COUNT, type, in, COUNT, type, c);
    case ALLTOALL: return MPI_Alltoall(out, COUNT, type, in, COUNT, type, c);
    case IBCAST: case FIRST_IBCAST: return wait_for(MPI_Ibcast(in, COUNT_LARGE, type, 0, c, &req), &req);
    case IALLREDUCE: case FIRST_IALLREDUCE:
        return wait_for(MPI_Iallreduce(out, in, COUNT, type, MPI_SUM, c, &req), &req);
    case INTER_SUMS: return MPI_Allreduce(out, in, COUNT_LARGE, type, MPI_SUM, c);
    case INTER_BCAST: return MPI_Bcast(in, COUNT_LARGE, type, rank % 2 ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT, c);
    case INTER_GATHER:
        return MPI_Gather(out, COUNT, type, in, COUNT, type, rank % 2 ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT, c);
    case INTER_ALLGATHER: return MPI_Allgather(out, COUNT, type, in, COUNT, type, c);
    case INTER_IDUP: code = idup(run, c, &made); break;
    default:
        code = MPI_Allreduce_init(out, in, COUNT, type, MPI_SUM, c, MPI_INFO_NULL, &req);
        code = code ? code : wait_for(MPI_Start(&req), &req);
        if (req != MPI_REQUEST_NULL && (rc = MPI_Request_free(&req)))
            return rc;
        return code;
    }
    if (made != MPI_COMM_NULL) {
        rc = MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
        rc = rc || run->call == MERGE ? rc : MPI_Barrier(made); /* a communicator that one rank has got is usable: all have it */
        if (rc || (rc = MPI_Comm_free(&made)))
            return rc;
    }
    return code;
}

static int class_of(int code)
{
    int class = -1;
    return MPI_Error_class(code, &class) ? -1 : class;
}

static int program(int rank, void *arg)
{
    run *run = arg;
    size_t capacity = COUNT_LARGE * sizeof(int64_t);
    int64_t *out = calloc(1, capacity), *in = calloc(1, capacity);
    int sent[RANKS_MAX] = {0}, got[RANKS_MAX], code, rc = MPI_Init(NULL, NULL);
    MPI_Comm c, fresh, half, pair, used, inter = MPI_COMM_NULL;
    bool is_pair = run->call >= INTER_SUMS, is_first = run->call >= FIRST_IBCAST && !is_pair;

    rc = rc ? rc : MPI_Comm_dup(MPI_COMM_WORLD, &c);
    rc = rc ? rc : MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    rc = rc ? rc : MPI_Comm_dup(c, &fresh); /* no collective of it precedes the call */
    rc = rc ? rc : MPI_Comm_split(c, rank % 2, 0, &half);
    rc = rc ? rc : MPI_Intercomm_create(half, 0, c, rank % 2 ? 0 : 1, 7, &pair);
    rc = rc ? rc : MPI_Comm_set_errhandler(pair, MPI_ERRORS_RETURN);
    rc = rc ? rc : MPI_Barrier(MPI_COMM_WORLD);
    if (rc)
        return 1;
    if (rank == run->victim)
        left = run->number;
    used = is_pair ? pair : is_first ? fresh : c;
    code = perform(run, used, half, &inter, out, in, rank);
    if (rank == run->victim)
        left = -1;
    run->class[rank] = class_of(code);
    if (code && getenv("STOPS_LOUD")) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(code, text, &length);
        fprintf(stderr, "      rank %d: %s\n", rank, text);
    }
    run->later[rank] = class_of(is_pair ? MPI_Allreduce(out, in, 1, MPI_INT64_T, MPI_SUM, pair)
                                        : MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_INT64_T, MPI_SUM, used));
    free(out);
    free(in);
    rc = MPI_Alltoall(sent, 1, MPI_INT, got, 1, MPI_INT, MPI_COMM_WORLD); /* no rank leaves before it has received from all others */
    if (inter != MPI_COMM_NULL)
        rc = rc ? rc : MPI_Comm_free(&inter);
    rc = rc ? rc : MPI_Comm_free(&pair);
    rc = rc ? rc : MPI_Comm_free(&half);
    rc = rc ? rc : MPI_Comm_free(&fresh);
    rc = rc ? rc : MPI_Comm_free(&c);
    return rc || MPI_Finalize();
}

/* ---- runs ---- */

static bool is_well(const run *run, uint32_t ranks, const weft_sim_report *report)
{
    bool is_argument = run->call == BAD_COLOR || run->call == BAD_TYPE || run->call == BAD_COPY, has_failed = false;

    if (report->deadlocked)
        return false;
    if (report->aborted) /* core has no memory: the job ends with a reason */
        return run->is_hit && strstr(report->text, "no memory");
    if (report->rc)
        return false;
    for (uint32_t i = 0; i < ranks; i++) {
        int class = run->class[i];
        has_failed |= class != MPI_SUCCESS;
        if (class == MPI_SUCCESS)
            continue;
        if (class != MPI_ERR_OTHER && class != MPI_ERR_NO_MEM && !(is_argument && (int)i == run->victim && class == MPI_ERR_ARG))
            return false; /* either of the first two: a rendezvous ends on both sides alike */
    }
    for (uint32_t i = 0; i < ranks; i++)
        if (run->later[i] != MPI_SUCCESS && !has_failed)
            return false;
    return has_failed == (is_argument || run->is_hit) || run->is_hit; /* the library may work without that allocation */
}

static bool one_run(run *run, uint32_t ranks, uint32_t per_node, weft_sim_report *report, uint64_t seed)
{
    weft_sim_config config = {.ranks = ranks, .ranks_per_node = per_node, .seed = seed, .report = report, .is_quiet = !getenv("STOPS_LOUD"),
                              .profile = weft_sim_profile_find("slow")};
    int kept = getenv("STOPS_LOUD") ? -1 : rig_mute();

    for (uint32_t i = 0; i < ranks; i++)
        run->class[i] = run->later[i] = -1;
    setenv("WEFT_RNDV_SCHEME", "copy", 1);
    present = run;
    left = -1;
    weft_sim_run(&config, program, run);
    present = NULL;
    if (kept >= 0)
        rig_unmute(kept);
    return is_well(run, ranks, report);
}

static bool judge(run *run, uint32_t ranks, uint32_t per_node)
{
    weft_sim_report report;

    if (one_run(run, ranks, per_node, &report, (uint64_t)run->number + 1))
        return true;
    fprintf(stderr, "    %s: code %d, %s\n", names[run->call], report.rc, report.text);
    for (uint32_t i = 0; i < ranks; i++)
        fprintf(stderr, "      rank %u: class %d, later %d\n", i, run->class[i], run->later[i]);
    fprintf(stderr, "    replay by: stops %d %u %u %d %d\n", (int)run->call, ranks, per_node, run->victim, run->number);
    return false;
}

static void test_stops(void)
{
    static const struct {
        uint32_t ranks, per_node;
    } places[] = {{5, 2}, {4, 0}, {6, 3}};
    uint32_t runs = 0, hits = 0, failures = 0;

    for (int call = 0; call < CALLS; call++)
        for (int p = 0; p < 3; p++)
            for (int victim = 0; victim < (int)places[p].ranks && failures < 4; victim++)
                for (int number = 0, goes_on = 1; goes_on && failures < 4; number++) {
                    run run = {.call = call, .victim = victim, .number = number};
                    failures += !judge(&run, places[p].ranks, places[p].per_node);
                    goes_on = run.is_hit;
                    hits += run.is_hit;
                    runs++;
                }
    printf("%u runs, %u allocations failed ", runs, hits);
    CU_ASSERT_EQUAL(failures, 0);
    CU_ASSERT(!CAN_FAIL || hits > runs / 2);
}

int main(int argc, char **argv)
{
    if (argc == 6) {
        run run = {.call = (enum call)atoi(argv[1]), .victim = atoi(argv[4]), .number = atoi(argv[5])};
        return !judge(&run, (uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
    }
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite("stopped collectives", NULL, NULL);
    CU_add_test(suite, "a member without memory ends the call on all members", test_stops);
    CU_basic_set_mode(CU_BRM_NORMAL);
    CU_basic_run_tests();
    unsigned failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed ? 1 : 0;
}
