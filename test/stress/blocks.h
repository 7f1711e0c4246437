/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks: memory of every origin, and everything that a program may do underneath it. For churn.c. A block's address often stays,
 * or comes back at once, while its pages are others: that is the point. After take and stir the contents are anybody's guess.
 */
#ifndef TEST_STRESS_BLOCKS_H
#define TEST_STRESS_BLOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum block_kind {
    BLOCK_NONE, BLOCK_MALLOC, BLOCK_ALIGNED, BLOCK_MAP, BLOCK_RAW, BLOCK_PLACE, BLOCK_SHARED, BLOCK_MEMFD, BLOCK_SYSV,
    BLOCK_BRK, BLOCK_KINDS
};

typedef struct block {
    enum block_kind kind;
    uint8_t *addr;
    size_t bytes;  /* of the mapping or allocation */
    int file;      /* MEMFD */
    int last_act;  /* for reports: index into block_acts, -1 none */
} block;

/* One thread's own. */
typedef struct block_yard {
    uint64_t random;
    uint8_t *places;    /* address space of ours: fixed places that are mapped over and over */
    uint32_t place_used;
    bool may_raw;       /* raw system calls */
    bool may_brk;       /* nobody else moves the break */
    bool may_race;      /* has another thread unmap, and maps the address anew meanwhile */
} block_yard;

#define BLOCK_PLACES 4
#define BLOCK_MAX ((size_t)8 << 20)
#define BLOCK_PAGE ((size_t)4096)

/* What was done how often, over all threads. */
typedef struct block_act {
    const char *name;
    atomic_ullong times;
} block_act;
extern block_act block_acts[]; /* ends with name NULL */
/* A yard moves the break by itself: nobody else may, or what stands above is cut off. Nothing in libc makes the two exclude each other. */
extern bool block_break_moves;
const char *block_kind_name(enum block_kind kind);

void block_yard_open(block_yard *yard, uint64_t seed, bool may_raw, bool may_brk);
uint32_t block_random(block_yard *yard, uint32_t below);
/* At least `bytes`; of a random origin. */
void block_take(block_yard *yard, block *block, size_t bytes);
void block_give(block_yard *yard, block *block);
/* Changes what is underneath, or reallocates; at least `bytes` afterwards. The address may be another one. */
void block_stir(block_yard *yard, block *block, size_t bytes);
/* Blocks that mremap moved away must not change any more: how many were changed all the same (a late write through an old
 * registration). */
uint32_t block_moved_damage(void);

/* -- hammer.c: threads that never call MPI -- */
/* Another thread unmaps the block while this one waits for its address and maps it anew. false: not now. */
bool block_race(block *block);
void hammer_start(uint32_t threads, bool forks, bool may_raw, uint64_t seed);
void hammer_stop(void);
/* Makes news of userfaultfd late; how many threads listened. */
uint32_t hammer_delay_listener(void);
extern atomic_ullong hammer_turns, hammer_forks, hammer_spawns, hammer_systems, hammer_races, hammer_overtaken,
    hammer_child_errors;

#endif
