/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi_contact: tests of ifaces that open libfabric at their first contact (transports/ofi/knock.c). Plain TCP only; each does nothing
 * where the host has another network.
 */
#ifndef WEFT_TEST_CONTRACT_OFI_CONTACT_H
#define WEFT_TEST_CONTRACT_OFI_CONTACT_H

#include "test/contract/rig.h"

typedef struct contact_test {
    const char *name;
    void (*run)(void);
} contact_test;

extern const contact_test contact_tests[]; /* ends with name NULL */

#endif
