/* np: 1 2 3 4 : dup, split and free thousands of times; messages of different communicators never match; names, compare, ranks */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

static int rank, size;

static void compare(void)
{
    MPI_Comm same, mirrored, evens;
    int result, r, s, flag;
    OK(MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result));
    CHECK(result == MPI_IDENT);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &same));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, same, &result));
    CHECK(result == MPI_CONGRUENT);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 3, -rank, &mirrored)); /* keys reverse the order */
    OK(MPI_Comm_rank(mirrored, &r));
    OK(MPI_Comm_size(mirrored, &s));
    CHECK(r == size - 1 - rank && s == size);
    OK(MPI_Comm_compare(same, mirrored, &result));
    CHECK(result == (size == 1 ? MPI_CONGRUENT : MPI_SIMILAR));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? MPI_UNDEFINED : 0, 0, &evens));
    CHECK((evens == MPI_COMM_NULL) == (rank % 2 == 1));
    if (evens != MPI_COMM_NULL) {
        OK(MPI_Comm_rank(evens, &r));
        OK(MPI_Comm_size(evens, &s));
        CHECK(r == rank / 2 && s == (size + 1) / 2);
        OK(MPI_Comm_compare(MPI_COMM_WORLD, evens, &result));
        CHECK(result == (size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL));
        OK(MPI_Comm_free(&evens));
        CHECK(evens == MPI_COMM_NULL);
    }
    OK(MPI_Comm_test_inter(same, &flag));
    CHECK(!flag);
    OK(MPI_Comm_compare(MPI_COMM_SELF, MPI_COMM_WORLD, &result));
    CHECK(result == (size == 1 ? MPI_CONGRUENT : MPI_UNEQUAL));
    OK(MPI_Comm_free(&same));
    OK(MPI_Comm_free(&mirrored));
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME], longest[300];
    int length = -1;
    MPI_Comm comm;
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14);
    OK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length));
    CHECK(!strcmp(name, "MPI_COMM_NULL") && length == 13);
    OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
    CHECK(!strcmp(name, "MPI_WIN_NULL") && length == 12);
    OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &length));
    CHECK(strcmp(name, "MPI_COMM_SELF") == 0);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK(length == 0 && name[0] == 0, "a dup is called '%s'", name);
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    OK(MPI_Comm_set_name(comm, longest));
    OK(MPI_Comm_get_name(comm, name, &length));
    CHECK(length == MPI_MAX_OBJECT_NAME - 1 && strlen(name) == (size_t)length);
    OK(MPI_Comm_free(&comm));
}

/* One message in each of many communicators, same tag, received in another order. */
static void apart(void)
{
    enum { MANY = 40 };
    MPI_Comm comms[MANY];
    MPI_Request reqs[MANY];
    int right = (rank + 1) % size, left = (rank + size - 1) % size, out[MANY], value, flag;
    for (int i = 0; i < MANY; i++)
        if (i % 2)
            OK(MPI_Comm_dup(i > 1 ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]));
        else
            OK(MPI_Comm_split(MPI_COMM_WORLD, i, rank, &comms[i]));
    for (int i = 0; i < MANY; i++) {
        out[i] = rank * 1000 + i;
        OK(MPI_Isend(&out[i], 1, MPI_INT, right, 0, comms[i], &reqs[i]));
    }
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "a message crossed over into MPI_COMM_WORLD");
    for (int k = 0; k < MANY; k++) {
        int i = k * 17 % MANY;
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], MPI_STATUS_IGNORE));
        CHECK(value == left * 1000 + i, "communicator %d brought %d", i, value);
    }
    OK(MPI_Waitall(MANY, reqs, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++)
        OK(MPI_Comm_free(&comms[i]));
}

static void many(void)
{
    for (int i = 0; i < 2000; i++) {
        MPI_Comm comm;
        int sum = 0, members = 0, r, left, right, value = -1;
        if (i % 3)
            OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        else
            OK(MPI_Comm_split(MPI_COMM_WORLD, (rank + i) % 2, rank, &comm));
        OK(MPI_Comm_size(comm, &members));
        OK(MPI_Comm_rank(comm, &r));
        right = (r + 1) % members;
        left = (r + members - 1) % members;
        OK(MPI_Sendrecv(&i, 1, MPI_INT, right, 1, &value, 1, MPI_INT, left, 1, comm, MPI_STATUS_IGNORE));
        CHECK(value == i);
        if (i % 10 == 0) {
            OK(MPI_Allreduce(&r, &sum, 1, MPI_INT, MPI_SUM, comm));
            CHECK(sum == members * (members - 1) / 2, "communicator %d of %d: sum %d", i, members, sum);
        }
        OK(MPI_Comm_free(&comm));
    }
}

/* Ids differ from member to member once some have opened more channels than others. */
static void uneven(void)
{
    MPI_Comm own[10], all;
    int sum;
    for (int i = 0; i < rank * 2 && i < 10; i++)
        OK(MPI_Comm_dup(MPI_COMM_SELF, &own[i]));
    for (int turn = 0; turn < 5; turn++) {
        int right = (rank + 1) % size, left = (rank + size - 1) % size, value;
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &all));
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all));
        CHECK(sum == size * (size - 1) / 2);
        OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 1, &value, 1, MPI_INT, left, 1, all, MPI_STATUS_IGNORE));
        CHECK(value == left);
        OK(MPI_Comm_free(&all));
    }
    for (int i = 0; i < rank * 2 && i < 10; i++)
        OK(MPI_Comm_free(&own[i]));
}

/* Freed with a receive and a collective in flight: both complete normally. */
static void free_in_flight(void)
{
    MPI_Comm comm;
    MPI_Request reqs[3];
    int right = (rank + 1) % size, left = (rank + size - 1) % size, value = -1, sum = -1;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Irecv(&value, 1, MPI_INT, left, 5, comm, &reqs[0]));
    OK(MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &reqs[1]));
    OK(MPI_Issend(&rank, 1, MPI_INT, right, 5, comm, &reqs[2]));
    OK(MPI_Comm_free(&comm));
    CHECK(comm == MPI_COMM_NULL);
    OK(MPI_Waitall(3, reqs, MPI_STATUSES_IGNORE));
    CHECK(value == left && sum == size * (size - 1) / 2);
}

static void shared(void)
{
    MPI_Comm node;
    int members, r;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &node));
    OK(MPI_Comm_size(node, &members));
    OK(MPI_Comm_rank(node, &r));
    if (getenv("WEFT_TRANSPORTS") || getenv("WEFT_SPLIT_NODE")) /* ranks that do not share memory are alone */
        CHECK(members < size || size == 1, "%d of %d ranks share memory", members, size);
    else
        CHECK(members == size && r == size - 1 - rank, "rank %d of %d on one machine", r, members);
    OK(MPI_Comm_free(&node));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &node));
    CHECK(node == MPI_COMM_NULL);
}

/* A freed handle is an error, not a crash. */
static void stale(void)
{
    MPI_Comm comm, kept;
    int code, value;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    kept = comm;
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    code = MPI_Comm_rank(kept, &value);
    CHECK(code == MPI_ERR_COMM, "code %d", code);
    comm = MPI_COMM_WORLD;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    code = MPI_Comm_free(&comm);
    CHECK(code == MPI_ERR_COMM && comm == MPI_COMM_WORLD, "freeing MPI_COMM_WORLD returned %d", code);
    code = MPI_Comm_remote_size(MPI_COMM_WORLD, &value);
    CHECK(code == MPI_ERR_COMM);
    code = MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &comm);
    CHECK(code == MPI_ERR_ARG, "a negative color returned %d", code);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv, &rank, &size);
    compare();
    names();
    apart();
    uneven();
    many();
    free_in_flight();
    shared();
    stale();
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Finalize());
    return 0;
}
