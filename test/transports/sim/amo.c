/* SPDX-License-Identifier: BSD-3-Clause
 *
 * amo: atomics at the target: instructions of a CPU (domain CPU), or of devices that are atomic with themselves only (domain NIC): these
 * read the word in their first step and store the new value in their last one, or when the next one on the word begins. What a CPU stores
 * meanwhile is lost.
 */
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "test/transports/sim/fabric.h"

static uint64_t by_cpu(const weft_atomic *atomic)
{
    uint64_t *word = (uint64_t *)(uintptr_t)atomic->remote, before = atomic->compare;
    switch (atomic->op) {
    case WEFT_AMO_ADD: return __atomic_fetch_add(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_SWAP: return __atomic_exchange_n(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_AND: return __atomic_fetch_and(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_OR: return __atomic_fetch_or(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_XOR: return __atomic_fetch_xor(word, atomic->operand, __ATOMIC_SEQ_CST);
    case WEFT_AMO_CAS:
        __atomic_compare_exchange_n(word, &before, atomic->operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        break;
    }
    return before;
}

static uint64_t after(const weft_atomic *atomic, uint64_t before)
{
    switch (atomic->op) {
    case WEFT_AMO_ADD: return before + atomic->operand;
    case WEFT_AMO_SWAP: return atomic->operand;
    case WEFT_AMO_AND: return before & atomic->operand;
    case WEFT_AMO_OR: return before | atomic->operand;
    case WEFT_AMO_XOR: return before ^ atomic->operand;
    case WEFT_AMO_CAS: return before == atomic->compare ? atomic->operand : before;
    }
    return before;
}

static void store(sim_event *event)
{
    if (weft_list_is_empty(&event->changing))
        return;
    __atomic_store_n((uint64_t *)(uintptr_t)event->atomic.remote, event->after, __ATOMIC_SEQ_CST);
    weft_list_remove(&event->changing);
}

/* The word that the nic's device finds: no atomic of this device on it is under way. */
static uint64_t settled(weft_sim *sim, const sim_nic *nic, uint64_t remote)
{
    for (weft_list_link *link = sim->changing.next, *next; link != &sim->changing; link = next) {
        sim_event *event = weft_container(link, sim_event, changing);
        next = link->next;
        if (event->atomic.remote == remote && event->flow->to == nic)
            store(event);
    }
    return __atomic_load_n((uint64_t *)(uintptr_t)remote, __ATOMIC_SEQ_CST);
}

void sim_amo_step(weft_sim *sim, sim_event *event, bool is_last)
{
    if (event->step == SIM_WHOLE) {
        event->atomic.operand = by_cpu(&event->atomic);
        return;
    }
    if (event->step == 0) {
        uint64_t before = settled(sim, event->flow->to, event->atomic.remote);
        event->after = after(&event->atomic, before);
        event->atomic.operand = before;
        weft_list_append(&sim->changing, &event->changing);
    }
    if (is_last)
        store(event);
}

int sim_amo_self(weft_iface *iface, const weft_atomic *atomics, uint32_t count)
{
    sim_nic *nic = sim_nic_at(iface);
    weft_sim *sim = sim_enter(nic);
    if (sim->profile.amo == WEFT_AMO_NONE)
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated port has no atomics");
    if (!count && sim_chance(sim, sim->profile.reg_refuse_permille))
        return weft_fail(WEFT_E_NOSPACE, "the simulated device is out of queue pairs for now");
    for (uint32_t i = 0; i < count; i++) {
        uint64_t before;
        int rc = weft_rkey_table_check(&nic->keys, atomics[i].rkey, atomics[i].remote, sizeof before, WEFT_ACCESS_ATOMIC);
        if (rc || atomics[i].remote % sizeof before)
            return rc ? rc : weft_fail(WEFT_E_KEY, "an atomic on 0x%" PRIx64 ": the address must be a multiple of 8", atomics[i].remote);
        if (sim->profile.amo == WEFT_AMO_CPU) {
            before = by_cpu(&atomics[i]);
        } else {
            before = settled(sim, nic, atomics[i].remote);
            __atomic_store_n((uint64_t *)(uintptr_t)atomics[i].remote, after(&atomics[i], before), __ATOMIC_SEQ_CST);
        }
        if (atomics[i].before)
            *atomics[i].before = before;
    }
    return 0;
}
