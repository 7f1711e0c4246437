/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmix_nspace: the job data registered with libpmix. Maps of nodes and ranks are the same on all nodes, the rest is of this node. libpmix
 * derives from the maps what a client asks about other ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/mpirun/pmix_srv_internal.h"

#define ITEMS_MAX 24

/* Growing list of attributes; values point at memory that the caller keeps. */
typedef struct info_list {
    pmix_info_t *items;
    size_t count;
} info_list;

static pmix_value_t *info_add(info_list *list, const char *key, pmix_data_type_t type)
{
    pmix_info_t *item = &list->items[list->count++];

    memset(item, 0, sizeof(*item));
    snprintf(item->key, sizeof(item->key), "%s", key);
    item->value.type = type;
    return &item->value;
}

static void info_text(info_list *list, const char *key, const char *text)
{
    info_add(list, key, PMIX_STRING)->data.string = (char *)text;
}

static void info_u32(info_list *list, const char *key, uint32_t value)
{
    info_add(list, key, PMIX_UINT32)->data.uint32 = value;
}

static void info_u16(info_list *list, const char *key, uint16_t value)
{
    info_add(list, key, PMIX_UINT16)->data.uint16 = value;
}

static void info_rank(info_list *list, const char *key, uint32_t rank)
{
    info_add(list, key, PMIX_PROC_RANK)->data.rank = rank;
}

/* Attributes of one rank, program or node. */
typedef struct inner_list {
    pmix_info_t items[8];
    pmix_data_array_t array;
} inner_list;

static void info_inner(info_list *list, const char *key, inner_list *inner, size_t count)
{
    inner->array = (pmix_data_array_t){.type = PMIX_INFO, .size = count, .array = inner->items};
    info_add(list, key, PMIX_DATA_ARRAY)->data.darray = &inner->array;
}

/* "a,b,c", the nodes; and "0,1;2,3;4", the ranks of each. NULL: out of memory. */
static char *nodes_text(const pmix_srv *self)
{
    pack text = {0};

    if (self->map->node_count == 1)
        return strdup(self->host);
    for (uint32_t i = 0; i < self->map->node_count; i++) {
        pack_bytes(&text, ",", i != 0);
        pack_bytes(&text, self->map->nodes[i].name, strlen(self->map->nodes[i].name));
    }
    pack_bytes(&text, "", 1);
    return text.bytes.bytes;
}

static int node_ranks_add(const pmix_srv *self, uint32_t node, pack *to)
{
    uint32_t *ranks = map_ranks(self->map, node);
    char one[16];

    for (uint32_t i = 0; ranks && i < self->map->nodes[node].count; i++)
        pack_bytes(to, one, (size_t)sprintf(one, "%s%u", i ? "," : "", ranks[i]));
    free(ranks);
    return ranks ? 0 : -1;
}

static char *ranks_text(const pmix_srv *self, uint32_t first, uint32_t end)
{
    pack text = {0};

    for (uint32_t i = first; i < end; i++) {
        pack_bytes(&text, ";", i != first);
        text.has_failed |= node_ranks_add(self, i, &text) != 0;
    }
    pack_bytes(&text, "", 1);
    if (text.has_failed)
        buffer_free(&text.bytes);
    return text.bytes.bytes;
}

static void rank_describe(const pmix_srv *self, const options *opts, uint32_t rank, info_list *list)
{
    uint32_t a = 0, node = self->map->node_of[rank];

    while (rank >= opts->apps[a].first + opts->apps[a].count)
        a++;
    info_rank(list, PMIX_RANK, rank);
    info_rank(list, PMIX_GLOBAL_RANK, rank);
    info_rank(list, PMIX_APP_RANK, rank - opts->apps[a].first);
    info_u32(list, PMIX_APPNUM, a);
    info_u16(list, PMIX_LOCAL_RANK, (uint16_t)self->map->local_of[rank]);
    info_u16(list, PMIX_NODE_RANK, (uint16_t)self->map->local_of[rank]);
    info_u32(list, PMIX_NODEID, node);
    info_text(list, PMIX_HOSTNAME, self->map->node_count == 1 ? self->host : self->map->nodes[node].name);
}

static void node_describe(const pmix_srv *self, uint32_t leader, const char *peers, info_list *job)
{
    uint32_t here = self->map->nodes[self->node].count;

    info_u32(job, PMIX_NUM_NODES, self->map->node_count);
    info_u32(job, PMIX_NODE_SIZE, here);
    info_u32(job, PMIX_LOCAL_SIZE, here);
    info_rank(job, PMIX_LOCALLDR, leader);
    info_u32(job, PMIX_NODEID, self->node);
    info_text(job, PMIX_LOCAL_PEERS, peers);
    info_text(job, PMIX_HOSTNAME, self->host);
    info_text(job, PMIX_NSDIR, self->dir);
    info_text(job, PMIX_TMPDIR, self->dir);
}

static pmix_status_t job_describe(pmix_srv *self, const options *opts, const char *nodes, const char *procs, const char *peers)
{
    size_t parts = (size_t)self->ranks + opts->app_count + self->map->node_count;
    inner_list *inner = calloc(parts, sizeof(*inner));
    info_list job = {.items = calloc(ITEMS_MAX + parts, sizeof(*job.items))};
    pmix_status_t status = PMIX_ERR_NOMEM;
    pmix_call call;

    if (!inner || !job.items)
        goto end;
    info_text(&job, PMIX_JOBID, self->job);
    info_u32(&job, PMIX_JOB_SIZE, self->ranks);
    info_u32(&job, PMIX_UNIV_SIZE, self->ranks);
    info_u32(&job, PMIX_MAX_PROCS, self->ranks);
    info_u32(&job, PMIX_NUM_SLOTS, self->ranks);
    info_u32(&job, PMIX_JOB_NUM_APPS, opts->app_count);
    info_rank(&job, PMIX_NPROC_OFFSET, 0);
    node_describe(self, (uint32_t)strtoul(peers, NULL, 10), peers, &job);
    info_text(&job, PMIX_NODE_MAP, nodes);
    info_text(&job, PMIX_PROC_MAP, procs);
    for (uint32_t i = 0; i < opts->app_count; i++) {
        info_list one = {.items = inner[i].items};
        info_u32(&one, PMIX_APPNUM, i);
        info_u32(&one, PMIX_APP_SIZE, opts->apps[i].count);
        info_rank(&one, PMIX_APPLDR, opts->apps[i].first);
        info_inner(&job, PMIX_APP_INFO_ARRAY, &inner[i], one.count);
    }
    for (uint32_t n = 0; n < self->map->node_count; n++) { /* without it clients do not get other nodes' numbers */
        inner_list *place = &inner[opts->app_count + n];
        info_list one = {.items = place->items};
        info_text(&one, PMIX_HOSTNAME, self->map->node_count == 1 ? self->host : self->map->nodes[n].name);
        info_u32(&one, PMIX_NODEID, n);
        info_u32(&one, PMIX_NODE_SIZE, self->map->nodes[n].count);
        info_inner(&job, PMIX_NODE_INFO_ARRAY, place, one.count);
    }
    for (uint32_t r = 0; r < self->ranks; r++) {
        inner_list *place = &inner[opts->app_count + self->map->node_count + r];
        info_list one = {.items = place->items};
        rank_describe(self, opts, r, &one);
        info_inner(&job, PMIX_PROC_DATA, place, one.count);
    }
    pmix_call_begin(&call);
    status = pmix_call_wait(&call, self->pmix.register_nspace(self->job, (int)self->map->nodes[self->node].count, job.items, job.count,
                                                              pmix_call_ended, &call));
end:
    free(inner);
    free(job.items);
    return status;
}

int pmix_nspace_register(pmix_srv *self, const options *opts)
{
    char *nodes = NULL, *procs = NULL, *names = nodes_text(self), *all = ranks_text(self, 0, self->map->node_count);
    char *peers = ranks_text(self, self->node, self->node + 1);
    pmix_status_t status = names && all && peers ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
    pmix_proc_t proc;

    if (status == PMIX_SUCCESS)
        status = self->pmix.generate_regex(names, &nodes);
    if (status == PMIX_SUCCESS)
        status = self->pmix.generate_ppn(all, &procs);
    if (status == PMIX_SUCCESS)
        status = job_describe(self, opts, nodes, procs, peers);
    memcpy(proc.nspace, self->job, sizeof(proc.nspace));
    for (uint32_t r = 0; r < self->ranks && status == PMIX_SUCCESS; r++) {
        pmix_call call;
        if (self->map->node_of[r] != self->node)
            continue;
        proc.rank = r;
        pmix_call_begin(&call);
        status = pmix_call_wait(&call, self->pmix.register_client(&proc, getuid(), getgid(), NULL, pmix_call_ended, &call));
    }
    free(nodes);
    free(procs);
    free(names);
    free(all);
    free(peers);
    return status == PMIX_SUCCESS ? 0 : pmix_srv_failed(self, "describing the job", status);
}
