/* SPDX-License-Identifier: BSD-3-Clause
 *
 * board: what ranks have published, at the head. Values are bytes to it.
 *   publish:   u32 range, u32 persistence, u32 count, count x {text key, u32 bytes, bytes}; all or nothing
 *   look up:   u32 waits, u32 count, count x text key;  found: u32 count, count x {u32 rank, text key, u32 bytes, bytes}
 *   unpublish: u32 count, count x text key; 0: all that this rank has published
 */
#ifndef WEFT_MPIRUN_BOARD_H
#define WEFT_MPIRUN_BOARD_H

#include "tools/mpirun/hub.h"

#define BOARD_MAX ((size_t)64 << 20) /* bytes of keys and values */

enum board_range { BOARD_ALL, BOARD_NODE, BOARD_RANK };
enum board_keep { BOARD_KEEP, BOARD_ONCE, BOARD_WHILE_ALIVE };

typedef struct board {
    const map *map;
    hub_up up;
    struct board_item *items;
    struct board_wait *waits;
    size_t bytes;
} board;

void board_open(board *self, const map *map, const hub_up *up);
/* A note of one of the three kinds; the body stays the caller's. */
void board_take(board *self, uint32_t node, const note *what);
void board_gone(board *self, uint32_t rank);
uint64_t board_deadlines(board *self, uint64_t now);
void board_close(board *self);

#endif
