/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pmi_map: node map from PMI_process_mapping or from any numbering of nodes. Pure functions. Called by boot_pmi and boot_pmix_job.
 */
#ifndef WEFT_LAUNCH_PMI_MAP_H
#define WEFT_LAUNCH_PMI_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* Parses PMI_process_mapping, "(vector,(first node,nodes,ranks on each),...)", which repeats until all ranks are placed. node_ids[r]: the
 * launcher's number of the node of rank r. False: not of this form. */
bool weft_pmi_map_parse(const char *text, uint32_t size, uint64_t *node_ids);
/* Fills node_of and local_of. Ranks with equal places share a node; nodes are numbered from 0 by their lowest rank, ranks of a node in
 * ascending order. Returns the number of nodes; 0: out of memory. */
uint32_t weft_pmi_map_count(const uint64_t *node_ids, uint32_t size, uint32_t *node_of, uint32_t *local_of);

#endif
