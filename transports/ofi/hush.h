/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hush: libfabric is kept from reading what takes it long and nobody needs.
 */
#ifndef WEFT_OFI_HUSH_H
#define WEFT_OFI_HUSH_H

/* To be called when libfabric is loaded, before its first call. Where its import table is not as expected nothing is changed. */
void ofi_hush(void);

#endif
