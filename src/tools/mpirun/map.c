/* SPDX-License-Identifier: BSD-3-Clause
 *
 * map: see map.h. Without hosts all ranks are placed on this machine. By slot, consecutive ranks share a host; more ranks than slots are
 * distributed in proportion to the slots.
 */
#include "tools/mpirun/map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/mpirun/cpuslot.h"
#include "tools/mpirun/report.h"

/* Sets the host row of each rank, filling hosts in order. */
static void by_slot(const host_list *hosts, uint32_t ranks, uint32_t *row_of)
{
    uint64_t slots = 0, before = 0;

    for (uint32_t h = 0; h < hosts->count; h++)
        slots += hosts->rows[h].slots;
    for (uint32_t h = 0; h < hosts->count; h++) {
        uint64_t from = before, to = before += hosts->rows[h].slots;
        if (ranks > slots) {
            from = from * ranks / slots;
            to = to * ranks / slots;
        }
        for (uint64_t r = from; r < to && r < ranks; r++)
            row_of[r] = h;
    }
}

/* Round-robin over hosts with free slots; then over all hosts. */
static void by_node(const host_list *hosts, uint32_t ranks, uint32_t *row_of)
{
    for (uint32_t r = 0, turn = 0, max = 0; r < ranks; turn++) {
        for (uint32_t h = 0; h < hosts->count; h++)
            max = hosts->rows[h].slots > max ? hosts->rows[h].slots : max;
        for (uint32_t h = 0; h < hosts->count && r < ranks; h++)
            if (turn < hosts->rows[h].slots || turn >= max)
                row_of[r++] = h;
    }
}

/* Parses slot=CPUS behind the host's name. */
static int slot_read(options *opts, const char *path, uint32_t line, uint32_t rank, const char *text)
{
    const char *cpus = strchr(text, '=');

    if (!cpus++ || (strncmp(text, "slot=", 5) && strncmp(text, "slots=", 6)))
        return report(2, "%s:%u: rank %u: only slot=CPUS may follow the host name, not '%s'", path, line, rank, text);
    if (!cpuslot_is_sound(cpus))
        return report(2, "%s:%u: rank %u: CPUs are written as 0-3 (cores), 1:0-2 (cores of socket 1), 1:* or *, not '%s'", path, line,
                        rank, cpus);
    if (!strcmp(cpus, "*")) /* Open MPI: any CPU */
        return 0;
    if (!opts->slots && !(opts->slots = calloc(opts->ranks, sizeof(*opts->slots))))
        return report(1, "out of memory");
    opts->slots[rank] = strdup(cpus);
    return opts->slots[rank] ? 0 : report(1, "out of memory");
}

static int rankfile_line(options *opts, const char *path, uint32_t line, char *text, uint32_t *row_of)
{
    char name[256], rest[256] = "";
    unsigned rank, number;
    int end = 0;

    text[strcspn(text, "#\r\n")] = '\0';
    if (!text[strspn(text, " \t")])
        return 0;
    int found = sscanf(text, " rank %u = %255s %255s", &rank, name, rest);
    if (found < 2)
        return report(2, "%s:%u: a line is 'rank N=HOST' or 'rank N=HOST slot=CPUS', not '%s'", path, line, text);
    if (rank >= opts->ranks)
        return report(2, "%s:%u: the ranks are 0 to %u", path, line, opts->ranks - 1);
    if (row_of[rank] != UINT32_MAX)
        return report(2, "%s:%u: rank %u is listed twice", path, line, rank);
    host_row *row = hosts_find(&opts->hosts, name);
    if (!row && sscanf(name, "+n%5u%n", &number, &end) == 1 && !name[end]) { /* "+nK": the K-th host of the list */
        if (number >= opts->hosts.count)
            return report(2, "%s:%u: rank %u: there are %u hosts and no %s", path, line, rank, opts->hosts.count, name);
        row = &opts->hosts.rows[number];
    }
    if (!row && opts->allocation)
        return report(2, "%s:%u: host %s is not in %s", path, line, name, opts->allocation);
    if (!row && (hosts_add(&opts->hosts, path, name) || !(row = hosts_find(&opts->hosts, name))))
        return 2;
    if (!row->is_resolved)
        hosts_resolve(&opts->hosts, false); /* a new row; the order of the others stays */
    row_of[rank] = (uint32_t)(row - opts->hosts.rows);
    return found > 2 ? slot_read(opts, path, line, rank, rest) : 0;
}

static int rankfile_open(const options *opts, FILE **file)
{
    *file = fopen(opts->rankfile, "re");
    return *file ? 0 : report(2, "--rankfile: cannot read %s: %s", opts->rankfile, strerror(errno));
}

/* One program without -n: the number of ranks is that in the rankfile. */
static int rankfile_count(const options *opts, uint32_t *count)
{
    FILE *file;
    char *text = NULL;
    size_t capacity = 0;
    unsigned rank;
    int rc = rankfile_open(opts, &file);

    if (rc)
        return rc;
    while (getline(&text, &capacity, file) >= 0)
        if (sscanf(text, " rank %u =", &rank) == 1 && rank < RANKS_MAX && rank >= *count)
            *count = rank + 1;
    free(text);
    fclose(file);
    return 0;
}

static int by_file(options *opts, uint32_t *row_of)
{
    FILE *file;
    char *text = NULL;
    size_t capacity = 0;
    uint32_t line = 0;
    int rc = rankfile_open(opts, &file);

    if (rc)
        return rc;
    for (uint32_t r = 0; r < opts->ranks; r++)
        row_of[r] = UINT32_MAX;
    while (!rc && getline(&text, &capacity, file) >= 0)
        rc = rankfile_line(opts, opts->rankfile, ++line, text, row_of);
    for (uint32_t r = 0; r < opts->ranks && !rc; r++)
        if (row_of[r] == UINT32_MAX)
            rc = report(2, "--rankfile: %s does not list rank %u", opts->rankfile, r);
    free(text);
    fclose(file);
    return rc;
}

/* Places -N ranks of each part on each host in turn, from the first host on. */
static void by_count(const options *opts, const app *part, uint32_t *row_of)
{
    for (uint32_t i = 0; i < part->count; i++)
        row_of[part->first + i] = i / part->per_node % opts->hosts.count;
}

static int nodes_make(const options *opts, const uint32_t *row_of, map *self)
{
    const host_list *hosts = &opts->hosts;
    uint32_t *node_of_row = malloc(hosts->count * sizeof(*node_of_row));

    self->nodes = calloc(hosts->count, sizeof(*self->nodes));
    if (!node_of_row || !self->nodes) {
        free(node_of_row);
        return report(1, "out of memory");
    }
    for (uint32_t h = 0; h < hosts->count; h++) {
        node_of_row[h] = UINT32_MAX;
        for (uint32_t r = 0; r < self->ranks && node_of_row[h] == UINT32_MAX; r++)
            if (row_of[r] == h)
                node_of_row[h] = self->node_count++;
        if (node_of_row[h] != UINT32_MAX)
            self->nodes[node_of_row[h]] = (map_node){.name = strdup(hosts->rows[h].name), .is_here = hosts->rows[h].is_here};
    }
    int rc = 0;
    for (uint32_t r = 0; r < self->ranks; r++) {
        map_node *node = &self->nodes[self->node_of[r] = node_of_row[row_of[r]]];
        self->local_of[r] = node->count++;
        if (!node->name)
            rc = report(1, "out of memory");
        else if (node->count == HOST_RANKS_MAX + 1)
            rc = report(2, "more than %d ranks on host %s", HOST_RANKS_MAX, node->name);
        if (rc)
            break;
    }
    free(node_of_row);
    return rc;
}

static int counts_set(options *opts)
{
    uint64_t slots = 0;
    int rc = 0;

    for (uint32_t h = 0; h < opts->hosts.count; h++)
        slots += opts->hosts.rows[h].slots;
    opts->ranks = 0;
    for (uint32_t a = 0; a < opts->app_count; a++) {
        app *part = &opts->apps[a];
        if (!part->is_counted && part->per_node)
            part->count = part->per_node * opts->hosts.count;
        else if (!part->is_counted && opts->app_count == 1 && opts->rankfile)
            rc = rankfile_count(opts, &part->count);
        else if (!part->is_counted && opts->app_count == 1 && opts->has_hosts)
            part->count = (uint32_t)slots;
        part->first = opts->ranks;
        opts->ranks += part->count;
    }
    return rc;
}

int map_make(options *opts, map *self)
{
    int rc = 0;

    *self = (map){0};
    if (!opts->hosts.count && (rc = hosts_add(&opts->hosts, "--host", "localhost")))
        return rc;
    hosts_resolve(&opts->hosts, false);
    if ((rc = counts_set(opts)))
        return rc;
    if (opts->ranks > RANKS_MAX || (opts->hosts.count == 1 && opts->ranks > HOST_RANKS_MAX && !opts->rankfile))
        return report(2, "%u ranks: at most %d run on one machine and %d in a job", opts->ranks, HOST_RANKS_MAX, RANKS_MAX);
    if (opts->stdin_to >= (int)opts->ranks)
        return report(2, "--stdin %d: the ranks are 0 to %u", opts->stdin_to, opts->ranks - 1);
    uint32_t *row_of = calloc(opts->ranks, sizeof(*row_of));
    self->ranks = opts->ranks;
    self->node_of = calloc(self->ranks, sizeof(*self->node_of));
    self->local_of = calloc(self->ranks, sizeof(*self->local_of));
    if (!row_of || !self->node_of || !self->local_of)
        rc = report(1, "out of memory");
    else if (opts->rankfile)
        rc = by_file(opts, row_of);
    else if (opts->is_by_node)
        by_node(&opts->hosts, opts->ranks, row_of);
    else
        by_slot(&opts->hosts, opts->ranks, row_of);
    for (uint32_t a = 0; a < opts->app_count && !rc && !opts->rankfile; a++)
        if (opts->apps[a].per_node)
            by_count(opts, &opts->apps[a], row_of);
    if (!rc)
        rc = nodes_make(opts, row_of, self);
    free(row_of);
    return rc;
}

uint32_t *map_ranks(const map *self, uint32_t node)
{
    uint32_t *ranks = malloc((self->nodes[node].count + 1) * sizeof(*ranks)), count = 0;

    for (uint32_t r = 0; ranks && r < self->ranks; r++)
        if (self->node_of[r] == node)
            ranks[count++] = r;
    return ranks;
}

void map_free(map *self)
{
    for (uint32_t i = 0; i < self->node_count; i++)
        free(self->nodes[i].name);
    free(self->nodes);
    free(self->node_of);
    free(self->local_of);
    *self = (map){0};
}
