/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log: what a person reads on stderr. Each text is one write(2), at most five lines, prefixed "weft: [rank@host] ".
 * Who first knows the cause says it once; everybody above only passes the code on.
 */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include <stdint.h>

enum weft_log_level { WEFT_LOG_ERROR, WEFT_LOG_WARN, WEFT_LOG_INFO, WEFT_LOG_DEBUG };

/* Who speaks: rank < 0 means "not yet known" (only the program's name is shown). Copies host. */
void weft_log_identify(int rank, const char *host);
/* Texts above `level` are dropped. Set from the knob `log` at start. */
void weft_log_limit(enum weft_log_level level);
void weft_log(enum weft_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Prints each different text once per process and counts its repeats: for causes that a poll may meet again and again. The text names the
 * cause (peer, system's words) and nothing that changes with each call. How often it came so far; 0: not printed (level, or more than
 * WEFT_LOG_ONCE_MAX different texts). Any thread. */
#define WEFT_LOG_ONCE_MAX 64
uint64_t weft_log_once(enum weft_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* Prints the first line of each text that was repeated since the last report, and how often. At the close of a world. */
void weft_log_repeats(void);

#define weft_log_error(...) weft_log(WEFT_LOG_ERROR, __VA_ARGS__)
#define weft_log_warn(...) weft_log(WEFT_LOG_WARN, __VA_ARGS__)
#define weft_log_note(...) weft_log(WEFT_LOG_INFO, __VA_ARGS__)
#define weft_log_debug(...) weft_log(WEFT_LOG_DEBUG, __VA_ARGS__)

#endif
