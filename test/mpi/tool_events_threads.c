/* np: 2 3 : MPI_T events while threads communicate: one callback at a time, nothing lost or twice, registrations come and go */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { THREADS = 3, ROUNDS = 400 };

static int rank, size, type;
static _Atomic int in_callback, freed;
static _Atomic long events[2], dropped;
static _Atomic MPI_Count latest;

static void on_event(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user)
{
    MPI_Count ticks;
    CHECK(atomic_fetch_add(&in_callback, 1) == 0, "two callbacks at once");
    OK(MPI_T_event_get_timestamp(event, &ticks));
    CHECK(ticks >= atomic_load(&latest));
    atomic_store(&latest, ticks);
    atomic_fetch_add((_Atomic long *)user, 1);
    atomic_fetch_sub(&in_callback, 1);
    (void)registration, (void)safety;
}

static void on_dropped(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety safety, void *user)
{
    (void)registration, (void)source, (void)safety, (void)user;
    atomic_fetch_add(&dropped, count);
}

static void on_free(MPI_T_event_registration registration, MPI_T_cb_safety safety, void *user)
{
    (void)registration, (void)safety, (void)user;
    atomic_fetch_add(&freed, 1);
}

/* Sends before it receives: messages between the ranks are mostly unexpected, some by rendezvous. */
static void *exchange(void *arg)
{
    int me = *(int *)arg, value, words = me == 2 ? 8000 : 2;
    int *out = calloc((size_t)words, sizeof *out), *in = calloc((size_t)words, sizeof *in);
    static _Atomic long unused;
    CHECK(out && in);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request req;
        MPI_T_event_registration registration;
        out[0] = i;
        OK(MPI_Isend(out, words, MPI_INT, (rank + 1) % size, me, MPI_COMM_WORLD, &req));
        OK(MPI_Recv(in, words, MPI_INT, (rank + size - 1) % size, me, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
        CHECK(in[0] == i);
        if (i % 10)
            continue;
        OK(MPI_T_event_handle_alloc(type, NULL, MPI_INFO_NULL, &registration)); /* one that lives for a few messages */
        OK(MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, (void *)&unused, on_event));
        OK(MPI_Sendrecv(&i, 1, MPI_INT, rank, 50 + me, &value, 1, MPI_INT, rank, 50 + me, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_T_event_handle_free(registration, NULL, on_free));
    }
    free(out);
    free(in);
    return NULL;
}

/* At least one message comes before its receive, whichever threads run when. */
static void unexpected(void)
{
    MPI_Request req;
    int value = 0, flag = 0;
    OK(MPI_Isend(&rank, 1, MPI_INT, rank, 99, MPI_COMM_WORLD, &req));
    while (!flag)
        OK(MPI_Iprobe(rank, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&value, 1, MPI_INT, rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
}

/* Counts both ends of each unexpected message. */
static void run(MPI_T_cb_safety safety)
{
    const char *const names[2] = {"weft_unexpected_queued", "weft_unexpected_dequeued"};
    pthread_t threads[THREADS];
    int ids[THREADS], index;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_T_event_registration registrations[2];
    atomic_store(&dropped, 0);
    for (int i = 0; i < 2; i++) {
        atomic_store(&events[i], 0);
        OK(MPI_T_event_get_index(names[i], &index));
        OK(MPI_T_event_handle_alloc(index, &world, MPI_INFO_NULL, &registrations[i]));
        OK(MPI_T_event_set_dropped_handler(registrations[i], on_dropped));
        OK(MPI_T_event_register_callback(registrations[i], safety, MPI_INFO_NULL, (void *)&events[i], on_event));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    unexpected();
    for (int i = 0; i < THREADS; i++) {
        ids[i] = i;
        CHECK(pthread_create(&threads[i], NULL, exchange, &ids[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 2; i++)
        OK(MPI_T_event_handle_free(registrations[i], NULL, on_free));
    CHECK(atomic_load(&dropped) > 0 || atomic_load(&events[0]) == atomic_load(&events[1]), "%ld queued, %ld dequeued", events[0],
          events[1]);
    CHECK(atomic_load(&events[0]) > 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    OK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_T_event_get_index("weft_rndv_ended", &type));
    run(MPI_T_CB_REQUIRE_NONE);
    run(MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE);
    CHECK(atomic_load(&freed) == 2 * (2 + THREADS * ROUNDS / 10), "%d", freed);
    OK(MPI_T_finalize());
    OK(MPI_Finalize());
    return 0;
}
