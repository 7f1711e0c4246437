/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory: registers user memory with every rail, with the least access that serves. A key is the rails' rkeys, four bytes each, in the
 * order of the address. Called by any thread (also the registration helper): uses only fields of the iface that do not change after
 * open, and one atomic counter.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/knob.h"
#include "base/status.h"
#include "transports/verbs/verbs.h"

/* May the device write this memory in any order (docs/verbs.md, "Relaxed ordering")? Where peers write, only if all that one writes and
 * sends comes by one QP: a completion tells of its own QP. */
static bool is_relaxed(const verbs_rail *rail, uint32_t rights)
{
    if (!rail->takes_relaxed || (rights & (WEFT_ACCESS_ORDERED | WEFT_ACCESS_ATOMIC)))
        return false;
    return !(rights & (WEFT_ACCESS_WRITE | WEFT_ACCESS_MW)) || rail->iface->rail_count == 1;
}

/* Access flags for these rights. An iWARP read response is a write into the reader's memory by its key: the local side of gets must be open
 * to remote writes, under a key that no peer has. */
static int access_of(const verbs_rail *rail, uint32_t rights)
{
    int access = IBV_ACCESS_LOCAL_WRITE;
    if (rights & WEFT_ACCESS_READ)
        access |= IBV_ACCESS_REMOTE_READ;
    if ((rights & WEFT_ACCESS_WRITE) || (rail->is_iwarp && !rights))
        access |= IBV_ACCESS_REMOTE_WRITE;
    if (rights & WEFT_ACCESS_MW)
        access |= IBV_ACCESS_MW_BIND;
    if ((rights & WEFT_ACCESS_ATOMIC) && rail->attr.atomic_cap != IBV_ATOMIC_NONE)
        access |= IBV_ACCESS_REMOTE_ATOMIC;
    if (is_relaxed(rail, rights))
        access |= IBV_ACCESS_RELAXED_ORDERING;
    return rail->is_odp ? access | IBV_ACCESS_ON_DEMAND : access;
}

static bool needs_sink(const verbs_rail *rail, uint32_t rights)
{
    return rail->is_iwarp && rights && !(rights & WEFT_ACCESS_WRITE);
}

/* Read-only memory fails local write with EFAULT or EACCES and registers without it. Tried only if peers may not write it; such memory
 * cannot have memory windows. */
static struct ibv_mr *register_on(const verbs_rail *rail, void *addr, uint64_t bytes, uint32_t rights, bool *can_have_mw)
{
    int access = access_of(rail, rights);
    struct ibv_mr *ibv_mr = ibv_reg_mr(rail->pd, addr, bytes, access);
    if (!ibv_mr && (errno == EFAULT || errno == EACCES) && !(rights & (WEFT_ACCESS_WRITE | WEFT_ACCESS_ATOMIC)))
        ibv_mr = ibv_reg_mr(rail->pd, addr, bytes, access & ~(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND)),
        *can_have_mw = false;
    return ibv_mr;
}

bool verbs_memory_try_relaxed(const verbs_rail *rail)
{
    uint64_t word = 0;
    int paging = rail->is_odp ? IBV_ACCESS_ON_DEMAND : 0;
    struct ibv_mr *ibv_mr = ibv_reg_mr(rail->pd, &word, sizeof word, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING | paging);
    if (ibv_mr)
        ibv_dereg_mr(ibv_mr);
    return ibv_mr;
}

static int cannot_register(const verbs_rail *rail, uint64_t bytes, int error)
{
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    switch (error) {
    case ENOMEM:
    case EAGAIN:
    case ENOSPC:
        if (limit.rlim_cur != RLIM_INFINITY)
            return weft_fail(WEFT_E_NOSPACE,
                             "%s cannot pin %llu bytes: %s. The limit on locked memory is %llu KiB (ulimit -l): raise it, "
                             "or lower WEFT_REGCACHE_MAX_SIZE", rail->name, (unsigned long long)bytes, strerror(error),
                                 (unsigned long long)limit.rlim_cur >> 10);
        return weft_fail(WEFT_E_NOSPACE,
                         "%s cannot pin %llu bytes: %s. The device holds %d regions, or the machine's memory is used up",
                         rail->name, (unsigned long long)bytes, strerror(error), rail->attr.max_mr);
    case EFAULT:
    case EACCES:
    case EPERM:
        return weft_fail(WEFT_E_UNSUPPORTED, "%s cannot pin this memory: %s: it is not mapped here, or may not be written",
                         rail->name,
                         strerror(error));
    default:
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "%s cannot pin this memory: %s: it is of a kind that devices cannot reach (a device's own, a file on "
                         "a file system that does not let pages be pinned)", rail->name, strerror(error));
    }
}

void verbs_memory_acquire(verbs_memory *memory) { __atomic_fetch_add(&memory->holders, 1, __ATOMIC_RELAXED); }

void verbs_memory_release(verbs_memory *memory)
{
    if (__atomic_sub_fetch(&memory->holders, 1, __ATOMIC_ACQ_REL))
        return;
    for (int i = 0; i < VERBS_RAILS; i++) {
        if (memory->mr[i])
            ibv_dereg_mr(memory->mr[i]);
        if (memory->sink[i])
            ibv_dereg_mr(memory->sink[i]);
    }
    free(memory);
}

int verbs_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr)
{
    verbs_iface *verbs = (verbs_iface *)iface;
    verbs_memory *memory;
    uint32_t keys[VERBS_RAILS] = {0}, granted = rights;
    bool any_relaxed = false;
    if (kind != WEFT_MEMORY_HOST)
        return weft_fail(WEFT_E_UNSUPPORTED, "verbs reaches the host's memory only");
    if (verbs->is_small)
        return weft_fail(WEFT_E_NOSPACE, "the limit on locked memory (ulimit -l) is too low to register memory of the program");
    memory = calloc(1, sizeof *memory);
    if (!memory)
        return weft_fail(WEFT_E_NOMEM, "no memory for a registration");
    memory->holders = 1;
    memory->can_bind = rights & WEFT_ACCESS_MW;
    for (uint8_t i = 0; i < verbs->rail_count; i++) {
        const verbs_rail *rail = &verbs->rails[i];
        int error;
        granted |= rail->is_iwarp && !rights ? WEFT_ACCESS_WRITE : 0;
        any_relaxed |= is_relaxed(rail, rights);
        memory->mr[i] = register_on(rail, addr, bytes, rights, &memory->can_bind);
        if (memory->mr[i] && needs_sink(rail, rights))
            memory->sink[i] = register_on(rail, addr, bytes, 0, &memory->can_bind);
        if (memory->mr[i] && (memory->sink[i] || !needs_sink(rail, rights))) {
            keys[i] = memory->mr[i]->rkey;
            continue;
        }
        error = errno;
        if (error == EIO || error == ENODEV) /* a failed device; the others still serve */
            continue;
        verbs_memory_release(memory);
        return cannot_register(rail, bytes, error);
    }
    if (!memory->can_bind)
        granted &= ~(uint32_t)WEFT_ACCESS_MW;
    if (any_relaxed)
        __atomic_fetch_add(&verbs->counts[VERBS_COUNT_RELAXED], 1, __ATOMIC_RELAXED);
    else
        granted |= WEFT_ACCESS_ORDERED;
    *mr = (weft_mr){.addr = addr, .bytes = bytes, .rights = granted, .device = memory};
    mr->rkey.length = (uint8_t)(sizeof keys[0] * verbs->rail_count);
    memcpy(mr->rkey.bytes, keys, mr->rkey.length);
    return 0;
}

int verbs_mr_dereg(weft_iface *iface, weft_mr *mr)
{
    (void)iface;
    if (mr->device)
        verbs_memory_release(mr->device);
    mr->device = NULL;
    return 0;
}

uint32_t verbs_lkey(const weft_mr *mr, uint8_t rail)
{
    const verbs_memory *memory = mr->device;
    const struct ibv_mr *ibv_mr = memory->sink[rail] ? memory->sink[rail] : memory->mr[rail];
    return ibv_mr ? ibv_mr->lkey : 0;
}

uint32_t verbs_rkey(const weft_rkey *rkey, uint8_t remote_rail)
{
    uint32_t value = 0;
    if ((remote_rail + 1u) * sizeof value <= rkey->length)
        memcpy(&value, rkey->bytes + remote_rail * sizeof value, sizeof value);
    return value;
}
