/* SPDX-License-Identifier: BSD-3-Clause
 *
 * apps_notify_costs: what notified puts cost on simulated HCAs: one write each, no frame of this library's and no message of the window's.
 * See apps.h. Rank 0 puts, rank 1 waits for the counts and looks at the data. The same on a region of a dynamic window that rank 0 knows.
 */
#include <mpi-ext.h>
#include <string.h>

#include "core/counters.h"
#include "core/worker.h"
#include "core/world.h"
#include "test/sim/apps.h"
#include "test/transports/simhca/simhca.h"

enum { PUTS = 100, BYTES = 300, SERIES = 3, CREDIT_FRAMES = PUTS / 2 };

typedef struct costs {
    uint64_t frames, puts, messages, writes, sends;
} costs;

static costs so_far(void)
{
    const uint64_t *counters = weft_world_now->workers[0]->counters;
    return (costs){counters[WEFT_COUNT_FRAMES_SENT], counters[WEFT_COUNT_DEVICE_PUTS], counters[WEFT_COUNT_WINDOW_MESSAGES],
                   simhca_counter(SIMHCA_WRITES), simhca_counter(SIMHCA_SENDS)};
}

static int compare(const app_self *self, const char *what, costs from, uint64_t puts, uint64_t writes)
{
    costs now = so_far();
    if (now.frames != from.frames || now.messages != from.messages || now.puts != from.puts + puts || now.writes != from.writes + writes ||
        now.sends > from.sends + CREDIT_FRAMES)
        return app_fail(self, "%s: %d frames, %d messages of the window, %d puts, %d writes, %d sends by both", what,
                        (int)(now.frames - from.frames), (int)(now.messages - from.messages), (int)(now.puts - from.puts),
                        (int)(now.writes - from.writes), (int)(now.sends - from.sends));
    return 0;
}

static MPI_Aint base; /* of the target's slots: an address if the window is dynamic */

/* Slot `slot` of the target gets bytes of value i. */
static int put(const app_self *self, MPI_Win win, char *from, int slot, int i, bool notifies)
{
    memset(from, i, BYTES);
    if (notifies)
        APP_TRY(MPIX_Put_notify(from, BYTES, MPI_BYTE, 1, base + slot * BYTES, BYTES, MPI_BYTE, win, 1));
    else
        APP_TRY(MPI_Put(from, BYTES, MPI_BYTE, 1, base + slot * BYTES, BYTES, MPI_BYTE, win));
    return 0;
}

static int send_all(const app_self *self, MPI_Win win)
{
    char buffers[SERIES][BYTES];
    costs before;
    APP_TRY(MPIX_Put_notify(NULL, 0, MPI_BYTE, 1, 0, 0, MPI_BYTE, win, 0)); /* connects */
    if (base && put(self, win, buffers[0], 0, 0, false)) /* asks for the region */
        return 1;
    APP_TRY(MPI_Win_flush(1, win));
    before = so_far();
    for (int i = 0; i < PUTS; i++) {
        if (put(self, win, buffers[i % SERIES], i, i, true))
            return 1;
        if (i % SERIES == 0)
            APP_TRY(MPI_Win_flush(1, win));
    }
    APP_TRY(MPI_Win_flush(1, win));
    if (compare(self, "puts that notify", before, PUTS, PUTS))
        return 1;
    before = so_far();
    for (int i = 0; i < PUTS / SERIES; i++) {
        for (int k = 0; k < SERIES; k++)
            if (put(self, win, buffers[k], i * SERIES + k, i + 1, false))
                return 1;
        APP_TRY(MPIX_Put_notify(NULL, 0, MPI_BYTE, 1, 0, 0, MPI_BYTE, win, 2));
        APP_TRY(MPI_Win_flush(1, win));
    }
    return compare(self, "puts before a notification", before, PUTS / SERIES * SERIES, PUTS / SERIES * (SERIES + 1));
}

static int take_all(const app_self *self, MPI_Win win, const char *memory)
{
    MPI_Count value = 0;
    APP_TRY(MPIX_Win_notify_wait(win, 0, 1, &value));
    for (MPI_Count seen = 0; seen < PUTS; seen = value) {
        APP_TRY(MPIX_Win_notify_wait(win, 1, seen + 1, &value));
        for (MPI_Count i = seen; i < value; i++)
            if (memory[i * BYTES] != (char)i && memory[i * BYTES] > 1 + PUTS / SERIES)
                return app_fail(self, "notification %d came before its data", (int)i);
    }
    APP_TRY(MPIX_Win_notify_wait(win, 2, PUTS / SERIES, &value));
    for (int i = 0; i < PUTS / SERIES * SERIES; i++)
        if (memory[i * BYTES + BYTES - 1] != (char)(i / SERIES + 1))
            return app_fail(self, "the put to slot %d came after the notification behind it", i);
    return 0;
}

static int count_in(const app_self *self, bool is_dynamic)
{
    static char memory[2][PUTS * BYTES]; /* of simulated ranks, which share it */
    int rank = self->rank;
    MPI_Win win;
    base = 0;
    if (is_dynamic) {
        APP_TRY(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        APP_TRY(MPI_Win_attach(win, memory[rank], sizeof memory[rank]));
        APP_TRY(MPI_Get_address(memory[1], &base));
    } else {
        APP_TRY(MPI_Win_create(memory[rank], sizeof memory[rank], 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    APP_TRY(MPIX_Win_notify_init(win, 3));
    APP_TRY(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    if (rank ? take_all(self, win, memory[1]) : send_all(self, win))
        return 1;
    APP_TRY(MPI_Win_unlock_all(win));
    APP_TRY(MPI_Win_free(&win));
    APP_TRY(MPI_Barrier(MPI_COMM_WORLD));
    return 0;
}

int app_notify_costs(int rank, void *arg)
{
    app_self me, *self = &me;
    (void)rank;
    if (!app_begin(self, arg) || count_in(self, false) || count_in(self, true))
        return 1;
    return MPI_Finalize();
}
