/* np: 2 3 4 5 8 : what the standard's examples of communicators show (MPI 5.0 7.4-7.7): groups, libraries, bridges, caching */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

/* Functions are in the order of the text and name the section; docs/standard-examples.md has the list. */
static int rank, size;

/* Two groups, the first `left` ranks and the others. */
static MPI_Comm two_groups(int left)
{
    MPI_Comm local, inter;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank < left, rank, &local));
    OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, rank < left ? left : 0, 1, &inter));
    OK(MPI_Comm_free(&local));
    return inter;
}

/* 7.4.2: one member of the left group and the whole right one make an intercommunicator out of a larger. */
static void one_and_all(void)
{
    const int left = (size + 1) / 2, first = 0;
    MPI_Comm inter = two_groups(left), smaller;
    MPI_Group local, group;
    int n, remote, value = rank;
    OK(MPI_Comm_group(inter, &local));
    if (rank < left)
        OK(MPI_Group_incl(local, 1, &first, &group));
    else
        group = local;
    OK(MPI_Comm_create(inter, group, &smaller));
    CHECK((smaller == MPI_COMM_NULL) == (rank > 0 && rank < left));
    if (smaller != MPI_COMM_NULL) {
        OK(MPI_Comm_size(smaller, &n));
        OK(MPI_Comm_remote_size(smaller, &remote));
        CHECK(n == (rank ? size - left : 1) && remote == (rank ? 1 : size - left));
        OK(MPI_Bcast(&value, 1, MPI_INT, rank ? 0 : MPI_ROOT, smaller));
        CHECK(value == 0);
        OK(MPI_Comm_free(&smaller));
    }
    if (rank < left)
        OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_free(&inter));
}

/* 7.4.2: clients choose a server by color; a server's color is its rank. */
static void pool_of_servers(void)
{
    const int clients = (size + 1) / 2;
    MPI_Comm all = two_groups(clients), side;
    int me, servers, n, value, sum = 0;
    OK(MPI_Comm_rank(all, &me));
    if (rank < clients) {
        OK(MPI_Comm_remote_size(all, &servers));
        OK(MPI_Comm_split(all, me % servers, me, &side));
        OK(MPI_Comm_remote_size(side, &n));
        CHECK(n == 1);
        OK(MPI_Send(&me, 1, MPI_INT, 0, 0, side));
    } else {
        OK(MPI_Comm_size(all, &servers));
        OK(MPI_Comm_split(all, me, 0, &side));
        OK(MPI_Comm_remote_size(side, &n));
        CHECK(n == (clients - me + servers - 1) / servers);
        for (int i = 0; i < n; i++) {
            OK(MPI_Recv(&value, 1, MPI_INT, i, 0, side, MPI_STATUS_IGNORE));
            CHECK(value == me + i * servers);
            sum++;
        }
        CHECK(sum == n);
    }
    OK(MPI_Comm_free(&side));
    OK(MPI_Comm_free(&all));
}

/* 7.4.2 and 9.1.2: a kind of hardware that the library lists and to which this process is restricted gives a communicator of the
 * processes that share its instance, by both guided split types; any process that names a kind must name the same. */
static void guided(void)
{
    const char kind[] = "hwloc://NUMANode";
    char value[8];
    MPI_Info hardware, info;
    MPI_Comm part[2];
    int length = sizeof value, found, all, result;
    OK(MPI_Get_hw_resource_info(&hardware));
    OK(MPI_Info_get_string(hardware, kind, &length, value, &found));
    found = found && strcmp(value, "true") == 0;
    OK(MPI_Allreduce(&found, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_hw_resource_type", kind));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, rank, info, &part[0]));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_RESOURCE_GUIDED, rank, info, &part[1]));
    CHECK(!all || part[0] != MPI_COMM_NULL, "%s is listed", kind);
    CHECK((part[0] == MPI_COMM_NULL) == (part[1] == MPI_COMM_NULL));
    if (part[0] != MPI_COMM_NULL) {
        OK(MPI_Comm_compare(part[0], part[1], &result));
        CHECK(result == MPI_CONGRUENT);
        OK(MPI_Comm_free(&part[0]));
        OK(MPI_Comm_free(&part[1]));
    }
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&hardware));
}

/* 7.4.2: unguided splits of what the last one gave end, and each is smaller. */
static void unguided(void)
{
    enum { LEVELS = 32 };
    MPI_Comm levels[LEVELS] = {MPI_COMM_WORLD};
    int level = 0, n, last = size + 1, me;
    for (; levels[level] != MPI_COMM_NULL; level++) {
        CHECK(level < LEVELS - 1);
        OK(MPI_Comm_size(levels[level], &n));
        CHECK(n < last, "level %d: %d of %d", level, n, last);
        last = n;
        OK(MPI_Comm_rank(levels[level], &me));
        OK(MPI_Comm_split_type(levels[level], MPI_COMM_TYPE_HW_UNGUIDED, me, MPI_INFO_NULL, &levels[level + 1]));
    }
    while (--level > 0)
        OK(MPI_Comm_free(&levels[level]));
}

/* 7.5.1 and 7.5.2: even ranks send to the next odd one; data of the first rank reaches all. */
static void practice(void)
{
    int value = rank, data[3] = {0};
    if (rank % 2 == 0 && rank + 1 < size)
        OK(MPI_Send(&value, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD));
    if (rank % 2) {
        OK(MPI_Recv(&value, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(value == rank - 1);
    }
    if (rank == 0)
        data[0] = 3, data[1] = 5, data[2] = 7;
    OK(MPI_Bcast(data, sizeof data, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK(data[0] == 3 && data[2] == 7);
}

/* 7.5.3: all but the first reduce among themselves, while the first has begun the reduction of all. */
static void workers(void)
{
    const int excluded[1] = {0};
    MPI_Group world, rest;
    MPI_Comm comm;
    int value = rank + 1, sum = -1, total = -1, n;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_excl(world, 1, excluded, &rest));
    OK(MPI_Comm_create(MPI_COMM_WORLD, rest, &comm));
    CHECK((comm == MPI_COMM_NULL) == (rank == 0));
    for (int i = 0; i < 20 && rank; i++) {
        OK(MPI_Comm_size(comm, &n));
        OK(MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, n > 1, comm));
        CHECK(rank != 1 + (n > 1) || sum == size * (size + 1) / 2 - 1, "%d", sum);
    }
    if (rank)
        OK(MPI_Comm_free(&comm));
    OK(MPI_Reduce(&value, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    CHECK(rank || total == size * (size + 1) / 2);
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&rest));
}

/* 7.5.4: a receive from any source and a send are under way on the communicator whose collectives run. */
static void safe(void)
{
    const int n = (size + 1) / 2;
    int ranks[8], me, in = -1, sum = 0;
    MPI_Group world, even;
    MPI_Comm comm;
    MPI_Request reqs[2];
    MPI_Status statuses[2];
    for (int i = 0; i < n; i++)
        ranks[i] = 2 * i;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, n, ranks, &even));
    OK(MPI_Group_rank(even, &me));
    OK(MPI_Comm_create(MPI_COMM_WORLD, even, &comm));
    CHECK((me == MPI_UNDEFINED) == (rank % 2) && (comm == MPI_COMM_NULL) == (me == MPI_UNDEFINED));
    if (me != MPI_UNDEFINED) {
        OK(MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &reqs[0]));
        OK(MPI_Isend(&rank, 1, MPI_INT, (me + 1) % n, 12, comm, &reqs[1]));
        for (int i = 0; i < 40; i++) {
            OK(MPI_Reduce(&me, &sum, 1, MPI_INT, MPI_SUM, i % n, comm));
            CHECK(me != i % n || sum == n * (n - 1) / 2);
        }
        OK(MPI_Waitall(2, reqs, statuses));
        CHECK(in == 2 * ((me + n - 1) % n) && statuses[0].MPI_SOURCE == (me + n - 1) % n);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&even));
}

typedef struct library {
    MPI_Comm comm;
    MPI_Request reqs[2];
    int in, out;
} library;

static void library_start(library *lib, int value)
{
    lib->out = value;
    OK(MPI_Irecv(&lib->in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, lib->comm, &lib->reqs[0]));
    OK(MPI_Isend(&lib->out, 1, MPI_INT, (rank + 1) % size, 0, lib->comm, &lib->reqs[1]));
}

/* 7.5.5: two uses of a library, each over a duplicate, do not mix with each other nor with the program. */
static void duplicates(void)
{
    library libs[2];
    int sum, before = (rank + size - 1) % size;
    for (int i = 0; i < 2; i++)
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &libs[i].comm));
    library_start(&libs[0], 100 + rank);
    library_start(&libs[1], 200 + rank);
    for (int i = 0; i < 10; i++) {
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(sum == size * (size - 1) / 2);
    }
    for (int i = 1; i >= 0; i--) {
        OK(MPI_Waitall(2, libs[i].reqs, MPI_STATUSES_IGNORE));
        CHECK(libs[i].in == 100 * (i + 1) + before, "%d", libs[i].in);
        OK(MPI_Comm_free(&libs[i].comm));
    }
}

/* The first member receives from any source. `call` is sent along. Returns the messages that were of another call. */
static int library_call(MPI_Comm comm, int call, int synchronize)
{
    int me, n, got, others = 0;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &n));
    for (int i = 1; i < n && me == 0; i++) {
        OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE));
        others += got != call;
    }
    if (me)
        OK(MPI_Send(&call, 1, MPI_INT, 0, 3, comm));
    if (synchronize)
        OK(MPI_Barrier(comm));
    return others;
}

/* 7.5.6: two calls in a row. With two members, messages of one sender stay in order; with more a barrier must part the calls. Without
 * it a call may take the other's message, but none is lost. */
static void calls_in_a_row(void)
{
    const int pair[2] = {0, size - 1};
    MPI_Group world, two;
    MPI_Comm comm;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, 2, pair, &two));
    OK(MPI_Comm_create(MPI_COMM_WORLD, two, &comm));
    for (int call = 0; call < 10 && comm != MPI_COMM_NULL; call++)
        CHECK(library_call(comm, call, 0) == 0);
    if (comm != MPI_COMM_NULL)
        OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int call = 0; call < 10; call++)
        CHECK(library_call(comm, call, 1) == 0);
    for (int call = 0; call < 10; call++)
        library_call(comm, call, 0);
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Group_free(&two));
    OK(MPI_Group_free(&world));
}

/* 7.6.3: three groups joined by intercommunicators in a line, or in a ring. A value passes all of them. */
static void three_groups(int ring)
{
    const int group = rank % 3;
    MPI_Comm local, before = MPI_COMM_NULL, after = MPI_COMM_NULL;
    int value = 1, me;
    if (size < 3)
        return;
    OK(MPI_Comm_split(MPI_COMM_WORLD, group, rank, &local));
    OK(MPI_Comm_rank(local, &me));
    if (group > 0)
        OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, group - 1, 10 + group, &before));
    if (group < 2)
        OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, group + 1, 11 + group, &after));
    if (ring && group == 0)
        OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 2, 20, &before));
    if (ring && group == 2)
        OK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 0, 20, &after));
    if (group > 0) /* all members get it from the first of the group before */
        OK(MPI_Bcast(&value, 1, MPI_INT, 0, before));
    value *= group + 2;
    if (after != MPI_COMM_NULL && group < 2)
        OK(MPI_Bcast(&value, 1, MPI_INT, me ? MPI_PROC_NULL : MPI_ROOT, after));
    CHECK(value == (group == 0 ? 2 : group == 1 ? 6 : 24), "%d", value);
    if (ring && group == 2)
        OK(MPI_Bcast(&value, 1, MPI_INT, me ? MPI_PROC_NULL : MPI_ROOT, after));
    if (ring && group == 0) {
        OK(MPI_Bcast(&value, 1, MPI_INT, 0, before));
        CHECK(value == 24);
    }
    if (before != MPI_COMM_NULL)
        OK(MPI_Comm_free(&before));
    if (after != MPI_COMM_NULL)
        OK(MPI_Comm_free(&after));
    OK(MPI_Comm_free(&local));
}

/* What an operation keeps with a communicator: made at its first call, shared with duplicates, freed with the last of them. */
typedef struct cached {
    int users, calls;
} cached;
static int key = MPI_KEYVAL_INVALID, made, freed;

static int share(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    CHECK(keyval == key && extra == &made);
    ((cached *)in)->users++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int keyval, void *value, void *extra)
{
    cached *c = value;
    (void)comm;
    CHECK(keyval == key && extra == &made);
    if (--c->users == 0) {
        free(c);
        freed++;
    }
    return MPI_SUCCESS;
}

static int operation(MPI_Comm comm)
{
    cached *c;
    int found;
    if (key == MPI_KEYVAL_INVALID)
        OK(MPI_Comm_create_keyval(share, drop, &key, &made));
    OK(MPI_Comm_get_attr(comm, key, &c, &found));
    if (!found) {
        c = calloc(1, sizeof *c);
        CHECK(c != NULL);
        c->users = 1;
        made++;
        OK(MPI_Comm_set_attr(comm, key, c));
    }
    return ++c->calls;
}

/* 7.7.6 */
static void caching(void)
{
    MPI_Comm first, second, other;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &first));
    CHECK(operation(first) == 1 && operation(first) == 2 && made == 1);
    OK(MPI_Comm_dup(first, &second));
    OK(MPI_Comm_split(first, 0, rank, &other)); /* takes no attributes along */
    CHECK(operation(second) == 3 && operation(other) == 1 && made == 2);
    OK(MPI_Comm_free(&first));
    CHECK(freed == 0 && operation(second) == 4);
    OK(MPI_Comm_free(&second));
    CHECK(freed == 1);
    OK(MPI_Comm_free(&other));
    CHECK(freed == 2);
    OK(MPI_Comm_free_keyval(&key));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    one_and_all();
    pool_of_servers();
    guided();
    unguided();
    practice();
    workers();
    safe();
    duplicates();
    calls_in_a_row();
    three_groups(0);
    three_groups(1);
    caching();
    OK(MPI_Finalize());
    return 0;
}
