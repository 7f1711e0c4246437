/* np: 1 2 3 5 8 : groups: random set algebra against arrays, the rules of MPI 5.0 7.3, groups of communicators, handles, errors */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "expect.h"

#define MAX 8
#define ROUNDS 300

static int rank, size;
static uint64_t state = 11;
static MPI_Group world;

typedef struct model {
    int n, at[MAX]; /* ranks in MPI_COMM_WORLD */
} model;

static int place(const model *m, int member)
{
    for (int i = 0; i < m->n; i++)
        if (m->at[i] == member)
            return i;
    return -1;
}

static void draw(model *m)
{
    int want = (int)(check_random(&state) % (uint32_t)(size + 1));
    m->n = 0;
    while (m->n < want) {
        int member = (int)(check_random(&state) % (uint32_t)size);
        if (place(m, member) < 0)
            m->at[m->n++] = member;
    }
}

static MPI_Group make(const model *m)
{
    MPI_Group group = MPI_GROUP_NULL;
    OK(MPI_Group_incl(world, m->n, m->at, &group));
    CHECK((m->n == 0) == (group == MPI_GROUP_EMPTY));
    return group;
}

/* Compares with the model and frees. */
static void matches(MPI_Group group, const model *m)
{
    int n = -1, own = -1, ranks[MAX], all[MAX], out[MAX];
    OK(MPI_Group_size(group, &n));
    CHECK(n == m->n, "size %d, must be %d", n, m->n);
    OK(MPI_Group_rank(group, &own));
    CHECK(own == (place(m, rank) < 0 ? MPI_UNDEFINED : place(m, rank)));
    for (int i = 0; i < MAX; i++)
        all[i] = i;
    OK(MPI_Group_translate_ranks(group, n, all, world, ranks));
    for (int i = 0; i < n; i++)
        CHECK(ranks[i] == m->at[i], "member %d is %d, must be %d", i, ranks[i], m->at[i]);
    OK(MPI_Group_translate_ranks(world, size, all, group, out));
    for (int i = 0; i < size; i++)
        CHECK(out[i] == (place(m, i) < 0 ? MPI_UNDEFINED : place(m, i)));
    OK(MPI_Group_free(&group));
    CHECK(group == MPI_GROUP_NULL);
}

static void algebra(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        model a, b, both, common = {0}, rest = {0}, kept = {0}, gone = {0};
        MPI_Group x, y, group;
        int result = -1, want, at[MAX], n = 0;
        draw(&a);
        draw(&b);
        x = make(&a);
        y = make(&b);
        both = a;
        for (int i = 0; i < b.n; i++)
            if (place(&a, b.at[i]) < 0)
                both.at[both.n++] = b.at[i];
        for (int i = 0; i < a.n; i++) {
            model *to = place(&b, a.at[i]) < 0 ? &rest : &common;
            to->at[to->n++] = a.at[i];
        }
        OK(MPI_Group_union(x, y, &group));
        matches(group, &both);
        OK(MPI_Group_intersection(x, y, &group));
        matches(group, &common);
        OK(MPI_Group_difference(x, y, &group));
        matches(group, &rest);
        OK(MPI_Group_compare(x, y, &result));
        want = a.n != b.n || common.n != a.n ? MPI_UNEQUAL : memcmp(a.at, b.at, sizeof(int) * (size_t)a.n) ? MPI_SIMILAR : MPI_IDENT;
        CHECK(result == want, "%d, must be %d", result, want);
        for (int i = 0; i < a.n; i++) /* the members of a with an odd rank there, from the last on */
            if ((a.n - 1 - i) % 2)
                kept.at[kept.n++] = a.at[at[n++] = a.n - 1 - i];
        for (int i = 0; i < a.n; i += 2)
            gone.at[gone.n++] = a.at[i];
        OK(MPI_Group_incl(x, n, at, &group));
        matches(group, &kept);
        OK(MPI_Group_excl(x, n, at, &group));
        matches(group, &gone);
        OK(MPI_Group_excl(x, 0, NULL, &group));
        matches(group, &a);
        matches(x, &a);
        matches(y, &b);
    }
}

/* A range call is the call without ranges on the ranks written out; (i, i, 1) is rank i. */
static void ranges(void)
{
    for (int first = 0; first < size; first++)
        for (int last = 0; last < size; last++)
            for (int stride = -3; stride <= 3; stride++) {
                int range[1][3] = {{first, last, stride}}, ranks[MAX], singles[MAX][3], n = 0, result;
                MPI_Group in[3], out[3];
                if (!stride || (last > first && stride < 0) || (last < first && stride > 0))
                    continue;
                for (int r = first; stride > 0 ? r <= last : r >= last; r += stride)
                    ranks[n++] = r;
                for (int i = 0; i < n; i++)
                    memcpy(singles[i], (int[]){ranks[i], ranks[i], 1}, sizeof singles[i]);
                OK(MPI_Group_range_incl(world, 1, range, &in[0]));
                OK(MPI_Group_incl(world, n, ranks, &in[1]));
                OK(MPI_Group_range_incl(world, n, singles, &in[2]));
                OK(MPI_Group_range_excl(world, 1, range, &out[0]));
                OK(MPI_Group_excl(world, n, ranks, &out[1]));
                OK(MPI_Group_range_excl(world, n, singles, &out[2]));
                for (int i = 0; i < 3; i++) {
                    OK(MPI_Group_compare(in[0], in[i], &result));
                    CHECK(result == MPI_IDENT);
                    OK(MPI_Group_compare(out[0], out[i], &result));
                    CHECK(result == MPI_IDENT);
                }
                for (int i = 0; i < 3; i++) {
                    OK(MPI_Group_free(&in[i]));
                    OK(MPI_Group_free(&out[i]));
                }
            }
}

static void rules(void)
{
    int ranks[MAX], result, reversed[1][3] = {{size - 1, 0, -1}}, null = MPI_PROC_NULL, out = 0;
    MPI_Group mirror, group, left, right, all;
    OK(MPI_Group_range_incl(world, 1, reversed, &mirror));
    OK(MPI_Group_compare(world, mirror, &result));
    CHECK(result == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
    /* Union and intersection are not commutative, and are associative. */
    OK(MPI_Group_union(world, mirror, &left));
    OK(MPI_Group_union(mirror, world, &right));
    OK(MPI_Group_compare(left, world, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_compare(right, mirror, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_union(left, mirror, &group));
    OK(MPI_Group_union(world, right, &all));
    OK(MPI_Group_compare(group, all, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_free(&left));
    OK(MPI_Group_free(&right));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_incl(world, 0, ranks, &group));
    CHECK(group == MPI_GROUP_EMPTY);
    OK(MPI_Group_free(&group));
    CHECK(group == MPI_GROUP_NULL);
    OK(MPI_Group_difference(world, mirror, &group));
    CHECK(group == MPI_GROUP_EMPTY);
    OK(MPI_Group_size(group, &result));
    CHECK(result == 0);
    OK(MPI_Group_rank(MPI_GROUP_EMPTY, &result));
    CHECK(result == MPI_UNDEFINED);
    OK(MPI_Group_union(MPI_GROUP_EMPTY, mirror, &group));
    OK(MPI_Group_compare(group, mirror, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_compare(MPI_GROUP_EMPTY, group, &result));
    CHECK(result == MPI_UNEQUAL);
    OK(MPI_Group_translate_ranks(world, 1, &null, group, &out));
    CHECK(out == MPI_PROC_NULL);
    OK(MPI_Group_translate_ranks(MPI_GROUP_EMPTY, 1, &null, group, &out));
    CHECK(out == MPI_PROC_NULL);
    OK(MPI_Group_translate_ranks(world, 0, NULL, group, NULL));
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&mirror));
}

static void of_communicators(void)
{
    MPI_Group group, self, again;
    MPI_Comm comm, dup;
    int n, own, result, zero = 0, other;
    OK(MPI_Comm_group(MPI_COMM_SELF, &self));
    OK(MPI_Group_size(self, &n));
    OK(MPI_Group_rank(self, &own));
    CHECK(n == 1 && own == 0);
    OK(MPI_Group_translate_ranks(self, 1, &zero, world, &other));
    CHECK(other == rank);
    OK(MPI_Group_free(&self));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm));
    OK(MPI_Comm_group(comm, &group));
    OK(MPI_Comm_dup(comm, &dup));
    OK(MPI_Comm_group(dup, &again));
    OK(MPI_Group_compare(group, again, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Comm_compare(comm, dup, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Group_size(group, &n)); /* a group outlives its communicator */
    CHECK(n == (size + !(rank % 2)) / 2);
    for (int i = 0; i < n; i++) {
        OK(MPI_Group_translate_ranks(again, 1, &i, world, &other));
        CHECK(other == rank % 2 + 2 * (n - 1 - i));
    }
    OK(MPI_Group_free(&again));
    OK(MPI_Group_rank(group, &own));
    CHECK(own == n - 1 - rank / 2);
    OK(MPI_Group_free(&group));
}

/* Between even and odd ranks, in order of the key. */
static MPI_Comm intercomm(int key)
{
    MPI_Comm local, inter;
    int last = rank % 2 ? (size - 1) / 2 * 2 : size / 2 * 2 - 1; /* the other half's last rank */
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, key, &local));
    OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, key < 0 ? last : !(rank % 2), 7, &inter));
    OK(MPI_Comm_free(&local));
    return inter;
}

static void of_intercommunicators(void)
{
    MPI_Group group, wanted;
    MPI_Comm inter, dup, mirror;
    int own, result, other[1][3] = {{!(rank % 2), size - 1, 2}}, same[1][3] = {{rank % 2, size - 1, 2}};
    if (size < 2)
        return;
    inter = intercomm(rank);
    mirror = intercomm(-1 - rank);
    OK(MPI_Comm_remote_group(inter, &group));
    OK(MPI_Group_range_incl(world, 1, other, &wanted));
    OK(MPI_Group_compare(group, wanted, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_rank(group, &own));
    CHECK(own == MPI_UNDEFINED);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&wanted));
    OK(MPI_Comm_group(inter, &group));
    OK(MPI_Group_range_incl(world, 1, same, &wanted));
    OK(MPI_Group_compare(group, wanted, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&wanted));
    OK(MPI_Comm_dup(inter, &dup));
    OK(MPI_Comm_compare(inter, dup, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_compare(inter, mirror, &result));
    CHECK(result == (size == 2 ? MPI_CONGRUENT : MPI_SIMILAR));
    OK(MPI_Comm_compare(inter, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_UNEQUAL);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&dup));
    OK(MPI_Comm_free(&mirror));
}

static void handles(void)
{
    MPI_Group group, kept;
    int n, wrong = MPI_Group_toint(world) + (1 << 24);
    CHECK(MPI_Group_fromint(MPI_Group_toint(world)) == world);
    CHECK(MPI_Group_fromint(MPI_Group_toint(MPI_GROUP_EMPTY)) == MPI_GROUP_EMPTY && MPI_Group_toint(MPI_GROUP_EMPTY) == 0x109);
    CHECK(MPI_Group_fromint(MPI_Group_toint(MPI_GROUP_NULL)) == MPI_GROUP_NULL && MPI_Group_toint(MPI_GROUP_NULL) == 0x108);
    CHECK(MPI_Group_fromint(wrong) == MPI_GROUP_NULL);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group)); /* the communicator's own: two handles now */
    OK(MPI_Group_free(&group));
    OK(MPI_Group_size(world, &n));
    kept = world;
    n = MPI_Group_toint(world);
    OK(MPI_Group_free(&world)); /* MPI_COMM_WORLD still references the group; it has no handle */
    BAD(MPI_Group_size(kept, &n), MPI_ERR_GROUP, "MPI_Group_size", "argument group is 0x", "freed or never a handle");
    BAD(MPI_Group_free(&kept), MPI_ERR_GROUP, "argument group is 0x");
    CHECK(MPI_Group_fromint(n) == MPI_GROUP_NULL);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_range_incl(world, 1, (int[][3]){{0, 0, 1}}, &group));
    kept = group;
    OK(MPI_Group_free(&group));
    BAD(MPI_Group_size(kept, &n), MPI_ERR_GROUP, "freed or never a handle");
    BAD(MPI_Group_free(&group), MPI_ERR_GROUP, "MPI_GROUP_NULL");
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

static void errors(void)
{
    MPI_Group group = MPI_GROUP_NULL;
    int bad[3] = {0, size, 0}, twice[2] = {0, 0}, out[3], n;
    int zero[1][3] = {{0, 0, 0}}, beyond[1][3] = {{0, size, 1}}, away[1][3] = {{0, size - 1, -1}}, again[2][3] = {{0, 0, 1}, {0, 0, -2}};
    char text[64];
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    snprintf(text, sizeof text, "ranks[1] is %d", size);
    BAD(MPI_Group_incl(world, 2, bad, &group), MPI_ERR_RANK, text, "not in the group");
    BAD(MPI_Group_excl(world, 2, bad, &group), MPI_ERR_RANK, text);
    snprintf(text, sizeof text, "ranks1[1] is %d", size);
    BAD(MPI_Group_translate_ranks(world, 2, bad, world, out), MPI_ERR_RANK, text, "MPI_PROC_NULL");
    BAD(MPI_Group_translate_ranks(MPI_GROUP_EMPTY, 1, bad, world, out), MPI_ERR_RANK, "ranks1[0] is 0", "empty");
    BAD(MPI_Group_incl(world, 2, twice, &group), MPI_ERR_RANK, "ranks[1] is 0", "ranks[0]", "once");
    BAD(MPI_Group_excl(world, 2, twice, &group), MPI_ERR_RANK, "ranks[1] is 0");
    BAD(MPI_Group_incl(world, -1, twice, &group), MPI_ERR_ARG, "n is -1");
    BAD(MPI_Group_excl(world, 1, NULL, &group), MPI_ERR_ARG, "ranks is NULL");
    BAD(MPI_Group_range_incl(world, 1, zero, &group), MPI_ERR_ARG, "ranges[0] is (0, 0, 0)", "stride");
    BAD(MPI_Group_range_excl(world, 1, beyond, &group), MPI_ERR_RANK, "ranges[0] is (0, ", "not in the group");
    if (size > 1)
        BAD(MPI_Group_range_incl(world, 1, away, &group), MPI_ERR_ARG, "leads away");
    BAD(MPI_Group_range_incl(world, 2, again, &group), MPI_ERR_RANK, "ranges[1] is (0, 0, -2)", "ranges[0]", "once");
    BAD(MPI_Group_range_excl(world, 1, NULL, &group), MPI_ERR_ARG, "ranges is NULL");
    BAD(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP, "MPI_Group_size", "group is MPI_GROUP_NULL");
    BAD(MPI_Group_rank((MPI_Group)MPI_COMM_WORLD, &n), MPI_ERR_GROUP, "0x101");
    BAD(MPI_Group_union(world, MPI_GROUP_NULL, &group), MPI_ERR_GROUP, "group2 is MPI_GROUP_NULL");
    BAD(MPI_Group_size(world, NULL), MPI_ERR_ARG, "size is NULL");
    BAD(MPI_Comm_remote_group(MPI_COMM_WORLD, &group), MPI_ERR_COMM, "MPI_COMM_WORLD", "intracommunicator");
    BAD(MPI_Comm_group(MPI_COMM_NULL, &group), MPI_ERR_COMM, "MPI_COMM_NULL");
    CHECK(group == MPI_GROUP_NULL);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    algebra();
    ranges();
    rules();
    of_communicators();
    of_intercommunicators();
    handles();
    errors();
    OK(MPI_Group_free(&world));
    OK(MPI_Finalize());
    return 0;
}
