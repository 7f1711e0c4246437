/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win_notify: notification counters of a window, an extension (include/mpi-ext.h, docs/rma.md "Notified access"). Called by the
 * generated entries, under the worker's lock. The operations with notifications are in rma.c.
 */
#include <mpi.h>

#include "base/status.h"
#include "core/worker.h"
#include "mpi/calls.h"
#include "rma/notify.h"
#include "rma/notify_open.h"
#include "rma/op.h"

int weft_mpi_win_notify_init(weft_win *win, int count)
{
    int failed = 0;
    if (win->window->notify)
        failed = weft_fail(WEFT_E_WIN, "argument win has notification counters already: MPIX_Win_notify_init is called once for a window");
    else if (count < 0)
        failed = weft_fail(WEFT_E_ARG, "argument count is %d: a number of counters must not be negative", count);
    return weft_notify_open(win->window, failed ? 0 : (uint32_t)count, failed);
}

/* argument: name of what is `id`. */
static int check_id(const weft_win *win, const char *argument, int id)
{
    const weft_window_notify *notify = win->window->notify;
    uint32_t count = notify ? notify->targets[win->window->rank].count : 0;
    if (weft_likely((uint32_t)id < count))
        return 0;
    if (!notify)
        return weft_fail(WEFT_E_WIN, "argument win has no notification counters: call MPIX_Win_notify_init for it before");
    if (!count)
        return weft_fail(WEFT_E_ARG, "argument %s is %d: this rank has no counters, as it called MPIX_Win_notify_init with count 0",
                         argument, id);
    return weft_fail(WEFT_E_ARG, "argument %s is %d: not one of the counters of this rank (0..%u)", argument, id, count - 1);
}

int weft_mpi_win_notify_wait(weft_win *win, int id, MPI_Count threshold, MPI_Count *value)
{
    uint64_t reached = 0;
    uint32_t first;
    int rc = check_id(win, "id", id);
    if (!rc)
        rc = weft_notify_wait(win->window, &id, &threshold, 1, &first, &reached);
    if (!rc)
        *value = (MPI_Count)reached;
    return rc;
}

int weft_mpi_win_notify_waitany(weft_win *win, int count, const int *ids, const MPI_Count *thresholds, int *index, MPI_Count *value)
{
    uint64_t reached = 0;
    uint32_t first = 0;
    int rc = 0;
    if (count < 1)
        return weft_fail(WEFT_E_ARG, "argument count is %d: there must be a counter to wait for", count);
    for (int i = 0; i < count && !rc; i++)
        rc = check_id(win, "ids[...]", ids[i]);
    if (!rc)
        rc = weft_notify_wait(win->window, ids, thresholds, (uint32_t)count, &first, &reached);
    if (rc)
        return rc;
    *index = (int)first;
    *value = (MPI_Count)reached;
    return 0;
}

int weft_mpi_win_notify_test(weft_win *win, int id, MPI_Count threshold, int *flag, MPI_Count *value)
{
    int rc = check_id(win, "id", id);
    if (rc)
        return rc;
    *value = (MPI_Count)weft_notify_value(win->window, (uint32_t)id);
    if (*value < threshold) {
        weft_rma_poll_between(win->window);
        *value = (MPI_Count)weft_notify_value(win->window, (uint32_t)id);
    }
    *flag = *value >= threshold;
    return *flag ? 0 : weft_notify_tell_death(win->window);
}

int weft_mpi_win_notify_reset(weft_win *win, int id, MPI_Count *value)
{
    int rc = check_id(win, "id", id);
    if (!rc)
        *value = (MPI_Count)weft_notify_reset(win->window, (uint32_t)id);
    return rc;
}
