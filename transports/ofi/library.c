/* SPDX-License-Identifier: BSD-3-Clause
 *
 * library: the only source of ofi_libfabric.so. See library.h.
 */
#include "transports/ofi/library.h"

#include <rdma/fi_errno.h>

__attribute__((visibility("default"))) const ofi_library weft_ofi_library = {.release = PACKAGE_VERSION,
                                                                             .version = fi_version,
                                                                             .strerror = fi_strerror,
                                                                             .getinfo = fi_getinfo,
                                                                             .freeinfo = fi_freeinfo,
                                                                             .dupinfo = fi_dupinfo,
                                                                             .fabric = fi_fabric};
