/* SPDX-License-Identifier: BSD-3-Clause
 *
 * boot_singleton: boot of a process without a launcher: a job of one. It has a segment of one rank, so upper layers need no special case.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/knob.h"
#include "base/log.h"
#include "base/status.h"
#include "launch/boot_internal.h"

typedef struct pair {
    struct pair *next;
    size_t bytes;
    char *key;
    unsigned char value[];
} pair;

typedef struct singleton {
    weft_boot boot;
    pair *pairs; /* keys that were put; only this rank reads them */
} singleton;

static int singleton_put(weft_boot *boot, const char *key, const void *value, size_t bytes)
{
    singleton *self = (singleton *)boot;
    pair *item = malloc(sizeof(*item) + bytes + strlen(key) + 1);

    if (!item)
        return weft_fail(WEFT_E_NOMEM, "no memory for the %zu bytes of key %s", bytes, key);
    item->bytes = bytes;
    item->key = (char *)item->value + bytes;
    memcpy(item->value, value, bytes);
    strcpy(item->key, key);
    item->next = self->pairs;
    self->pairs = item;
    return WEFT_OK;
}

static int singleton_commit(weft_boot *boot)
{
    (void)boot;
    return WEFT_OK;
}

static int singleton_get(weft_boot *boot, uint32_t rank, const char *key, void *value, size_t *bytes)
{
    if (rank != 0)
        return weft_fail(WEFT_E_RANK, "get of key %s of rank %u in a job of one rank", key, rank);
    for (pair *item = ((singleton *)boot)->pairs; item; item = item->next) {
        if (strcmp(item->key, key))
            continue;
        if (item->bytes > *bytes)
            return weft_fail(WEFT_E_TOOLARGE, "key %s has %zu bytes, more than the caller's %zu", key, item->bytes, *bytes);
        memcpy(value, item->value, item->bytes);
        *bytes = item->bytes;
        return WEFT_OK;
    }
    return weft_fail(WEFT_E_ARG, "the key %s was not put", key);
}

static void __attribute__((noreturn)) singleton_abort(weft_boot *boot, int code, const char *text)
{
    (void)boot;
    if (text && *text)
        weft_log_error("%s", text);
    _exit(code & 0xff || !code ? code & 0xff : 1);
}

static void singleton_finalize(weft_boot *boot)
{
    singleton *self = (singleton *)boot;

    for (pair *item = self->pairs, *next; item; item = next) {
        next = item->next;
        free(item);
    }
    if (boot->has_segment)
        weft_segment_close(&boot->segment);
    free(self);
}

static const weft_boot_ops singleton_ops = {
    .name = "singleton",
    .put = singleton_put,
    .commit = singleton_commit,
    .get = singleton_get,
    .fence = singleton_commit,
    .abort = singleton_abort,
    .finalize = singleton_finalize,
};

int weft_boot_singleton(weft_boot **boot)
{
    singleton *self = calloc(1, sizeof(*self));

    if (!self)
        return weft_fail(WEFT_E_NOMEM, "no memory for the description of the job");
    weft_boot *b = &self->boot;
    b->ops = &singleton_ops;
    weft_boot_host(b->host, sizeof(b->host));
    snprintf(b->job_name, sizeof(b->job_name), "weft-%.128s-%ld-%llx", b->host, (long)getpid(),
             (unsigned long long)weft_clock_ns());
    b->job = weft_boot_env_hash(b->job_name);
    b->size = b->nodes = b->local_size = 1;
    b->segment.fd = -1;
    /* without shared memory the job goes on: self needs none */
    b->has_segment = weft_knob.segment != WEFT_SEGMENT_OFF && weft_segment_make(1, b->job, 0, &b->segment) == WEFT_OK;
    if (b->has_segment) {
        weft_rank_page *page = weft_segment_rank(&b->segment, 0);
        atomic_store_explicit(&page->pid, (uint32_t)getpid(), memory_order_relaxed);
        atomic_store_explicit(&page->state, WEFT_RANK_INIT, memory_order_relaxed);
    }
    *boot = b;
    return WEFT_OK;
}
