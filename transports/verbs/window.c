/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window: lends a part of a registration to one peer: a memory window of type 2B, bound by a request on the path's home link, so
 * that the key opens these bytes with these rights to whoever comes by that queue pair, and nothing to anybody else. A bind needs no
 * waiting: the frame that tells the key stands behind it in the same queue. Taken back by a request, too; the registration stays until
 * that is over (verbs_memory_hold). A lent key is the rails' rkeys, of which only the home link's is not 0, and the epoch: the
 * window dies with its queue pair, and the other side sees by the epoch that it has, without asking.
 *
 * A window is on one list: free (rail), bound (link), dead (its loan is still held). Books are kept until the port closes, never
 * freed before: a completion names them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/verbs/flow.h"

struct weft_loan {
    verbs_work work; /* of its bind, then of what takes it back */
    weft_list_link link;
    weft_list_link by_owed;
    struct ibv_mw *mw;
    uint32_t rkey;   /* as bound; mw->rkey follows when it is free: a provider may read that when the bind is posted late */
    verbs_memory *memory;
    bool is_taken_back;
};

#define LIVE_KEY(rails) (sizeof(uint32_t) * (rails))

static bool has_windows(const verbs_rail *rail)
{
    return (rail->attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) && rail->attr.max_mw > 0 && !rail->is_iwarp;
}

int verbs_windows_open(verbs_iface *iface)
{
    bool all = iface->iface.caps.put && weft_knob.verbs_mw != WEFT_VERBS_MW_NEVER;
    for (uint8_t i = 0; i < iface->rail_count; i++) {
        all = all && has_windows(&iface->rails[i]);
        if (weft_knob.verbs_mw == WEFT_VERBS_MW_ALWAYS && !has_windows(&iface->rails[i]))
            return weft_fail(WEFT_E_UNSUPPORTED, "RDMA device %s has no memory windows of type 2B, and WEFT_VERBS_MW=always asks for them",
                             iface->rails[i].name);
    }
    iface->iface.caps.lends = all;
    if (all)
        iface->iface.caps.key_bytes = (uint8_t)(LIVE_KEY(iface->rail_count) + sizeof(uint32_t));
    return 0;
}

static void free_all(weft_list_link *list)
{
    for (weft_list_link *link; (link = weft_list_take(list)) != NULL;) {
        weft_loan *loan = weft_container(link, weft_loan, link);
        if (loan->mw)
            ibv_dealloc_mw(loan->mw);
        free(loan);
    }
}

void verbs_windows_close(verbs_iface *iface)
{
    for (uint8_t i = 0; i < iface->rail_count; i++)
        free_all(&iface->rails[i].windows);
    free_all(&iface->loans_dead);
    free_all(&iface->loans_spare);
}

/* -- lending -- */

static weft_loan *take(verbs_rail *rail)
{
    weft_list_link *link = weft_list_take(&rail->windows);
    weft_loan *loan;
    struct ibv_mw *mw;
    if (link)
        return weft_container(link, weft_loan, link);
    mw = ibv_alloc_mw(rail->pd, IBV_MW_TYPE_2);
    if (!mw)
        return NULL;
    link = weft_list_take(&rail->iface->loans_spare);
    loan = link ? weft_container(link, weft_loan, link) : calloc(1, sizeof *loan);
    if (!loan) {
        ibv_dealloc_mw(mw);
        return NULL;
    }
    loan->mw = mw;
    loan->rkey = mw->rkey;
    return loan;
}

static int access_of(uint32_t rights)
{
    return (rights & WEFT_RIGHT_READ ? IBV_ACCESS_REMOTE_READ : 0) | (rights & WEFT_RIGHT_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0) |
           (rights & WEFT_RIGHT_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static int bind(verbs_link *link, weft_loan *loan, void *addr, uint64_t bytes, uint32_t rights)
{
    uint8_t rail = link->rail->index;
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&loan->work, .opcode = IBV_WR_BIND_MW};
    loan->mw->rkey = loan->rkey;
    loan->rkey = ibv_inc_rkey(loan->rkey);
    request.bind_mw.mw = loan->mw;
    request.bind_mw.rkey = loan->rkey;
    request.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = loan->memory->mr[rail], .addr = (uintptr_t)addr, .length = bytes,
                                                          .mw_access_flags = (unsigned)access_of(rights)};
    loan->work = (verbs_work){.kind = VERBS_WORK_WINDOW, .rail = rail, .link = link};
    loan->is_taken_back = false;
    weft_list_init(&loan->by_owed);
    weft_list_append(&link->windows, &loan->link);
    return verbs_post(link, &request, 1);
}

static int check(const verbs_ep *ep, const weft_region *region, const void *addr, uint64_t bytes)
{
    const verbs_memory *memory = region->device;
    uint64_t at = (uintptr_t)addr - (uintptr_t)region->addr;
    if (!ep->iface->iface.caps.lends || !memory || !memory->may_lend)
        return weft_fail(WEFT_E_UNSUPPORTED, "this memory was not mapped to be lent");
    if (!bytes || (uintptr_t)addr < (uintptr_t)region->addr || at > region->bytes || bytes > region->bytes - at)
        return weft_fail(WEFT_E_KEY, "%llu bytes that are to be lent leave their region", (unsigned long long)bytes);
    return 0;
}

int verbs_lend_part(weft_iface *base, weft_ep *to, const weft_region *region, void *addr, uint64_t bytes, uint32_t rights,
                    weft_key *key, weft_loan **out)
{
    verbs_iface *iface = (verbs_iface *)base;
    verbs_ep *ep = (verbs_ep *)to;
    verbs_link *link = ep->home;
    uint32_t keys[VERBS_RAILS + 1] = {0};
    weft_loan *loan;
    int rc = check(ep, region, addr, bytes);
    if (rc)
        return rc;
    if (ep->state != VERBS_UP || !ep->is_confirmed || !link || !link->qp || link->is_broken)
        return WEFT_AGAIN;
    if (!verbs_link_has_room(link, 1)) {
        verbs_link_sync(link);
        return WEFT_AGAIN;
    }
    if (!((verbs_memory *)region->device)->mr[link->rail->index] || !(loan = take(link->rail)))
        return WEFT_AGAIN;
    loan->memory = region->device;
    verbs_memory_hold(loan->memory);
    if (bind(link, loan, addr, bytes, rights)) { /* the link is broken, and takes the window with it */
        loan->is_taken_back = true;
        return WEFT_AGAIN;
    }
    iface->counts[VERBS_COUNT_LENT]++;
    keys[link->rail->index] = loan->rkey;
    keys[iface->rail_count] = ep->epoch;
    key->length = (uint8_t)(LIVE_KEY(iface->rail_count) + sizeof ep->epoch);
    memcpy(key->bytes, keys, key->length);
    *out = loan;
    return 0;
}

uint32_t verbs_key_epoch(const verbs_ep *ep, const weft_key *key)
{
    uint32_t epoch = 0;
    if (key->length == LIVE_KEY(ep->far.rails) + sizeof epoch)
        memcpy(&epoch, key->bytes + LIVE_KEY(ep->far.rails), sizeof epoch);
    return epoch;
}

/* -- taking back -- */

/* False: no room now. A link that is broken needs nothing: the window goes with it. */
static bool invalidate(weft_loan *loan)
{
    verbs_link *link = loan->work.link;
    struct ibv_send_wr request = {.wr_id = (uintptr_t)&loan->work, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
                                  .invalidate_rkey = loan->rkey};
    if (link->is_broken || link->ep->state != VERBS_UP)
        return true;
    if (link->sq_used >= link->sq_room || link->rail->cq_used >= link->rail->cq_room) {
        verbs_link_sync(link);
        return false;
    }
    verbs_post(link, &request, 1);
    return true;
}

void verbs_unlend(weft_iface *base, weft_loan *loan)
{
    verbs_iface *iface = (verbs_iface *)base;
    if (!loan->mw) {
        weft_list_remove(&loan->link);
        weft_list_append(&iface->loans_spare, &loan->link);
        return;
    }
    loan->is_taken_back = true;
    if (!invalidate(loan))
        weft_list_append(&iface->loans_owed, &loan->by_owed);
}

void verbs_windows_turn(verbs_iface *iface)
{
    for (weft_list_link *link; (link = weft_list_first(&iface->loans_owed)) != NULL;) {
        if (!invalidate(weft_container(link, weft_loan, by_owed)))
            return;
        weft_list_remove(link);
    }
}

void verbs_window_completion(const struct ibv_wc *wc)
{
    weft_loan *loan = (weft_loan *)(uintptr_t)wc->wr_id;
    verbs_rail *rail = loan->work.link->rail;
    weft_list_remove(&loan->link);
    verbs_memory_drop(loan->memory);
    loan->memory = NULL;
    weft_list_append(&rail->windows, &loan->link);
}

void verbs_windows_die(verbs_link *link)
{
    verbs_iface *iface = link->rail->iface;
    for (weft_list_link *at; (at = weft_list_take(&link->windows)) != NULL;) {
        weft_loan *loan = weft_container(at, weft_loan, link);
        iface->counts[VERBS_COUNT_STALE] += !loan->is_taken_back;
        ibv_dealloc_mw(loan->mw); /* of a device that died: it fails, and the kernel frees it with the rest */
        loan->mw = NULL;
        verbs_memory_drop(loan->memory);
        loan->memory = NULL;
        weft_list_remove(&loan->by_owed);
        weft_list_append(loan->is_taken_back ? &iface->loans_spare : &iface->loans_dead, &loan->link);
    }
}
