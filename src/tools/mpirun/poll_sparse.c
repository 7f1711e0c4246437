/* SPDX-License-Identifier: BSD-3-Clause
 *
 * poll_sparse: see poll_sparse.h.
 */
#include "tools/mpirun/poll_sparse.h"

#include <stdlib.h>

int poll_sparse_wait(struct pollfd *set, uint32_t count, int wait_ms)
{
    struct pollfd *present = malloc((count + 1) * sizeof(*present));
    uint32_t used = 0;

    if (!present)
        return poll(set, count, wait_ms);
    for (uint32_t i = 0; i < count; i++)
        if (set[i].fd >= 0)
            present[used++] = set[i];
    int rc = poll(present, used, wait_ms);
    used = 0;
    for (uint32_t i = 0; i < count; i++)
        set[i].revents = set[i].fd >= 0 && rc > 0 ? present[used++].revents : 0;
    free(present);
    return rc;
}
