/* np: 1 2 3 4 5 8 : collectives with counts by rank against naive results: forms, roots, in place, gaps, empty blocks, absolute types, both
   kinds of communicators */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll_forms.h"

enum { RANKS = 16, ITEMS = 60000 };

/* The blocks of one side. */
typedef struct blocks {
    int n, counts[RANKS], displs[RANKS], bytes[RANKS];
    MPI_Count counts_c[RANKS];
    MPI_Aint displs_c[RANKS], bytes_c[RANKS];
    MPI_Datatype types[RANKS];
    int end; /* items, with gaps */
} blocks;

static long *out, *in, *want;
static MPI_Datatype pair, spread; /* two items; the same with a gap of one item between them */

static long item(int from, int to, int i) { return (long)from * 100003 + to * 1009 + i; }

/* Items that `from` sends to `to`: also none; even numbers. symmetric: both ways the same. */
static int share(int from, int to, int scale, int is_symmetric)
{
    int a = is_symmetric && from > to ? to : from, b = is_symmetric && from > to ? from : to;
    return (a * 3 + b * 5 + a * b) % 4 * scale * 2;
}

/* Blocks with gaps, from the last rank to the first. from, to: -1: the other rank */
static blocks blocks_of(const where *w, int from, int to, int scale, int is_symmetric)
{
    blocks b = {.n = w->remote, .end = 1};
    for (int i = b.n - 1; i >= 0; i--) {
        int other = w->first_remote + i;
        b.counts_c[i] = b.counts[i] = share(from < 0 ? other : from, to < 0 ? other : to, scale, is_symmetric);
        b.displs_c[i] = b.displs[i] = b.end;
        b.bytes_c[i] = b.bytes[i] = b.end * (int)sizeof(long);
        b.types[i] = MPI_LONG;
        b.end += b.counts[i] + i % 3;
    }
    CHECK(b.end < ITEMS, "%d items", b.end);
    return b;
}

/* Of the blocks with type w: every second one in pairs. */
static void pairs_of(blocks *b, int odd)
{
    for (int i = 0; i < b->n; i++)
        if (i % 2 == odd) {
            b->types[i] = pair;
            b->counts_c[i] = b->counts[i] /= 2;
        }
}

static void clear(long *buf)
{
    for (int i = 0; i < ITEMS; i++)
        buf[i] = -1;
}

static void put(long *buf, const blocks *b, int i, int from, int to)
{
    for (int k = 0; k < b->counts[i]; k++)
        buf[b->displs[i] + k] = item(from, to, k);
}

static void expect(const char *what, const where *w, int form, int param)
{
    for (int i = 0; i < ITEMS; i++)
        CHECK(in[i] == want[i], "%s, form %d, %d and %d ranks, case %d: item %d is %ld, not %ld", what, form, w->size, w->remote, param, i,
              in[i], want[i]);
}

/* ---- gatherv, scatterv ---- */

static void gatherv(const where *w, int form, int scale, int side, int root, int is_in_place)
{
    int passed = root_for(w, side, root), is_root = passed == MPI_ROOT || (!w->is_inter && w->rank == root);
    int has_block = !w->is_inter || w->side != side, n = has_block ? share(w->me, 0, scale, 0) : 0;
    blocks b = blocks_of(w, -1, 0, scale, 0);
    const void *data = is_in_place && is_root ? MPI_IN_PLACE : out;
    clear(in);
    clear(want);
    for (int i = 0; i < n; i++)
        out[i] = item(w->me, 0, i);
    for (int i = 0; i < b.n && is_root; i++) {
        put(want, &b, i, w->first_remote + i, 0);
        if (is_in_place && i == w->rank)
            put(in, &b, i, w->me, 0);
    }
    EACH(form,
         MPI_Gatherv(data, n, MPI_LONG, in, b.counts, b.displs, MPI_LONG, passed, w->comm),
         MPI_Gatherv_c(data, n, MPI_LONG, in, b.counts_c, b.displs_c, MPI_LONG, passed, w->comm),
         MPI_Igatherv(data, n, MPI_LONG, in, b.counts, b.displs, MPI_LONG, passed, w->comm, &request),
         MPI_Igatherv_c(data, n, MPI_LONG, in, b.counts_c, b.displs_c, MPI_LONG, passed, w->comm, &request),
         MPI_Gatherv_init(data, n, MPI_LONG, in, b.counts, b.displs, MPI_LONG, passed, w->comm, MPI_INFO_NULL, &request),
         MPI_Gatherv_init_c(data, n, MPI_LONG, in, b.counts_c, b.displs_c, MPI_LONG, passed, w->comm, MPI_INFO_NULL, &request));
    expect("gatherv", w, form, root + is_in_place * 100);
}

static void scatterv(const where *w, int form, int scale, int side, int root, int is_in_place)
{
    int passed = root_for(w, side, root), is_root = passed == MPI_ROOT || (!w->is_inter && w->rank == root);
    int has_block = !w->is_inter || w->side != side, from = w->is_inter ? (w->side == side ? w->me : w->first_remote + root) : root;
    int n = has_block ? share(0, w->me, scale, 0) : 0;
    blocks b = blocks_of(w, 0, -1, scale, 0);
    void *data = is_in_place && is_root ? MPI_IN_PLACE : in;
    clear(in);
    clear(want);
    for (int i = 0; i < b.n && is_root; i++)
        put(out, &b, i, w->me, w->first_remote + i);
    for (int i = 0; i < n && data == in; i++)
        want[i] = item(from, w->me, i);
    EACH(form,
         MPI_Scatterv(out, b.counts, b.displs, MPI_LONG, data, n, MPI_LONG, passed, w->comm),
         MPI_Scatterv_c(out, b.counts_c, b.displs_c, MPI_LONG, data, n, MPI_LONG, passed, w->comm),
         MPI_Iscatterv(out, b.counts, b.displs, MPI_LONG, data, n, MPI_LONG, passed, w->comm, &request),
         MPI_Iscatterv_c(out, b.counts_c, b.displs_c, MPI_LONG, data, n, MPI_LONG, passed, w->comm, &request),
         MPI_Scatterv_init(out, b.counts, b.displs, MPI_LONG, data, n, MPI_LONG, passed, w->comm, MPI_INFO_NULL, &request),
         MPI_Scatterv_init_c(out, b.counts_c, b.displs_c, MPI_LONG, data, n, MPI_LONG, passed, w->comm, MPI_INFO_NULL, &request));
    expect("scatterv", w, form, root + is_in_place * 100);
}

/* ---- allgatherv, alltoallv, alltoallw ---- */

static void allgatherv(const where *w, int form, int scale, int is_in_place)
{
    int n = share(w->me, 0, scale, 0);
    blocks b = blocks_of(w, -1, 0, scale, 0);
    const void *data = is_in_place ? MPI_IN_PLACE : out;
    clear(in);
    clear(want);
    for (int i = 0; i < n; i++)
        out[i] = item(w->me, 0, i);
    for (int i = 0; i < b.n; i++)
        put(want, &b, i, w->first_remote + i, 0);
    if (is_in_place)
        put(in, &b, w->rank, w->me, 0);
    EACH(form,
         MPI_Allgatherv(data, n, MPI_LONG, in, b.counts, b.displs, MPI_LONG, w->comm),
         MPI_Allgatherv_c(data, n, MPI_LONG, in, b.counts_c, b.displs_c, MPI_LONG, w->comm),
         MPI_Iallgatherv(data, n, MPI_LONG, in, b.counts, b.displs, MPI_LONG, w->comm, &request),
         MPI_Iallgatherv_c(data, n, MPI_LONG, in, b.counts_c, b.displs_c, MPI_LONG, w->comm, &request),
         MPI_Allgatherv_init(data, n, MPI_LONG, in, b.counts, b.displs, MPI_LONG, w->comm, MPI_INFO_NULL, &request),
         MPI_Allgatherv_init_c(data, n, MPI_LONG, in, b.counts_c, b.displs_c, MPI_LONG, w->comm, MPI_INFO_NULL, &request));
    expect("allgatherv", w, form, scale);
}

static void fill_pairs(const where *w, const blocks *to, const blocks *from, int is_in_place)
{
    clear(in);
    clear(want);
    for (int i = 0; i < w->remote; i++) {
        put(is_in_place ? in : out, is_in_place ? from : to, i, w->me, w->first_remote + i);
        put(want, from, i, w->first_remote + i, w->me);
    }
}

static void alltoallv(const where *w, int form, int scale, int is_in_place)
{
    blocks to = blocks_of(w, w->me, -1, scale, is_in_place), from = blocks_of(w, -1, w->me, scale, is_in_place);
    const void *data = is_in_place ? MPI_IN_PLACE : out;
    fill_pairs(w, &to, &from, is_in_place);
    EACH(form,
         MPI_Alltoallv(data, to.counts, to.displs, MPI_LONG, in, from.counts, from.displs, MPI_LONG, w->comm),
         MPI_Alltoallv_c(data, to.counts_c, to.displs_c, MPI_LONG, in, from.counts_c, from.displs_c, MPI_LONG, w->comm),
         MPI_Ialltoallv(data, to.counts, to.displs, MPI_LONG, in, from.counts, from.displs, MPI_LONG, w->comm, &request),
         MPI_Ialltoallv_c(data, to.counts_c, to.displs_c, MPI_LONG, in, from.counts_c, from.displs_c, MPI_LONG, w->comm, &request),
         MPI_Alltoallv_init(data, to.counts, to.displs, MPI_LONG, in, from.counts, from.displs, MPI_LONG, w->comm, MPI_INFO_NULL,
                   &request),
         MPI_Alltoallv_init_c(data, to.counts_c, to.displs_c, MPI_LONG, in, from.counts_c, from.displs_c, MPI_LONG, w->comm,
                   MPI_INFO_NULL, &request));
    expect("alltoallv", w, form, scale);
}

static void alltoallw(const where *w, int form, int scale, int is_in_place)
{
    blocks to = blocks_of(w, w->me, -1, scale, is_in_place), from = blocks_of(w, -1, w->me, scale, is_in_place);
    const void *data = is_in_place ? MPI_IN_PLACE : out;
    fill_pairs(w, &to, &from, is_in_place);
    pairs_of(&to, 0);
    pairs_of(&from, 1);
    EACH(form,
         MPI_Alltoallw(data, to.counts, to.bytes, to.types, in, from.counts, from.bytes, from.types, w->comm),
         MPI_Alltoallw_c(data, to.counts_c, to.bytes_c, to.types, in, from.counts_c, from.bytes_c, from.types, w->comm),
         MPI_Ialltoallw(data, to.counts, to.bytes, to.types, in, from.counts, from.bytes, from.types, w->comm, &request),
         MPI_Ialltoallw_c(data, to.counts_c, to.bytes_c, to.types, in, from.counts_c, from.bytes_c, from.types, w->comm, &request),
         MPI_Alltoallw_init(data, to.counts, to.bytes, to.types, in, from.counts, from.bytes, from.types, w->comm, MPI_INFO_NULL,
                   &request),
         MPI_Alltoallw_init_c(data, to.counts_c, to.bytes_c, to.types, in, from.counts_c, from.bytes_c, from.types, w->comm,
                   MPI_INFO_NULL, &request));
    expect("alltoallw", w, form, scale);
}

/* Displacements in extents of a type with gaps; MPI_BOTTOM with types of absolute addresses. */
static void types(const where *w)
{
    int counts[RANKS], displs[RANKS], ones[RANKS], zeros[RANKS] = {0}, n = w->remote;
    MPI_Datatype place[RANKS], whole[RANKS];
    for (int i = 0; i < n; i++) {
        counts[i] = 1 + i % 2;
        displs[i] = 2 * (n - 1 - i);
        ones[i] = 1;
    }
    clear(in);
    clear(want);
    for (int i = 0; i < 4; i++)
        out[i] = item(w->me, 0, i);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2 * counts[i]; k++)
            want[3 * (displs[i] + k / 2) + k % 2 * 2] = item(w->first_remote + i, 0, k);
    OK(MPI_Allgatherv(out, 2 * (1 + w->rank % 2), MPI_LONG, in, counts, displs, spread, w->comm));
    expect("allgatherv of a type with gaps", w, 0, 0);
    clear(in);
    clear(want);
    for (int i = 0; i < n; i++) {
        MPI_Aint from, to;
        out[i] = item(w->me, w->first_remote + i, 0);
        want[n - 1 - i] = item(w->first_remote + i, w->me, 0);
        OK(MPI_Get_address(&out[i], &from));
        OK(MPI_Get_address(&in[n - 1 - i], &to));
        OK(MPI_Type_create_hindexed_block(1, 1, &from, MPI_LONG, &place[i]));
        OK(MPI_Type_create_hindexed_block(1, 1, &to, MPI_LONG, &whole[i]));
        OK(MPI_Type_commit(&place[i]));
        OK(MPI_Type_commit(&whole[i]));
    }
    OK(MPI_Alltoallw(MPI_BOTTOM, ones, zeros, place, MPI_BOTTOM, ones, zeros, whole, w->comm));
    expect("alltoallw of absolute types", w, 0, 0);
    for (int i = 0; i < n; i++) {
        OK(MPI_Type_free(&place[i]));
        OK(MPI_Type_free(&whole[i]));
    }
}

/* Columns of one array by different types: sent and received blocks begin at one address and share no byte. */
static void one_array(void)
{
    int n, me, *a, *ones, *at;
    MPI_Datatype even, odd, *send, *recv;
    OK(MPI_Comm_size(MPI_COMM_WORLD, &n));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &me));
    a = calloc((size_t)(4 * n), sizeof *a), ones = calloc((size_t)n, sizeof *ones), at = calloc((size_t)n, sizeof *at);
    send = calloc((size_t)n, sizeof *send), recv = calloc((size_t)n, sizeof *recv);
    CHECK(a && ones && at && send && recv);
    OK(MPI_Type_create_indexed_block(2, 1, (const int[]){0, 2}, MPI_INT, &even));
    OK(MPI_Type_create_indexed_block(2, 1, (const int[]){1, 3}, MPI_INT, &odd));
    OK(MPI_Type_commit(&even));
    OK(MPI_Type_commit(&odd));
    for (int i = 0; i < n; i++) {
        ones[i] = 1;
        at[i] = 4 * i * (int)sizeof *a;
        send[i] = even;
        recv[i] = odd;
        a[4 * i] = 100 * me + i;
        a[4 * i + 2] = -(100 * me + i);
    }
    OK(MPI_Alltoallw(a, ones, at, send, a, ones, at, recv, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++)
        CHECK(a[4 * i + 1] == 100 * i + me && a[4 * i + 3] == -(100 * i + me), "block %d: %d %d", i, a[4 * i + 1], a[4 * i + 3]);
    OK(MPI_Type_free(&even));
    OK(MPI_Type_free(&odd));
    free(a), free(ones), free(at), free(send), free(recv);
}

static void all(const where *w)
{
    for (int form = 0; form < FORMS; form++)
        for (int scale = 0; scale < 4; scale++) {
            static const int scales[] = {0, 1, 40, 700};
            int s = scales[scale];
            for (int side = 0; side <= w->is_inter; side++)
                for (int root = 0; root < w->sizes[side]; root += 1 + w->sizes[side] / 3)
                    for (int in_place = 0; in_place <= !w->is_inter; in_place++) {
                        gatherv(w, form, s, side, root, in_place);
                        scatterv(w, form, s, side, root, in_place);
                    }
            for (int in_place = 0; in_place <= !w->is_inter; in_place++) {
                allgatherv(w, form, s, in_place);
                if (in_place && form >= PERSISTENT) /* the second start would send back what the first one has received */
                    continue;
                alltoallv(w, form, s, in_place);
                alltoallw(w, form, s, in_place);
            }
        }
    types(w);
}

int main(int argc, char **argv)
{
    int rank, size;
    where w;
    check_start(&argc, &argv, &rank, &size);
    out = malloc(3 * ITEMS * sizeof *out);
    in = out + ITEMS;
    want = in + ITEMS;
    OK(MPI_Type_contiguous(2, MPI_LONG, &pair));
    OK(MPI_Type_commit(&pair));
    OK(MPI_Type_vector(2, 1, 2, MPI_LONG, &spread));
    OK(MPI_Type_commit(&spread));
    w = intra_of(MPI_COMM_WORLD);
    all(&w);
    if (size > 1) {
        w = inter_of(rank, size);
        all(&w);
        OK(MPI_Comm_free(&w.comm));
    }
    OK(MPI_Type_free(&pair));
    OK(MPI_Type_free(&spread));
    free(out);
    one_array();
    OK(MPI_Finalize());
    return 0;
}
