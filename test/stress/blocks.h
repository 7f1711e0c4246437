/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks: memory of every origin, and all changes that a program may make to it. For churn.c. A block's address often stays, or is reused
 * at once, while its pages change. After block_alloc and block_change the contents are undefined.
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
    int file;      /* for MEMFD */
    int last_act;  /* for reports: index into block_acts, -1 none */
} block;

/* State of one thread. */
typedef struct block_yard {
    uint64_t random;
    uint8_t *places;    /* address range with fixed addresses that are mapped again and again */
    uint32_t place_used;
    bool may_raw;       /* raw system calls */
    bool may_brk;       /* no other code moves the break */
    bool may_race;      /* lets another thread unmap, and maps the address again meanwhile */
} block_yard;

#define BLOCK_PLACES 4
#define BLOCK_MAX ((size_t)8 << 20)
#define BLOCK_PAGE ((size_t)4096)

/* Numbers of all acts, over all threads. */
typedef struct block_act {
    const char *name;
    atomic_ullong times;
} block_act;
extern block_act block_acts[]; /* ends with name NULL */
/* This thread moves the break itself: no other code may, or memory above is cut off. libc does not exclude that. */
extern bool block_break_moves;
const char *block_kind_name(enum block_kind kind);

void block_yard_open(block_yard *yard, uint64_t seed, bool may_raw, bool may_brk);
uint32_t block_random(block_yard *yard, uint32_t below);
/* At least `bytes`, of a random origin. */
void block_alloc(block_yard *yard, block *block, size_t bytes);
void block_free(block_yard *yard, block *block);
/* Changes the pages below, or reallocates; at least `bytes` afterwards. The address may change. */
void block_change(block_yard *yard, block *block, size_t bytes);
/* Blocks moved away by mremap must not change any more. Returns the number of changed ones (late writes through an old registration). */
uint32_t block_moved_damage(void);

/* -- hammer.c: threads that do not call MPI -- */
/* Another thread unmaps the block while this one waits for its address and maps it again. False: not now. */
bool block_race(block *block);
void hammer_start(uint32_t threads, bool forks, bool may_raw, uint64_t seed);
void hammer_stop(void);
/* Delays userfaultfd's events. Returns the number of event threads. */
uint32_t hammer_delay_listener(void);
extern atomic_ullong hammer_turns, hammer_forks, hammer_spawns, hammer_systems, hammer_races, hammer_overtaken,
    hammer_child_errors;

#endif
