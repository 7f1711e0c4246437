/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words: *device words*, the elements of 8 bytes at their natural alignment in the memory of a member whose key allows atomics of a device
 * that is atomic with itself only (key.h, amo NIC). Accumulates on them are performed by this device alone: members on other nodes
 * reach it by their connections (device_amo.c); the member itself, and who has its memory mapped and the same device, by the contract's
 * amo_self; all others send a message to the member. Elements of other sizes and places are changed by CPUs as everywhere (atomic.h). So
 * no location is changed in two ways. Requires worker->lock.
 */
#ifndef WEFT_RMA_WORDS_H
#define WEFT_RMA_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "rma/atomic.h"
#include "rma/operation.h"
#include "rma/window.h"

/* By which this process changes the device words of another member, whose memory it has mapped. */
typedef struct weft_rma_words {
    weft_iface *iface;
    weft_mr mr; /* of the member's memory, registered with own device, which is the member's */
} weft_rma_words;

/* May accumulates of this basic type change device words of the target? Decided by type alone, so that all accumulates of an origin on a
 * location go one way, in their order. */
static inline bool weft_rma_has_words(const weft_window_target *target, const weft_type *basic)
{
    return target->has_device_words && basic->size == 8 && basic->class_ != WEFT_CLASS_PAIR;
}

/* Can this process change the device words of a target whose memory it has mapped? The answer never changes. False: send a message. */
bool weft_rma_words_reach(weft_window *window, uint32_t rank);
/* Frees what weft_rma_words_reach has made. */
void weft_rma_words_close(weft_window *window);
/* Slow paths of weft_rma_accumulate_at and weft_rma_swap_at. */
int weft_rma_words_accumulate(weft_window *window, uint32_t rank, const weft_rma_update *update);
int weft_rma_words_swap(weft_window *window, uint32_t rank, const weft_type *basic, char *at, const void *compare, const void *swap,
                        void *result);

/* As in atomic.h, on memory of a target that is mapped here, by the device where that changes it (then weft_rma_words_reach is true). 0 or
 * an error of the device: some elements may be changed. */
static inline int weft_rma_accumulate_at(weft_window *window, uint32_t rank, const weft_rma_update *update)
{
    const weft_window_target *target = &window->targets[rank];
    if (weft_unlikely(weft_rma_has_words(target, update->basic)))
        return weft_rma_words_accumulate(window, rank, update);
    weft_rma_accumulate(target->control, update);
    return 0;
}

static inline int weft_rma_swap_at(weft_window *window, uint32_t rank, const weft_type *basic, char *at, const void *compare,
                                   const void *swap, void *result)
{
    const weft_window_target *target = &window->targets[rank];
    if (weft_unlikely(weft_rma_has_words(target, basic)))
        return weft_rma_words_swap(window, rank, basic, at, compare, swap, result);
    weft_rma_compare_and_swap(target->control, basic, at, compare, swap, result);
    return 0;
}

#endif
