/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words: see words.h. Sums of integers are additions by the device; every other operator is a loop: compute from the value seen, then
 * compare and swap by the device, until the word did not change in between.
 */
#include "rma/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/worker.h"
#include "rma/device_state.h"
#include "rma/keys.h"
#include "type/runs.h"

#define WORD 8u
#define BATCH 32u /* words given to the device at one time; on the stack */

enum { OP_SUM = 0x21, OP_REPLACE = 0x3c, OP_NO_OP = 0x3d };

/* -- ways -- */

/* Memory of a member of the node: own device serves if it is that member's. The lock is kept meanwhile: else another thread's accumulate
 * might go by message, and its next one pass that. NULL: it does not serve. */
static weft_rma_words *make(weft_window *window, uint32_t rank)
{
    const weft_window_target *target = &window->targets[rank];
    const weft_window_key *key = &window->device->keys[rank];
    weft_iface *iface = weft_window_network(window->worker);
    weft_rma_words *words = NULL;
    if (!iface || !weft_window_key_fits(key, iface) || !key->device || key->device != iface->caps.amo_device ||
        !weft_window_has_loopback(iface))
        return NULL;
    words = calloc(1, sizeof *words);
    if (!words || iface->ops->mr_reg(iface, target->mapped, target->bytes, WEFT_ACCESS_ATOMIC, WEFT_MEMORY_HOST, &words->mr)) {
        free(words);
        return NULL;
    }
    words->iface = iface;
    return words;
}

bool weft_rma_words_reach(weft_window *window, uint32_t rank)
{
    weft_window_target *target = &window->targets[rank];
    if (rank == window->rank)
        return true;
    if (!target->words && !target->words_by_message) {
        target->words = make(window, rank);
        target->words_by_message = !target->words;
        weft_log_debug("window: target %u: accumulates of 8-byte elements by %s", rank,
                       target->words ? "own requests to its device" : "messages");
    }
    return target->words;
}

void weft_rma_words_close(weft_window *window)
{
    for (uint32_t i = 0; i < window->size; i++) {
        weft_rma_words *words = window->targets[i].words;
        window->targets[i].words = NULL;
        if (words)
            words->iface->ops->mr_dereg(words->iface, &words->mr);
        free(words);
    }
}

/* -- changes -- */

/* Words one after the other in memory that this process's device reaches. */
typedef struct stretch {
    weft_iface *iface;
    const weft_rkey *rkey;
    const weft_op *op;
    const weft_type *basic;
    uint64_t *at;
    uint32_t count; /* at most BATCH */
} stretch;

static weft_atomic atomic_on(const stretch *self, uint32_t i, enum weft_amo_op op, uint64_t *before)
{
    return (weft_atomic){.op = op, .remote = (uintptr_t)(self->at + i), .rkey = self->rkey, .before = before};
}

/* operand NULL: 0. */
static int add(const stretch *self, const char *operand, uint64_t *before)
{
    weft_atomic atomics[BATCH];
    for (uint32_t i = 0; i < self->count; i++) {
        atomics[i] = atomic_on(self, i, WEFT_AMO_ADD, &before[i]);
        if (operand)
            memcpy(&atomics[i].operand, operand + i * WORD, WORD);
    }
    return self->iface->ops->amo_self(self->iface, atomics, self->count);
}

static uint64_t next_of(const stretch *self, uint64_t have, const char *operand)
{
    uint64_t with;
    memcpy(&with, operand, WORD);
    if (self->op->handle == OP_REPLACE)
        return with;
    weft_op_apply(self->op, self->basic, &with, &have, 1);
    return have;
}

/* before[i]: a guess, until the device has found it there. */
static int loop(const stretch *self, const char *operand, uint64_t *before)
{
    weft_atomic atomics[BATCH];
    uint64_t found[BATCH];
    uint32_t left = self->count, which[BATCH];
    int rc = 0;
    for (uint32_t i = 0; i < left; i++) {
        which[i] = i;
        before[i] = __atomic_load_n(&self->at[i], __ATOMIC_RELAXED);
    }
    while (left && !rc) {
        uint32_t again = 0;
        for (uint32_t i = 0; i < left; i++) {
            atomics[i] = atomic_on(self, which[i], WEFT_AMO_CAS, &found[i]);
            atomics[i].compare = before[which[i]];
            atomics[i].operand = next_of(self, before[which[i]], operand + which[i] * WORD);
        }
        rc = self->iface->ops->amo_self(self->iface, atomics, left);
        for (uint32_t i = 0; i < left && !rc; i++) {
            uint32_t word = which[i];
            if (found[i] == before[word])
                continue;
            before[word] = found[i];
            which[again++] = word;
        }
        left = again;
    }
    return rc;
}

/* The device's way to the words of a target; at and count are not set. */
static stretch begin(weft_window *window, uint32_t rank)
{
    const weft_rma_words *words = window->targets[rank].words;
    bool is_own = rank == window->rank;
    return (stretch){.iface = is_own ? window->device->iface : words->iface,
                     .rkey = is_own ? &window->device->mr.rkey : &words->mr.rkey};
}

static int change(weft_window *window, stretch *self, char *at, const char *operand, char *result, uint64_t count)
{
    bool adds = self->op->handle == OP_NO_OP || (self->op->handle == OP_SUM && weft_rma_is_counted(self->basic));
    uint64_t before[BATCH];
    for (uint64_t done = 0; done < count; done += self->count) {
        const char *with = operand ? operand + done * WORD : NULL;
        int rc;
        self->at = (uint64_t *)(void *)at + done;
        self->count = count - done < BATCH ? (uint32_t)(count - done) : BATCH;
        rc = adds ? add(self, with, before) : loop(self, with, before);
        if (rc)
            return rc;
        if (result)
            memcpy(result + done * WORD, before, self->count * WORD);
    }
    window->worker->counters[WEFT_COUNT_DEVICE_WORDS] += count;
    return 0;
}

int weft_rma_words_accumulate(weft_window *window, uint32_t rank, const weft_rma_update *update)
{
    const char *operand = update->operand;
    char *result = update->result;
    stretch self = begin(window, rank);
    weft_runs runs;
    int rc = 0;
    self.op = update->op;
    self.basic = update->basic;
    weft_runs_begin(&runs, update->target_type, update->at, update->count, update->skip, update->bytes);
    while (!rc && update->bytes && weft_runs_next(&runs)) {
        uint64_t count = runs.bytes / WORD;
        if (weft_rma_is_word(update->basic, (uintptr_t)runs.at))
            rc = change(window, &self, runs.at, operand, result, count);
        else
            weft_rma_accumulate(window->targets[rank].control,
                                &(weft_rma_update){.op = update->op, .basic = update->basic, .target_type = update->basic, .at = runs.at,
                                                   .count = count, .bytes = runs.bytes, .operand = operand, .result = result});
        operand = operand ? operand + runs.bytes : NULL;
        result = result ? result + runs.bytes : NULL;
    }
    return rc;
}

int weft_rma_words_swap(weft_window *window, uint32_t rank, const weft_type *basic, char *at, const void *compare, const void *swap,
                        void *result)
{
    stretch self = begin(window, rank);
    weft_atomic atomic;
    uint64_t before;
    int rc;
    if (!weft_rma_is_word(basic, (uintptr_t)at)) {
        weft_rma_compare_and_swap(window->targets[rank].control, basic, at, compare, swap, result);
        return 0;
    }
    self.at = (uint64_t *)(void *)at;
    atomic = atomic_on(&self, 0, WEFT_AMO_CAS, &before);
    memcpy(&atomic.compare, compare, WORD);
    memcpy(&atomic.operand, swap, WORD);
    rc = self.iface->ops->amo_self(self.iface, &atomic, 1);
    if (rc)
        return rc;
    window->worker->counters[WEFT_COUNT_DEVICE_WORDS]++;
    memcpy(result, &before, WORD);
    return 0;
}
