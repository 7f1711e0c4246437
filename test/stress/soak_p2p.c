/* SPDX-License-Identifier: BSD-3-Clause
 *
 * soak_p2p: rounds of point-to-point messages: every mode, any source, probes, cancel, floods, self-sends, datatypes. Called by soak.c.
 */
#include "soak.h"

void soak_finish(soak *s, int count, MPI_Request *reqs, MPI_Status *statuses)
{
    int done = 0, at, flag, some;
    int *places = malloc((size_t)count * sizeof *places + 1);
    MPI_Status *found = malloc((size_t)count * sizeof *found + 1), status;
    unsigned way = soak_own(s, 6);
    while (way > 1 && done < count) {
        some = 0;
        if (way == 2) {
            OK(MPI_Waitany(count, reqs, &at, &status));
            places[0] = at, found[0] = status, some = 1;
        } else if (way == 3) {
            OK(MPI_Testany(count, reqs, &at, &flag, &status));
            places[0] = at, found[0] = status, some = flag;
        } else if (way == 4) {
            OK(MPI_Waitsome(count, reqs, &some, places, found));
        } else {
            OK(MPI_Testsome(count, reqs, &some, places, found));
        }
        CHECK(some != MPI_UNDEFINED, "%d of %d are done", done, count);
        for (int i = 0; i < some; i++)
            statuses[places[i]] = found[i];
        done += some;
        for (int i = 0; i < some; i++)
            soak_tick(s);
    }
    if (way == 0)
        OK(MPI_Waitall(count, reqs, statuses));
    else if (way == 1)
        for (flag = 0; !flag;)
            OK(MPI_Testall(count, reqs, &flag, statuses));
    soak_tick(s);
    free(places);
    free(found);
}

static void check_message(soak *s, const void *buf, const MPI_Status *status, int from, int number, size_t bytes)
{
    int count;
    OK(MPI_Get_count(status, MPI_BYTE, &count));
    CHECK(status->MPI_SOURCE == from && (size_t)count == bytes, "round %u: %d bytes from %d, not %zu from %d", s->round, count,
          status->MPI_SOURCE, bytes, from);
    size_t wrong = check_wrong(buf, bytes, soak_seed(s, from, s->rank, number));
    CHECK(wrong == bytes, "round %u %s: message %d of %zu bytes from %d is wrong at %zu", s->round, s->page->deed, number, bytes, from,
          wrong);
    soak_tick(s);
}

/* Sends in one of nine ways; returns a request that remains. */
static MPI_Request send_by(unsigned mode, const void *buf, int bytes, int to, int tag, MPI_Comm comm)
{
    MPI_Request req = MPI_REQUEST_NULL;
    switch (mode) {
    case 0: OK(MPI_Send(buf, bytes, MPI_BYTE, to, tag, comm)); break;
    case 1: OK(MPI_Ssend(buf, bytes, MPI_BYTE, to, tag, comm)); break;
    case 2: OK(MPI_Rsend(buf, bytes, MPI_BYTE, to, tag, comm)); break;
    case 3: OK(MPI_Isend(buf, bytes, MPI_BYTE, to, tag, comm, &req)); break;
    case 4: OK(MPI_Issend(buf, bytes, MPI_BYTE, to, tag, comm, &req)); break;
    case 5: OK(MPI_Irsend(buf, bytes, MPI_BYTE, to, tag, comm, &req)); break;
    case 6: OK(MPI_Send_init(buf, bytes, MPI_BYTE, to, tag, comm, &req)); break;
    case 7: OK(MPI_Ssend_init(buf, bytes, MPI_BYTE, to, tag, comm, &req)); break;
    default: OK(MPI_Rsend_init(buf, bytes, MPI_BYTE, to, tag, comm, &req)); break;
    }
    if (mode > 5)
        OK(MPI_Start(&req));
    return req;
}

/* Each to the rank at distance `shift`, itself included; receives first, so that every mode is allowed. */
static void ring(soak *s)
{
    enum { MAX = 12 };
    int count = 1 + (int)soak_pick(s, MAX), shift = (int)soak_pick(s, (unsigned)s->size);
    int to = (s->rank + shift) % s->size, from = (s->rank + s->size - shift) % s->size;
    unsigned mode = soak_pick(s, 9), persistent = soak_pick(s, 3) == 0;
    size_t bytes[MAX];
    unsigned char *out[MAX], *in[MAX];
    MPI_Request reqs[2 * MAX], kept[2 * MAX];
    MPI_Status statuses[2 * MAX];
    for (int i = 0; i < count; i++) {
        bytes[i] = soak_bytes(&s->shared);
        out[i] = malloc(bytes[i] + 1);
        in[i] = malloc(bytes[i] + 1);
        check_fill(out[i], bytes[i], soak_seed(s, s->rank, to, i));
        if (bytes[i])
            out[i][bytes[i] / 2] ^= (unsigned char)s->spoils;
        if (persistent) {
            OK(MPI_Recv_init(in[i], (int)bytes[i], MPI_BYTE, from, s->tag, s->comm, &reqs[i]));
            OK(MPI_Start(&reqs[i]));
        } else {
            OK(MPI_Irecv(in[i], (int)bytes[i], MPI_BYTE, soak_own(s, 4) && mode < 6 ? from : MPI_ANY_SOURCE, s->tag, s->comm, &reqs[i]));
        }
    }
    if (mode == 2 || mode == 5 || mode == 8)
        OK(MPI_Barrier(s->comm));
    for (int i = 0; i < count; i++)
        reqs[count + i] = send_by(mode, out[i], (int)bytes[i], to, s->tag, s->comm);
    memcpy(kept, reqs, sizeof kept);
    if (mode > 5 || persistent) /* persistent requests: all at once, since the other calls count remaining ones */
        OK(MPI_Waitall(2 * count, reqs, statuses));
    else if (mode < 3)
        soak_finish(s, count, reqs, statuses);
    else
        soak_finish(s, 2 * count, reqs, statuses);
    for (int i = 0; i < count; i++) {
        check_message(s, in[i], &statuses[i], from, i, bytes[i]);
        if (persistent)
            OK(MPI_Request_free(&kept[i]));
        if (mode > 5)
            OK(MPI_Request_free(&kept[count + i]));
        free(in[i]);
        free(out[i]);
    }
}

/* Size of message `number` from `from`, known on both sides. */
static size_t bytes_of(const soak *s, int from, int number)
{
    uint64_t state = soak_seed(s, from, 0, number) * 0x9E3779B97F4A7C15ull + 1;
    check_random(&state);
    return soak_bytes(&state);
}

/* All send to one, which receives from any source, with or without a probe before. */
static void gather_any(soak *s)
{
    int root = (int)soak_pick(s, (unsigned)s->size), each = 1 + (int)soak_pick(s, 12), way = (int)soak_pick(s, 4);
    int any_tag = (int)soak_pick(s, 2);
    if (s->rank == root) {
        unsigned char *in = malloc(SOAK_LARGEST + 8);
        int *next = calloc((size_t)s->size, sizeof *next);
        soak_nap(soak_own(s, 3) ? 0 : soak_own(s, 3000));
        for (int left = each * (s->size - 1); left; left--) {
            MPI_Status status = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = any_tag ? MPI_ANY_TAG : s->tag};
            int flag = 0, count = SOAK_LARGEST + 8;
            if (way == 1)
                OK(MPI_Probe(MPI_ANY_SOURCE, status.MPI_TAG, s->comm, &status));
            while (way == 2 && !flag)
                OK(MPI_Iprobe(MPI_ANY_SOURCE, status.MPI_TAG, s->comm, &flag, &status));
            if (way == 1 || way == 2)
                OK(MPI_Get_count(&status, MPI_BYTE, &count));
            OK(MPI_Recv(in, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, s->comm, &status));
            int from = status.MPI_SOURCE;
            CHECK(from >= 0 && from < s->size && next[from] < each, "source %d", from);
            CHECK(status.MPI_TAG == s->tag + any_tag * (next[from] % 3), "tag %d", status.MPI_TAG);
            check_message(s, in, &status, from, next[from], bytes_of(s, from, next[from]));
            next[from]++;
        }
        free(next);
        free(in);
    } else {
        MPI_Request reqs[12];
        MPI_Status statuses[12];
        unsigned char *out[12];
        for (int i = 0; i < each; i++) {
            size_t bytes = bytes_of(s, s->rank, i);
            out[i] = malloc(bytes + 1);
            check_fill(out[i], bytes, soak_seed(s, s->rank, root, i));
            OK(MPI_Isend(out[i], (int)bytes, MPI_BYTE, root, s->tag + any_tag * (i % 3), s->comm, &reqs[i]));
        }
        soak_finish(s, each, reqs, statuses);
        for (int i = 0; i < each; i++)
            free(out[i]);
    }
    if (any_tag) /* messages of the next round would match too */
        OK(MPI_Barrier(s->comm));
}

/* A receive that nothing matches, and one that a message may match before it is cancelled. */
static void cancel_receives(soak *s)
{
    int to = (s->rank + 1) % s->size, from = (s->rank + s->size - 1) % s->size, flag = 0;
    size_t bytes = bytes_of(s, 0, 0) % 100000, send_bytes = bytes;
    unsigned char *out = malloc(send_bytes + 1), *in = malloc(send_bytes + 1);
    MPI_Request req, sent;
    MPI_Status status;
    OK(MPI_Irecv(in, (int)bytes, MPI_BYTE, from, s->tag + 1, s->comm, &req));
    OK(MPI_Cancel(&req));
    OK(MPI_Wait(&req, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag, "a receive that nothing matches");
    check_fill(out, bytes, soak_seed(s, s->rank, to, 0));
    OK(MPI_Irecv(in, (int)bytes, MPI_BYTE, from, s->tag, s->comm, &req));
    OK(MPI_Isend(out, (int)bytes, MPI_BYTE, to, s->tag, s->comm, &sent));
    soak_nap(soak_own(s, 2) ? 0 : soak_own(s, 200));
    OK(MPI_Cancel(&req));
    for (flag = 0; !flag;)
        OK(MPI_Test(&req, &flag, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    if (flag)
        OK(MPI_Recv(in, (int)bytes, MPI_BYTE, from, s->tag, s->comm, &status));
    check_message(s, in, &status, from, 0, bytes);
    OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    free(in);
    free(out);
}

/* A cancelled send, in time or not; another message tells its receiver. */
static void cancel_sends(soak *s)
{
    int to = (s->rank + 1) % s->size, from = (s->rank + s->size - 1) % s->size, flag = 0, peer_flag = -1;
    size_t bytes = bytes_of(s, 0, 0) % 200000;
    unsigned char *out = malloc(bytes + 1), *in = malloc(bytes + 1);
    MPI_Request req;
    MPI_Status status;
    check_fill(out, bytes, soak_seed(s, s->rank, to, 0));
    OK(MPI_Isend(out, (int)bytes, MPI_BYTE, to, s->tag, s->comm, &req));
    soak_nap(soak_own(s, 2) ? 0 : soak_own(s, 200));
    OK(MPI_Cancel(&req));
    if (soak_own(s, 2))
        OK(MPI_Wait(&req, &status));
    else
        while (!flag)
            OK(MPI_Test(&req, &flag, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    OK(MPI_Sendrecv(&flag, 1, MPI_INT, to, s->tag + 1, &peer_flag, 1, MPI_INT, from, s->tag + 1, s->comm, MPI_STATUS_IGNORE));
    if (!peer_flag) {
        OK(MPI_Recv(in, (int)bytes, MPI_BYTE, from, s->tag, s->comm, &status));
        check_message(s, in, &status, from, 0, bytes);
    }
    free(in);
    free(out);
}

/* More small messages than credit, to a receiver that does not poll yet. */
static void flood(soak *s)
{
    int count = 300 << soak_pick(s, 5), all_to_one = (int)soak_pick(s, 2), root = (int)soak_pick(s, (unsigned)s->size);
    int words = 1 + (int)soak_pick(s, 24), to = all_to_one ? root : (s->rank + 1) % s->size;
    int sends = !(all_to_one && s->rank == root) && s->size > 1;
    int froms = s->size == 1 ? 0 : all_to_one ? (s->rank == root) * (s->size - 1) : 1;
    int *out = malloc((size_t)count * (size_t)words * sizeof *out), in[32];
    MPI_Request *reqs = malloc((size_t)count * sizeof *reqs);
    for (int i = 0; sends && i < count; i++) {
        for (int k = 0; k < words; k++)
            out[i * words + k] = (int)soak_seed(s, s->rank, to, i) + k;
        OK(MPI_Isend(out + i * words, words, MPI_INT, to, s->tag, s->comm, &reqs[i]));
    }
    if (soak_own(s, 2))
        soak_nap(soak_own(s, 20000));
    for (int k = 0; k < froms; k++) {
        int from = all_to_one ? (root + 1 + k) % s->size : (s->rank + s->size - 1) % s->size;
        for (int i = 0; i < count; i++) {
            OK(MPI_Recv(in, words, MPI_INT, from, s->tag, s->comm, MPI_STATUS_IGNORE));
            CHECK(in[0] == (int)soak_seed(s, from, s->rank, i) && in[words - 1] == in[0] + words - 1,
                  "round %u: message %d from %d", s->round, i,
                  from);
            if (i % 64 == 0)
                soak_tick(s);
        }
    }
    if (sends)
        OK(MPI_Waitall(count, reqs, MPI_STATUSES_IGNORE));
    free(reqs);
    free(out);
}

/* In both directions at once, between pairs. */
static void exchange(soak *s)
{
    int partner = s->rank ^ 1, times = 1 + (int)soak_pick(s, 20), replace = (int)soak_pick(s, 2);
    size_t bytes = soak_bytes(&s->shared), peer_bytes = replace ? bytes : soak_bytes(&s->shared);
    size_t send_bytes = s->rank < partner ? bytes : peer_bytes, other = s->rank < partner ? peer_bytes : bytes;
    if (partner >= s->size)
        partner = MPI_PROC_NULL;
    unsigned char *out = malloc(send_bytes + 1), *in = malloc(other + 1);
    for (int i = 0; i < times; i++) {
        MPI_Status status;
        check_fill(out, send_bytes, soak_seed(s, s->rank, partner, i));
        if (replace)
            OK(MPI_Sendrecv_replace(out, (int)send_bytes, MPI_BYTE, partner, s->tag, partner, s->tag, s->comm, &status));
        else
            OK(MPI_Sendrecv(out, (int)send_bytes, MPI_BYTE, partner, s->tag, in, (int)other, MPI_BYTE, partner, s->tag, s->comm, &status));
        if (partner != MPI_PROC_NULL)
            check_message(s, replace ? out : in, &status, partner, i, other);
    }
    free(in);
    free(out);
}

/* A rank with itself, and requests that are freed. */
static void to_self(soak *s)
{
    size_t bytes = bytes_of(s, s->rank, 0);
    unsigned char *out = malloc(bytes + 1), *in = malloc(bytes + 1), small[8], got[8];
    MPI_Request reqs[2];
    MPI_Status statuses[2];
    check_fill(out, bytes, soak_seed(s, s->rank, s->rank, 0));
    OK(MPI_Isend(out, (int)bytes, MPI_BYTE, s->rank, s->tag, s->comm, &reqs[1]));
    OK(MPI_Irecv(in, (int)bytes, MPI_BYTE, soak_own(s, 2) ? s->rank : MPI_ANY_SOURCE, s->tag, s->comm, &reqs[0]));
    soak_finish(s, 2, reqs, statuses);
    check_message(s, in, &statuses[0], s->rank, 0, bytes);
    int to = (s->rank + 1) % s->size, from = (s->rank + s->size - 1) % s->size;
    check_fill(small, sizeof small, soak_seed(s, s->rank, to, 1));
    OK(MPI_Isend(small, sizeof small, MPI_BYTE, to, s->tag + 1, s->comm, &reqs[0]));
    OK(MPI_Request_free(&reqs[0]));
    OK(MPI_Recv(got, sizeof got, MPI_BYTE, from, s->tag + 1, s->comm, &statuses[0]));
    check_message(s, got, &statuses[0], from, 1, sizeof got);
    OK(MPI_Barrier(s->comm)); /* then `small` has been read */
    free(in);
    free(out);
}

/* Strided to contiguous and back, and MPI_Pack. */
static void types(soak *s)
{
    int blocks = 1 + (int)soak_pick(s, 4000), length = 1 + (int)soak_pick(s, 9), stride = length + (int)soak_pick(s, 5);
    int pack = (int)soak_pick(s, 3);
    int to = (s->rank + 1) % s->size, from = (s->rank + s->size - 1) % s->size, n = blocks * length, place = 0;
    int *strided = malloc((size_t)blocks * (size_t)stride * sizeof(int)), *dense = malloc((size_t)n * sizeof(int)), *packed = NULL;
    unsigned seed = soak_seed(s, s->rank, to, 0), peer_seed = soak_seed(s, from, s->rank, 0);
    MPI_Datatype type, twin;
    MPI_Request req;
    OK(MPI_Type_vector(blocks, length, stride, MPI_INT, &twin));
    OK(MPI_Type_dup(twin, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_free(&twin));
    for (int i = 0; i < blocks * stride; i++)
        strided[i] = i % stride < length ? (int)seed + i / stride * length + i % stride : -1;
    OK(MPI_Irecv(dense, n, MPI_INT, from, s->tag, s->comm, &req));
    if (pack == 0) {
        int bytes;
        OK(MPI_Pack_size(1, type, s->comm, &bytes));
        packed = malloc((size_t)bytes);
        OK(MPI_Pack(strided, 1, type, packed, bytes, &place, s->comm));
        OK(MPI_Send(packed, place, MPI_PACKED, to, s->tag, s->comm));
    } else {
        OK(MPI_Send(strided, 1, type, to, s->tag, s->comm));
    }
    OK(MPI_Wait(&req, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; i++)
        CHECK(dense[i] == (int)peer_seed + i, "round %u: %d of %d is %d", s->round, i, n, dense[i]);
    soak_tick(s);
    memset(strided, 0xFF, (size_t)blocks * (size_t)stride * sizeof(int));
    OK(MPI_Sendrecv(dense, n, MPI_INT, from, s->tag + 1, strided, 1, type, to, s->tag + 1, s->comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < blocks * stride; i++)
        CHECK(strided[i] == (i % stride < length ? (int)seed + i / stride * length + i % stride : -1), "round %u: strided %d", s->round, i);
    soak_tick(s);
    OK(MPI_Type_free(&type));
    free(packed);
    free(strided);
    free(dense);
}

/* One is late: the others wait, and then sleep. */
static void wait_long(soak *s)
{
    int late = (int)soak_pick(s, (unsigned)s->size), value = s->rank == late ? (int)s->round : -1;
    unsigned us = soak_pick(s, 20000), computes = soak_pick(s, 2);
    if (s->rank == late && computes)
        for (double end = MPI_Wtime() + us * 1e-6; MPI_Wtime() < end;)
            continue;
    else if (s->rank == late)
        soak_nap(us);
    if (s->rank == late)
        for (int i = 0; i < s->size; i++)
            OK(i == late ? MPI_SUCCESS : MPI_Send(&value, 1, MPI_INT, i, s->tag, s->comm));
    else
        OK(MPI_Recv(&value, 1, MPI_INT, late, s->tag, s->comm, MPI_STATUS_IGNORE));
    CHECK(value == (int)s->round);
    soak_tick(s);
}

const soak_deed soak_p2p_deeds[] = {
    {"ring", ring, 8},
    {"gather_any", gather_any, 6},
    {"cancel_receives", cancel_receives, 2},
    {"cancel_sends", cancel_sends, 1},
    {"flood", flood, 2},
    {"exchange", exchange, 5},
    {"to_self", to_self, 2},
    {"types", types, 2},
    {"wait_long", wait_long, 2},
    {NULL, NULL, 0},
};
