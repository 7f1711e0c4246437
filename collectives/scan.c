/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scan: each rank gets the reduction of the vectors of the ranks up to itself (scan), or below itself (exscan), in rank order. Called
 * through select.c. In an exscan rank 0 receives nothing and its recvbuf is not read unless it is in place.
 */
#include "collectives/algorithms.h"
#include "collectives/pipeline.h"

static const void *own_data(const weft_coll *args) { return args->in_place ? args->recvbuf : args->sendbuf; }

/* Before the round of `bit`, sum covers `bit` ranks, of which this one is the last. The first round sends from the data itself: lines just
 * written to recvbuf are costly for the receiver to read. */
void weft_scan_doubling(weft_sched *sched, const weft_coll *args)
{
    const void *own = own_data(args);
    void *sum = args->recvbuf, *more = sched->rank ? weft_sched_temp(sched, args->recvcount, args->recvtype) : NULL;

    for (uint64_t bit = 1; bit < sched->size; bit *= 2) {
        if (sched->rank + bit < sched->size)
            weft_sched_send(sched, (uint32_t)(sched->rank + bit), bit == 1 ? own : sum, args->recvcount, args->recvtype);
        if (sched->rank >= bit)
            weft_sched_recv(sched, (uint32_t)(sched->rank - bit), more, args->recvcount, args->recvtype);
        if (bit == 1)
            weft_sched_copy(sched, sum, args->recvcount, args->recvtype, own, args->recvcount, args->recvtype);
        weft_sched_fence(sched);
        if (sched->rank >= bit)
            weft_sched_reduce(sched, more, sum, args->recvcount, args->recvtype);
    }
    if (sched->size == 1)
        weft_sched_copy(sched, sum, args->recvcount, args->recvtype, own, args->recvcount, args->recvtype);
}

/* Each rank passes its vector to the next one; then a scan of what came, without rank 0. */
void weft_exscan_doubling(weft_sched *sched, const weft_coll *args)
{
    uint64_t count = args->recvcount;
    const weft_type *type = args->recvtype;
    void *lower = args->recvbuf;
    weft_coll upper = *args;

    if (args->in_place && sched->rank)
        lower = weft_sched_temp(sched, count, type);
    if (sched->rank + 1 < sched->size)
        weft_sched_send(sched, sched->rank + 1, own_data(args), count, type);
    if (sched->rank)
        weft_sched_recv(sched, sched->rank - 1, lower, count, type);
    weft_sched_fence(sched);
    if (!sched->rank)
        return;
    weft_sched_copy(sched, args->recvbuf, count, type, lower, count, type);
    upper.in_place = true;
    weft_sched_among(sched, (weft_members){1, sched->size - 1}, weft_scan_doubling, &upper);
}

/* A vector in segments, pipelined along the ranks. */
typedef struct chain {
    uint64_t count, segment; /* elements */
    const weft_type *type;
    void *sum;               /* this rank's data; then with the lower ranks', what the next rank gets; may be MPI_BOTTOM */
    bool passes;             /* there is a sum */
    void *lower;             /* what comes from the rank below; two segments in turn, or the whole vector */
    bool is_whole;
} chain;

static uint64_t length_at(const chain *chain, uint64_t at)
{
    return chain->count - at < chain->segment ? chain->count - at : chain->segment;
}

static void *lower_at(const chain *chain, uint64_t at)
{
    return weft_sched_at(chain->lower, chain->type, chain->is_whole ? at : at / chain->segment % 2 * chain->segment);
}

static void chain_run(weft_sched *sched, const chain *chain)
{
    weft_sched_message arrival = 0;
    weft_sched_window window = {.count = 0};

    if (sched->rank && chain->count)
        arrival = weft_sched_recv(sched, sched->rank - 1, lower_at(chain, 0), length_at(chain, 0), chain->type);
    for (uint64_t at = 0; at < chain->count && !sched->rc; at += chain->segment) {
        uint64_t next = at + chain->segment;
        void *sum = chain->sum ? weft_sched_at(chain->sum, chain->type, at) : NULL; /* the last rank of exscan has none */
        if (sched->rank)
            weft_sched_await(sched, arrival);
        if (sched->rank && next < chain->count)
            arrival = weft_sched_recv(sched, sched->rank - 1, lower_at(chain, next), length_at(chain, next), chain->type);
        if (sched->rank && chain->passes)
            weft_sched_reduce(sched, lower_at(chain, at), sum, length_at(chain, at), chain->type);
        if (sched->rank + 1 < sched->size)
            weft_sched_window_add(sched, &window, weft_sched_send(sched, sched->rank + 1, sum, length_at(chain, at), chain->type));
    }
    weft_sched_fence(sched);
}

static chain chain_of(const weft_sched *sched, const weft_coll *args)
{
    return (chain){.count = args->recvcount, .segment = weft_pipeline_segment(sched, args->recvcount, args->recvtype),
                   .type = args->recvtype};
}

void weft_scan_chain(weft_sched *sched, const weft_coll *args)
{
    chain chain = chain_of(sched, args);

    chain.passes = true;
    chain.sum = sched->rank ? args->recvbuf : (void *)own_data(args); /* rank 0 only reads it */
    if (sched->rank)
        chain.lower = weft_sched_temp(sched, 2 * chain.segment, chain.type);
    weft_sched_copy(sched, args->recvbuf, chain.count, chain.type, own_data(args), chain.count, chain.type);
    chain_run(sched, &chain);
}

void weft_exscan_chain(weft_sched *sched, const weft_coll *args)
{
    chain chain = chain_of(sched, args);

    chain.lower = args->recvbuf;
    chain.is_whole = true;
    if (!sched->rank) {
        chain.sum = (void *)own_data(args);
    } else if (sched->rank + 1 < sched->size) {
        chain.passes = true;
        chain.sum = weft_sched_temp(sched, chain.count, chain.type);
        weft_sched_copy(sched, chain.sum, chain.count, chain.type, own_data(args), chain.count, chain.type);
    }
    chain_run(sched, &chain);
}
