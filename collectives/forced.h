/* SPDX-License-Identifier: BSD-3-Clause
 *
 * forced: the algorithms that the knob WEFT_COLL prescribes, before those that select.c chooses. Called by choice.h.
 * Requires worker->lock.
 */
#ifndef WEFT_COLLECTIVES_FORCED_H
#define WEFT_COLLECTIVES_FORCED_H

#include "collectives/select.h"

/* Number of prescriptions; 0: every choice is free. */
extern uint32_t weft_coll_forced_count;

/* Reads a text: entries `operation=algorithm[:MIN-[MAX]]` separated by commas or lines, or @ and the name of a file of such lines (#: a
 * comment). MIN, MAX: bytes as weft_coll_bytes counts them, with K, M, G. Names are compared by letters and digits alone. Later entries
 * win. Replaces what was read before. Returns the number of wrong entries, each with a line in the log if is_loud. */
uint32_t weft_coll_forced_read(const char *text, bool is_loud);
/* Reads the knob, once in a process. is_loud: this rank reports what is wrong in it. */
void weft_coll_forced_open(bool is_loud);
/* The prescribed rule for this query; NULL: none, or it may not be used for this call, which is in the log once. */
const weft_coll_rule *weft_coll_forced(const weft_coll_query *query);

#endif
