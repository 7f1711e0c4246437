/* SPDX-License-Identifier: BSD-3-Clause
 *
 * library: libfabric's functions that are not inline. Loading libfabric takes 0.2 s, a dozen objects and 3 MiB (docs/ofi.md), so ofi.so is
 * not linked to it. Beside it is weft/ofi_libfabric.so, which is, and exports one symbol, weft_ofi_library; ofi.so loads it when a provider
 * is first asked for. dlsym alone would not do: libfabric's symbols have versions, and the linker takes those of the headers.
 */
#ifndef WEFT_TRANSPORTS_OFI_LIBRARY_H
#define WEFT_TRANSPORTS_OFI_LIBRARY_H

#include <rdma/fabric.h>
#include <stdint.h>

typedef struct ofi_library {
    const char *release; /* PACKAGE_VERSION: another one is refused */
    uint32_t (*version)(void);
    const char *(*strerror)(int code);
    int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
                   struct fi_info **info);
    void (*freeinfo)(struct fi_info *info);
    struct fi_info *(*dupinfo)(const struct fi_info *info);
    int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
} ofi_library;

extern const ofi_library weft_ofi_library;

#endif
