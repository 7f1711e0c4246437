/* SPDX-License-Identifier: BSD-3-Clause
 *
 * win: windows (MPI 5.0 chapter 12). An MPI_Win points to a weft_win: the memory that its members open (rma/window.h), with MPI's rules,
 * info and attributes, on a private duplicate of the communicator. win_create.c makes and frees windows, win_sync.c has the
 * synchronization, win_epoch.c its rules, rma.c the operations. Guarded by worker->lock.
 */
#ifndef WEFT_MPI_WIN_H
#define WEFT_MPI_WIN_H

#include <mpi.h>

#include "mpi/comm.h"
#include "mpi/traits.h"
#include "mpi/win_epoch_type.h"
#include "rma/window.h"

#define WEFT_WIN_MAGIC WEFT_OBJECT_MAGIC('W', 'I', 'N', 'D')

/* Boolean hints (MPI 5.0 12.2.1, 12.2.3; the last is an extension, docs/rma.md), bits. */
enum weft_win_hint { WEFT_WIN_NO_LOCKS = 1, WEFT_WIN_SAME_SIZE = 2, WEFT_WIN_SAME_DISP_UNIT = 4, WEFT_WIN_NONCONTIG = 8,
                     WEFT_WIN_DEVICE_ATOMICS = 16 };

/* Of the info key accumulate_ordering, bits; none: "none". */
enum weft_win_ordering { WEFT_WIN_RAR = 1, WEFT_WIN_RAW = 2, WEFT_WIN_WAR = 4, WEFT_WIN_WAW = 8, WEFT_WIN_ORDERED = 15 };

typedef struct MPI_ABI_Win weft_win;
struct MPI_ABI_Win {
    weft_traits traits;    /* refs: the user's handle, and requests in flight */
    weft_worker *worker;
    weft_window *window;
    weft_win_epoch epoch;
    weft_comm *comm;       /* private duplicate, held */
    uint8_t hints;         /* bits: enum weft_win_hint */
    uint8_t ordering;      /* bits: enum weft_win_ordering */
    bool is_same_op;       /* accumulate_ops is same_op, else same_op_no_op */
    uint8_t asserted_kinds; /* memory kinds that the program promises (memory_kinds.h); 0: none */
    int64_t granularity;   /* mpi_accumulate_granularity, bytes */
    void *base;            /* attributes (MPI 5.0 12.2.6); the program gets the addresses of all but base */
    MPI_Aint size;
    int disp_unit, flavor, model;
    weft_list_link link;   /* in weft_mpi_world.windows */
};

extern weft_object_pool weft_win_pool;

/* Handle to window. NULL: MPI_WIN_NULL, an invalid or freed handle. */
static inline weft_win *weft_win_of(const void *handle)
{
    if (weft_object_is_constant(handle))
        return NULL;
    return ((weft_win *)handle)->traits.object.magic == WEFT_WIN_MAGIC ? (weft_win *)handle : NULL;
}

/* Finalize: closes windows that the program did not free, without a word to the other members. Before the communicators are closed. */
void weft_win_close_all(weft_mpi_world *mpi);
/* References of requests in flight. */
static inline void weft_win_hold(weft_win *win) { weft_object_hold(&win->traits.object); }
void weft_win_drop(weft_win *win);

#endif
