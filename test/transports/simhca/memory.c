/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory: protection domains and regions. A key is index << 8
 * tag; the tag changes at each reuse of the index, so old keys stay invalid. Local and remote keys differ, so that an exchange is detected.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "test/transports/simhca/hca.h"

#define REMOTE_BIT 0x80000000u
#define PAGE 4096u

struct ibv_pd *ibv_alloc_pd(struct ibv_context *base)
{
    hca_context *context = hca_context_of(base);
    hca_pd *pd = context->device->is_dead ? NULL : calloc(1, sizeof *pd);
    if (!pd) {
        errno = context->device->is_dead ? EIO : ENOMEM;
        return NULL;
    }
    pd->base.context = base;
    hca_lock();
    weft_list_append(&context->pds, &pd->link);
    context->objects[HCA_PD]++;
    hca_unlock();
    return &pd->base;
}

int ibv_dealloc_pd(struct ibv_pd *base)
{
    hca_pd *pd = (hca_pd *)base;
    hca_lock();
    int rc = pd->users ? EBUSY : 0;
    if (!rc) {
        hca_context_of(base->context)->objects[HCA_PD]--;
        weft_list_remove(&pd->link);
        free(pd);
    }
    hca_unlock();
    return rc;
}

/* Is all of it mapped, and writable if the device writes it? */
static bool is_there(uint64_t addr, uint64_t bytes, bool writes)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], rights[8];
    uint64_t at = addr, low, high;
    while (maps && at < addr + bytes && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx %7s", &low, &high, rights) != 3 || high <= at)
            continue;
        if (low > at || rights[0] != 'r' || (writes && rights[1] != 'w'))
            break;
        at = high;
    }
    if (maps)
        fclose(maps);
    return !maps || at >= addr + bytes;
}

/* By length only: the address must not change later events. */
static uint64_t pages_of(uint64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE;
}

/* A free index of the device's table; -1: limit reached. */
static int place_for(hca_device *device, hca_mr *mr)
{
    uint32_t max = hca_limit(hca.profile.max_mr, 65536);
    if (device->mr_count >= max)
        return -1;
    if (device->mr_count == device->mr_capacity) {
        uint32_t room = device->mr_capacity ? 2 * device->mr_capacity : 64;
        device->mrs = realloc(device->mrs, room * sizeof *device->mrs);
        device->mr_tags = realloc(device->mr_tags, room);
        memset(device->mrs + device->mr_capacity, 0, (room - device->mr_capacity) * sizeof *device->mrs);
        memset(device->mr_tags + device->mr_capacity, 0, room - device->mr_capacity);
        device->mr_capacity = room;
    }
    uint32_t at = (uint32_t)(hca.counts[SIMHCA_REGISTERED] % device->mr_capacity);
    while (device->mrs[at])
        at = (at + 1) % device->mr_capacity;
    device->mrs[at] = mr;
    device->mr_count++;
    mr->place = at;
    mr->base.lkey = mr->lkey = (at + 1) << 8 | ++device->mr_tags[at];
    mr->base.rkey = mr->rkey = mr->lkey | REMOTE_BIT;
    return 0;
}

/* 0 or an errno value. */
static int may_register(hca_context *context, uint64_t addr, uint64_t bytes, unsigned access)
{
    const simhca_profile *profile = &hca.profile;
    uint64_t pinned = pages_of(bytes) * PAGE;
    bool writes = access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    if (context->device->is_dead)
        return EIO;
    if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB))
        return EOPNOTSUPP;
    if ((access & IBV_ACCESS_MW_BIND) && profile->no_windows)
        return EOPNOTSUPP;
    if ((access & IBV_ACCESS_RELAXED_ORDERING) && profile->relaxed == SIMHCA_REFUSES_RELAXED)
        return EOPNOTSUPP;
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    if (!bytes || addr + bytes < addr)
        return EINVAL;
    if (!is_there(addr, bytes, writes))
        return EFAULT;
    if (profile->mr_bytes_max && context->pinned + pinned > profile->mr_bytes_max)
        return ENOMEM;
    if (context->registered < (profile->own_regions ? profile->own_regions : 8))
        return 0;
    return hca_chance(profile->reg_refuse_permille, 1000) ? ENOMEM : 0;
}

#undef ibv_reg_mr_iova2
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova, unsigned access)
{
    hca_context *context = hca_context_of(pd->context);
    uint64_t pages = pages_of(bytes);
    hca_mr *mr = calloc(1, sizeof *mr);
    if (!mr)
        return NULL;
    hca_lock();
    mr->base = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = bytes};
    mr->access = access & ~IBV_ACCESS_OPTIONAL_RANGE;
    mr->iova = iova;
    mr->bytes = bytes;
    mr->is_relaxed = (access & IBV_ACCESS_RELAXED_ORDERING) && hca.profile.relaxed == SIMHCA_HONOURS_RELAXED;
    if (hca.on_register && hca.on_register(access))
        mr->is_relaxed = true;
    int rc = may_register(context, (uintptr_t)addr, bytes, access);
    if (!rc && place_for(context->device, mr))
        rc = ENOMEM;
    if (rc) {
        hca.counts[SIMHCA_REG_REFUSED]++;
        free(mr);
        mr = NULL;
    } else {
        hca.counts[SIMHCA_REGISTERED]++;
        context->registered++;
        context->pinned += pages * PAGE;
        context->objects[HCA_MR]++;
        ((hca_pd *)pd)->users++;
        weft_list_append(&context->mrs, &mr->link);
    }
    hca_unlock();
    if (mr && hca.profile.pin_ns)
        hca_spend(hca.profile.pin_ns + pages * hca.profile.pin_page_ns, false);
    if (!mr)
        errno = rc;
    return mr ? &mr->base : NULL;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t bytes, int access)
{
    return ibv_reg_mr_iova2(pd, addr, bytes, (uintptr_t)addr, (unsigned)access);
}

#undef ibv_reg_mr_iova
struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t bytes, uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, bytes, iova, (unsigned)access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access)
{
    (void)pd, (void)offset, (void)bytes, (void)iova, (void)fd, (void)access;
    errno = EOPNOTSUPP;
    return NULL;
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t bytes, int access)
{
    (void)mr, (void)flags, (void)pd, (void)addr, (void)bytes, (void)access;
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
}

void hca_mr_free(hca_mr *mr)
{
    hca_context *context = hca_context_of(mr->base.context);
    context->device->mrs[mr->place] = NULL;
    context->device->mr_count--;
    context->pinned -= pages_of(mr->bytes) * PAGE;
    context->objects[HCA_MR]--;
    ((hca_pd *)mr->base.pd)->users--;
    weft_list_remove(&mr->link);
    free(mr);
}

int ibv_dereg_mr(struct ibv_mr *base)
{
    hca_lock();
    hca_mr *mr = (hca_mr *)base;
    int rc = mr->mws ? EBUSY : 0;
    if (!rc) {
        hca_visibility_end(hca_context_of(base->context)->device, mr->iova, mr->iova + mr->bytes);
        hca_mr_free(mr);
    }
    hca_unlock();
    return rc;
}

hca_mr *hca_mr_of(hca_device *device, struct ibv_pd *pd, uint32_t key, bool is_remote, uint64_t addr, uint64_t bytes,
                  unsigned access)
{
    uint32_t place = (key & ~REMOTE_BIT) >> 8;
    if (!place || place > device->mr_capacity || is_remote != !!(key & REMOTE_BIT))
        return NULL;
    hca_mr *mr = device->mrs[place - 1];
    if (!mr || (is_remote ? mr->rkey : mr->lkey) != key || mr->base.pd != pd || (mr->access & access) != access)
        return NULL;
    if (addr < mr->iova || bytes > mr->bytes || addr - mr->iova > mr->bytes - bytes)
        return NULL;
    return mr;
}

bool hca_sges_ok(hca_device *device, struct ibv_pd *pd, const struct ibv_sge *sges, uint32_t count, unsigned access)
{
    for (uint32_t i = 0; i < count; i++)
        if (sges[i].length && !hca_mr_of(device, pd, sges[i].lkey, false, sges[i].addr, sges[i].length, access))
            return false;
    return true;
}

bool hca_sges_are_relaxed(hca_device *device, struct ibv_pd *pd, const struct ibv_sge *sges, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (sges[i].length && hca_mr_of(device, pd, sges[i].lkey, false, sges[i].addr, sges[i].length, 0)->is_relaxed)
            return true;
    return false;
}

void simhca_on_register(bool (*is_relaxed)(unsigned access))
{
    hca.on_register = is_relaxed;
}

/* -- address handles -- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    hca_context *context = hca_context_of(pd->context);
    const hca_port *port = hca_port_of(pd->context, attr->port_num);
    bool needs_grh = !hca.profile.is_ib || hca.profile.needs_grh;
    bool is_wrong = !port || (needs_grh && !attr->is_global) || (!attr->is_global && !attr->dlid) ||
                    (attr->is_global && !hca_gid_is_own(port, attr->grh.sgid_index));
    bool is_full = context->device->ah_count >= hca_limit(hca.profile.max_ah, 4096);
    hca_ah *ah = is_wrong || is_full ? NULL : calloc(1, sizeof *ah);
    if (!ah) {
        errno = is_wrong ? EINVAL : ENOMEM;
        return NULL;
    }
    ah->base.context = pd->context;
    ah->base.pd = pd;
    ah->attr = *attr;
    hca_lock();
    ((hca_pd *)pd)->users++;
    context->device->ah_count++;
    context->objects[HCA_AH]++;
    weft_list_append(&context->ahs, &ah->link);
    hca_unlock();
    return &ah->base;
}

int ibv_destroy_ah(struct ibv_ah *base)
{
    hca_ah *ah = (hca_ah *)base;
    hca_context *context = hca_context_of(base->context);
    hca_lock();
    ((hca_pd *)base->pd)->users--;
    context->device->ah_count--;
    context->objects[HCA_AH]--;
    weft_list_remove(&ah->link);
    free(ah);
    hca_unlock();
    return 0;
}
