/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_select: see device_select.h. verbs_unavailable reads sysfs only, so a machine without RDMA pays for one directory.
 */
#include "transports/verbs/device_select.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/knob.h"
#include "base/status.h"
#include "transports/verbs/gid.h"
#include "transports/verbs/verbs.h"

#define SYSFS "/sys/class/infiniband"

static bool read_line(const char *path, char *text, int capacity)
{
    FILE *file = fopen(path, "re");
    bool ok = file && fgets(text, capacity, file);
    if (file)
        fclose(file);
    if (ok)
        text[strcspn(text, "\n")] = 0;
    return ok;
}

/* -- unavailable: is any port active? -- */

static bool has_active_port(const char *device)
{
    char path[512], state[64];
    struct dirent *one;
    bool is_active = false;
    DIR *ports;
    snprintf(path, sizeof path, SYSFS "/%.64s/ports", device);
    ports = opendir(path);
    while (ports && !is_active && (one = readdir(ports))) {
        if (one->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, SYSFS "/%.64s/ports/%.16s/state", device, one->d_name);
        is_active = read_line(path, state, sizeof state) && atoi(state) == IBV_PORT_ACTIVE;
    }
    if (ports)
        closedir(ports);
    return is_active;
}

const char *verbs_unavailable(void)
{
    DIR *devices = opendir(SYSFS);
    bool is_active = false, is_any = false;
    struct dirent *one;
    while (devices && !is_active && (one = readdir(devices)))
        if (one->d_name[0] != '.') {
            is_any = true;
            is_active = has_active_port(one->d_name);
        }
    if (devices)
        closedir(devices);
    if (is_active)
        return NULL;
    return is_any ? "no port of an RDMA device is active (see ibv_devinfo)" : "no RDMA device is present (" SYSFS " is empty)";
}

/* -- the knob `devices` -- */

/* List of this rank in "a:1,b;c"; its length in *length. */
static const char *list_of(uint32_t rank, size_t *length)
{
    const char *text = weft_knob.devices ? weft_knob.devices : "";
    uint32_t lists = 1;
    for (const char *at = text; *at; at++)
        lists += *at == ';';
    for (uint32_t skip = rank % lists; skip; text++)
        skip -= *text == ';';
    *length = strcspn(text, ";");
    return text;
}

static bool is_named(const char *item, size_t length, const char *device, uint8_t port_num)
{
    char text[64], with_port[96];
    snprintf(text, sizeof text, "%.*s", (int)length, item);
    snprintf(with_port, sizeof with_port, "%s:%u", device, port_num);
    return strcmp(text, device) == 0 || strcmp(text, with_port) == 0;
}

/* Position in the list, from 1; 0: not in it. */
static uint32_t place_in_list(const char *list, size_t length, const char *device, uint8_t port_num)
{
    uint32_t place = 1;
    for (const char *end = list + length; list < end; place++) {
        size_t item = strcspn(list, ",;");
        if (is_named(list, item, device, port_num))
            return place;
        list += item + 1;
    }
    return 0;
}

/* Collects names without a port: mistyped, or the driver is not loaded. */
static void record_missing(verbs_finding *finding, const char *list, size_t length)
{
    size_t used = 0;
    for (const char *end = list + length; list < end;) {
        size_t item = strcspn(list, ",;");
        bool is_here = item == 0;
        for (int i = 0; i < finding->count && !is_here; i++)
            is_here = is_named(list, item, ibv_get_device_name(finding->found[i].device), finding->found[i].port_num);
        if (!is_here && used + 1 < sizeof finding->missing) {
            int n = snprintf(finding->missing + used, sizeof finding->missing - used, "%s%.*s", used ? ", " : "",
                             (int)item, list);
            used += n > 0 ? (size_t)n : 0;
        }
        list += item + 1;
    }
}

/* -- NUMA distance -- */

static uint32_t distance_of(const char *device)
{
    char path[256], text[1024], *at = text;
    unsigned cpu, here = 0;
    int there;
    snprintf(path, sizeof path, SYSFS "/%.64s/device/numa_node", device);
    if (!read_line(path, text, sizeof text) || (there = atoi(text)) < 0 || syscall(SYS_getcpu, &cpu, &here, NULL) != 0)
        return 10;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/distance", here);
    if (!read_line(path, text, sizeof text))
        return 10;
    for (int i = 0; i < there; i++)
        strtoul(at, &at, 10);
    return (uint32_t)strtoul(at, NULL, 10);
}

/* -- one port -- */

static const char *link_layer_text(uint8_t layer)
{
    return layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "unknown";
}

static void judge(verbs_found *one, const char *list, size_t length)
{
    const char *device = ibv_get_device_name(one->device);
    one->wanted = place_in_list(list, length, device, one->port_num);
    if (length && !one->wanted)
        snprintf(one->why_not, sizeof one->why_not, "excluded by WEFT_DEVICES");
    else if (one->port.state != IBV_PORT_ACTIVE)
        snprintf(one->why_not, sizeof one->why_not, "port %s",
                 one->port.state == IBV_PORT_DOWN ? "down" : ibv_port_state_str(one->port.state));
    else if (!verbs_gid_choose(one->context, one->port_num, &one->port, &one->gid))
        snprintf(one->why_not, sizeof one->why_not, weft_knob.gid_index >= 0 ? "its GID table has no entry at WEFT_GID_INDEX"
                 : "no usable GID: has its interface an address?");
}

static void read_port(verbs_finding *finding, struct ibv_device *device, struct ibv_context *context,
                         const struct ibv_device_attr *attr,
                         uint8_t port_num, const char *list, size_t length)
{
    verbs_found *one = &finding->found[finding->count];
    *one = (verbs_found){.device = device, .context = context, .port_num = port_num, .attr = *attr};
    snprintf(one->name, sizeof one->name, "%.56s:%u", ibv_get_device_name(device), port_num);
    if (ibv_query_port(context, port_num, &one->port) != 0)
        snprintf(one->why_not, sizeof one->why_not, "cannot be queried: %s", strerror(errno));
    else
        judge(one, list, length);
    one->distance = distance_of(ibv_get_device_name(device));
    finding->count++;
}

static void query_device(verbs_finding *finding, int index, const char *list, size_t length)
{
    struct ibv_device *device = finding->devices[index];
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attr;
    if (context && ibv_query_device(context, &attr) == 0) {
        finding->contexts[index] = context;
        for (uint8_t i = 1; i <= attr.phys_port_cnt && finding->count < VERBS_FOUND_MAX; i++)
            read_port(finding, device, context, &attr, i, list, length);
        return;
    }
    if (finding->count < VERBS_FOUND_MAX) {
        verbs_found *one = &finding->found[finding->count++];
        *one = (verbs_found){.device = device};
        snprintf(one->name, sizeof one->name, "%.56s", ibv_get_device_name(device));
        snprintf(one->why_not, sizeof one->why_not, "cannot be opened: %s (may this user open /dev/infiniband?)",
                 strerror(errno));
    }
    if (context)
        ibv_close_device(context);
}

/* Used before unused; then by position in the knob, distance, name. The address has this order. */
static int compare(const void *left, const void *right)
{
    const verbs_found *a = left, *b = right;
    if (!a->why_not[0] != !b->why_not[0])
        return a->why_not[0] ? 1 : -1;
    if (a->wanted != b->wanted)
        return a->wanted < b->wanted ? -1 : 1;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return strcmp(a->name, b->name);
}

int verbs_device_select(uint32_t rank, verbs_finding *finding)
{
    size_t length;
    const char *list = list_of(rank, &length);
    memset(finding, 0, sizeof *finding);
    finding->devices = ibv_get_device_list(&finding->device_count);
    if (!finding->devices)
        return weft_fail(WEFT_E_UNSUPPORTED,
                         "RDMA devices cannot be listed: %s: are ib_uverbs and the device's driver loaded?", strerror(errno));
    for (int i = 0; i < finding->device_count && i < VERBS_FOUND_MAX; i++)
        query_device(finding, i, list, length);
    record_missing(finding, list, length);
    qsort(finding->found, (size_t)finding->count, sizeof finding->found[0], compare);
    for (int i = VERBS_RAILS; i < finding->count; i++)
        if (!finding->found[i].why_not[0])
            snprintf(finding->found[i].why_not, sizeof finding->found[i].why_not,
                     "a rank uses %d ports at most, and others are nearer", VERBS_RAILS);
    return 0;
}

void verbs_device_select_end(verbs_finding *finding)
{
    for (int i = 0; i < VERBS_FOUND_MAX; i++)
        if (finding->contexts[i])
            ibv_close_device(finding->contexts[i]);
    if (finding->devices)
        ibv_free_device_list(finding->devices);
    memset(finding, 0, sizeof *finding);
}

void verbs_device_select_reasons(const verbs_finding *finding, char *text, size_t capacity)
{
    size_t used = 0;
    *text = 0;
    for (int i = 0; i < finding->count && used + 1 < capacity; i++) {
        int n = snprintf(text + used, capacity - used, "%s%s: %s", used ? "; " : "", finding->found[i].name,
                         finding->found[i].why_not);
        used += n > 0 ? (size_t)n : 0;
    }
    if (!finding->count)
        snprintf(text, capacity, "libibverbs sees no device");
}

/* -- describe -- */

typedef struct teller {
    void (*line)(void *arg, const char *text);
    void *arg;
    const verbs_found *of;
} teller;

static void describe_gid(void *arg, const struct ibv_gid_entry *entry)
{
    const teller *to = arg;
    char text[160], gid[VERBS_GID_TEXT];
    bool is_chosen = !to->of->why_not[0] && entry->gid_index == to->of->gid.gid_index;
    snprintf(text, sizeof text, "    GID %u: %s (%s)%s", entry->gid_index, verbs_gid_text(&entry->gid, gid),
             verbs_gid_type_text(entry->gid_type), is_chosen ? ", used" : "");
    to->line(to->arg, text);
}

static const char *atomics_text(const verbs_found *one)
{
    return one->attr.atomic_cap == IBV_ATOMIC_GLOB ? "agree with the CPU's" : one->attr.atomic_cap == IBV_ATOMIC_NONE ? "none" : "its own";
}

static void describe_port(const verbs_found *one, void (*line)(void *arg, const char *text), void *arg)
{
    teller to = {line, arg, one};
    char text[320];
    if (!one->context) {
        snprintf(text, sizeof text, "  %s: not used: %s", one->name, one->why_not);
        line(arg, text);
        return;
    }
    snprintf(text, sizeof text, "  %s: %s, %s, MTU %d, NUMA distance %u, atomics: %s: %s%s", one->name, ibv_port_state_str(one->port.state),
             one->device->transport_type == IBV_TRANSPORT_IWARP ? "iWARP" : link_layer_text(one->port.link_layer),
             one->port.active_mtu ? 128 << one->port.active_mtu : 0, one->distance, atomics_text(one),
             one->why_not[0] ? "not used: " : "used", one->why_not);
    line(arg, text);
    if (verbs_gid_each(one->context, one->port_num, &one->port, describe_gid, &to) == 0)
        line(arg, "    no GID");
}

void verbs_describe(void (*line)(void *arg, const char *text), void *arg)
{
    const char *why = verbs_unavailable();
    verbs_finding *finding = calloc(1, sizeof *finding);
    if (why)
        line(arg, why);
    if (finding && verbs_device_select(0, finding) == 0) {
        for (int i = 0; i < finding->count; i++)
            describe_port(&finding->found[i], line, arg);
        verbs_device_select_end(finding);
    }
    free(finding);
}
