/* SPDX-License-Identifier: BSD-3-Clause
 *
 * log: texts for users on stderr. Each is one write(2) of at most five lines, with the prefix "weft: [rank@host] ". The code that first
 * knows a cause logs it, once; its callers only return the code. Any thread.
 */
#ifndef WEFT_BASE_LOG_H
#define WEFT_BASE_LOG_H

#include <stdint.h>

enum weft_log_level { WEFT_LOG_ERROR, WEFT_LOG_WARN, WEFT_LOG_INFO, WEFT_LOG_DEBUG };

/* Sets the prefix. rank < 0: not known yet (the prefix is the program's name). Copies host. Called at start only. */
void weft_log_identify(int rank, const char *host);
/* Drops texts above `level`. Set from the knob `log` at start. */
void weft_log_limit(enum weft_log_level level);
void weft_log(enum weft_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Prints each different text once per process and counts its repeats: for causes that polls meet repeatedly. The text must not contain
 * anything that changes with each call. Returns the number of calls with this text; 0: not printed (level, or more than
 * WEFT_LOG_ONCE_MAX different texts). Any thread. */
#define WEFT_LOG_ONCE_MAX 64
uint64_t weft_log_once(enum weft_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3), cold));
/* Prints the first line and the count of each text repeated since the last report. Called when a world closes. */
void weft_log_repeats(void);

#define weft_log_error(...) weft_log(WEFT_LOG_ERROR, __VA_ARGS__)
#define weft_log_warn(...) weft_log(WEFT_LOG_WARN, __VA_ARGS__)
#define weft_log_info(...) weft_log(WEFT_LOG_INFO, __VA_ARGS__)
#define weft_log_debug(...) weft_log(WEFT_LOG_DEBUG, __VA_ARGS__)

#endif
