/* SPDX-License-Identifier: BSD-3-Clause
 *
 * expect: BAD(call, class, words...) checks that a call fails with an error class, and that its error string has all of the words.
 * The communicator's errors must return.
 */
#ifndef TEST_MPI_EXPECT_H
#define TEST_MPI_EXPECT_H

#include "check.h"

static inline void expect(int line, const char *what, int code, int must, const char *const words[])
{
    char text[MPI_MAX_ERROR_STRING];
    int class_ = -1, length;
    MPI_Error_class(code, &class_);
    if (class_ != must)
        check_fail(__FILE__, line, what, "returned class %d, must be %d", class_, must);
    MPI_Error_string(code, text, &length);
    for (int i = 0; words[i]; i++)
        if (!strstr(text, words[i]))
            check_fail(__FILE__, line, what, "text lacks '%s': %s", words[i], text);
}
#define BAD(call, class_, ...) expect(__LINE__, #call, (call), class_, (const char *const[]){__VA_ARGS__, NULL})

#endif
