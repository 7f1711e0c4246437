/* SPDX-License-Identifier: BSD-3-Clause
 *
 * random: see random.h.
 */
#include "base/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#include "base/status.h"

int weft_random(void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = getrandom((char *)to + done, bytes - done, 0);
        if (n < 0 && errno != EINTR)
            return weft_fail(WEFT_E_SYSTEM, "no random numbers: getrandom: %s", strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}
