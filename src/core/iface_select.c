/* SPDX-License-Identifier: BSD-3-Clause
 *
 * iface_select: see iface_select.h. Networks are tried in the order of `networks`.
 */
#include "core/iface_select.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/knob.h"
#include "base/log.h"
#include "base/macros.h"
#include "base/status.h"
#include "core/world_type.h"
#include "transport/module.h"

/* Networks in order of preference. A module is loaded only if a file of glob `hint` contains `word`: its library costs start-up time.
 * Omni-Path precedes verbs: the CPU emulates its verbs device, and libfabric has native providers for it. */
typedef struct network {
    const char *name, *hint, *word;
    const char *transport; /* its module */
    const char *providers; /* of libfabric: only these; NULL: any */
} network;
static const network networks[] = {{"Omni-Path", "/sys/class/infiniband/hfi1_*/ports/*/state", "ACTIVE", "ofi", "opx,psm2"},
                                   {"verbs", "/sys/class/infiniband/*/ports/*/state", "ACTIVE", "verbs", NULL},
                                   {"ofi", "/sys/class/net/*/operstate", "up", "ofi", NULL}};

/* Is `name` an element of the list? */
static bool is_listed(const char *list, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += bytes)
        if ((at == list || at[-1] == ',' || at[-1] == ' ') && (at[bytes] == 0 || at[bytes] == ',' || at[bytes] == ' '))
            return true;
    return false;
}

/* Why the transport cannot be used; NULL: no reason is known before its open. ofi's open has the same reasons, and may defer to load
 * libfabric. */
static const char *obstacle(const weft_iface_ops *ops) { return strcmp(ops->name, "ofi") == 0 ? NULL : ops->unavailable(); }

static bool is_chosen_by_user(void) { return weft_knob.transports && *weft_knob.transports; }

bool weft_iface_select_allow(const char *name)
{
    return strcmp(name, "self") == 0 || !is_chosen_by_user() || is_listed(weft_knob.transports, name);
}

static bool uses_shm(const weft_boot *boot)
{
    return boot->has_segment && boot->local_size > 1 && weft_iface_select_allow("shm");
}

/* Number of this rank among those of its node, if they share memory; else -1. */
static int place_on_node(const weft_boot *boot)
{
    int place = 0;
    if (!uses_shm(boot))
        return -1;
    for (uint32_t rank = 0; boot->node_of && rank < boot->rank; rank++)
        place += boot->node_of[rank] == boot->node;
    return boot->node_of ? place : (int)boot->local_rank;
}

static int open_iface(weft_worker *worker, const weft_iface_ops *ops, const void *medium, const char *providers, bool has_addr)
{
    weft_boot *boot = worker->world->boot;
    weft_iface_params params = {.owner = worker, .callbacks = worker->callbacks, .self = {boot->job, boot->rank, worker->index},
                                .segment = medium, .local_rank = has_addr ? place_on_node(boot) : (int)boot->local_rank,
                                .wants_fd = worker->wants_fd, .shares_cpus = worker->world->is_oversubscribed, .now_ns = boot->now_ns,
                                .is_far = boot->nodes > 1 && weft_knob.split_node == 1,
                                .peers = boot->size - (uses_shm(boot) ? boot->local_size : 1), .ranks = boot->local_size,
                                .providers = providers};
    int rc = worker->iface_count == WEFT_WORKER_IFACES ? weft_fail(WEFT_E_ARG, "more than %d transports at one time", WEFT_WORKER_IFACES)
                                                 : ops->open(&params, &worker->ifaces[worker->iface_count]);
    if (rc)
        return rc;
    worker->has_addr[worker->iface_count++] = has_addr;
    return 0;
}

static void addr_key(const weft_worker *worker, const weft_iface *iface, char *key, size_t capacity)
{
    snprintf(key, capacity, "weft.address.%s.%u", iface->ops->name, worker->index);
}

/* Publishes this worker's addresses by modex; sends nothing to peers. all_commit: commits also without an address, since peers may request
 * one and, under some launchers, wait for this rank's commit. */
static int put_addrs(weft_worker *worker, bool all_commit)
{
    weft_boot *boot = worker->world->boot;
    bool any = all_commit;
    for (uint32_t i = 0; i < worker->iface_count; i++) {
        char key[64], addr[WEFT_ADDR_MAX];
        size_t bytes = sizeof addr;
        int rc;
        if (!worker->has_addr[i])
            continue;
        addr_key(worker, worker->ifaces[i], key, sizeof key);
        rc = worker->ifaces[i]->ops->get_addr(worker->ifaces[i], addr, &bytes);
        if (rc == 0)
            rc = boot->ops->put(boot, key, addr, bytes);
        if (rc)
            return rc;
        any = true;
    }
    return any ? boot->ops->commit(boot) : 0;
}

static bool has_word(const char *path, const char *word)
{
    char text[64] = "";
    FILE *file = fopen(path, "re");
    if (file) {
        if (!fgets(text, sizeof text, file))
            *text = 0;
        fclose(file);
    }
    return strstr(text, word) != NULL;
}

static bool is_promising(const network *net)
{
    glob_t found;
    bool is_there = false;
    if (glob(net->hint, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !is_there; i++)
            is_there = has_word(found.gl_pathv[i], net->word);
    globfree(&found);
    return is_there;
}

const char *weft_iface_select_network(uint32_t index, bool *promising)
{
    for (size_t i = 0; i < weft_count(networks); i++) {
        if (networks[i].providers || index--) /* the entry for any provider describes the transport */
            continue;
        *promising = is_promising(&networks[i]);
        return networks[i].transport;
    }
    return NULL;
}

/* A knob names a device or a provider: entries with `providers` are left out then. */
static bool names_device(void)
{
    return (weft_knob.devices && *weft_knob.devices) || (weft_knob.ofi_provider && *weft_knob.ofi_provider);
}

/* Tries a network that the knob does not name. True: it is open. False: `text` has the reason; "": no active device. */
static bool try_network(weft_worker *worker, const network *net, char *text, size_t capacity)
{
    const char *why = NULL;
    const weft_iface_ops *ops;
    int rc = 0;
    *text = 0;
    if (!is_promising(net) || (net->providers && names_device()))
        return false;
    ops = weft_transport_find(net->transport, &why);
    if (ops && !(why = obstacle(ops)) && (rc = open_iface(worker, ops, NULL, net->providers, true)) == 0)
        return true;
    snprintf(text, capacity, "%s", rc ? weft_fail_text(rc) : why);
    return false;
}

/* Opens the first network that works; only one, since each costs start-up time and polls. If a preferred one has an active device but does
 * not open, rank 0 warns, and the first rank of each other node logs it at level info. */
static void try_networks(weft_worker *worker)
{
    const weft_boot *boot = worker->world->boot;
    char texts[weft_count(networks)][512];
    size_t count = 0, opened;
    while (count < weft_count(networks) && !try_network(worker, &networks[count], texts[count], sizeof texts[count]))
        count++;
    opened = count;
    for (size_t i = 0; i < opened && opened == weft_count(networks) && !*worker->no_network; i++)
        if (*texts[i]) /* kept for errors of this rank: only one rank prints the warning */
            snprintf(worker->no_network, sizeof worker->no_network, "%s: %.180s", networks[i].name, texts[i]);
    for (size_t i = 0; i < opened; i++) {
        char instead[64] = "";
        if (!*texts[i] || boot->local_rank)
            continue;
        if (opened < weft_count(networks))
            snprintf(instead, sizeof instead, ", %s carries the job instead", networks[opened].name);
        weft_log(boot->rank == 0 ? WEFT_LOG_WARN : WEFT_LOG_INFO, "%s is not used although it has an active port%s: %s",
                 networks[i].name, instead, texts[i]);
    }
}

/* Opens a transport that the knob names. */
static int open_named(weft_worker *worker, const char *name)
{
    const char *why = NULL;
    const weft_iface_ops *ops = weft_transport_find(name, &why);
    int rc = 0;
    if (ops && !(why = obstacle(ops)))
        rc = open_iface(worker, ops, NULL, NULL, true);
    else
        rc = weft_fail(WEFT_E_UNSUPPORTED, "%s", why);
    if (rc) {
        char text[512];
        snprintf(text, sizeof text, "%s", weft_fail_text(rc));
        return weft_fail(rc, "WEFT_TRANSPORTS=%s: the transport %s cannot be used: %s", weft_knob.transports, name, text);
    }
    return 0;
}

/* The next name in the knob that is neither self nor shm, copied to `name`; NULL at the end. */
static const char *next_named(const char *list, char *name, size_t capacity)
{
    while (*list) {
        size_t bytes = strcspn(list, ", ");
        snprintf(name, capacity, "%.*s", (int)bytes, list);
        list += bytes + strspn(list + bytes, ", ");
        if (*name && strcmp(name, "self") && strcmp(name, "shm"))
            return list;
    }
    return NULL;
}

static int open_all_named(weft_worker *worker)
{
    const char *list = weft_knob.transports;
    char name[64];
    while ((list = next_named(list, name, sizeof name))) {
        int rc = open_named(worker, name);
        if (rc)
            return rc;
    }
    return 0;
}

static bool needs_network(const weft_boot *boot)
{
    return boot->size > 1 && (boot->nodes > 1 || !uses_shm(boot));
}

static bool will_have_network(const weft_boot *boot)
{
    char name[64];
    if (is_chosen_by_user())
        return next_named(weft_knob.transports, name, sizeof name) != NULL;
    for (size_t i = 0; needs_network(boot) && i < weft_count(networks); i++)
        if (is_promising(&networks[i]))
            return true;
    return false;
}

static int open_networks(weft_worker *worker)
{
    bool is_chosen = is_chosen_by_user(), is_needed = !is_chosen && needs_network(worker->world->boot);
    int rc = is_chosen ? open_all_named(worker) : 0;
    if (is_needed)
        try_networks(worker);
    return rc ? rc : put_addrs(worker, is_needed);
}

/* self is opened first: weft_iface_select_reach tries ifaces in order, and self recognizes its own proc_id. */
int weft_iface_select_open(weft_worker *worker)
{
    weft_boot *boot = worker->world->boot;
    int rc = open_iface(worker, &weft_self_ops, NULL, NULL, false);
    if (rc)
        return rc;
    if (boot->fabric_ops) {
        rc = open_iface(worker, boot->fabric_ops, boot->fabric, NULL, !boot->fabric);
        return rc ? rc : put_addrs(worker, false);
    }
    worker->wants_fd = boot->size > 1 && will_have_network(boot);
    if (uses_shm(boot) && (rc = open_iface(worker, &weft_shm_ops, &boot->segment, NULL, false)))
        return rc;
    rc = boot->size > 1 ? open_networks(worker) : 0;
    return rc;
}

/* Address of a rank on iface `index`: its node-local rank (shared memory) or the modex address (networks). Returns its bytes; 0: none. */
static size_t addr_of(weft_worker *worker, uint32_t index, uint32_t rank, void *addr)
{
    weft_boot *boot = worker->world->boot;
    size_t bytes = WEFT_ADDR_MAX;
    char key[64];
    if (!worker->has_addr[index]) {
        uint32_t local = boot->local_of ? boot->local_of[rank] : rank;
        if (boot->node_of && boot->node_of[rank] != boot->node)
            return 0;
        memcpy(addr, &local, sizeof local);
        return sizeof local;
    }
    addr_key(worker, worker->ifaces[index], key, sizeof key);
    return boot->ops->get(boot, rank, key, addr, &bytes) == 0 ? bytes : 0;
}

int weft_iface_select_reach(weft_worker *worker, weft_peer *peer)
{
    weft_boot *boot = worker->world->boot;
    char why[240] = "", name[64];
    for (uint32_t i = 0; i < worker->iface_count; i++) {
        weft_iface *iface = worker->ifaces[i];
        char addr[WEFT_ADDR_MAX];
        size_t bytes = addr_of(worker, i, peer->proc_id.rank, addr);
        int rc = bytes || !worker->has_addr[i] ? iface->ops->ep_open(iface, &peer->proc_id, addr, bytes, peer, &peer->ep)
                                               : WEFT_E_UNSUPPORTED;
        if (rc != WEFT_E_UNSUPPORTED)
            return rc;
        if (bytes && worker->has_addr[i])
            snprintf(why, sizeof why, "; %s: %.140s", iface->ops->name, weft_fail_text(rc));
    }
    if (!*why && *worker->no_network)
        snprintf(why, sizeof why, "; %s", worker->no_network);
    if (is_chosen_by_user() && !next_named(weft_knob.transports, name, sizeof name))
        return weft_fail(WEFT_E_PEER, "no transport reaches rank %u from rank %u on %s: WEFT_TRANSPORTS=%s names no network, "
                         "and the two do not share memory (without that knob Weft chooses; WEFT_TRANSPORTS=shm,ofi is for Ethernet)",
                         peer->proc_id.rank, boot->rank, boot->host, weft_knob.transports);
    return weft_fail(WEFT_E_PEER, "no transport reaches rank %u from rank %u on %s: neither shared memory nor a network is usable "
                     "between them (weft-info lists the transports and why each is not; where hosts have different devices, "
                     "WEFT_TRANSPORTS=shm,ofi)%s",
                     peer->proc_id.rank, boot->rank, boot->host, why);
}
