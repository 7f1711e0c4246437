/* np: 1 2 : an error handler whose own calls fail is not entered again on the same communicator; it may be left by longjmp */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <setjmp.h>

#include "check.h"

enum { COMMS = 20 };

static int depth, max, entered, codes[4];
static MPI_Comm comms[COMMS];
static jmp_buf back;

static void fails(MPI_Comm *comm, int *code, ...)
{
    int x = 0;
    (void)code;
    entered++;
    if (++depth > max)
        max = depth;
    CHECK(depth < 100);
    codes[0] = MPI_Send(&x, 1, MPI_INT, -9, 0, *comm);
    codes[1] = MPI_Send(&x, -1, MPI_INT, 0, 0, *comm);
    codes[2] = MPI_Comm_call_errhandler(*comm, MPI_ERR_IO);
    OK(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN)); /* the new handler is in force */
    codes[3] = MPI_Send(&x, 1, MPI_INT, 0, -5, *comm);
    depth--;
}

/* Each handler fails on the next communicator: each is entered once, nested. */
static void chain(MPI_Comm *comm, int *code, ...)
{
    int at = 0, x = 0;
    (void)code;
    while (comms[at] != *comm)
        at++;
    entered++;
    for (int i = 0; i < COMMS; i++)
        if (entered < 1000)
            CHECK(MPI_Send(&x, 1, MPI_INT, -9, 0, comms[(at + 1) % COMMS]) == MPI_ERR_RANK);
    entered += 1000; /* the innermost one */
}

static void jumps(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    entered++;
    longjmp(back, 1);
}

static void *other_thread(void *comm)
{
    int x = 0;
    CHECK(MPI_Send(&x, 1, MPI_INT, -9, 0, *(MPI_Comm *)comm) == MPI_ERR_RANK);
    return NULL;
}

/* The same object on another thread is entered there. */
static void starts_thread(MPI_Comm *comm, int *code, ...)
{
    pthread_t thread;
    (void)code;
    if (entered++)
        return;
    CHECK(!pthread_create(&thread, NULL, other_thread, comm));
    pthread_join(thread, NULL);
}

/* Frees its communicator. */
static void frees(MPI_Comm *comm, int *code, ...)
{
    MPI_Comm copy = *comm;
    (void)code;
    entered++;
    OK(MPI_Comm_free(&copy));
}

static void set(MPI_Comm comm, MPI_Comm_errhandler_function *function)
{
    MPI_Errhandler handler;
    OK(MPI_Comm_create_errhandler(function, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    OK(MPI_Errhandler_free(&handler));
    entered = 0;
}

int main(int argc, char **argv)
{
    int x = 0, level;
    MPI_Comm comm;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &check_rank));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    set(comm, fails);
    CHECK(MPI_Send(&x, 1, MPI_INT, 7, 0, comm) == MPI_ERR_RANK);
    CHECK(entered == 1 && max == 1 && codes[0] == MPI_ERR_RANK && codes[1] == MPI_ERR_COUNT && codes[2] == MPI_ERR_OTHER &&
          codes[3] == MPI_ERR_TAG, "%d times, %d deep: %d %d %d %d", entered, max, codes[0], codes[1], codes[2], codes[3]);
    set(comm, fails);
    CHECK(MPI_Send(&x, 1, MPI_INT, 7, 0, comm) == MPI_ERR_RANK && entered == 1); /* a later error enters it */
    for (int i = 0; i < 40; i++) {
        set(comm, jumps);
        if (!setjmp(back))
            MPI_Send(&x, 1, MPI_INT, 7, 0, comm);
        CHECK(entered == 1, "after %d jumps: %d", i, entered);
    }
    set(comm, starts_thread);
    CHECK(MPI_Send(&x, 1, MPI_INT, 7, 0, comm) == MPI_ERR_RANK && entered == 2, "%d", entered);
    set(comm, frees);
    CHECK(MPI_Send(&x, 1, MPI_INT, 7, 0, comm) == MPI_ERR_RANK && entered == 1);
    for (int i = 0; i < COMMS; i++) {
        OK(MPI_Comm_dup(MPI_COMM_SELF, &comms[i]));
        set(comms[i], chain);
    }
    CHECK(MPI_Send(&x, 1, MPI_INT, 7, 0, comms[0]) == MPI_ERR_RANK);
    CHECK(entered % 1000 > 10 && entered % 1000 <= COMMS, "%d", entered);
    for (int i = 0; i < COMMS; i++)
        OK(MPI_Comm_free(&comms[i]));
    OK(MPI_Finalize());
    return 0;
}
