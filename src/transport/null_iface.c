/* SPDX-License-Identifier: BSD-3-Clause
 *
 * null_iface: null object of the transport contract (iface.h). A failed peer has weft_null_ep, so callers need not test for failure before
 * each call: calls return WEFT_E_PEER. Stateless: any thread and worker may use it concurrently.
 */
#include "transport/iface.h"

#include "base/status.h"

/* For calls after the failure; its cause was reported when the peer failed. */
static int null(void)
{
    return weft_fail(WEFT_E_PEER, "the peer has failed earlier: nothing can be sent to it or read from it");
}

static const char *null_unavailable(void)
{
    return NULL;
}

static int null_open(const weft_iface_params *params, weft_iface **iface)
{
    (void)params;
    (void)iface;
    return null();
}

static void null_close(weft_iface *iface)
{
    (void)iface;
}

static int null_get_addr(weft_iface *iface, void *addr, size_t *bytes)
{
    (void)iface;
    (void)addr;
    (void)bytes;
    return null();
}

static int null_ep_open(weft_iface *iface, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **ep)
{
    (void)iface;
    (void)proc_id;
    (void)addr;
    (void)bytes;
    (void)peer;
    (void)ep;
    return null();
}

static int null_ep_close(weft_iface *iface, weft_ep *ep)
{
    (void)iface;
    (void)ep;
    return null();
}

static int null_mr_reg(weft_iface *iface, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr)
{
    (void)iface;
    (void)addr;
    (void)bytes;
    (void)rights;
    (void)kind;
    (void)mr;
    return null();
}

static int null_mr_dereg(weft_iface *iface, weft_mr *mr)
{
    (void)iface;
    (void)mr;
    return null();
}

static int null_share(weft_iface *iface, uint64_t bytes, weft_shared *shared)
{
    (void)iface;
    (void)bytes;
    (void)shared;
    return null();
}

static int null_unshare(weft_iface *iface, weft_shared *shared)
{
    (void)iface;
    (void)shared;
    return null();
}

static int null_send(weft_iface *iface, weft_ep *ep, const weft_frame *frame)
{
    (void)iface;
    (void)ep;
    (void)frame;
    return null();
}

static int null_rma(weft_iface *iface, weft_ep *ep, const weft_rma *rma)
{
    (void)iface;
    (void)ep;
    (void)rma;
    return null();
}

static int null_amo(weft_iface *iface, weft_ep *ep, const weft_atomic *atomic)
{
    (void)iface;
    (void)ep;
    (void)atomic;
    return null();
}

static int null_flush(weft_iface *iface, weft_ep *ep, bool remotely, void *done)
{
    (void)iface;
    (void)ep;
    (void)remotely;
    (void)done;
    return null();
}

static int null_poll(weft_iface *iface, int budget)
{
    (void)iface;
    (void)budget;
    return null();
}

static int null_arm(weft_iface *iface, weft_wakeup *wakeup)
{
    (void)iface;
    *wakeup = (weft_wakeup){.fd = -1};
    return null();
}

static void null_disarm(weft_iface *iface)
{
    (void)iface;
}

static bool null_can_rma(weft_iface *iface, weft_ep *ep)
{
    (void)iface;
    (void)ep;
    return false;
}

void weft_describe_nothing(void (*line)(void *arg, const char *text), void *arg)
{
    (void)line;
    (void)arg;
}

const weft_iface_ops weft_null_ops = {
    .name = "null",
    .unavailable = null_unavailable,
    .describe = weft_describe_nothing,
    .open = null_open,
    .close = null_close,
    .get_addr = null_get_addr,
    .ep_open = null_ep_open,
    .ep_close = null_ep_close,
    .mr_reg = null_mr_reg,
    .mr_dereg = null_mr_dereg,
    .share = null_share,
    .unshare = null_unshare,
    .send = null_send,
    .can_rma = null_can_rma,
    .get = null_rma,
    .put = null_rma,
    .amo = null_amo,
    .flush = null_flush,
    .poll = null_poll,
    .arm = null_arm,
    .disarm = null_disarm,
};

/* frame_max must not be 0: p2p divides message lengths by it before a send returns WEFT_E_PEER. */
weft_iface weft_null_iface = {.ops = &weft_null_ops, .caps = {.frame_max = 4096, .chunk = 4096, .rma_max = 4096, .ordered = true}};
weft_ep weft_null_ep = {.iface = &weft_null_iface};
