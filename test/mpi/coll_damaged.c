/* np: 3 4 : a collective whose message is damaged or truncated ends on all ranks, with an error where data is wrong; the next succeeds */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "checksum.h"

enum { KINDS = 3, WAYS = 3, ROUNDS = 4 };
static const int lengths[] = {40, 900, 5000, 40000, 300000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };
static int rank, size, errors, flips;
static MPI_Comm comm = MPI_COMM_WORLD;

typedef struct call {
    int kind, way, bytes, root; /* bytes: this rank's */
    unsigned seed;
    unsigned char *out, *in;
} call;

static unsigned seed_of(const call *c, int of) { return c->seed + (unsigned)of; }

static void fill(const call *c, int max)
{
    memset(c->in, 0, (size_t)(size * max));
    for (int block = 0; block < size; block++)
        check_fill(c->out + block * c->bytes, (size_t)c->bytes, seed_of(c, rank));
    if (c->kind == 0 && rank == c->root)
        check_fill(c->in, (size_t)c->bytes, seed_of(c, rank));
}

static int is_right(const call *c)
{
    for (int block = 0; block < (c->kind ? size : 1); block++)
        if (check_wrong(c->in + block * c->bytes, (size_t)c->bytes, seed_of(c, c->kind ? block : c->root)) != (size_t)c->bytes)
            return 0;
    return 1;
}

/* Bcast, allgather, alltoall: called, started, or prepared and started. */
static int perform(const call *c)
{
    MPI_Comm w = comm;
    MPI_Datatype b = MPI_BYTE;
    MPI_Request req;
    int n = c->bytes, code;
    if (c->way == 0)
        return c->kind == 0   ? MPI_Bcast(c->in, n, b, c->root, w)
               : c->kind == 1 ? MPI_Allgather(c->out, n, b, c->in, n, b, w)
                              : MPI_Alltoall(c->out, n, b, c->in, n, b, w);
    if (c->way == 1)
        code = c->kind == 0   ? MPI_Ibcast(c->in, n, b, c->root, w, &req)
               : c->kind == 1 ? MPI_Iallgather(c->out, n, b, c->in, n, b, w, &req)
                              : MPI_Ialltoall(c->out, n, b, c->in, n, b, w, &req);
    else
        code = c->kind == 0   ? MPI_Bcast_init(c->in, n, b, c->root, w, MPI_INFO_NULL, &req)
               : c->kind == 1 ? MPI_Allgather_init(c->out, n, b, c->in, n, b, w, MPI_INFO_NULL, &req)
                              : MPI_Alltoall_init(c->out, n, b, c->in, n, b, w, MPI_INFO_NULL, &req);
    if (code) /* another member has stopped the communicator before */
        return code;
    code = c->way == 2 ? MPI_Start(&req) : MPI_SUCCESS;
    if (!code)
        code = MPI_Wait(&req, MPI_STATUS_IGNORE);
    if (c->way == 2)
        OK(MPI_Request_free(&req));
    return code;
}

/* One byte is damaged at the second rank from the root, which in a tree has children. */
static void flipped(call *c)
{
    int victim = (c->root + 2) % size, other = (victim + 1) % size, is_wrong, code, class, hit = 0;
    size_t at = (size_t)(c->bytes / 3);
    fill(c, c->bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == victim && (c->kind != 1 || size == 4)) /* an allgather of three ends with a local copy */
        flip_at = c->in + (c->kind ? (size_t)(other * c->bytes) : 0) + at;
    code = perform(c);
    if (rank == victim && (c->kind != 1 || size == 4))
        hit = !flip_at;
    flip_at = NULL;
    is_wrong = !is_right(c);
    OK(MPI_Error_class(code, &class));
    CHECK(!is_wrong || class == MPI_ERR_OTHER, "kind %d, way %d, %d bytes: wrong, and class %d", c->kind, c->way, c->bytes, class);
    CHECK(!code || class == MPI_ERR_OTHER, "kind %d, way %d, %d bytes: class %d", c->kind, c->way, c->bytes, class);
    errors += code != MPI_SUCCESS;
    flips += hit;
}

/* The same rank's buffer is shorter: a wrong call, which stops the communicator. */
static void cut(call *c)
{
    int victim = (c->root + 2) % size, whole = c->bytes, code, class;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    c->bytes -= rank == victim ? 8 : 0;
    fill(c, whole);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    code = perform(c);
    OK(MPI_Error_class(code, &class));
    CHECK(rank != victim || class == MPI_ERR_TRUNCATE || class == MPI_ERR_NOT_SAME, "kind %d, way %d: class %d", c->kind, c->way, class);
    CHECK(!code || class == MPI_ERR_TRUNCATE || class == MPI_ERR_NOT_SAME, "kind %d, way %d: class %d", c->kind, c->way, class);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Comm_free(&comm));
    comm = MPI_COMM_WORLD;
    c->bytes = whole;
}

static void sound(const call *c)
{
    fill(c, c->bytes);
    OK(perform(c));
    CHECK(is_right(c), "kind %d, way %d, %d bytes: wrong after the damage", c->kind, c->way, c->bytes);
}

int main(void)
{
    setenv("WEFT_CHECKSUM", "1", 1);
    check_start(NULL, NULL, &rank, &size);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < LENGTHS * KINDS * WAYS * ROUNDS; i++) {
        call c = {.kind = i % KINDS, .way = i / KINDS % WAYS, .bytes = lengths[i / KINDS / WAYS % LENGTHS],
                  .root = i / KINDS / WAYS / LENGTHS % size, .seed = (unsigned)(i * size)};
        c.out = malloc((size_t)(size * c.bytes));
        c.in = malloc((size_t)(size * c.bytes));
        flipped(&c);
        sound(&c);
        if (c.way)
            cut(&c);
        sound(&c);
        free(c.out);
        free(c.in);
    }
    /* nothing is flipped where a sender writes or a temporary copy is damaged; some bits must have been flipped */
    OK(MPI_Allreduce(MPI_IN_PLACE, &flips, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    OK(MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(flips > LENGTHS * KINDS * WAYS * ROUNDS / 8 && errors >= flips, "%d bits were flipped, %d errors", flips, errors);
    OK(MPI_Finalize());
    return 0;
}
