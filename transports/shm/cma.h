/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cma: single copies by the kernel (process_vm_readv and _writev). Whether a pair may do so is tried on a real word: containers,
 * ptrace scopes and pid namespaces refuse it silently or reach another process.
 */
#ifndef WEFT_TRANSPORTS_SHM_CMA_H
#define WEFT_TRANSPORTS_SHM_CMA_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/segment.h"

/* Shows our word to the neighbours through the rank page. */
void weft_cma_show(weft_rank_page *page);
/* Reads the neighbour's word: true only if the kernel let us and it is the right one. */
bool weft_cma_works(const weft_rank_page *page);
/* Moves all bytes, however many calls that takes. WEFT_E_UNSUPPORTED when the kernel refuses, WEFT_E_KEY when addresses are bad. */
int weft_cma_get(uint32_t pid, void *local, uint64_t remote, uint64_t bytes);
int weft_cma_put(uint32_t pid, const void *local, uint64_t remote, uint64_t bytes);

#endif
