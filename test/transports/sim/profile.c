/* SPDX-License-Identifier: BSD-3-Clause
 *
 * profile: the table of network profiles, and the names of counts. Fields: sim.h.
 */
#include <string.h>

#include "test/transports/sim/sim.h"

const char *const weft_sim_count_names[WEFT_SIM_COUNT_LAST] = {
    "frames", "moves", "refused", "delayed", "reordered", "blind", "torn", "flipped", "keys-refused", "maps-refused", "killed",
    "dropped", "switches", "late-wakes", "maps", "pin-ns", "flapped", "moves-flipped", "queue-full", "arms-refused", "unrung",
    "cut", "overtaken", "heads-flipped", "held",
};

const weft_sim_profile weft_sim_profiles[] = {
    {.name = "calm", .delay_ns = 50, .frag = 500, .amo = WEFT_AMO_CPU},
    {.name = "slow", .delay_ns = 20000, .blind_permille = 200, .amo = WEFT_AMO_CPU},
    {.name = "storm", .delay_ns = 500, .again_permille = 300, .storm_max = 40, .frag = 64, .blind_permille = 100, .amo = WEFT_AMO_CPU},
    {.name = "narrow", .delay_ns = 2000, .flow_frames = 2, .flow_rma = 1, .frame_max = 512, .mr_local = true,
     .amo = WEFT_AMO_NIC},
    {.name = "shuffled", .delay_ns = 5000, .unordered = true, .blind_permille = 50, .amo = WEFT_AMO_NIC},
    {.name = "torn", .delay_ns = 3000, .torn = true, .prompt_permille = 300, .rma_max = 1000, .rma_frag = 300, .amo = WEFT_AMO_CPU},
    {.name = "copyonly", .delay_ns = 1000, .frame_max = 1024, .no_get = true, .no_put = true, .no_notify = true,
     .no_share = true},
    {.name = "pinched", .delay_ns = 1000, .mr_bytes_max = 32768, .reg_refuse_permille = 300, .mr_local = true, .no_get = true,
     .amo = WEFT_AMO_CPU},
    {.name = "tiny", .delay_ns = 300, .frame_max = 192, .inline_max = 32, .flow_frames = 4, .again_permille = 100, .storm_max = 5,
     .no_put = true},
    {.name = "wild", .delay_ns = 8000, .again_permille = 150, .storm_max = 20, .flow_frames = 6, .flow_rma = 3,
     .blind_permille = 250, .prompt_permille = 250, .reg_refuse_permille = 100, .torn = true, .mr_local = true,
     .frame_max = 2048, .frag = 200, .rma_max = 5000, .amo = WEFT_AMO_CPU},
    {.name = "kernel", .delay_ns = 1500, .blind_permille = 100, .prompt_permille = 1000, .keyless = true, .no_notify = true,
     .rma_frag = 4096},
    {.name = "grudging", .delay_ns = 1500, .frag = 1000, .again_permille = 250, .storm_max = 10, .flow_rma = 1, .prompt_permille = 200,
     .keyless = true, .no_notify = true},
    {.name = "lopsided", .delay_ns = 1500, .prompt_permille = 400, .keyless = true, .no_notify = true, .one_way = true},
    /* zcopy bodies are read long after send has returned */
    {.name = "holding", .delay_ns = 6000, .again_permille = 150, .storm_max = 10, .flow_frames = 12, .blind_permille = 150,
     .frame_max = 2048, .zcopy_min = 64, .zcopy_permille = 800, .mr_local = true, .amo = WEFT_AMO_NIC},
    /* properties of HCAs, one by one, and all of them */
    {.name = "pinning", .delay_ns = 2000, .wants_regcache = true, .mr_local = true, .pin_ns = 2000, .pin_page_ns = 250,
     .amo = WEFT_AMO_NIC},
    {.name = "scarce", .delay_ns = 2000, .wants_regcache = true, .mr_local = true, .pin_ns = 500, .pin_page_ns = 50, .mr_bytes_max = 98304,
     .mr_count_max = 6, .limits_in_caps = true, .amo = WEFT_AMO_NIC},
    {.name = "starved", .delay_ns = 2000, .wants_regcache = true, .mr_local = true, .pin_ns = 500, .pin_page_ns = 50, .mr_bytes_max = 40960,
     .mr_count_max = 3, .reg_refuse_permille = 200, .amo = WEFT_AMO_NIC},
    {.name = "rails", .delay_ns = 6000, .rails = 3, .wants_regcache = true, .mr_local = true, .torn = true, .rma_max = 3000,
     .amo = WEFT_AMO_NIC},
    {.name = "flapping", .delay_ns = 1000, .rails = 2, .flap_every_ns = 60000, .flap_ns = 25000, .mr_local = true,
     .amo = WEFT_AMO_NIC},
    {.name = "pressed", .delay_ns = 3000, .queue = 3, .again_permille = 50, .storm_max = 10, .rma_max = 2000,
     .amo = WEFT_AMO_NIC},
    {.name = "ticking", .delay_ns = 2000, .timer_ns = 40000, .unrung_permille = 300, .arm_again_permille = 400,
     .amo = WEFT_AMO_NIC},
    {.name = "hca", .delay_ns = 4000, .wants_regcache = true, .mr_local = true, .pin_ns = 1000, .pin_page_ns = 100,
     .mr_bytes_max = 1u << 20,
     .mr_count_max = 64, .limits_in_caps = true, .rails = 2, .queue = 16, .torn = true, .again_permille = 50, .storm_max = 8,
     .blind_permille = 100, .reg_refuse_permille = 20, .flap_every_ns = 500000, .flap_ns = 60000, .timer_ns = 60000,
     .unrung_permille = 50, .arm_again_permille = 200, .rma_max = 65536, .amo = WEFT_AMO_NIC},
    /* costs of a fast device, no faults: 100 Gb/s, one microsecond, 8 GB/s of copying (test/sim/regcost) */
    {.name = "priced", .delay_ns = 2000, .wants_regcache = true, .mr_local = true, .pin_ns = 2000, .pin_page_ns = 200, .frame_max = 32768,
     .link_mbyte_per_s = 12500, .copy_mbyte_per_s = 8000, .rails = 1, .amo = WEFT_AMO_NIC},
    /* within the contract: connections break for good */
    {.name = "breaking", .delay_ns = 2000, .mr_local = true, .cut_permille = 4, .amo = WEFT_AMO_NIC},
    /* violations of the contract */
    {.name = "flipped", .delay_ns = 500, .flip_permille = 20, .amo = WEFT_AMO_CPU},
    {.name = "spoiled", .delay_ns = 500, .flip_rma_permille = 100, .keyless = true, .no_notify = true},
    {.name = "tainted", .delay_ns = 2000, .flip_rma_permille = 100, .flip_permille = 10, .wants_regcache = true, .mr_local = true,
     .torn = true, .rails = 2, .rma_max = 100000, .amo = WEFT_AMO_NIC},
    {.name = "scrawled", .delay_ns = 500, .flip_hdr_permille = 4, .amo = WEFT_AMO_CPU},
    {.name = "lossy", .delay_ns = 500, .lose_permille = 10, .amo = WEFT_AMO_CPU},
    {.name = "doubled", .delay_ns = 500, .twice_permille = 30, .amo = WEFT_AMO_CPU},
    {.name = "deaf", .delay_ns = 5000, .deaf_permille = 300, .amo = WEFT_AMO_CPU},
    {.name = NULL},
};

const weft_sim_profile *weft_sim_profile_find(const char *name)
{
    for (const weft_sim_profile *profile = weft_sim_profiles; profile->name; profile++)
        if (strcmp(profile->name, name) == 0)
            return profile;
    return NULL;
}
