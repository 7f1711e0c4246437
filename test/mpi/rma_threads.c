/* np: 2 3 : threads of a rank put, get and flush on one window at once, to the same targets too, while others attach and detach regions */
/* SPDX-License-Identifier: BSD-3-Clause */
#include "check.h"

#include <pthread.h>

enum { PUTTERS = 2, ROUNDS = 200, LONG = 20000, SHORT = 100 };

static int rank, size, is_dynamic;
static MPI_Win win;
static MPI_Aint places[16]; /* of each rank's stable memory */

/* Each thread has a place of its own at each target. */
static void *put_and_get(void *argument)
{
    int thread = *(int *)argument;
    char *out = malloc(LONG), *in = malloc(LONG);
    for (int i = 0; i < ROUNDS; i++) {
        int target = (rank + 1 + i) % size, count = i % 3 ? LONG : SHORT;
        MPI_Aint at = places[target] + ((MPI_Aint)rank * PUTTERS + thread) * LONG;
        memset(out, i + thread, (size_t)count);
        memset(in, ~(i + thread), (size_t)count);
        OK(MPI_Put(out, count, MPI_BYTE, target, at, count, MPI_BYTE, win));
        OK(MPI_Win_flush(target, win));
        OK(MPI_Get(in, count, MPI_BYTE, target, at, count, MPI_BYTE, win));
        OK(MPI_Win_flush(target, win));
        CHECK(!memcmp(in, out, (size_t)count), "round %d, target %d", i, target);
    }
    free(in);
    free(out);
    return NULL;
}

static void *attach_and_detach(void *argument)
{
    unsigned random = (unsigned)rank * 7 + 1;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1103515245 + 12345;
        MPI_Aint bytes = 4096 + random % 300000;
        char *memory = malloc((size_t)bytes);
        memset(memory, i, (size_t)bytes);
        OK(MPI_Win_attach(win, memory, bytes));
        OK(MPI_Win_detach(win, memory));
        free(memory);
    }
    return argument;
}

static void open_window(char *memory, MPI_Aint bytes)
{
    MPI_Aint here = 0;
    if (is_dynamic) {
        OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_attach(win, memory, bytes));
        OK(MPI_Get_address(memory, &here));
    } else
        OK(MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Allgather(&here, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD));
}

static void use(char *memory, MPI_Aint bytes)
{
    pthread_t threads[PUTTERS + 1];
    int numbers[PUTTERS], count = 0;
    open_window(memory, bytes);
    OK(MPI_Win_lock_all(0, win));
    for (; count < PUTTERS; count++) {
        numbers[count] = count;
        CHECK(!pthread_create(&threads[count], NULL, put_and_get, &numbers[count]), "pthread_create");
    }
    if (is_dynamic)
        CHECK(!pthread_create(&threads[count++], NULL, attach_and_detach, NULL), "pthread_create");
    while (count)
        pthread_join(threads[--count], NULL);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (is_dynamic)
        OK(MPI_Win_detach(win, memory));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE, "level %d", provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Aint bytes = (MPI_Aint)size * PUTTERS * LONG;
    char *memory = malloc((size_t)bytes);
    for (is_dynamic = 0; is_dynamic < 2; is_dynamic++)
        use(memory, bytes);
    free(memory);
    MPI_Finalize();
    return 0;
}
