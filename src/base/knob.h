/* SPDX-License-Identifier: BSD-3-Clause
 *
 * knob: user settings (knobs.def), read at start from environment variables WEFT_<NAME> and constant after that; defaults before. Any code
 * reads weft_knob fields, for example weft_knob.spin_us. Only weft_knobs_load writes them, and tests before they open a world.
 */
#ifndef WEFT_BASE_KNOB_H
#define WEFT_BASE_KNOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

enum weft_knob_large { WEFT_RNDV_SCHEME_AUTO, WEFT_RNDV_SCHEME_COPY, WEFT_RNDV_SCHEME_GET, WEFT_RNDV_SCHEME_SPLIT, WEFT_RNDV_SCHEME_PUT };
enum weft_knob_promises { WEFT_PROMISES_AUTO, WEFT_PROMISES_NEVER, WEFT_PROMISES_ALWAYS };
enum weft_knob_sleep { WEFT_SLEEP_AUTO, WEFT_SLEEP_NEVER, WEFT_SLEEP_ALWAYS };
enum weft_knob_rma_device { WEFT_RMA_DEVICE_AUTO, WEFT_RMA_DEVICE_NEVER, WEFT_RMA_DEVICE_ALWAYS };
enum weft_knob_progress_thread { WEFT_PROGRESS_THREAD_AUTO, WEFT_PROGRESS_THREAD_ON, WEFT_PROGRESS_THREAD_OFF };
enum weft_knob_reg_mode { WEFT_REG_MODE_AUTO, WEFT_REG_MODE_SYNC, WEFT_REG_MODE_PIPELINE, WEFT_REG_MODE_ASYNC, WEFT_REG_MODE_NEVER };
enum weft_knob_regcache_monitor {
    WEFT_REGCACHE_MONITOR_AUTO,
    WEFT_REGCACHE_MONITOR_STRICT,
    WEFT_REGCACHE_MONITOR_USERFAULTFD,
    WEFT_REGCACHE_MONITOR_MEMHOOKS,
    WEFT_REGCACHE_MONITOR_NONE,
    WEFT_REGCACHE_MONITOR_ODP
};
enum weft_knob_connect { WEFT_VERBS_CONNECT_AUTO, WEFT_VERBS_CONNECT_UD, WEFT_VERBS_CONNECT_RDMACM };
enum weft_knob_ring { WEFT_EAGER_RING_AUTO, WEFT_EAGER_RING_NEVER, WEFT_EAGER_RING_FORCE };
enum weft_knob_windows { WEFT_VERBS_MW_NEVER, WEFT_VERBS_MW_AUTO, WEFT_VERBS_MW_ALWAYS };
enum weft_knob_relaxed { WEFT_VERBS_RELAXED_ORDERING_AUTO, WEFT_VERBS_RELAXED_ORDERING_NEVER };
enum weft_knob_segment { WEFT_SEGMENT_AUTO, WEFT_SEGMENT_OFF };

typedef struct weft_knobs {
#define KNOB_INT(name, start, min, max, sentence) int name;
#define KNOB_SIZE(name, start, min, max, sentence) uint64_t name;
#define KNOB_BOOL(name, start, sentence) bool name;
#define KNOB_CHOICE(name, start, words, sentence) int name;
#define KNOB_TEXT(name, start, sentence) const char *name;
#define KNOB_OTHER(name, sentence)
#include "base/knobs.def"
#undef KNOB_INT
#undef KNOB_SIZE
#undef KNOB_BOOL
#undef KNOB_CHOICE
#undef KNOB_TEXT
#undef KNOB_OTHER
} weft_knobs;

extern weft_knobs weft_knob;

/* Reads the environment and sets the log level. A value out of range is clamped, one that cannot be parsed keeps the default. `warn`: warns
 * of these and of unknown WEFT_ names, with the nearest name; one process of a job should. */
void weft_knobs_load(bool warn);

enum weft_knob_kind { WEFT_KNOB_INT, WEFT_KNOB_SIZE, WEFT_KNOB_BOOL, WEFT_KNOB_CHOICE, WEFT_KNOB_TEXT };

/* The table, for weft-info and tests. */
typedef struct weft_knob_row {
    const char *name; /* without WEFT_, lower case */
    enum weft_knob_kind kind;
    size_t offset; /* of the field in weft_knobs */
    int64_t min, max;
    const char *words; /* CHOICE: its values, separated by |; NULL: another kind */
    const char *sentence;
} weft_knob_row;

extern const weft_knob_row weft_knob_rows[];
extern const int weft_knob_row_count;

/* Prints the value of row `index` to text, cut at `capacity` bytes. */
void weft_knob_show(int index, char *text, size_t capacity);
/* The same for the default. */
void weft_knob_show_default(int index, char *text, size_t capacity);
/* Origin of the value: "default", "environment", or "environment, clamped". */
const char *weft_knob_origin(int index);
/* The WEFT_ name (knob or other) nearest to `name`; NULL: none is near. */
const char *weft_knob_nearest(const char *name, char *text, size_t capacity);

#endif
