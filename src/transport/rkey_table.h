/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rkey_table: the memory that an iface has mapped, by key. For transports whose keys are checked by software (self, sim). A key names
 * its entry, the entry's generation and the ring, so that a key that is stale, forged or of another iface is refused.
 * Any thread, at any time between open and close: a helper maps while the worker's own thread checks keys.
 */
#ifndef WEFT_TRANSPORT_RKEY_TABLE_H
#define WEFT_TRANSPORT_RKEY_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/iface.h"

#define WEFT_KEYRING_KEY_BYTES 16

typedef struct weft_rkey_table_entry {
    uint64_t addr, bytes;
    uint32_t rights, generation;
    uint32_t next_free; /* index + 1 of the next free entry, 0 = none */
    bool is_live;
} weft_rkey_table_entry;

typedef struct weft_rkey_table {
    weft_rkey_table_entry *entries;
    uint32_t room, first_free; /* first_free: index + 1, 0 = none */
    uint32_t live;
    uint64_t live_bytes;
    pthread_mutex_t lock;
    uint64_t salt; /* tells the keys of this ring from those of others */
} weft_rkey_table;

void weft_rkey_table_open(weft_rkey_table *ring, uint64_t salt);
void weft_rkey_table_close(weft_rkey_table *ring);
/* Enters memory and fills in the whole region, key included. WEFT_E_NOMEM; WEFT_E_ARG when the range wraps around. */
int weft_rkey_table_add(weft_rkey_table *ring, void *addr, uint64_t bytes, uint32_t rights, weft_mr *mr);
/* Ends a region: its key is refused from now on. WEFT_E_KEY when it is not one of this ring's. */
int weft_rkey_table_remove(weft_rkey_table *ring, weft_mr *mr);
/* May [addr, addr + bytes) be used with these rights under this key? 0 or WEFT_E_KEY with a text that says what was wrong. */
int weft_rkey_table_check(weft_rkey_table *ring, const weft_rkey *rkey, uint64_t addr, uint64_t bytes, uint32_t rights);
/* The place of a key's entry in the table, for a key that was just checked or made; counts from 0. */
uint32_t weft_rkey_table_index(const weft_rkey *rkey);

#endif
