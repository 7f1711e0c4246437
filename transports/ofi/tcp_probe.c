/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_probe: an ordinary TCP connection to where a peer's endpoint listens, begun and dropped. The peer's kernel answers it, also while the
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

static void fail(ofi_candidate *candidate, const char *words)
{
    ofi_tcp_probe_end(candidate);
    candidate->state = OFI_CANDIDATE_FAILED;
    snprintf(candidate->why, sizeof candidate->why, "%s", words);
}

void ofi_tcp_probe_begin(ofi_candidate *candidate, uint64_t now)
{
    ofi_tcp_probe_end(candidate);
    candidate->probed_ns = now;
    candidate->state = OFI_CANDIDATE_PROBED;
    candidate->probe = socket(candidate->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (candidate->probe < 0)
        return; /* no descriptor: we learn nothing, and the deadline decides */
    if (connect(candidate->probe, &candidate->address.any, candidate->bytes) && errno != EINPROGRESS)
        fail(candidate, strerror(errno));
}

void ofi_tcp_probe_poll(ofi_candidate *candidate, uint64_t now)
{
    struct pollfd fd = {.fd = candidate->probe, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof error;
    if (candidate->state != OFI_CANDIDATE_PROBED)
        return;
    if (candidate->probe >= 0 && poll(&fd, 1, 0) == 1) {
        if (getsockopt(candidate->probe, SOL_SOCKET, SO_ERROR, &error, &bytes))
            error = errno;
        if (error) {
            fail(candidate, strerror(error));
        } else {
            ofi_tcp_probe_end(candidate);
            candidate->state = OFI_CANDIDATE_LISTENS;
        }
    } else if (now - candidate->probed_ns > OFI_PROBE_NS) {
        fail(candidate, "no answer within 3 s");
    }
}

void ofi_tcp_probe_end(ofi_candidate *candidate)
{
    if (candidate->probe >= 0)
        close(candidate->probe);
    candidate->probe = -1;
}
