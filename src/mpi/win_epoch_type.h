/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win_epoch_type: which epochs of a window are open at this member. See win_epoch.h.
 */
#ifndef WEFT_MPI_WIN_EPOCH_TYPE_H
#define WEFT_MPI_WIN_EPOCH_TYPE_H

#include <stdbool.h>
#include <stdint.h>

/* By target. 0: no access epoch. */
enum weft_win_access { WEFT_WIN_STARTED = 1, WEFT_WIN_SHARED = 2, WEFT_WIN_EXCLUSIVE = 3, WEFT_WIN_ACCESS_KIND = 3, WEFT_WIN_NOCHECK = 4 };

/* Members of a group of MPI_Win_start or MPI_Win_post. */
typedef struct weft_win_ranks {
    bool is_open;
    uint32_t count;
    uint32_t *ranks; /* [count], owned; in the window's group */
} weft_win_ranks;

typedef struct weft_win_epoch {
    bool to_all;       /* every target may be accessed: a fence epoch, or MPI_Win_lock_all with MPI_MODE_NOCHECK */
    bool is_used;      /* there was an operation since the latest MPI_Win_fence */
    bool is_fence;     /* MPI_Win_fence was called, without MPI_MODE_NOSUCCEED */
    bool is_lock_all, is_unchecked; /* unchecked: with MPI_MODE_NOCHECK */
    uint32_t locks;    /* targets that MPI_Win_lock has locked */
    uint8_t *access;   /* [members] enum weft_win_access, owned */
    weft_win_ranks started, posted;
} weft_win_epoch;

#endif
