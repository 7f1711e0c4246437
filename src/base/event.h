/* SPDX-License-Identifier: BSD-3-Clause
 *
 * event: events of MPI_T (events.def) from where they are observed, often under a worker's lock, to where no lock is held. Raised by any
 * layer and thread into one bounded queue; mpi/tool_event takes them out and calls the program.
 * A type without a registered handle costs one load and test. weft_event_lock is a leaf: nothing else is called while it is held.
 */
#ifndef WEFT_BASE_EVENT_H
#define WEFT_BASE_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macros.h"

enum weft_event {
#define EVENT(id, name, object, group, elements, sentence) WEFT_EVENT_##id,
#include "base/events.def"
#undef EVENT
    WEFT_EVENT_LAST
};
enum weft_event_object { WEFT_EVENT_OF_NONE, WEFT_EVENT_OF_COMM };
enum weft_event_group { WEFT_EVENT_IS_message, WEFT_EVENT_IS_protocol, WEFT_EVENT_IS_reg, WEFT_EVENT_IS_wait };

#define WEFT_EVENT_VALUES 4

typedef struct weft_event_row {
    const char *name, *elements, *sentence;
    enum weft_event_object object;
    enum weft_event_group group;
} weft_event_row;
extern const weft_event_row weft_event_rows[WEFT_EVENT_LAST];

/* One listener for one type. Guarded by weft_event_lock. */
typedef struct weft_event_sink {
    weft_list_link link;
    enum weft_event type;
    const void *object;   /* the channel whose events it gets; NULL: all */
    bool is_open;         /* gets events */
    bool counts_dropped;
    uint64_t dropped;     /* not queued since the last report, if counts_dropped */
} weft_event_sink;

typedef struct weft_event_record {
    weft_event_sink *sink;
    uint64_t ns;          /* weft_clock_ns when it was observed; not less than that of the record before */
    int64_t values[WEFT_EVENT_VALUES];
} weft_event_record;

extern _Atomic uint32_t weft_event_mask; /* bit of each type that has an open sink */
extern _Atomic bool weft_event_pending;  /* records, or dropped ones, wait to be delivered, and no thread delivers */
extern _Atomic bool weft_event_pending_in_wait; /* the same, and the first may be delivered inside of a wait */
typedef void weft_event_deliver_fn(bool in_wait);
/* Calls the program: no lock may be held. in_wait: inside a call of MPI that goes on. */
extern weft_event_deliver_fn *_Atomic weft_event_deliver;

/* Queues a record for each sink of the type and object. A full queue counts it as dropped. */
void weft_event_raise(enum weft_event type, const void *object, const int64_t values[WEFT_EVENT_VALUES]);
static inline bool weft_event_is_on(enum weft_event type)
{
    return weft_unlikely(atomic_load_explicit(&weft_event_mask, memory_order_relaxed) & 1u << type);
}
/* Raises an event; the values' expressions are evaluated only if a handle is registered. */
#define WEFT_EVENT_RAISE(type, object, ...) \
    do { \
        if (weft_event_is_on(type)) \
            weft_event_raise(type, object, (const int64_t[WEFT_EVENT_VALUES]){__VA_ARGS__}); \
    } while (0)

/* Whether a handle is registered or events are queued: then calls must pass weft_event_point. */
static inline bool weft_event_has_work(void)
{
    return atomic_load_explicit(&weft_event_mask, memory_order_relaxed) || atomic_load_explicit(&weft_event_pending, memory_order_relaxed);
}

/* End of a call of MPI, without locks. Not after an error, whose text a callback could replace. */
static inline int weft_event_point(int rc)
{
    if (weft_unlikely(atomic_load_explicit(&weft_event_pending, memory_order_relaxed)) && !rc)
        atomic_load_explicit(&weft_event_deliver, memory_order_relaxed)(false);
    return rc;
}

/* ---- for mpi/tool_event ---- */
void weft_event_lock(void);
void weft_event_unlock(void);
/* Those below require the lock. Allocates the queue; false: out of memory. */
bool weft_event_open(void);
/* Frees the queue; there are no sinks. */
void weft_event_close(void);
void weft_event_add(weft_event_sink *sink);
/* Takes the sink's records out of the queue too. */
void weft_event_remove(weft_event_sink *sink);
/* Sets weft_event_mask after is_open of a sink changed. */
void weft_event_update(void);
/* The oldest record; NULL: none. */
const weft_event_record *weft_event_first(void);
void weft_event_pop(void);
/* A sink with dropped events; NULL: none. */
weft_event_sink *weft_event_dropped(void);
/* Begin and end of a delivery; false: another thread, or this one further up its stack, delivers. */
bool weft_event_begin(void);
/* Counts one call of a callback. False: the delivery has made as many as were due at its begin, and ends. */
bool weft_event_may_call(void);
void weft_event_end(void);
/* Whether the first record (or report) must not be delivered inside of a wait. Taking it unblocks. */
void weft_event_block(bool is_blocked);

#endif
