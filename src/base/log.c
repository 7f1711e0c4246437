/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log: see log.h. One write(2) per text keeps lines of different ranks apart.
 * Invariant: does not allocate, writes at most five lines, preserves errno. Identity and level are set at start only.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINES_MAX 5
#define TEXT_BYTES 2048
#define FIRST_LINE_BYTES 240 /* bytes kept of a text of weft_log_once */

/* Set at start, constant after that. */
static struct {
    int rank;
    int limit;
    char host[64];
} identity = {.rank = -1, .limit = WEFT_LOG_WARN};

/* A text of weft_log_once, claimed by its hash and kept for the life of the process. */
typedef struct once_slot {
    _Atomic uint64_t hash;     /* 0: free */
    _Atomic uint64_t count;    /* calls */
    _Atomic uint64_t reported; /* count at the last weft_log_repeats */
    _Atomic bool is_kept;      /* text and bytes are set */
    uint32_t bytes;
    char text[FIRST_LINE_BYTES]; /* first line, without final 0 */
} once_slot;

static once_slot once[WEFT_LOG_ONCE_MAX];
static _Atomic uint64_t once_dropped; /* calls with a text that found no slot */

void weft_log_identify(int rank, const char *host)
{
    identity.rank = rank;
    snprintf(identity.host, sizeof(identity.host), "%s", host ? host : "");
}

void weft_log_limit(enum weft_log_level level)
{
    identity.limit = level;
}

/* Cuts after the fifth line and ends the text with exactly one newline. `capacity`: bytes of text, final 0 included. Returns the length. */
static size_t text_close(char *text, size_t length, size_t capacity)
{
    if (length > capacity - 2)
        length = capacity - 2;
    int lines = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n' && ++lines == LINES_MAX)
            length = i;
    while (length && text[length - 1] == '\n')
        length--;
    text[length++] = '\n';
    return length;
}

/* Formats prefix and text; returns the number of bytes. */
static size_t text_format(char *text, size_t capacity, const char *format, va_list args)
{
    int length, more;
    if (identity.rank < 0)
        length = snprintf(text, capacity, "weft: [%s] ", program_invocation_short_name);
    else
        length = snprintf(text, capacity, "weft: [%d@%s] ", identity.rank, identity.host);
    more = vsnprintf(text + length, capacity - (size_t)length, format, args);
    return text_close(text, (size_t)length + (more > 0 ? (size_t)more : 0), capacity);
}

static void text_write(const char *text, size_t bytes)
{
    while (bytes) {
        ssize_t wrote = write(STDERR_FILENO, text, bytes);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break; /* stderr is closed */
        text += wrote;
        bytes -= (size_t)wrote;
    }
}

void weft_log(enum weft_log_level level, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    int keep = errno;
    if ((int)level > identity.limit)
        return;
    va_start(args, format);
    text_write(text, text_format(text, sizeof(text), format, args));
    va_end(args);
    errno = keep;
}

/* Never returns 0, which marks a free slot. */
static uint64_t text_hash(const char *text, size_t bytes)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * 1099511628211u;
    return hash ? hash : 1;
}

/* The text's slot; claims a free one at first use. NULL: all slots have other texts. */
static once_slot *once_find(uint64_t hash)
{
    for (size_t i = 0; i < WEFT_LOG_ONCE_MAX; i++) {
        uint64_t found = 0;
        if (atomic_compare_exchange_strong_explicit(&once[i].hash, &found, hash, memory_order_relaxed, memory_order_relaxed) ||
            found == hash)
            return &once[i];
    }
    return NULL;
}

uint64_t weft_log_once(enum weft_log_level level, const char *format, ...)
{
    char text[TEXT_BYTES];
    uint64_t count = 0;
    size_t bytes;
    once_slot *slot;
    va_list args;
    int keep = errno;
    if ((int)level > identity.limit)
        return 0;
    va_start(args, format);
    bytes = text_format(text, sizeof(text), format, args);
    va_end(args);
    slot = once_find(text_hash(text, bytes));
    if (!slot)
        atomic_fetch_add_explicit(&once_dropped, 1, memory_order_relaxed);
    else if ((count = atomic_fetch_add_explicit(&slot->count, 1, memory_order_relaxed) + 1) == 1) {
        size_t capacity = sizeof(slot->text), line = (size_t)((char *)memchr(text, '\n', bytes) - text);
        slot->bytes = line < capacity ? (uint32_t)line : (uint32_t)capacity;
        memcpy(slot->text, text, slot->bytes);
        atomic_store_explicit(&slot->is_kept, true, memory_order_release); /* pairs with weft_log_repeats() */
        text_write(text, bytes);
    }
    errno = keep;
    return count;
}

void weft_log_repeats(void)
{
    uint64_t dropped = atomic_exchange_explicit(&once_dropped, 0, memory_order_relaxed);
    for (size_t i = 0; i < WEFT_LOG_ONCE_MAX; i++) {
        once_slot *slot = &once[i];
        uint64_t count = atomic_load_explicit(&slot->count, memory_order_relaxed);
        if (!atomic_load_explicit(&slot->is_kept, memory_order_acquire) ||
            count == atomic_load_explicit(&slot->reported, memory_order_relaxed))
            continue;
        atomic_store_explicit(&slot->reported, count, memory_order_relaxed);
        if (count > 1) {
            char text[TEXT_BYTES];
            int bytes = snprintf(text, sizeof(text), "%.*s (%" PRIu64 " times in all)\n", (int)slot->bytes, slot->text, count);
            text_write(text, (size_t)bytes);
        }
    }
    if (dropped)
        weft_log_warn("%" PRIu64 " more messages were left out: at most %d different ones are printed", dropped, WEFT_LOG_ONCE_MAX);
}
