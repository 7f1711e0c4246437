/* SPDX-License-Identifier: BSD-3-Clause
 *
 * slots: see slots.h. Slabs are freed at close only: the next burst needs them again.
 * Invariant: a slot that a work request names is on no free list until that request has completed or was flushed.
 */
#include "transports/verbs/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/macros.h"
#include "base/memory_size.h"
#include "base/status.h"

#define SHORT_BYTES 512u
#define LONG_BODY (16u << 10)
#define LONG_SLOTS 4096u     /* limit with few peers: 64 MiB */
#define PEERS_MAX 100000u    /* more peers do not add slots */
#define RECEIVES_BUSY 512u   /* of one rail, for peers that send much */
#define OF_MEMORY 32         /* long slots of all ranks of a node take at most 1/32 of its memory */
#define OF_MEMLOCK 4         /* and those of a rank a quarter of its limit on locked memory: user memory needs the rest */
#define SMALL_BODY (1u << 10) /* low locked-memory limit: all slots together must fit into some 40 KiB */

typedef struct verbs_class {
    weft_list_link free;
    uint32_t free_count, made, max, step, stride;
} verbs_class;

struct verbs_slots {
    verbs_slab *slabs;
    verbs_class brief, lengthy;
    uint32_t receives_max; /* of one rail, for credits beyond the first of each peer */
};

uint32_t verbs_frame_max(const verbs_iface *iface)
{
    return iface->is_small ? SMALL_BODY : LONG_BODY;
}

void verbs_slab_free(verbs_slab *slab)
{
    for (int i = 0; i < VERBS_RAILS; i++)
        if (slab->mr[i])
            ibv_dereg_mr(slab->mr[i]);
    munmap(slab->memory, slab->bytes);
    free(slab);
}

int verbs_slab_alloc(verbs_iface *iface, size_t bytes, uint32_t slots, int access, verbs_slab **out)
{
    verbs_slab *slab = calloc(1, sizeof *slab + slots * sizeof slab->slots[0]);
    if (!slab)
        return weft_fail(WEFT_E_NOMEM, "no memory for %zu bytes of frames", bytes);
    slab->bytes = weft_round_up(bytes, 4096);
    slab->memory = mmap(NULL, slab->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slab->memory == MAP_FAILED) {
        free(slab);
        return weft_fail(WEFT_E_NOMEM, "no memory for %zu bytes of frames: %s", bytes, strerror(errno));
    }
    madvise(slab->memory, slab->bytes, MADV_DONTFORK); /* a forked child must not share pages that the device writes */
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        verbs_rail *rail = &iface->rails[i];
        slab->mr[i] = rail->is_dead ? NULL : ibv_reg_mr(rail->pd, slab->memory, slab->bytes, access);
        if (!slab->mr[i] && !rail->is_dead && errno != EIO && errno != ENODEV) {
            int error = errno;
            verbs_slab_free(slab);
            return weft_fail(WEFT_E_NOSPACE, "%s cannot pin %zu bytes for frames: %s. Is the limit on locked memory low (ulimit -l)?",
                             rail->name, bytes, strerror(error));
        }
        slab->lkey[i] = slab->mr[i] ? slab->mr[i]->lkey : 0;
    }
    *out = slab;
    return 0;
}

/* Adds up to class->step slots: fewer if no more can be registered, since windows and cached registrations may leave little. */
static int grow(verbs_iface *iface, verbs_class *class)
{
    struct verbs_slots *slots = iface->slots;
    uint32_t count = class->step;
    verbs_slab *slab;
    int rc;
    if (class->made + count > class->max)
        count = class->max - class->made;
    if (!count)
        return WEFT_AGAIN;
    for (;; count /= 2) {
        rc = verbs_slab_alloc(iface, (size_t)count * class->stride, count, IBV_ACCESS_LOCAL_WRITE, &slab);
        if (rc != WEFT_E_NOSPACE || count == 1)
            break;
    }
    if (rc)
        return rc;
    slab->next = slots->slabs;
    slots->slabs = slab;
    for (uint32_t i = 0; i < count; i++) {
        verbs_slot *slot = &slab->slots[i];
        slot->slab = slab;
        slot->wire = (verbs_wire *)(slab->memory + (size_t)i * class->stride);
        slot->is_short = class == &slots->brief;
        weft_list_append(&class->free, &slot->link);
    }
    class->free_count += count;
    class->made += count;
    return 0;
}

static verbs_slot *alloc(verbs_iface *iface, verbs_class *class)
{
    weft_list_link *link = weft_list_take(&class->free);
    if (!link && class->made < class->max && !grow(iface, class))
        link = weft_list_take(&class->free);
    if (!link)
        return NULL;
    class->free_count--;
    return weft_container(link, verbs_slot, link);
}

verbs_slot *verbs_slot_alloc(verbs_iface *iface, uint32_t bytes)
{
    struct verbs_slots *slots = iface->slots;
    verbs_slot *slot = bytes <= slots->brief.stride ? alloc(iface, &slots->brief) : NULL;
    return slot ? slot : alloc(iface, &slots->lengthy);
}

void verbs_slot_free(verbs_iface *iface, verbs_slot *slot)
{
    verbs_class *class = slot->is_short ? &iface->slots->brief : &iface->slots->lengthy;
    /* LIFO: the last slot used is still in the cache. */
    slot->is_posted = false;
    slot->link.next = class->free.next;
    slot->link.prev = &class->free;
    class->free.next->prev = &slot->link;
    class->free.next = &slot->link;
    class->free_count++;
}

bool verbs_slots_are_scarce(const verbs_iface *iface)
{
    const struct verbs_slots *slots = iface->slots;
    return slots->brief.free_count + (slots->brief.max - slots->brief.made) < slots->brief.max / 4 ||
           slots->lengthy.free_count + (slots->lengthy.max - slots->lengthy.made) < slots->lengthy.max / 4;
}

uint32_t verbs_receives_bound(const verbs_iface *iface)
{
    return iface->slots->receives_max;
}

uint32_t verbs_receives_of_peers(const verbs_iface *iface)
{
    uint32_t peers = iface->peers < PEERS_MAX ? iface->peers : PEERS_MAX;
    return peers * VERBS_CREDITS_FIRST + RECEIVES_BUSY + 1;
}

/* Limit of long slots: receives for all peers are three quarters of them, within the shares of memory. */
static uint32_t long_slots(const verbs_iface *iface, uint32_t stride)
{
    uint64_t bytes = weft_memory_size(0) / OF_MEMORY / (iface->ranks ? iface->ranks : 1);
    uint64_t wanted = (uint64_t)verbs_receives_of_peers(iface) * iface->rail_count * 4 / 3 + 1;
    if (bytes > verbs_lockable_bytes() / OF_MEMLOCK)
        bytes = verbs_lockable_bytes() / OF_MEMLOCK;
    if (wanted > bytes / stride)
        wanted = bytes / stride;
    return wanted > LONG_SLOTS ? (uint32_t)wanted : LONG_SLOTS;
}

/* Long slots serve the receives of all rails and long frames to send. */
int verbs_slots_open(verbs_iface *iface)
{
    struct verbs_slots *slots = calloc(1, sizeof *slots);
    if (!slots)
        return weft_fail(WEFT_E_NOMEM, "no memory for frame slots");
    iface->slots = slots;
    slots->receives_max = iface->is_small ? 14 : RECEIVES_BUSY;
    slots->brief = (verbs_class){.max = iface->is_small ? 12 : 4096, .step = iface->is_small ? 12 : 128,
                                 .stride = iface->is_small ? 256 : SHORT_BYTES};
    slots->lengthy = (verbs_class){.step = iface->is_small ? 7 : 16,
                                   .stride = weft_round_up(verbs_frame_max(iface) + (uint32_t)sizeof(verbs_wire), 64)};
    slots->lengthy.max = iface->is_small ? 28 : long_slots(iface, slots->lengthy.stride);
    weft_list_init(&slots->brief.free);
    weft_list_init(&slots->lengthy.free);
    int rc = grow(iface, &slots->brief);
    return rc ? rc : grow(iface, &slots->lengthy);
}

void verbs_slots_close(verbs_iface *iface)
{
    verbs_slab *slab = iface->slots ? iface->slots->slabs : NULL;
    while (slab) {
        verbs_slab *next = slab->next;
        verbs_slab_free(slab);
        slab = next;
    }
    free(iface->slots);
    iface->slots = NULL;
}

void verbs_receive_recycle(verbs_rail *rail, verbs_slot *slot)
{
    if (rail->receives + rail->emptied_count >= rail->srq_capacity) { /* another receive was posted while this one was delivered */
        verbs_slot_free(rail->iface, slot);
        return;
    }
    weft_list_append(&rail->emptied, &slot->link);
    rail->emptied_count++;
}

#define BATCH 16

/* Receives that the SRQ did not take stay queued for the next progress. */
static void post_batch(verbs_rail *rail)
{
    struct ibv_recv_wr requests[BATCH], *bad = NULL;
    struct ibv_sge sges[BATCH];
    verbs_slot *slots[BATCH];
    uint32_t n = 0, done;
    for (; n < BATCH && rail->emptied_count; n++) {
        verbs_slot *slot = slots[n] = weft_container(weft_list_take(&rail->emptied), verbs_slot, link);
        rail->emptied_count--;
        slot->work = (verbs_work){.kind = VERBS_WORK_RECV, .rail = rail->index};
        sges[n] = (struct ibv_sge){(uintptr_t)slot->wire, (uint32_t)sizeof(verbs_wire) + verbs_frame_max(rail->iface),
                                   slot->slab->lkey[rail->index]};
        requests[n] = (struct ibv_recv_wr){.wr_id = (uintptr_t)&slot->work, .next = &requests[n + 1], .sg_list = &sges[n], .num_sge = 1};
    }
    requests[n - 1].next = NULL;
    int error = ibv_post_srq_recv(rail->srq, requests, &bad);
    for (done = 0; done < n && !(error && &requests[done] == bad); done++) {
        rail->receives++;
        rail->cq_used++;
    }
    if (error && !rail->is_dead)
        weft_log_debug("%s refused %u of %u receives: %s", rail->name, n - done, n, strerror(error));
    for (; done < n; done++)
        verbs_receive_recycle(rail, slots[done]);
}

void verbs_receives_post(verbs_iface *iface)
{
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        verbs_rail *rail = &iface->rails[i];
        for (uint32_t before = rail->emptied_count + 1; rail->emptied_count && rail->emptied_count < before && !rail->is_dead;) {
            before = rail->emptied_count;
            post_batch(rail);
        }
    }
}

/* True if only the last quarter of the long slots is left: reserved for sends. */
static bool is_for_sends(const verbs_iface *iface)
{
    const verbs_class *class = &iface->slots->lengthy;
    return class->free_count + (class->max - class->made) <= class->max / 4;
}

verbs_slot *verbs_receive_slot(verbs_iface *iface)
{
    return is_for_sends(iface) ? NULL : alloc(iface, &iface->slots->lengthy);
}

bool verbs_receives_reach(verbs_iface *iface, uint32_t count)
{
    bool ok = true;
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        verbs_rail *rail = &iface->rails[i];
        if (rail->is_dead || !rail->srq)
            continue;
        while (rail->receives + rail->emptied_count < count) {
            bool has_room = rail->receives + rail->emptied_count < rail->srq_capacity &&
                            rail->cq_used < rail->cq_capacity;
            verbs_slot *slot = has_room ? verbs_receive_slot(iface) : NULL;
            if (!slot)
                break;
            verbs_receive_recycle(rail, slot);
        }
        if (rail->emptied_count)
            verbs_receives_post(iface);
        ok = ok && rail->receives >= count;
    }
    return ok;
}
