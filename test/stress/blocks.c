/* SPDX-License-Identifier: BSD-3-Clause
 *
 * blocks: see blocks.h.
 */
#include "blocks.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW (PROT_READ | PROT_WRITE)

enum act {
    ACT_TAKE, ACT_GIVE, ACT_REALLOC, ACT_TRIM, ACT_DONTNEED, ACT_RAW_DONTNEED, ACT_MADV_FREE, ACT_OVERMAP, ACT_RAW_OVERMAP,
    ACT_PUNCH,
    ACT_RAW_PUNCH, ACT_MOVE, ACT_RAW_MOVE, ACT_DONTUNMAP, ACT_SHRINK_GROW, ACT_FILE_HOLE, ACT_SAME_AGAIN, ACT_RACE, ACT_LAST
};
block_act block_acts[ACT_LAST + 1] = {
    {"allocated", 0}, {"freed", 0}, {"realloc", 0}, {"malloc_trim", 0}, {"madvise dontneed", 0}, {"raw dontneed", 0},
    {"madvise free", 0},
    {"mmap over", 0}, {"raw mmap over", 0}, {"hole and refill", 0}, {"raw hole and refill", 0}, {"mremap away", 0},
    {"raw mremap away", 0},
    {"mremap dontunmap", 0}, {"mremap smaller, larger", 0}, {"hole in a file", 0}, {"free, malloc: same address", 0},
    {"unmapped by another thread", 0}, {NULL, 0},
};

const char *block_kind_name(enum block_kind kind)
{
    static const char *const names[BLOCK_KINDS] = {"none", "malloc", "aligned_alloc", "mmap", "raw mmap", "fixed place",
                                                   "shared mapping", "memfd", "SysV", "brk"};
    return names[kind];
}

static void count(block *block, enum act act)
{
    block->last_act = act;
    atomic_fetch_add_explicit(&block_acts[act].times, 1, memory_order_relaxed);
}

uint32_t block_random(block_yard *yard, uint32_t below)
{
    yard->random = yard->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((yard->random >> 33) % below);
}

static void die(const char *what)
{
    perror(what);
    abort();
}

static void *map(void *at, size_t bytes, int protection, int flags, bool raw)
{
    void *addr = raw ? (void *)syscall(SYS_mmap, at, bytes, protection, flags, -1, 0) : mmap(at, bytes, protection, flags, -1, 0);
    if (addr == MAP_FAILED)
        die("mmap");
    return addr;
}

static void unmap(void *addr, size_t bytes, bool raw)
{
    if (raw ? syscall(SYS_munmap, addr, bytes) : munmap(addr, bytes))
        die("munmap");
}

bool block_break_moves;

void block_yard_open(block_yard *yard, uint64_t seed, bool may_raw, bool may_brk)
{
    block_break_moves |= may_brk;
    *yard = (block_yard){.random = seed, .may_raw = may_raw, .may_brk = may_brk, .may_race = true};
    yard->places = map(NULL, BLOCK_PLACES * BLOCK_MAX, PROT_NONE, ANON | MAP_NORESERVE, false);
}

/* -- allocation and release -- */

static void take_place(block_yard *yard, block *block)
{
    for (uint32_t i = 0; i < BLOCK_PLACES; i++)
        if (!(yard->place_used >> i & 1)) {
            yard->place_used |= 1u << i;
            block->addr = map(yard->places + i * BLOCK_MAX, block->bytes, RW, ANON | MAP_FIXED, false);
            return;
        }
    block->kind = BLOCK_MAP;
    block->addr = map(NULL, block->bytes, RW, ANON, false);
}

static void alloc_memfd(block *block)
{
    block->file = memfd_create("churn", MFD_CLOEXEC);
    if (block->file < 0 || ftruncate(block->file, (off_t)block->bytes))
        die("memfd");
    block->addr = mmap(NULL, block->bytes, RW, MAP_SHARED, block->file, 0);
    if (block->addr == MAP_FAILED)
        die("mmap of a memfd");
}

static bool alloc_sysv(block *block)
{
    int id = shmget(IPC_PRIVATE, block->bytes, IPC_CREAT | 0600);
    void *addr = id < 0 ? (void *)-1 : shmat(id, NULL, 0);
    if (id >= 0)
        shmctl(id, IPC_RMID, NULL);
    block->addr = addr == (void *)-1 ? NULL : addr;
    return block->addr != NULL;
}

static bool alloc_brk(block *block)
{
    uint8_t *top = sbrk(0);
    size_t pad = (BLOCK_PAGE - (uintptr_t)top % BLOCK_PAGE) % BLOCK_PAGE;
    if (sbrk((intptr_t)(pad + block->bytes)) != top)
        return false;
    block->addr = top + pad;
    return true;
}

void block_alloc(block_yard *yard, block *block, size_t bytes)
{
    static const enum block_kind kinds[] = {BLOCK_MALLOC, BLOCK_MALLOC, BLOCK_MALLOC, BLOCK_ALIGNED, BLOCK_MAP, BLOCK_MAP,
                                            BLOCK_MAP, BLOCK_RAW,
                                            BLOCK_PLACE, BLOCK_PLACE, BLOCK_SHARED, BLOCK_MEMFD, BLOCK_SYSV, BLOCK_BRK};
    size_t pages = (bytes + BLOCK_PAGE - 1) / BLOCK_PAGE * BLOCK_PAGE;
    *block = (struct block){.kind = kinds[block_random(yard, COUNT(kinds))], .bytes = pages, .file = -1};
    if ((block->kind == BLOCK_BRK && (!yard->may_brk || !alloc_brk(block))) || (block->kind == BLOCK_SYSV && !alloc_sysv(block)) ||
        (block->kind == BLOCK_RAW && !yard->may_raw))
        block->kind = BLOCK_MALLOC;
    if (block->kind == BLOCK_MALLOC)
        block->addr = malloc(block->bytes = bytes);
    else if (block->kind == BLOCK_ALIGNED)
        block->addr = aligned_alloc(BLOCK_PAGE, pages);
    else if (block->kind == BLOCK_MAP || block->kind == BLOCK_RAW)
        block->addr = map(NULL, pages, RW, ANON, block->kind == BLOCK_RAW);
    else if (block->kind == BLOCK_SHARED)
        block->addr = map(NULL, pages, RW, MAP_SHARED | MAP_ANONYMOUS, false);
    else if (block->kind == BLOCK_PLACE)
        take_place(yard, block);
    else if (block->kind == BLOCK_MEMFD)
        alloc_memfd(block);
    if (!block->addr)
        die("out of memory");
    if (block->kind == BLOCK_MAP && pages >= (4 << 20) && block_random(yard, 4) == 0)
        madvise(block->addr, pages, MADV_HUGEPAGE);
    count(block, ACT_TAKE);
}

void block_free(block_yard *yard, block *block)
{
    bool raw = yard->may_raw && block_random(yard, 3) == 0;
    if (block->kind == BLOCK_NONE)
        return;
    if (block->kind == BLOCK_MALLOC || block->kind == BLOCK_ALIGNED) {
        free(block->addr);
    } else if (block->kind == BLOCK_PLACE) {
        yard->place_used &= ~(1u << (uint32_t)((size_t)(block->addr - yard->places) / BLOCK_MAX));
        map(block->addr, block->bytes, PROT_NONE, ANON | MAP_FIXED | MAP_NORESERVE, raw);
    } else if (block->kind == BLOCK_SYSV) {
        shmdt(block->addr);
    } else if (block->kind == BLOCK_BRK) {
        if (sbrk(0) == block->addr + block->bytes) /* else it stays: another allocation is above */
            (void)!sbrk(-(intptr_t)block->bytes);
    } else {
        unmap(block->addr, block->bytes, block->kind == BLOCK_RAW || raw);
    }
    if (block->file >= 0)
        close(block->file);
    count(block, ACT_GIVE);
    block->kind = BLOCK_NONE;
}

/* -- pages moved away by mremap: same pages, other address; last written before the move -- */

#define MOVED_ROOM 32
#define MOVED_WORD 0x6d6f766564206f6eull
static pthread_mutex_t moved_lock = PTHREAD_MUTEX_INITIALIZER;
static struct { uint64_t *addr; size_t bytes; } moved[MOVED_ROOM];
static uint32_t moved_next, moved_damage;

static void check_moved(uint32_t i)
{
    uint32_t wrong = 0;
    if (!moved[i].addr)
        return;
    for (size_t word = 0; word < moved[i].bytes / 8; word++)
        wrong += moved[i].addr[word] != MOVED_WORD + word;
    moved_damage += wrong > 0;
    munmap(moved[i].addr, moved[i].bytes);
    moved[i].addr = NULL;
}

static void keep_moved(void *addr, size_t bytes)
{
    for (size_t word = 0; word < bytes / 8; word++)
        ((uint64_t *)addr)[word] = MOVED_WORD + word;
    pthread_mutex_lock(&moved_lock);
    uint32_t i = moved_next++ % MOVED_ROOM;
    check_moved(i);
    moved[i].addr = addr;
    moved[i].bytes = bytes;
    pthread_mutex_unlock(&moved_lock);
}

uint32_t block_moved_damage(void)
{
    pthread_mutex_lock(&moved_lock);
    for (uint32_t i = 0; i < MOVED_ROOM; i++)
        check_moved(i);
    pthread_mutex_unlock(&moved_lock);
    return moved_damage;
}

/* -- changes -- */

/* Maps a hole in a block again. If another thread's mapping took the address, the block is made anew elsewhere, and a fixed address lost
 * that way is not used any more. */
static void fill_hole(block *block, uint8_t *from, size_t bytes, bool raw)
{
    void *got = raw ? (void *)syscall(SYS_mmap, from, bytes, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0)
                    : mmap(from, bytes, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == from)
        return;
    if (got != MAP_FAILED)
        unmap(got, bytes, raw);
    if (from > block->addr)
        unmap(block->addr, (size_t)(from - block->addr), raw);
    if (from + bytes < block->addr + block->bytes)
        unmap(from + bytes, (size_t)(block->addr + block->bytes - from) - bytes, raw);
    block->kind = BLOCK_MAP;
    block->addr = map(NULL, block->bytes, RW, ANON, raw);
}

static void move_away(block *block, int flags, bool raw)
{
    bool keeps_old = flags & MREMAP_DONTUNMAP;
    void *to = map(NULL, block->bytes, PROT_NONE, ANON | MAP_NORESERVE, raw);
    flags |= MREMAP_MAYMOVE | MREMAP_FIXED;
    void *got = raw ? (void *)syscall(SYS_mremap, block->addr, block->bytes, block->bytes, flags, to)
                    : mremap(block->addr, block->bytes, block->bytes, flags, to);
    if (got != to) { /* huge pages may prevent it */
        unmap(to, block->bytes, raw);
        return;
    }
    if (!keeps_old)
        fill_hole(block, block->addr, block->bytes, raw);
    keep_moved(got, block->bytes);
    count(block, keeps_old ? ACT_DONTUNMAP : raw ? ACT_RAW_MOVE : ACT_MOVE);
}

/* Some whole pages of the block. */
static void choose_part(block_yard *yard, const block *block, uint8_t **from, size_t *bytes)
{
    uint32_t pages = (uint32_t)(block->bytes / BLOCK_PAGE), first = block_random(yard, pages);
    *from = block->addr + first * BLOCK_PAGE;
    *bytes = (1 + block_random(yard, pages - first)) * BLOCK_PAGE;
}

static void shrink_and_grow(block *block)
{
    size_t half = block->bytes / 2 / BLOCK_PAGE * BLOCK_PAGE;
    if (!half || mremap(block->addr, block->bytes, half, 0) != block->addr)
        return;
    void *addr = mremap(block->addr, half, block->bytes, MREMAP_MAYMOVE);
    if (addr == MAP_FAILED) { /* it consists of several mappings, some of them tracked: the kernel does not extend those */
        unmap(block->addr, half, false);
        addr = map(NULL, block->bytes, RW, ANON, false);
        block->kind = BLOCK_MAP;
    }
    block->addr = addr;
    count(block, ACT_SHRINK_GROW);
}

static void change_mapping(block_yard *yard, block *block)
{
    bool raw = yard->may_raw && block_random(yard, 2);
    uint8_t *from = block->addr;
    size_t bytes = block->bytes;
    uint32_t choice = block_random(yard, 6);
    if (yard->may_race && block->kind != BLOCK_PLACE && block_random(yard, 2) && block_race(block)) {
        count(block, ACT_RACE);
        return;
    }
    if (block_random(yard, 2))
        choose_part(yard, block, &from, &bytes);
    if (choice == 0) {
        if (raw ? syscall(SYS_madvise, from, bytes, MADV_DONTNEED) : madvise(from, bytes, MADV_DONTNEED))
            die("madvise");
        count(block, raw ? ACT_RAW_DONTNEED : ACT_DONTNEED);
    } else if (choice == 1) {
        madvise(from, bytes, MADV_FREE);
        count(block, ACT_MADV_FREE);
    } else if (choice == 2) {
        map(from, bytes, RW, ANON | MAP_FIXED, raw);
        count(block, raw ? ACT_RAW_OVERMAP : ACT_OVERMAP);
    } else if (choice == 3) {
        unmap(from, bytes, raw);
        fill_hole(block, from, bytes, raw);
        count(block, raw ? ACT_RAW_PUNCH : ACT_PUNCH);
    } else if (choice == 4) {
        move_away(block, block_random(yard, 3) == 0 ? MREMAP_DONTUNMAP : 0, raw);
    } else if (block->kind != BLOCK_PLACE) {
        shrink_and_grow(block);
    }
}

static void change_malloc(block_yard *yard, block *block, size_t bytes)
{
    uint8_t *before = block->addr;
    if (block->kind == BLOCK_MALLOC && block_random(yard, 2)) {
        uint8_t *addr = realloc(block->addr, bytes + block_random(yard, 100000));
        if (!addr)
            die("realloc");
        block->addr = addr;
        block->bytes = bytes;
        count(block, ACT_REALLOC);
        return;
    }
    free(block->addr);
    if (block_random(yard, 4) == 0 && (yard->may_brk || !block_break_moves)) {
        malloc_trim(0);
        count(block, ACT_TRIM);
    }
    block->addr = malloc(bytes);
    block->kind = BLOCK_MALLOC;
    block->bytes = bytes;
    if (!block->addr)
        die("malloc");
    if (block->addr == before)
        count(block, ACT_SAME_AGAIN);
}

void block_change(block_yard *yard, block *block, size_t bytes)
{
    if (block->kind == BLOCK_MALLOC || block->kind == BLOCK_ALIGNED) {
        change_malloc(yard, block, bytes);
        return;
    }
    if (block->bytes < bytes) {
        block_free(yard, block);
        block_alloc(yard, block, bytes);
    } else if (block->kind == BLOCK_MEMFD) {
        fallocate(block->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)block->bytes);
        count(block, ACT_FILE_HOLE);
    } else if (block->kind == BLOCK_BRK || block->kind == BLOCK_SYSV || block->kind == BLOCK_SHARED) {
        madvise(block->addr, block->bytes, MADV_DONTNEED);
        count(block, ACT_DONTNEED);
    } else {
        change_mapping(yard, block);
    }
}
