/* SPDX-License-Identifier: BSD-3-Clause
 *
 * profile: the table of fabric profiles.
 */
#include <string.h>

#include "test/transports/simhca/hca.h"

const simhca_profile simhca_profiles[] = {
    {.name = "calm", .delay_ns = 500, .ns_per_kib = 20, .in_order = true},
    {.name = "datagrams", .delay_ns = 3000, .lose_permille = 300, .twice_permille = 200, .overtake_permille = 300},
    {.name = "breaks", .delay_ns = 2000, .break_per_100k = 600, .ack_loss_permille = 5},
    {.name = "flap", .delay_ns = 2000, .flap_per_100k = 500, .flap_ns = 20000000},
    {.name = "rails", .devices = 2, .separate = true, .delay_ns = 4000, .break_per_100k = 300, .flap_per_100k = 300,
     .flap_ns = 30000000},
    {.name = "narrow", .delay_ns = 2000, .max_qp_wr = 16, .max_cqe = 1024, .max_srq_wr = 64, .max_sge = 2, .max_inline = 0,
     .max_rd_atomic = 1, .max_mr = 64, .max_mw = 8, .max_msg_bytes = 65536, .mr_bytes_max = 2u << 20, .reg_refuse_permille = 20,
     .refuse_per_100k = 100},
    {.name = "cramped", .delay_ns = 2000, .max_srq_wr = 6, .lose_permille = 20},
    {.name = "besieged", .delay_ns = 4000, .max_srq_wr = 8, .lose_permille = 200, .twice_permille = 100, .overtake_permille = 200,
     .break_per_100k = 300, .ack_loss_permille = 10},
    {.name = "torn", .delay_ns = 3000, .torn = true},
    {.name = "ordered", .delay_ns = 3000, .torn = true, .in_order = true},
    {.name = "pin", .delay_ns = 1000, .pin_ns = 30000, .pin_page_ns = 250, .mr_bytes_max = 8u << 20, .max_mr = 256,
     .reg_refuse_permille = 100},
    {.name = "wild", .devices = 2, .delay_ns = 8000, .lose_permille = 100, .twice_permille = 100, .overtake_permille = 200,
     .break_per_100k = 300, .ack_loss_permille = 20, .refuse_per_100k = 50, .torn = true, .flap_per_100k = 200,
     .flap_ns = 20000000,     .max_qp_wr = 64, .max_srq_wr = 256, .max_rd_atomic = 2, .pin_ns = 20000, .pin_page_ns = 200,
     .mr_bytes_max = 16u << 20, .reg_refuse_permille = 50, .max_inline = 64},
    {.name = "ib", .is_ib = true, .delay_ns = 1000, .in_order = true, .max_inline = 220},
    {.name = "plain", .delay_ns = 1000, .no_atomics = true, .no_windows = true, .max_inline = 64},
    {.name = "early", .delay_ns = 20000, .no_atomics = true, .no_windows = true, .early = true},
    {.name = "flipped", .delay_ns = 1000, .flip_permille = 30},
    {.name = NULL},
};

const simhca_profile *simhca_profile_find(const char *name)
{
    for (const simhca_profile *profile = simhca_profiles; profile->name; profile++)
        if (strcmp(profile->name, name) == 0)
            return profile;
    return NULL;
}
