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
     .flap_ns = 30000000, .relaxed = SIMHCA_HONOURS_RELAXED},
    {.name = "narrow", .delay_ns = 2000, .max_qp_wr = 16, .max_cqe = 1024, .max_srq_wr = 64, .max_sge = 2, .max_inline = 0,
     .max_rd_atomic = 1, .max_mr = 64, .max_mw = 8, .max_msg_bytes = 65536, .mr_bytes_max = 2u << 20, .reg_refuse_permille = 20,
     .refuse_per_100k = 100},
    {.name = "cramped", .delay_ns = 2000, .max_srq_wr = 6, .lose_permille = 20},
    {.name = "besieged", .delay_ns = 4000, .max_srq_wr = 8, .lose_permille = 200, .twice_permille = 100, .overtake_permille = 200,
     .break_per_100k = 300, .ack_loss_permille = 10},
    {.name = "few-qps", .delay_ns = 2000, .max_qp = 4},
    {.name = "few-qps-wild", .devices = 2, .delay_ns = 4000, .max_qp = 3, .lose_permille = 100, .twice_permille = 50,
     .overtake_permille = 100, .break_per_100k = 200, .ack_loss_permille = 10, .torn = true,
     .relaxed = SIMHCA_HONOURS_RELAXED},
    {.name = "one-qp", .delay_ns = 2000, .no_srq = true, .max_qp = 2},
    {.name = "torn", .delay_ns = 3000, .torn = true, .relaxed = SIMHCA_HONOURS_RELAXED},
    {.name = "ordered", .delay_ns = 3000, .torn = true, .in_order = true, .relaxed = SIMHCA_HONOURS_RELAXED},
    {.name = "pin", .delay_ns = 1000, .pin_ns = 30000, .pin_page_ns = 250, .mr_bytes_max = 8u << 20, .max_mr = 256,
     .reg_refuse_permille = 100},
    {.name = "wild", .devices = 2, .delay_ns = 8000, .lose_permille = 100, .twice_permille = 100, .overtake_permille = 200,
     .break_per_100k = 300, .ack_loss_permille = 20, .refuse_per_100k = 50, .torn = true, .flap_per_100k = 200,
     .flap_ns = 20000000, .max_qp_wr = 64, .max_srq_wr = 256, .max_rd_atomic = 2, .pin_ns = 20000, .pin_page_ns = 200,
     .mr_bytes_max = 16u << 20, .reg_refuse_permille = 50, .max_inline = 64, .relaxed = SIMHCA_HONOURS_RELAXED},
    {.name = "ib", .is_ib = true, .delay_ns = 1000, .in_order = true, .max_inline = 220},
    {.name = "plain", .delay_ns = 1000, .no_atomics = true, .no_windows = true, .max_inline = 64, .relaxed = SIMHCA_REFUSES_RELAXED},
    {.name = "early", .delay_ns = 20000, .no_atomics = true, .no_windows = true, .early = true},
    /* Adapter families: limits and refusals of their drivers, with the source of each fact (files without .c or .h; k: Linux,
     * drivers/infiniband; u: rdma-core, providers). Numbers without a source (queue depths, inline space, times) are typical values.
     * Of the providers only mlx5 is known to answer ibv_query_qp_data_in_order; elsewhere bytes become visible in any order.
     * Relaxed ordering is implemented by mlx5 since Linux 5.6 (k/hw/mlx5/mr: relaxed_ordering_write of the mkey) and by bnxt_re since 6.12
     * (bnxt_re_check_and_set_relaxed_ordering); the others ignore it (IB_ACCESS_OPTIONAL), but mana_ib, which refused it until June 2024.
     * mlx5, InfiniBand, ConnectX-6: limits as ibv_devinfo prints them; order in RTS only (u/mlx5/verbs). */
    {.name = "mlx5", .is_ib = true, .delay_ns = 1000, .torn = true, .in_order = true, .max_qp_wr = 32768, .max_srq_wr = 32767,
     .max_cqe = 4194303, .max_sge = 30, .max_inline = 828, .max_rd_atomic = 16, .pin_ns = 20000, .pin_page_ns = 100,
     .relaxed = SIMHCA_HONOURS_RELAXED},
    /* mlx5, a virtual function: IBV_QPF_GRH_REQUIRED by the port's attribute; its P_Key table begins with empty entries. */
    {.name = "mlx5-vf", .is_ib = true, .delay_ns = 1000, .torn = true, .in_order = true, .needs_grh = true, .pkey_index = 2,
     .max_qp_wr = 32768, .max_srq_wr = 32767, .max_sge = 30, .max_inline = 828, .max_rd_atomic = 16, .pin_ns = 20000,
     .pin_page_ns = 100, .relaxed = SIMHCA_HONOURS_RELAXED},
    /* mlx5, RoCE, on a host with containers: their GIDs are in the table; MLNX_OFED 23.10 refuses them elsewhere with ENODEV
     * (rdma_check_gid_user_access in ib_resolve_eth_dmac). */
    {.name = "mlx5-roce", .delay_ns = 1000, .torn = true, .in_order = true, .foreign_gid = true, .max_qp_wr = 32768,
     .max_srq_wr = 32767, .max_sge = 30, .max_inline = 828, .max_rd_atomic = 16, .pin_ns = 20000, .pin_page_ns = 100,
     .relaxed = SIMHCA_HONOURS_RELAXED},
    /* mlx4, ConnectX-3, InfiniBand: k/hw/mlx4/main: outstanding reads of requester (max_qp_init_rdma) and responder (max_qp_dest_rdma)
     * differ; k/hw/mlx4/mlx4_ib, MLX4_IB_SQ_MAX_SPARE: spare entries of send queues. */
    {.name = "mlx4", .is_ib = true, .delay_ns = 1500, .torn = true, .max_qp_wr = 16351, .max_srq_wr = 16383, .max_cqe = 4194303,
     .max_sge = 32, .max_inline = 928, .max_rd_atomic = 16, .max_init_rd_atomic = 128, .pin_ns = 30000, .pin_page_ns = 200},
    /* irdma, E810, RoCE v2: k/hw/irdma/verbs, irdma_query_device: no SRQ, no atomics, no windows of type 2B, more reads as a requester
     * (max_hw_ord) than as a responder (max_hw_ird); k/hw/irdma/defs: 101 bytes inline. */
    {.name = "irdma", .delay_ns = 2000, .torn = true, .no_srq = true, .no_atomics = true, .no_windows = true, .max_qp_wr = 4063,
     .max_cqe = 1048574, .max_sge = 13, .max_inline = 101, .max_rd_atomic = 127, .max_init_rd_atomic = 255, .pin_ns = 40000,
     .pin_page_ns = 250},
    /* The same, with everything that goes wrong. */
    {.name = "irdma-wild", .devices = 2, .delay_ns = 8000, .torn = true, .no_srq = true, .no_atomics = true, .no_windows = true,
     .lose_permille = 100, .twice_permille = 100, .overtake_permille = 200, .break_per_100k = 300, .ack_loss_permille = 20,
     .refuse_per_100k = 50, .flap_per_100k = 200, .flap_ns = 20000000, .max_inline = 101, .max_rd_atomic = 127,
     .max_init_rd_atomic = 255, .mr_bytes_max = 16u << 20, .reg_refuse_permille = 50},
    /* bnxt_re, RoCE v2: k/hw/bnxt_re/ib_verbs: windows of type 2B, one P_Key, atomics only where PCIe routes them; qplib_sp: at most
     * 126 reads (BNXT_QPLIB_MAX_OUT_RD_ATOM). */
    {.name = "bnxt_re", .delay_ns = 2000, .torn = true, .no_atomics = true, .max_qp_wr = 4351, .max_srq_wr = 4096, .max_sge = 13,
     .max_inline = 96, .max_rd_atomic = 126, .pin_ns = 40000, .pin_page_ns = 250, .relaxed = SIMHCA_HONOURS_RELAXED},
    /* hfi1, Omni-Path: k/hw/hfi1/verbs, hfi1_fill_device_attr: fewer reads as a responder than as a requester (255), no windows; a GRH is
     * required while the SM's LID is permissive. No inline space, whatever is asked. */
    {.name = "hfi1", .is_ib = true, .delay_ns = 3000, .torn = true, .drops_inline = true, .no_windows = true, .max_qp_wr = 16383,
     .max_srq_wr = 131071, .max_sge = 96, .max_rd_atomic = 16, .max_init_rd_atomic = 255},
    /* efa: u/efa/verbs: queue pairs are datagrams' or the driver's own (SRD), no SRQ, no atomics, no windows. */
    {.name = "efa", .delay_ns = 10000, .no_rc = true, .no_srq = true, .no_atomics = true, .no_windows = true, .max_qp_wr = 1024,
     .max_sge = 2, .max_inline = 32},
    /* atomics that agree with the CPU's, on two ports, few at one time */
    {.name = "glob", .devices = 2, .delay_ns = 3000, .torn = true, .max_rd_atomic = 4, .glob_atomics = true},
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
