/* SPDX-License-Identifier: BSD-3-Clause
 *
 * counters: reads, sums and prints counters. See counters.h.
 */
#include "core/counters.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macros.h"
#include "core/peer_type.h"
#include "core/worker.h"
#include "core/world_type.h"

#define LOCK_NS 50000000u /* longer than a holder that was preempted waits for a CPU, unless the machine is overloaded */

/* Reads what another thread may write meanwhile: aligned words, which are right one by one. Not reported by ThreadSanitizer. */
#define WITHOUT_LOCK __attribute__((noinline, no_sanitize("thread")))

#define message WEFT_COUNT_OF_MESSAGE
#define protocol WEFT_COUNT_OF_PROTOCOL
#define bytes WEFT_COUNT_OF_BYTES
#define reg WEFT_COUNT_OF_REG
#define wait WEFT_COUNT_OF_WAIT
#define COUNT(id, name, class, unit, group, sentence) {#name, unit, sentence, WEFT_COUNT_IS_##class, group},
const weft_count_row weft_count_rows[WEFT_COUNT_LAST] = {
#include "core/counters.def"
};
#undef COUNT
#undef message
#undef protocol
#undef bytes
#undef reg
#undef wait

/* Derives counters that are not counted at the event. Frame numbers count all frames of a peer; weft_peer_stamp counts all but short
 * messages, so the difference is EAGER_INLINE. */
static WITHOUT_LOCK void derive(weft_worker *worker, uint64_t values[WEFT_COUNT_LAST])
{
    uint32_t sent = 0, received = 0;
    for (const weft_peer *peer = atomic_load_explicit(&worker->peers, memory_order_acquire); peer; peer = peer->next) {
        sent += peer->seq_out;
        received += peer->seq_in;
    }
    values[WEFT_COUNT_FRAMES_SENT] = sent;
    values[WEFT_COUNT_FRAMES_RECEIVED] = received;
    values[WEFT_COUNT_LOCK_PASSES] = worker->lock.passes;
    values[WEFT_COUNT_EAGER_INLINE] = (uint32_t)(sent - (uint32_t)values[WEFT_COUNT_FRAMES_LONG]);
    for (uint32_t i = 0; i < worker->iface_count; i++) {
        values[WEFT_COUNT_BARRIERS] += worker->ifaces[i]->counts.barriers;
        values[WEFT_COUNT_RINGS_CLOSED] += worker->ifaces[i]->counts.rings_closed;
    }
}

static WITHOUT_LOCK void copy_counters(const weft_worker *worker, uint64_t values[WEFT_COUNT_LAST])
{
    for (int i = 0; i < WEFT_COUNT_LAST; i++)
        values[i] = __atomic_load_n(&worker->counters[i], __ATOMIC_RELAXED);
}

/* Tries the lock for a bounded time, so that counters can be read also if the worker hangs. `visitors` shows this to the holder. */
static bool has_locked(weft_worker *worker)
{
    uint64_t begin_ns = weft_clock_ns();
    bool has = false;
    atomic_fetch_add_explicit(&worker->lock.visitors, 1, memory_order_relaxed);
    while (!(has = weft_lock_try(&worker->lock)) && weft_clock_ns() - begin_ns < LOCK_NS)
        sched_yield();
    atomic_fetch_sub_explicit(&worker->lock.visitors, 1, memory_order_relaxed);
    return has;
}

static void read_worker(weft_worker *worker, uint64_t values[WEFT_COUNT_LAST])
{
    bool is_threaded = __atomic_load_n(&worker->is_threaded, __ATOMIC_RELAXED), is_locked = is_threaded && has_locked(worker);
    if (worker->count && (is_locked || !is_threaded))
        worker->count(worker);
    copy_counters(worker, values);
    derive(worker, values);
    if (is_locked) /* not weft_worker_unlock: a tool's thread must not take back a lent worker */
        weft_lock_release(&worker->lock);
}

void weft_counters_read(weft_world *world, uint64_t values[WEFT_COUNT_LAST])
{
    memset(values, 0, WEFT_COUNT_LAST * sizeof *values);
    for (uint32_t i = 0; i < world->worker_count; i++) {
        uint64_t one[WEFT_COUNT_LAST];
        read_worker(world->workers[i], one);
        for (int row = 0; row < WEFT_COUNT_LAST; row++) {
            values[row] += one[row];
            if (weft_count_rows[row].class == WEFT_COUNT_IS_WRAPPED)
                values[row] = (uint32_t)values[row];
        }
    }
}

typedef struct page { /* text for one write; each line begins with the rank's name */
    char text[8192];
    size_t length, line; /* line: start of the last line */
    char prefix[96];
} page;

static __attribute__((format(printf, 2, 3))) void put(page *self, const char *format, ...)
{
    va_list args;
    int n;
    va_start(args, format);
    n = vsnprintf(self->text + self->length, sizeof self->text - self->length, format, args);
    va_end(args);
    if (n > 0 && self->length + (size_t)n < sizeof self->text)
        self->length += (size_t)n;
    else
        self->text[self->length] = 0; /* an item that does not fit is left out whole */
}

static void put_line(void *arg, const char *text)
{
    page *self = arg;
    put(self, "%s %s\n", self->prefix, text);
}

static void put_group(page *self, enum weft_count_group group, const uint64_t values[WEFT_COUNT_LAST])
{
    char line[1024];
    int n = 0;
    for (int i = 0; i < WEFT_COUNT_LAST; i++) {
        const weft_count_row *row = &weft_count_rows[i];
        if (row->group == group && values[i] && n >= 0 && (size_t)n < sizeof line)
            n += snprintf(line + n, sizeof line - (size_t)n, "%s%s %llu", n ? ", " : "", row->name, (unsigned long long)values[i]);
    }
    if (n > 0)
        put_line(self, line);
}

static void write_all(const char *text, size_t length)
{
    while (length) {
        ssize_t wrote = write(STDERR_FILENO, text, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; /* stderr is closed */
        text += wrote;
        length -= (size_t)wrote;
    }
}

void weft_counters_print(weft_world *world)
{
    uint64_t values[WEFT_COUNT_LAST];
    page self = {.length = 0};
    snprintf(self.prefix, sizeof self.prefix, "weft: [%u@%.64s]", world->boot->rank, world->boot->host);
    weft_counters_read(world, values);
    for (enum weft_count_group group = WEFT_COUNT_OF_MESSAGE; group <= WEFT_COUNT_OF_WAIT; group++)
        put_group(&self, group, values);
    for (uint32_t i = 0; i < world->worker_count; i++)
        for (uint32_t k = 0; k < world->workers[i]->iface_count; k++) {
            weft_iface *iface = world->workers[i]->ifaces[k];
            if (iface->ops->print_counters)
                iface->ops->print_counters(iface, put_line, &self);
        }
    write_all(self.text, self.length);
}
