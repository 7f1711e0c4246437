/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctrl_pack: see ctrl_pack.h.
 */
#include "tools/mpirun/ctrl_pack.h"

#include <endian.h>
#include <string.h>

void pack_bytes(pack *self, const void *bytes, size_t count)
{
    self->has_failed |= buffer_add(&self->bytes, bytes, count) != 0;
}

void pack_u32(pack *self, uint32_t value)
{
    value = htole32(value);
    pack_bytes(self, &value, sizeof(value));
}

void pack_u64(pack *self, uint64_t value)
{
    value = htole64(value);
    pack_bytes(self, &value, sizeof(value));
}

void pack_text(pack *self, const char *text)
{
    pack_u32(self, text ? (uint32_t)strlen(text) + 1 : 0);
    if (text)
        pack_bytes(self, text, strlen(text) + 1);
}

static const void *unpack_bytes(unpack *self, size_t count)
{
    const char *at = self->at;

    if (self->has_failed || self->left < count) {
        self->has_failed = true;
        return NULL;
    }
    self->at += count;
    self->left -= count;
    return at;
}

uint32_t unpack_u32(unpack *self)
{
    const void *at = unpack_bytes(self, 4);
    uint32_t value = 0;

    if (at)
        memcpy(&value, at, sizeof(value));
    return le32toh(value);
}

uint64_t unpack_u64(unpack *self)
{
    const void *at = unpack_bytes(self, 8);
    uint64_t value = 0;

    if (at)
        memcpy(&value, at, sizeof(value));
    return le64toh(value);
}

const char *unpack_text(unpack *self)
{
    uint32_t count = unpack_u32(self);
    const char *text = count ? unpack_bytes(self, count) : NULL;

    if (text && text[count - 1])
        self->has_failed = true;
    return self->has_failed ? NULL : text;
}
