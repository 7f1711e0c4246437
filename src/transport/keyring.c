/* SPDX-License-Identifier: BSD-3-Clause
 *
 * keyring: see keyring.h. An array of entries with a free list; a generation counts the uses of an entry.
 */
#include "transport/keyring.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

typedef struct key_form { /* what stands in weft_key.bytes */
    uint32_t index, generation;
    uint64_t salt;
} key_form;

_Static_assert(sizeof(key_form) == WEFT_KEYRING_KEY_BYTES, "the key's form");

void weft_keyring_open(weft_keyring *ring, uint64_t salt)
{
    *ring = (weft_keyring){.salt = salt, .lock = PTHREAD_MUTEX_INITIALIZER};
}

void weft_keyring_close(weft_keyring *ring)
{
    free(ring->entries);
    *ring = (weft_keyring){0};
}

static int grow(weft_keyring *ring)
{
    uint32_t room = ring->room ? 2 * ring->room : 16;
    weft_keyring_entry *entries = realloc(ring->entries, room * sizeof *entries);
    if (!entries)
        return weft_fail(WEFT_E_NOMEM, "no memory for a table of %u mapped regions", room);
    for (uint32_t i = room; i-- > ring->room;) {
        entries[i] = (weft_keyring_entry){.next_free = ring->first_free};
        ring->first_free = i + 1;
    }
    ring->entries = entries;
    ring->room = room;
    return 0;
}

static int add(weft_keyring *ring, void *addr, uint64_t bytes, uint32_t rights, weft_region *region)
{
    uint64_t at = (uintptr_t)addr;
    if (at + bytes < at)
        return weft_fail(WEFT_E_ARG, "memory at %p cannot be %" PRIu64 " bytes long", addr, bytes);
    if (!ring->first_free) {
        int rc = grow(ring);
        if (rc)
            return rc;
    }
    uint32_t index = ring->first_free - 1;
    weft_keyring_entry *entry = &ring->entries[index];
    ring->first_free = entry->next_free;
    *entry = (weft_keyring_entry){at, bytes, rights, entry->generation + 1, 0, true};
    ring->live++;
    ring->live_bytes += bytes;
    *region = (weft_region){.addr = addr, .bytes = bytes, .rights = rights, .device = (void *)(uintptr_t)(index + 1)};
    key_form form = {index, entry->generation, ring->salt};
    region->key.length = sizeof form;
    memcpy(region->key.bytes, &form, sizeof form);
    return 0;
}

/* The live entry of a key, or NULL. */
static weft_keyring_entry *find(const weft_keyring *ring, const weft_key *key)
{
    key_form form;
    if (!key || key->length != sizeof form)
        return NULL;
    memcpy(&form, key->bytes, sizeof form);
    if (form.salt != ring->salt || form.index >= ring->room)
        return NULL;
    weft_keyring_entry *entry = &ring->entries[form.index];
    return entry->is_live && entry->generation == form.generation ? entry : NULL;
}

static int take_out(weft_keyring *ring, weft_region *region)
{
    weft_keyring_entry *entry = find(ring, &region->key);
    if (!entry)
        return weft_fail(WEFT_E_KEY, "the region at %p is not mapped on this port: it was unmapped before, or belongs to another",
                         region->addr);
    entry->is_live = false;
    entry->next_free = ring->first_free;
    ring->first_free = (uint32_t)(entry - ring->entries) + 1;
    ring->live--;
    ring->live_bytes -= entry->bytes;
    region->device = NULL;
    region->key.length = 0;
    return 0;
}

static int check(const weft_keyring *ring, const weft_key *key, uint64_t addr, uint64_t bytes, uint32_t rights)
{
    const weft_keyring_entry *entry = find(ring, key);
    if (!entry)
        return weft_fail(WEFT_E_KEY, "a remote key is not known to its owner: the memory was unmapped, or it never was a key");
    if (addr < entry->addr || bytes > entry->bytes || addr - entry->addr > entry->bytes - bytes)
        return weft_fail(WEFT_E_KEY, "%" PRIu64 " bytes at 0x%" PRIx64 " are outside the key's %" PRIu64 " bytes at 0x%" PRIx64,
                         bytes, addr, entry->bytes, entry->addr);
    if (rights & ~entry->rights)
        return weft_fail(WEFT_E_KEY, "the key at 0x%" PRIx64 " does not allow to %s", entry->addr,
                         rights & WEFT_RIGHT_WRITE ? "write" : rights & WEFT_RIGHT_READ ? "read" : "use atomics");
    return 0;
}

uint32_t weft_keyring_index(const weft_key *key)
{
    key_form form;
    memcpy(&form, key->bytes, sizeof form);
    return form.index;
}

int weft_keyring_add(weft_keyring *ring, void *addr, uint64_t bytes, uint32_t rights, weft_region *region)
{
    pthread_mutex_lock(&ring->lock);
    int rc = add(ring, addr, bytes, rights, region);
    pthread_mutex_unlock(&ring->lock);
    return rc;
}

int weft_keyring_remove(weft_keyring *ring, weft_region *region)
{
    pthread_mutex_lock(&ring->lock);
    int rc = take_out(ring, region);
    pthread_mutex_unlock(&ring->lock);
    return rc;
}

int weft_keyring_check(weft_keyring *ring, const weft_key *key, uint64_t addr, uint64_t bytes, uint32_t rights)
{
    pthread_mutex_lock(&ring->lock);
    int rc = check(ring, key, addr, bytes, rights);
    pthread_mutex_unlock(&ring->lock);
    return rc;
}
