/* SPDX-License-Identifier: BSD-3-Clause
 *
 * probe: an ordinary TCP connection to where a peer's endpoint listens, begun and dropped. The peer's kernel answers it, also while the
 * peer computes: so it tells a peer that has not looked yet from one that is gone, from a wrong address, and from a firewall, in the
 * system's own words, which libfabric's tcp keeps to itself. Begun only when a call was not answered for a while.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transports/ofi/ofi.h"

static void fail(ofi_spot *spot, const char *words)
{
    ofi_probe_end(spot);
    spot->state = OFI_SPOT_FAILED;
    snprintf(spot->why, sizeof spot->why, "%s", words);
}

void ofi_probe_begin(ofi_spot *spot, uint64_t now)
{
    ofi_probe_end(spot);
    spot->probed_ns = now;
    spot->state = OFI_SPOT_PROBED;
    spot->probe = socket(spot->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (spot->probe < 0)
        return; /* no descriptor: we learn nothing, and the deadline decides */
    if (connect(spot->probe, &spot->address.any, spot->bytes) && errno != EINPROGRESS)
        fail(spot, strerror(errno));
}

void ofi_probe_look(ofi_spot *spot, uint64_t now)
{
    struct pollfd fd = {.fd = spot->probe, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof error;
    if (spot->state != OFI_SPOT_PROBED)
        return;
    if (spot->probe >= 0 && poll(&fd, 1, 0) == 1) {
        if (getsockopt(spot->probe, SOL_SOCKET, SO_ERROR, &error, &bytes))
            error = errno;
        if (error) {
            fail(spot, strerror(error));
        } else {
            ofi_probe_end(spot);
            spot->state = OFI_SPOT_LISTENS;
        }
    } else if (now - spot->probed_ns > OFI_PROBE_NS) {
        fail(spot, "no answer within 3 s");
    }
}

void ofi_probe_end(ofi_spot *spot)
{
    if (spot->probe >= 0)
        close(spot->probe);
    spot->probe = -1;
}
