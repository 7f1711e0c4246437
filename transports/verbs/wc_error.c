/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wc_error: one sentence for a completion in error: what failed, with which peer, the status text, the vendor's code, the likely cause
 * and a remedy. Called by epoch.c when an epoch ends.
 */
#include <stdio.h>

#include "transports/verbs/gid.h"
#include "transports/verbs/verbs.h"

static const char *const causes[] = {
    [IBV_WC_LOC_LEN_ERR] = "a message was longer than its receive buffer: the peer may run another version",
    [IBV_WC_LOC_QP_OP_ERR] = "this device could not perform it: its port went down, or its driver, firmware or Weft has a defect",
    [IBV_WC_LOC_EEC_OP_ERR] = "this device refused the request: a defect of its driver or firmware",
    [IBV_WC_LOC_PROT_ERR] =
        "local memory was not registered, or was unmapped or freed during the transfer: is a buffer reused too early?",
    [IBV_WC_WR_FLUSH_ERR] = "the queue pair was in error already: by the peer, a device event or an earlier error",
    [IBV_WC_MW_BIND_ERR] = "a memory window could not be bound",
    [IBV_WC_BAD_RESP_ERR] = "the peer's device sent an unexpected response: damaged packets, or a firmware defect",
    [IBV_WC_LOC_ACCESS_ERR] = "local memory may not be written: was it registered for reading only?",
    [IBV_WC_REM_INV_REQ_ERR] = "the peer's device refused the request: too long, or of an unsupported kind",
    [IBV_WC_REM_ACCESS_ERR] = "the peer's memory may not be accessed: wrong key, out of bounds, or unmapped meanwhile",
    [IBV_WC_REM_OP_ERR] = "the peer's device could not perform it: its queue pair or memory failed",
    [IBV_WC_RETRY_EXC_ERR] =
        "no answer: the peer is dead, a cable or link is down, or GID index, MTU, VLAN or priority differ between the ends",
    [IBV_WC_RNR_RETRY_EXC_ERR] = "the peer had no receive posted for too long: it is stopped, or credits are broken",
    [IBV_WC_LOC_RDD_VIOL_ERR] = "a reliable datagram domain was violated",
    [IBV_WC_REM_INV_RD_REQ_ERR] = "a reliable datagram request was refused",
    [IBV_WC_REM_ABORT_ERR] = "the peer's device aborted the operation",
    [IBV_WC_FATAL_ERR] = "the device failed: see the kernel's log (dmesg), reset it or leave it out (WEFT_DEVICES)",
    [IBV_WC_RESP_TIMEOUT_ERR] = "no answer to a request: the peer is dead, or its link is down",
    [IBV_WC_GENERAL_ERR] = "the device gives no reason: see the kernel's log (dmesg)",
};

void verbs_wc_error(const verbs_rc_qp *qp, const struct ibv_wc *wc, const char *what, char *text, size_t capacity)
{
    const char *cause = (unsigned)wc->status < sizeof causes / sizeof causes[0] ? causes[wc->status] : NULL;
    char here[VERBS_GID_TEXT], there[VERBS_GID_TEXT];
    const verbs_ep *ep = qp->ep;
    snprintf(text, capacity, "%s with rank %u failed on %s (%s to %s): %s (status %d, vendor 0x%x): %s", what, ep->proc_id.rank,
             qp->rail->name,
             verbs_gid_text(&qp->rail->gid, here), verbs_gid_text(&ep->remote.address[qp->remote_rail].gid, there),
             ibv_wc_status_str(wc->status), (int)wc->status, wc->vendor_err, cause ? cause : "see the kernel's log (dmesg)");
}
