/* SPDX-License-Identifier: BSD-3-Clause
 *
 * memory: registration with libfabric, in the provider's mode, and remote keys. A key holds its bounds and rights, which the user of the
 * key checks first: many providers end the connection when the target refuses. Where registration pins pages, mr_reg and mr_dereg may be
 * called by any thread (FI_THREAD_SAFE). Elsewhere only by the owner: libfabric 1.17's table of keys, read for each fragment that a peer
 * moves, has no lock.
 */
#include <inttypes.h>
#include <string.h>

#include "base/random.h"
#include "base/status.h"
#include "transports/ofi/ofi.h"

#define KEY_TRIES 8

typedef struct key_form { /* contents of weft_rkey.bytes */
    uint64_t mr_key, start, bytes;
    uint32_t check;     /* checksum of the rest: detects damaged keys */
    uint8_t rights, is_virtual;
    uint16_t zero;
} key_form;
_Static_assert(sizeof(key_form) <= WEFT_RKEY_BYTES, "the key's form");

uint8_t ofi_key_bytes(void) { return sizeof(key_form); }

static uint32_t check_of(key_form form)
{
    const uint8_t *at = (const uint8_t *)&form;
    uint32_t sum = 2166136261u;
    form.check = 0;
    for (size_t i = 0; i < sizeof form; i++)
        sum = (sum ^ at[i]) * 16777619u;
    return sum;
}

/* Registers with a random key of mr_key_size bytes, unless the provider chooses the key: other processes cannot guess it. Short random keys
 * may collide (FI_ENOKEY): then another key is tried. */
static int reg_by_key(ofi_iface *iface, void *addr, uint64_t bytes, uint64_t access, struct fid_mr **fid_mr)
{
    const struct fi_domain_attr *domain = iface->info->domain_attr;
    uint64_t key = 0;
    int rc = -FI_ENOKEY;
    for (int tries = 0; rc == -FI_ENOKEY && tries < KEY_TRIES; tries++) {
        if (!(domain->mr_mode & FI_MR_PROV_KEY) && weft_random(&key, domain->mr_key_size < sizeof key ? domain->mr_key_size : sizeof key))
            return -FI_EOTHER;
        rc = fi_mr_reg(iface->domain, addr, bytes, access, 0, key, 0, fid_mr, NULL);
    }
    return rc;
}

int ofi_register(ofi_iface *iface, void *addr, uint64_t bytes, uint64_t access, struct fid_mr **fid_mr)
{
    uint64_t mode = (uint64_t)iface->info->domain_attr->mr_mode;
    int rc = reg_by_key(iface, addr, bytes, access, fid_mr);
    if (rc == 0 && mode & FI_MR_ENDPOINT) {
        rc = fi_mr_bind(*fid_mr, &iface->ep->fid, 0);
        if (rc == 0)
            rc = fi_mr_enable(*fid_mr);
        if (rc)
            fi_close(&(*fid_mr)->fid);
    }
    if (rc == 0)
        return 0;
    return weft_fail(rc == -FI_ENOMEM || rc == -FI_ENOSPC ? WEFT_E_NOMEM : WEFT_E_UNSUPPORTED,
                     "%" PRIu64 " bytes at %p cannot be registered with %s: %s", bytes, addr, iface->addr.provider, ofi_error_text(rc));
}

int ofi_mr_reg(weft_iface *base, void *addr, uint64_t bytes, uint32_t rights, enum weft_memory_kind kind, weft_mr *mr)
{
    ofi_iface *iface = (ofi_iface *)base;
    uint64_t at = (uintptr_t)addr, access = FI_READ | FI_WRITE;
    key_form form = {.start = at, .bytes = bytes, .rights = (uint8_t)rights};
    struct fid_mr *fid_mr = NULL;
    int rc;
    if (kind != WEFT_MEMORY_HOST)
        return weft_fail(WEFT_E_UNSUPPORTED, "device memory is not supported over libfabric yet");
    if (at + bytes < at)
        return weft_fail(WEFT_E_ARG, "memory at %p cannot be %" PRIu64 " bytes long", addr, bytes);
    access |= rights & (WEFT_ACCESS_READ | WEFT_ACCESS_ATOMIC) ? FI_REMOTE_READ : 0;
    access |= rights & (WEFT_ACCESS_WRITE | WEFT_ACCESS_ATOMIC) ? FI_REMOTE_WRITE : 0;
    rc = ofi_contact(iface);
    if (rc)
        return rc;
    rc = bytes ? ofi_register(iface, addr, bytes, access, &fid_mr) : 0;
    if (rc)
        return rc;
    form.mr_key = fid_mr ? fi_mr_key(fid_mr) : 0;
    form.is_virtual = (iface->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    form.check = check_of(form);
    *mr = (weft_mr){.addr = addr, .bytes = bytes, .rights = rights, .device = fid_mr};
    mr->rkey.length = sizeof form;
    memcpy(mr->rkey.bytes, &form, sizeof form);
    return 0;
}

int ofi_mr_dereg(weft_iface *base, weft_mr *mr)
{
    struct fid_mr *fid_mr = mr->device;
    int rc = fid_mr ? fi_close(&fid_mr->fid) : 0;
    (void)base;
    if (rc)
        return weft_fail(WEFT_E_SYSTEM, "the registration of %p cannot be ended: %s", mr->addr, ofi_error_text(rc));
    mr->device = NULL;
    mr->rkey.length = 0;
    return 0;
}

int ofi_key_check(const weft_rkey *rkey, uint64_t remote, uint64_t bytes, uint32_t right, uint64_t *addr, uint64_t *mr_key)
{
    key_form form;
    if (!rkey || rkey->length != sizeof form)
        return weft_fail(WEFT_E_KEY, "invalid remote key");
    memcpy(&form, rkey->bytes, sizeof form);
    if (form.check != check_of(form))
        return weft_fail(WEFT_E_KEY, "a remote key is damaged or invalid");
    if (remote < form.start || bytes > form.bytes || remote - form.start > form.bytes - bytes)
        return weft_fail(WEFT_E_KEY, "%" PRIu64 " bytes at 0x%" PRIx64 " are outside the key's %" PRIu64 " bytes at 0x%" PRIx64, bytes,
                         remote, form.bytes, form.start);
    if (right & ~(uint32_t)form.rights)
        return weft_fail(WEFT_E_KEY, "the key at 0x%" PRIx64 " does not allow to %s", form.start,
                         right & WEFT_ACCESS_WRITE ? "write" : right & WEFT_ACCESS_READ ? "read" : "use atomics");
    *addr = form.is_virtual ? remote : remote - form.start;
    *mr_key = form.mr_key;
    return 0;
}
