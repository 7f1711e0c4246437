/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reg_persistent: see reg_persistent.h.
 */
#include "core/reg_persistent.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/wait.h"

struct weft_reg_persistent {
    uint64_t bytes;
    weft_reg *regs[WEFT_WORKER_IFACES];
};

/* A wait for one registration. */
typedef struct settling {
    weft_wait wait;
    const weft_reg *reg;
} settling;

static bool is_settled(weft_wait *wait) { return weft_reg_is_settled(weft_container(wait, settling, wait)->reg); }

/* Acquires a registration and waits until it is made. False: none. */
static bool acquire(weft_worker *worker, weft_iface *iface, const void *addr, uint64_t bytes, uint32_t rights, weft_reg **reg)
{
    settling settling;
    int rc = weft_reg_acquire(iface, addr, bytes, rights, reg);
    if (rc != WEFT_INPROGRESS)
        return rc == 0;
    settling.reg = *reg;
    weft_wait_begin(&settling.wait, worker, WEFT_WAIT_REASON_REGISTRATION, WEFT_ANY, WEFT_ANY_TAG, 0);
    settling.wait.is_over = is_settled;
    worker->awaited_regs++;
    while ((rc = weft_reg_settle(iface, *reg)) == WEFT_INPROGRESS)
        weft_wait_progress(&settling.wait);
    weft_wait_end(&settling.wait);
    worker->awaited_regs--;
    if (rc) {
        weft_reg_release(iface, *reg);
        *reg = NULL;
    }
    return rc == 0;
}

static bool is_wanted(weft_iface *iface) { return weft_reg_needed(iface) && !weft_reg_is_free(iface) && weft_reg_allowed(iface); }

weft_reg_persistent *weft_reg_persist(weft_worker *worker, const void *addr, uint64_t bytes, uint32_t rights)
{
    weft_reg_persistent *persistent = NULL;
    bool any = false;
    for (uint32_t i = 0; i < worker->iface_count; i++)
        any |= is_wanted(worker->ifaces[i]);
    if (!any || !bytes || worker->persistent_bytes + bytes > WEFT_REG_PERSIST_MAX || !(persistent = calloc(1, sizeof *persistent)))
        return NULL;
    persistent->bytes = bytes;
    worker->persistent_bytes += bytes;
    any = false;
    for (uint32_t i = 0; i < worker->iface_count; i++) {
        weft_iface *iface = worker->ifaces[i];
        /* half of the cache stays free for other registrations */
        if (is_wanted(iface) && worker->persistent_bytes <= weft_reg_max_bytes(iface) / 2)
            any |= acquire(worker, iface, addr, bytes, rights, &persistent->regs[i]);
    }
    if (any)
        return persistent;
    weft_reg_unpersist(worker, persistent);
    return NULL;
}

void weft_reg_unpersist(weft_worker *worker, weft_reg_persistent *persistent)
{
    if (!persistent)
        return;
    for (uint32_t i = 0; i < worker->iface_count; i++)
        weft_reg_release(worker->ifaces[i], persistent->regs[i]);
    worker->persistent_bytes -= persistent->bytes;
    free(persistent);
}
