/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_select: selects libfabric's provider: the first in its order that has the needed features and reaches other hosts (over TCP
 * without rxm if possible), or the one of WEFT_OFI_PROVIDER. Called at open and by weft-info.
 * libfabric's registration cache and memory hooks are disabled before its first call, unless the user set them: Weft has its own, and
 * only one of them can monitor a page.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knob.h"
#include "base/macros.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define OFI_API FI_VERSION(1, 17)
#define QUEUE 256 /* rxm's default is 2,048 buffers of 16 KiB, whose first touch dominates the open */

const char *ofi_error_text(ssize_t rc) { return fi_strerror((int)(rc < 0 ? -rc : rc)); }

static bool has_prefix(const char *name, const char *prefix) { return name && strncmp(name, prefix, strlen(prefix)) == 0; }

bool ofi_is_socket(const struct fi_info *info)
{
    static const char *const names[] = {"tcp", "net", "sockets", "udp"};
    for (size_t i = 0; i < weft_count(names); i++)
        if (has_prefix(info->fabric_attr->prov_name, names[i]))
            return true;
    return false;
}

bool ofi_is_local(const struct fi_info *info) { return has_prefix(info->fabric_attr->prov_name, "shm"); }

bool ofi_is_plain_tcp(const struct fi_info *info)
{
    const char *name = info->fabric_attr->prov_name;
    return strcmp(name, "net") == 0 || strcmp(name, "tcp") == 0;
}

/* Barred even if the user names it. rxd sends the address it is bound to as its return address, which the wildcard is not. Bound to one
 * address, libfabric 1.17's lost frames, hung, and completed gets without data. */
static const char *barred(const struct fi_info *info, bool is_far)
{
    const char *name = info->fabric_attr->prov_name;
    if (strstr(name, ";ofi_rxd"))
        return "loses messages and parts of long ones";
    if (is_far && ofi_is_local(info))
        return "reaches this host only, and this job runs on several";
    return NULL;
}

/* Not used unless the user names it. */
static const char *unsuited(const struct fi_info *info)
{
    const char *name = info->fabric_attr->prov_name;
    if (barred(info, false))
        return barred(info, false);
    if (ofi_is_local(info))
        return "reaches this host only, where Weft has its own shared memory";
    if (has_prefix(name, "ofi_hook") || has_prefix(name, "ofi_mrail"))
        return "is layered over another provider";
    if (has_prefix(name, "sockets"))
        return "is for tests only, by libfabric's documentation";
    return NULL;
}

static struct fi_info *hints_of(const char *provider, uint64_t more)
{
    struct fi_info *hints = fi_allocinfo();
    if (!hints)
        return NULL;
    hints->caps = FI_MSG | FI_RMA | more;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_SAFE; /* another thread may register memory at any time */
    hints->domain_attr->av_type = FI_AV_TABLE;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    if (provider)
        hints->fabric_attr->prov_name = strdup(provider);
    return hints;
}

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define RXM_EAGER 33024 /* rxm uses its rendezvous for longer messages; Weft has its own */
_Static_assert(RXM_EAGER == OFI_MESSAGE, "rxm sends a message of OFI_MESSAGE bytes eagerly");

/* The default of 64 KiB is too small: the sockets provider leaves less than a header unread and waits for the rest, while the packet counts
 * whole against the buffer and the kernel accepts no more. The kernel limits this value. */
#define SOCKETS_BUFFER "4194304"

static void set_up(void)
{
    setenv("FI_SOCKETS_MAX_BUF_SZ", SOCKETS_BUFFER, 0);
    setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
    setenv("FI_OFI_RXM_BUFFER_SIZE", TEXT_OF(RXM_EAGER), 0);
}

void ofi_provider_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
}

static int query(struct fi_info *hints, struct fi_info **list)
{
    int rc;
    ofi_provider_prepare();
    rc = hints ? fi_getinfo(OFI_API, NULL, NULL, 0, hints, list) : -FI_ENOMEM;
    if (rc)
        *list = NULL;
    fi_freeinfo(hints);
    return rc;
}

static const char *wanted(void) { return weft_knob.ofi_provider && *weft_knob.ofi_provider ? weft_knob.ofi_provider : NULL; }
static const char *iface(void) { return weft_knob.ofi_iface && *weft_knob.ofi_iface ? weft_knob.ofi_iface : NULL; }

/* WEFT_OFI_IFACE selects addresses of sockets (addr_list.c), and devices of other providers. */
static bool is_chosen(const struct fi_info *info)
{
    if (!wanted() && unsuited(info))
        return false;
    return ofi_is_socket(info) || !iface() || (info->domain_attr->name && strcmp(info->domain_attr->name, iface()) == 0);
}

/* rxm over sockets: an older alternative to libfabric's own tcp (`net` in 1.17, whose `tcp` has no FI_EP_RDM). It needs far more memory and
 * time per message, so it is the last choice. */
static bool is_layered(const struct fi_info *info) { return ofi_is_socket(info) && strstr(info->fabric_attr->prov_name, ";ofi_rxm"); }

/* The next suitable entry, layered or not. */
static const struct fi_info *next_chosen(const struct fi_info *list, bool layered)
{
    while (list && (!is_chosen(list) || is_layered(list) != layered))
        list = list->next;
    return list;
}

/* Queries this provider again with more features and, over sockets, bound to all addresses of the host. */
static struct fi_info *refine(const struct fi_info *one, uint64_t more)
{
    bool is_socket = ofi_is_socket(one);
    struct fi_info *hints = hints_of(one->fabric_attr->prov_name, more), *list = NULL;
    if (!hints)
        return NULL;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = one->tx_attr->msg_order & one->rx_attr->msg_order & FI_ORDER_SAS;
    if (is_socket) {
        hints->tx_attr->size = hints->rx_attr->size = QUEUE;
        int family = ofi_host_family();
        hints->addr_format = family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
        hints->src_addrlen = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        hints->src_addr = calloc(1, hints->src_addrlen);
        if (hints->src_addr)
            ((struct sockaddr *)hints->src_addr)->sa_family = (sa_family_t)family;
    } else if (one->domain_attr->name) {
        hints->domain_attr->name = strdup(one->domain_attr->name);
    }
    query(hints, &list);
    return list;
}

/* Over sockets each address is an entry of libfabric's list; shm may be listed twice. */
static bool is_repeated(const struct fi_info *list, const struct fi_info *one)
{
    for (; list != one; list = list->next)
        if (strcmp(list->fabric_attr->prov_name, one->fabric_attr->prov_name) == 0 &&
            (ofi_is_socket(one) || strcmp(list->domain_attr->name, one->domain_attr->name) == 0))
            return true;
    return false;
}

/* The first suitable entry after `passed` others. */
static const struct fi_info *first_after(const struct fi_info *list, uint32_t passed)
{
    for (int layered = 0; layered < 2; layered++)
        for (const struct fi_info *one = next_chosen(list, layered); one; one = next_chosen(one->next, layered))
            if (!is_repeated(list, one) && passed-- == 0)
                return one;
    return NULL;
}

static int nothing_found(const char *provider, int rc)
{
    if (provider)
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "libfabric has no provider '%s' with reliable datagrams, messages and RMA here: %s (fi_info lists them)", provider,
                         rc ? ofi_error_text(rc) : "none of the devices that WEFT_OFI_IFACE names");
    return weft_fail(WEFT_E_UNSUPPORTED,
                     "libfabric offers no provider with reliable datagrams, messages and RMA that reaches other hosts: %s",
                     rc ? ofi_error_text(rc) : "the others are for this host or for tests");
}

static int not_to_be_had(const struct fi_info *info, const char *why)
{
    return weft_fail(WEFT_E_UNSUPPORTED,
                     "libfabric's %s %s: leave WEFT_OFI_PROVIDER unset, or name another one (weft-info --transports lists them)",
                     info->fabric_attr->prov_name, why);
}

/* The suitable entry of this provider (NULL: of any) after `passed` others. */
static int select_entry(ofi_iface *iface, const char *provider, uint32_t passed)
{
    static const uint64_t extras[] = {FI_MULTI_RECV | FI_ATOMIC, FI_MULTI_RECV, FI_ATOMIC, 0};
    struct fi_info *list = NULL;
    int rc = query(hints_of(provider, 0), &list);
    const struct fi_info *one = first_after(list, passed);
    const char *why = one ? barred(one, iface->has_remote) : NULL;
    for (size_t i = 0; one && !why && i < weft_count(extras) && !iface->info; i++)
        iface->info = refine(one, extras[i]);
    rc = iface->info ? 0 : why ? not_to_be_had(one, why) : nothing_found(provider, rc);
    fi_freeinfo(list);
    return rc;
}

/* The next of the owner's list that is offered; iface->passed counts those before. */
static int select_listed(ofi_iface *iface)
{
    char name[64];
    const char *at = iface->providers;
    int rc = WEFT_E_UNSUPPORTED;
    for (uint32_t i = 0; *at && rc; i++) {
        size_t bytes = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)bytes, at);
        at += bytes + (at[bytes] == ',');
        if (i < iface->passed)
            continue;
        rc = select_entry(iface, name, 0);
        iface->passed = rc ? i + 1 : i;
    }
    return rc ? nothing_found(iface->providers, 0) : 0;
}

int ofi_provider_select(ofi_iface *iface)
{
    return iface->providers ? select_listed(iface) : select_entry(iface, wanted(), iface->passed);
}

static bool is_empty(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *one = NULL;
    while (folder && (one = readdir(folder)) && one->d_name[0] == '.')
        continue;
    if (folder)
        closedir(folder);
    return !one;
}

static bool is_set(const char *name)
{
    const char *text = getenv(name);
    return text && *text;
}

/* With a range of ports, as a firewall may need, all listening sockets are to be libfabric's. */
bool ofi_may_defer(void)
{
    return !wanted() && !is_set("FI_PROVIDER") && !is_set("FI_NET_PORT_HIGH_RANGE") && !is_set("FI_TCP_PORT_HIGH_RANGE") &&
           is_empty("/sys/class/infiniband") && is_empty("/sys/class/cxi");
}

const char *ofi_unavailable(void)
{
    static _Thread_local char text[256];
    struct fi_info *list = NULL;
    int failed = ofi_library_load(), rc = failed ? 0 : query(hints_of(wanted(), 0), &list);
    const struct fi_info *one = first_after(list, 0);
    const char *why = one ? barred(one, false) : NULL;
    bool any = one && !why;
    if (failed)
        snprintf(text, sizeof text, "%s", weft_fail_text(failed));
    if (failed)
        return text;
    if (why)
        not_to_be_had(one, why);
    else if (!any)
        nothing_found(wanted(), rc);
    fi_freeinfo(list);
    if (any)
        return NULL;
    snprintf(text, sizeof text, "%s", weft_fail_text(WEFT_E_UNSUPPORTED));
    return text;
}

void ofi_describe(void (*line)(void *arg, const char *text), void *arg)
{
    struct fi_info *list = NULL;
    char text[320];
    uint32_t version;
    const struct fi_info *chosen;
    if (ofi_library_load()) {
        line(arg, weft_fail_text(WEFT_E_UNSUPPORTED));
        return;
    }
    version = fi_version();
    query(hints_of(wanted(), 0), &list);
    chosen = first_after(list, 0);
    snprintf(text, sizeof text, "libfabric %u.%u", FI_MAJOR(version), FI_MINOR(version));
    line(arg, text);
    for (const struct fi_info *one = list; one; one = one->next) {
        const char *name = one->fabric_attr->prov_name, *bar = barred(one, false), *why = bar || wanted() ? bar : unsuited(one);
        const char *standing = bar                        ? "not used: it "
                               : why                      ? "not used unless WEFT_OFI_PROVIDER names it: it "
                               : one == chosen            ? "the first suitable one"
                               : chosen && is_chosen(one) ? "another one precedes it"
                                                          : "not the device that WEFT_OFI_IFACE names";
        if (is_repeated(list, one))
            continue;
        snprintf(text, sizeof text, "%s%s%s%s: %s%s", name, ofi_is_socket(one) ? "" : " ", ofi_is_socket(one) ? "" : one->domain_attr->name,
                 one == chosen && !bar ? " (used)" : "", standing, why ? why : "");
        line(arg, text);
    }
    fi_freeinfo(list);
    ofi_host_describe(line, arg);
}
