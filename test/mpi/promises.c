/* np: 2 3 : persistent pairs that repeat: receives promise their buffers; overtaken, cancelled, freed, behind wildcards, order holds */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "tool_counter.h"

enum { BYTES = 300000, TAG = 5, TURNS = 12 };

static int rank;
static unsigned char out[BYTES], in[BYTES], other[BYTES];
static MPI_Request sends, recvs; /* rank 0's and rank 1's half of the pair */
static MPI_T_pvar_handle made, used, withdrawn, read_by_kernel;

static void check_bytes(const unsigned char *got, int bytes, int value, const MPI_Status *status)
{
    int count, bad = 0;
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK(count == bytes && status->MPI_SOURCE == 0 && status->MPI_TAG == TAG, "%d bytes of %d, source %d, tag %d", count, bytes,
          status->MPI_SOURCE, status->MPI_TAG);
    while (bad < bytes && got[bad] == value)
        bad++;
    CHECK(bad == bytes, "byte %d is %d instead of %d", bad, bad < bytes ? got[bad] : 0, value);
}

/* Rank 0 waits for rank 1, without a message to it, which would void a promise. */
static void await_receiver(void)
{
    if (rank == 1)
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD));
    if (rank == 0)
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* The receive is started; when this returns rank 0 has seen its promise, if it made one. */
static void started(void)
{
    if (rank == 1)
        OK(MPI_Start(&recvs));
    await_receiver();
}

static void start_send(int value)
{
    memset(out, value, BYTES);
    OK(MPI_Start(&sends));
    OK(MPI_Wait(&sends, MPI_STATUS_IGNORE));
}

static void turn(int value)
{
    MPI_Status status;
    started();
    if (rank == 0)
        start_send(value);
    if (rank == 1) {
        OK(MPI_Wait(&recvs, &status));
        check_bytes(in, BYTES, value, &status);
    }
}

/* Makes the pair known again after a promise that was not used. */
static void turns(int n)
{
    for (int i = 0; i < n; i++)
        turn(i + 1);
}

static void repeated(void)
{
    unsigned long long before = value_of(rank ? made : used), after;
    turns(TURNS);
    after = value_of(rank ? made : used);
    if (rank < 2 && value_of(read_by_kernel)) /* else this kernel refuses single copies, and all goes by frames */
        CHECK(after - before >= TURNS - 3, "%llu promises of %d", after - before, TURNS);
}

/* An ordinary message of the same envelope, long or short, goes first: it is the one that the started receive gets. */
static void overtaken(int bytes)
{
    MPI_Status status;
    turns(TURNS);
    started();
    if (rank == 0) {
        memset(other, 100, BYTES);
        MPI_Request req;
        OK(MPI_Isend(other, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &req));
        start_send(101);
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    } else if (rank == 1) {
        OK(MPI_Recv(other, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status));
        check_bytes(other, BYTES, 101, &status);
        OK(MPI_Wait(&recvs, &status));
        check_bytes(in, bytes, 100, &status);
    }
}

static void cancelled(void)
{
    MPI_Status status;
    int flag;
    turns(TURNS);
    memset(in, 7, BYTES);
    unsigned long long before = value_of(withdrawn), made_before = value_of(made);
    started();
    if (rank == 1) {
        OK(MPI_Cancel(&recvs));
        OK(MPI_Wait(&recvs, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);
        CHECK(value_of(withdrawn) == before + (value_of(made) > made_before));
    }
    await_receiver();
    if (rank == 0)
        start_send(102);
    if (rank == 1) {
        OK(MPI_Recv(other, BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        check_bytes(other, BYTES, 102, &status);
        CHECK(in[0] == 7 && in[BYTES - 1] == 7, "a cancelled receive's buffer was written");
    }
}

/* A wildcard that was posted before takes the message; one that was posted after does not. */
static void wildcards(void)
{
    MPI_Status status;
    MPI_Request req[2];
    turns(TURNS);
    if (rank == 1)
        OK(MPI_Irecv(other, BYTES, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &req[0]));
    started();
    if (rank == 0) {
        start_send(103);
        start_send(104);
    } else if (rank == 1) {
        OK(MPI_Wait(&req[0], &status));
        check_bytes(other, BYTES, 103, &status);
        OK(MPI_Wait(&recvs, &status));
        check_bytes(in, BYTES, 104, &status);
    }
    turns(TURNS);
    started();
    if (rank == 1)
        OK(MPI_Irecv(other, BYTES, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &req[1]));
    await_receiver();
    if (rank == 0) {
        start_send(105);
        start_send(106);
    } else if (rank == 1) {
        OK(MPI_Wait(&req[1], &status));
        check_bytes(other, BYTES, 106, &status);
        OK(MPI_Wait(&recvs, &status));
        check_bytes(in, BYTES, 105, &status);
    }
}

/* The send that a promise was made to is freed: another one, and then an ordinary send, take its place. */
static void freed(void)
{
    MPI_Status status;
    turns(TURNS);
    started();
    if (rank == 0) {
        OK(MPI_Request_free(&sends));
        OK(MPI_Send_init(out, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &sends));
        start_send(107);
    } else if (rank == 1) {
        OK(MPI_Wait(&recvs, &status));
        check_bytes(in, BYTES, 107, &status);
    }
    turns(TURNS);
    started();
    if (rank == 0) {
        OK(MPI_Request_free(&sends));
        memset(out, 108, BYTES);
        OK(MPI_Send(out, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD));
        OK(MPI_Send_init(out, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &sends));
    } else if (rank == 1) {
        OK(MPI_Wait(&recvs, &status));
        check_bytes(in, BYTES, 108, &status);
        OK(MPI_Request_free(&recvs));
        OK(MPI_Recv_init(in, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &recvs));
    }
}

/* Each rendezvous that began has ended: by promises that were used, not used, overtaken, cancelled, and by ordinary messages. */
static int events[2];

static void count_event(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user)
{
    (void)event, (void)registration, (void)safety;
    ++*(int *)user;
}

static MPI_T_event_registration listen(const char *name, int *count)
{
    MPI_T_event_registration registration;
    int index;
    OK(MPI_T_event_get_index(name, &index));
    OK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration));
    OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, count, count_event));
    return registration;
}

int main(int argc, char **argv)
{
    MPI_T_event_registration begun, ended;
    int size, level;
    setenv("WEFT_PROMISES", "always", 1);
    check_start(&argc, &argv, &rank, &size);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    OK(MPI_T_pvar_session_create(&session));
    made = counter("weft_promises");
    used = counter("weft_promises_used");
    withdrawn = counter("weft_promises_withdrawn");
    read_by_kernel = counter("weft_bytes_cma");
    begun = listen("weft_rndv_begun", &events[0]);
    ended = listen("weft_rndv_ended", &events[1]);
    if (rank == 0)
        OK(MPI_Send_init(out, BYTES, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &sends));
    if (rank == 1)
        OK(MPI_Recv_init(in, BYTES, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &recvs));
    repeated();
    overtaken(10);
    overtaken(20000);
    overtaken(BYTES);
    cancelled();
    wildcards();
    freed();
    turns(TURNS);
    started(); /* in flight when it is freed */
    if (rank == 0)
        OK(MPI_Request_free(&sends));
    if (rank == 1)
        OK(MPI_Request_free(&recvs));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK(events[0] == events[1] && (rank > 1 || events[0] >= 8 * TURNS), "%d rendezvous began, %d ended", events[0], events[1]);
    OK(MPI_T_event_handle_free(begun, NULL, NULL));
    OK(MPI_T_event_handle_free(ended, NULL, NULL));
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
