/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ep: an ep is made from the peer's address and gets an index, which the peer puts into each message. Nothing is sent (handshake.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "transports/ofi/ofi.h"

static int assign_index(ofi_iface *iface, ofi_ep *ep)
{
    uint32_t i = 1;
    while (i < iface->index_capacity && iface->by_index[i])
        i++;
    if (i >= iface->index_capacity) {
        uint32_t capacity = iface->index_capacity ? 2 * iface->index_capacity : 16;
        ofi_ep **table = realloc(iface->by_index, capacity * sizeof *table);
        if (!table)
            return weft_fail(WEFT_E_NOMEM, "no memory for a table of %u peers", capacity);
        memset(table + iface->index_capacity, 0, (capacity - iface->index_capacity) * sizeof *table);
        iface->by_index = table;
        iface->index_capacity = capacity;
    }
    iface->by_index[i] = ep;
    ep->index = i;
    return 0;
}

int ofi_ep_open(weft_iface *base, const weft_proc_id *proc_id, const void *addr, size_t bytes, void *peer, weft_ep **out)
{
    ofi_iface *iface = (ofi_iface *)base;
    ofi_ep *ep;
    ofi_iface_addr far;
    int rc;
    if (bytes != sizeof far)
        return weft_fail(WEFT_E_UNSUPPORTED, "rank %u has no address for libfabric", proc_id->rank);
    rc = ofi_contact(iface);
    if (rc)
        return rc;
    memcpy(&far, addr, sizeof far);
    if (far.version != iface->addr.version || (!far.knocks && far.protocol != iface->addr.protocol) || far.form != iface->addr.form ||
        far.key_form != iface->addr.key_form || (far.knocks && !iface->keeps))
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "rank %u uses libfabric's %.23s, this rank %s: they do not interoperate (WEFT_OFI_PROVIDER)", proc_id->rank,
                         far.knocks ? "TCP" : far.provider, iface->addr.provider);
    if (far.host != iface->addr.host && ofi_is_local(iface->info))
        return weft_fail(WEFT_E_UNSUPPORTED, "rank %u is on another host, which libfabric's %s does not reach (WEFT_OFI_PROVIDER)",
                         proc_id->rank, iface->addr.provider);
    ep = calloc(1, sizeof *ep);
    if (!ep)
        return weft_fail(WEFT_E_NOMEM, "no memory for an ep of %zu bytes", sizeof *ep);
    ep->ep = (weft_ep){.iface = base, .peer = peer};
    ep->proc_id = *proc_id;
    ep->addr = far;
    weft_list_init(&ep->early);
    weft_list_init(&ep->kept);
    weft_list_init(&ep->ops);
    weft_list_init(&ep->again);
    rc = ofi_candidates_make(iface, ep);
    if (rc == 0)
        rc = assign_index(iface, ep);
    if (rc) {
        free(ep->candidates);
        free(ep);
        return rc;
    }
    weft_list_append(&iface->eps, &ep->link);
    *out = &ep->ep;
    return 0;
}
