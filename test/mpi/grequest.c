/* np: 1 2 4 : generalized requests: order of callbacks, statuses, errors, free before and after completion, cancel, threads */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>

#include "check.h"

typedef struct op {
    int queried, freed, cancelled, complete_at_cancel; /* calls of the functions */
    int query_code, free_code, cancel_code, elements;
    MPI_Request handle;
} op;

static int rank, size;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Calls MPI as any callback may, and takes a mutex whose holder may be inside MPI. */
static int query(void *state, MPI_Status *status)
{
    op *self = state;
    int sum = -1;
    pthread_mutex_lock(&mutex);
    CHECK(!self->freed, "queried after free_fn");
    self->queried++;
    pthread_mutex_unlock(&mutex);
    OK(MPI_Sendrecv(&self->elements, 1, MPI_INT, 0, 9, &sum, 1, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Status_set_elements(status, MPI_INT, sum));
    OK(MPI_Status_set_cancelled(status, self->cancelled));
    status->MPI_SOURCE = 17;
    status->MPI_TAG = 18;
    return self->query_code;
}

static int release(void *state)
{
    op *self = state;
    pthread_mutex_lock(&mutex);
    CHECK(!self->freed++, "freed twice");
    pthread_mutex_unlock(&mutex);
    return self->free_code;
}

static int cancel(void *state, int complete)
{
    op *self = state;
    self->complete_at_cancel = complete;
    self->cancelled += !complete;
    if (!complete)
        OK(MPI_Grequest_complete(self->handle));
    return self->cancel_code;
}

static MPI_Request begin(op *self)
{
    *self = (op){.elements = 3};
    OK(MPI_Grequest_start(query, release, cancel, self, &self->handle));
    CHECK(self->handle != MPI_REQUEST_NULL);
    return self->handle;
}

static void one(void)
{
    op task;
    MPI_Request req = begin(&task);
    MPI_Status status;
    int flag = 1, count;
    memset(&status, 0, sizeof status);
    OK(MPI_Test(&req, &flag, &status));
    CHECK(!flag && !task.queried && req == task.handle);
    OK(MPI_Request_get_status(req, &flag, &status));
    CHECK(!flag && !task.queried);
    OK(MPI_Grequest_complete(req));
    for (int i = 1; i <= 2; i++) {
        OK(MPI_Request_get_status(req, &flag, &status));
        CHECK(flag && task.queried == i && !task.freed);
    }
    status.MPI_ERROR = 4711;
    OK(MPI_Wait(&req, &status));
    OK(MPI_Get_count(&status, MPI_INT, &count));
    CHECK(req == MPI_REQUEST_NULL && task.queried == 3 && task.freed == 1 && count == 3 && status.MPI_SOURCE == 17 &&
          status.MPI_TAG == 18 && status.MPI_ERROR == 4711);
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
    req = begin(&task);
    OK(MPI_Grequest_complete(req));
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE)); /* query_fn gets a status nevertheless */
    CHECK(task.queried == 1 && task.freed == 1);
}

/* Among messages, in every call for several requests. */
static void several(void)
{
    for (int family = 0; family < 4; family++) {
        op ops[3];
        int value = rank, in = -1, done = 0, flag = 0, index, count, indices[5], right = (rank + 1) % size, left = (rank + size - 1) % size;
        MPI_Request reqs[5];
        MPI_Status statuses[5];
        for (int i = 0; i < 3; i++)
            reqs[i] = begin(&ops[i]);
        OK(MPI_Irecv(&in, 1, MPI_INT, left, family, MPI_COMM_WORLD, &reqs[3]));
        OK(MPI_Isend(&value, 1, MPI_INT, right, family, MPI_COMM_WORLD, &reqs[4]));
        OK(MPI_Testall(5, reqs, &flag, statuses));
        CHECK(!flag);
        for (int i = 0; i < 3; i++)
            OK(MPI_Grequest_complete(reqs[i]));
        switch (family) {
        case 0:
            OK(MPI_Waitall(5, reqs, statuses));
            CHECK(statuses[1].MPI_SOURCE == 17 && statuses[3].MPI_SOURCE == left);
            break;
        case 1:
            for (; done < 5; done++)
                OK(MPI_Waitany(5, reqs, &index, statuses));
            break;
        case 2:
            for (; done < 5; done += count)
                OK(MPI_Waitsome(5, reqs, &count, indices, MPI_STATUSES_IGNORE));
            break;
        default:
            while (!flag)
                OK(MPI_Testall(5, reqs, &flag, MPI_STATUSES_IGNORE));
        }
        for (int i = 0; i < 5; i++)
            CHECK(reqs[i] == MPI_REQUEST_NULL);
        for (int i = 0; i < 3; i++)
            CHECK(ops[i].freed == 1 && ops[i].queried == 1);
        CHECK(in == left);
    }
}

/* The functions' codes are returned unchanged; of query_fn's and free_fn's the latter. */
static void errors(void)
{
    op ops[2];
    MPI_Request reqs[2];
    MPI_Status statuses[2];
    int code, flag;
    reqs[0] = begin(&ops[0]);
    ops[0].query_code = MPI_ERR_IO;
    OK(MPI_Grequest_complete(reqs[0]));
    code = MPI_Request_get_status(reqs[0], &flag, statuses);
    CHECK(code == MPI_ERR_IO && flag, "code %d", code);
    code = MPI_Wait(&reqs[0], statuses);
    CHECK(code == MPI_ERR_IO && ops[0].freed == 1, "code %d", code);
    reqs[0] = begin(&ops[0]);
    reqs[1] = begin(&ops[1]);
    ops[1].query_code = MPI_ERR_IO;
    ops[1].free_code = MPI_ERR_QUOTA;
    OK(MPI_Grequest_complete(reqs[0]));
    OK(MPI_Grequest_complete(reqs[1]));
    code = MPI_Waitall(2, reqs, statuses);
    CHECK(code == MPI_ERR_IN_STATUS && statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[1].MPI_ERROR == MPI_ERR_QUOTA &&
              reqs[1] == MPI_REQUEST_NULL, "code %d", code);
    reqs[0] = begin(&ops[0]);
    ops[0].cancel_code = MPI_ERR_ACCESS;
    code = MPI_Cancel(&reqs[0]);
    CHECK(code == MPI_ERR_ACCESS, "code %d", code);
    OK(MPI_Wait(&reqs[0], statuses));
    code = MPI_Grequest_complete(MPI_REQUEST_NULL);
    CHECK(code == MPI_ERR_REQUEST, "code %d", code);
    OK(MPI_Irecv(&flag, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &reqs[0]));
    code = MPI_Grequest_complete(reqs[0]);
    CHECK(code == MPI_ERR_REQUEST, "code %d", code);
    OK(MPI_Cancel(&reqs[0]));
    OK(MPI_Wait(&reqs[0], MPI_STATUS_IGNORE));
    code = MPI_Grequest_start(NULL, release, cancel, NULL, &reqs[0]);
    CHECK(code == MPI_ERR_ARG, "code %d", code);
}

static void free_and_cancel(void)
{
    op task;
    MPI_Request req = begin(&task);
    MPI_Status status;
    int flag = 0;
    OK(MPI_Request_free(&req)); /* first free, then complete: the copy of the handle is valid until then */
    CHECK(req == MPI_REQUEST_NULL && !task.freed);
    OK(MPI_Grequest_complete(task.handle));
    CHECK(task.freed == 1 && !task.queried);
    req = begin(&task);
    OK(MPI_Grequest_complete(req));
    OK(MPI_Request_free(&req));
    CHECK(req == MPI_REQUEST_NULL && task.freed == 1 && !task.queried);
    req = begin(&task);
    OK(MPI_Cancel(&req));
    CHECK(task.complete_at_cancel == 0);
    OK(MPI_Wait(&req, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);
    req = begin(&task);
    OK(MPI_Grequest_complete(req));
    OK(MPI_Cancel(&req));
    CHECK(task.complete_at_cancel);
    OK(MPI_Wait(&req, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
}

static void statuses(void)
{
    MPI_Datatype triple;
    MPI_Status status;
    MPI_Count many;
    int count, flag;
    memset(&status, 0, sizeof status);
    OK(MPI_Type_contiguous(3, MPI_DOUBLE, &triple));
    OK(MPI_Status_set_elements(&status, triple, 6));
    OK(MPI_Get_count(&status, triple, &count));
    CHECK(count == 2);
    OK(MPI_Get_count(&status, MPI_DOUBLE, &count));
    CHECK(count == 6);
    OK(MPI_Status_set_elements(&status, triple, 7));
    OK(MPI_Get_count(&status, triple, &count));
    CHECK(count == MPI_UNDEFINED);
    OK(MPI_Status_set_elements_c(&status, MPI_CHAR, (MPI_Count)1 << 40));
    OK(MPI_Get_count_c(&status, MPI_CHAR, &many));
    CHECK(many == (MPI_Count)1 << 40);
    OK(MPI_Status_set_elements_x(&status, MPI_SHORT, (MPI_Count)1 << 41));
    OK(MPI_Get_count_c(&status, MPI_SHORT, &many));
    CHECK(many == (MPI_Count)1 << 41);
    CHECK(MPI_Status_set_elements_c(&status, MPI_DOUBLE, (MPI_Count)1 << 62) == MPI_ERR_COUNT);
    CHECK(MPI_Status_set_elements(&status, MPI_DOUBLE, -1) == MPI_ERR_COUNT);
    CHECK(MPI_Status_set_elements(&status, MPI_DATATYPE_NULL, 1) == MPI_ERR_TYPE);
    OK(MPI_Status_set_elements(&status, triple, 0));
    OK(MPI_Status_set_cancelled(&status, 5));
    OK(MPI_Test_cancelled(&status, &flag));
    OK(MPI_Get_count(&status, triple, &count));
    CHECK(flag && count == 0);
    OK(MPI_Status_set_cancelled(&status, 0));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(!flag);
    OK(MPI_Type_free(&triple));
}

/* A sum up a binary tree of ranks, performed by a thread behind a generalized request. */
typedef struct tree_sum {
    int in, *out;
    MPI_Request request;
} tree_sum;

static int tree_query(void *state, MPI_Status *status)
{
    (void)state;
    OK(MPI_Status_set_elements(status, MPI_INT, 1));
    OK(MPI_Status_set_cancelled(status, 0));
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
static int tree_free(void *state)
{
    free(state);
    return MPI_SUCCESS;
}
static int tree_cancel(void *state, int complete)
{
    (void)state;
    return complete ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static void *tree_work(void *state)
{
    tree_sum *self = state;
    int child[2], parent = rank ? (rank - 1) / 2 : MPI_PROC_NULL, parts[2] = {0, 0}, sum;
    MPI_Request reqs[2];
    for (int i = 0; i < 2; i++) {
        child[i] = 2 * rank + 1 + i < size ? 2 * rank + 1 + i : MPI_PROC_NULL;
        OK(MPI_Irecv(&parts[i], 1, MPI_INT, child[i], 50, MPI_COMM_WORLD, &reqs[i]));
    }
    OK(MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE));
    sum = parts[0] + parts[1] + self->in;
    OK(MPI_Send(&sum, 1, MPI_INT, parent, 50, MPI_COMM_WORLD));
    if (parent == MPI_PROC_NULL)
        *self->out = sum;
    OK(MPI_Grequest_complete(self->request));
    return NULL;
}

static void tree(void)
{
    for (int i = 0; i < 50; i++) {
        tree_sum *self = malloc(sizeof *self);
        pthread_t thread;
        MPI_Request req;
        MPI_Status status;
        int sum = -1, count = -1;
        OK(MPI_Grequest_start(tree_query, tree_free, tree_cancel, self, &req));
        *self = (tree_sum){rank + i, &sum, req};
        pthread_create(&thread, NULL, tree_work, self);
        OK(MPI_Wait(&req, &status)); /* sleeps until the thread completes it */
        pthread_join(thread, NULL);
        OK(MPI_Get_count(&status, MPI_INT, &count));
        CHECK(count == 1 && (rank || sum == size * (size - 1) / 2 + size * i), "sum %d", sum);
    }
}

int main(int argc, char **argv)
{
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    check_rank = rank;
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    one();
    several();
    errors();
    free_and_cancel();
    statuses();
    tree();
    OK(MPI_Finalize());
    return 0;
}
