/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nameserver: what ranks have published, at the head. Values are bytes to it.
 *   publish:   u32 range, u32 persistence, u32 count, count x {text key, u32 bytes, bytes}; all or nothing
 *   look up:   u32 waits, u32 count, count x text key;  found: u32 count, count x {u32 rank, text key, u32 bytes, bytes}
 *   unpublish: u32 count, count x text key; 0: all that this rank has published
 */
#ifndef WEFT_MPIRUN_BOARD_H
#define WEFT_MPIRUN_BOARD_H

#include "tools/mpirun/pmix_head.h"

#define NAMESERVER_MAX ((size_t)64 << 20) /* bytes of keys and values */

enum nameserver_range { NAMESERVER_ALL, NAMESERVER_NODE, NAMESERVER_RANK };
enum nameserver_keep { NAMESERVER_KEEP, NAMESERVER_ONCE, NAMESERVER_WHILE_ALIVE };

typedef struct nameserver {
    const map *map;
    pmix_head_callbacks up;
    struct nameserver_item *items;
    struct nameserver_wait *waits;
    size_t bytes;
} nameserver;

void nameserver_open(nameserver *self, const map *map, const pmix_head_callbacks *up);
/* A note of one of the three kinds; the body stays the caller's. */
void nameserver_take(nameserver *self, uint32_t node, const pmix_msg *what);
void nameserver_gone(nameserver *self, uint32_t rank);
uint64_t nameserver_deadlines(nameserver *self, uint64_t now);
void nameserver_close(nameserver *self);

#endif
