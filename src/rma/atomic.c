/* SPDX-License-Identifier: BSD-3-Clause
 *
 * atomic: see atomic.h.
 */
#include "rma/atomic.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/world.h"
#include "type/pack.h"
#include "type/runs.h"

#define BATCH 64          /* elements changed while the lock is held */
#define SPINS 200         /* looks before a thread yields: the holder may need this CPU */
#define LONG_NS UINT64_C(10000000000)
#define ELEMENT_MAX 32    /* bytes of a basic element */

enum { OP_SUM = 0x21, OP_BAND = 0x28, OP_BOR = 0x29, OP_BXOR = 0x2a, OP_REPLACE = 0x3c, OP_NO_OP = 0x3d };

/* -- the lock of elements that no instruction changes: the holder's owner number, or 0 -- */

/* Of this process: 1 + its rank on the node. */
static inline uint32_t own_number(void)
{
    const weft_world *world = weft_world_now;
    return world ? world->boot->local_rank + 1 : 1;
}

/* The holder's process has died, and the job goes on (mpirun --enable-recovery). */
static bool is_dead(uint32_t holder)
{
    const weft_segment *segment = weft_world_now ? &weft_world_now->boot->segment : NULL;
    return segment && segment->hdr && segment->hdr->recovers && holder && holder <= segment->hdr->ranks &&
           atomic_load_explicit(&weft_segment_rank(segment, holder - 1)->state, memory_order_acquire) == WEFT_RANK_DEAD;
}

static __attribute__((noinline)) void lock_wait(_Atomic uint32_t *lock)
{
    uint64_t since = weft_clock_ns();
    uint32_t holder;
    for (uint32_t looks = 1;; looks++) {
        holder = atomic_load_explicit(lock, memory_order_relaxed);
        if ((!holder || (looks % SPINS == 0 && is_dead(holder))) &&
            atomic_compare_exchange_weak_explicit(lock, &holder, own_number(), memory_order_acquire, memory_order_relaxed)) {
            if (holder) /* the dead one */
                weft_log_warn("local rank %u has died inside of an accumulate: the elements that it was changing may be wrong", holder - 1);
            return;
        }
        if (looks % SPINS)
            continue;
        sched_yield();
        if (weft_clock_ns() - since > LONG_NS)
            weft_log_once(WEFT_LOG_ERROR, "an accumulate waits for 10 s for a process that has not ended its own: "
                          "was it stopped or killed?");
    }
}

static inline void lock_take(_Atomic uint32_t *lock)
{
    uint32_t free = 0;
    if (weft_unlikely(!atomic_compare_exchange_strong_explicit(lock, &free, own_number(), memory_order_acquire, memory_order_relaxed)))
        lock_wait(lock);
}

static inline void lock_give(_Atomic uint32_t *lock) { atomic_store_explicit(lock, 0, memory_order_release); }

/* One element in packed form; a pair is spread to its members' places (MPI 5.0 6.9.4). */
static void locked_element(const weft_op *op, const weft_type *basic, char *at, const char *operand, char *result)
{
    _Alignas(16) char spread[ELEMENT_MAX];
    if (result)
        weft_pack(basic, at, 1, 0, (uint64_t)basic->size, result);
    if (op->handle == OP_NO_OP)
        return;
    if (op->handle == OP_REPLACE) {
        weft_unpack(basic, at, 1, 0, (uint64_t)basic->size, operand);
        return;
    }
    weft_unpack(basic, spread, 1, 0, (uint64_t)basic->size, operand);
    weft_op_apply(op, basic, spread, at, 1);
}

static void locked_run(weft_window_control *control, const weft_op *op, const weft_type *basic, char *at, const char *operand,
                       char *result, uint64_t count)
{
    uint64_t size = (uint64_t)basic->size;
    for (uint64_t i = 0; i < count;) {
        uint64_t end = count - i < BATCH ? count : i + BATCH;
        lock_take(&control->accumulate);
        for (; i < end; i++)
            locked_element(op, basic, at + i * size, operand ? operand + i * size : NULL, result ? result + i * size : NULL);
        lock_give(&control->accumulate);
    }
}

/* -- atomic instructions -- */

typedef union word { /* of any type with this many bytes */
    uint64_t u8;
    uint32_t u4;
    uint16_t u2;
    uint8_t u1;
    double f8;
    float f4;
} word;

/* How an element is changed: an instruction of its own, or a loop with compare-and-exchange. */
enum way { WAY_LOAD, WAY_STORE, WAY_ADD, WAY_AND, WAY_OR, WAY_XOR, WAY_ADD_FLOAT, WAY_LOOP };

static enum way way_of(const weft_op *op, const weft_type *basic)
{
    switch (op->handle) {
    case OP_NO_OP: return WAY_LOAD;
    case OP_REPLACE: return WAY_STORE;
    case OP_SUM:
        if (weft_rma_is_counted(basic))
            return WAY_ADD;
        return basic->class_ == WEFT_CLASS_FLOAT && basic->size >= 4 ? WAY_ADD_FLOAT : WAY_LOOP;
    case OP_BAND: return WAY_AND;
    case OP_BOR: return WAY_OR;
    case OP_BXOR: return WAY_XOR;
    default: return WAY_LOOP;
    }
}

static inline void add_float(word *value, const word *operand, uint64_t size)
{
    if (size == 8)
        value->f8 = operand->f8 + value->f8;
    else
        value->f4 = operand->f4 + value->f4;
}

/* old = the element before it is changed. */
#define LOOP(n, T, change)                                                                                                         \
    {                                                                                                                              \
        word next;                                                                                                                 \
        old = __atomic_load_n(place, __ATOMIC_RELAXED);                                                                            \
        do {                                                                                                                       \
            next.u##n = old;                                                                                                       \
            change;                                                                                                                \
        } while (!__atomic_compare_exchange_n(place, &old, next.u##n, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));                  \
    }                                                                                                                              \
    break

#define RUN_OF(n, T)                                                                                                               \
    static void run_##n(const weft_op *op, const weft_type *basic, char *at, const char *operand, char *result, uint64_t count)   \
    {                                                                                                                              \
        enum way way = way_of(op, basic);                                                                                          \
        for (uint64_t i = 0; i < count; i++) {                                                                                     \
            T *place = (T *)(void *)at + i, old;                                                                                   \
            word with = {0};                                                                                                       \
            if (way != WAY_LOAD)                                                                                                   \
                memcpy(&with, operand + i * n, n);                                                                                 \
            switch (way) {                                                                                                         \
            case WAY_LOAD: old = __atomic_load_n(place, __ATOMIC_ACQUIRE); break;                                                  \
            case WAY_STORE: old = __atomic_exchange_n(place, with.u##n, __ATOMIC_ACQ_REL); break;                                  \
            case WAY_ADD: old = __atomic_fetch_add(place, with.u##n, __ATOMIC_ACQ_REL); break;                                     \
            case WAY_AND: old = __atomic_fetch_and(place, with.u##n, __ATOMIC_ACQ_REL); break;                                     \
            case WAY_OR: old = __atomic_fetch_or(place, with.u##n, __ATOMIC_ACQ_REL); break;                                       \
            case WAY_XOR: old = __atomic_fetch_xor(place, with.u##n, __ATOMIC_ACQ_REL); break;                                     \
            case WAY_ADD_FLOAT: LOOP(n, T, add_float(&next, &with, n));                                                            \
            default: LOOP(n, T, weft_op_apply(op, basic, &with, &next, 1));                                                        \
            }                                                                                                                      \
            if (result)                                                                                                            \
                memcpy(result + i * n, &old, n);                                                                                   \
        }                                                                                                                          \
    }
RUN_OF(1, uint8_t)
RUN_OF(2, uint16_t)
RUN_OF(4, uint32_t)
RUN_OF(8, uint64_t)

/* count basic elements, one after the other in memory. */
static void run(weft_window_control *control, const weft_rma_update *update, char *at, const char *operand, char *result, uint64_t count)
{
    const weft_op *op = update->op;
    const weft_type *basic = update->basic;
    if (!weft_rma_is_word(basic, (uintptr_t)at)) {
        locked_run(control, op, basic, at, operand, result, count);
        return;
    }
    switch (basic->size) {
    case 1: run_1(op, basic, at, operand, result, count); break;
    case 2: run_2(op, basic, at, operand, result, count); break;
    case 4: run_4(op, basic, at, operand, result, count); break;
    default: run_8(op, basic, at, operand, result, count);
    }
}

/* A pair with gaps is several runs: the place of each is that of its first byte. */
static void accumulate_pairs(weft_window_control *control, const weft_rma_update *update)
{
    uint64_t size = (uint64_t)update->basic->size;
    for (uint64_t done = 0; done + size <= update->bytes; done += size) {
        weft_runs runs;
        weft_runs_begin(&runs, update->target_type, update->at, update->count, update->skip + done, size);
        weft_runs_next(&runs);
        run(control, update, runs.at, update->operand ? (const char *)update->operand + done : NULL,
            update->result ? (char *)update->result + done : NULL, 1);
    }
}

void weft_rma_accumulate(weft_window_control *control, const weft_rma_update *update)
{
    const char *operand = update->operand;
    char *result = update->result;
    uint64_t size = (uint64_t)update->basic->size;
    weft_runs runs;
    if (!update->bytes)
        return;
    if (update->target_type->is_dense) {
        run(control, update, update->at + update->skip, operand, result, update->bytes / size);
        return;
    }
    if (update->basic->class_ == WEFT_CLASS_PAIR) {
        accumulate_pairs(control, update);
        return;
    }
    weft_runs_begin(&runs, update->target_type, update->at, update->count, update->skip, update->bytes);
    while (weft_runs_next(&runs)) {
        run(control, update, runs.at, operand, result, runs.bytes / size);
        operand = operand ? operand + runs.bytes : NULL;
        result = result ? result + runs.bytes : NULL;
    }
}

#define SWAP_OF(n, T)                                                                                                              \
    case n: {                                                                                                                      \
        T old, next;                                                                                                               \
        memcpy(&old, compare, n);                                                                                                  \
        memcpy(&next, swap, n);                                                                                                    \
        __atomic_compare_exchange_n((T *)(void *)at, &old, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);                       \
        memcpy(result, &old, n);                                                                                                   \
        return;                                                                                                                    \
    }

void weft_rma_compare_and_swap(weft_window_control *control, const weft_type *basic, char *at, const void *compare, const void *swap,
                               void *result)
{
    uint64_t size = (uint64_t)basic->size;
    bool is_equal;
    if (weft_rma_is_word(basic, (uintptr_t)at)) {
        switch (size) {
            SWAP_OF(1, uint8_t)
            SWAP_OF(2, uint16_t)
            SWAP_OF(4, uint32_t)
            SWAP_OF(8, uint64_t)
        }
    }
    lock_take(&control->accumulate);
    is_equal = !memcmp(at, compare, size);
    memcpy(result, at, size);
    if (is_equal)
        memcpy(at, swap, size);
    lock_give(&control->accumulate);
}
