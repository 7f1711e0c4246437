/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mem: MPI_Alloc_mem and MPI_Free_mem (MPI 5.0, 9.2). Called by the generated entries, under worker 0's lock.
 * Invariant: allocations are aligned to cache lines, or as the program asks. From one page on they begin and end on pages, so that
 * registering them affects no other data. From WEFT_PERSISTENT_REG_MIN on they stay registered with the devices that need it until they
 * are freed.
 */
#include <mpi.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/status.h"
#include "core/world.h"
#include "mpi/calls.h"
#include "mpi/info.h"
#include "mpi/persistent_reg.h"

#define PAGE 4096
#define ALIGN_MAX (1 << 30) /* larger values are ignored */
#define BLOCK_MAGIC 0x424c4f43u

typedef struct block { /* in the cache line before the user's memory */
    uint32_t magic;
    uint32_t before; /* offset of the user's memory in the allocation, bytes */
    weft_persistent_reg *reg; /* persistent registration; NULL: none */
} block;

static block *block_of(void *base) { return (block *)((char *)base - WEFT_LINE); }

/* Alignment of an allocation: what the program asks for (MPI 5.0 9.2), if it is a power of two and more than the default. */
static size_t alignment(size_t bytes, const weft_info *info)
{
    size_t align = bytes >= PAGE ? PAGE : WEFT_LINE;
    int64_t asked;
    if (weft_info_find_int(info, "mpi_minimum_memory_alignment", &asked) && asked > (int64_t)align && asked <= ALIGN_MAX &&
        (asked & (asked - 1)) == 0)
        align = (size_t)asked;
    return align;
}

int weft_mpi_alloc_mem(MPI_Aint size, weft_info *info, void *baseptr)
{
    size_t bytes = size > 0 ? (size_t)size : 1, align = alignment(bytes, info);
    char *memory = NULL;
    void *start;
    if (size < 0)
        return weft_fail(WEFT_E_ARG, "size is %lld bytes: it must not be negative", (long long)size);
    if (!baseptr)
        return weft_fail(WEFT_E_ARG, "baseptr is NULL");
    if (bytes <= SIZE_MAX / 4 && posix_memalign(&start, align, align + weft_round_up(bytes, align)) == 0)
        memory = (char *)start + align;
    if (!memory)
        return weft_fail(WEFT_E_NOMEM, "no memory for %lld bytes", (long long)size);
    *block_of(memory) = (block){.magic = BLOCK_MAGIC, .before = (uint32_t)align};
    if (bytes >= WEFT_PERSISTENT_REG_MIN)
        block_of(memory)->reg =
            weft_persistent_reg_acquire(weft_world_now->workers[0], memory, bytes, WEFT_ACCESS_READ | WEFT_ACCESS_WRITE);
    *(void **)baseptr = memory;
    return 0;
}

int weft_mpi_free_mem(void *base)
{
    block *own;
    if (!base)
        return 0;
    if ((uintptr_t)base % WEFT_LINE || block_of(base)->magic != BLOCK_MAGIC)
        return weft_fail(WEFT_E_BASE, "%p was not returned by MPI_Alloc_mem, or was freed already", base);
    own = block_of(base);
    own->magic = 0;
    weft_persistent_reg_release(own->reg);
    free((char *)base - own->before);
    return 0;
}
