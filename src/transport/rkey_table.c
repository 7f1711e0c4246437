/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rkey_table: see rkey_table.h. An array of entries with a free list. An entry's generation grows each time the entry is used.
 */
#include "transport/rkey_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

typedef struct key_form { /* layout of weft_rkey.bytes */
    uint32_t index, generation;
    uint64_t salt;
} key_form;

_Static_assert(sizeof(key_form) == WEFT_KEYRING_KEY_BYTES, "the key's form");

void weft_rkey_table_open(weft_rkey_table *table, uint64_t salt)
{
    *table = (weft_rkey_table){.salt = salt, .lock = PTHREAD_MUTEX_INITIALIZER};
}

void weft_rkey_table_close(weft_rkey_table *table)
{
    free(table->entries);
    *table = (weft_rkey_table){0};
}

static int grow(weft_rkey_table *table)
{
    uint32_t capacity = table->capacity ? 2 * table->capacity : 16;
    weft_rkey_table_entry *entries = realloc(table->entries, capacity * sizeof *entries);
    if (!entries)
        return weft_fail(WEFT_E_NOMEM, "no memory for a table of %u mapped regions", capacity);
    for (uint32_t i = capacity; i-- > table->capacity;) {
        entries[i] = (weft_rkey_table_entry){.next_free = table->first_free};
        table->first_free = i + 1;
    }
    table->entries = entries;
    table->capacity = capacity;
    return 0;
}

static int add(weft_rkey_table *table, void *addr, uint64_t bytes, uint32_t rights, weft_mr *mr)
{
    uint64_t at = (uintptr_t)addr;
    if (at + bytes < at)
        return weft_fail(WEFT_E_ARG, "memory at %p cannot be %" PRIu64 " bytes long", addr, bytes);
    if (!table->first_free) {
        int rc = grow(table);
        if (rc)
            return rc;
    }
    uint32_t index = table->first_free - 1;
    weft_rkey_table_entry *entry = &table->entries[index];
    table->first_free = entry->next_free;
    *entry = (weft_rkey_table_entry){at, bytes, rights, entry->generation + 1, 0, true};
    table->live++;
    table->live_bytes += bytes;
    *mr = (weft_mr){.addr = addr, .bytes = bytes, .rights = rights, .device = (void *)(uintptr_t)(index + 1)};
    key_form form = {index, entry->generation, table->salt};
    mr->rkey.length = sizeof form;
    memcpy(mr->rkey.bytes, &form, sizeof form);
    return 0;
}

/* The live entry of a key; NULL: none. */
static weft_rkey_table_entry *find(const weft_rkey_table *table, const weft_rkey *rkey)
{
    key_form form;
    if (!rkey || rkey->length != sizeof form)
        return NULL;
    memcpy(&form, rkey->bytes, sizeof form);
    if (form.salt != table->salt || form.index >= table->capacity)
        return NULL;
    weft_rkey_table_entry *entry = &table->entries[form.index];
    return entry->is_live && entry->generation == form.generation ? entry : NULL;
}

static int take_out(weft_rkey_table *table, weft_mr *mr)
{
    weft_rkey_table_entry *entry = find(table, &mr->rkey);
    if (!entry)
        return weft_fail(WEFT_E_KEY, "the memory at %p is not registered with this iface: it was deregistered, or belongs to another",
                         mr->addr);
    entry->is_live = false;
    entry->next_free = table->first_free;
    table->first_free = (uint32_t)(entry - table->entries) + 1;
    table->live--;
    table->live_bytes -= entry->bytes;
    mr->device = NULL;
    mr->rkey.length = 0;
    return 0;
}

static int check(const weft_rkey_table *table, const weft_rkey *rkey, uint64_t addr, uint64_t bytes, uint32_t rights)
{
    const weft_rkey_table_entry *entry = find(table, rkey);
    if (!entry)
        return weft_fail(WEFT_E_KEY, "a remote key is invalid: its memory was deregistered, or it never was a key");
    if (addr < entry->addr || bytes > entry->bytes || addr - entry->addr > entry->bytes - bytes)
        return weft_fail(WEFT_E_KEY, "%" PRIu64 " bytes at 0x%" PRIx64 " are outside the key's %" PRIu64 " bytes at 0x%" PRIx64,
                         bytes, addr, entry->bytes, entry->addr);
    if (rights & ~entry->rights)
        return weft_fail(WEFT_E_KEY, "the key at 0x%" PRIx64 " does not allow to %s", entry->addr,
                         rights & WEFT_ACCESS_WRITE ? "write" : rights & WEFT_ACCESS_READ ? "read" : "use atomics");
    return 0;
}

uint32_t weft_rkey_table_index(const weft_rkey *rkey)
{
    key_form form;
    memcpy(&form, rkey->bytes, sizeof form);
    return form.index;
}

int weft_rkey_table_add(weft_rkey_table *table, void *addr, uint64_t bytes, uint32_t rights, weft_mr *mr)
{
    pthread_mutex_lock(&table->lock);
    int rc = add(table, addr, bytes, rights, mr);
    pthread_mutex_unlock(&table->lock);
    return rc;
}

int weft_rkey_table_remove(weft_rkey_table *table, weft_mr *mr)
{
    pthread_mutex_lock(&table->lock);
    int rc = take_out(table, mr);
    pthread_mutex_unlock(&table->lock);
    return rc;
}

int weft_rkey_table_check(weft_rkey_table *table, const weft_rkey *rkey, uint64_t addr, uint64_t bytes, uint32_t rights)
{
    pthread_mutex_lock(&table->lock);
    int rc = check(table, rkey, addr, bytes, rights);
    pthread_mutex_unlock(&table->lock);
    return rc;
}
