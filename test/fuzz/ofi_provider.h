/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ofi_provider: a made-up provider of libfabric for the harness ofi_frames. It takes libfabric's place, and that of the parts of
 * transports/ofi that ask the kernel about other hosts, so that no byte leaves the process: what is sent ends when the harness says so, and
 * what comes is what the harness puts into posted receives. One endpoint at a time.
 */
#ifndef WEFT_TEST_FUZZ_OFI_PROVIDER_H
#define WEFT_TEST_FUZZ_OFI_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the next iface is offered: plain TCP (frames are kept until acknowledged), or an adapter's provider that keeps no order and fills a
 * receive with many messages. */
extern bool provider_is_tcp;
extern bool provider_refuses; /* sends, gets and puts return "try again" */
extern bool provider_is_dead; /* probes of addresses fail */

/* The message arrives in a posted receive. What follows it there is poisoned for AddressSanitizer. False: none is posted. */
bool provider_deliver(const void *message, size_t bytes);
/* Ends up to `count` of the oldest sends, gets and puts in flight; with an error if `fails`. */
void provider_complete(uint32_t count, bool fails);
/* The last handshake that was sent (struct ofi_handshake); NULL: none. */
const void *provider_last_handshake(void);

#endif
