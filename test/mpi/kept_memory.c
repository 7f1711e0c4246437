/* np: 2 : buffers of persistent requests and collectives, and memory of MPI_Alloc_mem, are registered once and ahead if a device
 * needs registration; all are released, also if the program does not free them */
#include "tool_counter.h"

#define BYTES (1 << 20)
#define ROUNDS 5

static MPI_T_pvar_handle misses, moved;

static void exchange(int rank, void *buf, unsigned seed)
{
    if (rank == 0) {
        check_fill(buf, BYTES, seed);
        OK(MPI_Send(buf, BYTES, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
        return;
    }
    OK(MPI_Recv(buf, BYTES, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(check_wrong(buf, BYTES, seed) == BYTES);
}

/* Does a device move large messages between the two? The initiator counts them. */
static int has_device(int rank)
{
    int local, both;
    char *buf = malloc(BYTES);
    exchange(rank, buf, 1);
    local = value_of(moved) > 0;
    OK(MPI_Allreduce(&local, &both, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    free(buf);
    return both;
}

static void persistent(int rank, int device)
{
    unsigned char *buf = malloc(BYTES);
    unsigned long long before = value_of(misses), made;
    MPI_Request request;
    if (rank == 0)
        OK(MPI_Send_init(buf, BYTES, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request));
    else
        OK(MPI_Recv_init(buf, BYTES, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request));
    made = value_of(misses);
    CHECK(made == before + (unsigned)device, "%llu, %llu", before, made);
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (rank == 0)
            check_fill(buf, BYTES, round);
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (rank == 1)
            CHECK(check_wrong(buf, BYTES, round) == BYTES);
    }
    CHECK(value_of(misses) == made, "%llu, %llu", made, value_of(misses));
    OK(MPI_Request_free(&request));
    free(buf);
}

enum { BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, ALLGATHER, ALLTOALL, KINDS };
static const char *const kinds[] = {"bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"};

#define INTS (BYTES / (int)sizeof(int)) /* of one block */

static void make(int kind, int *out, int *in, MPI_Request *request)
{
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Info none = MPI_INFO_NULL;
    switch (kind) {
    case BCAST: OK(MPI_Bcast_init(in, INTS, MPI_INT, 1, all, none, request)); break;
    case REDUCE: OK(MPI_Reduce_init(out, in, INTS, MPI_INT, MPI_SUM, 0, all, none, request)); break;
    case ALLREDUCE: OK(MPI_Allreduce_init(out, in, INTS, MPI_INT, MPI_SUM, all, none, request)); break;
    case GATHER: OK(MPI_Gather_init(out, INTS, MPI_INT, in, INTS, MPI_INT, 0, all, none, request)); break;
    case SCATTER: OK(MPI_Scatter_init(out, INTS, MPI_INT, in, INTS, MPI_INT, 1, all, none, request)); break;
    case ALLGATHER: OK(MPI_Allgather_init(out, INTS, MPI_INT, in, INTS, MPI_INT, all, none, request)); break;
    default: OK(MPI_Alltoall_init(out, INTS, MPI_INT, in, INTS, MPI_INT, all, none, request));
    }
}

/* Element i of block b that a rank sends in a round. */
static int sent(int rank, int b, int i, int round) { return 1000 * round + 100 * rank + 10 * b + i % 7; }

/* How many elements of `in` are wrong. */
static int wrong(int kind, int rank, const int *in, int round)
{
    int bad = 0;
    for (int i = 0; i < INTS; i++) {
        int sum = sent(0, 0, i, round) + sent(1, 0, i, round);
        switch (kind) {
        case BCAST: bad += in[i] != sent(1, 0, i, round); break;
        case REDUCE: bad += rank == 0 && in[i] != sum; break;
        case ALLREDUCE: bad += in[i] != sum; break;
        case GATHER: bad += rank == 0 && (in[i] != sent(0, 0, i, round) || in[INTS + i] != sent(1, 0, i, round)); break;
        case SCATTER: bad += in[i] != sent(1, rank, i, round); break;
        case ALLGATHER: bad += in[i] != sent(0, 0, i, round) || in[INTS + i] != sent(1, 0, i, round); break;
        default: bad += in[i] != sent(0, rank, i, round) || in[INTS + i] != sent(1, rank, i, round);
        }
    }
    return bad;
}

/* Each buffer was never registered before. */
static void collective(int rank, int device, int kind)
{
    static int memory[KINDS][2][2 * INTS];
    int *out = memory[kind][0], *in = memory[kind][1];
    unsigned long long before = value_of(misses), made;
    MPI_Request request;
    make(kind, out, in, &request);
    made = value_of(misses);
    CHECK((made > before) == device, "%s: %llu, %llu", kinds[kind], before, made);
    for (int round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < 2 * INTS; i++) {
            out[i] = sent(rank, i / INTS, i % INTS, round);
            in[i] = kind == BCAST && rank == 1 ? out[i] : -1;
        }
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(wrong(kind, rank, in, round) == 0, "%s, round %d: %d elements", kinds[kind], round, wrong(kind, rank, in, round));
    }
    CHECK(value_of(misses) == made, "%s: %llu registered ahead, then %llu more", kinds[kind], made - before,
          value_of(misses) - made);
    OK(MPI_Request_free(&request));
}

static void allocated(int rank, int device)
{
    unsigned long long before = value_of(misses), made;
    void *buf, *small;
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &buf));
    made = value_of(misses);
    CHECK(made == before + (unsigned)device, "%llu, %llu", before, made);
    for (unsigned round = 0; round < ROUNDS; round++)
        exchange(rank, buf, 7 + round);
    CHECK(value_of(misses) == made, "%llu, %llu", made, value_of(misses));
    OK(MPI_Alloc_mem(100, MPI_INFO_NULL, &small));
    CHECK(value_of(misses) == made);
    OK(MPI_Free_mem(small));
    OK(MPI_Free_mem(buf));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    small = calloc(4, 64);
    CHECK(MPI_Free_mem((char *)small + 65) != MPI_SUCCESS); /* not from MPI_Alloc_mem */
    free(small);
}

int main(int argc, char **argv)
{
    int rank, size, provided, device;
    static void *forgotten;
    setenv("WEFT_RNDV_SCHEME", "get", 1); /* no trials of copies */
    setenv("WEFT_REG_MODE", "sync", 1);      /* no trials of asynchronous registration */
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    misses = counter("weft_reg_misses");
    moved = counter("weft_bytes_rma");
    device = has_device(rank);
    persistent(rank, device);
    for (int kind = 0; kind < KINDS; kind++)
        collective(rank, device, kind);
    allocated(rank, device);
    OK(MPI_Alloc_mem(BYTES, MPI_INFO_NULL, &forgotten));
    OK(MPI_Finalize());
    return 0;
}
