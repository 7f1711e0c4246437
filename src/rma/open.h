/* SPDX-License-Identifier: BSD-3-Clause
 *
 * open: opening and closing of windows (window.h). All require worker->lock.
 */
#ifndef WEFT_RMA_OPEN_H
#define WEFT_RMA_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "rma/window.h"

/* Own memory of a member, an argument of open. */
typedef struct weft_window_own {
    enum weft_window_flavor flavor;
    void *base;        /* CREATE; else open allocates `bytes` */
    uint64_t bytes;
    uint64_t unit;
    bool is_contiguous; /* SHARED: all members' memory follows in the order of ranks */
    bool is_unordered;  /* the program asserts that the order of its accumulates does not matter; members may differ */
    bool wants_words;   /* that a device which is atomic with itself only changes own words (words.h); members may differ */
} weft_window_own;

/* Collective over the team; blocking. chan and team belong to the caller and outlive the window. On an error all members fail, and nothing
 * is left. */
int weft_window_open(weft_chan *chan, weft_team *team, const weft_window_own *own, weft_window **window);
/* Collective; blocking: all operations to this member have been performed when it returns. Frees the window. */
int weft_window_close(weft_window *window);
/* Local, at finalize: frees a window that the members did not close. Its channel must not be used any more. Its memory, which others may
 * still access through the kernel, and the state of messages under way stay until the worker closes. */
void weft_window_abandon(weft_window *window);

struct weft_window_wire; /* memory.h */

/* Collective step: exchanges what each member tells (own into all[size]) and the results rc. Returns the own error, if any; else an error
 * if another member has one, with a text that names the first. */
int weft_window_agree(weft_window *window, struct weft_window_wire *own, struct weft_window_wire *all, int rc);

#endif
