/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shmcoll_exchange: one call through a node area, as rounds: its state, and what each kind of collective writes and reads.
 * shmcoll.c runs the rounds; shmcoll_vector.c has kinds whose members write vectors (bcast, reductions), shmcoll_block.c those that write
 * blocks, shmcoll_alltoallv.c alltoallv and alltoallw, shmcoll_scan.c scans. All require worker->lock.
 * open: sets rounds (0: nothing to move), chunk, and what the others need. WEFT_E_NOMEM.
 * write: this member's data of a round into its slot of operation s. read: the other members' data of s.
 * relay: both at once: reads the next lower member's data of s, and writes its own.
 * fold: reads s, and writes operation `folded`. close: after the last round, also if one failed. goes_on: then, whether the call goes on
 * with its second kind of rounds.
 */
#ifndef WEFT_COLLECTIVES_SHMCOLL_EXCHANGE_H
#define WEFT_COLLECTIVES_SHMCOLL_EXCHANGE_H

#include "collectives/blocks.h"
#include "collectives/shmcoll_reduction.h"
#include "collectives/shmcoll_slot.h"

#define WEFT_SHMCOLL_ONE_WAY_ROUNDS 8
#define WEFT_SHMCOLL_ONE_WAY_MIN 2048  /* bytes; shorter calls have one round. Rounds have at least half of this */
#define WEFT_SHMCOLL_ONE_WAY_MAX 32768 /* bytes; longer calls have rounds of a slot */
#define WEFT_SHMCOLL_RECENT 4 /* rounds whose operations are remembered: more than WEFT_SHMCOLL_LAG */

/* Position in an exchange: turn i writes round i, folds round i - 1 and reads round i - lag. */
enum weft_shmcoll_phase { WEFT_SHMCOLL_WRITE, WEFT_SHMCOLL_FOLD, WEFT_SHMCOLL_READ };
typedef struct weft_shmcoll_cursor {
    uint64_t turn;
    enum weft_shmcoll_phase phase; /* next one of the turn */
} weft_shmcoll_cursor;

/* max, and what rounds are, depend on the kind; all members compute the same. */
typedef struct weft_shmcoll_exchange {
    weft_shmcoll *area;
    const weft_coll *args;
    uint64_t rounds;
    uint64_t max;     /* longest fragment of a round: elements in reductions, else bytes */
    uint64_t chunk;   /* most bytes that a member writes in a round (weft_shmcoll_place); 0: none writes */
    uint32_t ahead;   /* weft_shmcoll_ahead() */
    uint32_t parts;   /* blocks that members 0 .. parts - 1 own */
    weft_shmcoll_reduction reduction;
    weft_blocks blocks; /* one for each member, where the kind has them */
    uint64_t written[WEFT_SHMCOLL_RECENT], folded[WEFT_SHMCOLL_RECENT]; /* operations of round i: element i % RECENT */
    uint64_t starts[WEFT_SHMCOLL_RANKS + 1]; /* of the blocks of a vector that is split; shmcoll_alltoallv.c: bytes of the longer blocks */
    uint64_t longest; /* shmcoll_alltoallv.c: bytes of the longest block that this member knows of */
    /* nonblocking calls only (shmcoll.c) */
    const struct weft_shmcoll_row *row; /* kind */
    weft_shmcoll_cursor at;             /* what is done next */
} weft_shmcoll_exchange;

typedef int weft_shmcoll_open_call(weft_shmcoll_exchange *ex);
typedef void weft_shmcoll_move_call(weft_shmcoll_exchange *ex, uint64_t round, uint64_t s);
typedef void weft_shmcoll_fold_call(weft_shmcoll_exchange *ex, uint64_t round, uint64_t s, uint64_t folded);
typedef void weft_shmcoll_close_call(weft_shmcoll_exchange *ex);

/* shmcoll_vector.c */
weft_shmcoll_open_call weft_shmcoll_open_bcast, weft_shmcoll_open_reduce, weft_shmcoll_open_split, weft_shmcoll_open_vectors;
weft_shmcoll_move_call weft_shmcoll_write_bcast, weft_shmcoll_write_chunk, weft_shmcoll_write_split, weft_shmcoll_write_vector,
    weft_shmcoll_read_all_vectors, weft_shmcoll_read_bcast, weft_shmcoll_read_chunk, weft_shmcoll_read_in_vector,
    weft_shmcoll_read_own_block;
weft_shmcoll_fold_call weft_shmcoll_fold_chunk;
weft_shmcoll_close_call weft_shmcoll_close_vectors;
/* shmcoll_block.c */
weft_shmcoll_open_call weft_shmcoll_open_allgather, weft_shmcoll_open_alltoall, weft_shmcoll_open_gather, weft_shmcoll_open_scatter,
    weft_shmcoll_open_spread;
weft_shmcoll_move_call weft_shmcoll_write_block, weft_shmcoll_write_parts, weft_shmcoll_write_spread, weft_shmcoll_read_alltoall,
    weft_shmcoll_read_blocks, weft_shmcoll_read_scatter;
weft_shmcoll_close_call weft_shmcoll_close_alltoall, weft_shmcoll_close_gather, weft_shmcoll_close_scatter, weft_shmcoll_copy_own_block;

/* Most bytes of a round of a one-way call (each member only writes or only reads). all: bytes of the call; most: of a slot, or of a part of
 * it. With several rounds a reader copies one while the writer copies the next. In a stream the writers are whole calls ahead, and ranks
 * that share CPUs copy in turn: rounds gain nothing there. */
static inline uint64_t weft_shmcoll_one_way_bytes(const weft_shmcoll *area, uint64_t all, uint64_t most)
{
    uint64_t bytes = all / WEFT_SHMCOLL_ONE_WAY_ROUNDS;

    if (area->is_oversubscribed || area->is_streaming || all <= WEFT_SHMCOLL_ONE_WAY_MIN || all > WEFT_SHMCOLL_ONE_WAY_MAX)
        return most;
    bytes = weft_round_up(bytes > WEFT_SHMCOLL_ONE_WAY_MIN / 2 ? bytes : WEFT_SHMCOLL_ONE_WAY_MIN / 2, WEFT_LINE);
    return bytes < most ? bytes : most;
}

/* Bytes of each member's part of a slot; at least 1, by the shortest slot and WEFT_SHMCOLL_RANKS. */
static inline uint64_t weft_shmcoll_part_bytes(const weft_shmcoll *area)
{
    uint64_t part = area->slot_bytes / area->ranks;

    return part >= 16 ? part / 16 * 16 : part;
}

/* shmcoll_alltoallv.c */
typedef bool weft_shmcoll_goes_on_call(const weft_shmcoll_exchange *ex);
weft_shmcoll_open_call weft_shmcoll_open_alltoallv, weft_shmcoll_open_rest;
weft_shmcoll_move_call weft_shmcoll_write_alltoallv, weft_shmcoll_read_alltoallv, weft_shmcoll_write_rest, weft_shmcoll_read_rest;
weft_shmcoll_goes_on_call weft_shmcoll_alltoallv_goes_on;
weft_shmcoll_close_call weft_shmcoll_close_rest;

/* shmcoll_scan.c */
weft_shmcoll_move_call weft_shmcoll_relay_scan, weft_shmcoll_relay_exscan;

/* Of a call just opened: its only round has been written already, by operation s. */
static inline void weft_shmcoll_set_written(weft_shmcoll_exchange *ex, uint64_t s)
{
    ex->written[0] = s;
    ex->at.phase = WEFT_SHMCOLL_READ;
}

static inline bool weft_shmcoll_is_root(const weft_shmcoll_exchange *ex) { return ex->area->rank == (uint32_t)ex->args->root; }

#endif
