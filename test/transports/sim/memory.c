/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory: registration and shared memory of the simulator's ifaces, with cost and limits.
 * Invariant: any thread may call mr_reg and mr_dereg. A thread other than the fabric's draws no random numbers and advances no time; its
 * cost is charged to the iface's next poll, so only that moment does not follow from the seed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/transports/sim/fabric.h"

#define PAGE 4096u

/* Registration costs this rank's time; the network and other ranks continue. */
static void spend(sim_nic *nic, bool is_fabric_thread, uint64_t ns)
{
    weft_sim *sim = nic->sim;
    __atomic_fetch_add(&sim->counts[WEFT_SIM_PIN_NS], ns, __ATOMIC_RELAXED);
    if (!is_fabric_thread)
        __atomic_fetch_add(&nic->debt_ns, ns, __ATOMIC_RELAXED);
    else if (ns)
        sim_spend(sim, ns);
}

static uint64_t cost_of(const weft_sim_profile *profile, const void *addr, uint64_t bytes)
{
    uint64_t first = (uintptr_t)addr / PAGE, last = ((uintptr_t)addr + bytes + PAGE - 1) / PAGE;
    return profile->pin_ns + (last - first) * profile->pin_page_ns;
}

/* Under the nic's lock, so that the limits hold between check and entry. */
static int enter_region(sim_nic *nic, void *addr, uint64_t bytes, uint32_t rights, weft_mr *mr)
{
    const weft_sim_profile *profile = &nic->sim->profile;
    if (profile->mr_bytes_max && nic->keys.live_bytes + bytes > profile->mr_bytes_max)
        return weft_fail(WEFT_E_NOMEM, "%" PRIu64 " bytes more than the %" PRIu64 " mapped pass the pin limit of %" PRIu64, bytes,
                         nic->keys.live_bytes, profile->mr_bytes_max);
    if (profile->mr_count_max && nic->keys.live >= profile->mr_count_max)
        return weft_fail(WEFT_E_NOSPACE, "the simulated device holds %u regions and no more", profile->mr_count_max);
    return weft_rkey_table_add(&nic->keys, addr, bytes, rights, mr);
}

int sim_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr)
{
    sim_nic *nic = sim_nic_at(iface);
    weft_sim *sim = nic->sim;
    bool is_own_thread = sim_is_own_thread(sim), is_unlucky = false;
    if (is_own_thread) {
        sim_enter(nic);
        is_unlucky = sim_chance(sim, sim->profile.reg_refuse_permille);
    }
    if (kind != WEFT_MEMORY_HOST)
        return weft_fail(WEFT_E_UNSUPPORTED, "the simulator maps the host's memory only");
    spend(nic, is_own_thread, cost_of(&sim->profile, addr, bytes));
    pthread_mutex_lock(&nic->pin_lock);
    int rc = is_unlucky ? weft_fail(WEFT_E_NOMEM, "the simulated device is out of regions for now")
                        : enter_region(nic, addr, bytes, rights, mr);
    pthread_mutex_unlock(&nic->pin_lock);
    __atomic_fetch_add(&sim->counts[rc ? WEFT_SIM_REGS_REFUSED : WEFT_SIM_REGS], 1, __ATOMIC_RELAXED);
    if (!rc && sim->profile.keyless)
        mr->rkey.length = 0;
    return rc;
}

int sim_mr_dereg(weft_iface *iface, weft_mr *mr)
{
    sim_nic *nic = sim_nic_at(iface);
    weft_sim *sim = nic->sim;
    if (sim_is_own_thread(sim))
        sim_enter(nic);
    if (sim->profile.keyless)
        mr->rkey.length = WEFT_KEYRING_KEY_BYTES; /* it was only inaccessible */
    pthread_mutex_lock(&nic->pin_lock);
    int rc = weft_rkey_table_remove(&nic->keys, mr);
    pthread_mutex_unlock(&nic->pin_lock);
    return rc;
}

int sim_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    weft_sim *sim = sim_enter(sim_nic_at(iface));
    if (sim->profile.no_share)
        return weft_fail(WEFT_E_UNSUPPORTED, "this simulated port shares no memory");
    return weft_inproc_shmem_share(&sim->blocks, bytes, shared);
}

int sim_unshare(weft_iface *iface, weft_shared *shared)
{
    return weft_inproc_shmem_unshare(&sim_enter(sim_nic_at(iface))->blocks, shared);
}
