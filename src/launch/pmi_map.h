/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_map: which ranks share a node, from what a PMI launcher tells. Pure arithmetic; boot_pmi asks.
 */
#ifndef WEFT_LAUNCH_PMI_MAP_H
#define WEFT_LAUNCH_PMI_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* Reads PMI_process_mapping, "(vector,(first node,nodes,ranks on each),...)", which begins anew at its end while ranks are left: place[r]
 * becomes the launcher's number of the node of rank r. False when it is not of this form. */
bool weft_pmi_map_parse(const char *text, uint32_t size, uint64_t *place);
/* Ranks with equal places stand on one node. Nodes are numbered from 0 by their lowest ranks, and ranks within each by rising rank. Gives
 * the number of nodes; 0: no memory. */
uint32_t weft_pmi_map_count(const uint64_t *place, uint32_t size, uint32_t *node_of, uint32_t *local_of);

#endif
