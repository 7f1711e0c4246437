/* SPDX-License-Identifier: BSD-3-Clause
 *
 * job_desc: see job_desc.h. Both sides are of one release (ctrl_conn.h), so the format may change with every release.
 */
#include "tools/mpirun/job_desc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables that are specific to a machine and not passed to others. */
static const char *const local_names[] = {"HOSTNAME=", "SSH_CLIENT=", "SSH_CONNECTION=", "SSH_TTY=", "SSH_AUTH_SOCK=",
                                          "PWD=", "OLDPWD=",
                                          "SLURMD_NODENAME=", "SLURM_NODEID=", "SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_TASK_PID=",
                                          "SLURM_GTIDS=", "SLURM_CPUS_ON_NODE=", "SLURM_TOPOLOGY_ADDR"};

static bool is_local(const char *item)
{
    for (size_t i = 0; i < sizeof(local_names) / sizeof(*local_names); i++)
        if (!strncmp(item, local_names[i], strlen(local_names[i])))
            return true;
    return false;
}

static void texts_pack(char *const *items, pack *to)
{
    uint32_t count = 0;

    while (items[count])
        count++;
    pack_u32(to, count);
    for (uint32_t i = 0; i < count; i++)
        pack_text(to, items[i]);
}

static void edits_pack(const env_edit *edits, uint32_t count, pack *to)
{
    pack_u32(to, count);
    for (uint32_t i = 0; i < count; i++)
        pack_text(to, edits[i].text);
}

static void app_pack(const app *part, pack *to)
{
    pack_u32(to, part->count);
    pack_u32(to, part->first);
    pack_text(to, part->wdir);
    pack_text(to, part->env_list);
    pack_u32(to, part->env_none);
    edits_pack(part->edits, part->edit_count, to);
    texts_pack(part->argv, to);
}

static void environment_pack(pack *to)
{
    uint32_t count = 0;

    for (char **item = environ; *item; item++)
        count += !is_local(*item);
    pack_u32(to, count);
    for (char **item = environ; *item; item++)
        if (!is_local(*item))
            pack_text(to, *item);
}

/* Packs the map as runs of (node, count), or as one node per rank if that is shorter. */
static void runs_pack(const map *map, pack *to)
{
    uint32_t runs = 0;

    for (uint32_t r = 0; r < map->ranks; r++)
        runs += r == 0 || map->node_of[r] != map->node_of[r - 1];
    bool is_long = runs > map->ranks / 2;
    pack_u32(to, map->ranks);
    pack_u32(to, is_long ? map->ranks : runs);
    pack_u32(to, is_long);
    for (uint32_t r = 0, end; r < map->ranks; r = end) {
        for (end = r + 1; !is_long && end < map->ranks && map->node_of[end] == map->node_of[r];)
            end++;
        pack_u32(to, map->node_of[r]);
        if (!is_long)
            pack_u32(to, end - r);
    }
}

/* Packs the slots of all ranks: daemons pass them to those below. */
static void slots_pack(const options *opts, const map *map, pack *to)
{
    uint32_t count = 0;

    for (uint32_t r = 0; opts->slots && r < map->ranks; r++)
        count += opts->slots[r] != NULL;
    pack_u32(to, count);
    for (uint32_t r = 0; count && r < map->ranks; r++)
        if (opts->slots[r]) {
            pack_u32(to, r);
            pack_text(to, opts->slots[r]);
        }
}

void job_desc_pack(const options *opts, const map *map, const char *name, const char *host, pack *to)
{
    char *directory = getcwd(NULL, 0);
    uint32_t head = 0;

    while (head < map->node_count && !map->nodes[head].is_here)
        head++;
    pack_text(to, name);
    pack_u32(to, head);
    pack_text(to, directory ? directory : "/");
    free(directory);
    pack_u32(to, map->node_count);
    for (uint32_t i = 0; i < map->node_count; i++)
        pack_text(to, map->nodes[i].is_here ? host : map->nodes[i].name);
    runs_pack(map, to);
    pack_text(to, opts->agent);
    pack_u32(to, opts->fanout);
    pack_u32(to, (uint32_t)(opts->timeout_s < 1e6 ? opts->timeout_s * 1e3 : 0)); /* ms: sets how often daemons sample their ranks */
    pack_text(to, opts->env_list);
    pack_u32(to, opts->env_none);
    pack_u32(to, opts->is_tagged);
    pack_u32(to, opts->is_bind_reported);
    pack_text(to, opts->output);
    pack_u32(to, (uint32_t)opts->stdin_to);
    pack_u32(to, opts->bind);
    pack_u32(to, opts->map);
    pack_u32(to, opts->per_rank);
    pack_u32(to, opts->pmix);
    pack_u32(to, opts->recovers);
    slots_pack(opts, map, to);
    edits_pack(opts->edits, opts->edit_count, to);
    pack_u32(to, opts->app_count);
    for (uint32_t a = 0; a < opts->app_count; a++)
        app_pack(&opts->apps[a], to);
    environment_pack(to);
}

/* Reads a count of items of at least four bytes; fails if the rest of the body cannot hold them. */
static uint32_t count_read(unpack *from)
{
    uint32_t count = unpack_u32(from);

    if (count > from->left / 4)
        from->has_failed = true;
    return from->has_failed ? 0 : count;
}

/* Reads a NULL-terminated list of strings. */
static char **texts_read(unpack *from)
{
    uint32_t count = count_read(from);
    char **items = calloc(count + 1, sizeof(*items));

    for (uint32_t i = 0; items && i < count; i++)
        if (!(items[i] = (char *)unpack_text(from)))
            from->has_failed = true;
    from->has_failed |= !items;
    return items;
}

static uint32_t edits_read(unpack *from, env_edit **edits)
{
    uint32_t count = count_read(from);

    *edits = calloc(count + 1, sizeof(**edits));
    for (uint32_t i = 0; *edits && i < count; i++)
        if (!((*edits)[i].text = (char *)unpack_text(from)))
            from->has_failed = true;
    from->has_failed |= !*edits;
    return count;
}

static void app_read(unpack *from, app *part)
{
    part->count = unpack_u32(from);
    part->first = unpack_u32(from);
    part->wdir = unpack_text(from);
    part->env_list = unpack_text(from);
    part->env_none = unpack_u32(from);
    part->edit_count = edits_read(from, &part->edits);
    part->argv = texts_read(from);
    from->has_failed |= !part->argv || !part->argv[0];
}

static void runs_read(unpack *from, map *self)
{
    uint32_t r = 0, runs;

    self->ranks = unpack_u32(from);
    runs = count_read(from);
    bool is_long = unpack_u32(from);
    from->has_failed |= self->ranks > RANKS_MAX;
    if (from->has_failed)
        return;
    self->node_of = calloc(self->ranks + 1, sizeof(*self->node_of));
    self->local_of = calloc(self->ranks + 1, sizeof(*self->local_of));
    from->has_failed |= !self->node_of || !self->local_of;
    for (uint32_t i = 0; !from->has_failed && i < runs; i++) {
        uint32_t node = unpack_u32(from), count = is_long ? 1 : unpack_u32(from);
        if (node >= self->node_count || count > self->ranks - r) {
            from->has_failed = true;
            return;
        }
        for (uint32_t end = r + count; r < end; r++) {
            self->node_of[r] = node;
            self->local_of[r] = self->nodes[node].count++;
        }
    }
    from->has_failed |= r != self->ranks;
}

static void map_read(unpack *from, map *self)
{
    self->node_count = count_read(from);
    self->nodes = calloc(self->node_count + 1, sizeof(*self->nodes));
    for (uint32_t i = 0; self->nodes && i < self->node_count; i++)
        if (!(self->nodes[i].name = (char *)unpack_text(from)) || !*self->nodes[i].name)
            from->has_failed = true;
    from->has_failed |= !self->nodes;
    if (!from->has_failed)
        runs_read(from, self);
}

static void slots_read(unpack *from, uint32_t ranks, options *opts)
{
    uint32_t count = count_read(from);

    if (count && !(opts->slots = calloc(ranks + 1, sizeof(*opts->slots))))
        from->has_failed = true;
    for (uint32_t i = 0; i < count && !from->has_failed; i++) {
        uint32_t rank = unpack_u32(from);
        if (rank < ranks)
            opts->slots[rank] = (char *)unpack_text(from);
        else
            from->has_failed = true;
    }
}

static void options_read(unpack *from, uint32_t ranks, options *opts)
{
    opts->agent = unpack_text(from);
    opts->fanout = unpack_u32(from);
    opts->timeout_s = unpack_u32(from) / 1e3;
    opts->env_list = unpack_text(from);
    opts->env_none = unpack_u32(from);
    opts->is_tagged = unpack_u32(from);
    opts->is_bind_reported = unpack_u32(from);
    opts->output = unpack_text(from);
    opts->stdin_to = (int)unpack_u32(from);
    opts->bind = (enum bind_unit)unpack_u32(from);
    opts->map = (enum bind_unit)unpack_u32(from);
    opts->per_rank = unpack_u32(from);
    opts->pmix = (enum pmix_mode)unpack_u32(from);
    from->has_failed |= opts->bind > BIND_SOCKET || opts->map > BIND_SOCKET || opts->pmix > PMIX_MODE_NEVER;
    opts->recovers = unpack_u32(from);
    slots_read(from, ranks, opts);
    opts->edit_count = edits_read(from, &opts->edits);
    opts->app_count = count_read(from);
    opts->apps = calloc(opts->app_count + 1, sizeof(*opts->apps));
    from->has_failed |= !opts->apps;
    for (uint32_t a = 0; !from->has_failed && a < opts->app_count; a++) {
        app_read(from, &opts->apps[a]);
        from->has_failed |= opts->apps[a].first != opts->ranks || opts->apps[a].count > ranks - opts->ranks;
        opts->ranks += opts->apps[a].count; /* at most `ranks`, unless it has failed */
    }
}

int job_desc_unpack(const ctrl_frame *frame, uint32_t node, job_desc *self)
{
    *self = (job_desc){.node = node, .bytes = malloc(frame->bytes + 1), .size = frame->bytes};
    if (!self->bytes)
        return -1;
    memcpy(self->bytes, frame->body, frame->bytes);
    unpack from = {.at = self->bytes, .left = frame->bytes};
    const char *name = unpack_text(&from);
    snprintf(self->name, sizeof(self->name), "%s", name ? name : "");
    self->head = unpack_u32(&from);
    self->directory = (char *)unpack_text(&from);
    map_read(&from, &self->map);
    options_read(&from, self->map.ranks, &self->opts);
    self->environment = texts_read(&from);
    return from.has_failed || !name || !self->directory || self->opts.ranks != self->map.ranks || self->node >= self->map.node_count ||
           self->node == self->head || self->head > self->map.node_count ||
           !self->map.nodes[self->node].count ? -1 : 0;
}

void job_desc_free(job_desc *self)
{
    for (uint32_t a = 0; self->opts.apps && a < self->opts.app_count; a++) {
        free(self->opts.apps[a].edits);
        free(self->opts.apps[a].argv);
    }
    free(self->opts.apps);
    free(self->opts.edits);
    free(self->opts.slots);
    free(self->environment);
    free(self->map.nodes);
    free(self->map.node_of);
    free(self->map.local_of);
    free(self->bytes);
    *self = (job_desc){0};
}
