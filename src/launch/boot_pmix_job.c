/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_pmix_job: reads rank, size, nodes and node-local ranks from the PMIx server. Answers are checked against each other: ranks that
 * disagree about their node would wait for each other forever, so a contradiction is an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "launch/boot_internal.h"
#include "launch/boot_pmix_internal.h"
#include "launch/pmi_map.h"

static bool number_get(weft_pmix_client *self, uint32_t rank, const char *key, uint32_t *number)
{
    pmix_value_t *value;

    if (weft_pmix_value_get(self, rank, key, weft_pmix_deadline(), &value) != PMIX_SUCCESS)
        return false;
    bool is_known = true;
    switch (value->type) {
    case PMIX_UINT16:
        *number = value->data.uint16;
        break;
    case PMIX_UINT32:
        *number = value->data.uint32;
        break;
    case PMIX_PROC_RANK:
        *number = value->data.rank;
        break;
    case PMIX_INT:
        *number = (uint32_t)value->data.integer;
        break;
    case PMIX_SIZE:
        *number = (uint32_t)value->data.size;
        break;
    default:
        is_known = false;
    }
    weft_pmix_value_free(value);
    return is_known;
}

bool weft_pmix_text_get(weft_pmix_client *self, uint32_t rank, const char *key, char *text, size_t capacity)
{
    pmix_value_t *value;

    if (weft_pmix_value_get(self, rank, key, weft_pmix_deadline(), &value) != PMIX_SUCCESS)
        return false;
    bool is_text = value->type == PMIX_STRING && value->data.string && strlen(value->data.string) < capacity;
    if (is_text)
        strcpy(text, value->data.string);
    weft_pmix_value_free(value);
    return is_text;
}

static int rank_compare(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return left < right ? -1 : left > right;
}

/* Parses "0,2,1,3", in the launcher's order. Sets *place to this rank's index in it if listed. */
static int locals_parse(weft_pmix_client *self, const char *text, uint32_t *place)
{
    weft_boot *b = &self->boot;

    for (const char *at = text; *at; at += *at == ',') {
        char *end;
        unsigned long rank = strtoul(at, &end, 10);
        if (end == at || (*end && *end != ','))
            return weft_fail(WEFT_E_OTHER, "the launcher's list of ranks on this node is \"%.100s\": this is not a list of numbers", text);
        if (rank >= b->size || b->local_size == b->size)
            return weft_fail(WEFT_E_OTHER, "the launcher lists rank %lu on this node, in a job of %u ranks", rank, b->size);
        if (rank == b->rank)
            *place = b->local_size;
        self->locals[b->local_size++] = (uint32_t)rank;
        at = end;
    }
    return WEFT_OK;
}

/* Checks PMIX_LOCAL_SIZE and PMIX_LOCAL_RANK against the list. PMIX_LOCAL_RANK must be this rank's index by ascending rank, as PMIx
 * defines it, or in the launcher's unsorted list. */
static int locals_check(weft_pmix_client *self, uint32_t place, const char *list)
{
    weft_boot *b = &self->boot;
    uint32_t listed;

    for (uint32_t i = 1; i < b->local_size; i++)
        if (self->locals[i] == self->locals[i - 1])
            return weft_fail(WEFT_E_OTHER, "the launcher lists rank %u twice on this node (PMIX_LOCAL_PEERS \"%.100s\")", self->locals[i],
                             list);
    if (number_get(self, PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, &listed) && listed != b->local_size)
        return weft_fail(WEFT_E_OTHER,
                         "the launcher's data are contradictory: %u ranks are on the node of rank %u (PMIX_LOCAL_SIZE), "
                         "and the list is \"%.100s\" (PMIX_LOCAL_PEERS)", listed, b->rank, list);
    if (number_get(self, b->rank, PMIX_LOCAL_RANK, &listed) && listed != b->local_rank && listed != place)
        return weft_fail(WEFT_E_OTHER,
                         "the launcher's data are contradictory: rank %u is number %u on its node (PMIX_LOCAL_RANK), and "
                         "the list is \"%.100s\" (PMIX_LOCAL_PEERS)", b->rank, listed, list);
    return WEFT_OK;
}

/* Reads the ranks of this node, sorted, so that all of them agree on the order without communication. Without a list from the launcher
 * this rank is alone on its node. */
static int locals_read(weft_pmix_client *self)
{
    weft_boot *b = &self->boot;
    pmix_value_t *value = NULL;
    const char *list = "";
    uint32_t place = UINT32_MAX;
    int rc = WEFT_OK;

    self->locals = calloc(b->size, sizeof(*self->locals));
    if (!self->locals)
        return weft_fail(WEFT_E_NOMEM, "no memory for the list of %u ranks", b->size);
    if (weft_pmix_value_get(self, PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS, weft_pmix_deadline(), &value) != PMIX_SUCCESS)
        value = NULL;
    else if (value->type == PMIX_STRING && value->data.string)
        rc = locals_parse(self, list = value->data.string, &place);
    if (!rc && b->local_size == 0) {
        self->locals[b->local_size++] = b->rank;
    } else if (!rc && place == UINT32_MAX) {
        rc = weft_fail(WEFT_E_OTHER, "the launcher's list of ranks on this node lacks this one (rank %u, PMIX_LOCAL_PEERS \"%.100s\")",
                       b->rank, list);
    } else if (!rc) {
        qsort(self->locals, b->local_size, sizeof(*self->locals), rank_compare);
        while (self->locals[b->local_rank] != b->rank)
            b->local_rank++;
        rc = locals_check(self, place, list);
    }
    if (value)
        weft_pmix_value_free(value);
    self->locals_hash = 0xcbf29ce484222325u; /* FNV-1a, by ranks */
    for (uint32_t i = 0; i < b->local_size; i++)
        self->locals_hash = (self->locals_hash ^ self->locals[i]) * 0x100000001b3u;
    return rc;
}

/* node_ids[r] = 1 + index of its node in PMIx_Resolve_nodes: one call for each node. False: unsupported, or not each rank exactly once. */
static bool node_ids_resolve(weft_pmix_client *self, uint64_t *node_ids)
{
    uint32_t size = self->boot.size, known = 0, node = 0;
    char *names = NULL, *save = NULL;
    bool is_sound = true;

    if (!self->pmix.resolve_nodes || !self->pmix.resolve_peers || self->pmix.resolve_nodes(self->me.nspace, &names) != PMIX_SUCCESS ||
        !names)
        return false;
    memset(node_ids, 0, size * sizeof(*node_ids));
    for (char *name = strtok_r(names, ",", &save); name && is_sound; name = strtok_r(NULL, ",", &save)) {
        pmix_proc_t *procs = NULL;
        size_t count = 0;
        is_sound = self->pmix.resolve_peers(name, self->me.nspace, &procs, &count) == PMIX_SUCCESS;
        node++;
        for (size_t i = 0; i < count && is_sound; i++, known++) {
            is_sound = procs[i].rank < size && !node_ids[procs[i].rank];
            if (is_sound)
                node_ids[procs[i].rank] = node;
        }
        free(procs);
    }
    free(names);
    return is_sound && known == size;
}

/* node_ids[r] = PMIX_NODEID, which may number a pool wider than the job. */
static bool node_ids_read(weft_pmix_client *self, uint64_t *node_ids)
{
    uint32_t node;

    for (uint32_t r = 0; r < self->boot.size; r++) {
        if (!number_get(self, r, PMIX_NODEID, &node) || node == UINT32_MAX)
            return false;
        node_ids[r] = node;
    }
    return true;
}

/* node_ids[r] = hash of PMIX_HOSTNAME: Slurm 22.05 has PMIX_NODEID for ranks of this node only, on every node, so all ranks come here. */
static int node_ids_by_host(weft_pmix_client *self, uint64_t *node_ids)
{
    char host[256];

    for (uint32_t r = 0; r < self->boot.size; r++) {
        if (!weft_pmix_text_get(self, r, PMIX_HOSTNAME, host, sizeof(host)))
            return weft_fail(WEFT_E_OTHER, "start-up: the launcher's PMIx server has no node of rank %u", r);
        node_ids[r] = weft_boot_env_hash(host);
    }
    return WEFT_OK;
}

/* Checks the list of this node's ranks against the nodes of all ranks. */
static int local_ranks_check(const weft_pmix_client *self)
{
    const weft_boot *b = &self->boot;
    uint32_t next = 0;

    for (uint32_t r = 0; r < b->size; r++) {
        bool is_listed = next < b->local_size && self->locals[next] == r;
        next += is_listed;
        if (is_listed != (b->node_of[r] == b->node))
            return weft_fail(WEFT_E_OTHER,
                             "the launcher's data are contradictory: rank %u is %s on rank %u's node (PMIX_LOCAL_PEERS), and by its own "
                             "node (PMIX_NODEID, PMIX_HOSTNAME) it is %s", r, is_listed ? "listed" : "not listed", b->rank,
                             is_listed ? "elsewhere" : "there");
    }
    return WEFT_OK;
}

static int nodes_read(weft_pmix_client *self)
{
    weft_boot *b = &self->boot;
    int rc = WEFT_OK;

    b->nodes = 1;
    if (b->local_size == b->size)
        return WEFT_OK;
    self->node_of = calloc(b->size, sizeof(*self->node_of));
    self->local_of = calloc(b->size, sizeof(*self->local_of));
    uint64_t *node_ids = self->node_of && self->local_of ? calloc(b->size, sizeof(*node_ids)) : NULL;
    if (!node_ids)
        return weft_fail(WEFT_E_NOMEM, "no memory for the map of %u ranks", b->size);
    if (!node_ids_resolve(self, node_ids) && !node_ids_read(self, node_ids))
        rc = node_ids_by_host(self, node_ids);
    if (!rc) {
        b->nodes = weft_pmi_map_count(node_ids, b->size, self->node_of, self->local_of);
        if (!b->nodes)
            rc = weft_fail(WEFT_E_NOMEM, "no memory for the map of %u ranks", b->size);
    }
    free(node_ids);
    if (rc)
        return rc;
    b->node = self->node_of[b->rank];
    b->node_of = self->node_of;
    b->local_of = self->local_of;
    return local_ranks_check(self);
}

int weft_pmix_job_read(weft_pmix_client *self)
{
    weft_boot *b = &self->boot;

    snprintf(b->job_name, sizeof(b->job_name), "%.255s", self->me.nspace);
    b->job = weft_boot_env_hash(b->job_name);
    b->rank = self->me.rank;
    if (!number_get(self, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &b->size) || b->rank >= b->size)
        return weft_fail(WEFT_E_OTHER, "start-up: the launcher's PMIx server has no size of job %s",
                         b->job_name);
    if (!number_get(self, PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE, &b->universe))
        b->universe = 0;
    if (!number_get(self, b->rank, PMIX_APPNUM, &b->app))
        b->app = 0;
    if (!weft_pmix_text_get(self, b->rank, PMIX_HOSTNAME, b->host, sizeof(b->host)))
        weft_boot_host(b->host, sizeof(b->host));
    int rc = locals_read(self);
    return rc ? rc : nodes_read(self);
}
