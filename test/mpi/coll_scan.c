/* np: 1 2 3 4 5 8 : scan, exscan, reduce_scatter and _block against naive results: forms, in place, empty blocks, operators that do not
   commute, intercommunicators */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_forms.h"

enum { RANKS = 16, ITEMS = 70000, PRIME = 30011 };

/* x -> a x + b modulo a prime: composition is associative and does not commute. */
typedef struct map {
    int a, b;
} map;

static map *out, *in, *want;
static MPI_Datatype type;
static MPI_Op compose_op, add_op;

static map compose(map f, map g) { return (map){f.a * g.a % PRIME, (f.a * g.b + f.b) % PRIME}; }
static map add(map f, map g) { return (map){(f.a + g.a) % PRIME, (f.b + g.b) % PRIME}; }

static void compose_all(void *x, void *y, int *n, MPI_Datatype *t)
{
    (void)t;
    for (int i = 0; i < *n; i++)
        ((map *)y)[i] = compose(((map *)x)[i], ((map *)y)[i]);
}

static void add_all(void *x, void *y, int *n, MPI_Datatype *t)
{
    (void)t;
    for (int i = 0; i < *n; i++)
        ((map *)y)[i] = add(((map *)x)[i], ((map *)y)[i]);
}

static map item(int r, int i) { return (map){1 + (r * 7 + i * 3) % 1000, (r * 5 + i) % 1000}; }

/* Of ranks first .. last. */
static map folded(int first, int last, int i, MPI_Op op)
{
    map sum = item(first, i);
    for (int r = first + 1; r <= last; r++)
        sum = op == compose_op ? compose(sum, item(r, i)) : add(sum, item(r, i));
    return sum;
}

static void begin(const where *w, int n, int is_in_place)
{
    for (int i = 0; i < ITEMS; i++)
        in[i] = want[i] = (map){-1, -1};
    for (int i = 0; i < n; i++)
        (is_in_place ? in : out)[i] = item(w->me, i);
}

/* The first n items; behind them nothing is written unless it is in place. */
static void expect(const char *what, const where *w, int form, int n, int is_in_place)
{
    for (int i = 0; i < n + (is_in_place ? 0 : 20); i++)
        CHECK(in[i].a == want[i].a && in[i].b == want[i].b, "%s, form %d, %d and %d ranks, %d items, in place %d: item %d is (%d, %d)",
              what, form, w->size, w->remote, n, is_in_place, i, in[i].a, in[i].b);
}

/* Persistent calls are started twice; in place the second start would take the first one's result. */
static int is_once(int form, int is_in_place) { return form < PERSISTENT || !is_in_place; }

static void scan(const where *w, int form, int n, MPI_Op op, int is_in_place)
{
    const void *data = is_in_place ? MPI_IN_PLACE : out;
    begin(w, n, is_in_place);
    for (int i = 0; i < n; i++)
        want[i] = folded(0, w->rank, i, op);
    EACH(form,
         MPI_Scan(data, in, n, type, op, w->comm),
         MPI_Scan_c(data, in, n, type, op, w->comm),
         MPI_Iscan(data, in, n, type, op, w->comm, &request),
         MPI_Iscan_c(data, in, n, type, op, w->comm, &request),
         MPI_Scan_init(data, in, n, type, op, w->comm, MPI_INFO_NULL, &request),
         MPI_Scan_init_c(data, in, n, type, op, w->comm, MPI_INFO_NULL, &request));
    expect("scan", w, form, n, is_in_place);
}

static void exscan(const where *w, int form, int n, MPI_Op op, int is_in_place)
{
    const void *data = is_in_place ? MPI_IN_PLACE : out;
    void *result = w->rank || is_in_place ? in : NULL; /* not significant at rank 0 */
    begin(w, n, is_in_place);
    for (int i = 0; i < n && (w->rank || is_in_place); i++)
        want[i] = w->rank ? folded(0, w->rank - 1, i, op) : in[i];
    EACH(form,
         MPI_Exscan(data, result, n, type, op, w->comm),
         MPI_Exscan_c(data, result, n, type, op, w->comm),
         MPI_Iexscan(data, result, n, type, op, w->comm, &request),
         MPI_Iexscan_c(data, result, n, type, op, w->comm, &request),
         MPI_Exscan_init(data, result, n, type, op, w->comm, MPI_INFO_NULL, &request),
         MPI_Exscan_init_c(data, result, n, type, op, w->comm, MPI_INFO_NULL, &request));
    expect("exscan", w, form, n, is_in_place);
}

/* each: elements of a block; on an intercommunicator both groups have the same number in all. */
static void reduce_scatter_block(const where *w, int form, int each, MPI_Op op, int is_in_place)
{
    const void *data = is_in_place ? MPI_IN_PLACE : out;
    int n = w->is_inter ? each * w->remote : each;
    begin(w, n * w->size, is_in_place);
    for (int i = 0; i < n; i++)
        want[i] = folded(w->first_remote, w->first_remote + w->remote - 1, w->rank * n + i, op);
    EACH(form,
         MPI_Reduce_scatter_block(data, in, n, type, op, w->comm),
         MPI_Reduce_scatter_block_c(data, in, n, type, op, w->comm),
         MPI_Ireduce_scatter_block(data, in, n, type, op, w->comm, &request),
         MPI_Ireduce_scatter_block_c(data, in, n, type, op, w->comm, &request),
         MPI_Reduce_scatter_block_init(data, in, n, type, op, w->comm, MPI_INFO_NULL, &request),
         MPI_Reduce_scatter_block_init_c(data, in, n, type, op, w->comm, MPI_INFO_NULL, &request));
    expect("reduce_scatter_block", w, form, n, is_in_place);
}

static void reduce_scatter(const where *w, int form, int all, MPI_Op op, int is_in_place)
{
    const void *data = is_in_place ? MPI_IN_PLACE : out;
    int counts[RANKS], first = 0;
    MPI_Count counts_c[RANKS];
    for (int i = 0; i < w->size; i++) /* the first ones have few or none */
        counts_c[i] = counts[i] = all * (i + 1) * (i + 1) / (w->size * w->size) - all * i * i / (w->size * w->size);
    begin(w, all, is_in_place);
    for (int i = 0; i < w->rank; i++)
        first += counts[i];
    for (int i = 0; i < counts[w->rank]; i++)
        want[i] = folded(w->first_remote, w->first_remote + w->remote - 1, first + i, op);
    EACH(form,
         MPI_Reduce_scatter(data, in, counts, type, op, w->comm),
         MPI_Reduce_scatter_c(data, in, counts_c, type, op, w->comm),
         MPI_Ireduce_scatter(data, in, counts, type, op, w->comm, &request),
         MPI_Ireduce_scatter_c(data, in, counts_c, type, op, w->comm, &request),
         MPI_Reduce_scatter_init(data, in, counts, type, op, w->comm, MPI_INFO_NULL, &request),
         MPI_Reduce_scatter_init_c(data, in, counts_c, type, op, w->comm, MPI_INFO_NULL, &request));
    expect("reduce_scatter", w, form, counts[w->rank], is_in_place);
}

static void all(const where *w)
{
    static const int counts[] = {0, 1, 3, 17, 300, 4000};
    for (int form = 0; form < FORMS; form++)
        for (int k = 0; k < 6; k++)
            for (int i = 0; i < 4; i++) {
                int in_place = i / 2, n = counts[k];
                MPI_Op op = i % 2 ? add_op : compose_op;
                if ((in_place && w->is_inter) || !is_once(form, in_place))
                    continue;
                if (!w->is_inter) {
                    scan(w, form, 2 * n, op, in_place);
                    exscan(w, form, 2 * n, op, in_place);
                }
                reduce_scatter_block(w, form, n, op, in_place);
                reduce_scatter(w, form, 3 * n, op, in_place);
            }
}

static void predefined(int rank, int size)
{
    double x = rank + 1, y = -1, all[RANKS];
    OK(MPI_Scan(&x, &y, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    CHECK(y == rank + 1, "%g", y);
    y = -1;
    OK(MPI_Exscan(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CHECK(y == (rank ? rank * (rank + 1) / 2 : -1), "%g", y);
    for (int i = 0; i < size; i++)
        all[i] = i + rank;
    OK(MPI_Reduce_scatter_block(all, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
    CHECK(y == rank * size + size * (size - 1) / 2, "%g", y);
}

int main(int argc, char **argv)
{
    int rank, size;
    where w;
    check_start(&argc, &argv, &rank, &size);
    out = malloc(3 * ITEMS * sizeof *out);
    in = out + ITEMS;
    want = in + ITEMS;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(compose_all, 0, &compose_op));
    OK(MPI_Op_create(add_all, 1, &add_op));
    w = intra_of(MPI_COMM_WORLD);
    all(&w);
    predefined(rank, size);
    if (size > 1) {
        w = inter_of(rank, size);
        all(&w);
        OK(MPI_Comm_free(&w.comm));
    }
    OK(MPI_Op_free(&compose_op));
    OK(MPI_Op_free(&add_op));
    OK(MPI_Type_free(&type));
    free(out);
    OK(MPI_Finalize());
    return 0;
}
