/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cma: single copies by the kernel (process_vm_readv, process_vm_writev). Whether a pair of processes may do so is tested by reading a
 * known word: containers, ptrace scopes and pid namespaces deny it silently or reach another process.
 */
#ifndef WEFT_TRANSPORTS_SHM_CMA_H
#define WEFT_TRANSPORTS_SHM_CMA_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/segment.h"

/* Publishes the address and value of this process's probe word in the rank page. */
void weft_cma_show(weft_rank_page *page);
/* Reads the peer's probe word; true if the kernel permits it and the value is right. */
bool weft_cma_works(const weft_rank_page *page);
/* Copies all bytes, in several calls if needed. 0; WEFT_E_UNSUPPORTED: denied by the kernel; WEFT_E_KEY: bad address; WEFT_E_PEER: no such
 * process. */
int weft_cma_get(uint32_t pid, void *local, uint64_t remote, uint64_t bytes);
int weft_cma_put(uint32_t pid, const void *local, uint64_t remote, uint64_t bytes);

#endif
