/* SPDX-License-Identifier: BSD-3-Clause
 *
 * wakeup_sock: wakes a process of the node that sleeps in poll() on descriptors, which a futex cannot. The owner binds a datagram socket
 * to an abstract name and stores the name in shared memory; a waker sends a byte to it.
 * No wake-up is lost: a late byte ends the next sleep early, and a full queue is readable too. A foreign sender can only cause wake-ups.
 * Abstract names are per network namespace: a sender that cannot reach the socket sets is_unreachable, and the owner then polls in naps.
 */
#ifndef WEFT_MEM_WAKEUP_SOCK_H
#define WEFT_MEM_WAKEUP_SOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WEFT_WAKEUP_SOCK_NAP_NS 2000000u /* longest sleep of a rank without a usable socket */

typedef struct weft_wakeup_sock {
    _Atomic uint64_t name;           /* of the owner's socket; 0: none. Written by the owner while awake */
    _Atomic uint32_t is_unreachable; /* 1: a process of the node could not send to it */
} weft_wakeup_sock;

/* Owner, awake: opens the socket; returns a descriptor that becomes readable at a wake-up, or -1 (no sockets: sleep in naps). */
int weft_wakeup_sock_open(weft_wakeup_sock *sock);
void weft_wakeup_sock_close(weft_wakeup_sock *sock, int fd);
/* Owner, awake: discards received bytes. */
void weft_wakeup_sock_drain(int fd);
/* True if a sender failed to reach the socket. */
static inline bool weft_wakeup_sock_is_unreachable(const weft_wakeup_sock *sock)
{
    return atomic_load_explicit(&sock->is_unreachable, memory_order_relaxed);
}
static inline uint64_t weft_wakeup_sock_name(const weft_wakeup_sock *sock)
{
    return atomic_load_explicit(&sock->name, memory_order_relaxed);
}

/* Wakes the owner; `name` was read from `sock` and is not 0. Any process of the node, any thread; does not block. */
void weft_wakeup_sock_send(weft_wakeup_sock *sock, uint64_t name);

#endif
