/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tcp_probe: a TCP connection to the address of a peer's endpoint, begun and dropped. The peer's kernel answers also while the peer
 * computes. So it distinguishes a busy peer from a dead one, a wrong address and a firewall, with the system's error text, which
 * libfabric's tcp does not report. Begun by handshake.c when a handshake was not answered for a while, or a silent peer cannot be pinged.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transports/ofi/ofi.h"

bool ofi_can_probe(const ofi_iface *iface) { return ofi_is_socket(iface->info) && strncmp(iface->addr.provider, "udp", 3) != 0; }

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
        return; /* no descriptor: only the deadline applies */
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
    if (candidate->counter)
        --*candidate->counter;
    candidate->counter = NULL;
}
