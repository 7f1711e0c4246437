/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rank_page: wake-up of a rank that sleeps on its futex or on descriptors.
 */
#include "mem/rank_page.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

void weft_page_wake(weft_rank_page *page)
{
    if (weft_likely(!atomic_load_explicit(&page->asleep, memory_order_relaxed)))
        return;
    if (!atomic_exchange_explicit(&page->asleep, 0, memory_order_acq_rel))
        return;
    atomic_store_explicit(&page->woken_ns, weft_clock_ns(), memory_order_relaxed);
    uint64_t name = weft_wakeup_sock_name(&page->sock);
    if (weft_unlikely(name))
        weft_wakeup_sock_send(&page->sock, name);
    else
        syscall(SYS_futex, &page->asleep, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}
