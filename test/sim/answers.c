/* SPDX-License-Identifier: BSD-3-Clause
 *
 * answers: see answers.h.
 */
#include "test/sim/answers.h"

#include <string.h>

/* Element i that rank r sends to rank `to` (0 where all ranks receive the same). */
static int64_t element(const question *question, int r, int to, uint64_t i)
{
    return (int64_t)((question->salt + (uint64_t)r * 1000003 + (uint64_t)to * 77777) * (i * 2 + 1) & 0xffffffffffu);
}

static bool goes_to_each(enum weft_coll_kind kind)
{
    return kind == WEFT_COLL_SCATTER || kind == WEFT_COLL_SCATTERV || kind == WEFT_COLL_ALLTOALL || kind == WEFT_COLL_ALLTOALLV ||
           kind == WEFT_COLL_ALLTOALLW;
}

static bool comes_from_each(enum weft_coll_kind kind)
{
    return kind == WEFT_COLL_GATHER || kind == WEFT_COLL_ALLGATHER || kind == WEFT_COLL_ALLTOALL || kind == WEFT_COLL_GATHERV ||
           kind == WEFT_COLL_ALLGATHERV || kind == WEFT_COLL_ALLTOALLV || kind == WEFT_COLL_ALLTOALLW;
}

static bool has_result(const rig *rig, const question *question)
{
    bool is_root_only = question->kind == WEFT_COLL_REDUCE || question->kind == WEFT_COLL_GATHER || question->kind == WEFT_COLL_GATHERV;
    if (question->kind == WEFT_COLL_EXSCAN)
        return rig->rank > 0;
    return question->kind != WEFT_COLL_BARRIER && (!is_root_only || rig->rank == question->root);
}

static int64_t expected(const rig *rig, const question *question, int block, uint64_t i)
{
    int64_t sum = 0;
    int end = rig->size;
    switch (question->kind) {
    case WEFT_COLL_BCAST: return element(question, question->root, 0, i);
    case WEFT_COLL_SCATTER: case WEFT_COLL_SCATTERV: return element(question, question->root, rig->rank, i);
    case WEFT_COLL_ALLTOALL: case WEFT_COLL_ALLTOALLV: case WEFT_COLL_ALLTOALLW: return element(question, block, rig->rank, i);
    case WEFT_COLL_GATHER: case WEFT_COLL_ALLGATHER: case WEFT_COLL_GATHERV: case WEFT_COLL_ALLGATHERV:
        return element(question, block, 0, i);
    case WEFT_COLL_SCAN: end = rig->rank + 1; break;
    case WEFT_COLL_EXSCAN: end = rig->rank; break;
    default: break;
    }
    for (int r = 0; r < end; r++)
        sum += element(question, r, 0, i);
    return sum;
}

weft_coll question_args(const question *question, int64_t *send, int64_t *receive, uint64_t count)
{
    return (weft_coll){.sendbuf = send, .recvbuf = receive, .sendcount = count, .recvcount = count, .sendtype = rig_type(ANSWERS_INT64),
                       .recvtype = rig_type(ANSWERS_INT64), .op = weft_op_of((void *)(uintptr_t)ANSWERS_SUM), .root = question->root};
}

void question_fill(const rig *rig, const question *question, int64_t *send, int64_t *receive, uint64_t count)
{
    int blocks = goes_to_each(question->kind) ? rig->size : 1;
    memset(receive, 0x5a, (count * (uint64_t)rig->size + 1) * sizeof *receive);
    for (int to = 0; to < blocks; to++)
        for (uint64_t i = 0; i < count; i++)
            send[(uint64_t)to * count + i] = element(question, rig->rank, to, i);
    if (question->kind == WEFT_COLL_BCAST && rig->rank == question->root)
        memcpy(receive, send, count * sizeof *receive);
}

int64_t question_wrong(const rig *rig, const question *question, const int64_t *receive, uint64_t count)
{
    int blocks = comes_from_each(question->kind) ? rig->size : 1;
    for (int block = 0; has_result(rig, question) && block < blocks; block++)
        for (uint64_t i = 0; i < count; i++)
            if (receive[(uint64_t)block * count + i] != expected(rig, question, block, i))
                return (int64_t)((uint64_t)block * count + i);
    return -1;
}
