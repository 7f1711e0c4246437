/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nameserver: key-value store of published names, at the head; called by pmix_head. Values are opaque bytes. Bodies of messages:
 * publish: u32 range, u32 persistence, u32 count, count x {text key, u32 bytes, bytes}; all or nothing
 * lookup: u32 waits, u32 count, count x text key; reply: u32 count, count x {u32 rank, text key, u32 bytes, bytes}
 * unpublish: u32 count, count x text key; count 0: all keys of this rank
 */
#ifndef WEFT_MPIRUN_NAMESERVER_H
#define WEFT_MPIRUN_NAMESERVER_H

#include "tools/mpirun/map.h"
#include "tools/mpirun/pmix_msg.h"

#define NAMESERVER_MAX ((size_t)64 << 20) /* bytes of all keys and values */

enum nameserver_range { NAMESERVER_RANGE_JOB, NAMESERVER_RANGE_NODE, NAMESERVER_RANGE_RANK };
enum nameserver_persist { NAMESERVER_PERSIST_JOB, NAMESERVER_PERSIST_FIRST_READ, NAMESERVER_PERSIST_RANK };

typedef struct nameserver {
    const map *map;
    pmix_msg_sender up;
    struct nameserver_item *items;
    struct nameserver_wait *waits;
    size_t bytes;
} nameserver;

void nameserver_open(nameserver *self, const map *map, const pmix_msg_sender *up);
/* Handles a publish, lookup or unpublish message of a node; the body stays the caller's. Replies by up.send, possibly later. */
void nameserver_handle(nameserver *self, uint32_t node, const pmix_msg *what);
void nameserver_rank_ended(nameserver *self, uint32_t rank);
uint64_t nameserver_deadlines(nameserver *self, uint64_t now);
void nameserver_close(nameserver *self);

#endif
