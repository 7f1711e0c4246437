/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log: writes to stderr, one write(2) a text, so that texts of many ranks do not mix within a line. Called from anywhere.
 * Invariant: never allocates, never more than five lines, and errno stays what it was. Identity and limit are set once at start.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINES_MOST 5

/* Set at start, frozen after it, like the knobs. */
static struct {
    int rank;
    int limit;
    char host[64];
} speaker = {.rank = -1, .limit = WEFT_LOG_WARN};

void weft_log_identify(int rank, const char *host)
{
    speaker.rank = rank;
    snprintf(speaker.host, sizeof(speaker.host), "%s", host ? host : "");
}

void weft_log_limit(enum weft_log_level level)
{
    speaker.limit = level;
}

/* Cuts after the fifth line and makes the text end with exactly one newline. `room` counts text's bytes with the final 0. */
static size_t text_close(char *text, size_t length, size_t room)
{
    if (length > room - 2)
        length = room - 2;
    int lines = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n' && ++lines == LINES_MOST)
            length = i;
    while (length && text[length - 1] == '\n')
        length--;
    text[length++] = '\n';
    return length;
}

void weft_log(enum weft_log_level level, const char *format, ...)
{
    if ((int)level > speaker.limit)
        return;
    int keep = errno;
    char text[2048];
    int length;
    if (speaker.rank < 0)
        length = snprintf(text, sizeof(text), "weft: [%s] ", program_invocation_short_name);
    else
        length = snprintf(text, sizeof(text), "weft: [%d@%s] ", speaker.rank, speaker.host);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(text + length, sizeof(text) - (size_t)length, format, args);
    va_end(args);
    size_t bytes = text_close(text, (size_t)length + (more > 0 ? (size_t)more : 0), sizeof(text));
    const char *at = text;
    while (bytes) {
        ssize_t wrote = write(STDERR_FILENO, at, bytes);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            break; /* nobody to tell it to */
        at += wrote;
        bytes -= (size_t)wrote;
    }
    errno = keep;
}
