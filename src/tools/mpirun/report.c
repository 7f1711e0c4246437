/* SPDX-License-Identifier: BSD-3-Clause
 *
 * report: see report.h.
 */
#include "tools/mpirun/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool (*report_to)(const char *text);

int report(int code, const char *format, ...)
{
    char text[1200] = "mpirun: ";
    va_list args;

    va_start(args, format);
    vsnprintf(text + 8, sizeof(text) - 9, format, args);
    va_end(args);
    if (report_to && report_to(text + 8))
        return code;
    size_t length = strlen(text);
    text[length++] = '\n';
    for (size_t done = 0; done < length;) {
        ssize_t n = write(STDERR_FILENO, text + done, length - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    return code;
}
