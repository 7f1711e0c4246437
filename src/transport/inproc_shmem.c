/* SPDX-License-Identifier: BSD-3-Clause
 *
 * inproc_shmem: see inproc_shmem.h.
 */
#include "transport/inproc_shmem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "base/status.h"

typedef struct block {
    weft_list_link link;
    void *addr;
    uint64_t bytes, handle;
    uint32_t refs;
} block;

void weft_inproc_shmem_init(weft_inproc_shmem *blocks)
{
    *blocks = (weft_inproc_shmem){.last_handle = 0};
    weft_list_init(&blocks->all);
}

static int find(const weft_inproc_shmem *blocks, uint64_t handle, block **found)
{
    *found = NULL;
    for (weft_list_link *link = blocks->all.next; link != &blocks->all && !*found; link = link->next) {
        block *one = weft_container(link, block, link);
        if (one->handle == handle)
            *found = one;
    }
    return *found ? 0 : weft_fail(WEFT_E_KEY, "no shared memory has the handle %" PRIu64, handle);
}

static int make(weft_inproc_shmem *blocks, uint64_t bytes, block **made)
{
    if (!bytes)
        return weft_fail(WEFT_E_ARG, "shared memory of 0 bytes cannot be created");
    *made = malloc(sizeof **made);
    if (!*made)
        return weft_fail(WEFT_E_NOMEM, "no memory for the record of shared memory of %" PRIu64 " bytes", bytes);
    void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (addr == MAP_FAILED) {
        free(*made);
        return weft_fail(WEFT_E_NOMEM, "mmap of %" PRIu64 " bytes to share failed: %m", bytes);
    }
    **made = (block){.addr = addr, .bytes = bytes, .handle = ++blocks->last_handle};
    weft_list_append(&blocks->all, &(*made)->link);
    return 0;
}

int weft_inproc_shmem_share(weft_inproc_shmem *blocks, uint64_t bytes, weft_shared *shared)
{
    block *block = NULL;
    int rc = shared->handle ? find(blocks, shared->handle, &block) : make(blocks, bytes, &block);
    if (rc)
        return rc;
    block->refs++;
    *shared = (weft_shared){block->addr, block->bytes, block->handle};
    return 0;
}

static void release_block(block *block)
{
    weft_list_remove(&block->link);
    munmap(block->addr, block->bytes);
    free(block);
}

int weft_inproc_shmem_unshare(weft_inproc_shmem *blocks, weft_shared *shared)
{
    block *block = NULL;
    int rc = find(blocks, shared->handle, &block);
    if (rc)
        return rc;
    if (!--block->refs)
        release_block(block);
    *shared = (weft_shared){0};
    return 0;
}

void weft_inproc_shmem_clear(weft_inproc_shmem *blocks)
{
    while (!weft_list_is_empty(&blocks->all))
        release_block(weft_container(blocks->all.next, block, link));
}
