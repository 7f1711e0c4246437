/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot: the boot of a simulated rank. Keys, fences and aborts are in the run's memory. There is no segment: ranks of a node share memory
 * through the iface.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/status.h"
#include "test/transports/sim/run.h"

typedef struct pair {
    weft_list_link link;
    uint32_t rank;
    char key[64];
    size_t bytes;
    uint8_t value[];
} pair;

static int boot_put(weft_boot *boot, const char *key, const void *value, size_t bytes)
{
    pair *made = malloc(sizeof *made + bytes);
    if (!made)
        return weft_fail(WEFT_E_NOMEM, "no memory for the key %s", key);
    made->rank = boot->rank;
    snprintf(made->key, sizeof made->key, "%s", key);
    made->bytes = bytes;
    memcpy(made->value, value, bytes);
    weft_list_append(&sim_run_now()->pairs, &made->link);
    return 0;
}

static int boot_commit(weft_boot *boot)
{
    (void)boot;
    return 0;
}

static pair *find(sim_run *run, uint32_t rank, const char *key)
{
    for (weft_list_link *link = run->pairs.next; link != &run->pairs; link = link->next) {
        pair *one = weft_container(link, pair, link);
        if (one->rank == rank && strcmp(one->key, key) == 0)
            return one;
    }
    return NULL;
}

static int boot_get(weft_boot *boot, uint32_t rank, const char *key, void *value, size_t *bytes)
{
    sim_run *run = sim_run_now();
    pair *one;
    (void)boot;
    while (!(one = find(run, rank, key)))
        sim_run_yield(run, "a key of another rank");
    if (*bytes < one->bytes)
        return weft_fail(WEFT_E_ARG, "key %s of rank %u has %zu bytes, the buffer %zu", key, rank, one->bytes, *bytes);
    memcpy(value, one->value, one->bytes);
    *bytes = one->bytes;
    return 0;
}

static int boot_fence(weft_boot *boot)
{
    sim_run *run = sim_run_now();
    uint32_t generation = run->fence_generation;
    if (++run->fence_came == boot->size) {
        run->fence_came = 0;
        run->fence_generation++;
    }
    while (run->fence_generation == generation)
        sim_run_yield(run, "a fence of all ranks");
    return 0;
}

static __attribute__((noreturn)) void boot_abort(weft_boot *boot, int code, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "rank %u: %s", boot->rank, text ? text : "aborted");
    sim_run_abort(sim_run_now(), code, full);
}

static int boot_stage(weft_boot *boot, uint32_t rank, bool anew)
{
    (void)boot, (void)anew;
    return (int)sim_run_now()->stages[rank];
}

static void boot_set_stage(weft_boot *boot, uint32_t state) { sim_run_now()->stages[boot->rank] = state; }

static void boot_finish(weft_boot *boot)
{
    boot_set_stage(boot, WEFT_RANK_FINAL);
    free(boot);
}

weft_boot *sim_boot_new(void)
{
    static const weft_boot_ops ops = {.name = "sim", .put = boot_put, .commit = boot_commit, .get = boot_get, .fence = boot_fence,
                                      .stage = boot_stage, .set_stage = boot_set_stage, .abort = boot_abort, .finalize = boot_finish};
    sim_run *run = sim_run_now();
    weft_boot *boot = run && run->now ? calloc(1, sizeof *boot) : NULL;
    if (!boot)
        return NULL;
    uint32_t rank = run->now->rank, size = run->config->ranks, per_node = run->config->ranks_per_node;
    if (!per_node || per_node > size)
        per_node = size;
    boot->ops = &ops;
    run->stages[rank] = WEFT_RANK_INIT;
    snprintf(boot->job_name, sizeof boot->job_name, "sim-%" PRIu64, run->config->seed);
    boot->job = run->config->seed * 2 + 1;
    boot->rank = rank;
    boot->size = size;
    boot->universe = size;
    boot->node = rank / per_node;
    boot->nodes = (size + per_node - 1) / per_node;
    boot->local_rank = rank % per_node;
    boot->local_size = boot->node + 1 == boot->nodes ? size - boot->node * per_node : per_node;
    if (boot->nodes > 1) {
        boot->node_of = run->node_of;
        boot->local_of = run->local_of;
    }
    snprintf(boot->host, sizeof boot->host, "sim%u", boot->node);
    boot->segment.fd = -1;
    const weft_sim_net *net = run->config->net;
    boot->fabric_ops = net ? net->ops : &weft_sim_ops;
    boot->fabric = net ? (void *)(uintptr_t)net->fabric : run->sim;
    boot->sleep_ops = &sim_rest;
    return boot;
}

void sim_pairs_free(sim_run *run)
{
    weft_list_link *link;
    while ((link = weft_list_take(&run->pairs)))
        free(weft_container(link, pair, link));
}
