/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rkey_table: registered memory of an iface by remote key. For transports that check keys in software (self, sim). A key holds the
 * index of its entry, the entry's generation and the salt of the table: stale, forged and foreign keys are refused.
 * Thread-safe between open and close: the registration helper adds regions while a worker's thread checks keys.
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
    uint32_t next_free; /* index + 1 of the next free entry; 0: none */
    bool is_live;
} weft_rkey_table_entry;

typedef struct weft_rkey_table {
    weft_rkey_table_entry *entries;
    uint32_t capacity, first_free; /* capacity in entries; first free entry: index + 1, 0: none */
    uint32_t live;             /* registered regions */
    uint64_t live_bytes;       /* their bytes */
    pthread_mutex_t lock;      /* guards all above */
    uint64_t salt;             /* part of each key: distinguishes this table from others */
} weft_rkey_table;

/* Initializes an empty table; cannot fail. `salt` should differ between tables. */
void weft_rkey_table_open(weft_rkey_table *table, uint64_t salt);
void weft_rkey_table_close(weft_rkey_table *table);
/* Adds a region and fills in *mr, key included. WEFT_E_NOMEM; WEFT_E_ARG: the range wraps around. */
int weft_rkey_table_add(weft_rkey_table *table, void *addr, uint64_t bytes, uint32_t rights, weft_mr *mr);
/* Removes a region and invalidates its key. WEFT_E_KEY: not in this table. */
int weft_rkey_table_remove(weft_rkey_table *table, weft_mr *mr);
/* Checks that the key allows these rights on [addr, addr + bytes). 0, or WEFT_E_KEY with a text (weft_fail). */
int weft_rkey_table_check(weft_rkey_table *table, const weft_rkey *rkey, uint64_t addr, uint64_t bytes, uint32_t rights);
/* Index of the key's entry, from 0. Requires a key that was just checked or added. */
uint32_t weft_rkey_table_index(const weft_rkey *rkey);

#endif
